"""Packing of constant factors: at compile time they are arranged as the loops read them.

    packed[batch, panel, inner, lane] = right[batch, inner, panel width + lane], and 0 beyond the last column

An operand that is a constant has its elements moved once, by NumPy; the kernel finds its panels one after the other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.codegen.tvm.tir import Expression, tirx

Packing: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""A constant as a kernel reads it: of any shape -> of one axis."""


@attrs.frozen(eq=False)
class PanelPacking:
    """The arrangement in panels. `shape`: that of the result, whose axis `axis` counts the panels. `places`: for a
    panel, the positions of its elements in the operand, row major, with -1 beyond the last column."""

    shape: tuple[int, ...]
    axis: int
    places: Callable[[int], np.ndarray]

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """The operand as the kernel reads it. Panel by panel, since the places take more memory than the elements."""
        flat = array.reshape(-1)
        made = np.zeros(self.shape, array.dtype)
        for panel in range(self.shape[self.axis] if made.size else 0):
            places = self.places(panel)
            elements = np.where(places < 0, np.zeros((), array.dtype), flat[np.maximum(places, 0)])
            index: list[Any] = [*(slice(None) for _ in range(self.axis)), panel]
            made[tuple(index)] = elements
        return made.reshape(-1)


def packing(
    offset: Expression,
    batch: Sequence[tuple[Any, int]],
    inner: Sequence[tuple[Any, int]],
    column: Any,
    columns: int,
    width: int,
) -> PanelPacking:
    """The packing of what is read at `offset`, an expression of the variables of batch and inner axes, which come with
    their extents, and of `column`. Raises NoArithmetic."""
    axes = [*batch, *inner]
    shape = [*(extent for _, extent in axes), width]
    *grids, lanes = np.ogrid[tuple(slice(extent) for extent in shape)]
    values = {variable: grid for (variable, _), grid in zip(axes, grids, strict=True)}

    def places(panel: int) -> np.ndarray:
        at = panel * width + lanes
        found = evaluate_index(offset, {**values, column: np.minimum(at, columns - 1)})
        return np.where(at < columns, np.broadcast_to(found, shape), -1)

    evaluate_index(offset, {variable: np.zeros(1, np.int64) for variable in (*values, column)})
    return PanelPacking((*shape[: len(batch)], -(-columns // width), *shape[len(batch) :]), len(batch), places)


_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    tirx.Add: operator.add, tirx.Sub: operator.sub, tirx.Mul: operator.mul, tirx.FloorDiv: operator.floordiv,
    tirx.FloorMod: operator.mod, tirx.Min: np.minimum, tirx.Max: np.maximum,
}  # fmt: skip


class NonArithmeticIndex(Exception):
    """An index that is not arithmetic of integers."""


def evaluate_index(expression: Any, values: Mapping[Any, np.ndarray]) -> Any:
    """An integer expression for all values of its variables. Raises NoArithmetic."""
    if isinstance(expression, tirx.IntImm):
        return int(expression.value)
    if isinstance(expression, tirx.Cast):
        return evaluate_index(expression.value, values)
    if isinstance(expression, tirx.Var) and expression in values:
        return values[expression]
    found = _ARITHMETIC.get(type(expression))
    if found is None:
        raise NonArithmeticIndex
    return found(evaluate_index(expression.a, values), evaluate_index(expression.b, values))


__all__ = ["NonArithmeticIndex", "Packing", "evaluate_index", "packing"]
