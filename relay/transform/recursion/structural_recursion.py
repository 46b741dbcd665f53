"""Structural recursion: functions that take a value of a data type apart and call themselves on its parts.

    fn f(x: Tree, w) = match x { Leaf(a) -> e;  Node(l, r) -> u = f(l, w); v = f(r, w); e }

Each function has one parameter that it takes apart, at the start or after some calls of operators. What an arm of the
`match` does with the fields that are data is to call functions of the recursion on them, in any case; the rest of it is
calls of operators, branches and loops. So the results of all parts can be computed before those of the whole. The other
parameters are the same in all calls, or small arrays that a call changes by a few operators on what is known before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from relay.errors import Span
from relay.ir.dims import ANY
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Exit,
    Extent,
    Function,
    Global,
    If,
    Loop,
    MakeTuple,
    Match,
    Module,
    OpCall,
    Project,
    StackGet,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_function
from relay.ir.sizes.data_dependent import bound_dims
from relay.ir.traverse import all_blocks, free_variables, operands, walk
from relay.ir.types import DataType, RefType, StackType, TensorType, TupleType, Type
from relay.operator import Pattern, lookup
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.analysis.loop_analysis import elements, likely
from relay.transform.recursion.list_parts import find_list_parts
from relay.transform.recursion.recursion_arms import (
    Constructed,
    Decision,
    Obstacle,
    Part,
    RecursionArm,
    decision_arms,
    find_decisions,
    has_product,
    holds,
    known_fields,
    needed_before,
    without_aliases,
)

_STRAIGHT = (OpCall, Var, Constant, MakeTuple, Project, Extent, Assert, If, Loop)


@attrs.frozen(eq=False)
class RecursiveFunction:
    """A function of a recursion: the position of the parameter that it takes apart, the parameters of the copy of which
    the arms are made, and the decisions between these. `passed`: the positions of the parameters that calls change."""

    name: str
    position: int
    data: DataType
    result: Type
    parameters: tuple[Var, ...]
    decision: Decision
    passed: tuple[int, ...] = ()

    @property
    def arms(self) -> tuple[RecursionArm, ...]:
        """The arms, in order."""
        return tuple(decision_arms(self.decision))


@attrs.frozen(eq=False)
class StructuralRecursion:
    """Functions that call each other on parts. `shared` gives, for each of a function's parameters, the name of the
    value that it has in all calls."""

    functions: Mapping[str, RecursiveFunction]
    shared: Mapping[tuple[str, int], int]

    @property
    def goes_through_lists(self) -> bool:
        """True if some part is a list."""
        return any(arm.lists for arm in self.arms)

    @property
    def arms(self) -> tuple[RecursionArm, ...]:
        """The arms of all functions."""
        return tuple(arm for function in self.functions.values() for arm in function.arms)

    def work(self) -> int:
        """The elements of the largest operand of a product in an arm; 0 if there are no products."""
        sizes = [0]
        for arm in self.arms:
            for binding in walk(Block(arm.bindings, Yield(()))):
                call = binding.value
                if isinstance(call, OpCall) and lookup(call.operator).pattern is Pattern.OUTPUT_FUSABLE:
                    sizes += [likely(size) for a in call.arguments if (size := elements(a)) is not None]
        return max(sizes)


def find_recursions(module: Module) -> list[StructuralRecursion]:
    """The structural recursions of a structured core module."""
    return [found for found in _recursions(module).values() if isinstance(found, StructuralRecursion)]


def find_obstacles(module: Module) -> dict[str, Obstacle]:
    """The obstacle of each function that calls itself, or functions that call it, with a parameter of a data type, and
    is not part of a structural recursion."""
    found: dict[str, Obstacle] = {}
    for names, obstacle in _recursions(module).items():
        functions = [module.functions[name] for name in names]
        plain = [f for f in functions if isinstance(f, Function)]
        if isinstance(obstacle, Obstacle) and any(isinstance(p.type, DataType) for f in plain for p in f.parameters):
            found.update(dict.fromkeys(names, obstacle))
    return found


def _recursions(module: Module) -> dict[tuple[str, ...], StructuralRecursion | Obstacle]:
    """The functions that call each other: a recursion, or what is in the way."""
    graph = call_graph(module)
    ruled = {name for f in module.functions.values() if isinstance(f, Function) for name in f.rule_functions}
    found: dict[tuple[str, ...], StructuralRecursion | Obstacle] = {}
    for component in strong_components(graph):
        functions = [module.functions[name] for name in component]
        if len(component) == 1 and component[0] not in graph[component[0]]:
            continue
        plain = [f for f in functions if isinstance(f, Function) and f.rule is None and f.name not in ruled]
        try:
            if len(plain) < len(functions):
                raise Obstacle("it is differentiated, or has a gradient of its own", functions[0].span)
            found[tuple(component)] = _recursion(plain)
        except Obstacle as obstacle:
            found[tuple(component)] = obstacle
    return found


def _recursion(functions: Sequence[Function]) -> StructuralRecursion:
    """Functions that call each other as a structural recursion. Raises Obstacle if they are none."""
    names = {f.name: [p.name for p in f.parameters] for f in functions}
    positions = {function.name: _data_position(function) for function in functions}
    for function in functions:
        if bound_dims(function.body):
            raise Obstacle("arrays in it have sizes that depend on data", function.span)
        if not _is_of_tensors(function.result):
            raise Obstacle("its result is more than arrays of known shapes", function.span)
    classes = _Classes()
    made = {f.name: _Arms(copy_function(f), positions, names, classes).function() for f in functions}
    items = [(f.name, i) for f in functions for i in range(len(f.parameters)) if i != positions[f.name]]
    for function in functions:  # a call with two parameters exchanged passes on others than it was given
        own = [item for item in items if item[0] == function.name]
        values = [classes.find(item) for item in own]
        for item, value in zip(own, values, strict=True):
            if values.count(value) > 1:
                classes.change(item, function.span)
    for name, each in made.items():
        passed = tuple(i for i in range(len(names[name])) if i != each.position and classes.is_changed((name, i)))
        made[name] = attrs.evolve(each, passed=passed)
    _check_passed(made, classes)
    return StructuralRecursion(made, classes.number(items))


MOST_PASSED = 1024
"""The most elements of an array that a call changes on the way to the parts, where each part keeps its own."""


def _check_passed(functions: Mapping[str, RecursiveFunction], classes: _Classes) -> None:
    """Raise Obstacle if a parameter that calls change is not a small array, or is computed by more than a few
    operators of what is known before the calls."""
    for function in functions.values():
        for i in function.passed:
            parameter, span = function.parameters[i], classes.spans.get((function.name, i))
            size = elements(parameter)
            if not isinstance(parameter.type, TensorType) or ANY in parameter.type.shape or size is None:
                raise Obstacle(f"a call changes the parameter {parameter.name}, which is no array", span)
            if likely(size) > MOST_PASSED:
                raise Obstacle(f"a call changes the parameter {parameter.name}, which is large", span)
        for arm in function.arms:
            for part in (*arm.parts, *arm.lists):
                span = part.target.span or function.parameters[function.position].span
                if holds(part.before, Call):
                    raise Obstacle("what a call passes on depends on the result of another one", span)
                if has_product(part.before):
                    raise Obstacle("a call changes a parameter by a product", span)


def _data_position(function: Function) -> int:
    """The position of the parameter that a function takes apart."""
    loops = [b.value for b in function.body.bindings if isinstance(b.value, Loop)]
    if any(isinstance(b.value, Match) for loop in loops for b in loop.body.bindings):
        raise Obstacle("it ends with a call of itself, so that it is a loop", loops[0].span or function.span)
    matches = [b.value for b in walk(function.body) if isinstance(b.value, Match)]
    found = [m for m in matches if m.value in function.parameters]
    if not found:
        raise Obstacle("it takes no parameter apart", function.span)
    other = next((m for m in found if m.value is not found[0].value), None)
    if other is not None:
        raise Obstacle("it takes more apart than one of its parameters", other.span or function.span)
    return function.parameters.index(found[0].value)


def _is_of_tensors(type_: Type | None) -> bool:
    """True for a tensor of a known shape, and for tuples of these."""
    if isinstance(type_, TupleType):
        return all(map(_is_of_tensors, type_.items))
    return isinstance(type_, TensorType) and ANY not in type_.shape


class _Classes:
    """Parameters that have the same value in all calls of a recursion (union-find)."""

    def __init__(self) -> None:
        self.parent: dict[tuple[str, int], tuple[str, int]] = {}
        self.spans: dict[tuple[str, int], Span | None] = {}  # of calls that change parameters

    def change(self, item: tuple[str, int], span: Span | None) -> None:
        """Note that a call changes a parameter."""
        self.spans.setdefault(item, span)

    def is_changed(self, item: tuple[str, int]) -> bool:
        """True if some call changes a parameter, or one that gets its value."""
        return self.find(item) in map(self.find, self.spans)

    def find(self, item: tuple[str, int]) -> tuple[str, int]:
        while (above := self.parent.get(item, item)) != item:
            item = above
        return item

    def join(self, a: tuple[str, int], b: tuple[str, int]) -> None:
        first, second = self.find(a), self.find(b)
        if first != second:
            self.parent[first] = second

    def number(self, items: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The number of each item's class; an own one for each that calls change."""
        numbers: dict[tuple[str, int], int] = {}
        found: dict[tuple[str, int], int] = {}
        for item in items:
            found[item] = numbers.setdefault(item if self.is_changed(item) else self.find(item), len(numbers))
        return found


class _Arms:
    """The arms of one function, a fresh copy."""

    def __init__(
        self, function: Function, positions: Mapping[str, int], names: Mapping[str, list[str]], classes: _Classes
    ) -> None:
        self.function_, self.positions, self.names, self.classes = function, positions, names, classes
        self.place = positions[function.name]
        self.data = function.parameters[self.place]

    def function(self) -> RecursiveFunction:
        """The function. Raises Obstacle if it does something else."""
        function = self.function_
        assert isinstance(self.data.type, DataType) and function.result is not None
        decision = find_decisions(function, self.data, self._arm)
        return RecursiveFunction(
            function.name, self.place, self.data.type, function.result, function.parameters, decision
        )

    def _arm(self, known: Sequence[Constructed], block: Block) -> RecursionArm:
        fields = known_fields(known)
        for field in fields:
            if isinstance(field.type, TensorType) and ANY in field.type.shape:
                raise Obstacle(f"the shape of the field {field.name} is not known", field.span or self.function_.span)
        found = find_list_parts(block, fields)
        parts = []
        for number, binding in enumerate(block.bindings):
            if isinstance(binding.value, Call):
                parts.append(self._part(binding.value, binding.targets[0], fields, block.bindings[:number]))
        lists = [self._part(c.call, c.results, fields, c.before, c.unknown) for c in found.calls]
        kept = [b for b in found.block.bindings if not isinstance(b.value, Call)]
        rest = without_aliases(kept, block.terminator)
        self._check_parts(rest, fields)
        self._check_rest(rest, fields, {part.target for part in lists})
        assert isinstance(rest.terminator, Exit)
        (result,), lengths = rest.terminator.values, tuple(found.lengths.items())
        name = self.function_.name
        return RecursionArm(name, tuple(known), tuple(parts), rest.bindings, result, tuple(lists), lengths)

    def _check_parts(self, body: Block, fields: Sequence[Var]) -> None:
        """Raise Obstacle if an arm looks into fields that are data or lists."""
        for binding in walk(body):
            value, span = binding.value, getattr(binding.value, "span", None) or self.function_.span
            if not isinstance(value, Call) and any(a in fields and _holds_list(a) for a in operands(value)):
                raise Obstacle("it reads a list of parts otherwise than by a call on each element", span)
            if isinstance(value, Match):
                raise Obstacle("it takes a part apart in a loop, or depending on what a call gives", span)

    def _check_rest(self, body: Block, fields: Sequence[Var], results: set[Var]) -> None:
        """Raise Obstacle if what an arm does besides its calls is more than operators, branches and loops."""
        data = {f for f in fields if not isinstance(f.type, TensorType)} | {self.data}
        for binding in walk(body):
            span = getattr(binding.value, "span", None) or self.function_.span
            if isinstance(binding.value, Call):
                raise Obstacle("a call is in a loop", span)
            reads = isinstance(binding.value, StackGet) and binding.value.stack in results
            if not reads and not isinstance(binding.value, _STRAIGHT):
                raise Obstacle("it does more than computing arrays", span)
        if data.intersection(free_variables(body)):
            raise Obstacle("it uses a part otherwise than in a call", self.function_.span)
        end = body.terminator
        assert isinstance(end, Exit)
        if any(isinstance(b.terminator, Exit) and b.terminator.label is end.label for b in _inner(body)):
            raise Obstacle("it returns in several places of a branch or loop", self.function_.span)

    def _part(
        self,
        call: Call,
        target: Var,
        fields: Sequence[Var],
        before: Sequence[Binding],
        unknown: frozenset[Var] = frozenset(),
    ) -> Part:
        if not isinstance(call.function, Global) or call.function.name not in self.names:
            raise Obstacle("it calls another function, which is recursive, too", call.span)
        name = call.function.name
        argument = call.arguments[self.positions[name]]
        if argument not in fields:
            raise Obstacle("a call is not on a field of the value", call.span)
        parameters = self.function_.parameters
        changed: list[Atom] = []
        for i, other in enumerate(call.arguments):
            if i == self.positions[name]:
                continue
            if other in parameters and other is not self.data:
                self.classes.join((name, i), (self.function_.name, parameters.index(other)))
            else:
                self.classes.change((name, i), call.span)
                changed.append(other)
        needed = needed_before(changed, before, unknown)
        if unknown.intersection(free_variables(Block(needed, Yield(tuple(changed))))):
            raise Obstacle("a call on an element of a list passes on what differs from element to element", call.span)
        return Part(fields.index(argument), name, target, call.arguments, needed)


def _holds_list(atom: Atom) -> bool:
    type_ = atom.type if isinstance(atom, Var) else None
    while isinstance(type_, RefType):
        type_ = type_.content
    return isinstance(type_, StackType)


def _inner(body: Block) -> list[Block]:
    return [b for b in all_blocks(body) if b is not body]
