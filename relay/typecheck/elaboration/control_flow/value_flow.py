"""Value flow in surface code, from its text alone: what defines a variable, and whether only a run knows a value."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TypeAlias

import attrs

from relay.errors import RelayError
from relay.ir.definition import Definition, Scope, given_back, giving_back
from relay.ir.expr import (
    Atom,
    Block,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Lambda,
    Loop,
    LoopLabel,
    Next,
    OpCall,
    Project,
    Var,
    Yield,
)
from relay.ir.surface import Annotated, Apply, Attribute, ForEach, Index, PatternMatch, Slice, Unpack
from relay.ir.traverse import all_blocks, bodies, walk
from relay.typecheck.elaboration.library import undecorated

Path: TypeAlias = tuple[object, ...]
"""The way to a component: names of fields, keys, and positions."""

_MOST_CALLS = 4
"""Through how many calls, one inside of the other, values are followed."""

_SIZES, _STATIC = ("shape", "size"), ("ndim", "dtype")
"""Attributes of tensors that may be known before the run, and those that are."""


@attrs.frozen
class Called:
    """The code of a function at a call, with the ways from its result to the parameters that it changes."""

    function: Function
    flow: ValueFlow
    changes: Mapping[int, tuple[int, ...] | None]

    def result_path(self, call: Apply, path: Path) -> Path | None:
        """The path in the function's result to a component of the call's, if it has that."""
        back = given_back(self.function)
        if not call.changed:
            return None if back else path
        if not path or not isinstance(path[0], int):
            return None
        if path[0] == 0:
            return (0, *path[1:]) if back else path[1:]
        changed = call.changed[path[0] - 1]
        if changed in back:
            return (1 + back.index(changed), *path[1:])
        way = self.changes.get(changed)
        return None if way is None else (*((0,) if back else ()), *way, *path[1:])


class ValueFlow:
    """The definitions in the body of a loop or a function. Of a function that is called, the `arguments` are what its
    parameters are in the code of the `caller`. `functions` tells what functions the variables outside are."""

    def __init__(
        self,
        body: Block,
        scope: Scope,
        functions: Callable[[Var], Definition | Function | None],
        caller: ValueFlow | None = None,
        arguments: Mapping[Var, Atom] | None = None,
    ) -> None:
        self.scope, self.caller, self.arguments = scope, caller, arguments or {}
        self._functions = functions
        self.origins: dict[Var, tuple[Expr, int]] = {}
        self.carried: dict[Var, tuple[Loop | ForEach, int]] = {}  # the parameters of loops
        self.elements: dict[Var, ForEach] = {}
        self.ends: dict[LoopLabel, list[Next | Exit]] = {}
        self._called: dict[Apply, Called | None] = {}
        for binding in walk(body):
            self.origins.update((target, (binding.value, i)) for i, target in enumerate(binding.targets))
            if isinstance(loop := binding.value, Loop | ForEach):
                self.carried.update((p, (loop, i)) for i, p in enumerate(loop.parameters))
                if isinstance(loop, ForEach):
                    self.elements[loop.element] = loop
        for block in all_blocks(body):
            if isinstance(end := block.terminator, Next | Exit):
                self.ends.setdefault(end.label, []).append(end)

    def round_ends(self, loop: Loop | ForEach, position: int) -> list[Atom]:
        """The values of a parameter of a loop at each place where a round ends."""
        kinds = (Next, Exit) if isinstance(loop, ForEach) else Next
        return [end.values[position] for end in self.ends.get(loop.label, ()) if isinstance(end, kinds)]

    def results(self, label: LoopLabel, target: int) -> list[Atom]:
        """The values of a target of a `while`, or of a function, at each place that leaves it."""
        return [end.values[target] for end in self.ends.get(label, ()) if isinstance(end, Exit)]

    def defines(self, variable: Var) -> bool:
        """True if a variable is defined in this code."""
        places = self.origins, self.arguments, self.carried, self.elements
        return any(variable in defined for defined in places)

    def origin(self, atom: Atom) -> Expr | None:
        """The expression that defines a variable as its only target, without copies."""
        while isinstance(atom, Var) and atom in self.origins:
            value = self.origins[atom][0]
            if not isinstance(value, Var):
                return value
            atom = value
        return None

    def called(self, call: Apply) -> Called | None:
        """The code of the function of the language that is called, if the text tells it."""
        if call not in self._called:
            self._called[call] = self._find_called(call)
        return self._called[call]

    def _find_called(self, call: Apply) -> Called | None:
        depth, around = 0, self.caller
        while around is not None:
            depth, around = depth + 1, around.caller
        function, scope = self._callee(call), self.scope
        changes: Mapping[int, tuple[int, ...] | None] = {}
        if isinstance(function, Definition):
            scope, changes = function.scope, function.changes
            changing = giving_back(function) if call.changed else function
            function = None if changing is None else changing.function
        if function is None or depth == _MOST_CALLS or call.keywords or len(call.arguments) != len(function.parameters):
            return None
        arguments = dict(zip(function.parameters, call.arguments, strict=True))
        return Called(function, ValueFlow(function.body, scope, self._functions, self, arguments), changes)

    def _callee(self, call: Apply) -> Definition | Function | None:
        if isinstance(call.function, Global):
            return definition_of(self.scope.resolve(call.function.name))
        flow: ValueFlow | None = self
        while flow is not None and isinstance(call.function, Var):
            if flow.defines(call.function):
                value = flow.origin(call.function)
                return value.function if isinstance(value, Lambda) else None
            flow = flow.caller
        return self._functions(call.function) if isinstance(call.function, Var) else None


def definition_of(function: object) -> Definition | None:
    """The meaning of a function, decorated or plain, which is read as if it were decorated. None if there is none, also
    where Relay does not support the function, which is reported where it is called."""
    found = getattr(function, "__relay__", None)
    if found is None and isinstance(function, FunctionType) and undecorated.is_read(function):
        with contextlib.suppress(RelayError):
            found = undecorated.definition(function)
    return found if isinstance(found, Definition) else None


def yielded(branch: If | PatternMatch) -> list[tuple[Atom, ...]]:
    """The values of each way through a branch that does not leave."""
    blocks = bodies(branch) if isinstance(branch, If) else [case.body for case in branch.cases]
    return [block.terminator.values for block in blocks if isinstance(block.terminator, Yield)]


def conditions_of(branch: If) -> list[Atom]:
    """The values that decide which arm is taken."""
    ends = [arm.condition.terminator for arm in branch.arms]
    return [value for end in ends if isinstance(end, Yield) for value in end.values]


@attrs.frozen
class Dynamic:
    """The values that only a run knows, in the rounds of a loop that is not unrolled. `outside` tells it of variables
    that the code around the loop defines, `is_of_any_size` whether a tensor has a data-dependent size,
    `has_many_rounds` whether an inner loop has a number of rounds that only the run knows."""

    loop: Loop | ForEach
    outside: Callable[[Var], bool]
    is_of_any_size: Callable[[ValueFlow, Atom], bool]
    has_many_rounds: Callable[[ValueFlow, ForEach], bool]

    def is_dynamic(self, flow: ValueFlow, atom: Atom) -> bool:
        """True if a value certainly depends on the run."""
        return self._is_dynamic(flow, atom, set())

    def _is_dynamic(self, flow: ValueFlow, atom: Atom, seen: set[tuple[ValueFlow, Var]]) -> bool:
        while isinstance(atom, Var) and not flow.defines(atom) and flow.caller is not None:
            flow = flow.caller
        if not isinstance(atom, Var) or (flow, atom) in seen:
            return False
        seen.add((flow, atom))
        if isinstance(self.loop, ForEach) and atom is self.loop.element:
            return True
        if atom in flow.arguments:
            return flow.caller is not None and self._is_dynamic(flow.caller, flow.arguments[atom], seen)
        if atom in flow.elements:
            inner = flow.elements[atom]
            counts = isinstance(flow.origin(inner.iterable), Apply)  # as range and enumerate do
            return self.has_many_rounds(flow, inner) if counts else self._is_dynamic(flow, inner.iterable, seen)
        if atom in flow.carried:
            loop, position = flow.carried[atom]
            changes = any(end is not atom for end in flow.round_ends(loop, position))
            return changes or self._is_dynamic(flow, loop.initial[position], seen)
        if atom in flow.origins:
            value, target = flow.origins[atom]
            if isinstance(value, Attribute) and value.name in _SIZES:
                return self.is_of_any_size(flow, value.value)
            return any(self._is_dynamic(flow, a, seen) for a in _sources(flow, value, target))
        return self.outside(atom)


def _sources(flow: ValueFlow, value: Expr, target: int) -> list[Atom]:
    """The atoms of which one is dynamic if a value is."""
    match value:
        case Var():
            return [value]
        case Annotated(atom) | Unpack(atom) | Project(atom):
            return [atom]
        case OpCall(_, arguments):
            return list(arguments)
        case Index(whole, items):
            return [whole, *(item for item in items if not isinstance(item, Slice))]
        case Attribute(whole, name):
            return [] if name in _STATIC else [whole]
        case Apply(function, arguments):
            is_length = isinstance(function, Global) and function.name == "len"
            return [] if is_length else [function, *arguments]
        case If() | PatternMatch():
            return [values[target] for values in yielded(value)]
        case _:
            return []
