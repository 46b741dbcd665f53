"""Loops for the te stages of a kernel.

What is computed elementwise becomes part of what reads it. The stages that are left are kept in memory, and each gets
loops by what it is: a sum of products (`product`), another reduction (`reduction`), or neither (`elementwise`). Stages
that have their first axes in common, as the rows of a softmax, share the loops over these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from relay.codegen.schedules import product as products
from relay.codegen.schedules.elementwise import elements, share_flat
from relay.codegen.schedules.emission import Emission, Given, Place, key
from relay.codegen.schedules.loops import decoded, loop, nested, shared
from relay.codegen.schedules.packing import Packing
from relay.codegen.schedules.reduction import goes_along_columns, reduce
from relay.codegen.schedules.registers import with_registers
from relay.codegen.schedules.stage import (
    Extent,
    Stage,
    extent,
    in_order,
    is_compute,
    loads,
    renamed,
    same,
    stage_of,
    volume,
)
from relay.codegen.tir import Expression, Statement, tirx

__all__ = ["Emission", "Given", "Packing", "Place", "emit", "extent", "key", "renamed", "volume", "with_registers"]

Step: TypeAlias = "tuple[Stage, Stage | None] | Any"
"""A stage and what is computed from its elements one by one; or a te.extern."""


def emit(e: Emission, output: Any, wanted: Sequence[Any] = ()) -> list[Statement]:
    """The loops that compute a tensor. `e` knows where it and its inputs are. The `wanted` operations are kept in
    memory in any case."""
    ops = [
        op for op in in_order(output) if ((op, 0) not in e.places and (op, 0) not in e.values) or op.same_as(output.op)
    ]
    kept = {**_kept(ops, output), **dict.fromkeys(op for op in ops if any(op.same_as(w) for w in wanted))}
    steps = _steps(e, [op for op in ops if op in kept], output)
    common = _common(e, steps)
    if common:
        return _nest(e, steps, common, output)
    statements: list[Statement] = []
    for step in steps:
        statements += _memory(e, step, output, 0, None)
        statements += _alone(e, step)
    return statements


def _kept(ops: Sequence[Any], output: Any) -> dict[Any, None]:
    """The operations whose results are kept in memory: reductions, and what these read if others read it, too, or if
    they read each element often; and what statements read and write."""
    readers: dict[Any, list[Any]] = {}
    for op in ops:
        for tensor in {t.op: t for t in op.input_tensors}.values():
            readers.setdefault(tensor.op, []).append(op)
    kept: dict[Any, None] = {}
    for op in ops:
        consumers = readers.get(op, [])
        if (
            op.same_as(output.op)
            or not is_compute(op)
            or op.reduce_axis
            or op.num_outputs > 1
            or any(not is_compute(c) for c in consumers)
            or (len(consumers) > 1 and any(is_compute(c) and c.reduce_axis for c in consumers))
            or (not _moves_only(op) and any(_is_product(c) for c in consumers))
        ):
            kept[op] = None
    return kept


def _moves_only(op: Any) -> bool:
    """Whether an operation only moves data (or makes it from nothing)."""
    body = op.body[0]
    while isinstance(body, tirx.Cast):
        body = body.value
    return any(True for _ in loads(body)) is False or getattr(getattr(body, "op", None), "name", "") == "te.tensor_load"


def _is_product(op: Any) -> bool:
    return bool(is_compute(op) and op.reduce_axis and isinstance(op.body[0].source[0], tirx.Mul))


def _steps(e: Emission, ops: Sequence[Any], output: Any) -> list[Step]:
    """The stages in order; a reduction with the one that is computed from its elements one by one."""
    stages = {op: stage_of(op) if is_compute(op) else None for op in ops}
    for op in ops:  # what is kept has a place from here on; where, is decided later
        for n in range(op.num_outputs):
            tensor = op.output(n)
            e.places.setdefault((op, n), Place(None, tuple(map(extent, tensor.shape))))
    readers: dict[Any, list[Any]] = {}
    for op in ops:
        stage = stages[op]
        for tensor in [t for t, _ in e.reads(stage)] if stage is not None else op.input_tensors:
            readers.setdefault(tensor.op, []).append(op)
    steps: list[Step] = []
    taken: set[Any] = set()
    for op in ops:
        stage = stages[op]
        if stage is None:
            steps.append(op)
        elif op not in taken:
            epilogue = _epilogue(e, stage, readers.get(op, []), stages) if stage.is_reduction else None
            if epilogue is not None:
                taken.add(epilogue.op)
            steps.append((stage, epilogue))
    return steps


def _epilogue(e: Emission, stage: Stage, readers: Sequence[Any], stages: dict[Any, Any]) -> Stage | None:
    """The only reader of a reduction, if it goes over the same elements one by one."""
    if stage.op.num_outputs != 1 or not readers or any(not r.same_as(readers[0]) for r in readers):
        return None
    reader = stages[readers[0]]
    if reader is None or reader.is_reduction or reader.op.num_outputs != 1 or not same(reader.extents, stage.extents):
        return None
    for tensor, indices in e.reads(reader):
        if tensor.op.same_as(stage.op):
            for index, axis, size in zip(indices, reader.axes, reader.extents, strict=True):
                if not index.same_as(axis) and not (isinstance(size, int) and size == 1):
                    return None
        elif not _ready(tensor, stage, stages):
            return None
    return reader if e.vectorises(reader.op.body) else None


def _ready(tensor: Any, stage: Stage, stages: dict[Any, Any]) -> bool:
    """Whether a tensor is computed before a stage."""
    order = list(stages)
    return tensor.op not in stages or order.index(tensor.op) < order.index(stage.op)


# ---- stages with axes in common


def _common(e: Emission, steps: Sequence[Step]) -> int:
    """How many first axes several stages have in common, so that all can be computed within loops over these."""
    stages = [s for step in steps if isinstance(step, tuple) for s in step if s is not None]
    if len(steps) < 2 or not all(isinstance(step, tuple) for step in steps):
        return 0
    if any(products.recognise(e, step[0]) for step in steps if step[0].is_reduction):
        return 0
    made = {s.op for s in stages}
    count = min(len(s.extents) for s in stages)
    for stage in stages:
        shared_axes = 0
        while shared_axes < count and same([stage.extents[shared_axes]], [stages[0].extents[shared_axes]]):
            shared_axes += 1
        count = min(count, shared_axes)
        for tensor, indices in e.reads(stage):
            if tensor.op in made:
                matching = 0
                while matching < count and (
                    indices[matching].same_as(stage.axes[matching]) or _one(stage.extents[matching])
                ):
                    matching += 1
                count = min(count, matching)
    columns = [
        s for s in stages
        if s.is_reduction and len(s.extents) == count and goes_along_columns(e, s)
    ]  # fmt: skip
    if columns:  # their last axis is to be vectorised
        count -= 1
    return 0 if all(_one(x) for x in stages[0].extents[:count]) else count


def _one(size: Extent) -> bool:
    return isinstance(size, int) and size == 1


def _nest(e: Emission, steps: Sequence[Step], count: int, output: Any) -> list[Statement]:
    extents = steps[0][0].extents[:count]
    work: Extent = 0
    for stage, _ in steps:
        work = stage.work if isinstance(work, int) and work == 0 else work + stage.work
    places = dict(e.places)

    def row(indices: Sequence[Expression], part: Expression) -> list[Statement]:
        statements: list[Statement] = []
        for step in steps:
            statements += _memory(e, step, output, count, part)
        for stage, epilogue in steps:
            statements += reduce(e, stage, epilogue, indices) if stage.is_reduction else elements(e, stage, indices)
        e.places.clear()
        e.places.update(places)
        return statements

    def part(number_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        return loop(end - begin, e.index, lambda i: row(decoded(begin + i, extents, e.index), number_))

    def serial() -> list[Statement]:
        return nested(extents, e.index, lambda indices: row(indices, tirx.const(0, "int32")))

    return shared(volume(extents), work, e.threads, e.index, part, serial)


def _memory(e: Emission, step: Step, output: Any, skipped: int, part: Expression | None) -> list[Statement]:
    """Give what a step computes a place in memory."""
    statements: list[Statement] = []
    ops = [step] if not isinstance(step, tuple) else [step[-1].op if step[-1] is not None else step[0].op]
    for op in ops:
        if op.same_as(output.op):
            continue
        for n in range(op.num_outputs):
            tensor = op.output(n)
            dims = tuple(map(extent, tensor.shape))[skipped:]
            e.places[op, n], made = e.scratch((op, n), str(tensor.dtype), dims, part, skipped)
            statements += made
    return statements


# ---- single stages


def _alone(e: Emission, step: Step) -> list[Statement]:
    if not isinstance(step, tuple):
        return _statement(e, step)
    stage, epilogue = step
    if not stage.is_reduction:
        flat = share_flat(e, stage)
        if flat is not None:
            return flat
        count = max(len(stage.extents) - 1, 0)
    else:
        found = products.recognise(e, stage)
        made = products.emit(e, found, epilogue) if found is not None else None
        if made is not None:
            return made
        count = len(stage.extents) - goes_along_columns(e, stage)

    def row(indices: Sequence[Expression]) -> list[Statement]:
        return reduce(e, stage, epilogue, indices) if stage.is_reduction else elements(e, stage, indices)

    extents = stage.extents[:count]
    if not extents:
        return row(())

    def part(_: Expression, begin: Expression, end: Expression) -> list[Statement]:
        return loop(end - begin, e.index, lambda i: row(decoded(begin + i, extents, e.index)))

    return shared(volume(extents), stage.work, e.threads, e.index, part, lambda: nested(extents, e.index, row))


def _statement(e: Emission, op: Any) -> list[Statement]:
    """The statement of a te.extern, on its operands in memory."""
    statements: list[Statement] = []
    for tensor in op.inputs:
        if key(tensor) in e.values:  # statements read memory
            buffer, made = e.local(str(tensor.dtype), 1)
            statements += [*made, tirx.BufferStore(buffer, e.values[key(tensor)], [0])]
            e.places[key(tensor)] = Place(buffer, (1,) * len(tensor.shape))
    pairs = [(b, e.places[key(t)]) for b, t in zip(op.input_placeholders, op.inputs, strict=True)]
    pairs += [(b, e.places[op, n]) for n, b in enumerate(op.output_placeholders)]
    for buffer, place in pairs:
        statements.append(tirx.DeclBuffer(buffer, data=place.buffer.data))
    return [*statements, op.body]
