"""Schedules of kernels for CPUs: a function of te stages becomes one of loops that vectorise.

Stages without a reduction are inlined into their consumers. Then each stage that is left is scheduled by what it is: a
product of matrices or a convolution (`matmul`), another reduction (`reduction`), or neither (`elementwise`).
"""

from __future__ import annotations

from typing import Any

from tvm.s_tir import Schedule

from relay.codegen.schedules import elementwise, matmul, reduction
from relay.codegen.schedules.stage import Stage, stages

__all__ = ["schedule"]


def schedule(function: Any, threads: int) -> Any:
    """The function of te stages, scheduled."""
    s = Schedule(function)
    _inline(s)
    found = stages(s)
    handled: set[str] = set()
    for stage in found:
        if stage.is_reduction and stage.vectorises:
            epilogue = _epilogue(s, stage, found)
            attempt = s.copy()
            try:
                handled |= matmul.apply(s, stage, epilogue, threads) or reduction.apply(s, stage, epilogue, threads)
            except RuntimeError:  # of which TVM's errors are
                s = attempt  # plain loops are right, too
    for stage in found:
        if not stage.is_reduction and stage.name not in handled:
            elementwise.apply(s, stage, threads)
    return s.mod["main"]


def _inline(s: Any) -> None:
    """Inline what is computed elementwise, unless reductions would repeat it."""
    found = stages(s)
    for stage in found[:-1]:
        consumers = [c.name for c in found if stage.output in c.inputs]
        repeated = len(consumers) > 1 and any(c.is_reduction for c in found if c.name in consumers)
        if not stage.is_reduction and not repeated:
            try:
                s.compute_inline(s.get_sblock(stage.name))
            except RuntimeError:
                continue


def _epilogue(s: Any, stage: Stage, found: list[Stage]) -> Stage | None:
    """The only consumer of a reduction, if it goes over the same elements one by one."""
    consumers = [c for c in found if stage.output in c.inputs]
    if len(consumers) != 1 or consumers[0].is_reduction or consumers[0].spatial != stage.spatial:
        return None
    return consumers[0] if consumers[0].reads_elementwise(stage.output) and consumers[0].vectorises else None
