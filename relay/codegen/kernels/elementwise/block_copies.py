"""Copies of what a block reads: windows of operands, row by row in memory of the block.

for each block of y[i, j] = x[j, i] + x[j, i + 1]:  c[..] = x[j0 .. j0 + 32, i0 .. i0 + 9]; y[..] = c[..] + c[..]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from tvm.sym import Analyzer

from relay.codegen.kernels.emission import Emission, Place, key
from relay.codegen.kernels.loops import cast, loop, number, vectors
from relay.codegen.kernels.stage import Stage, mentions, substitute_variables
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

    def begin(self, begins: Sequence[Expression], index: str) -> Expression:
        """The first index for a block that begins there."""
        return tirx.const(self.first, index) + (0 if self.axis is None else begins[self.axis] * self.step)

    def length(self, tile: Sequence[int]) -> int:
        """The number of indices of a whole block."""
        return self.last - self.first + 1 + (0 if self.axis is None else (tile[self.axis] - 1) * self.step)


@attrs.frozen(eq=False)
class Window:
    """The elements of an operand that a block reads: a line for each axis of it."""

    tensor: Any
    lines: tuple[_Line, ...]


def windows(e: Emission, stages: Sequence[Stage]) -> list[Window]:
    """The operands that stages read at indices which follow their axes evenly, with what a block reads of them. Others,
    as those that are read at computed indices, are read where they are."""
    found: dict[Any, Window | None] = {}
    for stage in stages:
        for tensor, indices in e.reads(stage):
            made = tuple(_line(index, stage.axes) for index in indices)
            name = key(tensor)
            if any(s.op.same_as(tensor.op) for s in stages) or not indices:
                continue
            if any(line is None for line in made):
                found[name] = None
            elif name not in found:
                found[name] = Window(tensor, made)  # type: ignore[arg-type]
            elif (before := found[name]) is not None:
                joined = tuple(a.joined(b) for a, b in zip(before.lines, made, strict=True))  # type: ignore[arg-type]
                found[name] = None if None in joined else Window(tensor, joined)  # type: ignore[arg-type]
    return [window for window in found.values() if window is not None]


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
def copies(
    e: Emission, found: Sequence[Window], begins: Sequence[Expression], tile: Sequence[int], thread: Expression
) -> Iterator[list[Statement]]:
    """The statements that copy the windows of a block. Within the context, operands are read there."""
    before: Mapping[Any, Place] = {key(w.tensor): e.places[key(w.tensor)] for w in found}
    statements: list[Statement] = []
    for window in found:
        place = before[key(window.tensor)]
        lengths = tuple(line.length(tile) for line in window.lines)
        starts = tuple(line.begin(begins, e.index) for line in window.lines)
        made, declared = e.scratch((key(window.tensor), "copy"), str(window.tensor.dtype), lengths, thread, 0)
        statements += [*declared, *_copy(e, window, place, made, starts)]
        e.places[key(window.tensor)] = attrs.evolve(made, begins=starts)
    yield statements
    e.places.update(before)


def _copy(e: Emission, window: Window, source: Place, target: Place, starts: Sequence[Expression]) -> list[Statement]:
    """A window, as far as it is in the operand: what is read under a condition may be outside."""
    outer, width = list(zip(starts, target.dims, source.dims, strict=True)), e.lanes(str(window.tensor.dtype))

    def bounds(position: int) -> tuple[Expression, Expression]:
        start, length, extent = outer[position]
        first = tirx.max(tirx.const(0, e.index), -start)
        return first, tirx.min(number(length, e.index), number(extent, e.index) - start) - first

    def level(position: int, indices: list[Expression]) -> list[Statement]:
        if position == len(outer):
            at = [cast(start, e.index) + i for (start, _, _), i in zip(outer, indices, strict=True)]
            value = tirx.BufferLoad(source.buffer, [e.position(source, at)])
            return [tirx.BufferStore(target.buffer, value, [e.offset(indices, target.dims)])]
        first, count = bounds(position)
        body = lambda i: level(position + 1, [*indices, first + i])  # noqa: E731
        return (
            vectors(count, width, e.index, body, often=True)
            if position == len(outer) - 1
            else loop(count, e.index, body)
        )

    return level(0, [])
