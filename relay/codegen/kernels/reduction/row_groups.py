"""Row groups: reductions of the rows of a matrix that are combined with the same vector, several at once.

    for groups of `TOGETHER` rows:                          shared among threads
        for columns: sums[row] += combine(left[row, column], vector[column]), for each row of the group

The vector is read once for each group, and the sums do not wait for each other.
"""

from __future__ import annotations

from relay.codegen.kernels.clusters import Cluster, LoneCluster
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import shared_loop
from relay.codegen.kernels.reduction.reductions import TOGETHER, goes_together, joint_rows
from relay.codegen.kernels.rules import Plan, Rule
from relay.codegen.tvm.tir import Expression, Statement, tirx


def match(e: Emission, subject: LoneCluster) -> Plan | None:
    """Reductions of the rows of a matrix that are combined with the same vector."""
    cluster = subject.cluster
    if not cluster.reductions or len(cluster.lead.extents) != 1 or not goes_together(e, cluster):
        return None
    reason = f"rows are combined with the same vector: {TOGETHER} at once"
    return Plan(reason, lambda: _statements(e, cluster))


def _statements(e: Emission, cluster: Cluster) -> list[Statement]:
    """A reduction of the rows of a matrix, several at once."""
    (count,) = cluster.lead.extents

    def part(_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        return joint_rows(e, cluster, (), begin, end - begin)

    def serial_loop() -> list[Statement]:
        return joint_rows(e, cluster, (), tirx.const(0, e.index), count)

    return shared_loop(count, cluster.lead.work, e.threads, e.index, part, serial_loop, step=TOGETHER)


RULE = Rule("row_groups", 40, match)
