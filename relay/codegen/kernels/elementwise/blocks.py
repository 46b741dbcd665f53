"""Blocked elementwise stages: one after the other, block by block; the last one may be summed.

    for each block of x: e[..] = exp(x[block]); y[block] = tanh(e[..])
    for each block of x: e[..] = exp(x[block]); total[lane] += tanh(e[..])

One loop would have two polynomials in each round, whose steps wait for each other, and a processor finds fewer rounds
to do meanwhile: tanh(exp(x)) takes 1.5 times as long as two loops. Two loops over everything would write e to memory
and read it again. A block of e stays in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.codegen.kernels.clusters import Cluster, KernelSteps, stands_in_place
from relay.codegen.kernels.elementwise.pointwise import computed_elements
from relay.codegen.kernels.emission import Emission, Place
from relay.codegen.kernels.loops import cast, loop, number, shared_loop
from relay.codegen.kernels.reduction.reductions import (
    Finish,
    are_plain,
    combine_elements,
    finish,
    reduce_lanes,
    registers_of,
)
from relay.codegen.kernels.reduction.tree_reduction import in_parts
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.kernels.stage import Extent, Stage, has_equal_extents, is_one, volume
from relay.codegen.tvm.tir import STACK_BYTES, Expression, Statement, tirx

VECTORS = (STACK_BYTES - 1) // 64
"""The vectors of a block: as many as arrays on the stack have room for. Half as many take a tenth longer."""


def match(e: Emission, subject: KernelSteps) -> Plan | None:
    """Clusters of elementwise stages over the same elements."""
    steps = subject.steps
    combining = steps[-1] if steps and isinstance(steps[-1], Cluster) and steps[-1].reductions else None
    elementwise = steps if combining is None else steps[:-1]
    parts = [step.whole for step in elementwise if isinstance(step, Cluster) and not step.reductions]
    stages = [stage for part in parts for stage in part]
    if len(steps) < 2 or len(parts) < len(elementwise) or not _go_together(e, stages):
        return None
    if combining is not None and not _combines(e, combining, stages):
        return None
    reason = "over the same elements: block by block, which stays in the nearest cache"
    return Plan(reason, lambda: _in_blocks(e, parts, combining, subject.remembered))


def _in_blocks(
    e: Emission, parts: Sequence[Sequence[Stage]], combining: Cluster | None, remembered: Sequence[Any]
) -> list[Statement]:
    """The parts, and then a reduction, in blocks. The stages in `remembered` have no memory but for a block."""
    stages = [stage for part in parts for stage in part]
    loops = len(parts) + (combining is not None)
    total = volume(stages[0].extents)
    width = min(e.lanes(dtype) for stage in stages for dtype in stage.dtypes)
    buffers: dict[Any, Any] = {}
    allocations: list[Statement] = []
    for stage in stages:
        if stage.op in remembered:
            buffers[stage.op], statements = e.local_elements(stage.dtypes[0], VECTORS * width)
            allocations += statements
            e.places[stage.op, 0] = Place(buffers[stage.op], stage.extents)

    def run(extent: Callable[[Body], list[Statement]], begin: Expression, into: Sequence[Any]) -> list[Statement]:
        """A loop for each part, from one position on; the last one may go into totals."""
        statements: list[Statement] = []
        for position in range(loops):
            before = [s.op for p in parts[:position] for s in p if s.op in buffers]

            def part_statements(
                local: Expression, lane: Expression, position: int = position, before: Sequence[Any] = before
            ) -> list[Statement]:
                known = {(op, 0): tirx.BufferLoad(buffers[op], [local]) for op in before}
                e.values.update(known)
                if position < len(parts):
                    made_ = _elements(e, parts[position], begin + local, local, buffers)
                else:
                    assert combining is not None
                    made_ = _accumulate_totals(e, combining, into, begin + local, lane)
                for name in known:
                    del e.values[name]
                return made_

            statements += extent(part_statements)
        return statements

    def block_loops(begin: Expression, extent: Extent, totals: Sequence[Any], rests: Sequence[Any]) -> list[Statement]:
        """All blocks of this many elements."""
        vectors = _quotient(extent, width, e.index)
        blocks = _quotient(vectors + (VECTORS - 1), VECTORS, e.index)

        def block(i: Expression) -> list[Statement]:
            left = number(vectors, e.index) - i * VECTORS
            whole = isinstance(vectors, int) and vectors % VECTORS == 0
            count = VECTORS if whole else tirx.min(left, tirx.const(VECTORS, e.index))
            return run(
                lambda at: loop(
                    count, e.index, lambda j: loop(width, e.index, lambda v: at(j * width + v, v), "VECTORIZED")
                ),
                begin + i * (VECTORS * width),
                totals,
            )

        whole = vectors * width
        rest = run(
            lambda at: loop(
                extent - whole, e.index, lambda v: at(v, v), "VECTORIZED" if isinstance(extent, int) else "SERIAL"
            ),
            begin + whole,
            rests,
        )
        return [*loop(blocks, e.index, block), *rest]

    zero = tirx.const(0, e.index)
    if combining is None:
        return shared_loop(
            *(total, total, e.threads, e.index),
            lambda _, begin, end: [*allocations, *block_loops(begin, end - begin, (), ())],
            lambda: [*allocations, *block_loops(zero, total, (), ())],
            step=VECTORS * width,
        )
    cluster = combining

    def combined_from(begin: Expression, extent: Extent, keep: Finish) -> list[Statement]:
        totals, cleared = registers_of(e, cluster, width)
        rests, cleared_too = registers_of(e, cluster, width)
        made_ = [*allocations, *cleared, *cleared_too, *block_loops(begin, extent, totals, rests)]
        results = []
        for stage, whole, rest in zip(cluster.reductions, totals, rests, strict=True):
            made_ += reduce_lanes(e, stage, [whole], [rest], width, width)
            results.append(tirx.Var("result", stage.dtypes[0]))
            made_.append(tirx.Bind(results[-1], tirx.BufferLoad(rest, [0])))
        return [*made_, *keep([zero for _ in cluster.lead.extents], results)]

    if e.threads == 1 or (isinstance(total, int) and total < 2 * VECTORS * width * e.threads):
        return combined_from(zero, total, finish(e, cluster, ()))
    return in_parts(
        *(e, cluster, total, VECTORS * width),
        lambda begin, end, keep: combined_from(begin, end - begin, keep),
        lambda: combined_from(zero, total, finish(e, cluster, ())),
    )


Body = Callable[[Expression, Expression], list[Statement]]
"""Makes the element at a place in a block, and the lane of vectors that it is in."""


def _go_together(e: Emission, stages: Sequence[Stage]) -> bool:
    """True if stages have the same elements, each made of the same element of the others, in vectors."""
    ops = {stage.op for stage in stages}
    return all(
        stage.op.num_outputs == 1
        and bool(stage.extents)
        and has_equal_extents(stage.extents, stages[0].extents)
        and str(stage.dtypes[0]) not in ("bool", "bfloat16")
        and e.vectorizes(stage.op.body)
        and all(stands_in_place(stage, indices) for tensor, indices in e.reads(stage) if tensor.op in ops)
        and e.flat(stage, ()) is not None
        for stage in stages
    )


@attrs.frozen(eq=False)
class _ReductionSource:
    """The elements that a reduction combines, as a separate operation."""

    body: tuple[Expression, ...]


def _source(stage: Stage) -> Stage:
    """The elements that a reduction combines, as a stage over them."""
    axes, extents = (*stage.axes, *stage.reduced_axes), (*stage.extents, *stage.reduced)
    return Stage(_ReductionSource(tuple(stage.op.body[0].source)), axes, extents, (), ())


def _combines(e: Emission, cluster: Cluster, stages: Sequence[Stage]) -> bool:
    """True if a cluster reduces all elements to one number, in vectors, and has no other result."""
    ops = {stage.op for stage in stages}
    if cluster.whole or not all(map(is_one, cluster.lead.extents)) or not are_plain(e, cluster):
        return False
    for stage in cluster.reductions:
        condition, source = stage.op.body[0].condition, _source(stage)
        if not (isinstance(condition, tirx.IntImm) and int(condition.value)) or str(stage.dtypes[0]) == "bool":
            return False
        if str(stage.dtypes[0]) == "bfloat16" or not has_equal_extents(stage.reduced, stages[0].extents):
            return False
        if e.lanes(stage.dtypes[0]) != min(e.lanes(s.dtypes[0]) for s in stages) or e.flat(source, ()) is None:
            return False
        for tensor, indices in e.memory_reads(source.op.body[0]):
            places = zip(indices, stage.reduced_axes, stage.reduced, strict=True)
            if tensor.op in ops and not all(i.same_as(axis) or is_one(size) for i, axis, size in places):
                return False
    return True


def _accumulate_totals(
    e: Emission, cluster: Cluster, totals: Sequence[Any], position: Expression, lane: Expression
) -> list[Statement]:
    """The elements at a position, in a lane of the totals."""
    statements = []
    for stage, total in zip(cluster.reductions, totals, strict=True):
        value = e.flat(_source(stage), ())
        assert value is not None
        (result,) = combine_elements(e, stage, [tirx.BufferLoad(total, [lane])], [value(position)])
        statements.append(tirx.BufferStore(total, result, [lane]))
    return statements


def _elements(
    e: Emission, part: Sequence[Stage], position: Expression, local: Expression, buffers: dict[Any, Any]
) -> list[Statement]:
    """Compute and store an element of each stage of a part: at its position, or at that in the block."""

    def element(stage: Stage) -> tuple[Expression, Expression]:
        value = e.flat(stage, ())
        assert value is not None
        return (local if stage.op in buffers else position), value(position)

    with computed_elements(e, part, element) as statements:
        return statements


def _quotient(extent: Extent, divisor: int, dtype: str) -> Extent:
    if isinstance(extent, int):
        return extent // divisor
    return tirx.indexdiv(cast(extent, dtype), tirx.const(divisor, dtype))


RULE = Rule("blocks", 30, match)
