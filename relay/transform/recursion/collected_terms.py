"""Summation of terms that recursive functions have collected on stacks: one by one, or as products of many rows.

push s (h, d); ..; dw = a + sum of matmul(h, d)          dw = a; for each 32 rows: dw = dw + matmul(hs^T, ds)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from relay.errors import RelayError
from relay.ir.expr import (
    Atom,
    Block,
    Constant,
    Counter,
    Loop,
    LoopLabel,
    MakeTuple,
    Next,
    OpCall,
    Project,
    StackGet,
    StackLength,
    Var,
)
from relay.ir.types import INT64, StackType, TensorType, TupleType, Type, scalar
from relay.operator import ADDITION, Emitter, Value, lookup

ROWS = (32, 8)
"""The numbers of entries that make one product: the first as long as there are many, then the lesser one."""


@attrs.frozen(eq=False)
class CollectedTerm:
    """The term that one operator adds: the operands to collect, and how to add them up. `call` makes the term of a
    product from them; otherwise `update` adds them to the sum, which is its operand at `position`."""

    types: tuple[TensorType, ...]
    operands: tuple[Atom, ...]
    product: OpCall | None = None
    update: OpCall | None = None
    position: int = 0

    @property
    def is_whole(self) -> bool:
        """True if it is collected as it is added."""
        return self.update is not None and self.update.operator == ADDITION

    @property
    def entry(self) -> Type:
        return self.types[0] if len(self.types) == 1 else TupleType(self.types)


def total_type(term: CollectedTerm, rows: int) -> Type | None:
    """The type of the sum of a product over this many rounds, if it is one call."""
    assert term.product is not None
    emitter = Emitter()
    arrays = [emitter.value(Var("rows", TensorType(t.base, (rows, *t.shape)))) for t in term.types]
    try:
        made = lookup(term.product.operator).batching.summed(*arrays, **term.product.attributes)  # type: ignore[misc]
    except (TypeError, RelayError):
        return None
    return None if made is None else made.type


def pack_atoms(emitter: Emitter, atoms: Sequence[Atom], type_: Type) -> Atom:
    """Several values as one of a type: bare if there is one."""
    if len(atoms) == 1:
        return atoms[0]
    return emitter.bind(MakeTuple(tuple(atoms), emitter.span), type_, "all").atom


def unpack_atom(emitter: Emitter, atom: Atom, types: Sequence[Type]) -> list[Atom]:
    """The values that are packed in one."""
    if len(types) == 1:
        return [atom]
    return [emitter.bind(Project(atom, i, emitter.span), t, "part").atom for i, t in enumerate(types)]


def added_up(emitter: Emitter, type_: TensorType, terms: Sequence[CollectedTerm], start: Atom, stacks: Atom) -> Atom:
    """The sum that starts with a value, with all that is on its stacks added, one for each term."""
    found = start
    held = unpack_atom(emitter, stacks, [StackType(t.entry) for t in terms])
    for term, stack in zip(terms, held, strict=True):
        length = emitter.bind(StackLength(stack, emitter.span), scalar(INT64), "length")
        if term.product is None:
            found = _one_by_one(emitter, type_, term, found, stack, length)
            continue
        many, few = ROWS
        # Blocks of many rows while there are more than few; what is left of the last one stays empty.
        count = (length + (many - few - 1)) // many
        found = _in_blocks(emitter, term, found, stack, length, many, count, emitter.constant(0, INT64))
        done = count * many
        rest = emitter.call(lookup("maximum"), (length - done, 0), {})
        count = (rest + (few - 1)) // few
        found = _in_blocks(emitter, term, found, stack, length, few, count, done)
    return found


_Body: TypeAlias = Callable[[Emitter, Value, Sequence[Var]], list[Atom]]


def _counted_loop(emitter: Emitter, count: Value, start: Sequence[Atom], name: str, body: _Body) -> list[Atom]:
    """A loop of this many rounds that carries values."""
    label, index = LoopLabel(name), Var("k", scalar(INT64))
    types = [a.type for a in start if isinstance(a, Var | Constant)]
    parameters = tuple(Var(name, t) for t in types)
    inner = Emitter(emitter.span)
    after = body(inner, inner.value(index), parameters)
    block = Block(tuple(inner.bindings), Next(label, tuple(after)))
    results = tuple(Var(name, t) for t in types)
    loop = Loop(label, parameters, tuple(start), block, Counter(index, count.atom), emitter.span)
    emitter.emit(results, loop)
    return list(results)


def _one_by_one(
    emitter: Emitter, type_: TensorType, term: CollectedTerm, start: Atom, stack: Atom, length: Value
) -> Atom:
    """Add entries in their order."""
    assert term.update is not None
    update = term.update

    def body(inner: Emitter, index: Value, carried: Sequence[Var]) -> list[Atom]:
        entry = inner.bind(StackGet(stack, index.atom), term.entry, "entry").atom
        arguments = unpack_atom(inner, entry, term.types)
        arguments.insert(term.position, carried[0])
        call = OpCall(update.operator, tuple(arguments), update.attributes, update.span)
        return [inner.bind(call, type_, "sum").atom]

    return _counted_loop(emitter, length, [start], "sum", body)[0]


def _in_blocks(
    emitter: Emitter,
    term: CollectedTerm,
    start: Atom,
    stack: Atom,
    length: Value,
    rows: int,
    count: Value,
    first: Value,
) -> Atom:
    """Add products of this many entries each, from an entry on. Rows without an entry are zero. Rows for which there
    is no entry are zero."""
    product = term.product
    assert product is not None

    def fill(inner: Emitter, index: Value, carried: Sequence[Var], at: Value) -> list[Atom]:
        place = inner.value(at.atom) + index
        entry = inner.bind(StackGet(stack, place.atom), term.entry, "entry").atom
        found = []
        for array, part in zip(carried, unpack_atom(inner, entry, term.types), strict=True):
            found.append(inner.value(array).op("index_update", index, inner.value(part)).atom)
        return found

    def body(inner: Emitter, index: Value, carried: Sequence[Var]) -> list[Atom]:
        at = inner.value(first.atom) + index * rows
        left = inner.value(length.atom) - at
        here = inner.call(lookup("minimum"), (left, rows), {})
        zeros = [
            inner.call(lookup("zeros"), (), {"shape": (rows, *t.shape), "dtype": t.base}).atom  # type: ignore[dict-item,arg-type]
            for t in term.types
        ]
        arrays = _counted_loop(inner, here, zeros, "rows", lambda e, i, c: fill(e, i, c, at))
        values = [inner.value(a) for a in arrays]
        total = lookup(product.operator).batching.summed(*values, **product.attributes)  # type: ignore[misc]
        return [(inner.value(carried[0]) + total).atom]

    return _counted_loop(emitter, count, [start], "sum", body)[0]
