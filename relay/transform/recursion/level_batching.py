"""Level batching: a recursion over data is evaluated level by level, a group of nodes in one call of each operator.

    for t in trees: u = f(t)         where f(x) = match x { Leaf(a) -> a @ w; Node(l, r) -> (f(l) + f(r)) @ w }

    rows = schedule(trees)                                   which node is computed when, and where its result is
    for each group of nodes of one level and constructor:
        for each of them: us[..] = the arm, with us[..] in place of f(l) and f(r)
    for t in trees: u = us[..]

The calls of a loop over a list are replaced together, or a call by itself. The inner loop, over the nodes of a group,
is left to loop vectorization, which makes each operator one call; where it does not, the nodes of the group are
computed one by one. The derivative of the loops is that of any program: cotangents are added up level by level, and
those of weights by products of whole groups.

A function is changed if it is a structural recursion (`structural_recursion`) with products of matrices of some size.
Where the levels of the data are so thin that groups have few nodes, which shows when the schedule has been made, the
recursion runs as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import chain, count

import attrs

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Derivative,
    Exit,
    Function,
    Global,
    Loop,
    LoopLabel,
    Module,
    Next,
    OpCall,
    RefRead,
    RefWrite,
    StackGet,
    StackLength,
    StackNew,
    Var,
)
from relay.ir.rebuild import map_blocks, map_parts, rebind, rebuild_block
from relay.ir.traverse import walk
from relay.ir.types import RefType, StackType, Type
from relay.operator import Emitter, Value
from relay.transform.analysis.loop_analysis import bound_in
from relay.transform.core.rebuilding import map_bodies, with_functions
from relay.transform.loops.vectorization import Choice
from relay.transform.module_pass import pass_about
from relay.transform.recursion.level_groups import Groups, result_structure, result_tensors, result_types
from relay.transform.recursion.level_schedule import (
    at,
    bound_dim,
    branch,
    element,
    for_loop,
    length,
    local,
    number,
    push,
    put,
    write_schedule,
    zeros,
)
from relay.transform.recursion.structural_recursion import (
    StructuralRecursion,
    find_obstacles,
    find_recursions,
)

WIDTH = 256
"""The most nodes in a group: what operators give to each other stays in the cache, and memory is bounded."""

FEWEST = 8
"""The number of nodes of a group, on average, below which the recursion runs as it was."""

MOST_GROUPS = 4
"""The most groups of calls in a block that are computed by levels, if they are small: each has its own schedule."""

_EACH = "node_by_node"
"""The name of loops in which a recursion runs as it was."""

SMALLEST = 1024
"""The least number of elements of a product's operand that makes a schedule worth its time."""


@pass_about(Call)
def batch_recursion(module: Module, smallest: int = SMALLEST, width: int = WIDTH, fewest: int = FEWEST) -> Module:
    """The module with recursions over data evaluated level by level, where their products have operands of at least
    `smallest` elements: up to `width` nodes in one call, unless there would be fewer than `fewest` on average."""
    found = _recursions(module, smallest)
    if not found:
        return module
    entries = {module.entry, *(f.of for f in module.functions.values() if isinstance(f, Derivative))}.intersection(
        found
    )
    if entries:
        module = _with_outer_functions(module, entries)
        found = _recursions(module, smallest)
    cells = any(isinstance(f, Derivative) for f in module.functions.values())
    options = _Options(width, fewest, cells)

    def change(function: Function) -> Block:
        return function.body if function.name in found else _Calls(found, module, options).block(function.body)

    return map_bodies(module, change)


def _recursions(module: Module, smallest: int) -> dict[str, StructuralRecursion]:
    """The functions of recursions with products of some size."""
    recursions = [r for r in find_recursions(module) if r.work() >= smallest]
    return {name: recursion for recursion in recursions for name in recursion.functions}


def _with_outer_functions(module: Module, names: Set[str]) -> Module:
    """The module with a function that only calls it in place of each of some functions, which are renamed: whoever
    enters the module calls from outside, too."""
    renamed = {name: _unused(f"{name}_inside", module) for name in names}

    def atom(a: Atom) -> Atom:
        return Global(renamed[a.name]) if isinstance(a, Global) and a.name in renamed else a

    def block(body: Block) -> Block:
        bindings = [rebind(b, map_parts(b.value, atom=atom, block=block)) for b in body.bindings]
        return rebuild_block(body, bindings, body.terminator)

    functions: dict[str, Function | Derivative] = {}
    for name, function in map_bodies(module, lambda f: block(f.body)).functions.items():
        if name not in renamed:
            functions[name] = function
            continue
        assert isinstance(function, Function) and function.result is not None
        parameters = tuple(Var(p.name, p.type, p.span) for p in function.parameters)
        result, label = Var("result", function.result, function.span), LoopLabel(name)
        call = Binding((result,), Call(Global(renamed[name]), parameters, function.span))
        outer = Block((call,), Exit(label, (result,)))
        f = function
        functions[name] = Function(name, parameters, outer, label, f.result, f.signature, f.documentation, f.span)
        functions[renamed[name]] = Function(renamed[name], f.parameters, f.body, f.label, f.result, span=f.span)
    return with_functions(module, functions)


def _unused(name: str, module: Module) -> str:
    """A name that no function of a module has."""
    return next(n for n in chain([name], (f"{name}{i}" for i in count(1))) if n not in module.functions)


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
        for function in (module.functions[name] for name in recursion.functions):
            assert isinstance(function, Function)
            found.append(Choice(f"the recursion {function.label.name} {text}", function.span))
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
    fewest: int
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
            is_made = isinstance(argument, Var) and first is not None and made.get(argument, -1) < places[first]
            if first is not None and is_made and not self._may_change(name):
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
            found = result_structure(out, function.result, iter([at(out, r, number(out, place)) for r in results]))
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
                        found = result_structure(body, function.result, iter([at(body, r, index) for r in made]))
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

    def _may_change(self, name: str, roots: Type | None = None) -> bool:
        """True if a list of roots, or one in a value that a function goes through, may get other elements."""
        arms = self.recursions[name].arms
        lists = [roots, *(arm.fields[part.field].type for arm in arms for part in arm.lists)]
        return any(isinstance(type_, StackType) and type_.element in self.written for type_ in lists)

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
        if self._may_change(name, stack.type):
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
        enough = (schedule.groups.number * options.fewest).op("less_equal", schedule.count)
        if schedule.is_small is not None:
            enough = enough.op("logical_and", schedule.is_small)
        leaves = result_types(function.result)

        def by_levels(body: Emitter) -> Sequence[Value]:
            arrays = Groups(schedule, arguments, recursion, call.span).write(body)[name]

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
                return [put(inner, a, i, v) for a, v in zip(found, result_tensors(inner, result), strict=True)]

            start = [zeros(body, (roots_dim, *t.shape), t) for t in leaves]
            return for_loop(body, _EACH, local(body, count), start, compute)

        return branch(out, enough, by_levels, by_nodes, "results")
