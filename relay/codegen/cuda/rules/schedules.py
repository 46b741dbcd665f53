"""Schedules for GPUs: each stage that is kept in memory becomes a kernel, a function of one thread.

What is computed elementwise becomes part of what reads it, as on the processor. No rule uses atomic operations, and the
order in which numbers are combined depends on sizes alone, so equal calls give equal bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relay.codegen.cuda.rules.attention import NAME as ATTENTION
from relay.codegen.cuda.rules.attention_kernel import match_attention
from relay.codegen.cuda.rules.blocks import (
    ONE_BLOCK,
    THREADS,
    Blocks,
    Fused,
    StageSubject,
    barrier,
    divides,
    element_indices,
    guarded_statement,
    indices_of_thread,
    is_below,
    parts,
    plan_of,
    store,
    thread_buffer,
)
from relay.codegen.cuda.rules.distribution import Nest, nests
from relay.codegen.cuda.rules.epilogues import Epilogue
from relay.codegen.cuda.rules.recomputation import NAME as RECOMPUTATION
from relay.codegen.cuda.rules.recomputation_kernel import match_recomputation
from relay.codegen.cuda.rules.reductions import Accumulators, assign, is_associative
from relay.codegen.cuda.rules.tensor_cores import match_tensor_product
from relay.codegen.cuda.rules.tiled_products import match_tiled_product
from relay.codegen.cuda.rules.warp_reductions import match_warp_reduction
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import cast, loop, nested_loops, number, unravel_index
from relay.codegen.kernels.reduction.reductions import combine_elements
from relay.codegen.kernels.rules import Plan, Rule, Table
from relay.codegen.kernels.stage import Stage, is_compute, stage_of, volume
from relay.codegen.tvm.tir import Expression, Statement, tirx

LONG = 64
"""Reduced elements from which a block of threads for each result is faster than a thread."""

SERIAL = 4096
"""Results from which there are threads enough if each has a result of its own."""


def schedule(
    e: Emission, op: Any, epilogue: Epilogue | None = None, fused: Fused | None = None, one_block: bool = False
) -> list[Blocks]:
    """The kernels of a stage, one after another, of a product with its epilogue, or of a stage with the products that
    are `fused` into it; none if there is nothing to compute. `one_block`: for a block of threads that computes all."""
    subject = StageSubject(op, stage_of(op) if is_compute(op) else None, epilogue, fused)
    if subject.stage is not None and is_below(volume(subject.stage.extents), 1):
        return []
    if one_block:
        subject.threads = ONE_BLOCK
    (ONE_BLOCK_RULES if one_block else RULES).emit(e, subject)
    return subject.made


# ---- rules


def _thread_per_element(
    e: Emission, stage: Stage, element: Callable[[list[Expression]], Sequence[Statement]], threads: int
) -> Blocks:
    """A thread for each element of a stage's space."""
    count = volume(stage.extents)
    if isinstance(count, int):
        threads = min(threads, max(32, -(-count // 32) * 32))
    thread, block = indices_of_thread()
    position = cast(block, e.index) * threads + cast(thread, e.index)
    body = element(element_indices(position, stage, e))
    inner = list(body) if divides(threads, count) else [guarded_statement(position < number(count, e.index), body)]
    return Blocks(inner, thread, block, threads, parts(count, threads))


def _match_elements(e: Emission, subject: StageSubject) -> Plan | None:
    """Stages without reductions."""
    stage = subject.stage
    if stage is None or stage.is_reduction:
        return None

    def element(indices: list[Expression]) -> list[Statement]:
        bodies = [e.body_at(body, stage.op.axis, indices) for body in stage.op.body]
        return store(e, stage, indices, bodies)

    return plan_of(
        "a thread for each element", subject, lambda: _thread_per_element(e, stage, element, subject.threads)
    )


def _match_thread_each(e: Emission, subject: StageSubject) -> Plan | None:
    """Reductions."""
    stage = subject.stage
    if stage is None or not stage.is_reduction:
        return None

    def element(indices: list[Expression]) -> list[Statement]:
        sums = Accumulators(e, stage)
        steps = nested_loops(stage.reduced, e.index, lambda steps: sums.step(indices, steps))
        return [*sums.declared, *sums.clear(), *steps, *store(e, stage, indices, sums.values)]

    return plan_of("a thread for each result", subject, lambda: _thread_per_element(e, stage, element, subject.threads))


def _match_block_each(e: Emission, subject: StageSubject) -> Plan | None:
    """Reductions of many elements, with few results."""
    stage = subject.stage
    if stage is None or not stage.is_reduction:
        return None
    reduced, results = volume(stage.reduced), volume(stage.extents)
    if not is_associative(stage.op.body[0].combiner):
        return None
    if is_below(reduced, LONG) or (not is_below(results, SERIAL) and is_below(reduced, THREADS)):
        return None
    return plan_of("many elements for each result: a block of threads", subject, lambda: _block_each(e, stage))


def _block_each(e: Emission, stage: Stage) -> Blocks:
    """A block for each result. Each thread combines neighbors if there are several results in one, such as a maximum
    with its place, where the order matters; otherwise each THREADS-th, so that neighboring threads read neighbors. Then
    the threads' results are combined in a tree."""
    count, total = volume(stage.reduced), volume(stage.extents)
    threads = THREADS
    while threads > 32 and is_below(count, threads // 2 + 1):
        threads //= 2
    thread, block = indices_of_thread()
    t = cast(thread, e.index)
    rounds = parts(count, threads)
    indices = element_indices(cast(block, e.index), stage, e)
    sums = Accumulators(e, stage)

    def block_statements(i: Expression) -> list[Statement]:
        at = i * threads + t if len(stage.dtypes) == 1 else t * number(rounds, e.index) + i
        body = sums.step(indices, unravel_index(at, stage.reduced, e.index))
        return body if divides(threads, count) else [guarded_statement(at < number(count, e.index), body)]

    shared = [thread_buffer("shared", threads, dtype, "shared") for dtype in stage.dtypes]
    here = [tirx.BufferLoad(buffer, [thread]) for buffer in shared]
    statements = [*sums.declared, *(tirx.AllocBuffer(buffer) for buffer in shared), *sums.clear()]
    statements += loop(rounds, e.index, block_statements)
    statements += [tirx.BufferStore(b, v, [thread]) for b, v in zip(shared, sums.values, strict=True)]
    distance = 1
    while distance < threads:
        there = [tirx.BufferLoad(buffer, [thread + distance]) for buffer in shared]
        combined = assign(shared, [thread], combine_elements(e, stage, here, there))
        even = tirx.indexmod(thread, tirx.const(2 * distance, "int32")).equal(tirx.const(0, "int32"))
        statements += [barrier(), guarded_statement(even, combined)]
        distance *= 2
    statements.append(guarded_statement(thread.equal(tirx.const(0, "int32")), store(e, stage, indices, here)))
    return Blocks(statements, thread, block, threads, total)


def _match_statement(e: Emission, subject: StageSubject) -> Plan | None:
    """Loops that operators bring along: sorts, scans, scatters, random numbers."""
    if subject.stage is not None:
        return None
    found = nests(subject.op.body)
    single = all(not nest.variables for nest in found)
    reason = "the operator's own loops" + (": one thread" if single else ", those with independent rounds on threads")

    def emit() -> list[Statement]:
        subject.made = [_statement(e, subject.op, nest, subject.threads) for nest in found]
        return [statement for made in subject.made for statement in made.statements]

    return Plan(reason, emit)


def _statement(e: Emission, op: Any, nest: Nest, threads: int) -> Blocks:
    """A nest of a te.extern."""
    pairs = [(b, e.places[t.op, int(t.value_index)]) for b, t in zip(op.input_placeholders, op.inputs, strict=True)]
    pairs += [(b, e.places[op, n]) for n, b in enumerate(op.output_placeholders)]
    declared = [tirx.DeclBuffer(buffer, data=place.buffer.data) for buffer, place in pairs]
    thread, block = indices_of_thread()
    if not nest.variables:
        return Blocks([*declared, nest.body], thread, block, 1, 1)
    count = nest.threads
    if isinstance(count, int):
        threads = min(threads, max(32, -(-count // 32) * 32))
    position = cast(block, e.index) * threads + cast(thread, e.index)
    body = nest.at(position, e.index)
    if not divides(threads, count):
        body = guarded_statement(position < number(count, e.index), [body])
    return Blocks([*declared, body], thread, block, threads, parts(count, threads))


RULES = Table(
    (
        Rule("statement", 50, _match_statement),
        Rule(ATTENTION, 60, match_attention),
        Rule(RECOMPUTATION, 55, match_recomputation),
        Rule("tensor_product", 45, match_tensor_product),
        Rule("tiled_product", 40, match_tiled_product),
        Rule("block_reduction", 30, _match_block_each),
        Rule("thread_reduction", 20, _match_thread_each),
        Rule("elements", 10, _match_elements),
    )
)
"""The kernels of stages."""

ONE_BLOCK_RULES = Table(
    (
        Rule("statement", 50, _match_statement),
        Rule("warp_reduction", 30, match_warp_reduction),
        Rule("thread_reduction", 20, _match_thread_each),
        Rule("elements", 10, _match_elements),
    )
)
"""The steps of one block of threads that computes everything, without barriers within a step."""
