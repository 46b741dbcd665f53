"""Number formats as tables of their values.

A format of at most 16 bits is the value of each code. A number is rounded to the nearest value, to the one with the
even code where two are as near; beyond the largest it is the largest. That is a search in a sorted table, so any format
has derivatives, native code and batches.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relay.errors import TypeMismatch
from relay.ir.types import FLOAT64, BaseType
from relay.operator import Value, lookup

MOST_BITS = 16


class NumberFormat:
    """A format of `bits`, at most 16, by `decode`, the value of each code. Codes without a finite value stand for
    nothing that numbers are rounded to; of several codes with one value the first counts. `encode` is for a check: it
    has to give back the code of each value. `scaled_to` is the largest number that tensors have when they are scaled
    for the format: its largest value, unless it has few digits there.

    Raises ValueError for another number of bits, fewer than two finite values, and where `encode` contradicts `decode`.
    """

    def __init__(
        self,
        name: str,
        bits: int,
        decode: Callable[[int], float],
        encode: Callable[[float], int] | None = None,
        *,
        scaled_to: float | None = None,
    ) -> None:
        if not isinstance(bits, int) or not 1 <= bits <= MOST_BITS:
            raise ValueError(f"a format has 1 to {MOST_BITS} bits, found {bits!r}")
        self.name, self.bits = name, bits
        self._scaled_to = scaled_to
        self.table = np.array([float(decode(code)) for code in range(2**bits)])
        known: dict[float, int] = {}
        for code, value in enumerate(self.table):
            if math.isfinite(value):
                known.setdefault(float(value), code)
        if len(known) < 2:
            raise ValueError(f"{name} has {len(known)} finite values; a format has at least two")
        self.values = np.array(sorted(known))
        self.codes = np.array([known[v] for v in self.values.tolist()])
        for value, code in known.items():
            if encode is not None and encode(value) != code:
                raise ValueError(f"{name}: decode({code}) is {value}, and encode({value}) is {encode(value)}")
        middles = (self.values[:-1] + self.values[1:]) / 2
        self._bounds = np.where(self.codes[1:] % 2 == 0, np.nextafter(middles, -np.inf), middles)

    @property
    def largest(self) -> float:
        """The largest value."""
        return float(self.values[-1])

    @property
    def scaled_to(self) -> float:
        """The largest number that tensors have when they are scaled for the format."""
        return self.largest if self._scaled_to is None else self._scaled_to

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of codes in memory: uint8 or uint16."""
        return np.dtype(np.uint8 if self.bits <= 8 else np.uint16)

    def encode(self, x: Any) -> np.ndarray:
        """The codes of the nearest values. Raises ValueError for NaN, which formats of values do not have."""
        array = np.asarray(x, np.float64)
        if np.isnan(array).any():
            raise ValueError(f"{self.name} has no code for NaN")
        return self.codes[np.searchsorted(self._bounds, array)].astype(self.dtype)

    def decode(self, codes: Any) -> np.ndarray:
        """The values of codes, in float64."""
        return np.asarray(self.table[np.asarray(codes)])

    @functools.cached_property
    def round(self) -> Any:
        """x with each element the nearest value of the format; NaN stays. A function of the language: its derivative is
        that of x. x: (float, s) -> (float, s)."""
        from relay.api.plain_functions import from_source

        text = (
            "def round_to_format(x):\n"
            "    places = searchsorted(bounds, x.astype('float64'))\n"
            "    nearest = take(values, places, axis=0).astype(x.dtype)\n"
            "    return straight_through(x, where(isnan(x), x, nearest))\n"
        )
        names = {name: lookup(name) for name in ("searchsorted", "take", "straight_through", "where", "isnan")}
        return from_source(text, {**names, "bounds": self._bounds, "values": self.values}, f"<{self.name}>")

    def __call__(self, x: Any) -> Any:
        """x rounded, as `round` does; in programs, too."""
        return self.round(x)

    @property
    def __relay__(self) -> Any:
        """The definition that programs call."""
        return self.round.__relay__

    def round_value(self, x: Value) -> Value:
        """The same of a value of a program that is being built. Raises TypeMismatch unless it is of floats."""
        if not x.base.is_float:
            raise TypeMismatch(f"{self.name} rounds floats, found {x.base}")
        emitter = x.emitter
        wide = x if x.base == FLOAT64 else x.op("cast", dtype=FLOAT64)
        places = emitter.constant(self._bounds, FLOAT64).op("searchsorted", wide)
        nearest = emitter.constant(self.values, FLOAT64).op("take", places, axis=0)
        back = nearest if x.base == FLOAT64 else nearest.op("cast", dtype=x.base)
        kept = x.op("isnan").op("where", x, back)
        return x.op("straight_through", kept)

    def __repr__(self) -> str:
        return f"<number format {self.name}: {self.bits} bits, up to {self.largest:g}>"


def fixed_point(bits: int, fraction: int) -> NumberFormat:
    """Integers of `bits` bits, in two's complement, divided by 2**fraction."""

    def decode(code: int) -> float:
        return (code - 2**bits if code >= 2 ** (bits - 1) else code) / 2.0**fraction

    return NumberFormat(f"fixed{bits}.{fraction}", bits, decode)


def _float8(exponent_bits: int, finite: bool) -> Callable[[int], float]:
    """The values of the floats with a sign and 8 bits in all; `finite`: the only special number is NaN, all ones."""
    mantissa_bits = 7 - exponent_bits
    bias = 2 ** (exponent_bits - 1) - 1

    def decode(code: int) -> float:
        sign = -1.0 if code & 0x80 else 1.0
        exponent, mantissa = (code & 0x7F) >> mantissa_bits, code & (2**mantissa_bits - 1)
        ones = exponent == 2**exponent_bits - 1
        if ones and (not finite or mantissa == 2**mantissa_bits - 1):
            return sign * math.inf if mantissa == 0 and not finite else math.nan
        if exponent == 0:
            return float(sign * mantissa * 2.0 ** (1 - bias - mantissa_bits))
        return float(sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias))

    return decode


E4M3 = NumberFormat("e4m3", 8, _float8(4, finite=True))
"""float8 with 4 bits of exponent: up to 448 (Micikevicius and others: FP8 formats for deep learning, 2022)."""

E5M2 = NumberFormat("e5m2", 8, _float8(5, finite=False))
"""float8 with 5 bits of exponent: up to 57344."""


def as_format(given: NumberFormat | BaseType | str) -> NumberFormat | BaseType:
    """A format, a float dtype or the name of one of these. Raises TypeMismatch."""
    named: dict[str, NumberFormat | BaseType] = {"e4m3": E4M3, "e5m2": E5M2}
    if isinstance(given, str):
        given = named.get(given) or BaseType(given)
    if isinstance(given, NumberFormat) or (isinstance(given, BaseType) and given.is_float):
        return given
    raise TypeMismatch(f"a precision is a number format or a float dtype, found {given!r}")
