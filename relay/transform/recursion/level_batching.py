"""Level batching: a recursion over data is evaluated level by level, a group of nodes in one call of each operator.

    for t in trees: u = f(t)         where f(x) = match x { Leaf(a) -> a @ w; Node(l, r) -> (f(l) + f(r)) @ w }

    rows = schedule(trees)                                   which node is computed when, and where its result is
    for each group of 16 nodes of one level and constructor:
        for each of them: us[..] = the arm, with us[..] in place of f(l) and f(r)
    for t in trees: u = us[..]

The calls of a loop over a list are replaced together, or a call by itself. The inner loop, over the nodes of a group,
is left to loop vectorization, which makes each operator one call; where it does not, the nodes of the group are
computed one by one. The derivative of the loops is that of any program: cotangents are added up level by level, and
those of weights by products of whole groups.

A function is changed if it is a structural recursion (`structural_recursion`) with products of matrices of some size.
Where the levels of the data are so thin that most of the groups' rows are wasted, which shows when the schedule has
been made, the recursion runs as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from relay.errors import Span
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Derivative,
    Function,
    Global,
    Loop,
    MakeTuple,
    Match,
    MatchArm,
    Module,
    Next,
    OpCall,
    RefRead,
    RefWrite,
    StackGet,
    StackLength,
    StackNew,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_block, map_blocks, rebind, rebuild_block
from relay.ir.traverse import free_variables, walk
from relay.ir.types import INT64, RefType, StackType, TensorType, TupleType, Type
from relay.operator import Emitter, Value, lookup
from relay.transform.analysis.loop_analysis import bound_in
from relay.transform.core.rebuilding import map_bodies
from relay.transform.loops.vectorization import Choice
from relay.transform.module_pass import pass_about
from relay.transform.recursion.level_schedule import (
    Schedule,
    at,
    bound_dim,
    branch,
    element,
    for_loop,
    items,
    length,
    local,
    number,
    push,
    put,
    shared_arguments,
    write_schedule,
    zeros,
)
from relay.transform.recursion.structural_recursion import (
    RecursionArm,
    StructuralRecursion,
    find_obstacles,
    find_recursions,
)

WIDTH = 16
"""The number of nodes in a group."""

MOST_ROWS = 2
"""The rows of all groups for each node, from which on the recursion runs as it was."""

MOST_GROUPS = 4
"""The most groups of calls in a block that are computed by levels, if they are small: each has its own schedule."""

_EACH = "node_by_node"
"""The name of loops in which a recursion runs as it was."""

SMALLEST = 1024
"""The least number of elements of a product's operand that makes a schedule worth its time."""


@pass_about(Call)
def batch_recursion(module: Module, smallest: int = SMALLEST, width: int = WIDTH, most_rows: int = MOST_ROWS) -> Module:
    """The module with recursions over data evaluated level by level, where their products have operands of at least
    `smallest` elements: `width` nodes in one call, unless there would be more than `most_rows` rows for each node."""
    found = {
        name: recursion
        for recursion in find_recursions(module)
        if recursion.work() >= smallest
        for name in recursion.functions
    }
    if not found:
        return module
    cells = any(isinstance(f, Derivative) for f in module.functions.values())
    options = _Options(width, most_rows, cells)

    def change(function: Function) -> Block:
        return function.body if function.name in found else _Calls(found, module, options).block(function.body)

    return map_bodies(module, change)


def recursion_choices(module: Module) -> list[Choice]:
    """The choices of `batch_recursion` for the recursions over data of a module that went through it, in the order of
    the source: which are evaluated level by level, and why others are not."""
    by_levels = recursions_by_levels(module)
    found = [
        Choice(f"the recursion {name} stays: {obstacle}", obstacle.span)
        for name, obstacle in find_obstacles(module).items()
    ]
    for recursion in find_recursions(module):
        if by_levels.intersection(recursion.functions):
            text = "is evaluated level by level, unless levels are thin"
        elif recursion.work() < SMALLEST:
            text = "stays: it has no product of arrays of some size"
        else:
            text = "stays: its calls are in too many places"
        for name in recursion.functions:
            found.append(Choice(f"the recursion {name} {text}", module.functions[name].span))
    return sorted(found, key=lambda choice: choice.span.line if choice.span is not None else 0)


def recursions_by_levels(module: Module) -> set[str]:
    """The functions that `batch_recursion` has let be evaluated level by level, by their calls from outside."""
    found: set[str] = set()
    for function in module.functions.values():
        if isinstance(function, Function):
            loops = [b.value for b in walk(function.body) if isinstance(b.value, Loop) and b.value.label.name == _EACH]
            found.update(name for loop in loops for name in _called_functions(loop.body))
    return found


def _called_functions(body: Block) -> list[str]:
    calls = [b.value.function for b in walk(body) if isinstance(b.value, Call)]
    return [function.name for function in calls if isinstance(function, Global)]


@attrs.frozen
class _Options:
    width: int
    most_rows: int
    cells: bool


class _Calls:
    """The calls of recursions in one function, from outside."""

    def __init__(self, recursions: Mapping[str, StructuralRecursion], module: Module, options: _Options) -> None:
        self.recursions, self.module, self.options = recursions, module, options
        self.made: dict[Var, Binding] = {}
        bodies = [f.body for f in module.functions.values() if isinstance(f, Function)]
        writes = [b.value for body in bodies for b in walk(body) if isinstance(b.value, RefWrite)]
        # the types of references that may change
        self.written = [getattr(write.reference, "type", None) for write in writes]

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        groups = self._groups(block)
        done: set[Binding] = set()
        for binding in block.bindings:
            for target in binding.targets:
                self.made[target] = binding
            value = binding.value
            if binding in done:
                continue
            if isinstance(value, Loop) and value.label.name == _EACH:
                bindings.append(binding)
                continue
            if binding in groups:
                done.update(groups[binding])
                bindings += self._compute(groups[binding])
                continue
            if isinstance(value, Loop):
                value, before = self._loop(value)
                bindings += before
            bindings.append(rebind(binding, map_blocks(value, self.block)))
        return rebuild_block(block, bindings, block.terminator)

    def _groups(self, block: Block) -> dict[Binding, list[Binding]]:
        """The calls of a block that are computed together, by the first of them: those of one function with the same
        other arguments, whose data are there before the first."""
        groups: dict[Binding, list[Binding]] = {}
        last: dict[tuple[Atom | str, ...], Binding] = {}
        made: dict[Var, int] = {}
        places: dict[Binding, int] = {}
        for place, binding in enumerate(block.bindings):
            made.update((target, place) for target in binding.targets)
            call = binding.value
            if not isinstance(call, Call) or (name := self._callee(call)) is None:
                continue
            position = self.recursions[name].functions[name].position
            argument = call.arguments[position]
            key = (name, *(a for i, a in enumerate(call.arguments) if i != position))
            first = last.get(key)
            if first is not None and isinstance(argument, Var) and made.get(argument, -1) < places[first]:
                groups[first].append(binding)
            else:
                groups[binding], last[key], places[binding] = [binding], binding, place
        if len(groups) > MOST_GROUPS:
            return {first: calls for first, calls in groups.items() if len(calls) > MOST_GROUPS}
        return groups

    def _callee(self, call: Call) -> str | None:
        if isinstance(call.function, Global) and call.function.name in self.recursions:
            return call.function.name
        return None

    def _compute(self, calls: Sequence[Binding]) -> list[Binding]:
        """The bindings of some calls, computed together."""
        first = calls[0].value
        assert isinstance(first, Call)
        name = self._callee(first)
        assert name is not None
        function = self.recursions[name].functions[name]
        out = Emitter(first.span)
        content = function.data
        kind = StackType(RefType(content) if self.options.cells else content)
        roots = out.bind(StackNew(kind.element, first.span), kind, "roots")
        for binding in calls:
            assert isinstance(binding.value, Call)
            roots = push(out, roots, out.value(binding.value.arguments[function.position], content))
        results = self._all(out, name, first, roots)
        made: list[Binding] = []
        for place, binding in enumerate(calls):
            found = _structure(out, function.result, iter([at(out, r, number(out, place)) for r in results]))
            made.append(Binding(binding.targets, found.atom))
        return [*out.all_bindings(), *made]

    def _loop(self, loop: Loop) -> tuple[Loop, list[Binding]]:
        """A loop over a list without the calls on its elements, and what is before it."""
        if loop.counter is None or not isinstance(loop.body.terminator, Next):
            return loop, []
        inside = bound_in(loop)
        elements: dict[Var, Atom] = {}  # the stack that a variable is the element of at the counter
        counters: set[Atom] = {loop.counter.index}
        before = Emitter(loop.span)
        bindings: list[Binding] = []
        for binding in loop.body.bindings:
            value = binding.value
            match value:
                case OpCall("cast", (place,)) if place in counters:
                    counters.add(binding.targets[0])
                case StackGet(stack, place) if place in counters and self._counts(loop.counter.count, stack):
                    elements[binding.targets[0]] = stack
                case RefRead(cell) | (Var() as cell) if cell in elements:
                    elements[binding.targets[0]] = elements[cell]
                case Call() if (name := self._callee(value)) is not None:
                    made = self._hoisted(before, name, value, elements, inside)
                    if made is not None:
                        body = Emitter(value.span)
                        index = body.value(loop.counter.index)
                        function = self.recursions[name].functions[name]
                        found = _structure(body, function.result, iter([at(body, r, index) for r in made]))
                        bindings += [*body.all_bindings(), Binding(binding.targets, found.atom)]
                        continue
                case _:
                    pass
            bindings.append(binding)
        if not before.items:
            return loop, []
        body_block = Block(tuple(bindings), loop.body.terminator)
        changed = Loop(loop.label, loop.parameters, loop.initial, body_block, loop.counter, loop.span)
        return changed, list(before.all_bindings())

    def _counts(self, count: Atom, stack: Atom) -> bool:
        """True if a number is the length of a stack."""
        while isinstance(count, Var) and count in self.made:
            value = self.made[count].value
            if isinstance(value, StackLength):
                return value.stack is stack
            if not isinstance(value, OpCall) or value.operator != "cast":
                return False
            count = value.arguments[0]
        return False

    def _hoisted(
        self, before: Emitter, name: str, call: Call, elements: Mapping[Var, Atom], inside: set[Var]
    ) -> list[Value] | None:
        """The results for all elements of a list, if a call is on the element of each round."""
        position = self.recursions[name].functions[name].position
        argument = call.arguments[position]
        stack = elements.get(argument) if isinstance(argument, Var) else None
        others = [a for i, a in enumerate(call.arguments) if i != position]
        if not isinstance(stack, Var) or stack in inside or any(a in inside for a in others):
            return None
        if any(type_ == stack.type.element for type_ in self.written if isinstance(stack.type, StackType)):
            return None  # it may be another one in a later round
        return self._all(before, name, call, before.value(stack))

    # ---- all elements

    def _all(self, out: Emitter, name: str, call: Call, roots: Value) -> list[Value]:
        """The results of a function for all elements of a stack: an array for each tensor of one result."""
        recursion, options = self.recursions[name], self.options
        count = length(out, roots)
        roots_dim = bound_dim(out, "roots", count)
        function = recursion.functions[name]
        others = [i for i in range(len(call.arguments)) if i != function.position]
        arguments = {recursion.shared[name, i]: call.arguments[i] for i in others}
        schedule = write_schedule(out, recursion, name, roots, arguments, options.width, options.cells)
        rows = out.number(schedule.rows, INT64)
        enough = rows.op("less_equal", schedule.count * options.most_rows)
        leaves = _leaves(function.result)

        def by_levels(body: Emitter) -> Sequence[Value]:
            arrays = _Groups(schedule, arguments, recursion, call.span).write(body)[name]

            def collect(inner: Emitter, i: Value, found: list[Value]) -> Sequence[Value]:
                place = at(inner, schedule.places, i)
                return [put(inner, a, i, at(inner, b, place)) for a, b in zip(found, arrays, strict=True)]

            start = [zeros(body, (roots_dim, *t.shape), t) for t in leaves]
            return for_loop(body, "root", local(body, count), start, collect)

        def by_nodes(body: Emitter) -> Sequence[Value]:
            def compute(inner: Emitter, i: Value, found: list[Value]) -> Sequence[Value]:
                argument = element(inner, local(inner, roots), i)
                given = list(call.arguments)
                given[function.position] = argument.atom
                result = inner.bind(Call(call.function, tuple(given), call.span), function.result, "result")
                return [put(inner, a, i, v) for a, v in zip(found, _parts(inner, result), strict=True)]

            start = [zeros(body, (roots_dim, *t.shape), t) for t in leaves]
            return for_loop(body, _EACH, local(body, count), start, compute)

        return branch(out, enough, by_levels, by_nodes, "results")


class _Groups:
    """The loop over the groups of a schedule."""

    def __init__(
        self,
        schedule: Schedule,
        arguments: Mapping[int, Atom],
        recursion: StructuralRecursion,
        span: Span | None,
    ) -> None:
        self.schedule, self.arguments, self.recursion, self.span = schedule, arguments, recursion, span
        self.names = list(recursion.functions)

    def write(self, out: Emitter) -> dict[str, list[Value]]:
        """The results of all tasks of each function: an array of all rows for each tensor of one result."""
        start: list[Value] = []
        for function in self.recursion.functions.values():
            start += [zeros(out, (self.schedule.rows, *t.shape), t) for t in _leaves(function.result)]
        groups = out.number(self.schedule.groups, INT64)

        def group(body: Emitter, i: Value, state: list[Value]) -> Sequence[Value]:
            kind = at(body, self.schedule.kinds, i)
            return self._choose(body, 0, kind, i, state)

        found = for_loop(out, "group", groups, start, group)
        return self._by_function(found)

    def _by_function(self, arrays: Sequence[Value]) -> dict[str, list[Value]]:
        made, rest = {}, iter(arrays)
        for name, function in self.recursion.functions.items():
            made[name] = [next(rest) for _ in _leaves(function.result)]
        return made

    def _choose(self, out: Emitter, key: int, kind: Value, index: Value, state: Sequence[Value]) -> list[Value]:
        arms = self.recursion.arms

        def this(body: Emitter) -> list[Value]:
            return self._arm(body, arms[key], local(body, index), [local(body, v) for v in state])

        def go_on(body: Emitter) -> list[Value]:
            return self._choose(body, key + 1, kind, index, [local(body, v) for v in state])

        if key == len(arms) - 1:
            return this(out)
        return branch(out, local(out, kind) == key, this, go_on, "arrays")

    def _arm(self, out: Emitter, arm: RecursionArm, index: Value, state: list[Value]) -> list[Value]:
        """The arrays with the results of a group, by one arm."""
        function = self.recursion.functions[arm.function]
        members, firsts = at(out, self.schedule.members, index), at(out, self.schedule.firsts, index)
        fields = {**self._fields(out, arm, members), **self._passed(out, arm, members)}
        width = self.schedule.width
        leaves = _leaves(function.result)
        arrays = self._by_function(state)

        def row(body: Emitter, i: Value, found: list[Value]) -> Sequence[Value]:
            mapping = shared_arguments(self.recursion, function, self.arguments)
            for field, table in fields.items():
                mapping[field] = at(body, table, i).atom
            first = at(body, firsts, i) if arm.parts else None
            for offset, part in enumerate(arm.parts):
                assert first is not None
                place = at(body, self.schedule.places, first + offset)
                rows = iter([at(body, a, place) for a in arrays[part.function]])
                result = self.recursion.functions[part.function].result
                mapping[part.target] = _structure(body, result, rows).atom
            block = copy_block(Block(arm.bindings, Yield((arm.result,))), mapping)
            for binding in block.bindings:
                body.emit(binding.targets, binding.value)
            assert isinstance(block.terminator, Yield)
            result_ = _parts(body, body.value(block.terminator.values[0], function.result))
            return [put(body, a, i, v) for a, v in zip(found, result_, strict=True)]

        start = [zeros(out, (width, *t.shape), t) for t in leaves]
        new = for_loop(out, "member", number(out, width), start, row)
        base = index * width
        arrays[arm.function] = [
            _with_rows(out, a, rows, base) for a, rows in zip(arrays[arm.function], new, strict=True)
        ]
        return [a for name in self.names for a in arrays[name]]

    def _fields(self, out: Emitter, arm: RecursionArm, members: Value) -> dict[Var, Value]:
        """The tensors in the fields of a group's nodes, side by side."""
        fields = [f for f in arm.fields if isinstance(f.type, TensorType) and _is_used(arm, f)]
        if not fields:
            return {}
        function = self.recursion.functions[arm.function]
        nodes = self.schedule.nodes[self.names.index(arm.function)]
        start = [zeros(out, (self.schedule.width, *f.type.shape), f.type) for f in fields]  # type: ignore[union-attr,arg-type]

        def read(body: Emitter, i: Value, found: list[Value]) -> Sequence[Value]:
            place = self._place(body, at(body, members, i))
            node = element(body, local(body, nodes), place)
            arms = []
            for other in function.arms:
                inner = Emitter(self.span)
                variables = tuple(Var(f.name, f.type, f.span) for f in other.fields)
                tables = found
                if other is arm:
                    own = [inner.value(variables[arm.fields.index(f)]) for f in fields]
                    tables = [put(inner, t, i, v) for t, v in zip(found, own, strict=True)]
                end = Yield(tuple(t.atom for t in tables))
                arms.append(MatchArm(other.constructor, variables, Block(inner.all_bindings(), end)))
            targets = tuple(Var("fields", t.type, self.span) for t in found)
            body.emit(targets, Match(node.atom, tuple(arms), self.span))
            return [body.value(t) for t in targets]

        made = for_loop(out, "fields", number(out, self.schedule.width), start, read)
        return dict(zip(fields, made, strict=True))

    def _passed(self, out: Emitter, arm: RecursionArm, members: Value) -> dict[Var, Value]:
        """The values of parameters that calls change, for a group's nodes side by side."""
        function, found = self.recursion.functions[arm.function], dict[Var, Value]()
        for position in function.passed:
            parameter, stack = function.parameters[position], self.schedule.passed[arm.function, position]
            if not _is_used(arm, parameter):
                continue
            assert isinstance(parameter.type, TensorType)

            def read(body: Emitter, i: Value, table: list[Value], stack: Value = stack) -> Sequence[Value]:
                place = self._place(body, at(body, members, i))
                return [put(body, table[0], i, element(body, local(body, stack), place))]

            start = zeros(out, (self.schedule.width, *parameter.type.shape), parameter.type)
            (found[parameter],) = for_loop(out, "passed", number(out, self.schedule.width), [start], read)
        return found

    def _place(self, out: Emitter, task: Value) -> Value:
        """The number of a task among those of its function."""
        if self.schedule.visits is None:
            return task
        return items(out, element(out, local(out, self.schedule.visits), task))[1]


def _is_used(arm: RecursionArm, field: Var) -> bool:
    return field in free_variables(Block(arm.bindings, Yield((arm.result,))))


def _with_rows(out: Emitter, array: Value, rows: Value, base: Value) -> Value:
    """An array with some of its rows, from a place on, replaced."""
    starts = [base, *(number(out, 0) for _ in range(array.ndim - 1))]
    first = out.call(lookup("stack"), starts, {"axis": 0})
    return array.op("dynamic_update_slice", rows, first)


def _leaves(type_: Type) -> list[TensorType]:
    """The types of the tensors in a result."""
    if isinstance(type_, TupleType):
        return [leaf for item in type_.items for leaf in _leaves(item)]
    assert isinstance(type_, TensorType)
    return [type_]


def _parts(out: Emitter, value: Value) -> list[Value]:
    """The tensors in a result."""
    if isinstance(value.type, TupleType):
        return [leaf for item in out.components(value) for leaf in _parts(out, item)]
    return [value]


def _structure(out: Emitter, type_: Type, leaves: Iterator[Value]) -> Value:
    """A result of these tensors."""
    if isinstance(type_, TupleType):
        parts = [_structure(out, item, leaves) for item in type_.items]
        return out.bind(MakeTuple(tuple(p.atom for p in parts), out.span), type_, "whole")
    return next(leaves)
