"""Stages without reductions: one vectorised loop over all elements, or the innermost loop vectorised."""

from __future__ import annotations

import math
from typing import Any

from relay.codegen.schedules.stage import PARALLEL_WORK, Stage, lanes


def apply(s: Any, stage: Stage, threads: int) -> None:
    """Vectorise; share among threads if there is enough work."""
    loops = s.get_loops(s.get_sblock(stage.name))
    if not loops:
        return
    if stage.is_elementwise and len(loops) > 1:
        loops = [s.fuse(*loops)]
    if stage.vectorises:
        vectorise(s, loops[-1], lanes(stage))
    outer = s.get_loops(s.get_sblock(stage.name))[:-1] or loops
    if threads > 1 and stage.work >= PARALLEL_WORK and outer:
        share(s, outer, threads)


def vectorise(s: Any, loop: Any, width: int) -> None:
    """A loop as vectors, if its extent allows it; LLVM does what is left."""
    extent = int(s.get(loop).extent)
    if extent <= 1:
        return
    if extent % width == 0:
        s.vectorize(s.split(loop, [None, width])[1])
    elif extent <= 2 * width:
        s.vectorize(loop)
    elif extent % (width // 2) == 0:
        s.vectorize(s.split(loop, [None, width // 2])[1])


def share(s: Any, loops: list[Any], threads: int) -> None:
    """Give each thread a part of these (outer, adjacent) loops."""
    fused = s.fuse(*loops) if len(loops) > 1 else loops[0]
    extent = math.prod([int(s.get(fused).extent)])
    parts = next((p for p in range(threads, 1, -1) if extent % p == 0), None)
    if parts is None:
        s.parallel(fused)
    else:
        s.parallel(s.split(fused, [parts, None])[0])
