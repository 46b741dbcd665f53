"""Reductions: accumulators in registers, vectorized along whichever axis runs through memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from tvm_ffi import structural_map

from relay.codegen.kernels.clusters import Cluster
from relay.codegen.kernels.elementwise.pointwise import computed_elements, elements_at, lanes
from relay.codegen.kernels.elementwise.transposition import halves, run
from relay.codegen.kernels.emission import Emission, key
from relay.codegen.kernels.loops import NARROW, cast, choose_by_work, loop, nested_loops, number, unravel_index
from relay.codegen.kernels.registers import bind_name
from relay.codegen.kernels.stage import Extent, Stage, extent, has_equal_extents, is_one, mentions, volume
from relay.codegen.tvm.tir import Expression, Statement, tirx
from relay.ir.types import BaseType

LONG = 32  # reduced elements from which splitting them into lanes pays
VERY_LONG = 64  # from which several vectors of lanes pay
FEW = 2  # stages up to which several vectors of each are in registers
TOGETHER = 4  # rows that are reduced at once if they share an operand

Finish = Callable[[Sequence[Expression], Sequence[Expression]], list[Statement]]


def reduce(e: Emission, cluster: Cluster, fixed: Sequence[Expression]) -> list[Statement]:
    """All elements of a cluster's reductions with these first indices, and of its other stages."""
    lead = cluster.lead
    rest = lead.extents[len(fixed) :]
    done = finish(e, cluster, fixed)
    plain = all(
        e.vectorizes([*stage.op.body[0].source, *stage.op.body[0].combiner.result]) for stage in cluster.reductions
    )
    if plain and rest and not is_one(rest[-1]) and goes_along_columns(e, lead):
        return _along_columns(e, cluster, fixed, done)
    if plain and is_long(volume(lead.reduced[-in_one(e, cluster) :])) and runs_along(e, lead, lead.reduced_axes[-1]):
        if not rest or not goes_together(e, cluster):
            return nested_loops(rest, e.index, lambda indices: along_rows(e, cluster, fixed, [indices], done))
        *outer, last = rest
        zero = tirx.const(0, e.index)
        return nested_loops(outer, e.index, lambda ahead: joint_rows(e, cluster, [*fixed, *ahead], zero, last))
    return nested_loops(rest, e.index, lambda indices: _one_by_one(e, cluster, [*fixed, *indices], indices, done))


def are_plain(e: Emission, cluster: Cluster) -> bool:
    """True if the reductions of a cluster have one result each and are computed in vectors."""
    return all(
        stage.op.num_outputs == 1 and e.vectorizes([*stage.op.body[0].source, *stage.op.body[0].combiner.result])
        for stage in cluster.reductions
    )


def finish(e: Emission, cluster: Cluster, fixed: Sequence[Expression]) -> Finish:
    """A function that stores results at indices: the reductions', and those computed from them."""

    def store(indices: Sequence[Expression], results: Sequence[Expression]) -> list[Statement]:
        whole = [*fixed, *indices]
        tensors = [(stage.op, n) for stage in cluster.reductions for n in range(stage.op.num_outputs)]
        stores = []
        for tensor, result in zip(tensors, results, strict=True):
            place = e.places[tensor]
            if place.buffer is not None:
                stores.append(tirx.BufferStore(place.buffer, result, [e.position(place, whole)]))
        if cluster.results:
            e.values.update(zip(tensors, results, strict=True))
            with computed_elements(e, cluster.results, elements_at(e, whole)) as statements:
                stores = [*statements, *stores]
            for tensor in tensors:
                del e.values[tensor]
        return stores

    return store


def goes_together(e: Emission, cluster: Cluster) -> bool:
    """True if several rows are reduced at once: neighboring ones are combined with the same vector, as in the
    product of a matrix and a vector."""
    stage = cluster.lead
    if cluster.whole or len(cluster.reductions) != 1 or stage.op.num_outputs != 1 or not stage.extents:
        return False
    first, row, inner = stage.op.body[0], stage.axes[-1], stage.reduced_axes[-1]
    if not is_long(stage.reduced[-1]) or not runs_along(e, stage, inner) or goes_along_columns(e, stage):
        return False
    reads = [indices for _, indices in e.reads(stage) if any(mentions(index, inner) for index in indices)]
    with_row = [any(mentions(index, row) for index in indices) for indices in reads]
    return any(with_row) and not all(with_row) and e.vectorizes([*first.source, *first.combiner.result])


def joint_rows(
    e: Emission, cluster: Cluster, fixed: Sequence[Expression], begin: Expression, count: Extent
) -> list[Statement]:
    """This many rows from `begin` on, along the last axis, several at once."""
    done = finish(e, cluster, fixed)

    def row_statements(first: Expression, rows: int) -> list[Statement]:
        return along_rows(e, cluster, fixed, [[begin + first + n] for n in range(rows)], done)

    return tiles(count, [TOGETHER, 1], e.index, row_statements)


def is_long(extent: Extent) -> bool:
    return not isinstance(extent, int) or extent >= LONG


def in_one(e: Emission, cluster: Cluster) -> int:
    """The number of last reduced axes that are one run through memory in all that is read along them."""
    lead, count = cluster.lead, 1
    if cluster.whole or not all(isinstance(extent, int) for extent in (*lead.extents, *lead.reduced)):
        return count
    while count < len(lead.reduced) and all(_runs_through(e, stage, count + 1) for stage in cluster.reductions):
        count += 1
    return count


def _runs_through(e: Emission, stage: Stage, count: int) -> bool:
    """True if the last `count` reduced axes are adjacent wherever one of them is."""
    axes, sizes, first = stage.reduced_axes[-count:], stage.reduced[-count:], stage.op.body[0]
    if any(mentions(e.without_reads(part), axis) for part in (*first.source, first.condition) for axis in axes):
        return False
    for tensor, indices in e.reads(stage):
        among = [any(mentions(index, axis) for axis in axes) for index in indices]
        if not any(among):
            continue
        start = among.index(True)
        if among != [start <= n < start + count for n in range(len(indices))]:
            return False
        if not all(index.same_as(axis) for index, axis in zip(indices[start:], axes, strict=False)):
            return False
        if not has_equal_extents([extent(dim) for dim in tensor.shape[start : start + count]], sizes):
            return False
    return True


def goes_along_columns(e: Emission, stage: Stage) -> bool:
    """True if neighboring results are computed together: their inputs are neighbors, or there is one for each."""
    if not stage.extents:
        return False
    each = volume(stage.reduced)
    return (isinstance(each, int) and each == 1) or runs_along(e, stage, stage.axes[-1])


def runs_along(e: Emission, stage: Stage, axis: Any) -> bool:
    """True if the largest input is read along an axis."""
    reads = _reduced_reads(e, stage)
    if not reads:
        return False
    tensor, indices = max(reads, key=lambda read: len(read[1]))
    return follows(indices, tensor.shape, axis)


def _reduced_reads(e: Emission, stage: Stage) -> list[tuple[Any, tuple[Any, ...]]]:
    """The reads of a stage that depend on reduced axes: tensors and indices."""
    return [(t, i) for t, i in e.reads(stage) if any(mentions(x, v) for x in i for v in stage.reduced_axes)]


def follows(indices: Sequence[Any], shape: Sequence[Any], axis: Any) -> bool:
    """True if neighbors along an axis are neighbors in memory."""
    kept = [i for i, d in zip(indices, shape, strict=True) if not (isinstance(d, tirx.IntImm) and int(d.value) == 1)]
    return bool(kept) and unit_stride(kept[-1], axis) and not any(mentions(i, axis) for i in kept[:-1])


def unit_stride(index: Any, axis: Any) -> bool:
    """True if an index is the axis plus something."""
    if index.same_as(axis):
        return True
    if isinstance(index, tirx.Add):
        return (unit_stride(index.a, axis) and not mentions(index.b, axis)) or (
            unit_stride(index.b, axis) and not mentions(index.a, axis)
        )
    return isinstance(index, tirx.Sub) and unit_stride(index.a, axis) and not mentions(index.b, axis)


def combine_elements(
    e: Emission, stage: Stage, left: Sequence[Expression], right: Sequence[Expression], *, later: bool = False
) -> list[Expression]:
    """The reduction's operation. `later`: the right operand is an element after all those of the left one."""
    reducer = stage.op.body[0].combiner
    if len(right) == 1 and str(right[0].ty) != "bool":  # a name, since the operation may use it several times
        name = tirx.Var("element", right[0].ty)
        variables = {reducer.lhs[0]: left[0], reducer.rhs[0]: name}
        return [tirx.Let(name, right[0], e.element(reducer.result[0], variables))]
    variables = {**dict(zip(reducer.lhs, left, strict=True)), **dict(zip(reducer.rhs, right, strict=True))}
    results = [e.element(result, variables) for result in reducer.result]
    return [structural_map(r, ((tirx.Select, _resolve_round_order(left[0], right[0], later)),)) for r in results]


def _resolve_round_order(left: Expression, right: Expression, smaller: bool) -> Callable[[Any], Any]:
    """A function that replaces a choice by whether the left one of two numbers of rounds is smaller with one of its
    sides: the first if it is, and the second, which is correct for all, if that is not known."""

    def resolve_choice(choice: Any) -> Any:
        less = choice.condition
        found = isinstance(less, tirx.LT) and less.a.same_as(left) and less.b.same_as(right)
        return choice if not found else choice.true_value if smaller else choice.false_value

    return resolve_choice


def _counts_rounds(stage: Stage) -> bool:
    """True if the first of several numbers that are combined is that of the round."""
    first, *others = stage.op.body[0].source
    while isinstance(first, tirx.Cast):
        first = first.value
    return bool(others) and len(stage.reduced_axes) == 1 and bool(first.same_as(stage.reduced_axes[0]))


def sources(e: Emission, stage: Stage, indices: Sequence[Expression], steps: Sequence[Expression]) -> list[Expression]:
    """The values that are combined at these indices and reduced indices."""
    variables = {**e.axis_values(stage.axes, indices), **e.axis_values(stage.reduced_axes, steps)}
    first = stage.op.body[0]
    found = [e.element(source, variables) for source in first.source]
    if not (isinstance(first.condition, tirx.IntImm) and int(first.condition.value)):
        condition = e.element(first.condition, variables)
        identities = first.combiner.identity_element
        found = [tirx.if_then_else(condition, s, i) for s, i in zip(found, identities, strict=True)]
    return found


def _elementwise_part(
    e: Emission, cluster: Cluster, indices: Sequence[Expression], steps: Sequence[Expression]
) -> AbstractContextManager[list[Statement]]:
    """The statements for the elementwise stages of a cluster where its loops are here."""
    point = cluster.point(indices, steps) if cluster.whole else ()
    return computed_elements(e, cluster.whole, elements_at(e, point), read=True)


def _identities(cluster: Cluster) -> list[Expression]:
    return [i for stage in cluster.reductions for i in stage.op.body[0].combiner.identity_element]


def dtypes_of(cluster: Cluster) -> list[str]:
    return [dtype for stage in cluster.reductions for dtype in stage.dtypes]


def _one_by_one(
    e: Emission, cluster: Cluster, whole: Sequence[Expression], indices: Sequence[Expression], done: Finish
) -> list[Statement]:
    totals, statements = [], []
    dtypes = dtypes_of(cluster)
    for dtype, identity in zip(dtypes, _identities(cluster), strict=True):
        total, made_ = e.local_elements(dtype, 1)
        statements += [*made_, tirx.BufferStore(total, identity, [0])]
        totals.append(total)
    zero = tirx.const(0, e.index)
    loaded = [tirx.BufferLoad(total, [zero]) for total in totals]

    def step(steps: Sequence[Expression]) -> list[Statement]:
        with _elementwise_part(e, cluster, whole, steps) as found:
            for stage, own in _shares(cluster, totals):
                loads = [tirx.BufferLoad(total, [0]) for total in own]
                found += _store_results(
                    own,
                    zero,
                    combine_elements(e, stage, loads, sources(e, stage, whole, steps), later=_counts_rounds(stage)),
                )
            return found

    return [*statements, *nested_loops(cluster.lead.reduced, e.index, step), *done(indices, loaded)]


def updates(
    e: Emission,
    cluster: Cluster,
    totals: Sequence[Any],
    lane: Expression,
    indices: Any,
    steps: Any,
    among: Expression | None = None,
) -> list[Statement]:
    """The statements that update one lane of the totals of all reductions at one place; only if it is `among` those
    that count."""
    with _elementwise_part(e, cluster, indices, steps) as statements:
        for stage, own in _shares(cluster, totals):
            values = sources(e, stage, indices, steps)
            if among is not None:
                identities = stage.op.body[0].combiner.identity_element
                values = [tirx.Select(among, v, i) for v, i in zip(values, identities, strict=True)]
            loads = [tirx.BufferLoad(total, [lane]) for total in own]
            statements += _store_results(
                own, lane, combine_elements(e, stage, loads, values, later=_counts_rounds(stage))
            )
        return statements


def _shares(cluster: Cluster, buffers: Sequence[Any]) -> Iterator[tuple[Stage, list[Any]]]:
    """Each reduction with those of the buffers that are for its results."""
    rest = iter(buffers)
    for stage in cluster.reductions:
        yield stage, [next(rest) for _ in range(stage.op.num_outputs)]


def _store_results(buffers: Sequence[Any], lane: Expression, results: Sequence[Expression]) -> list[Statement]:
    """The results of one reduction as a lane of its buffers. Each is computed from what all of them hold."""
    if len(results) == 1:
        return [tirx.BufferStore(buffers[0], results[0], [lane])]
    pairs = [bind_name(result) for result in results]
    stores = [tirx.BufferStore(buffer, name, [lane]) for buffer, (name, _) in zip(buffers, pairs, strict=True)]
    return [*(statement for _, statement in pairs), *stores]


def width_of(e: Emission, cluster: Cluster) -> int:
    """The number of elements that are combined at once: as many as a vector holds of the longest that is combined or
    computed for that. Of `any(x > 0)` the elements are floats, not bools: four vectors of bools would be 32 of
    floats, more than there are registers, on which LLVM spends tens of seconds."""
    stages = [*cluster.whole, *cluster.reductions]
    behind = e.dtypes_behind([body for stage in stages for body in stage.op.body])
    return min((lanes(e, stages), *map(e.lanes, behind)))


def registers_of(e: Emission, cluster: Cluster, width: int) -> tuple[list[Any], list[Statement]]:
    """Lanes for the totals of all reductions, and the statements that make and clear them."""
    buffers, statements = [], []
    for dtype, identity in zip(dtypes_of(cluster), _identities(cluster), strict=True):
        buffer, made_ = e.local_elements(dtype, width)
        buffers.append(buffer)
        statements += [*made_, *e.fill(buffer, width, lambda v, i=identity: i)]  # type: ignore[misc]
    return buffers, statements


def _along_columns(e: Emission, cluster: Cluster, fixed: Sequence[Expression], done: Finish) -> list[Statement]:
    """Several columns at once, down all rows."""
    *outer, columns = cluster.lead.extents[len(fixed) :]
    lanes_ = width_of(e, cluster)

    def tile(ahead: Sequence[Expression], first: Expression, width: int) -> list[Statement]:
        totals, statements = registers_of(e, cluster, width)

        def step(steps: Sequence[Expression]) -> list[Statement]:
            def update(v: Expression) -> list[Statement]:
                return updates(e, cluster, totals, v, [*fixed, *ahead, first + v], steps)

            return loop(width, e.index, update, "VECTORIZED")

        def store(v: Expression) -> list[Statement]:
            return done([*ahead, first + v], [tirx.BufferLoad(total, [v]) for total in totals])

        return [
            *statements,
            *nested_loops(cluster.lead.reduced, e.index, step),
            *loop(width, e.index, store, "VECTORIZED"),
        ]

    widths = [lanes_] if len(cluster.whole) + len(cluster.reductions) > FEW else [4 * lanes_, lanes_]
    return nested_loops(
        outer, e.index, lambda ahead: tiles(columns, widths, e.index, lambda at_, w: tile(ahead, at_, w))
    )


def tiles(
    extent: Extent, widths: Sequence[int], dtype: str, tile: Callable[[Expression, int], list[Statement]]
) -> list[Statement]:
    """tile(first, width) for all of an axis: as many of the first width as there are, then of the next, .., and what
    is left as one tile if its width is known, otherwise as narrow tiles and tiles of width 1."""
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
    for width in (*widths, *((NARROW,) if widths[-1] > NARROW else ()), 1):
        count_, end = tirx.Var("count", dtype), tirx.Var("end", dtype)
        left = cast(extent, dtype) - begin_
        statements.append(tirx.Bind(count_, tirx.indexdiv(left, tirx.const(width, dtype))))
        statements += loop(count_, dtype, lambda i, b=begin_, w=width: tile(b + i * w, w))  # type: ignore[misc]
        statements.append(tirx.Bind(end, begin_ + count_ * width))
        begin_ = end
    return statements


def _boundary(
    e: Emission, stage: Stage, indices: Sequence[Expression], steps: Sequence[Expression], width: int
) -> Expression | None:
    """The number of elements of a row before the first boundary of a vector in memory; None if it starts at one.

    It is less than `width`, the elements that are read at once. These may be less than a vector of theirs, since they
    are converted to a wider dtype."""
    tensor, read = max(_reduced_reads(e, stage), key=lambda found: len(found[1]))
    place = e.places[key(tensor)]
    if place.address is None:
        return None
    variables = {**e.axis_values(stage.axes, indices), **e.axis_values(stage.reduced_axes, steps)}
    first = e.offset([e.element(index, variables) for index in read], place.dims)
    itemsize, in_vector = BaseType(str(tensor.dtype)).dtype.itemsize, min(e.lanes(str(tensor.dtype)), width)
    position = tirx.indexdiv(place.address, tirx.const(itemsize, "int64")) + cast(first, "int64")
    return cast(tirx.bitwise_and(-position, tirx.const(in_vector - 1, "int64")), e.index)


def along_rows(
    e: Emission,
    cluster: Cluster,
    fixed: Sequence[Expression],
    rows: Sequence[Sequence[Expression]],
    done: Finish,
    part: tuple[Expression, Expression] | None = None,
) -> list[Statement]:
    """The rows at some indices: each lane takes a part of a row, then the lanes are combined. With a `part`, only this
    part of the first reduced axis.

    The remainder of a row goes into separate lanes: LLVM keeps lanes in whole registers only if every read and write
    takes all of them.
    """
    lanes_ = width_of(e, cluster)
    last = cluster.lead.reduced[-in_one(e, cluster) :] if part is None else cluster.lead.reduced[-1:]
    outer, inner = cluster.lead.reduced[: -len(last)], volume(last)
    whole_size = volume(cluster.lead.reduced)
    several = not isinstance(whole_size, int) or whole_size >= VERY_LONG
    together = len(cluster.whole) + len(cluster.reductions)
    crowded = len(rows) > 1 or together > 1
    width = lanes_ * (1 if together > FEW else 2 if crowded else 4 if several else 1)
    statements: list[Statement] = []
    totals: list[list[Any]] = []
    rests: list[list[Any]] = []
    for _ in rows:
        for buffers in (totals, rests):
            found, made_ = registers_of(e, cluster, width)
            buffers.append(found)
            statements += made_

    first_axis: Extent = [*outer, inner][0] if part is None else part[1] - part[0]

    def row(ahead: Sequence[Expression]) -> list[Statement]:
        def block(
            first: Expression, size: int, among: Callable[[Expression], Expression] | None = None
        ) -> list[Statement]:
            """Elements from the first one on; only the lanes that are `among` those that count."""
            statements: list[Statement] = []
            for indices, into in zip(rows, totals if size == width and among is None else rests, strict=True):

                def update(v: Expression, indices: Any = indices, into: Any = into) -> list[Statement]:
                    counts = None if among is None else among(v)
                    steps = [*ahead, *unravel_index(first + v, last, e.index)]
                    steps[0] = steps[0] if part is None else part[0] + steps[0]
                    return updates(e, cluster, into, v, [*fixed, *indices], steps, counts)

                statements += loop(size, e.index, update, "VECTORIZED")
            return statements

        def unaligned_row() -> list[Statement]:
            known = part is None and isinstance(inner, int) and inner > width
            if known and not cluster.whole:  # nothing but sums: no harm in twice
                left = inner % width
                whole = loop(inner // width, e.index, lambda i: block(i * width, width))
                last = tirx.const(inner - width, e.index)
                return [*whole, *(block(last, width, lambda v: v >= width - left) if left else [])]
            along = inner if outer else first_axis
            return tiles(along, [width, lanes_] if width > lanes_ else [width], e.index, block)

        def aligned_row() -> list[Statement]:
            """In vectors that lie in one cache line each, which streams through memory are a third faster in: what is
            before the first and behind the last of them are some lanes of vectors at the row's ends."""
            size, start, count = number(inner, e.index), tirx.Var("start", e.index), tirx.Var("count", e.index)
            return [
                tirx.Bind(start, boundary),
                tirx.Bind(count, tirx.indexdiv(size - start, tirx.const(width, e.index))),
                *block(tirx.const(0, e.index), width, lambda v: v < start),
                *loop(count, e.index, lambda i: block(start + i * width, width)),
                *block(size - width, width, lambda v: v >= start + (count + 1) * width - size),
            ]

        first = [*ahead, *(tirx.const(0, e.index) for _ in last)]
        boundary = _boundary(e, cluster.lead, [*fixed, *rows[0]], first, width) if len(rows) > 1 else None
        return unaligned_row() if boundary is None else choose_by_work(inner, VERY_LONG, aligned_row, unaligned_row)

    statements += nested_loops([first_axis, *outer[1:]] if outer else (), e.index, row)
    for whole, left_over, indices in zip(totals, rests, rows, strict=True):
        names = []
        for (stage, total), (_, rest) in zip(_shares(cluster, whole), _shares(cluster, left_over), strict=True):
            statements += reduce_lanes(e, stage, total, rest, width, lanes_)
            for buffer, dtype in zip(rest, stage.dtypes, strict=True):
                names.append(tirx.Var("result", dtype))
                statements.append(tirx.Bind(names[-1], tirx.BufferLoad(buffer, [0])))
        statements += done(indices, names)
    return statements


def reduce_lanes(
    e: Emission, stage: Stage, total: Sequence[Any], rest: Sequence[Any], width: int, lanes_: int
) -> list[Statement]:
    """All of `width` lanes of two lists of buffers combined in the first lane of the second one.

    One vector is read as a whole and taken apart into halves: LLVM would keep the vectors of the whole loop in pieces
    of the size of the shortest that is read. It must not be turned and combined with itself, for the one lane that is
    read in the end: LLVM 22 compares this lane with itself then, where vectors are compared in masks (AVX-512).
    """

    def combine_lanes(
        left: Sequence[Any], right: Sequence[Any], into: Sequence[Any], far: int, v: Expression
    ) -> list[Statement]:
        loads = [tirx.BufferLoad(buffer, [v]) for buffer in left], [tirx.BufferLoad(b, [v + far]) for b in right]
        return _store_results(into, v, combine_elements(e, stage, *loads))

    statements = loop(width, e.index, partial(combine_lanes, total, rest, rest, 0), "VECTORIZED")
    shuffles = not any(dtype in ("bool", "bfloat16") for dtype in stage.dtypes)  # of these TVM takes no vectors apart
    while width > (lanes_ if shuffles else 1):
        width //= 2
        statements += loop(width, e.index, partial(combine_lanes, rest, rest, rest, width), "VECTORIZED")
    whole, zero = rest, tirx.const(0, e.index)
    while width > 1:
        parts: list[list[Any]] = [[], []]
        for buffer, dtype in zip(whole, stage.dtypes, strict=True):
            vector = tirx.BufferLoad(buffer, [run(zero, width)])
            for found, half in zip(parts, halves(vector, width), strict=True):
                part, made_ = e.local_elements(dtype, width // 2)
                place = run(zero, width // 2) if width > 2 else zero
                statements += [*made_, tirx.BufferStore(part, half, [place])]
                found.append(part)
        width //= 2
        lower, upper = parts
        whole = lower if width > 1 else rest
        statements += loop(width, e.index, partial(combine_lanes, lower, upper, whole, 0), "VECTORIZED")
    return statements


__all__ = ["TOGETHER", "finish", "goes_along_columns", "goes_together", "joint_rows", "reduce"]
