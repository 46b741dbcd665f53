"""Distribution of loops that operators bring along (`te.extern`): to threads, as far as their rounds touch other
elements.

The loops of a nest that has nothing else around its innermost body are looked at one by one. Rounds of a loop over `j`
are independent if each buffer that the nest writes has an axis on which every access, reading or writing, is at `j`
itself: then two rounds never meet in an element. All such loops become one space of threads, and each thread does the
rest of the nest in the order that it has on the processor, so that sums are the same bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from tvm.ir import Call, TensorLoad
from tvm_ffi import structural_map, structural_walk

from relay.codegen.kernels.loops import cast, unravel_index
from relay.codegen.kernels.stage import Extent, extent, volume
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, tirx
from relay.ir.types import BaseType


@attrs.frozen(eq=False)
class Nest:
    """A nest of loops: those that are distributed, with their extents, and the statement of one thread, in which their
    variables are free."""

    variables: tuple[Any, ...]
    extents: tuple[Extent, ...]
    body: Statement

    @property
    def threads(self) -> Extent:
        return volume(self.extents)

    def at(self, position: Expression, index: str) -> Statement:
        """The statement of the thread at a position."""
        indices = unravel_index(position, self.extents, index) if self.extents else []
        values = {v: cast(i, str(v.ty)) for v, i in zip(self.variables, indices, strict=True)}
        return structural_map(self.body, ((tirx.Var, lambda v: values.get(v, v)),))


def nests(body: Statement) -> list[Nest]:
    """The nests of a statement, one after the other; a single one, of one thread, if they share memory of their
    own."""
    parts = list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
    if any(isinstance(part, tirx.AllocBuffer | tirx.DeclBuffer | tirx.Bind) for part in parts):
        return [Nest((), (), _in_order(body))]
    return [_nest(part) for part in parts]


def _nest(statement: Statement) -> Nest:
    chain: list[Any] = []
    inner = statement
    while isinstance(inner, tirx.For):
        chain.append(inner)
        inner = inner.body
        if isinstance(inner, tirx.SeqStmt) and len(inner.seq) == 1:
            inner = inner.seq[0]
    accesses = _accesses(inner)
    chosen = [] if accesses is None else [loop for loop in chain if _is_independent(loop, chain, accesses)]
    made = inner
    for loop in reversed(chain):
        if loop not in chosen:
            made = tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, made)
    return Nest(tuple(loop.loop_var for loop in chosen), tuple(extent(loop.extent) for loop in chosen), _in_order(made))


def _in_order(statement: Statement) -> Statement:
    """A statement whose loops have no more of what only processors make of them."""

    def serial_loop(loop: Any) -> Any:
        return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, loop.body)

    return structural_map(statement, ((tirx.For, serial_loop),))


def _accesses(body: Statement) -> list[list[Sequence[Any]]] | None:
    """The indices of all accesses to each buffer that a statement writes, but for memory of its own; None where it
    takes addresses, or has more memory than a thread."""
    reads: list[tuple[Any, Sequence[Any]]] = []
    writes: list[tuple[Any, Sequence[Any]]] = []
    own: list[Any] = []
    opaque: list[Any] = []

    def call(node: Any) -> None:
        if any(word in str(getattr(node.op, "name", "")) for word in ("address_of", "access_ptr")):
            opaque.append(node)

    walked: tuple[tuple[Any, Callable[[Any], None]], ...] = (
        (TensorLoad, lambda load: reads.append((load.source, load.indices))),
        (tirx.BufferStore, lambda store: writes.append((store.buffer, store.indices))),
        (tirx.AllocBuffer, lambda made: own.append(made.buffer)),
        (tirx.DeclBuffer, opaque.append),  # another name of memory
        (Call, call),
    )
    structural_walk(body, walked)
    if opaque or not all(map(_is_small, own)):
        return None
    found: list[list[Sequence[Any]]] = []
    done: list[Any] = list(own)
    for buffer, _ in writes:
        if not any(buffer.same_as(other) for other in done):
            done.append(buffer)
            found.append([indices for other, indices in (*reads, *writes) if other.same_as(buffer)])
    return found


def _is_small(buffer: Any) -> bool:
    """True if a buffer fits the memory of a thread."""
    elements = volume(tuple(map(extent, buffer.shape)))
    width = BaseType(str(buffer.dtype)).dtype.itemsize
    return isinstance(elements, int) and elements * width < tir.STACK_BYTES


def _is_independent(loop: Any, chain: Sequence[Any], accesses: list[list[Sequence[Any]]]) -> bool:
    variable = loop.loop_var
    if not isinstance(loop.min, tirx.IntImm) or int(loop.min.value):
        return False
    used: list[Any] = []
    for other in chain:
        for bound in (other.min, other.extent):
            structural_walk(bound, ((tirx.Var, used.append),))
    if any(v.same_as(o.loop_var) for v in used for o in chain):
        return False  # a triangle
    return all(
        any(all(_is_variable(indices[axis], variable) for indices in known) for axis in range(len(known[0])))
        for known in accesses
    )


def _is_variable(index: Any, variable: Any) -> bool:
    while isinstance(index, tirx.Cast):
        index = index.value
    return bool(index.same_as(variable))


__all__ = ["Nest", "nests"]
