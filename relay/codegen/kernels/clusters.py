"""Clusters: the stages of a kernel that are computed in one nest of loops.

    e = exp(x); s = sum(e, axis=1); m = max(e, axis=1); y = 2 * e; r = 1 / s

Here one nest of loops over the elements of x makes e and y and adds up s and m, and after its inner loop makes r. A
cluster is such a nest. Its stages read each other at the place of the loops only, so a number that is computed there is
in a register for the stages after it; numbers that others read, too, are stored.

The space of a cluster has an axis for each axis of its elementwise stages (`whole`). A reduction goes over that space
if it reads a tensor of that space, each axis with another one of its loops; this reading is its `order`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from relay.codegen.kernels.emission import Emission, key
from relay.codegen.kernels.gemm.recognition import Product, recognize
from relay.codegen.kernels.stage import Extent, Stage, extent, has_equal_extents, is_one
from relay.codegen.tvm.tir import Expression, tirx

Order: TypeAlias = "tuple[int | None, ...]"
"""For each axis of a space the loop of a reduction, by its position among all; None for an axis of one element."""


@attrs.define(eq=False)
class Cluster:
    """Stages in one nest of loops: elementwise ones over the whole space, the reductions of it, and what is computed
    from each of the reductions' results. Each part is in the order of computation, and may be empty."""

    whole: list[Stage] = attrs.field(factory=list)
    reductions: list[Stage] = attrs.field(factory=list)
    results: list[Stage] = attrs.field(factory=list)
    order: Order | None = None  # of the reductions, where there are elementwise stages beside them, or several

    @property
    def stages(self) -> list[Stage]:
        return [*self.whole, *self.reductions, *self.results]

    @property
    def lead(self) -> Stage:
        """The stage whose axes are the loops."""
        return self.reductions[0] if self.reductions else self.whole[0]

    def point(self, indices: Sequence[Expression], steps: Sequence[Expression]) -> list[Any]:
        """The indices in the whole space that the reductions are at."""
        assert self.order is not None
        loops = [*indices, *steps]
        return [0 if position is None else loops[position] for position in self.order]


@attrs.frozen(eq=False)
class LoneCluster:
    """A cluster that shares no loops with others, what schedule rules look at. `product`: its reduction, if it is a
    product. `is_tiled`: the program asks for blocks."""

    cluster: Cluster
    product: Product | None
    is_tiled: bool = False

    @classmethod
    def make(cls, e: Emission, cluster: Cluster) -> LoneCluster:
        """The subject for a cluster."""
        product = recognize(e, cluster.lead) if cluster.reductions else None
        return cls(cluster, product, e.schedule is not None and bool(e.schedule.tile))

    def __str__(self) -> str:
        lead = self.cluster.lead
        space = " x ".join(map(str, lead.extents)) or "1"
        return f"{space} over {' x '.join(map(str, lead.reduced))}" if lead.reduced else space


Step: TypeAlias = "Cluster | Any"
"""A cluster, or a te.extern."""


@attrs.frozen(eq=False)
class KernelSteps:
    """The steps of a kernel: all that it computes, in order, for schedule rules. `remembered`: the operations whose
    results the kernel keeps in memory."""

    steps: Sequence[Step]
    remembered: Sequence[Any]

    def __str__(self) -> str:
        return f"{len(self.steps)} loops"


IN_EPILOGUE = 2
"""The number of polynomials that may be computed from each element of a product of symbolic size in its loop. There the
epilogue is a loop of its own, and LLVM keeps constants of it in registers from before the product's: with those of more
polynomials the product's sums are on the stack, and it takes two to three times as long."""


def clusters(
    e: Emission, ops: Sequence[Any], stages: Mapping[Any, Stage | None], results: Mapping[Any, None]
) -> list[Step]:
    """The operations, each after those that it reads, in few clusters. Operations other than te.compute have no stage.

    Reductions go together with elementwise stages only where one of these is a result: a row that only the kernel reads
    is in the nearest cache, and loops that do less keep more in registers.
    """
    steps: list[Step] = []
    where: dict[Any, int] = {}
    for op in ops:
        stage = stages[op]
        if stage is None:
            where[op] = len(steps)
            steps.append(op)
            continue
        reads = [(tensor, indices) for tensor, indices in e.reads(stage)]
        first = max((where[tensor.op] for tensor, _ in reads if tensor.op in where), default=0)
        for position in range(len(steps) - 1, first - 1, -1):
            step = steps[position]
            if isinstance(step, Cluster) and _joins(e, step, stage, reads, results):
                where[op] = position
                break
        else:
            where[op] = len(steps)
            steps.append(Cluster(reductions=[stage]) if stage.is_reduction else Cluster(whole=[stage]))
    return steps


Reads: TypeAlias = "Sequence[tuple[Any, tuple[Any, ...]]]"


def _joins(e: Emission, cluster: Cluster, stage: Stage, reads: Reads, results: Mapping[Any, None]) -> bool:
    """Let a stage join a cluster, if it can."""
    if any(s.op.num_outputs != 1 for s in (stage, *cluster.stages)):
        return False
    if e.has_names(stage.op.body) and any(e.has_names(other.op.body) for other in cluster.stages):
        return False  # one loop has not registers enough for two polynomials
    if stage.is_reduction:
        if cluster.whole and not any(other.op in results for other in cluster.whole):
            return False
        return _reduces(e, cluster, stage, reads)
    if not cluster.reductions:
        return _stands_beside(e, cluster, stage, reads)
    return _finishes(e, cluster, stage, reads) or (stage.op in results and _accompanies(e, cluster, stage, reads))


def _made_by(stages: Sequence[Stage], reads: Reads) -> list[tuple[Any, ...]]:
    """The indices at which stages are read."""
    ops = {stage.op for stage in stages}
    return [indices for tensor, indices in reads if tensor.op in ops]


def stands_in_place(stage: Stage, indices: Sequence[Any]) -> bool:
    """True if a tensor of a stage's space is read at the stage's own place."""
    return len(indices) == len(stage.axes) and all(
        index.same_as(axis) or is_one(size)
        for index, axis, size in zip(indices, stage.axes, stage.extents, strict=True)
    )


def _stands_beside(e: Emission, cluster: Cluster, stage: Stage, reads: Reads) -> bool:
    """An elementwise stage among others."""
    if not stage.extents or not has_equal_extents(stage.extents, cluster.lead.extents):
        return False
    if not all(stands_in_place(stage, indices) for indices in _made_by(cluster.whole, reads)):
        return False
    if e.vectorizes(stage.op.body) != e.vectorizes(cluster.lead.op.body):
        return False
    cluster.whole.append(stage)
    return True


def _finishes(e: Emission, cluster: Cluster, stage: Stage, reads: Reads) -> bool:
    """An elementwise stage that is computed from the results of reductions."""
    results = _made_by([*cluster.reductions, *cluster.results], reads)
    if not results or not has_equal_extents(stage.extents, cluster.lead.extents) or _made_by(cluster.whole, reads):
        return False
    if not all(stands_in_place(stage, indices) for indices in results) or not e.vectorizes(stage.op.body):
        return False
    symbolic = not all(isinstance(size, int) for size in cluster.lead.extents)
    if symbolic and e.polynomials(stage.op.body) > IN_EPILOGUE and recognize(e, cluster.lead) is not None:
        return False
    cluster.results.append(stage)
    return True


def _accompanies(e: Emission, cluster: Cluster, stage: Stage, reads: Reads) -> bool:
    """An elementwise stage over the elements that reductions go through."""
    if _made_by([*cluster.reductions, *cluster.results], reads) or _is_closed(e, cluster.lead):
        return False
    if not e.vectorizes(stage.op.body) or not _are_plain(e, cluster):
        return False
    shared = _readstands_in_place(stage, reads)
    for order in _orders(e, cluster, shared):
        if not has_equal_extents(stage.extents, _space(cluster.lead, order)):
            continue
        if all(stands_in_place(stage, indices) for indices in _made_by(cluster.whole, reads)):
            cluster.order = order
            cluster.whole.append(stage)
            return True
    return False


def _reduces(e: Emission, cluster: Cluster, stage: Stage, reads: Reads) -> bool:
    """A reduction of what a cluster computes, or of what it reads."""
    if _is_closed(e, stage) or not _is_plain(e, stage):
        return False
    if cluster.reductions:
        lead = cluster.lead
        if _is_closed(e, lead) or not _are_plain(e, cluster):
            return False
        if _made_by([*cluster.reductions, *cluster.results], reads):
            return False
        if not has_equal_extents(stage.extents, lead.extents) or not has_equal_extents(stage.reduced, lead.reduced):
            return False
    elif not all(e.vectorizes(s.op.body) for s in cluster.whole):
        return False
    known = {key(s.op.output(0)) for s in cluster.whole}
    shared = {*known, *(key(t) for s in cluster.whole for t in _readstands_in_place(s, e.reads(s)).values())}
    if cluster.reductions and not cluster.whole:
        shared = {key(t) for t, _ in e.reads(cluster.lead)}
    for tensor, indices in reads:
        order = _order(stage, tensor, indices)
        if order is None or key(tensor) not in shared:
            continue
        if cluster.whole and not has_equal_extents(_space(stage, order), cluster.whole[0].extents):
            continue
        found = cluster.order if not cluster.reductions or cluster.order is not None else None
        if cluster.reductions and found is None:
            found = next((o for o in _orders(e, cluster, {key(tensor): tensor}) if o == order), None)
        if found is not None and found != order:
            continue
        if cluster.reductions and found is None:
            continue
        if all(_order_of(stage, i, cluster.whole[0].extents) == order for i in _made_by(cluster.whole, reads)):
            cluster.order = order
            cluster.reductions.append(stage)
            return True
    return False


def _orders(e: Emission, cluster: Cluster, shared: dict[Any, Any]) -> Iterator[Order]:
    """The orders in which the reductions of a cluster may go through the elements of tensors."""
    if cluster.order is not None:
        yield cluster.order
        return
    for tensor, indices in e.reads(cluster.lead):
        order = _order(cluster.lead, tensor, indices)
        if order is not None and key(tensor) in shared:
            yield order


def _readstands_in_place(stage: Stage, reads: Reads) -> dict[Any, Any]:
    """The tensors of an elementwise stage's space that it reads where it is."""
    return {
        key(tensor): tensor
        for tensor, indices in reads
        if stands_in_place(stage, indices) and has_equal_extents(tuple(map(extent, tensor.shape)), stage.extents)
    }


def _order(stage: Stage, tensor: Any, indices: Sequence[Any]) -> Order | None:
    """The order in which a reduction goes through all elements of a tensor; None if it does not visit each once."""
    return _order_of(stage, indices, tuple(map(extent, tensor.shape)))


def _order_of(stage: Stage, indices: Sequence[Any], extents: Sequence[Extent]) -> Order | None:
    axes, sizes = [*stage.axes, *stage.reduced_axes], [*stage.extents, *stage.reduced]
    if len(indices) != len(extents):
        return None
    order: list[int | None] = []
    for index, size in zip(indices, extents, strict=True):
        if is_one(size):
            order.append(None)
            continue
        position = next((n for n, axis in enumerate(axes) if index.same_as(axis)), None)
        if position is None or position in order or not has_equal_extents((sizes[position],), (size,)):
            return None
        order.append(position)
    missing = [size for n, size in enumerate(sizes) if n not in order]
    return tuple(order) if all(map(is_one, missing)) else None


def _space(stage: Stage, order: Order) -> list[Extent]:
    sizes = [*stage.extents, *stage.reduced]
    return [1 if position is None else sizes[position] for position in order]


def _is_closed(e: Emission, stage: Stage) -> bool:
    """True if the loops of a reduction are those of a product, which reads each element several times."""
    return stage.is_reduction and recognize(e, stage) is not None


def _are_plain(e: Emission, cluster: Cluster) -> bool:
    return all(_is_plain(e, stage) for stage in cluster.reductions)


def _is_plain(e: Emission, stage: Stage) -> bool:
    """True if a reduction takes all elements, in vectors."""
    first = stage.op.body[0]
    always = isinstance(first.condition, tirx.IntImm) and bool(int(first.condition.value))
    return always and e.vectorizes([*first.source, *first.combiner.result])


__all__ = ["Cluster", "Step", "clusters", "stands_in_place"]
