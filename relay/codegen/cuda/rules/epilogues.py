"""Epilogues: what is computed elementwise of a product's results, in the product's own kernel.

    y[i, j] = f(product[i, j], bias[j], ..)

A bias, a scale, an activation, a rounding to half precision: the product's results are in registers, and only y is
stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.codegen.cuda.rules.products import factors
from relay.codegen.kernels.emission import Emission, Place, key
from relay.codegen.kernels.stage import Stage, extent, has_equal_extents, is_compute, is_one, mentions, stage_of
from relay.codegen.tvm.tir import Expression, Statement, tirx


@attrs.frozen(eq=False)
class Epilogue:
    """A stage whose elements each depend on one result of a product. `places`: for each of its axes that of the
    product's, None for one of extent 1."""

    product: Any
    stage: Stage
    places: tuple[int | None, ...]

    def statements(self, e: Emission, indices: Sequence[Expression], value: Expression) -> list[Statement]:
        """Compute and store the element of a product's result, which is a value, at these indices of the product."""
        name = tirx.Var("product", value.ty)
        own = [tirx.const(0, e.index) if at is None else indices[at] for at in self.places]
        e.values[self.product, 0] = name
        element = e.body_at(self.stage.op.body[0], self.stage.op.axis, own)
        del e.values[self.product, 0]
        place = e.places[self.stage.op, 0]
        return [tirx.Bind(name, value), tirx.BufferStore(place.buffer, element, [e.position(place, own)])]


def epilogues(e: Emission, steps: Sequence[Any], results: Mapping[Any, None]) -> dict[Any, Epilogue]:
    """The epilogues among the operations of a kernel, by their operations: each has the last product that it reads and
    nothing else does. All others are in memory."""
    stages = {op: stage_of(op) for op in steps if is_compute(op) and op.num_outputs == 1}
    outputs = [op.output(n) for op in steps for n in range(op.num_outputs) if (op, n) not in e.places]
    assumed = {key(tensor): Place(None, tuple(map(extent, tensor.shape))) for tensor in outputs}
    e.places.update(assumed)
    readers: dict[Any, list[Any]] = {}
    for op in steps:
        read = e.reads(stage_of(op)) if is_compute(op) else [(tensor, ()) for tensor in op.input_tensors]
        for producer in {tensor.op: None for tensor, _ in read}:
            readers.setdefault(producer, []).append(op)
    found: dict[Any, Epilogue] = {}
    for op, stage in stages.items():
        (reader, *others) = readers.get(op, [None])
        if op in results or others or reader not in stages or stages[reader].is_reduction:
            continue
        places = matching_axes(e, stage, stages[reader])
        if places is not None and factors(e, stage) is not None:
            found[reader] = Epilogue(op, stages[reader], places)
    for name in assumed:
        del e.places[name]
    return found


def matching_axes(e: Emission, product: Stage, reader: Stage) -> tuple[int | None, ...] | None:
    """For each axis of a reader that of the product, if it reads the product at its own indices only."""
    found: set[tuple[int | None, ...]] = set()
    for tensor, indices in e.reads(reader):
        if key(tensor) != (product.op, 0):
            continue
        places = [_place(axis, indices) for axis in reader.axes]
        covered = [at for at in places if at is not None]
        rest = [size for size, at in zip(reader.extents, places, strict=True) if at is None]
        left = [size for at, size in enumerate(product.extents) if at not in covered]
        same = [size for size, at in zip(reader.extents, places, strict=True) if at is not None]
        if not all(map(is_one, [*rest, *left])) or not has_equal_extents(same, [product.extents[a] for a in covered]):
            return None
        if any(at is None and any(mentions(i, v) for i in indices) for v, at in zip(reader.axes, places, strict=True)):
            return None
        found.add(tuple(places))
    return found.pop() if len(found) == 1 else None


def _place(axis: Any, indices: Sequence[Any]) -> int | None:
    """The position of the only index that is an axis itself."""
    found = [at for at, index in enumerate(indices) if _without_casts(index).same_as(axis)]
    return found[0] if len(found) == 1 and sum(mentions(index, axis) for index in indices) == 1 else None


def _without_casts(index: Any) -> Any:
    while isinstance(index, tirx.Cast):
        index = index.value
    return index


__all__ = ["Epilogue", "epilogues", "matching_axes"]
