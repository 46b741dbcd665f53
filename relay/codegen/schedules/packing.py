"""Constant factors of products, arranged when the program is compiled as the loops read them.

    packed[batch, panel, inner, lane] = right[batch, inner, panel width + lane], and 0 beyond the last column

An operand that is a constant has its elements moved once, by NumPy; the kernel finds its panels one behind the other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.codegen.tir import Expression, tirx


@attrs.frozen(eq=False)
class Packing:
    """Where the elements of an operand are taken from, row major; what is beyond the last column is -1."""

    places: np.ndarray

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """The operand as the kernel reads it. array: any shape -> of one axis."""
        flat = array.reshape(-1)
        places = self.places.reshape(-1)
        if not flat.size or not places.size:
            return np.zeros(places.size, array.dtype)
        return np.where(places < 0, np.zeros((), array.dtype), flat[np.maximum(places, 0)])


def packing(offset: Expression, axes: Sequence[tuple[Any, int]], column: Any, columns: int, width: int) -> Packing:
    """The packing of what is read at `offset`, an expression of the variables of batch and inner axes and of `column`.

    `axes`: the variables with their extents, batch before inner ones, `None` where the panels' axis stands.
    """
    panels = -(-columns // width)
    shape = [panels if variable is None else extent for variable, extent in axes] + [width]
    grids = np.ogrid[tuple(slice(extent) for extent in shape)]
    lanes = grids[-1]
    values: dict[Any, np.ndarray] = {}
    for (variable, _), grid in zip(axes, grids, strict=False):
        if variable is None:
            at = grid * width + lanes
            values[column] = np.minimum(at, columns - 1)
        else:
            values[variable] = grid
    places = np.broadcast_to(evaluated(offset, values), shape)
    return Packing(np.where(at < columns, places, -1))


_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    tirx.Add: operator.add, tirx.Sub: operator.sub, tirx.Mul: operator.mul, tirx.FloorDiv: operator.floordiv,
    tirx.FloorMod: operator.mod, tirx.Min: np.minimum, tirx.Max: np.maximum,
}  # fmt: skip


class NoArithmetic(Exception):
    """An index that is no arithmetic of integers."""


def evaluated(expression: Any, values: Mapping[Any, np.ndarray]) -> Any:
    """An integer expression for all values of its variables. Raises NoArithmetic."""
    if isinstance(expression, tirx.IntImm):
        return int(expression.value)
    if isinstance(expression, tirx.Cast):
        return evaluated(expression.value, values)
    if isinstance(expression, tirx.Var) and expression in values:
        return values[expression]
    found = _ARITHMETIC.get(type(expression))
    if found is None:
        raise NoArithmetic
    return found(evaluated(expression.a, values), evaluated(expression.b, values))


__all__ = ["NoArithmetic", "Packing", "evaluated", "packing"]
