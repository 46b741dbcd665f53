"""The kernels of stages with recomputation: a block of threads for some rows, which goes once over all terms."""

from __future__ import annotations

from typing import Any

from relay.codegen.cuda.rules.blocks import (
    Blocks,
    StageSubject,
    barrier,
    finished,
    guarded_statement,
    indices_of_thread,
    parts,
    plan_of,
    store,
    thread_buffer,
)
from relay.codegen.cuda.rules.lines import Lines
from relay.codegen.cuda.rules.products import Axes, add_product, axis_values
from relay.codegen.cuda.rules.recomputation import ROWS, SHARE, THREADS, InnerProduct, Recomputation
from relay.codegen.cuda.rules.reductions import Accumulators
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import cast, loop, number, unravel_index
from relay.codegen.kernels.reduction.reductions import sources
from relay.codegen.kernels.rules import Plan
from relay.codegen.kernels.stage import volume
from relay.codegen.tvm.tir import Expression, Statement, tirx


def match_recomputation(e: Emission, subject: StageSubject) -> Plan | None:
    """Stages that read products which are never in memory."""
    found = subject.fused
    if not isinstance(found, Recomputation) or (terms := found.part()) is None:
        return None
    count = len(found.inner)
    reason = f"{count} product{'s' * (count > 1)} computed again, {terms} terms at a time, for {ROWS} rows"
    kernel = _ProductKernel if found.computed is not None else _ReductionKernel
    return plan_of(reason, subject, lambda: kernel(e, subject, found, terms).blocks())


class _Kernel:
    """A kernel with `count` terms in shared memory at once. Thread t has each SHARE-th term of row t / SHARE."""

    def __init__(self, e: Emission, subject: StageSubject, found: Recomputation, count: int) -> None:
        self.e, self.subject, self.found, self.count = e, subject, found, count
        self.thread, self.block = indices_of_thread()
        self.t = cast(self.thread, e.index)
        self.own, self.lane = unravel_index(self.t, (ROWS, SHARE), e.index)
        self.row_lines = [Lines(f"row{n}", p.dtype, ROWS, p.depth, p.depth + 1) for n, p in enumerate(found.inner)]
        self.term_lines = [Lines(f"term{n}", p.dtype, count, p.depth, p.depth + 1) for n, p in enumerate(found.inner)]
        self.dots = [thread_buffer(f"dot{n}", 1, p.dtype, "local") for n, p in enumerate(found.inner)]
        ((_, self.rows),), ((_, self.terms),) = found.rows, found.terms
        outer = volume([d for _, d in found.outer])
        tiles = parts(self.rows, ROWS)
        batch, tile = unravel_index(cast(self.block, e.index), (outer, tiles), e.index)
        self.first, self.row = tile * ROWS, tile * ROWS + self.own
        self.batch = axis_values(found.outer, batch, e)
        self.blocks_count = outer * tiles

    def blocks(self) -> Blocks:
        declared = [*(lines.buffer for lines in (*self.row_lines, *self.term_lines)), *self.dots]
        statements: list[Statement] = [tirx.AllocBuffer(buffer) for buffer in declared]
        statements += self.start()
        for lines, inner in zip(self.row_lines, self.found.inner, strict=True):
            statements += self._fetch(lines, inner.of_row, self.found.rows, inner.axes, self.first)
        statements += loop(parts(self.terms, self.count), self.e.index, self._part)
        statements += self.end()
        return Blocks(statements, self.thread, self.block, THREADS, self.blocks_count)

    def start(self) -> list[Statement]:
        """Declare and clear what is summed up."""
        raise NotImplementedError

    def fetch_more(self, first: Expression) -> list[Statement]:
        """Bring what else a part of the terms needs to shared memory."""
        return []

    def use(self, term: Expression, local: Expression) -> list[Statement]:
        """Use the inner products of this row and a term, whose number in its part is `local`."""
        raise NotImplementedError

    def add(self) -> list[Statement]:
        """Use what all threads have made of the terms of a part."""
        return []

    def end(self) -> list[Statement]:
        """Store the results."""
        raise NotImplementedError

    def _fetch(
        self, into: Lines, factor: Expression, of_lines: Axes, along: Axes, first: Expression
    ) -> list[Statement]:
        """Bring lines of a factor to shared memory, from `first` on."""
        e = self.e

        def element(line: Expression, at: Expression) -> Expression:
            values = {**self.batch, **axis_values(of_lines, line, e), **axis_values(along, at, e)}
            return e.element(factor, values)

        return into.fetch(e, self.t, THREADS, (first, volume([d for _, d in of_lines])), element)

    def _part(self, part: Expression) -> list[Statement]:
        """Take some terms."""
        first = part * self.count
        made = [barrier()]
        for lines, inner in zip(self.term_lines, self.found.inner, strict=True):
            made += self._fetch(lines, inner.of_term, self.found.terms, inner.axes, first)
        made += [*self.fetch_more(first), barrier()]
        for n in range(self.count // SHARE):
            local = self.lane + n * SHARE
            made += [s for p, inner in enumerate(self.found.inner) for s in self._dot(p, inner, local)]
            made += self._with_products(first + local, local)
        return [*made, *self.add()]

    def _dot(self, position: int, inner: InnerProduct, local: Expression) -> list[Statement]:
        """Compute the inner product of this row and a term."""
        sum_, rows, terms = self.dots[position], self.row_lines[position], self.term_lines[position]

        def add(depth: Expression) -> list[Statement]:
            left, right = rows.at(self.own, depth), terms.at(local, depth)
            made = add_product(tirx.BufferLoad(sum_, [0]), left, right)
            return [tirx.BufferStore(sum_, made, [0])]

        cleared = tirx.BufferStore(sum_, tirx.const(0, inner.dtype), [0])
        return [cleared, *loop(inner.depth, self.e.index, add)]

    def _with_products(self, term: Expression, local: Expression) -> list[Statement]:
        names = [tirx.Var(f"product{n}", inner.dtype) for n, inner in enumerate(self.found.inner)]
        for name, inner in zip(names, self.found.inner, strict=True):
            self.e.values[inner.op, 0] = name
        used = self.use(term, local)
        for inner in self.found.inner:
            del self.e.values[inner.op, 0]
        bound = [tirx.Bind(name, tirx.BufferLoad(dot, [0])) for name, dot in zip(names, self.dots, strict=True)]
        return [*bound, *used]

    def is_there(self, term: Expression) -> Expression:
        """True for a row and a term that there are."""
        return tirx.And(self.row < number(self.rows, self.e.index), term < number(self.terms, self.e.index))

    def values(self, term: Expression) -> dict[Any, Expression]:
        """The values of the stage's axes for this row and a term."""
        found, e = self.found, self.e
        return {**self.batch, **axis_values(found.rows, self.row, e), **axis_values(found.terms, term, e)}


class _ReductionKernel(_Kernel):
    """A reduction. Each thread combines its terms, then the first thread of a row those of all that share it."""

    def start(self) -> list[Statement]:
        self.sums = Accumulators(self.e, self.found.stage)
        (dtype,) = self.found.stage.dtypes
        self.shared = thread_buffer("shared", THREADS, dtype, "shared")
        return [*self.sums.declared, tirx.AllocBuffer(self.shared), *self.sums.clear()]

    def use(self, term: Expression, local: Expression) -> list[Statement]:
        stage, values = self.found.stage, self.values(term)
        indices, steps = [values[axis] for axis in stage.axes], [values[axis] for axis in stage.reduced_axes]
        return [guarded_statement(self.is_there(term), self.sums.add(sources(self.e, stage, indices, steps)))]

    def end(self) -> list[Statement]:
        stage, values = self.found.stage, self.values(tirx.const(0, self.e.index))
        made: list[Statement] = [tirx.BufferStore(self.shared, self.sums.values[0], [self.t]), barrier()]
        combined = [s for n in range(1, SHARE) for s in self.sums.add([tirx.BufferLoad(self.shared, [self.t + n])])]
        stored = store(self.e, stage, [values[axis] for axis in stage.axes], self.sums.values)
        is_first = tirx.And(self.lane.equal(tirx.const(0, self.e.index)), self.row < number(self.rows, self.e.index))
        return [*made, guarded_statement(is_first, [*combined, *stored])]


class _ProductKernel(_Kernel):
    """A product. The factor that is computed of a part is in shared memory; each thread has each SHARE-th column."""

    def start(self) -> list[Statement]:
        found = self.found
        (dtype,) = found.stage.dtypes
        self.columns = [self.lane + n * SHARE for n in range(-(-found.width // SHARE))]
        self.computed = thread_buffer("computed", ROWS * (self.count + 1), dtype, "shared")
        self.other = Lines("other", dtype, self.count, found.width, found.width)
        self.sums = thread_buffer("sum", len(self.columns), dtype, "local")
        buffers = self.computed, self.other.buffer, self.sums
        cleared = [tirx.BufferStore(self.sums, tirx.const(0, dtype), [n]) for n in range(len(self.columns))]
        return [*(tirx.AllocBuffer(buffer) for buffer in buffers), *cleared]

    def fetch_more(self, first: Expression) -> list[Statement]:
        return self._fetch(self.other, self.found.other, self.found.terms, self.found.columns, first)

    def use(self, term: Expression, local: Expression) -> list[Statement]:
        place = self.own * (self.count + 1) + local
        element = self.e.element(self.found.computed, self.values(term))
        return [
            tirx.BufferStore(self.computed, tirx.const(0, self.found.stage.dtypes[0]), [place]),
            guarded_statement(self.is_there(term), [tirx.BufferStore(self.computed, element, [place])]),
        ]

    def add(self) -> list[Statement]:
        def add_term(n: Expression) -> list[Statement]:
            factor = tirx.BufferLoad(self.computed, [self.own * (self.count + 1) + n])
            made = []
            for at, column in enumerate(self.columns):
                total = add_product(tirx.BufferLoad(self.sums, [at]), factor, self.other.at(n, column))
                added = [tirx.BufferStore(self.sums, total, [at])]
                whole = (at + 1) * SHARE <= self.found.width
                made += added if whole else [guarded_statement(column < self.found.width, added)]
            return made

        return [barrier(), *loop(self.count, self.e.index, add_term)]

    def end(self) -> list[Statement]:
        made: list[Statement] = []
        stage = self.found.stage
        for at, column in enumerate(self.columns):
            values = {**self.values(tirx.const(0, self.e.index)), **axis_values(self.found.columns, column, self.e)}
            indices = [values[axis] for axis in stage.axes]
            stored = finished(self.e, self.subject, indices, tirx.BufferLoad(self.sums, [at]))
            there = tirx.And(self.row < number(self.rows, self.e.index), column < self.found.width)
            made.append(guarded_statement(there, stored))
        return made


__all__ = ["match_recomputation"]
