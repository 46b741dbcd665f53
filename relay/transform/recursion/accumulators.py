"""Accumulators of recursive functions: parameters that each call adds to, and returns as a part of its result.

    fn f(x, s) { .. t = add(s, a); u = f(y, t).0; .. return (u, ..) }    f adds to its parameter 1 and returns it as 0

A version of a sum is a variable that holds it at some point: the parameter, what an operator adds to a version, what a
call returns that got a version, and what branches and loops pass on of them. `find` gives those sums whose versions are
used in no other way, and on each path once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Function,
    Global,
    If,
    Loop,
    MakeTuple,
    Match,
    OpCall,
    Project,
    Var,
)
from relay.ir.traverse import blocks, bound_variables, moves, operands, returns, terminator_operands, walk
from relay.ir.types import TensorType, TupleType
from relay.operator import ADDITION, lookup

_Origin: TypeAlias = "int | tuple[_Origin, ...] | None"
"""The parameter that a variable is a version of, None for none; for a tuple those of its components."""


@attrs.frozen(eq=False)
class Accumulators:
    """The sums of functions that call each other: `returned` gives the part of a function's result by the position of
    its parameter; `origin` the parameter that a variable, or each component of one, is a version of."""

    returned: Mapping[str, Mapping[int, int]]
    origin: Mapping[Var, _Origin]

    def version(self, atom: Atom) -> int | None:
        """The parameter that an atom is a version of."""
        found = self.origin.get(atom) if isinstance(atom, Var) else None
        return found if isinstance(found, int) else None


def updated_operand(call: OpCall, target: Var, is_version: Mapping[Var, object]) -> int | None:
    """The position of the version that an operator adds to, if it does no more than that."""

    def fits(position: int) -> bool:
        atom = call.arguments[position]
        return isinstance(atom, Var) and is_version.get(atom) is not None and atom.type == target.type

    if call.operator == ADDITION:
        found = [p for p in range(2) if fits(p)]
        return found[0] if len(found) == 1 else None
    position = lookup(call.operator).algebra.accumulates
    return position if isinstance(position, int) and fits(position) else None


def find(functions: Mapping[str, Function]) -> Accumulators:
    """The sums of functions that call each other."""
    origins = _Origins(functions)
    refused: set[tuple[str, int]] = set()
    while True:
        origin, returned = origins.solve(refused)
        certain: set[tuple[str, int]] = set()
        wrong: set[tuple[str, int]] = set()
        for name, function in functions.items():
            otherwise, unclear = _misused_parameters(function, origin, returned)
            certain |= {(name, i) for i in otherwise}
            wrong |= {(name, i) for i in unclear}
        if not wrong and not certain:
            return Accumulators(returned, origin)
        refused |= certain or wrong  # once those that are not sums are known, others may be


class _Origins:
    """The greatest solution of: what is a version of which parameter?"""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.functions = functions

    def solve(self, refused: set[tuple[str, int]]) -> tuple[dict[Var, _Origin], dict[str, dict[int, int]]]:
        """The origins, and the sums, without the refused ones."""
        self.refused = refused
        self.results: dict[str, dict[int, _Origin]] = {name: {} for name in self.functions}
        self.of: dict[Var, _Origin] = {}
        while True:
            self.changed = False
            for name, function in self.functions.items():
                self.name, self.label = name, function.label
                for position, parameter in enumerate(function.parameters):
                    ours = isinstance(parameter.type, TensorType) and (name, position) not in refused
                    self._meet(parameter, position if ours else None)
                for binding in walk(function.body):
                    self._binding(binding)
                for values, targets in moves(function.body):
                    self._pass(targets, values)
                for end in returns(function):
                    self._return(end.values[0])
            if not self.changed:
                break
        returned: dict[str, dict[int, int]] = {}
        for name, parts in self.results.items():
            found = [p for p in parts.values() if isinstance(p, int)]
            returned[name] = {p: j for j, p in parts.items() if isinstance(p, int) and found.count(p) == 1}
        return self.of, returned

    def _meet(self, var: Var, origin: _Origin) -> None:
        if var not in self.of:
            self.of[var], self.changed = origin, True
        elif (met := _meet(self.of[var], origin)) != self.of[var]:
            self.of[var], self.changed = met, True

    def _pass(self, targets: Sequence[Var], values: Sequence[Atom]) -> None:
        for target, value in zip(targets, values, strict=False):
            if not isinstance(value, Var):
                self._meet(target, None)
            elif value in self.of:
                self._meet(target, self.of[value])

    def _return(self, value: Atom) -> None:
        origin = self.of.get(value, ()) if isinstance(value, Var) else None
        parts: Iterable[tuple[int, _Origin]] = enumerate(origin) if isinstance(origin, tuple) else [(0, origin)]
        results = self.results[self.name]
        for j, part in parts:
            met = _meet(results[j], part) if j in results else part
            if j not in results or met != results[j]:
                results[j], self.changed = met, True

    def _binding(self, binding: Binding) -> None:
        targets = binding.targets
        match binding.value:
            case Var() as atom:
                self._pass(targets, (atom,))
            case OpCall() as call if len(targets) == 1:
                if any(isinstance(a, Var) and a not in self.of for a in call.arguments):
                    return  # not known yet
                position = updated_operand(call, targets[0], self.of)
                sum_ = call.arguments[position] if position is not None else None
                origin = self.of[sum_] if isinstance(sum_, Var) else None
                self._meet(targets[0], origin if isinstance(origin, int) else None)
            case Call(Global(name), arguments) if name in self.functions:
                self._call(targets[0], name, arguments)
            case Project(Var() as whole, index):
                origin = self.of.get(whole, ())
                if origin is None or (isinstance(origin, tuple) and index < len(origin)):
                    self._meet(targets[0], origin[index] if isinstance(origin, tuple) else None)
            case MakeTuple(items):
                if all(not isinstance(a, Var) or a in self.of for a in items):
                    self._meet(targets[0], tuple(self.of[a] if isinstance(a, Var) else None for a in items))
            case If():
                pass
            case Match():
                for field in bound_variables(binding.value):
                    self._meet(field, None)
            case Loop(counter=counter):
                if counter is not None:
                    self._meet(counter.index, None)
            case _:
                for target in targets:
                    self._meet(target, None)

    def _call(self, target: Var, name: str, arguments: Sequence[Atom]) -> None:
        """The parts of what a call returns. Those that are not known yet keep the whole from being known."""
        result = self.functions[name].result
        count = len(result.items) if isinstance(result, TupleType) else 1
        parts: list[_Origin] = []
        for j in range(count):
            if j not in self.results[name]:
                return
            own = self.results[name][j]
            given = arguments[own] if isinstance(own, int) else None
            if isinstance(given, Var) and given not in self.of:
                return
            origin = self.of[given] if isinstance(given, Var) else None
            parts.append(origin if isinstance(origin, int) else None)
        self._meet(target, tuple(parts) if isinstance(result, TupleType) else parts[0])


def _meet(a: _Origin, b: _Origin) -> _Origin:
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(map(_meet, a, b))
    return a if a == b else None


# ---- what is used in another way


def _misused_parameters(
    function: Function, origin: Mapping[Var, _Origin], returned: Mapping[str, Mapping[int, int]]
) -> tuple[set[int], set[int]]:
    """The parameters whose versions are used otherwise than as sums, or twice on one path; and those for which that
    may only seem so, since another parameter is taken for a sum, too: they are added to it, or not returned."""
    own = returned[function.name]
    ours = {o for p in function.parameters if isinstance(o := origin.get(p), int)}
    wrong = {i for i in ours if i not in own}
    certain = {o for v, count in _uses(function.body, origin).items() if count > 1 for o in _ints(origin.get(v))}

    def check(values: Sequence[Atom], targets: Sequence[Var]) -> None:
        for value, target in zip(values, targets, strict=False):
            found = origin.get(value) if isinstance(value, Var) else None
            if isinstance(found, tuple) or found != origin.get(target):
                wrong.update(_ints(found), _ints(origin.get(target)))

    for binding in walk(function.body):
        match binding.value:
            case OpCall() as call if len(binding.targets) == 1:
                position = updated_operand(call, binding.targets[0], origin)
                same = position is not None and origin.get(binding.targets[0]) is not None
                others = (a for p, a in enumerate(call.arguments) if not same or p != position)
                (wrong if call.operator == ADDITION else certain).update(_origin_parameters(origin, others))
            case Call(Global(name), arguments):
                sums = returned.get(name, {})
                wrong.update(_origin_parameters(origin, (a for p, a in enumerate(arguments) if p not in sums)))
            case Var() as alias:
                check((alias,), binding.targets)
            case Project() | MakeTuple():
                pass
            case If(arms):
                asked = (a for arm in arms for a in terminator_operands(arm.condition.terminator))
                wrong.update(_origin_parameters(origin, asked))
            case Loop(counter=counter):
                wrong.update(_origin_parameters(origin, () if counter is None else (counter.count,)))
            case value:
                certain.update(_origin_parameters(origin, operands(value)))
    for values, targets in moves(function.body):
        check(values, targets)
    for end in returns(function):
        found = origin.get(end.values[0]) if isinstance(end.values[0], Var) else None
        parts = found if isinstance(found, tuple) else (found,)
        wrong |= {o for j, part in enumerate(parts) for o in _ints(part) if own.get(o) != j}
    return certain & ours, wrong & ours


def _ints(origin: _Origin) -> Iterator[int]:
    if isinstance(origin, tuple):
        for part in origin:
            yield from _ints(part)
    elif origin is not None:
        yield origin


def _origin_parameters(origin: Mapping[Var, _Origin], atoms: Iterable[Atom]) -> set[int]:
    return {o for a in atoms if isinstance(a, Var) for o in _ints(origin.get(a))}


def _uses(block: Block, origin: Mapping[Var, _Origin]) -> dict[Var, int]:
    """The number of uses of each version on the path through a block that uses it most; a tuple's part counts alone."""
    counts: dict[Var, int] = {}

    def use(atoms: Iterable[Atom], times: int = 1) -> None:
        for atom in atoms:
            if isinstance(atom, Var) and isinstance(origin.get(atom), int):
                counts[atom] = counts.get(atom, 0) + times

    for binding in block.bindings:
        value = binding.value
        use(operands(value))
        if isinstance(value, If | Match):
            most: dict[Var, int] = {}
            for inner in blocks(value):
                for var, count in _uses(inner, origin).items():
                    most[var] = max(most.get(var, 0), count)
            for var, count in most.items():
                counts[var] = counts.get(var, 0) + count
        elif isinstance(value, Loop):
            bound = {*value.parameters, *(t for b in walk(value.body) for t in b.targets)}
            for var, count in _uses(value.body, origin).items():
                counts[var] = counts.get(var, 0) + (count if var in bound else 2)
    use(terminator_operands(block.terminator))
    return counts
