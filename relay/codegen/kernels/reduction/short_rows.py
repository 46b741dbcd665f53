"""Row batching: short rows, as many at once as a vector has lanes, such as softmax over a few classes.

    for blocks of `lanes` rows:                                        shared among threads
        tile[place, lane] = input[row of the lane, place]              for each input: squares, transposed in registers
        for each stage, for its places: all lanes at once
        output[row of the lane, place] = tile[place, lane]

Vectors along a short row would be half empty, and their lanes would have to be combined at each row's end. Lanes beyond
the last row compute that row again; what they compute is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from relay.codegen.kernels.clusters import Cluster, LoneCluster
from relay.codegen.kernels.elementwise.pointwise import store_elements
from relay.codegen.kernels.elementwise.transposition import run, transpose_square
from relay.codegen.kernels.emission import Emission, Place, key
from relay.codegen.kernels.gemm.recognition import pieces, registers
from relay.codegen.kernels.loops import loop, nested_loops, number, shared_loop
from relay.codegen.kernels.reduction.reductions import LONG, finish, goes_along_columns, registers_of, updates
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.kernels.stage import Extent, Stage, extent, has_equal_extents, is_one, mentions, volume
from relay.codegen.tvm.tir import Expression, Statement, sequence, tirx
from relay.ir.types import BaseType

MOST = 48
"""Elements of a row up to which this is quicker than rows one by one."""
ALONE = 128
"""The same where several axes are reduced, which are one here, and nothing else is made."""


@attrs.frozen(eq=False)
class _RowPart:
    """A tensor's part of a row: its place in memory before, and how many elements it has."""

    place: Place
    size: int
    dtype: str


@attrs.frozen(eq=False)
class ShortRows:
    """Stages whose first `count` axes are the rows. `inputs` and `outputs` have elements for each row."""

    steps: tuple[Cluster, ...]
    count: int
    rows: Extent
    lanes: int
    inputs: Mapping[Any, _RowPart]
    outputs: Mapping[Any, _RowPart]
    between: Mapping[Any, _RowPart]  # what is computed on the way, and read in other loops


def recognize(e: Emission, steps: Sequence[Cluster], count: int, remembered: Sequence[Any]) -> ShortRows | None:
    """Stages with these first axes in common as such rows; None if they are none, or if these loops are not quicker."""
    stages = [stage for step in steps for stage in step.stages]
    rows_extents = stages[0].extents[:count]
    if not all(has_equal_extents(stage.extents[:count], rows_extents) for stage in stages):
        return None  # a result of all elements, say, whose axes have extent 1, beside one of each
    if not count or not all(isinstance(d, int) for s in stages for d in (*s.extents[count:], *s.reduced)):
        return None
    sizes = [int(volume((*stage.extents[count:], *stage.reduced))) for stage in stages]
    only_reduced = all(stage.is_reduction or size == 1 for stage, size in zip(stages, sizes, strict=True))
    most = ALONE if only_reduced and len(steps) == 1 else MOST
    if not 2 <= max(sizes) <= most or not all(_is_plain(e, stage) for stage in stages):
        return None
    made = {(s.op, n): s for s in stages for n in range(s.op.num_outputs)}
    reads: dict[Any, Any] = {}
    elsewhere: set[Any] = set()  # tensors that are read at a place that is the same for all rows
    for stage in stages:
        if count > 1 and any(mentions(e.without_reads(body), v) for body in _bodies(stage) for v in stage.axes[:count]):
            return None
        for tensor, indices in e.reads(stage):
            if any(mentions(index, axis) for index in indices for axis in stage.axes[:count]):
                if not _has_rows(stage, count, tensor, indices):
                    return None
                reads[key(tensor)] = tensor
            elif key(tensor) in made:
                return None
            else:
                elsewhere.add(key(tensor))
    if not elsewhere.isdisjoint(reads):
        return None  # a tile has the elements of its rows only
    dtypes = {str(t.dtype) for t in reads.values()} | {dtype for stage in stages for dtype in stage.dtypes}
    items = {BaseType(dtype).dtype.itemsize for dtype in dtypes - {"bool"}}
    if items not in ({4}, {8}) or "bool" in {str(t.dtype) for t in reads.values()} | _stored_dtypes(
        e, stages, remembered
    ):
        return None
    lanes, _ = registers(next(iter(dtypes - {"bool"})))
    rows = volume(rows_extents)
    if lanes < 4 or (isinstance(rows, int) and rows < lanes):
        return None
    taken: dict[Any, dict[Any, _RowPart]] = {"inputs": {}, "outputs": {}, "between": {}}
    for name, tensor in {**{k: k[0].output(k[1]) for k in made}, **reads}.items():
        place = e.places[name]
        kind = "inputs" if name not in made else "between" if name[0] in remembered else "outputs"
        if kind == "outputs" and place.buffer is None:
            continue
        dims = tuple(map(extent, tensor.shape))[count:]
        if not all(isinstance(d, int) for d in dims) or volume(dims) > most:
            return None
        taken[kind][name] = _RowPart(place, int(volume(dims)), str(tensor.dtype))
    return ShortRows(tuple(steps), count, rows, lanes, **taken)


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Reductions along short rows."""
    cluster = subject.cluster
    if not cluster.reductions or not pays_alone(cluster) or goes_along_columns(e, cluster.lead):
        return None
    found = recognize(e, [cluster], len(cluster.lead.extents), [])
    return None if found is None else plan(e, found)


def plan(e: Emission, found: ShortRows) -> Plan:
    """The loops for such rows."""
    largest = max(row.size for row in (*found.inputs.values(), *found.outputs.values()))
    return Plan(f"rows of at most {largest} elements: {found.lanes} rows at once", lambda: share(e, found))


def pays_alone(cluster: Cluster) -> bool:
    """True if one cluster's reductions are along rows for which other loops are slow."""
    size = volume(cluster.lead.reduced)
    return isinstance(size, int) and (size < LONG or len([d for d in cluster.lead.reduced if not is_one(d)]) > 1)


def _bodies(stage: Stage) -> list[Expression]:
    if not stage.is_reduction:
        return list(stage.op.body)
    return list(stage.op.body[0].source)


def _is_plain(e: Emission, stage: Stage) -> bool:
    if not stage.is_reduction:
        return stage.op.num_outputs == 1 and e.vectorizes(stage.op.body)
    first = stage.op.body[0]
    always = isinstance(first.condition, tirx.IntImm) and bool(int(first.condition.value))
    return always and e.vectorizes([*first.source, *first.combiner.result])


def _stored_dtypes(e: Emission, stages: Sequence[Stage], remembered: Sequence[Any]) -> set[str]:
    return {
        dtype
        for stage in stages
        for n, dtype in enumerate(stage.dtypes)
        if stage.op in remembered or e.places[stage.op, n].buffer is not None
    }


def _has_rows(stage: Stage, count: int, tensor: Any, indices: Sequence[Any]) -> bool:
    """True if all reads of a tensor are in the row at which the stage is."""
    dims = tuple(map(extent, tensor.shape))
    return (
        len(dims) >= count
        and has_equal_extents(dims[:count], stage.extents[:count])
        and all(i.same_as(v) or is_one(d) for i, v, d in zip(indices, stage.axes, dims[:count], strict=False))
        and not any(mentions(index, axis) for index in indices[count:] for axis in stage.axes[:count])
    )


# ---- the loops


def share(e: Emission, found: ShortRows) -> list[Statement]:
    """All rows, shared among threads."""
    blocks = pieces(found.rows, found.lanes)
    work: Extent = 0
    for step in found.steps:
        work = step.lead.work if isinstance(work, int) and work == 0 else work + step.lead.work

    def part(number_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        return _RowBlocks(e, found, number_).statements(begin, end - begin)

    def serial_loop() -> list[Statement]:
        return _RowBlocks(e, found, tirx.const(0, "int32")).statements(tirx.const(0, e.index), blocks)

    return shared_loop(blocks, work, e.threads, e.index, part, serial_loop)


class _RowBlocks:
    """The blocks of one thread."""

    def __init__(self, e: Emission, found: ShortRows, part: Expression) -> None:
        self.e = e
        self.found = found
        self.part = part
        self.lanes = found.lanes

    def statements(self, begin: Expression, count: Extent) -> list[Statement]:
        """This many blocks from one on."""
        e, found = self.e, self.found
        before = dict(e.places)
        memory: list[Statement] = []
        for name, row in {**found.inputs, **found.outputs, **found.between}.items():
            tensor = name[0].output(name[1])
            inner = tuple(map(extent, tensor.shape))[found.count :]
            place, made = e.scratch((name, "tile"), row.dtype, (*inner, self.lanes), self.part, found.count)
            memory += made
            e.places[name] = Place(place.buffer, inner, found.count, lanes=self.lanes)
        largest = max(row.size for row in (*found.inputs.values(), *found.outputs.values()))
        edges = {}
        for dtype in sorted({row.dtype for row in (*found.inputs.values(), *found.outputs.values())}):
            place, made = e.scratch(("edge", dtype), dtype, ((largest + 1) * self.lanes,), self.part, 0)
            edges[dtype] = place.buffer
            memory += made
        body = loop(count, e.index, lambda n: self._block((begin + n) * self.lanes, edges))
        e.places.clear()
        e.places.update(before)
        return [*memory, *body]

    def _block(self, first_: Expression, edges: Mapping[str, Any]) -> list[Statement]:
        e, found = self.e, self.found
        first, left = tirx.Var("first", e.index), tirx.Var("left", e.index)
        rows = number(found.rows, e.index)
        statements: list[Statement] = [tirx.Bind(first, first_), tirx.Bind(left, rows - first)]
        for name, row in found.inputs.items():
            tile = e.places[name].buffer
            # squares of rows shorter than a vector read on in the next rows
            fits = left >= self.lanes + -(-max(self.lanes - row.size, 0) // row.size)
            inside = self._load_tile(row, row.place.buffer, first * row.size, tile)
            edge = edges[row.dtype]
            outside = [
                *self._copied_in(row, first, left, edge),
                *self._load_tile(row, edge, tirx.const(0, e.index), tile),
            ]
            statements.append(tirx.IfThenElse(fits, sequence(inside), sequence(outside)))
        for step in found.steps:
            statements += self._reductions(step, first) if step.reductions else self._elements(step, first)
        for name, row in found.outputs.items():
            tile, edge = e.places[name].buffer, edges[row.dtype]
            inside = self._store_tile(row, tile, row.place.buffer, first * row.size)
            outside = [
                *self._store_tile(row, tile, edge, tirx.const(0, e.index)),
                *self._copied_out(row, first, left, edge),
            ]
            statements.append(tirx.IfThenElse(left >= self.lanes, sequence(inside), sequence(outside)))
        return statements

    # ---- the stages

    @contextmanager
    def _lane(self, lane: Expression) -> Iterator[None]:
        self.e.lane = lane
        yield
        self.e.lane = None

    def _lane_loop(
        self, first: Expression, body: Callable[[list[Expression], Expression], list[Statement]]
    ) -> list[Statement]:
        """body(indices of the row, lane) for all lanes."""

        def element_statements(lane: Expression) -> list[Statement]:
            with self._lane(lane):
                zeros = [tirx.const(0, self.e.index)] * (self.found.count - 1)
                return list(body([*zeros, first + lane], lane))

        return loop(self.lanes, self.e.index, element_statements, "VECTORIZED")

    def _elements(self, step: Cluster, first: Expression) -> list[Statement]:
        inner = step.lead.extents[self.found.count :]

        def place(indices: Sequence[Expression]) -> list[Statement]:
            return self._lane_loop(first, lambda row, _: store_elements(self.e, step.whole, [*row, *indices]))

        return nested_loops(inner, self.e.index, place)

    def _reductions(self, step: Cluster, first: Expression) -> list[Statement]:
        e = self.e

        def place(indices: Sequence[Expression]) -> list[Statement]:
            totals, statements = registers_of(e, step, self.lanes)

            def add(steps: Sequence[Expression]) -> list[Statement]:
                return self._lane_loop(first, lambda row, lane: updates(e, step, totals, lane, [*row, *indices], steps))

            def store(row: list[Expression], lane: Expression) -> list[Statement]:
                return finish(e, step, row)(indices, [tirx.BufferLoad(total, [lane]) for total in totals])

            return [*statements, *nested_loops(step.lead.reduced, e.index, add), *self._lane_loop(first, store)]

        return nested_loops(step.lead.extents[self.found.count :], e.index, place)

    # ---- memory and tiles

    def _starts(self, size: int) -> list[int]:
        """The starts of squares that cover a row; the last one may repeat a part of another."""
        starts = list(range(0, size - self.lanes + 1, self.lanes)) or [0]
        return starts if size <= self.lanes or size % self.lanes == 0 else [*starts, size - self.lanes]

    def _load_tile(self, row: _RowPart, source: Any, base: Expression, tile: Any) -> list[Statement]:
        """A tile from rows that lie one after another from `base` on."""
        lanes, zero = self.lanes, tirx.const(0, self.e.index)
        if row.size == 1:
            return [tirx.BufferStore(tile, tirx.BufferLoad(source, [run(base, lanes)]), [run(zero, lanes)])]
        statements: list[Statement] = []
        for start in self._starts(row.size):

            def load(lane: int, start: int = start) -> Expression:
                return tirx.BufferLoad(source, [run(base + (lane * row.size + start), lanes)])

            def store(column: int, vector: Expression, start: int = start) -> Statement:
                at = start + column
                if at >= row.size:
                    return tirx.Evaluate(tirx.const(0, "int32"))
                return tirx.BufferStore(tile, vector, [run(zero + at * lanes, lanes)])

            statements += transpose_square(row.dtype, lanes, load, store)
        return statements

    def _store_tile(self, row: _RowPart, tile: Any, target: Any, base: Expression) -> list[Statement]:
        """Consecutive rows from a tile."""
        lanes, zero = self.lanes, tirx.const(0, self.e.index)
        if row.size == 1:
            return [tirx.BufferStore(target, tirx.BufferLoad(tile, [run(zero, lanes)]), [run(base, lanes)])]
        statements: list[Statement] = []
        for start in self._starts(row.size):

            def load(column: int, start: int = start) -> Expression:
                at = min(start + column, row.size - 1)
                return tirx.BufferLoad(tile, [run(zero + at * lanes, lanes)])

            def store(lane: int, vector: Expression, start: int = start) -> Statement:
                at = lane * row.size + start
                if row.size >= lanes or at + lanes <= lanes * row.size:  # the next row is stored behind this one
                    return tirx.BufferStore(target, vector, [run(base + at, lanes)])
                kept = tirx.Shuffle([vector], [tirx.const(n, "int32") for n in range(row.size)])
                return tirx.BufferStore(target, kept, [run(base + at, row.size)])

            statements += transpose_square(row.dtype, lanes, load, store)
        return statements

    def _copied_in(self, row: _RowPart, first: Expression, left: Expression, edge: Any) -> list[Statement]:
        """The rows that exist, the last of them again for the others."""

        def copy(lane: Expression) -> list[Statement]:
            at = (first + tirx.Min(lane, left - 1)) * row.size

            def element_statements(n: Expression) -> list[Statement]:
                return [tirx.BufferStore(edge, tirx.BufferLoad(row.place.buffer, [at + n]), [lane * row.size + n])]

            return loop(row.size, self.e.index, element_statements)

        return loop(self.lanes, self.e.index, copy)

    def _copied_out(self, row: _RowPart, first: Expression, left: Expression, edge: Any) -> list[Statement]:
        def element_statements(n: Expression) -> list[Statement]:
            return [tirx.BufferStore(row.place.buffer, tirx.BufferLoad(edge, [n]), [first * row.size + n])]

        return loop(left * row.size, self.e.index, element_statements)


__all__ = ["ShortRows", "pays_alone", "recognize", "share"]


RULE = Rule("short_rows", 50, match)
