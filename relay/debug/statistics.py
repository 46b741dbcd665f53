"""Statistics of the numbers in a value."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from relay.calling.checks import arrays_in


@attrs.frozen
class Statistics:
    """`count` numbers, of which `nan` are NaN, `infinite` infinite and `zero` zero; `smallest`, `largest`, `mean` and
    `deviation` are of the finite ones (None if there are none). `shape` and `dtype`: of an array."""

    count: int
    nan: int
    infinite: int
    zero: int
    smallest: float | None
    largest: float | None
    mean: float | None
    deviation: float | None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None

    def __str__(self) -> str:
        head = f"{self.dtype} {self.shape}" if self.dtype is not None else f"{self.count} numbers"
        if self.smallest is None:
            body = "no finite number" if self.count else "empty"
        else:
            body = f"{self.smallest:.6g} to {self.largest:.6g}, mean {self.mean:.6g}, deviation {self.deviation:.6g}"
        special = [(self.nan, "NaN"), (self.infinite, "infinite"), (self.zero, "zero")]
        return ", ".join([f"{head}: {body}", *(f"{count} {what}" for count, what in special if count)])


def statistics_of(value: Any) -> Statistics:
    """The statistics of all numbers in an array, structure or value of a data type."""
    arrays = list(arrays_in(value))
    one = arrays[0] if len(arrays) == 1 else None
    numbers = np.concatenate([a.astype(np.float64).ravel() for a in arrays]) if arrays else np.zeros(0)
    finite = numbers[np.isfinite(numbers)]
    found: tuple[float | None, float | None, float | None, float | None] = (None, None, None, None)
    if finite.size:
        with np.errstate(all="ignore"):
            found = float(finite.min()), float(finite.max()), float(finite.mean()), float(finite.std())
    return Statistics(
        numbers.size,
        int(np.isnan(numbers).sum()),
        int(np.isinf(numbers).sum()),
        int((numbers == 0).sum()),
        *found,
        None if one is None else one.shape,
        None if one is None else str(one.dtype),
    )
