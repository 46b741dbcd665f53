"""Sample calls of operators, for the table test over the registry: an operator's `sampler` where the defaults would
not do.

sampler=cases(case((2, 3), axis=1), case((0, 3), axis=0))       a tuple is a shape to fill with numbers
sampler=cases(case((4, 2), np.int32([3, 0, 3])))                an array is taken as it is
sampler=uniform(0.1, 3.0)                                       the default shapes, numbers between two bounds
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.ops.notation import Tensor

Sampler: TypeAlias = Callable[[np.random.Generator, "np.dtype[Any]"], Iterator[tuple[list[Tensor], dict[str, Any]]]]


@attrs.frozen
class Case:
    """Operands, as arrays or as shapes to fill, and attributes; `low` and `high` bound the numbers of filled shapes."""

    operands: tuple[Any, ...]
    attributes: dict[str, Any]


def case(*operands: Any, **attributes: Any) -> Case:
    """One call of an operator: a tuple is a shape to fill with numbers, an array is taken as it is."""
    return Case(operands, attributes)


def cases(*calls: Case, low: float = -2.0, high: float = 2.0) -> Sampler:
    """A sampler of exactly these calls."""

    def sample(rng: np.random.Generator, dtype: np.dtype[Any]) -> Iterator[tuple[list[Tensor], dict[str, Any]]]:
        for call in calls:
            operands = [o if isinstance(o, np.ndarray) else fill(rng, o, dtype, low, high) for o in call.operands]
            yield operands, call.attributes

    given = [o for call in calls for o in call.operands if isinstance(o, np.ndarray) and o.dtype.kind == "f"]
    sample.resizable = not given  # type: ignore[attr-defined]  # numbers that were not chosen fit other shapes as well
    return sample


def uniform(low: float, high: float, operands: int = 1) -> Sampler:
    """A sampler of elementwise operands with numbers between two bounds."""
    return cases(*(case(*shapes) for shapes in ELEMENTWISE_SHAPES[operands]), low=low, high=high)


ELEMENTWISE_SHAPES: dict[int, tuple[tuple[tuple[int, ...], ...], ...]] = {
    1: (((),), ((1,),), ((2, 3),), ((0, 3),), ((3, 1, 5),)),
    2: (((), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0, 3), (1,)), ((), (4,)), ((3, 5), (3, 5))),
    3: (((), (), ()), ((2, 3), (3,), (2, 1)), ((0, 3), (1,), ()), ((), (4,), (4,)), ((3, 5), (3, 5), (3, 5))),
}
"""Shapes for elementwise operators, by the number of operands: rank 0, broadcasting, extents 0 and 1."""


def fill(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], low: float, high: float) -> Tensor:
    """An array of numbers between two bounds, which for floats keep away from integers, where derivatives may jump."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low, high = (max(low, 0.0) if dtype.kind == "u" else low), max(high, 5.0)
        return np.asarray(rng.integers(int(np.ceil(low)), int(np.floor(high)), shape, endpoint=True)).astype(dtype)
    numbers = rng.uniform(low, high, shape)
    distance = numbers - np.rint(numbers)
    return np.asarray(numbers + np.where(np.abs(distance) < 0.05, 0.1, 0.0)).astype(dtype)
