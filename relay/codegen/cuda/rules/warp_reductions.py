"""Reductions of one block of threads: a warp for each result.

The lanes of a warp combine each 32nd element, which are neighbors, then exchange what they have: log2(32) times, each
with a lane that is 1, 2, 4, 8, 16 lanes away. All operators that are taken are commutative, so that all lanes get the
same bits.
"""

from __future__ import annotations

from typing import Any

from relay.codegen.cuda.rules.blocks import (
    Blocks,
    StageSubject,
    divides,
    element_indices,
    guarded_statement,
    indices_of_thread,
    is_below,
    parts,
    plan_of,
    store,
)
from relay.codegen.cuda.rules.products import runs_along
from relay.codegen.cuda.rules.reductions import Accumulators, is_associative
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import cast, loop, number, unravel_index
from relay.codegen.kernels.rules import Plan
from relay.codegen.kernels.stage import Stage, volume
from relay.codegen.tvm.tir import Expression, Statement, tirx

WARP = 32

_EXCHANGED = {"int32", "int64", "float32", "float64"}
"""The dtypes that the lanes of a warp exchange."""


def match_warp_reduction(e: Emission, subject: StageSubject) -> Plan | None:
    """Reductions of neighbors in memory, and of many elements for few results."""
    stage = subject.stage
    if stage is None or not stage.is_reduction or len(stage.dtypes) != 1 or stage.dtypes[0] not in _EXCHANGED:
        return None
    if is_below(volume(stage.reduced), WARP) or not is_associative(stage.op.body[0].combiner):
        return None
    axes = tuple(zip(stage.reduced_axes, stage.reduced, strict=True))
    few = is_below(volume(stage.extents), subject.threads // WARP + 1)
    if not few and not runs_along(e, stage.op.body[0].source[0], axes):
        return None
    return plan_of("a warp for each result", subject, lambda: _warp_each(e, stage, subject.threads))


def _warp_each(e: Emission, stage: Stage, threads: int) -> Blocks:
    count, results, warps = volume(stage.reduced), volume(stage.extents), threads // WARP
    thread, block = indices_of_thread()
    warp, lane = unravel_index(cast(thread, e.index), (warps, WARP), e.index)
    result = cast(block, e.index) * warps + warp
    indices = element_indices(result, stage, e)
    sums = Accumulators(e, stage)

    def combine(i: Expression) -> list[Statement]:
        at = i * WARP + lane
        body = sums.step(indices, unravel_index(at, stage.reduced, e.index))
        return body if divides(WARP, count) else [guarded_statement(at < number(count, e.index), body)]

    statements = [*sums.declared, *sums.clear(), *loop(parts(count, WARP), e.index, combine)]
    distance = 1
    while distance < WARP:
        statements += sums.add([_of_lane(value, distance) for value in sums.values])
        distance *= 2
    last = [lane.equal(tirx.const(0, e.index)), result < number(results, e.index)]
    body = [*statements, guarded_statement(last[0], store(e, stage, indices, sums.values))]
    if not divides(warps, results):  # a warp has a result as a whole
        body = [guarded_statement(last[1], body)]
    return Blocks(body, thread, block, threads, parts(results, warps))


def _of_lane(value: Any, distance: int) -> Expression:
    """The value that the lane so far away has."""
    every = tirx.const(-1, "int32")
    return tirx.call_pure_extern(str(value.ty), "__shfl_xor_sync", every, value, tirx.const(distance, "int32"))


__all__ = ["WARP", "match_warp_reduction"]
