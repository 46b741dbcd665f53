"""Structural recursion: functions that take a value of a data type apart and call themselves on its parts.

    fn f(x: Tree, w) = match x { Leaf(a) -> e;  Node(l, r) -> u = f(l, w); v = f(r, w); e }

Each function has one parameter that it takes apart, at the start or after some calls of operators. What an arm of the
`match` does with the fields that are data is to call functions of the recursion on them, in any case, with the other
parameters as they are; the rest of it is calls of operators, branches and loops. So the results of all parts can be
computed before those of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from relay.ir.dims import ANY
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Dead,
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
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_block, copy_function, map_blocks, substitute
from relay.ir.sizes.data_dependent import bound_dims
from relay.ir.traverse import all_blocks, free_variables, walk
from relay.ir.types import DataType, TensorType, TupleType, Type
from relay.operator import Pattern, lookup
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.analysis.loop_analysis import elements, likely

_STRAIGHT = (OpCall, Var, Constant, MakeTuple, Project, Extent, Assert, If, Loop)


@attrs.frozen(eq=False)
class Part:
    """A call of a function on a field: `field` is the field's position, `target` what the call binds."""

    field: int
    function: str
    target: Var


@attrs.frozen(eq=False)
class RecursionArm:
    """The part of a function for one constructor.

    Attributes:
        function: the name of the function.
        constructor: the name of the constructor.
        position: that of the constructor in its data type.
        fields: a variable for each field.
        parts: the calls on fields, in order.
        bindings: everything else, in order.
        result: what the function returns.
    """

    function: str
    constructor: str
    position: int
    fields: tuple[Var, ...]
    parts: tuple[Part, ...]
    bindings: tuple[Binding, ...]
    result: Atom


@attrs.frozen(eq=False)
class RecursiveFunction:
    """A function of a recursion: the position of the parameter that it takes apart, the other parameters of the copy of
    which the arms are made, and the arms in the order of the constructors."""

    name: str
    position: int
    data: DataType
    result: Type
    parameters: tuple[Var, ...]
    arms: tuple[RecursionArm, ...]


@attrs.frozen(eq=False)
class StructuralRecursion:
    """Functions that call each other on parts. `shared` gives, for each of a function's parameters, the name of the
    value that it has in all calls."""

    functions: Mapping[str, RecursiveFunction]
    shared: Mapping[tuple[str, int], int]

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
    graph = call_graph(module)
    ruled = {name for f in module.functions.values() if isinstance(f, Function) for name in f.rule_functions}
    found = []
    for component in strong_components(graph):
        functions = [module.functions[name] for name in component]
        if len(component) == 1 and component[0] not in graph[component[0]]:
            continue
        plain = [f for f in functions if isinstance(f, Function) and f.rule is None and f.name not in ruled]
        if len(plain) == len(functions) and (recursion := _recursion(plain)) is not None:
            found.append(recursion)
    return found


def is_over_data(function: Function, module: Module) -> bool:
    """True if a function calls itself, or functions that call it, and has a parameter of a data type."""
    graph = call_graph(module)
    component = next(names for names in strong_components(graph) if function.name in names)
    recursive = len(component) > 1 or function.name in graph[function.name]
    return recursive and any(isinstance(p.type, DataType) for p in function.parameters)


def _recursion(functions: Sequence[Function]) -> StructuralRecursion | None:
    names = {f.name for f in functions}
    positions: dict[str, int] = {}
    for function in functions:
        position = _data_position(function)
        if position is None or bound_dims(function.body) or not _is_of_tensors(function.result):
            return None
        positions[function.name] = position
    made: dict[str, RecursiveFunction] = {}
    classes = _Classes()
    for function in functions:
        found = _Arms(copy_function(function), positions, names, classes).function()
        if found is None:
            return None
        made[function.name] = found
    shared = classes.number((f.name, i) for f in functions for i in range(len(f.parameters)) if i != positions[f.name])
    for function in functions:  # a call with two parameters exchanged passes on others than it was given
        own = [shared[function.name, i] for i in range(len(function.parameters)) if i != positions[function.name]]
        if len(set(own)) < len(own):
            return None
    return StructuralRecursion(made, shared)


def _data_position(function: Function) -> int | None:
    """The position of the parameter that a function takes apart."""
    matches = [b.value for b in function.body.bindings if isinstance(b.value, Match)]
    if len(matches) != 1 or matches[0].value not in function.parameters:
        return None
    return function.parameters.index(matches[0].value)


def _is_of_tensors(type_: Type | None) -> bool:
    """True for a tensor of a known shape, and for tuples of these."""
    if isinstance(type_, TupleType):
        return all(map(_is_of_tensors, type_.items))
    return isinstance(type_, TensorType) and ANY not in type_.shape


class _Classes:
    """Parameters that have the same value in all calls of a recursion (union-find)."""

    def __init__(self) -> None:
        self.parent: dict[tuple[str, int], tuple[str, int]] = {}

    def find(self, item: tuple[str, int]) -> tuple[str, int]:
        while (above := self.parent.get(item, item)) != item:
            item = above
        return item

    def join(self, a: tuple[str, int], b: tuple[str, int]) -> None:
        first, second = self.find(a), self.find(b)
        if first != second:
            self.parent[first] = second

    def number(self, items: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The number of each item's class."""
        numbers: dict[tuple[str, int], int] = {}
        found: dict[tuple[str, int], int] = {}
        for item in items:
            found[item] = numbers.setdefault(self.find(item), len(numbers))
        return found


class _Arms:
    """The arms of one function, a fresh copy."""

    def __init__(self, function: Function, positions: Mapping[str, int], names: set[str], classes: _Classes) -> None:
        self.function_, self.positions, self.names, self.classes = function, positions, names, classes
        self.place = positions[function.name]
        self.data = function.parameters[self.place]

    def function(self) -> RecursiveFunction | None:
        """The function; None if it does something else."""
        function = self.function_
        if not isinstance(self.data.type, DataType) or function.result is None:
            return None
        number = next(i for i, b in enumerate(function.body.bindings) if isinstance(b.value, Match))
        binding = function.body.bindings[number]
        assert isinstance(binding.value, Match)
        before, after = function.body.bindings[:number], function.body.bindings[number + 1 :]
        tail = Block(after, function.body.terminator)
        arms = []
        for match_arm in binding.value.arms:
            whole = self._join(match_arm.body, binding.targets, tail)
            if whole is None:
                return None
            # the parts before and after the `match` are in each arm, so each has a copy with variables of its own
            block, fields = _copy(_without_aliases((*before, *whole.bindings), whole.terminator), match_arm.fields)
            position = self.data.type.definition.index(match_arm.constructor)
            arm = self._arm(match_arm.constructor, position, fields, block)
            if arm is None:
                return None
            arms.append(arm)
        arms.sort(key=lambda a: a.position)
        return RecursiveFunction(
            function.name, self.place, self.data.type, function.result, function.parameters, tuple(arms)
        )

    def _join(self, body: Block, targets: Sequence[Var], tail: Block) -> Block | None:
        """The function from one arm on, as a block that ends with its result."""
        body = _with_one_end(body, self.function_)
        match body.terminator:
            case Exit(label) if label is self.function_.label:
                return body
            case Yield(values):
                joins = tuple(Binding((t,), v) for t, v in zip(targets, values, strict=True))
                rest = _with_one_end(tail, self.function_)
                return Block((*body.bindings, *joins, *rest.bindings), rest.terminator)
            case _:
                return None

    def _arm(self, constructor: str, position: int, fields: tuple[Var, ...], block: Block) -> RecursionArm | None:
        end = block.terminator
        if not isinstance(end, Exit) or end.label is not self.function_.label:
            return None
        data = {f for f in fields if not isinstance(f.type, TensorType)} | {self.data}
        if any(isinstance(f.type, TensorType) and ANY in f.type.shape for f in fields):
            return None
        parts: list[Part] = []
        rest: list[Binding] = []
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, Call):
                part = self._part(call, binding.targets[0], fields)
                if part is None:
                    return None
                parts.append(part)
            else:
                rest.append(binding)
        body = Block(tuple(rest), end)
        if not all(isinstance(b.value, _STRAIGHT) for b in walk(body)) or data.intersection(free_variables(body)):
            return None
        if any(isinstance(b.terminator, Exit) and b.terminator.label is end.label for b in _inner(body)):
            return None
        return RecursionArm(
            self.function_.name, constructor, position, fields, tuple(parts), tuple(rest), end.values[0]
        )

    def _part(self, call: Call, target: Var, fields: Sequence[Var]) -> Part | None:
        if not isinstance(call.function, Global) or call.function.name not in self.names:
            return None
        name = call.function.name
        argument = call.arguments[self.positions[name]]
        if argument not in fields:
            return None
        parameters = self.function_.parameters
        for i, other in enumerate(call.arguments):
            if i != self.positions[name]:
                if other not in parameters or other is self.data:
                    return None
                self.classes.join((name, i), (self.function_.name, parameters.index(other)))
        return Part(fields.index(argument), name, target)


def _inner(body: Block) -> list[Block]:
    return [b for b in all_blocks(body) if b is not body]


def _copy(block: Block, fields: Sequence[Var]) -> tuple[Block, tuple[Var, ...]]:
    """A copy of a block with fresh variables, those of the fields among them."""
    made = tuple(Var(f.name, f.type, f.span) for f in fields)
    return copy_block(block, dict(zip(fields, made, strict=True))), made


def _without_aliases(bindings: Sequence[Binding], end: Terminator) -> Block:
    """A block without other names for variables."""
    names: dict[Var, Atom] = {}
    kept = []
    for binding in bindings:
        if isinstance(binding.value, Var):
            names[binding.targets[0]] = names.get(binding.value, binding.value)
        else:
            kept.append(binding)
    return substitute(Block(tuple(kept), end), names)


def _with_one_end(block: Block, function: Function) -> Block:
    """A block that ends with a branch all of whose arms return, as one that returns what the branch yields."""
    if not isinstance(block.terminator, Dead) or not block.bindings:
        return block
    last = block.bindings[-1]
    if not isinstance(last.value, If):
        return block
    result = Var("result", function.result, last.value.span)
    conditions = {arm.condition for arm in last.value.arms}
    failed = False

    def arm(body: Block) -> Block:
        nonlocal failed
        if body in conditions:
            return body
        made = _with_one_end(body, function)
        if not isinstance(made.terminator, Exit) or made.terminator.label is not function.label:
            failed = True
            return body
        return Block(made.bindings, Yield(made.terminator.values))

    branch = map_blocks(last.value, arm)
    if failed:
        return block
    return Block((*block.bindings[:-1], Binding((result,), branch)), Exit(function.label, (result,)))
