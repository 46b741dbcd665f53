"""Elementwise stages that are computed one behind the other, block by block.

    for each block of x: e[..] = exp(x[block]); y[block] = tanh(e[..])

One loop would have two polynomials in each round, whose steps wait for each other, and a processor finds fewer rounds
to do meanwhile: tanh(exp(x)) takes 1.5 times as long as two loops. Two loops over everything would write e to memory
and read it again. A block of e stays in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relay.codegen.schedules.clusters import Cluster, Step, stands_in_place
from relay.codegen.schedules.elementwise import made
from relay.codegen.schedules.emission import Emission, Place
from relay.codegen.schedules.loops import cast, loop, number, shared
from relay.codegen.schedules.stage import Extent, Stage, same, volume
from relay.codegen.tir import STACK_BYTES, Expression, Statement, tirx

VECTORS = (STACK_BYTES - 1) // 64
"""The vectors of a block: as many as arrays on the stack have room for. Half as many take a tenth longer."""


def in_blocks(e: Emission, steps: Sequence[Step], remembered: Sequence[Any]) -> list[Statement] | None:
    """Clusters of elementwise stages over the same elements, in blocks; None if they are something else. Those in
    `remembered` have no memory but for a block."""
    parts = [step.whole for step in steps if isinstance(step, Cluster) and not step.reductions]
    if len(steps) < 2 or len(parts) < len(steps) or not _go_together(e, [s for part in parts for s in part]):
        return None
    stages = [stage for part in parts for stage in part]
    total = volume(stages[0].extents)
    width = min(e.lanes(dtype) for stage in stages for dtype in stage.dtypes)
    buffers: dict[Any, Any] = {}
    allocations: list[Statement] = []
    for stage in stages:
        if stage.op in remembered:
            buffers[stage.op], statements = e.local(stage.dtypes[0], VECTORS * width)
            allocations += statements
            e.places[stage.op, 0] = Place(buffers[stage.op], stage.extents)

    def run(extent: Callable[[Body], list[Statement]], begin: Expression) -> list[Statement]:
        """Each part in a loop of its own, from one position on."""
        statements: list[Statement] = []
        for position, part in enumerate(parts):
            before = [s.op for p in parts[:position] for s in p if s.op in buffers]

            def at(local: Expression, part: Sequence[Stage] = part, before: Sequence[Any] = before) -> list[Statement]:
                known = {(op, 0): tirx.BufferLoad(buffers[op], [local]) for op in before}
                e.values.update(known)
                made_ = _elements(e, part, begin + local, local, buffers)
                for name in known:
                    del e.values[name]
                return made_

            statements += extent(at)
        return statements

    def over(begin: Expression, extent: Extent) -> list[Statement]:
        """All blocks of so many elements."""
        vectors = _quotient(extent, width, e.index)
        blocks = _quotient(vectors + (VECTORS - 1), VECTORS, e.index)

        def block(i: Expression) -> list[Statement]:
            left = number(vectors, e.index) - i * VECTORS
            whole = isinstance(vectors, int) and vectors % VECTORS == 0
            count = VECTORS if whole else tirx.min(left, tirx.const(VECTORS, e.index))
            return run(
                lambda at: loop(
                    count, e.index, lambda j: loop(width, e.index, lambda v: at(j * width + v), "VECTORIZED")
                ),
                begin + i * (VECTORS * width),
            )

        whole = vectors * width
        rest = run(
            lambda at: loop(extent - whole, e.index, at, "VECTORIZED" if isinstance(extent, int) else "SERIAL"),
            begin + whole,
        )
        return [*loop(blocks, e.index, block), *rest]

    zero = tirx.const(0, e.index)
    return shared(
        *(total, total, e.threads, e.index),
        lambda _, begin, end: [*allocations, *over(begin, end - begin)],
        lambda: [*allocations, *over(zero, total)],
        step=VECTORS * width,
    )


Body = Callable[[Expression], list[Statement]]


def _go_together(e: Emission, stages: Sequence[Stage]) -> bool:
    """Whether stages have the same elements, each made of the same element of the others, in vectors."""
    ops = {stage.op for stage in stages}
    return all(
        stage.op.num_outputs == 1
        and bool(stage.extents)
        and same(stage.extents, stages[0].extents)
        and str(stage.dtypes[0]) not in ("bool", "bfloat16")
        and e.vectorises(stage.op.body)
        and all(stands_in_place(stage, indices) for tensor, indices in e.reads(stage) if tensor.op in ops)
        and e.flat(stage, ()) is not None
        for stage in stages
    )


def _elements(
    e: Emission, part: Sequence[Stage], position: Expression, local: Expression, buffers: dict[Any, Any]
) -> list[Statement]:
    """Compute and store an element of each stage of a part: at its position, or at that in the block."""

    def element(stage: Stage) -> tuple[Expression, Expression]:
        value = e.flat(stage, ())
        assert value is not None
        return (local if stage.op in buffers else position), value(position)

    with made(e, part, element) as statements:
        return statements


def _quotient(extent: Extent, divisor: int, dtype: str) -> Extent:
    if isinstance(extent, int):
        return extent // divisor
    return tirx.indexdiv(cast(extent, dtype), tirx.const(divisor, dtype))
