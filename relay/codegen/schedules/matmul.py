"""Products of matrices: a tile of the result stays in registers while the reduced axis is run through.

    for tile rows, tile columns:          the epilogue's loops, split
        acc[rows, columns] = 0            on the stack, so in registers
        for k: acc += a[rows, k] * b[k, columns]      unrolled over rows, vectorised over columns
        out = epilogue(acc)

A right operand whose rows run along k is packed first, so that columns are next to each other.
"""

from __future__ import annotations

import math
from typing import Any

from relay.codegen.schedules.elementwise import share, vectorise
from relay.codegen.schedules.stage import Stage, lanes, largest_divisor
from relay.codegen.tir import STACK_BYTES

PARALLEL_PRODUCTS = 1 << 20  # multiplications from which a second thread pays
FEW_ROWS = 4  # rows below which packing the right operand costs more than it saves


def apply(s: Any, stage: Stage, epilogue: Stage | None, threads: int) -> set[str]:
    """Schedule a product; returns the names of the stages that are done, none if the stage is no product worth it.

    Raises RuntimeError if TVM refuses.
    """
    if stage.outputs != 1 or len(stage.accesses) != 2 or not stage.spatial:
        return set()
    columns = len(stage.spatial) - 1
    moving = [n for n, (_, index) in enumerate(stage.accesses) if _depends(index, stage.variables[columns])]
    if len(moving) != 1 or stage.spatial[columns] < 4:
        return set()
    right = moving[0]
    rows = math.prod(stage.spatial[:columns])
    contiguous = stage.follows(stage.accesses[right][1], columns)
    if not contiguous and (rows < FEW_ROWS or len(stage.accesses[right][1]) != 2):
        return set()
    block = s.get_sblock(stage.name)
    if not contiguous:
        packed = s.cache_read(block, right, "global")
        s.transform_layout(block, ("read", right), lambda j, k: (k, j))
        s.reorder(*reversed(s.get_loops(packed)))
        vectorise(s, s.get_loops(packed)[-1], lanes(stage))
    copy = s.cache_write(block, 0, "global") if epilogue is None else s.get_sblock(epilogue.name)
    height = largest_divisor(stage.spatial[-2], 8) if len(stage.spatial) > 1 else 1
    width = _width(stage, height)
    if len(stage.spatial) > 1:
        height = largest_divisor(stage.spatial[-2], min(8, (STACK_BYTES - 1) // (width * stage.itemsize)))
    loops = s.get_loops(copy)
    column_tiles, column = s.split(loops[-1], [None, width])
    if len(stage.spatial) > 1:
        row_tiles, row = s.split(loops[-2], [None, height])
        s.reorder(row_tiles, column_tiles, row, column)
        s.unroll(row)
    s.vectorize(column)
    s.compute_at(block, column_tiles, preserve_unit_loops=True)
    own = s.get_loops(block)[-len(stage.variables) :]
    s.reorder(*own[len(stage.spatial) :], *own[: len(stage.spatial)])
    order = s.get_loops(block)
    s.vectorize(order[-1])
    for loop in order[-len(stage.spatial) : -1]:
        s.unroll(loop)
    if threads > 1 and stage.work >= PARALLEL_PRODUCTS:
        share(s, s.get_loops(copy)[: len(stage.spatial)], threads)
    s.decompose_reduction(block, s.get_loops(block)[-len(stage.variables)])
    return {stage.name} | ({epilogue.name} if epilogue is not None else set())


def _depends(index: tuple[Any, ...], variable: Any) -> bool:
    return any(i.same_as(variable) for i in index)


def _width(stage: Stage, height: int) -> int:
    """Columns of a tile: whole vectors if possible, as many as the registers hold."""
    extent, whole = stage.spatial[-1], lanes(stage)
    for vectors in (4, 2, 1) if height < 4 else (2, 1):
        if extent % (vectors * whole) == 0:
            return vectors * whole
    return largest_divisor(extent, 2 * whole)
