"""Literals: Python numbers as elements of a dtype, its range, and the messages about numbers out of range."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from relay.ir.types import BaseType


def holds(base: BaseType, value: int | float) -> bool:
    """True if a literal can have this base type: integers exactly, floats (rounded) in any float."""
    if isinstance(value, float):
        return base.is_float and (not math.isfinite(value) or abs(value) <= float(ml_dtypes.finfo(base.dtype).max))
    if base.name == "bool":
        return False
    if base.is_float:
        if abs(value) > float(ml_dtypes.finfo(base.dtype).max):
            return False
        return int(base.dtype.type(value)) == value  # NumPy compares a Python integer after rounding it
    info = np.iinfo(base.name)
    return int(info.min) <= value <= int(info.max)


def misfit_text(base: BaseType, value: int | float) -> str:
    """The reason why a base type does not hold a number, as "300 is out of range for int8 (-128 to 127)"."""
    if base.name == "bool":
        return f"{value} is not a bool"
    if isinstance(value, float) and not base.is_float:
        kind = "a float, not an integer" if value.is_integer() else "not an integer"
        return f"{value} is {kind} ({base} expected)"
    if base.is_float and abs(value) <= float(ml_dtypes.finfo(base.dtype).max):
        return f"{value} cannot be represented exactly in {base}"
    return f"{value} is {out_of_range_text(base)}"


def with_article(base: BaseType) -> str:
    """ "an int8", "a float32"."""
    return f"{'an' if base.name.startswith('int') else 'a'} {base}"


def out_of_range_text(base: BaseType) -> str:
    """ "out of range for int8 (-128 to 127)". The base type is one of integers or floats."""
    if base.is_float:
        largest = float(ml_dtypes.finfo(base.dtype).max)
        return f"out of range for {base} ({-largest:g} to {largest:g})"
    limits = np.iinfo(base.name)
    return f"out of range for {base} ({limits.min} to {limits.max})"
