"""Products: sums of products of two factors, of which one goes along the rows of the result, the other along its
columns. Matrix products, batched ones, contractions and convolutions are such.

    y[b, r, c] = sum over k of left[b, r, k] * right[b, c, k]

Here b, r, c and k stand for several axes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs

from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import unravel_index
from relay.codegen.kernels.stage import Extent, Stage, mentions, substitute_variables, volume
from relay.codegen.tvm.tir import Expression, tirx

Axes: TypeAlias = "tuple[tuple[Any, Extent], ...]"
"""Variables with their extents."""

FEW = 8
"""Rows or columns below which most of a tile would be empty."""

_FLOATS = {"float32": "fmaf", "float64": "fma"}


@attrs.frozen(eq=False)
class Factors:
    """A product: its factors, and the axes of its rows, columns and terms, and those that both factors have."""

    stage: Stage
    left: Expression
    right: Expression
    rows: Axes
    columns: Axes
    inner: Axes
    outer: Axes

    @property
    def parts(self) -> tuple[Axes, Axes, Axes, Axes]:
        return self.rows, self.columns, self.inner, self.outer

    def values(self, axes: Axes, position: Expression, e: Emission) -> dict[Any, Expression]:
        """As `axis_values`."""
        return axis_values(axes, position, e)

    def add(self, sum_: Expression, left: Expression, right: Expression) -> Expression:
        """The sum and one term more, of floats rounded once."""
        return add_product(sum_, left, right)


def axis_values(axes: Axes, position: Expression, e: Emission) -> dict[Any, Expression]:
    """The values of axes' variables, by the position in the space of all of them."""
    if not axes:
        return {}
    indices = unravel_index(position, [extent for _, extent in axes], e.index)
    return e.axis_values([variable for variable, _ in axes], indices)


def add_product(sum_: Expression, left: Expression, right: Expression) -> Expression:
    """The sum and a product of the same dtype, rounded once."""
    dtype = str(sum_.ty)
    return tirx.call_pure_extern(dtype, _FLOATS[dtype], left, right, sum_)


def factors(e: Emission, stage: Stage) -> Factors | None:
    """A stage as a product; None if it is none, or so small that tiles do not pay."""
    if not stage.is_reduction or stage.op.num_outputs != 1 or stage.dtypes[0] not in _FLOATS:
        return None
    first = stage.op.body[0]
    (source,), (result,) = first.source, first.combiner.result
    always = isinstance(first.condition, tirx.IntImm) and bool(int(first.condition.value))
    if not always or not isinstance(result, tirx.Add) or not isinstance(source, tirx.Mul):
        return None
    if not (result.a.same_as(first.combiner.lhs[0]) and result.b.same_as(first.combiner.rhs[0])):
        return None
    space = list(zip(stage.axes, stage.extents, strict=True))
    inner = tuple(zip(stage.reduced_axes, stage.reduced, strict=True))
    left, right = (_expanded_factor(e, factor) for factor in (source.a, source.b))
    if not all(mentions(left, axis) and mentions(right, axis) for axis, _ in inner):
        return None
    of_left = {axis: mentions(left, axis) for axis, _ in space}
    of_right = {axis: mentions(right, axis) for axis, _ in space}
    rows = tuple((axis, d) for axis, d in space if of_left[axis] and not of_right[axis])
    columns = tuple((axis, d) for axis, d in space if of_right[axis] and not of_left[axis])
    outer = tuple((axis, d) for axis, d in space if of_left[axis] == of_right[axis])
    sizes = [volume([d for _, d in part]) for part in (rows, columns, inner)]
    if any(isinstance(size, int) and size < FEW for size in sizes):
        return None
    return Factors(stage, left, right, rows, columns, inner, outer)


def _expanded_factor(e: Emission, factor: Expression) -> Expression:
    """A factor by the tensors in memory that it is computed from."""

    def load(tensor: Any, indices: Sequence[Any]) -> Any:
        if (tensor.op, int(tensor.value_index)) in e.places:
            return tensor(*indices)
        axes = [axis.var for axis in tensor.op.axis]
        return substitute_variables(tensor.op.body[tensor.value_index], e.axis_values(axes, indices), load)

    return substitute_variables(factor, {}, load)


def runs_along(e: Emission, factor: Expression, axes: Axes) -> bool:
    """True if neighbors along the last of these axes are neighbors in the memory of a factor."""
    reads = e.memory_reads(factor)
    return bool(axes) and bool(reads) and all(i and mentions(i[-1], axes[-1][0]) for _, i in reads)
