"""Checkpointing of straight-line code: parts of a function that are computed again instead of kept.

    a = e1; b = e2; c = e3; d = e4              becomes        b = part1(x); d = part2(b)

Each part but the last is a function whose backward version computes it again, so that what is kept is what goes from
one part to the next, and the values of one part at a time: about the square root of what n equal layers keep, for one
more evaluation of them (Chen and others: Training deep nets with sublinear memory cost, 2016). The parts have about the
same bytes; there are as few as the allowed memory makes necessary.

Bindings with effects, calls of functions, and blocks with either stay where they are, between two parts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import attrs

from relay.ad.cotangents import pack, pack_type, type_of, unpack
from relay.ir.expr import (
    Ascribe,
    Binding,
    Block,
    Call,
    Constant,
    Exit,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    OpCall,
    Project,
    Recompute,
    Var,
)
from relay.ir.rebuild import copy_block
from relay.ir.traverse import blocks, bound_variables, free_variables, operands, terminator_operands, walk
from relay.ir.types import TensorType, TupleType, Type, prune
from relay.operator import Emitter, lookup

_ALIASES = (MakeTuple, Project, Var, Constant, Ascribe)
"""The expressions that only name values."""

_PURE = (OpCall, If, Loop, *_ALIASES)


@attrs.frozen
class Division:
    """A function in parts, the functions of the parts by name, and the bytes that it keeps: without parts all its
    values."""

    function: Function
    parts: dict[str, Function]
    kept: float


def divide_lines(function: Function, memory: float, derivative: Function, fresh_name: Callable[[str], str]) -> Division:
    """The function in the fewest parts with which it keeps at most `memory` bytes of values; as it is, with the bytes
    that it needs at least, if there are none. `derivative` is that of the undivided function, which tells what it
    keeps. Values of run-time sizes count nothing, for which no bound can be given."""
    bindings = function.body.bindings
    last = _last_uses(function)
    needed = _needed_values(function, derivative)
    sizes = [sum(_bytes(type_of(t)) for t in b.targets if t in needed) for b in bindings]
    passed = [_passed_bytes(b) for b in bindings]
    cuts = _fewest_parts(bindings, sizes, passed, last, memory)
    if cuts is None:
        least = _least_memory(bindings, sizes, passed, last)
        return Division(function, {}, least)
    if len(cuts) == 2:
        return Division(function, {}, sum(sizes))
    parts: dict[str, Function] = {}
    made: list[Binding] = []
    for begin, end in itertools.pairwise(cuts[:-1]):
        made += _part(function, begin, end, last, fresh_name, parts)
    made += bindings[cuts[-2] :]
    body = Block(tuple(made), function.body.terminator)
    return Division(attrs.evolve(function, body=body), parts, memory)  # type: ignore[misc]


def _needed_values(function: Function, derivative: Function) -> set[Var]:
    """The values of a function that its derivative reads outside of what computes the function: a copy of some of its
    bindings, in their order. Those that only name others are none."""
    copies: dict[Var, Var] = {}
    backward: list[Binding] = []
    position, originals = 0, function.body.bindings
    for binding in derivative.body.bindings:
        at = next((n for n in range(position, len(originals)) if _is_copy(binding, originals[n])), None)
        if at is None:
            backward.append(binding)
            continue
        position = at + 1
        if not isinstance(binding.value, _ALIASES):
            copies.update(zip(binding.targets, originals[at].targets, strict=True))
    return {copies[v] for b in backward for v in _reads(b) if v in copies}


def _is_copy(binding: Binding, original: Binding) -> bool:
    one, other = binding.value, original.value
    if type(one) is not type(other) or len(binding.targets) != len(original.targets):
        return False
    if isinstance(one, OpCall) and isinstance(other, OpCall) and one.operator != other.operator:
        return False
    return all(a.name == b.name for a, b in zip(binding.targets, original.targets, strict=True))


def _bytes(type_: Type) -> float:
    known = prune(type_)
    if isinstance(known, TupleType):
        return sum(map(_bytes, known.items))
    if isinstance(known, TensorType) and all(isinstance(d, int) for d in known.shape):
        return float(math.prod(known.dims) * known.dtype.itemsize)
    return 0.0


def _last_uses(function: Function) -> dict[Var, int]:
    """The last position in a function's body that reads each variable; beyond it for what the function returns."""
    last: dict[Var, int] = {}
    for position, binding in enumerate(function.body.bindings):
        for variable in _reads(binding):
            last[variable] = position
    end = len(function.body.bindings)
    last.update((a, end) for a in terminator_operands(function.body.terminator) if isinstance(a, Var))
    return last


def _reads(binding: Binding) -> set[Var]:
    found = {a for a in operands(binding.value) if isinstance(a, Var)}
    inside = set(bound_variables(binding.value))
    for block in blocks(binding.value):
        found |= {v for v in free_variables(block) if v not in inside}
    return found


def _passed_bytes(binding: Binding) -> float:
    """The bytes of a binding's values where they go from one part to another."""
    return 0.0 if isinstance(binding.value, _ALIASES) else sum(_bytes(type_of(t)) for t in binding.targets)


def _fewest_parts(
    bindings: Sequence[Binding],
    sizes: Sequence[float],
    passed: Sequence[float],
    last: dict[Var, int],
    memory: float,
) -> list[int] | None:
    """The ends of parts that keep at most `memory` bytes each, with what those before them pass on; None if there are
    none. The first ones are the largest, for what is passed on grows."""
    cuts, between, size = [0], 0.0, 0.0
    for position in range(len(bindings)):
        if between + size + sizes[position] > memory:
            begin = cuts[-1]
            if begin == position:
                return None
            for n in range(begin, position):
                if any(last.get(t, -1) >= position for t in bindings[n].targets) or not _is_pure(bindings[n]):
                    between += passed[n]
            cuts.append(position)
            size = 0.0
            if between + sizes[position] > memory:
                return None
        size += sizes[position]
    return [*cuts, len(bindings)]


def _least_memory(
    bindings: Sequence[Binding], sizes: Sequence[float], passed: Sequence[float], last: dict[Var, int]
) -> float:
    """The fewest bytes, to one part in a hundred, for which there are parts."""
    low, high = 0.0, sum(sizes)
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        fits = _fewest_parts(bindings, sizes, passed, last, middle) is not None
        low, high = (low, middle) if fits else (middle, high)
    return high


def _is_pure(binding: Binding) -> bool:
    """True if a binding may be computed twice, and no one can tell."""
    inner = [binding, *(b for block in blocks(binding.value) for b in walk(block))]
    return bool(binding.targets) and all(
        isinstance(b.value, _PURE) and not (isinstance(b.value, OpCall) and lookup(b.value.operator).external)
        for b in inner
    )


def _part(
    function: Function,
    begin: int,
    end: int,
    last: dict[Var, int],
    fresh_name: Callable[[str], str],
    parts: dict[str, Function],
) -> list[Binding]:
    """The bindings of a part: calls of functions for what is pure in it, and the rest as it is."""
    made: list[Binding] = []
    run: list[Binding] = []

    def call(stop: int) -> None:
        inside = {t for binding in run for t in binding.targets}
        results = [t for b in run for t in b.targets if last.get(t, -1) >= stop]
        if len(run) < 2 or not results:
            made.extend(run)
            run.clear()
            return
        captured = list(dict.fromkeys(v for b in run for v in sorted(_reads(b), key=id) if v not in inside))
        own = [Var(v.name, v.type, v.span) for v in captured]
        name = fresh_name(f"{function.name}_part")
        copied = {t: Var(t.name, t.type, t.span) for t in results}
        label = LoopLabel(name)
        inner = Emitter(run[0].value.span)
        whole = copy_block(
            Block((*run,), Exit(label, tuple(results))), dict(zip(captured, own, strict=True)), {}, keep_sizes=True
        )
        packed = pack(inner, list(whole.terminator.values))  # type: ignore[union-attr]
        body = Block((*whole.bindings, *inner.bindings), Exit(label, (packed,)))
        result = pack_type([type_of(t) for t in copied])
        parts[name] = Function(name, tuple(own), body, label, result, span=function.span, rule=Recompute())
        outer = Emitter(run[0].value.span)
        value = outer.bind(Call(Global(name, parts[name].type), tuple(captured), run[0].value.span), result, "part")
        after = unpack(outer, value.atom, [type_of(t) for t in results])
        made.extend(outer.bindings)
        made.extend(Binding((t,), a) for t, a in zip(results, after, strict=True))
        run.clear()

    for position in range(begin, end):
        binding = function.body.bindings[position]
        if _is_pure(binding):
            run.append(binding)
        else:
            call(position)
            made.append(binding)
    call(end)
    return made
