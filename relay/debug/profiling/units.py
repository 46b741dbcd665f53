"""Numbers with units, in three digits."""

from __future__ import annotations

import math


def duration(seconds: float) -> str:
    """Seconds as a text of three digits with a unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor * 0.9995:
            return f"{_digits(seconds / factor)} {unit}"
    return f"{_digits(seconds * 1e9)} ns"


def count(number: float) -> str:
    """A number with three digits, and the letter of its unit's prefix."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= factor * 0.9995:
            return f"{_digits(number / factor)} {prefix}"
    return f"{number:.0f} "


def _digits(number: float) -> str:
    if number <= 0:
        return "0"
    return f"{number:.{max(0, 2 - max(0, math.floor(math.log10(number) + 1e-9)))}f}"
