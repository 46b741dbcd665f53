"""Constants as text: short arrays in place, long ones as the base64 text of their bytes. Both are exact.

2.0f32   true   [[1, 2], [3, 4]]i32   nan.f64            the elements, with the dtype as a suffix
constants { constant#0: Tensor[float32, (64, 64)] = "AACAPw.."; .. }      little-endian, in row-major order
"""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from relay.ir.types import BASE_TYPES, BOOL, BaseClass, BaseType

INLINE_SIZE = 16
"""Arrays with more elements stand in the constants of the module."""

Nested: TypeAlias = "str | Sequence[Nested]"
"""The texts of an array's elements: one for a scalar, else a sequence for each axis."""


def _suffix(base: BaseType) -> str:
    letter = {"int": "i", "uint": "u", "float": "f", "bfloat": "bf"}[base.name.rstrip("0123456789")]
    return f"{letter}{base.dtype.itemsize * 8}"


SUFFIXES = {_suffix(base): base for base in BASE_TYPES.values() if base is not BOOL}


def is_inline(array: np.ndarray) -> bool:
    """True if the text of the elements is short and determines the array: its shape, and every bit of a NaN."""
    if array.size > INLINE_SIZE or (array.size == 0 and array.ndim > 1):
        return False
    if array.dtype.kind in "biu":
        return True
    usual = np.asarray(np.nan, array.dtype).tobytes()
    return all(np.asarray(e).tobytes() == usual for e in array[np.isnan(array)])


def array_text(array: np.ndarray) -> str:
    """An array with all its elements. For one that `is_inline`, `array_of` reads it back."""
    if array.dtype == bool:
        return _elements(array)
    text, suffix = _elements(array), _suffix(BASE_TYPES[array.dtype.name])
    return f"{text}.{suffix}" if text[-1].isalpha() else text + suffix  # inf.f32


def _elements(array: np.ndarray) -> str:
    if array.ndim:
        return f"[{', '.join(map(_elements, array))}]"
    if array.dtype == bool:
        return "true" if array else "false"
    if array.dtype.kind in "iu":
        return str(int(array))
    if array.dtype.itemsize == 4:
        short = str(np.float32(array))  # the shortest text that this float32 is read back from
        if array == np.float32(float(short)):
            return short
    return repr(float(array))


def array_of(elements: Nested, base: BaseType) -> np.ndarray:
    """The array with these elements. Raises ValueError, with what is wrong, where there is none."""
    shape: list[int] = []
    inner = elements
    while not isinstance(inner, str):
        shape.append(len(inner))
        if not inner:
            break
        inner = inner[0]
    flat: list[str] = []
    _flatten(elements, shape, 0, flat)
    values = [_element(text, base) for text in flat]
    try:
        with np.errstate(over="ignore"):  # a float that is too large is infinite, as in all of NumPy
            return np.array(values, base.dtype).reshape(shape)
    except OverflowError:
        raise ValueError(f"the numbers do not fit {base}") from None


def _flatten(elements: Nested, shape: Sequence[int], axis: int, flat: list[str]) -> None:
    if isinstance(elements, str) != (axis == len(shape)) or (axis < len(shape) and len(elements) != shape[axis]):
        raise ValueError("the rows of an array have one length")
    if isinstance(elements, str):
        flat.append(elements)
    else:
        for element in elements:
            _flatten(element, shape, axis + 1, flat)


def _element(text: str, base: BaseType) -> bool | int | float:
    if (text in ("true", "false")) != (base is BOOL):
        raise ValueError(f"{text} is not an element of {base}")
    if base is BOOL:
        return text == "true"
    if base.base_class is BaseClass.FLOAT:
        return float(text)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text} is not an element of {base}") from None


def encode(array: np.ndarray) -> str:
    """The bytes of an array as text."""
    plain = np.ascontiguousarray(array, BASE_TYPES[array.dtype.name].dtype)
    return base64.b64encode((plain.byteswap() if sys.byteorder == "big" else plain).tobytes()).decode("ascii")


def decode(text: str, base: BaseType, shape: Sequence[int]) -> np.ndarray:
    """The array that `encode` made this text of. Raises ValueError, with what is wrong, where there is none."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("this is not base64 text") from None
    wanted = base.dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(data) != wanted:
        raise ValueError(f"{len(data)} bytes where the type has {wanted}")
    try:
        array = np.frombuffer(data, base.dtype).reshape(shape)
    except (ValueError, OverflowError):  # an empty array with a dim beyond all limits
        raise ValueError("there is no array of this shape") from None
    return array.byteswap() if sys.byteorder == "big" else array
