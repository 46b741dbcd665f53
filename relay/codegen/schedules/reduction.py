"""Sums, maxima and the like: accumulators in registers, vectorised along whichever axis runs through memory."""

from __future__ import annotations

import math
from typing import Any

from relay.codegen.schedules.elementwise import share
from relay.codegen.schedules.stage import PARALLEL_WORK, Stage, lanes, largest_divisor
from relay.codegen.tir import STACK_BYTES

LONG = 32  # reduced elements from which splitting them into lanes pays
VERY_LONG = 2048  # from which several vectors of lanes pay


def apply(s: Any, stage: Stage, epilogue: Stage | None, threads: int) -> set[str]:
    """Schedule a reduction; returns the names of the stages that are done. Raises RuntimeError if TVM refuses."""
    if stage.outputs != 1:
        return set()
    if stage.spatial and stage.spatial[-1] > 1 and _runs_through(stage, len(stage.spatial) - 1):
        return _along_columns(s, stage, epilogue, threads)
    if _runs_through(stage, len(stage.variables) - 1) and stage.reduced[-1] >= LONG:
        _along_rows(s, stage, threads)
    return set()


def _runs_through(stage: Stage, axis: int) -> bool:
    """Whether the largest input is read along an axis."""
    if not stage.accesses:
        return False
    _, index = max(stage.accesses, key=lambda access: len(access[1]))
    return stage.follows(index, axis)


def _along_columns(s: Any, stage: Stage, epilogue: Stage | None, threads: int) -> set[str]:
    """Several columns at once, down all rows."""
    block = s.get_sblock(stage.name)
    copy = s.cache_write(block, 0, "global") if epilogue is None else s.get_sblock(epilogue.name)
    width = largest_divisor(stage.spatial[-1], min(4 * lanes(stage), STACK_BYTES // stage.itemsize - 1))
    loops = s.get_loops(copy)
    outer, inner = s.split(loops[-1], [None, width])
    s.compute_at(block, outer, preserve_unit_loops=True)
    count = len(s.get_loops(copy)) - 1
    own = s.get_loops(block)[count:]
    rows, columns = own[len(stage.spatial) :], own[: len(stage.spatial)]
    s.reorder(*rows, *columns)
    s.vectorize(s.get_loops(block)[-1])
    s.vectorize(inner)
    if threads > 1 and stage.work >= PARALLEL_WORK:
        share(s, s.get_loops(copy)[:-1], threads)
    s.decompose_reduction(block, s.get_loops(block)[-len(own)])
    return {stage.name} | ({epilogue.name} if epilogue is not None else set())


def _along_rows(s: Any, stage: Stage, threads: int) -> None:
    """Each lane takes a part of a row, then the lanes are combined."""
    block = s.get_sblock(stage.name)
    loops = s.get_loops(block)
    several = 4 if math.prod(stage.reduced) >= VERY_LONG else 1
    width = largest_divisor(stage.reduced[-1], min(several * lanes(stage), STACK_BYTES // stage.itemsize - 1))
    if width < 4:
        return
    _, inner = s.split(loops[-1], [None, width])
    count, reduced = len(stage.spatial), len(stage.reduced)
    partial = s.rfactor(inner, count)
    if count:  # makes new loops, in the order of the axes: first the lanes
        s.compute_at(partial, s.get_loops(block)[count - 1], preserve_unit_loops=True)
        lane, *rest = s.get_loops(partial)[count:]
        s.reorder(*rest, lane)
    s.vectorize(s.get_loops(partial)[-1])
    if threads > 1 and stage.work >= PARALLEL_WORK and count:
        share(s, s.get_loops(block)[:count], threads)
    s.decompose_reduction(partial, s.get_loops(partial)[-reduced - 1])
