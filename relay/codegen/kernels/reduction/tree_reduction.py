"""Tree reduction to single numbers: each thread combines a part, then the parts are combined in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.codegen.kernels.clusters import Cluster, LoneCluster
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import PARALLEL_WORK, cast, choose_by_work, loop, shared_loop
from relay.codegen.kernels.reduction.reductions import (
    Finish,
    along_rows,
    are_plain,
    combine_elements,
    dtypes_of,
    finish,
    is_long,
    reduce,
    registers_of,
    runs_along,
    width_of,
)
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.kernels.stage import Extent, is_one
from relay.codegen.tvm.tir import Expression, Statement, tirx


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Reductions to single numbers, shared among threads if there is enough to do."""
    cluster = subject.cluster
    if not cluster.reductions:
        return None
    lead, zero = cluster.lead, tirx.const(0, e.index)
    step = width_of(e, cluster) if len(lead.reduced) == 1 else 1
    if e.threads == 1 or not all(map(is_one, lead.extents)) or not are_plain(e, cluster):
        return None
    if not is_long(lead.reduced[-1]) or not runs_along(e, lead, lead.reduced_axes[-1]):
        return None
    if isinstance(lead.reduced[0], int) and lead.reduced[0] < 2 * step * e.threads:
        return None
    indices = [zero for _ in lead.extents]
    return Plan(
        f"single numbers: each of {e.threads} threads combines a part",
        lambda: in_parts(
            *(e, cluster, lead.reduced[0], step),
            lambda begin, end, keep: along_rows(e, cluster, (), [indices], keep, (begin, end)),
            lambda: reduce(e, cluster, ()),
        ),
    )


def in_parts(
    e: Emission,
    cluster: Cluster,
    total: Extent,
    step: int,
    part: Callable[[Expression, Expression, Finish], list[Statement]],
    serial: Callable[[], list[Statement]],
) -> list[Statement]:
    """`part(begin, end, keep)` on each thread, and then the results of all combined; `serial()` if there is little to
    do. There are at least two steps for each thread, if the number is known."""
    parts, statements = [], []
    for stage, dtype in zip(cluster.reductions, dtypes_of(cluster), strict=True):
        place, made_ = e.scratch((stage.op, "parts"), dtype, (e.threads,), None, 0)
        parts.append(place.buffer)
        statements += made_

    def on_thread(number_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        def keep(_: Sequence[Expression], results: Sequence[Expression]) -> list[Statement]:
            at_ = cast(number_, e.index)
            return [tirx.BufferStore(buffer, result, [at_]) for buffer, result in zip(parts, results, strict=True)]

        return part(begin, end, keep)

    def parallel() -> list[Statement]:
        shares = shared_loop(total, PARALLEL_WORK, e.threads, e.index, on_thread, list, step)
        totals, made_ = registers_of(e, cluster, 1)

        def add(number_: Expression) -> list[Statement]:
            return [
                tirx.BufferStore(
                    t, combine_elements(e, s, [tirx.BufferLoad(t, [0])], [tirx.BufferLoad(b, [number_])])[0], [0]
                )
                for s, t, b in zip(cluster.reductions, totals, parts, strict=True)
            ]

        indices = [tirx.const(0, e.index) for _ in cluster.lead.extents]
        results = finish(e, cluster, ())(indices, [tirx.BufferLoad(total_, [0]) for total_ in totals])
        return [*statements, *shares, *made_, *loop(e.threads, e.index, add), *results]

    return choose_by_work(cluster.lead.work, PARALLEL_WORK, parallel, serial)


RULE = Rule("tree_reduction", 30, match)
