"""Sums, maxima and the like: accumulators in registers, vectorised along whichever axis runs through memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from relay.codegen.schedules.elementwise import stored
from relay.codegen.schedules.emission import Emission
from relay.codegen.schedules.loops import cast, loop, nested, number
from relay.codegen.schedules.stage import Extent, Stage, mentions, volume
from relay.codegen.tir import Expression, Statement, tirx

LONG = 32  # reduced elements from which splitting them into lanes pays
VERY_LONG = 256  # from which several vectors of lanes pay
TOGETHER = 4  # rows that are reduced at once if they share an operand

Finish = Callable[[Sequence[Expression], Sequence[Expression]], list[Statement]]


def reduce(e: Emission, stage: Stage, epilogue: Stage | None, fixed: Sequence[Expression]) -> list[Statement]:
    """All elements with these first indices."""
    rest = stage.extents[len(fixed) :]
    first = stage.op.body[0]
    done = finish(e, stage, epilogue, fixed)
    plain = stage.op.num_outputs == 1 and e.vectorises([*first.source, *first.combiner.result])
    if plain and rest and not (isinstance(rest[-1], int) and rest[-1] == 1) and goes_along_columns(e, stage):
        return _along_columns(e, stage, fixed, done)
    if plain and _is_long(stage.reduced[-1]) and runs_along(e, stage, stage.reduced_axes[-1]):
        if not _shares_operand(e, stage, len(fixed)):
            return nested(rest, e.index, lambda indices: _along_rows(e, stage, fixed, [indices], done))
        *outer, last = rest

        def some(ahead: Sequence[Expression], first: Expression, count: int) -> list[Statement]:
            return _along_rows(e, stage, fixed, [[*ahead, first + n] for n in range(count)], done)

        return nested(outer, e.index, lambda ahead: tiles(last, [TOGETHER, 1], e.index, partial(some, ahead)))
    return nested(rest, e.index, lambda indices: _one_by_one(e, stage, [*fixed, *indices], indices, done))


def finish(e: Emission, stage: Stage, epilogue: Stage | None, fixed: Sequence[Expression]) -> Finish:
    """What stores results at indices: the stage's, or those of what is computed from them."""

    def store(indices: Sequence[Expression], results: Sequence[Expression]) -> list[Statement]:
        whole = [*fixed, *indices]
        if epilogue is not None:
            e.values[stage.op, 0] = results[0]
            statements = stored(e, epilogue, whole)
            del e.values[stage.op, 0]
            return statements
        places = [e.places[stage.op, n] for n in range(len(results))]
        return [
            tirx.BufferStore(p.buffer, r, [e.offset(whole[p.skipped :], p.dims)])
            for p, r in zip(places, results, strict=True)
        ]

    return store


def _shares_operand(e: Emission, stage: Stage, fixed: int) -> bool:
    """Whether neighbouring rows are combined with the same vector, as in the product of a matrix and a vector."""
    if len(stage.extents) == fixed or stage.op.num_outputs != 1:
        return False
    row, inner = stage.axes[-1], stage.reduced_axes[-1]
    reads = [indices for _, indices in e.reads(stage) if any(mentions(index, inner) for index in indices)]
    with_row = [any(mentions(index, row) for index in indices) for indices in reads]
    return any(with_row) and not all(with_row)


def _is_long(extent: Extent) -> bool:
    return not isinstance(extent, int) or extent >= LONG


def goes_along_columns(e: Emission, stage: Stage) -> bool:
    """Whether neighbouring results are computed together: their inputs are neighbours, or there is one for each."""
    if not stage.extents:
        return False
    each = volume(stage.reduced)
    return (isinstance(each, int) and each == 1) or runs_along(e, stage, stage.axes[-1])


def runs_along(e: Emission, stage: Stage, axis: Any) -> bool:
    """Whether the largest input is read along an axis."""
    reads = [(t, i) for t, i in e.reads(stage) if any(mentions(x, v) for x in i for v in stage.reduced_axes)]
    if not reads:
        return False
    tensor, indices = max(reads, key=lambda read: len(read[1]))
    return follows(indices, tensor.shape, axis)


def follows(indices: Sequence[Any], shape: Sequence[Any], axis: Any) -> bool:
    """Whether neighbours along an axis are neighbours in memory."""
    kept = [i for i, d in zip(indices, shape, strict=True) if not (isinstance(d, tirx.IntImm) and int(d.value) == 1)]
    return bool(kept) and unit_stride(kept[-1], axis) and not any(mentions(i, axis) for i in kept[:-1])


def unit_stride(index: Any, axis: Any) -> bool:
    """Whether an index is the axis plus something."""
    if index.same_as(axis):
        return True
    if isinstance(index, tirx.Add):
        return (unit_stride(index.a, axis) and not mentions(index.b, axis)) or (
            unit_stride(index.b, axis) and not mentions(index.a, axis)
        )
    return isinstance(index, tirx.Sub) and unit_stride(index.a, axis) and not mentions(index.b, axis)


def combined(e: Emission, stage: Stage, left: Sequence[Expression], right: Sequence[Expression]) -> list[Expression]:
    """The reduction's operation."""
    reducer = stage.op.body[0].combiner
    if len(right) == 1 and str(right[0].ty) != "bool":  # a name, since the operation may use it several times
        name = tirx.Var("element", right[0].ty)
        variables = {reducer.lhs[0]: left[0], reducer.rhs[0]: name}
        return [tirx.Let(name, right[0], e.element(reducer.result[0], variables))]
    variables = {**dict(zip(reducer.lhs, left, strict=True)), **dict(zip(reducer.rhs, right, strict=True))}
    return [e.element(result, variables) for result in reducer.result]


def sources(e: Emission, stage: Stage, indices: Sequence[Expression], steps: Sequence[Expression]) -> list[Expression]:
    """What is combined at these indices and reduced indices."""
    variables = {**e.bound(stage.axes, indices), **e.bound(stage.reduced_axes, steps)}
    first = stage.op.body[0]
    found = [e.element(source, variables) for source in first.source]
    if not (isinstance(first.condition, tirx.IntImm) and int(first.condition.value)):
        condition = e.element(first.condition, variables)
        identities = first.combiner.identity_element
        found = [tirx.if_then_else(condition, s, i) for s, i in zip(found, identities, strict=True)]
    return found


def _one_by_one(
    e: Emission, stage: Stage, whole: Sequence[Expression], indices: Sequence[Expression], done: Finish
) -> list[Statement]:
    totals, statements = [], []
    for dtype, identity in zip(stage.dtypes, stage.op.body[0].combiner.identity_element, strict=True):
        total, made = e.local(dtype, 1)
        statements += [*made, tirx.BufferStore(total, identity, [0])]
        totals.append(total)
    loaded = [tirx.BufferLoad(total, [0]) for total in totals]

    def step(steps: Sequence[Expression]) -> list[Statement]:
        results = combined(e, stage, loaded, sources(e, stage, whole, steps))
        names = [tirx.Var("result", dtype) for dtype in stage.dtypes]
        if len(results) == 1:
            return [tirx.BufferStore(totals[0], results[0], [0])]
        return [
            *(tirx.Bind(n, r) for n, r in zip(names, results, strict=True)),
            *(tirx.BufferStore(t, n, [0]) for t, n in zip(totals, names, strict=True)),
        ]

    return [*statements, *nested(stage.reduced, e.index, step), *done(indices, loaded)]


def _along_columns(e: Emission, stage: Stage, fixed: Sequence[Expression], done: Finish) -> list[Statement]:
    """Several columns at once, down all rows."""
    *outer, columns = stage.extents[len(fixed) :]
    dtype, lanes = stage.dtypes[0], e.lanes(stage.dtypes[0])
    identity = stage.op.body[0].combiner.identity_element[0]

    def tile(ahead: Sequence[Expression], first: Expression, width: int) -> list[Statement]:
        total, statements = e.local(dtype, width)

        def step(steps: Sequence[Expression]) -> list[Statement]:
            def element(v: Expression) -> Expression:
                (found,) = sources(e, stage, [*fixed, *ahead, first + v], steps)
                return combined(e, stage, [tirx.BufferLoad(total, [v])], [found])[0]

            return e.fill(total, width, element)

        return [
            *statements,
            *e.fill(total, width, lambda v: identity),
            *nested(stage.reduced, e.index, step),
            *loop(width, e.index, lambda v: done([*ahead, first + v], [tirx.BufferLoad(total, [v])]), "VECTORIZED"),
        ]

    widths = [4 * lanes, lanes]
    return nested(outer, e.index, lambda ahead: tiles(columns, widths, e.index, lambda at, w: tile(ahead, at, w)))


def tiles(
    extent: Extent, widths: Sequence[int], dtype: str, tile: Callable[[Expression, int], list[Statement]]
) -> list[Statement]:
    """tile(first, width) for all of an axis: as many of the first width as there are, then of the next, .., and what
    is left as one tile if its width is known, otherwise as tiles of width 1."""
    statements: list[Statement] = []
    if isinstance(extent, int):
        start = 0
        for width in widths:
            count = (extent - start) // width
            begin = start
            statements += loop(count, dtype, lambda i, b=begin, w=width: tile(i * w + b, w))  # type: ignore[misc]
            start += count * width
        return statements + (tile(tirx.const(start, dtype), extent - start) if start < extent else [])
    begin_: Expression = tirx.const(0, dtype)
    for width in (*widths, 1):
        count_, end = tirx.Var("count", dtype), tirx.Var("end", dtype)
        left = cast(extent, dtype) - begin_
        statements.append(tirx.Bind(count_, tirx.indexdiv(left, tirx.const(width, dtype))))
        statements += loop(count_, dtype, lambda i, b=begin_, w=width: tile(b + i * w, w))  # type: ignore[misc]
        statements.append(tirx.Bind(end, begin_ + count_ * width))
        begin_ = end
    return statements


def _along_rows(
    e: Emission, stage: Stage, fixed: Sequence[Expression], rows: Sequence[Sequence[Expression]], done: Finish
) -> list[Statement]:
    """The rows at some indices: each lane takes a part of a row, then the lanes are combined.

    What is left over of a row goes into lanes of its own: LLVM keeps lanes in whole registers only if all that reads or
    writes them takes all of them.
    """
    dtype, lanes = stage.dtypes[0], e.lanes(stage.dtypes[0])
    identity = stage.op.body[0].combiner.identity_element[0]
    *outer, inner = stage.reduced
    whole_size = volume(stage.reduced)
    several = not isinstance(whole_size, int) or whole_size >= VERY_LONG
    width = (2 if len(rows) > 1 else 4 if several else 1) * lanes
    statements: list[Statement] = []
    totals: list[Any] = []
    rests: list[Any] = []
    for _ in rows:
        for buffers in (totals, rests):
            buffer, made = e.local(dtype, width)
            buffers.append(buffer)
            statements += [*made, *e.fill(buffer, width, lambda v: identity)]

    def row(ahead: Sequence[Expression]) -> list[Statement]:
        def block(first: Expression, size: int) -> list[Statement]:
            made: list[Statement] = []
            for indices, into in zip(rows, totals if size == width else rests, strict=True):

                def element(v: Expression, indices: Any = indices, into: Any = into) -> Expression:
                    (found,) = sources(e, stage, [*fixed, *indices], [*ahead, first + v])
                    return combined(e, stage, [tirx.BufferLoad(into, [v])], [found])[0]

                made += e.fill(into, size, element)
            return made

        return tiles(inner, [width, lanes] if width > lanes else [width], e.index, block)

    statements += nested(outer, e.index, row)
    for total, rest, indices in zip(totals, rests, rows, strict=True):

        def folded(v: Expression, left: Any, right: Any, half: int) -> Expression:
            return combined(e, stage, [tirx.BufferLoad(left, [v])], [tirx.BufferLoad(right, [v + half])])[0]

        statements += e.fill(rest, width, lambda v, t=total, r=rest: folded(v, t, r, 0))  # type: ignore[misc]
        half = width // 2
        while half:
            statements += e.fill(rest, half, lambda v, r=rest, h=half: folded(v, r, r, h))  # type: ignore[misc]
            half //= 2
        name = tirx.Var("result", dtype)
        statements += [tirx.Bind(name, tirx.BufferLoad(rest, [0])), *done(indices, [name])]
    return statements


__all__ = ["number", "reduce"]
