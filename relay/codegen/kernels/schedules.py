"""Schedules: loops for the te stages of a kernel.

Elementwise stages become part of their readers. The other stages are kept in memory, in clusters. One of the rules in
`KERNEL_RULES` combines the clusters: those that have their first axes in common, as the rows of a softmax, share the
loops over these. A single cluster gets the loops of one of `CLUSTER_RULES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relay.codegen.kernels.clusters import Cluster, KernelSteps, LoneCluster, Step, clusters
from relay.codegen.kernels.elementwise import pointwise, transposed_access
from relay.codegen.kernels.elementwise.pointwise import elements, outer_axes
from relay.codegen.kernels.emission import ConstantOperand, Decision, Emission, Place, key
from relay.codegen.kernels.gemm.packing import Packing
from relay.codegen.kernels.gemm.recognition import recognize
from relay.codegen.kernels.loops import loop, nested_loops, shared_loop, unravel_index
from relay.codegen.kernels.reduction.reductions import goes_along_columns, goes_together, reduce
from relay.codegen.kernels.registers import with_registers
from relay.codegen.kernels.rules import Family, Plan, Rule, Table
from relay.codegen.kernels.stage import (
    Extent,
    extent,
    has_equal_extents,
    in_order,
    is_compute,
    is_one,
    loads,
    stage_of,
    volume,
    with_fresh_names,
)
from relay.codegen.tvm.tir import Expression, Statement, tirx

__all__ = [
    "ConstantOperand",
    "Decision",
    "Emission",
    "Packing",
    "Place",
    "emit",
    "extent",
    "key",
    "materialized_operations",
    "volume",
    "with_fresh_names",
    "with_registers",
]


def emit(e: Emission, outputs: Sequence[Any], wanted: Sequence[Any] = ()) -> list[Statement]:
    """The loops that compute tensors. `e` knows where they and their inputs are. The `wanted` operations are computed
    once for each place, in any case."""
    results = {output.op: None for output in outputs}
    ops = [op for op in in_order(outputs) if ((op, 0) not in e.places and (op, 0) not in e.values) or op in results]
    kept = {
        **materialized_operations(ops, results, e.in_blocks),
        **dict.fromkeys(op for op in ops if any(op.same_as(w) for w in wanted)),
    }
    steps = _steps(e, [op for op in ops if op in kept], results)
    remembered = _temporary_operations(e, steps, results)
    if len(steps) == 1:
        return _one_by_one(e, KernelSteps(steps, remembered))
    return KERNEL_RULES.emit(e, KernelSteps(steps, remembered))


_MOST_READS = 1024  # of one element: stages that read their own inputs several times multiply them


def materialized_operations(
    ops: Sequence[Any], results: Mapping[Any, None], in_blocks: Sequence[Any] = ()
) -> dict[Any, None]:
    """The operations that are computed once: results, reductions, and what these read if others read it, too, or if
    they read each element often; and what statements read and write; and what others read so many times that computing
    it at each place would be more than `_MOST_READS` reads. Those `in_blocks` are in the memory of blocks."""
    readers: dict[Any, list[Any]] = {}
    for op in ops:
        for tensor in {t.op: t for t in op.input_tensors}.values():
            readers.setdefault(tensor.op, []).append(op)
    kept: dict[Any, None] = {}
    costs: dict[Any, int] = {}
    for op in ops:
        consumers = readers.get(op, [])
        if is_compute(op) and not op.reduce_axis:
            read = [tensor.op for body in op.body for tensor, _ in loads(body)]
            if sum(costs.get(other, 1) for other in read) > _MOST_READS:
                for other in read:
                    if costs.pop(other, 1) > 1:
                        kept[other] = None
            costs[op] = 1 if op in in_blocks else max(sum(costs.get(other, 1) for other in read), 1)
        if (
            op in results
            or not is_compute(op)
            or op.reduce_axis
            or op.num_outputs > 1
            or any(not is_compute(c) for c in consumers)
            or (len(consumers) > 1 and any(is_compute(c) and c.reduce_axis for c in consumers))
            or (not _moves_only(op) and any(_is_product(c) for c in consumers))
        ):
            kept[op] = None
    return {op: None for op in kept if op in results or op not in in_blocks}


def _moves_only(op: Any) -> bool:
    """True if an operation only moves data (or has no operands)."""
    body = op.body[0]
    while isinstance(body, tirx.Cast):
        body = body.value
    return any(True for _ in loads(body)) is False or getattr(getattr(body, "op", None), "name", "") == "te.tensor_load"


def _is_product(op: Any) -> bool:
    return bool(is_compute(op) and op.reduce_axis and isinstance(op.body[0].source[0], tirx.Mul))


def _steps(e: Emission, ops: Sequence[Any], results: Mapping[Any, None]) -> list[Step]:
    """The stages in clusters, in order."""
    for op in ops:  # what is kept has a place from here on; where, is decided later
        for n in range(op.num_outputs):
            tensor = op.output(n)
            e.places.setdefault((op, n), Place(None, tuple(map(extent, tensor.shape))))
    return clusters(e, ops, {op: stage_of(op) if is_compute(op) else None for op in ops}, results)


def _temporary_operations(e: Emission, steps: Sequence[Step], results: Mapping[Any, None]) -> list[Any]:
    """The operations whose results the kernel keeps in memory: those that other clusters read."""
    where = {op: n for n, step in enumerate(steps) for op in _ops(step)}
    read: set[Any] = set()
    for n, step in enumerate(steps):
        if isinstance(step, Cluster):
            found = [tensor.op for stage in step.stages for tensor, _ in e.reads(stage)]
        else:
            found = [tensor.op for tensor in step.input_tensors]
        read.update(op for op in found if where.get(op, n) != n)
    several = [op for op in where if op.num_outputs > 1 or not is_compute(op)]
    return [op for op in where if (op in read or op in several) and op not in results]


def _ops(step: Step) -> list[Any]:
    return [stage.op for stage in step.stages] if isinstance(step, Cluster) else [step]


# ---- the rules for a whole kernel


def _match_one_by_one(e: Emission, subject: KernelSteps) -> Plan | None:
    """Anything."""
    return Plan("they differ: each by itself", lambda: _one_by_one(e, subject))


def _one_by_one(e: Emission, subject: KernelSteps) -> list[Statement]:
    """Loops for each step."""
    statements: list[Statement] = []
    for step in subject.steps:
        statements += _memory(e, step, subject.remembered, 0, None)
        if isinstance(step, Cluster):
            statements += CLUSTER_RULES.emit(e, LoneCluster.make(e, step))
        else:
            e.decisions.append(Decision("statement", str(step.name), "the operator brings loops of its own"))
            statements += _statement(e, step)
    return statements


def _match_short_rows(e: Emission, subject: KernelSteps) -> Plan | None:
    """Stages whose common axes are short rows."""
    count = _common_axes(e, subject.steps)
    if not count:
        return None
    from relay.codegen.kernels.reduction import short_rows

    found = short_rows.recognize(e, subject.steps, count, subject.remembered)
    return None if found is None else short_rows.plan(e, found)


def _match_common(e: Emission, subject: KernelSteps) -> Plan | None:
    """Stages with their first axes in common."""
    count = _common_axes(e, subject.steps)
    if not count:
        return None
    axes = "axis is" if count == 1 else f"{count} axes are"
    reason = f"their first {axes} the same: row by row"
    return Plan(reason, lambda: _nest(e, subject.steps, count, subject.remembered))


def _common_axes(e: Emission, steps: Sequence[Step]) -> int:
    """The number of first axes that several stages have in common, so that all can be computed within loops over
    these."""
    if len(steps) < 2 or not all(isinstance(step, Cluster) for step in steps):
        return 0
    stages = [stage for step in steps for stage in step.stages]
    if any(recognize(e, stage) for stage in stages if stage.is_reduction):
        return 0
    made = {s.op for s in stages}
    count = min(len(s.extents) for s in stages)
    for stage in stages:
        shared_axes = 0
        while shared_axes < count and has_equal_extents([stage.extents[shared_axes]], [stages[0].extents[shared_axes]]):
            shared_axes += 1
        count = min(count, shared_axes)
        for tensor, indices in e.reads(stage):
            if tensor.op in made:
                matching = 0
                while matching < count and (
                    indices[matching].same_as(stage.axes[matching]) or is_one(stage.extents[matching])
                ):
                    matching += 1
                count = min(count, matching)
    columns = [
        s for s in stages
        if s.is_reduction and len(s.extents) == count and goes_along_columns(e, s)
    ]  # fmt: skip
    if columns:  # their last axis is to be vectorized
        count -= 1
    return 0 if all(is_one(x) for x in stages[0].extents[:count]) else count


def _nest(e: Emission, steps: Sequence[Cluster], count: int, remembered: Sequence[Any]) -> list[Statement]:
    """The stages within loops over their first axes."""
    extents = steps[0].lead.extents[:count]
    work: Extent = 0
    for step in steps:
        work = step.lead.work if isinstance(work, int) and work == 0 else work + step.lead.work
    places = dict(e.places)

    def row(indices: Sequence[Expression], part: Expression) -> list[Statement]:
        statements: list[Statement] = []
        for step in steps:
            statements += _memory(e, step, remembered, count, part)
        for step in steps:
            statements += reduce(e, step, indices) if step.reductions else elements(e, step.whole, indices)
        e.places.clear()
        e.places.update(places)
        return statements

    def part(number_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        return loop(end - begin, e.index, lambda i: row(unravel_index(begin + i, extents, e.index), number_))

    def serial_loop() -> list[Statement]:
        return nested_loops(extents, e.index, lambda indices: row(indices, tirx.const(0, "int32")))

    return shared_loop(volume(extents), work, e.threads, e.index, part, serial_loop)


def _memory(
    e: Emission, step: Step, remembered: Sequence[Any], skipped: int, part: Expression | None
) -> list[Statement]:
    """Give what a step computes a place in memory, where it needs one."""
    statements: list[Statement] = []
    for op in _ops(step):
        if op not in remembered:
            continue
        for n in range(op.num_outputs):
            tensor = op.output(n)
            dims = tuple(map(extent, tensor.shape))[skipped:]
            e.places[op, n], made = e.scratch((op, n), str(tensor.dtype), dims, part, skipped)
            statements += made
    return statements


# ---- the rules for single clusters


def _match_rows(e: Emission, subject: LoneCluster) -> Plan | None:
    """Anything."""
    return Plan("its first axes are loops, the others vectors", lambda: _rows(e, subject.cluster))


def _rows(e: Emission, step: Cluster) -> list[Statement]:
    """A cluster row by row."""
    lead = step.lead
    if step.reductions:
        count = len(lead.extents) - (goes_along_columns(e, lead) or goes_together(e, step))
    else:
        count = outer_axes(e, step.whole)

    def row(indices: Sequence[Expression]) -> list[Statement]:
        return reduce(e, step, indices) if step.reductions else elements(e, step.whole, indices)

    extents = lead.extents[:count]
    if not extents:
        return row(())

    def part(_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        return loop(end - begin, e.index, lambda i: row(unravel_index(begin + i, extents, e.index)))

    return shared_loop(
        volume(extents), lead.work, e.threads, e.index, part, lambda: nested_loops(extents, e.index, row)
    )


def _statement(e: Emission, op: Any) -> list[Statement]:
    """The statement of a te.extern, on its operands in memory."""
    statements: list[Statement] = []
    for tensor in op.inputs:
        if key(tensor) in e.values:  # statements read memory
            buffer, made = e.local_elements(str(tensor.dtype), 1)
            statements += [*made, tirx.BufferStore(buffer, e.values[key(tensor)], [0])]
            e.places[key(tensor)] = Place(buffer, (1,) * len(tensor.shape))
    pairs = [(b, e.places[key(t)]) for b, t in zip(op.input_placeholders, op.inputs, strict=True)]
    pairs += [(b, e.places[op, n]) for n, b in enumerate(op.output_placeholders)]
    for buffer, place in pairs:
        statements.append(tirx.DeclBuffer(buffer, data=place.buffer.data))
    return [*statements, op.body]


# ---- the tables


def _combining_rules() -> Sequence[Rule[KernelSteps]]:
    from relay.codegen.kernels.elementwise import blocks

    return blocks.RULE, Rule("short_common_rows", 20, _match_short_rows), Rule("common_rows", 10, _match_common)


def _product_rules() -> Sequence[Rule[LoneCluster]]:
    from relay.codegen.kernels.gemm import gemv, product, skinny_gemm, winograd

    return winograd.RULE, skinny_gemm.RULE, gemv.RULE, product.RULE, product.SYMBOLIC_RULE


def _tiled_rules() -> Sequence[Rule[LoneCluster]]:
    from relay.codegen.kernels.elementwise import by_hand

    return (by_hand.RULE,)


def _reduction_rules() -> Sequence[Rule[LoneCluster]]:
    from relay.codegen.kernels.reduction import row_groups, short_rows, tree_reduction

    return short_rows.RULE, row_groups.RULE, tree_reduction.RULE


KERNEL_RULES = Table(
    (Rule("one_by_one", 0, _match_one_by_one),), Family(lambda kernel: len(kernel.steps) > 1, _combining_rules)
)
"""The rules that combine the clusters of a kernel."""

CLUSTER_RULES = Table(
    (pointwise.RULE, transposed_access.RULE, Rule("rows", 0, _match_rows)),
    Family(lambda subject: subject.is_tiled, _tiled_rules),
    Family(lambda subject: subject.product is not None, _product_rules),
    Family(lambda subject: bool(subject.cluster.reductions), _reduction_rules),
)
"""The loops of a cluster by itself."""
