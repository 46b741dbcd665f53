"""Memory of blocks: windows of operands, copied row by row, and of values that a kernel computes once for each block.

for each block of y[i, j] = x[j, i] + x[j, i + 1]:  c[..] = x[j0 .. j0 + 32, i0 .. i0 + 9]; y[..] = c[..] + c[..]
for each block of y[i] = t[i] + t[i + 1], t[i] = x[i] + x[i + 1]:  c[..] = t[i0 .. i0 + 9]; y[..] = c[..] + c[..]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from tvm.sym import Analyzer

from relay.codegen.kernels.emission import Emission, Place, key
from relay.codegen.kernels.loops import cast, loop, number, vectors
from relay.codegen.kernels.stage import Stage, extent, mentions, substitute_variables
from relay.codegen.tvm.tir import Expression, Statement, tirx


@attrs.frozen
class _Line:
    """The indices that a block reads along an axis of an operand: `step` times the index of the block's axis `axis`,
    and `first` to `last` more; of no axis, `first` to `last`."""

    axis: int | None
    step: int
    first: int
    last: int

    def joined(self, other: _Line) -> _Line | None:
        """The indices of both; None where they run along different axes."""
        if (self.axis, self.step) != (other.axis, other.step):
            return None
        return _Line(self.axis, self.step, min(self.first, other.first), max(self.last, other.last))

    def composed(self, lines: Sequence[_Line]) -> _Line:
        """The same, where the axes of the block are read themselves along these lines of another block's axes."""
        if self.axis is None:
            return self
        outer = lines[self.axis]
        first, last = outer.first * self.step + self.first, outer.last * self.step + self.last
        return _Line(outer.axis, 0 if outer.axis is None else outer.step * self.step, first, last)

    def begin(self, begins: Sequence[Expression], index: str) -> Expression:
        """The first index for a block that begins there."""
        return tirx.const(self.first, index) + (0 if self.axis is None else begins[self.axis] * self.step)

    def length(self, tile: Sequence[int]) -> int:
        """The number of indices of a whole block."""
        return self.last - self.first + 1 + (0 if self.axis is None else (tile[self.axis] - 1) * self.step)


@attrs.frozen(eq=False)
class Window:
    """The elements of a tensor that a block reads: a line for each axis of it."""

    tensor: Any
    lines: tuple[_Line, ...]


def windows(e: Emission, stages: Sequence[Stage], in_blocks: Sequence[Any] = ()) -> dict[Any, Window | None]:
    """The window of each tensor that stages read in memory, those first that others are computed from. None for
    what is not read at indices that follow the axes evenly, as at computed indices. The operations `in_blocks` are
    computed for the block, from what they read in turn."""
    found: dict[Any, Window | None] = {}
    for stage in stages:
        own = tuple(_Line(axis, 1, 0, 0) for axis in range(len(stage.axes)))
        reads = [(t, i) for t, i in e.reads(stage) if not any(s.op.same_as(t.op) for s in stages)]
        _add_reads(found, reads, stage.axes, own)
    for op in reversed(in_blocks):
        window = found.get((op, 0))
        reads = e.memory_reads(op.body[0])
        if window is not None:
            _add_reads(found, reads, [axis.var for axis in op.axis], window.lines)
        else:
            found.update((key(tensor), None) for tensor, _ in reads)
    return dict(reversed(found.items()))


def _add_reads(
    found: dict[Any, Window | None],
    reads: Sequence[tuple[Any, Sequence[Any]]],
    axes: Sequence[Any],
    block: Sequence[_Line],
) -> None:
    """Add reads of a block, which goes along these lines of the kernel's blocks."""
    for tensor, indices in reads:
        if not indices:
            continue
        made = [None if line is None else line.composed(block) for line in (_line(i, axes) for i in indices)]
        name, before = key(tensor), found.get(key(tensor))
        if None in made or (name in found and before is None):
            found[name] = None
        elif before is None:
            found[name] = Window(tensor, tuple(made))  # type: ignore[arg-type]
        else:
            joined = tuple(a.joined(b) for a, b in zip(before.lines, made, strict=True))  # type: ignore[arg-type]
            found[name] = None if None in joined else Window(tensor, joined)  # type: ignore[arg-type]


def _line(index: Expression, axes: Sequence[Any]) -> _Line | None:
    if isinstance(index, int):
        return _Line(None, 0, index, index)
    used = [position for position, axis in enumerate(axes) if mentions(index, axis)]
    if len(used) > 1:
        return None
    simplify = Analyzer().simplify
    if not used:
        only = simplify(index)
        return _Line(None, 0, int(only.value), int(only.value)) if isinstance(only, tirx.IntImm) else None
    axis = axes[used[0]]
    step = simplify(substitute_variables(index, {axis: axis + 1}) - index)
    first = simplify(substitute_variables(index, {axis: tirx.const(0, str(axis.ty))}))
    if not isinstance(step, tirx.IntImm) or not isinstance(first, tirx.IntImm) or int(step.value) < 1:
        return None
    return _Line(used[0], int(step.value), int(first.value), int(first.value))


@contextmanager
def places_in_blocks(e: Emission, in_blocks: Sequence[Any]) -> Iterator[None]:
    """A context: operations have places, which they get in each block."""
    made = {(op, 0): Place(None, tuple(map(extent, op.output(0).shape))) for op in in_blocks}
    e.places.update(made)
    yield
    for name in made:
        del e.places[name]


@contextmanager
def block_memory(
    e: Emission, found: Sequence[Window], begins: Sequence[Expression], tile: Sequence[int], thread: Expression
) -> Iterator[list[Statement]]:
    """The statements that fill the windows of a block. Within the context, the tensors are read there."""
    before: Mapping[Any, Place] = {key(w.tensor): e.places[key(w.tensor)] for w in found}
    statements: list[Statement] = []
    for window in found:
        place = before[key(window.tensor)]
        lengths = tuple(line.length(tile) for line in window.lines)
        starts = tuple(line.begin(begins, e.index) for line in window.lines)
        made, declared = e.scratch((key(window.tensor), "copy"), str(window.tensor.dtype), lengths, thread, 0)
        statements += [*declared, *_fill(e, window, place, made, starts)]
        e.places[key(window.tensor)] = attrs.evolve(made, begins=starts)
    yield statements
    e.places.update(before)


def _fill(e: Emission, window: Window, source: Place, target: Place, starts: Sequence[Expression]) -> list[Statement]:
    """A window, copied or computed, as far as it is in the tensor: what is read under a condition may be outside."""
    outer, op = list(zip(starts, target.dims, source.dims, strict=True)), window.tensor.op
    vectorizes = source.buffer is not None or e.vectorizes(op.body)
    width = e.lanes(str(window.tensor.dtype)) if vectorizes else 1

    def bounds(position: int) -> tuple[Expression, Expression]:
        start, length, size = outer[position]
        first = tirx.max(tirx.const(0, e.index), -start)
        return first, tirx.min(number(length, e.index), number(size, e.index) - start) - first

    def element(at: Sequence[Expression]) -> Expression:
        if source.buffer is None:
            return e.body_at(op.body[0], op.axis, at)
        return tirx.BufferLoad(source.buffer, [e.position(source, at)])

    def level(position: int, indices: list[Expression]) -> list[Statement]:
        if position == len(outer):
            at = [cast(start, e.index) + i for (start, _, _), i in zip(outer, indices, strict=True)]
            return [tirx.BufferStore(target.buffer, element(at), [e.offset(indices, target.dims)])]
        first, count = bounds(position)
        body = lambda i: level(position + 1, [*indices, first + i])  # noqa: E731
        return (
            vectors(count, width, e.index, body, often=True)
            if position == len(outer) - 1 and width > 1
            else loop(count, e.index, body)
        )

    return level(0, [])
