"""Schedules for GPUs: each stage that is kept in memory becomes a kernel, a function of one thread.

What is computed elementwise becomes part of what reads it, as on the processor. No rule uses atomic operations, and the
order in which numbers are combined depends on sizes alone, so equal calls give equal bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.codegen.cuda.distribution import Nest, nests
from relay.codegen.cuda.products import Axes, Factors, factors
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import cast, loop, nested_loops, number, unravel_index
from relay.codegen.kernels.reduction.reductions import combine_elements, sources
from relay.codegen.kernels.rules import Plan, Rule, Table
from relay.codegen.kernels.stage import Extent, Stage, is_choice, is_compute, mentions, stage_of, volume
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, tirx

THREADS = 256
"""The threads of a block: eight warps, of which several blocks fit each multiprocessor."""

LONG = 64
"""Reduced elements from which a block of threads for each result is faster than a thread."""

SERIAL = 4096
"""Results from which there are threads enough if each has a result of its own."""


@attrs.frozen(eq=False)
class Blocks:
    """The loops of a kernel: what thread `thread` of block `block` does, and how many there are of both."""

    statements: Sequence[Statement]
    thread: Any
    block: Any
    threads: int
    blocks: Extent


@attrs.define(eq=False)
class StageSubject:
    """A stage that is kept in memory. `made` are its kernels, once a rule has made them."""

    op: Any
    stage: Stage | None  # None for a te.extern
    made: list[Blocks] = attrs.field(factory=list)

    def __str__(self) -> str:
        if self.stage is None:
            return str(self.op.name)
        space = " x ".join(map(str, self.stage.extents)) or "1"
        return f"{space} over {' x '.join(map(str, self.stage.reduced))}" if self.stage.reduced else space


def schedule(e: Emission, op: Any) -> list[Blocks]:
    """The kernels of a stage, one after another; none if there is nothing to compute."""
    subject = StageSubject(op, stage_of(op) if is_compute(op) else None)
    if subject.stage is not None and _is_below(volume(subject.stage.extents), 1):
        return []
    RULES.emit(e, subject)
    return subject.made


def _plan(reason: str, subject: StageSubject, make: Callable[[], Blocks]) -> Plan:
    def emit() -> list[Statement]:
        subject.made = [make()]
        return list(subject.made[0].statements)

    return Plan(reason, emit)


def indices_of_thread() -> tuple[Any, Any]:
    """The variables that are a thread's number and its block's."""
    return tirx.Var("thread", "int32"), tirx.Var("block", "int32")


def _indices(position: Expression, stage: Stage, e: Emission) -> list[Expression]:
    """The indices of the element at a position of a stage's space."""
    return unravel_index(position, stage.extents, e.index) if stage.extents else []


def store(e: Emission, stage: Stage, indices: Sequence[Expression], values: Sequence[Expression]) -> list[Statement]:
    """The stage's results at these indices."""
    return [
        tirx.BufferStore(e.places[stage.op, n].buffer, value, [e.position(e.places[stage.op, n], indices)])
        for n, value in enumerate(values)
    ]


def guarded_statement(condition: Expression, statements: Sequence[Statement]) -> Statement:
    """Statements that run where the condition holds."""
    return tirx.IfThenElse(condition, tir.sequence(statements), None)


def barrier() -> Statement:
    """All threads of the block get here before one goes on."""
    return tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))


def parts(count: Extent, size: int) -> Extent:
    """The number of parts of a size that make a whole, of which the last may be smaller."""
    return -(-count // size) if isinstance(count, int) else tirx.truncdiv(count + (size - 1), tir.integer(size))


def _divides(size: int, count: Extent) -> bool:
    """True if parts of a size surely have no rest."""
    return isinstance(count, int) and count % size == 0


def _is_below(count: Extent, limit: int) -> bool:
    """True if an extent is surely so small."""
    return isinstance(count, int) and count < limit


# ---- rules


def _thread_per_element(
    e: Emission, stage: Stage, element: Callable[[list[Expression]], Sequence[Statement]], threads: int = THREADS
) -> Blocks:
    """A thread for each element of a stage's space."""
    count = volume(stage.extents)
    if isinstance(count, int):
        threads = min(threads, max(32, -(-count // 32) * 32))
    thread, block = indices_of_thread()
    position = cast(block, e.index) * threads + cast(thread, e.index)
    body = element(_indices(position, stage, e))
    inner = list(body) if _divides(threads, count) else [guarded_statement(position < number(count, e.index), body)]
    return Blocks(inner, thread, block, threads, parts(count, threads))


def _match_elements(e: Emission, subject: StageSubject) -> Plan | None:
    """Stages without reductions."""
    stage = subject.stage
    if stage is None or stage.is_reduction:
        return None

    def element(indices: list[Expression]) -> list[Statement]:
        bodies = [e.body_at(body, stage.op.axis, indices) for body in stage.op.body]
        return store(e, stage, indices, bodies)

    return _plan("a thread for each element", subject, lambda: _thread_per_element(e, stage, element))


class Accumulators:
    """The places where a thread keeps the numbers that a reduction has combined so far."""

    def __init__(self, e: Emission, stage: Stage) -> None:
        self.e, self.stage = e, stage
        self.buffers = [_buffer("sum", 1, dtype, "local") for dtype in stage.dtypes]
        self.declared: list[Statement] = [tirx.AllocBuffer(buffer) for buffer in self.buffers]

    @property
    def values(self) -> list[Expression]:
        return [tirx.BufferLoad(buffer, [0]) for buffer in self.buffers]

    def clear(self) -> list[Statement]:
        identities = self.stage.op.body[0].combiner.identity_element
        return [tirx.BufferStore(buffer, i, [0]) for buffer, i in zip(self.buffers, identities, strict=True)]

    def add(self, right: Sequence[Expression]) -> list[Statement]:
        """Combine them with numbers that come later."""
        return assign(self.buffers, [0], combine_elements(self.e, self.stage, self.values, right))

    def step(self, indices: Sequence[Expression], steps: Sequence[Expression]) -> list[Statement]:
        """Combine them with the element at these indices."""
        return self.add(sources(self.e, self.stage, indices, steps))


def assign(buffers: Sequence[Any], at: Sequence[Any], values: Sequence[Expression]) -> list[Statement]:
    """All buffers := all values at once."""
    names = [tirx.Var("combined", value.ty) for value in values]
    return [
        *(tirx.Bind(name, value) for name, value in zip(names, values, strict=True)),
        *(tirx.BufferStore(buffer, name, at) for buffer, name in zip(buffers, names, strict=True)),
    ]


def _buffer(name: str, elements: int, dtype: str, scope: str) -> Any:
    return tirx.decl_buffer((elements,), dtype, name, scope=scope)


def _match_thread_each(e: Emission, subject: StageSubject) -> Plan | None:
    """Reductions."""
    stage = subject.stage
    if stage is None or not stage.is_reduction:
        return None

    def element(indices: list[Expression]) -> list[Statement]:
        sums = Accumulators(e, stage)
        steps = nested_loops(stage.reduced, e.index, lambda steps: sums.step(indices, steps))
        return [*sums.declared, *sums.clear(), *steps, *store(e, stage, indices, sums.values)]

    return _plan("a thread for each result", subject, lambda: _thread_per_element(e, stage, element))


def is_associative(combiner: Any) -> bool:
    """True if a reduction may surely be computed in parts: each result is a sum, a product and the like of the two
    elements, or a choice among them. Others, as the squares and products of a power by the bits of its exponent, are
    computed in their order."""
    pairs = list(zip(combiner.lhs, combiner.rhs, strict=True))
    return all(_is_plain(result, *pair) for result, pair in zip(combiner.result, pairs, strict=True))


_ASSOCIATIVE = (tirx.Add, tirx.Mul, tirx.Min, tirx.Max, tirx.And, tirx.Or)


def _is_plain(result: Expression, left: Any, right: Any) -> bool:
    if isinstance(result, _ASSOCIATIVE):
        return bool(
            (result.a.same_as(left) and result.b.same_as(right)) or (result.a.same_as(right) and result.b.same_as(left))
        )
    return _is_choice(result, left, right)


def _is_choice(result: Expression, left: Any, right: Any) -> bool:
    if isinstance(result, tirx.Select):
        return _is_choice(result.true_value, left, right) and _is_choice(result.false_value, left, right)
    if hasattr(result, "op") and is_choice(result):
        return all(_is_choice(part, left, right) for part in result.args[1:])
    return bool(result.same_as(left) or result.same_as(right))


def _match_block_each(e: Emission, subject: StageSubject) -> Plan | None:
    """Reductions of many elements, with few results."""
    stage = subject.stage
    if stage is None or not stage.is_reduction:
        return None
    reduced, results = volume(stage.reduced), volume(stage.extents)
    if not is_associative(stage.op.body[0].combiner):
        return None
    if _is_below(reduced, LONG) or (not _is_below(results, SERIAL) and _is_below(reduced, THREADS)):
        return None
    return _plan("many elements for each result: a block of threads", subject, lambda: _block_each(e, stage))


def _block_each(e: Emission, stage: Stage) -> Blocks:
    """A block for each result. Each thread combines neighbors if there are several results in one, such as a maximum
    with its place, where the order matters; otherwise each THREADS-th, so that neighboring threads read neighbors. Then
    the threads' results are combined in a tree."""
    count, total = volume(stage.reduced), volume(stage.extents)
    threads = THREADS
    while threads > 32 and _is_below(count, threads // 2 + 1):
        threads //= 2
    thread, block = indices_of_thread()
    t = cast(thread, e.index)
    rounds = parts(count, threads)
    indices = _indices(cast(block, e.index), stage, e)
    sums = Accumulators(e, stage)

    def block_statements(i: Expression) -> list[Statement]:
        at = i * threads + t if len(stage.dtypes) == 1 else t * number(rounds, e.index) + i
        body = sums.step(indices, unravel_index(at, stage.reduced, e.index))
        return body if _divides(threads, count) else [guarded_statement(at < number(count, e.index), body)]

    shared = [_buffer("shared", threads, dtype, "shared") for dtype in stage.dtypes]
    here = [tirx.BufferLoad(buffer, [thread]) for buffer in shared]
    statements = [*sums.declared, *(tirx.AllocBuffer(buffer) for buffer in shared), *sums.clear()]
    statements += loop(rounds, e.index, block_statements)
    statements += [tirx.BufferStore(b, v, [thread]) for b, v in zip(shared, sums.values, strict=True)]
    distance = 1
    while distance < threads:
        there = [tirx.BufferLoad(buffer, [thread + distance]) for buffer in shared]
        combined = assign(shared, [thread], combine_elements(e, stage, here, there))
        even = tirx.indexmod(thread, tirx.const(2 * distance, "int32")).equal(tirx.const(0, "int32"))
        statements += [barrier(), guarded_statement(even, combined)]
        distance *= 2
    statements.append(guarded_statement(thread.equal(tirx.const(0, "int32")), store(e, stage, indices, here)))
    return Blocks(statements, thread, block, threads, total)


@attrs.frozen
class Tile:
    """The part of a product that a block computes: `size` rows and columns, of which each thread has `each` by `each`,
    with `depth` terms of the sums in shared memory at once."""

    size: int
    each: int
    depth: int = 16

    @property
    def pitch(self) -> int:
        """The elements between two terms in shared memory: one more than there are, so that neighboring threads find
        neighboring rows, and also neighboring terms, in different banks."""
        return self.size + 1


SMALL, MIDDLE, LARGE = Tile(32, 2), Tile(64, 4), Tile(128, 8)

MANY_TILES = 64
"""Large tiles from which on they keep a GPU busy: it has about a hundred multiprocessors."""


def tile(rows: Extent, columns: Extent, outer: Extent) -> Tile:
    """The tile of a product. Larger ones read each number more often from shared memory and registers."""
    if not isinstance(rows, int) or not isinstance(columns, int):
        return MIDDLE
    large = parts(rows, LARGE.size) * parts(columns, LARGE.size)
    if min(rows, columns) >= LARGE.size and (not isinstance(outer, int) or large * outer >= MANY_TILES):
        return LARGE
    return MIDDLE if min(rows, columns) > SMALL.size else SMALL


def _match_product(e: Emission, subject: StageSubject) -> Plan | None:
    """Sums of products whose factors go along rows and columns, each used several times."""
    found = None if subject.stage is None else factors(e, subject.stage)
    if found is None:
        return None
    rows, columns, _, outer = (volume([d for _, d in part]) for part in found.parts)
    chosen = tile(rows, columns, outer)
    reason = f"tiles of {chosen.size} x {chosen.size}, of which {chosen.depth} terms are in shared memory"
    return _plan(reason, subject, lambda: _product(e, found, chosen))


def _runs_along(e: Emission, factor: Expression, axes: Axes) -> bool:
    """True if neighbors along the last of these axes are neighbors in the memory of a factor."""
    reads = e.memory_reads(factor)
    return bool(axes) and bool(reads) and all(i and mentions(i[-1], axes[-1][0]) for _, i in reads)


def _product(e: Emission, product: Factors, tile: Tile) -> Blocks:
    """A block for each tile. Its threads fetch the factors of some terms together, neighbors in memory by neighboring
    threads, then each has `each` by `each` sums."""
    stage, across = product.stage, tile.size // tile.each
    threads = across * across
    thread, block = indices_of_thread()
    rows, columns, terms, outer = (volume([d for _, d in part]) for part in product.parts)
    row_tiles, column_tiles = parts(rows, tile.size), parts(columns, tile.size)
    batch, row_tile, column_tile = unravel_index(cast(block, e.index), (outer, row_tiles, column_tiles), e.index)
    t = cast(thread, e.index)
    own_row, own_column = unravel_index(t, (across, across), e.index)
    dtype = stage.dtypes[0]
    left, right = (_buffer(name, tile.pitch * tile.depth, dtype, "shared") for name in ("left", "right"))
    sums = _buffer("sum", tile.each * tile.each, dtype, "local")
    own = [_buffer(name, tile.each, dtype, "local") for name in ("row", "column")]
    batch_values = product.values(product.outer, batch, e)

    def fetch(into: Any, factor: Expression, axes: Any, size: Extent, first: Expression, chunk: Expression) -> Any:
        by_line = _runs_along(e, factor, axes) and not _runs_along(e, factor, product.inner)

        def fetch_element(i: Expression) -> list[Statement]:
            if by_line:
                depth, line = unravel_index(i * threads + t, (tile.depth, tile.size), e.index)
            else:
                line, depth = unravel_index(i * threads + t, (tile.size, tile.depth), e.index)
            place = depth * tile.pitch + line
            at, term = first * tile.size + line, chunk * tile.depth + depth
            values = {**batch_values, **product.values(axes, at, e), **product.values(product.inner, term, e)}
            there = tirx.And(at < number(size, e.index), term < number(terms, e.index))
            element = cast(e.element(factor, values), dtype)
            return [
                tirx.BufferStore(into, tirx.const(0, dtype), [place]),
                guarded_statement(there, [tirx.BufferStore(into, element, [place])]),
            ]

        return loop(tile.size * tile.depth // threads, e.index, fetch_element)

    def accumulate(depth: Expression) -> list[Statement]:
        made = []
        for part, buffer, mine in zip(own, (left, right), (own_row, own_column), strict=True):
            for n in range(tile.each):
                value = tirx.BufferLoad(buffer, [depth * tile.pitch + mine + n * across])
                made.append(tirx.BufferStore(part, value, [n]))
        for r in range(tile.each):
            for c in range(tile.each):
                old = tirx.BufferLoad(sums, [r * tile.each + c])
                added = product.add(old, tirx.BufferLoad(own[0], [r]), tirx.BufferLoad(own[1], [c]))
                made.append(tirx.BufferStore(sums, added, [r * tile.each + c]))
        return made

    def chunk(number_: Expression) -> list[Statement]:
        return [
            *fetch(left, product.left, product.rows, rows, row_tile, number_),
            *fetch(right, product.right, product.columns, columns, column_tile, number_),
            barrier(),
            *loop(tile.depth, e.index, accumulate),
            barrier(),
        ]

    statements: list[Statement] = [tirx.AllocBuffer(buffer) for buffer in (left, right, sums, *own)]
    statements += [tirx.BufferStore(sums, tirx.const(0, dtype), [n]) for n in range(tile.each * tile.each)]
    statements += loop(parts(terms, tile.depth), e.index, chunk)
    for r in range(tile.each):
        for c in range(tile.each):
            row, column = row_tile * tile.size + own_row + r * across, column_tile * tile.size + own_column + c * across
            values = {**batch_values, **product.values(product.rows, row, e)}
            values |= product.values(product.columns, column, e)
            result = [tirx.BufferLoad(sums, [r * tile.each + c])]
            stored = store(e, stage, [values[axis] for axis in stage.axes], result)
            there = tirx.And(row < number(rows, e.index), column < number(columns, e.index))
            statements.append(guarded_statement(there, stored))
    return Blocks(statements, thread, block, threads, outer * row_tiles * column_tiles)


def _match_statement(e: Emission, subject: StageSubject) -> Plan | None:
    """Loops that operators bring along: sorts, scans, scatters, random numbers."""
    if subject.stage is not None:
        return None
    found = nests(subject.op.body)
    single = all(not nest.variables for nest in found)
    reason = "the operator's own loops" + (": one thread" if single else ", those with independent rounds on threads")

    def emit() -> list[Statement]:
        subject.made = [_statement(e, subject.op, nest) for nest in found]
        return [statement for made in subject.made for statement in made.statements]

    return Plan(reason, emit)


def _statement(e: Emission, op: Any, nest: Nest) -> Blocks:
    """A nest of a te.extern."""
    pairs = [(b, e.places[t.op, int(t.value_index)]) for b, t in zip(op.input_placeholders, op.inputs, strict=True)]
    pairs += [(b, e.places[op, n]) for n, b in enumerate(op.output_placeholders)]
    declared = [tirx.DeclBuffer(buffer, data=place.buffer.data) for buffer, place in pairs]
    thread, block = indices_of_thread()
    if not nest.variables:
        return Blocks([*declared, nest.body], thread, block, 1, 1)
    count, threads = nest.threads, THREADS
    if isinstance(count, int):
        threads = min(threads, max(32, -(-count // 32) * 32))
    position = cast(block, e.index) * threads + cast(thread, e.index)
    body = nest.at(position, e.index)
    if not _divides(threads, count):
        body = guarded_statement(position < number(count, e.index), [body])
    return Blocks([*declared, body], thread, block, threads, parts(count, threads))


RULES = Table(
    (
        Rule("statement", 50, _match_statement),
        Rule("tiled_product", 40, _match_product),
        Rule("block_reduction", 30, _match_block_each),
        Rule("thread_reduction", 20, _match_thread_each),
        Rule("elements", 10, _match_elements),
    )
)
"""The kernels of stages."""
