"""Checkpointing: loops that store a few states instead of a tape of all iterations.

    v = loop for i < n (p = a) {b; next q}      becomes

    v = loop for s < m (p = a) {p' = segment(s k, p); next p'}
    segment(i0, p) recomputes = loop for j < k (p) {i = i0 + j; b; next q}

With k = sqrt(n) rounds in each of m segments, the outer loop's tape holds m states, and the tape of one segment at a
time k rounds: sqrt(n) in place of n, for one more evaluation of the loop (Griewank and Walther, "Evaluating
Derivatives", chapter 12). At a depth of d the segments are divided again: n^(1/(d+1)), for d more evaluations. What is
left of the rounds is a segment by itself; if n is only known at run time, the segments take their lengths.

Only loops of which all rounds are executed are divided, and none that uses references or fills a stack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable

import attrs
import numpy as np

from relay.ad.cotangents import pack, pack_type, type_of, unpack
from relay.ir.analysis.tail_positions import leaves
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Counter,
    Derivative,
    Exit,
    Expr,
    Function,
    Global,
    Loop,
    LoopLabel,
    MakeTuple,
    Next,
    OpCall,
    Recompute,
    RefNew,
    RefRead,
    RefWrite,
    Shadow,
    StackNew,
    StackPush,
    Var,
)
from relay.ir.rebuild import copy_block, copy_function, map_blocks, map_parts
from relay.ir.traverse import blocks, free_variables, walk
from relay.ir.types import (
    FLOAT64,
    BaseType,
    DataDefinition,
    DataType,
    FunctionType,
    StackType,
    TensorType,
    TupleType,
    Type,
    prune,
)
from relay.operator import Emitter, Value, lookup

DEEPEST = 4
"""The largest number of times that segments are divided."""

SHORTEST = 8
"""Loops with fewer rounds stay as they are."""


def divide_loops(
    function: Function, called: Iterable[Function], depth: int, fresh_name: Callable[[str], str]
) -> tuple[Function, dict[str, Function]]:
    """A copy of a function with its loops divided, which calls such copies of the functions that it calls (`called`,
    all of them), and the functions of the copies and segments by name. Functions with a rule stay as they are."""
    division = _LoopDivision(depth, fresh_name)
    originals = {f.name: f for f in (function, *called) if f.rule is None}
    names = {name: fresh_name(name) for name in originals}

    def rename_callee(atom: Atom) -> Atom:
        return (
            Global(names[atom.name], atom.type, atom.span) if isinstance(atom, Global) and atom.name in names else atom
        )

    for name, original in originals.items():
        copy = _rename_function(copy_function(original), names[name], rename_callee)
        division.functions[names[name]] = attrs.evolve(copy, body=division.block(copy.body, depth))  # type: ignore[misc]
    return division.functions[names[function.name]], division.functions


def _rename_function(function: Function, name: str, atom: Callable[[Atom], Atom]) -> Function:
    """The function under another name, with other names of functions in it."""

    def block(inside: Block) -> Block:
        bindings = tuple(Binding(b.targets, map_parts(b.value, atom=atom, block=block)) for b in inside.bindings)
        return Block(bindings, inside.terminator)

    return attrs.evolve(function, name=name, body=block(function.body))  # type: ignore[misc]


class _LoopDivision:
    def __init__(self, depth: int, fresh_name: Callable[[str], str]) -> None:
        self.depth = depth
        self.fresh_name = fresh_name
        self.functions: dict[str, Function] = {}

    def block(self, block: Block, depth: int) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            value: Expr = binding.value
            if isinstance(value, Loop) and _is_divisible(value, binding.targets):
                bindings += self._loop(value, binding.targets, depth)
            else:
                bindings.append(Binding(binding.targets, map_blocks(value, lambda b: self.block(b, depth))))
        return Block(tuple(bindings), block.terminator)

    def _loop(self, loop: Loop, targets: tuple[Var, ...], depth: int) -> list[Binding]:
        """The segments of a loop, all of one length if that is only known at run time; otherwise the rest by itself."""
        assert loop.counter is not None
        count, type_ = loop.counter.count, type_of(loop.counter.index)
        if not isinstance(count, Constant):
            before = Emitter(loop.span)
            length, segments = _lengths(before, before.value(count), depth)
            body = self._segments(loop, length, None, segments, loop.initial, targets, depth)
            return [*before.bindings, *body]
        rounds = int(count.value)
        size = math.ceil(rounds ** (depth / (depth + 1)))

        def number(value: int) -> Constant:
            assert isinstance(type_, TensorType)
            return Constant(np.asarray(value, type_.dtype), loop.span)

        rest = rounds % size
        middle = targets if not rest else tuple(Var(t.name, t.type, t.span) for t in targets)
        found = self._segments(loop, number(size), size, number(rounds // size), loop.initial, middle, depth)
        if rest:
            name, call_type, captured = self._segment(loop, number(rest), depth)
            emitter = Emitter(loop.span)
            call = Call(Global(name, call_type), (number(rounds - rest), *middle, *captured), loop.span)
            after = unpack(emitter, emitter.bind(call, call_type.result, "state").atom, [type_of(t) for t in targets])
            found += [*emitter.bindings, *(Binding((t,), a) for t, a in zip(targets, after, strict=True))]
        return found

    def _segments(
        self,
        loop: Loop,
        length: Atom,
        known: int | None,
        segments: Atom,
        initial: tuple[Atom, ...],
        targets: tuple[Var, ...],
        depth: int,
    ) -> list[Binding]:
        """The loop over segments of a length."""
        assert loop.counter is not None
        name, type_, captured = self._segment(loop, length if known is not None else None, depth)
        number, label = Var("segment", type_of(loop.counter.index)), LoopLabel("segments")
        states = tuple(Var(p.name, p.type, p.span) for p in loop.parameters)
        inner = Emitter(loop.span)
        start = inner.value(number) * inner.value(length)
        arguments: list[Atom] = [start.atom]
        if known is None:
            left = inner.value(loop.counter.count) - inner.value(start.atom)
            arguments.append(inner.value(length).op("minimum", left).atom)
        call = Call(Global(name, type_), (*arguments, *states, *captured), loop.span)
        after = unpack(inner, inner.bind(call, type_.result, "state").atom, [type_of(s) for s in states])
        body = Block(tuple(inner.bindings), Next(label, tuple(after)))
        return [Binding(targets, Loop(label, states, initial, body, Counter(number, segments), loop.span))]

    def _segment(self, loop: Loop, length: Atom | None, depth: int) -> tuple[str, FunctionType, list[Var]]:
        """The function for a segment: its name, its type, and its parameters after the state.

        It takes the first round's number, the length unless that is given here, and the state.
        """
        assert loop.counter is not None
        name, index_type = self.fresh_name("segment"), type_of(loop.counter.index)
        types = [type_of(p) for p in loop.parameters]
        captured = [v for v in free_variables(loop.body) if v not in loop.parameters and v is not loop.counter.index]
        start, size, place = Var("start", index_type), Var("length", index_type), Var("place", index_type)
        given = tuple(Var(p.name, p.type, p.span) for p in loop.parameters)
        own = [Var(v.name, v.type, v.span) for v in captured]
        parameters = tuple(Var(p.name, p.type, p.span) for p in loop.parameters)
        emitter = Emitter(loop.span)
        index = emitter.value(start) + emitter.value(place)
        mapping: dict[Var, Atom] = dict(zip((*captured, *loop.parameters), (*own, *parameters), strict=True))
        mapping[loop.counter.index] = index.atom
        label = LoopLabel(loop.label.name)
        copy = copy_block(loop.body, mapping, {loop.label: label}, keep_sizes=True)
        body = Block((*emitter.bindings, *copy.bindings), copy.terminator)
        inner = Loop(label, parameters, given, body, Counter(place, size if length is None else length), loop.span)
        results = tuple(Var(p.name, p.type, p.span) for p in loop.parameters)
        if depth > 1 and _is_divisible(inner, results):
            bindings = self._loop(inner, results, depth - 1)
        else:
            whole = attrs.evolve(inner, body=self.block(inner.body, self.depth))  # type: ignore[misc]
            bindings = [Binding(results, whole)]
        last = Emitter(loop.span)
        packed, exit_label = pack(last, results), LoopLabel(name)
        block = Block((*bindings, *last.bindings), Exit(exit_label, (packed,)))
        taken = (start, *((size,) if length is None else ()), *given, *own)
        result = pack_type(types)
        made = Function(name, taken, block, exit_label, result, span=loop.span, rule=Recompute())
        self.functions[name] = made
        return name, made.type, captured


def _is_divisible(loop: Loop, targets: tuple[Var, ...]) -> bool:
    if loop.counter is None or not targets or any(isinstance(t, Exit) for t in leaves(loop.body)):
        return False
    if isinstance(loop.counter.count, Constant) and int(loop.counter.count.value) < SHORTEST:
        return False
    if any(isinstance(prune(p.type), StackType) for p in loop.parameters):  # type: ignore[arg-type]
        return False
    return not any(isinstance(b.value, RefNew | RefRead | RefWrite | Shadow | StackPush) for b in walk(loop.body))


def _lengths(emitter: Emitter, count: Value, depth: int) -> tuple[Atom, Atom]:
    """The number of rounds of a segment, and the number of segments."""
    power = depth / (depth + 1)
    type_ = type_of(count.atom)
    assert isinstance(type_, TensorType) and isinstance(type_.base, BaseType)
    rounds = count.op("cast", dtype=FLOAT64).op("power", power).op("cast", dtype=type_.base) + 1
    segments = (count + rounds - 1).op("floor_divide", rounds)
    return rounds.atom, segments.atom


# ---- how much is taped


def tape_bytes(functions: Iterable[Function | Derivative]) -> float:
    """The largest number of bytes that the stacks of these functions, and the tensors in their place, need at a
    time, each running once; infinity where loops have a length that is known only at run time."""
    return sum(_StackSizes().block(f.body) for f in functions if isinstance(f, Function))


class _StackSizes:
    """The bytes of the stacks in a function, by their variables, and of tuples and data that hold stacks."""

    def __init__(self) -> None:
        self.held: dict[Var, float] = {}
        self.roots: dict[Var, Var] = {}  # the empty stack that a stack has grown from
        self.largest: dict[Var, float] = {}  # by that

    def block(self, block: Block) -> float:
        """The most bytes of the stacks that begin in a block, and of those in one of the blocks inside at a time."""
        inside = 0.0
        started: list[Var] = []
        for binding in block.bindings:
            value, targets = binding.value, binding.targets
            match value:
                case StackNew():
                    started += targets
                    self._record_growth(targets[0], targets[0], 0.0)
                case OpCall(operator) if lookup(operator).memory.uninitialized:
                    started += targets
                    self._record_growth(targets[0], targets[0], _bytes(type_of(targets[0])))
                case StackPush(Var() as stack, pushed):
                    size = self._size_of(stack) + _bytes(type_of(pushed)) + self._size_of(pushed)
                    self._record_growth(targets[0], self.roots.get(stack, stack), size)
                case MakeTuple(items) | Construct(_, _, items):
                    self.held[targets[0]] = sum(map(self._size_of, items))
                case Loop():
                    inside = max(inside, self._loop(value, targets))
                case _:
                    inside = max([inside, *map(self.block, blocks(value))])
        return inside + sum(self.largest.get(s, 0.0) for s in started)

    def _record_growth(self, stack: Var, root: Var, size: float) -> None:
        self.held[stack], self.roots[stack] = size, root
        self.largest[root] = max(self.largest.get(root, 0.0), size)

    def _loop(self, loop: Loop, targets: tuple[Var, ...]) -> float:
        count = None if loop.counter is None else loop.counter.count
        rounds = float(count.value) if isinstance(count, Constant) else math.inf
        inside = self.block(loop.body)
        steps = [end for end in leaves(loop.body) if isinstance(end, Next)]
        for position, (parameter, initial) in enumerate(zip(loop.parameters, loop.initial, strict=True)):
            growth = max((self._size_of(end.values[position]) for end in steps), default=0.0)
            if isinstance(initial, Var) and isinstance(prune(parameter.type), StackType):  # type: ignore[arg-type]
                size = self._size_of(initial) + (rounds * growth if growth else 0.0)
                target = targets[position] if position < len(targets) else parameter
                self._record_growth(target, self.roots.get(initial, initial), size)
        return inside

    def _size_of(self, atom: Atom) -> float:
        return self.held.get(atom, 0.0) if isinstance(atom, Var) else 0.0


def _bytes(type_: Type, inside: Collection[DataDefinition] = ()) -> float:
    """The bytes of a value without those of the stacks in it."""
    match prune(type_):
        case TensorType() as tensor if all(isinstance(d, int) for d in tensor.shape):
            return float(math.prod(tensor.dims) * tensor.dtype.itemsize)
        case TupleType(items):
            return sum(_bytes(t, inside) for t in items)
        case StackType():
            return 0.0
        case DataType(definition) if definition not in inside:
            within = {*inside, definition}
            return max(sum(_bytes(t, within) for t in c.fields) for c in definition.constructors)
        case _:
            return math.inf
