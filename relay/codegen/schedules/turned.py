"""Elementwise stages that read something along another axis than the one that they write along, such as transposes.

    for the outer axes and panels of a few blocks of `lanes` columns:       shared among threads
        for blocks of `lanes` rows:
            for blocks of `lanes` columns of the panel:
                registers[row, column] = input[.., column, .., row]         squares, transposed
                out[rows, columns] = what is computed from them

`rows` are the axis along which the input lies, and `columns` the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm_ffi import structural_map, structural_walk

from relay.codegen.schedules.elementwise import stored
from relay.codegen.schedules.emission import Emission
from relay.codegen.schedules.loops import decoded, loop, nested, number, shared
from relay.codegen.schedules.recognition import pieces, registers
from relay.codegen.schedules.stage import Extent, Stage, rewritten, volume
from relay.codegen.schedules.transposition import run, transposed
from relay.codegen.tir import Expression, Statement, sequence, tirx

BESIDE = 4
"""Squares that are done beside each other: cache lines of the result, which they do not start, are then written whole
while they are near, and those of so many rows of the input stay in the second-level cache until they are used up."""


@attrs.frozen(eq=False)
class Turned:
    """`element` is the stage's element at the `indices`; `loads` are what it reads along the axis number `rows`."""

    stage: Stage
    indices: tuple[Any, ...]
    element: Expression
    loads: tuple[Any, ...]
    rows: int
    lanes: int


def recognise(e: Emission, stages: Sequence[Stage]) -> Turned | None:
    """A stage whose squares are worth transposing; None if it is none, or if it is too small."""
    (stage, *others) = stages
    if others or stage.op.num_outputs != 1 or len(stage.extents) < 2 or not e.vectorises(stage.op.body):
        return None
    lanes, _ = registers(stage.dtypes[0])
    if lanes < 2 or not _fills(stage.extents[-1], lanes):
        return None
    indices = tuple(tirx.Var("at", e.index) for _ in stage.axes)
    element = e.element(stage.op.body[0], e.bound(stage.axes, indices))
    loads: list[Any] = []
    structural_walk(element, ((TensorLoad, loads.append),))
    loads = [load for load in loads if _step(load, indices[-1]) not in (0, 1)]
    rows = [n for n, index in enumerate(indices[:-1]) if all(_step(load, index) == 1 for load in loads)]
    if not loads or not rows or not _fills(stage.extents[rows[-1]], lanes):
        return None
    if any(str(load.ty) in ("bool", "bfloat16") for load in loads):
        return None
    return Turned(stage, indices, element, tuple(loads), rows[-1], lanes)


def _fills(extent: Extent, lanes: int) -> bool:
    return not isinstance(extent, int) or extent >= lanes


def _step(load: Any, index: Any) -> int | None:
    """How far in memory the neighbour along an index is; None if that is not the same everywhere."""
    (position,) = load.indices
    step = Analyzer().simplify(rewritten(position, {index: index + 1}) - position)
    return int(step.value) if isinstance(step, tirx.IntImm) else None


def share(e: Emission, turned: Turned) -> list[Statement]:
    """All elements of the stage, shared among threads."""
    stage, lanes = turned.stage, turned.lanes
    rows, columns = stage.extents[turned.rows], stage.extents[-1]
    outer = [n for n in range(len(stage.extents) - 1) if n != turned.rows]
    extents = [*(stage.extents[n] for n in outer), pieces(columns, lanes * BESIDE)]
    squares, blocks = _whole(e, rows, lanes), _whole(e, columns, lanes)

    def panel(place: Sequence[Expression]) -> list[Statement]:
        *ahead, number_ = place
        first = number_ * BESIDE
        beside: Extent = BESIDE
        if not isinstance(columns, int) or columns % (lanes * BESIDE):
            beside = tirx.Min(tirx.const(BESIDE, e.index), number(blocks, e.index) - first)

        def point(row: Expression, column: Expression) -> list[Expression]:
            found = {**dict(zip(outer, ahead, strict=True)), turned.rows: row, len(stage.extents) - 1: column}
            return [found[n] for n in range(len(stage.extents))]

        def across(body: Callable[[Expression], list[Statement]]) -> list[Statement]:
            return loop(beside, e.index, lambda n: body((first + n) * lanes))

        def along(n: Expression) -> list[Statement]:
            return across(lambda column: _square(e, turned, point(n * lanes, column)))

        def beneath(row: Expression) -> list[Statement]:
            at = row + squares * lanes
            return across(
                lambda column: loop(
                    lanes, e.index, lambda lane: stored(e, [stage], point(at, column + lane)), "VECTORIZED"
                )
            )

        def behind(row: Expression) -> list[Statement]:
            start = (first + beside) * lanes
            left = number(columns, e.index) - start
            left = tirx.Max(tirx.Min(left, tirx.const(lanes - 1, e.index)), tirx.const(0, e.index))
            return loop(left, e.index, lambda lane: stored(e, [stage], point(row, start + lane)))

        statements = loop(squares, e.index, along)
        if not isinstance(rows, int) or rows % lanes:
            statements += loop(rows - squares * lanes, e.index, beneath)
        if not isinstance(columns, int) or columns % lanes:
            last = first + beside >= number(blocks, e.index)
            statements.append(tirx.IfThenElse(last, sequence(loop(rows, e.index, behind)), None))
        return statements

    def part(_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        return loop(end - begin, e.index, lambda i: panel(decoded(begin + i, extents, e.index)))

    return shared(volume(extents), stage.work, e.threads, e.index, part, lambda: nested(extents, e.index, panel))


def _whole(e: Emission, extent: Extent, size: int) -> Extent:
    """How many whole pieces there are."""
    if isinstance(extent, int):
        return extent // size
    return tirx.indexdiv(number(extent, e.index), tirx.const(size, e.index))


def _square(e: Emission, turned: Turned, first: Sequence[Expression]) -> list[Statement]:
    """The square from these indices on."""
    lanes, index = turned.lanes, turned.indices
    statements: list[Statement] = []
    registers_: list[tuple[Any, list[Any]]] = []
    for load in turned.loads:
        dtype = str(load.ty)
        buffers = [e.local(dtype, lanes) for _ in range(lanes)]
        statements += [statement for _, made in buffers for statement in made]

        def vector(column: int, load: Any = load) -> Expression:
            at = {**dict(zip(index, first, strict=True)), index[-1]: first[-1] + column}
            return tirx.BufferLoad(load.source, [run(rewritten(load.indices[0], at), lanes)])

        def keep(row: int, columns: Expression, buffers: Any = buffers) -> Statement:
            return tirx.BufferStore(buffers[row][0], columns, [run(tirx.const(0, e.index), lanes)])

        statements += transposed(dtype, lanes, vector, keep)
        registers_.append((load, [buffer for buffer, _ in buffers]))
    place = e.places[turned.stage.op, 0]
    for row in range(lanes):
        here = [at + row if n == turned.rows else at for n, at in enumerate(first)]

        def store(lane: Expression, row: int = row, here: Sequence[Expression] = here) -> list[Statement]:
            def read(found: Any) -> Any:
                own = next((buffers for load, buffers in registers_ if load.same_as(found)), None)
                return found if own is None else tirx.BufferLoad(own[row], [lane])

            element = structural_map(turned.element, ((TensorLoad, read),))
            at = [*here[:-1], here[-1] + lane]
            value = rewritten(element, dict(zip(index, at, strict=True)))
            return [tirx.BufferStore(place.buffer, value, [e.offset(at[place.skipped :], place.dims)])]

        statements += loop(lanes, e.index, store, "VECTORIZED")
    return statements


__all__ = ["Turned", "recognise", "share"]
