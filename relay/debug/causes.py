"""Usual causes of a NaN or an infinity, and their fixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np
from ml_dtypes import finfo

if TYPE_CHECKING:
    from relay.debug.non_finite import Operation

Values = Sequence["float | None"]


@attrs.frozen
class Cause:
    """Something that an operator does to operands that `applies` accepts, element by element."""

    operator: str
    applies: Callable[[Values], bool]
    text: str
    help: str


def _test(position: int, test: Callable[[float], bool]) -> Callable[[Values], bool]:
    def applies(values: Values) -> bool:
        value = values[position] if position < len(values) else None
        return value is not None and test(value)

    return applies


_FORWARD = (
    Cause("sqrt", _test(0, lambda x: x < 0), "sqrt of a negative number", "relay.sqrt(relay.maximum(x, 0.0))"),
    Cause(
        "rsqrt", _test(0, lambda x: x <= 0), "1 / sqrt(x) of a number that is not positive", "add a small number to x"
    ),
    Cause(
        "log", _test(0, lambda x: x == 0), "log of 0", "relay.log(x + 1e-12), or relay.log_softmax for probabilities"
    ),
    Cause("log", _test(0, lambda x: x < 0), "log of a negative number", "relay.log(relay.maximum(x, 1e-12))"),
    Cause("log2", _test(0, lambda x: x <= 0), "log2 of a number that is not positive", "add a small number to x"),
    Cause("log10", _test(0, lambda x: x <= 0), "log10 of a number that is not positive", "add a small number to x"),
    Cause("log1p", _test(0, lambda x: x <= -1), "log1p of -1 or less", "relay.log1p(relay.maximum(x, -1.0 + 1e-6))"),
    Cause(
        "divide",
        _test(1, lambda y: y == 0),
        "a division by 0",
        "divide by `relay.where(y == 0.0, 1.0, y)`, and choose the result for y == 0.0 outside",
    ),
    Cause("reciprocal", _test(0, lambda x: x == 0), "a division by 0", "relay.where(x == 0.0, 1.0, x) as its operand"),
    Cause(
        "exp",
        _test(0, lambda x: x > 80),
        "exp of a large number overflows",
        "subtract the largest number first, or use relay.softmax, relay.logsumexp, relay.log_softmax",
    ),
    Cause("expm1", _test(0, lambda x: x > 80), "expm1 of a large number overflows", "relay.clip its operand"),
    Cause("power", _test(0, lambda x: x == 0), "0 to a negative power", "relay.maximum(x, 1e-12) as the base"),
    Cause(
        "power",
        _test(0, lambda x: x < 0),
        "a negative number to a power that is not an integer",
        "relay.abs(x), or x * x",
    ),
    Cause(
        "mod",
        _test(1, lambda y: y == 0),
        "a remainder of a division by 0",
        "relay.where(y == 0.0, 1.0, y) as its divisor",
    ),
    Cause(
        "floor_divide", _test(1, lambda y: y == 0), "a division by 0", "relay.where(y == 0.0, 1.0, y) as its divisor"
    ),
    Cause("acosh", _test(0, lambda x: x < 1), "arccosh of a number below 1", "relay.maximum(x, 1.0)"),
    Cause("acos", _test(0, lambda x: abs(x) > 1), "arccos outside of -1 .. 1", "relay.clip(x, -1.0, 1.0)"),
    Cause("asin", _test(0, lambda x: abs(x) > 1), "arcsin outside of -1 .. 1", "relay.clip(x, -1.0, 1.0)"),
    Cause("atanh", _test(0, lambda x: abs(x) >= 1), "arctanh of 1 or more", "relay.clip(x, -1.0 + 1e-6, 1.0 - 1e-6)"),
)

_GROWING = {
    *("add", "subtract", "multiply", "square", "power", "exp2", "sinh", "cosh", "fma", "cast"),
    *("sum", "mean", "prod", "cumsum", "cumprod", "var", "norm", "dot", "outer"),
    *("matmul", "batch_matmul", "dense", "einsum", "tensordot", "conv1d", "conv2d", "conv3d"),
}
"""Operators whose finite operands may give a result that is too large for its dtype."""

_SINGULAR = {
    "sqrt": ("the derivative of sqrt is infinite at 0", "relay.sqrt(x + 1e-12)"),
    "log": ("the derivative of log is infinite at 0", "relay.log(x + 1e-12)"),
    "power": ("the derivative of a power below 1 is infinite at 0", "(x + 1e-12) ** p"),
    "norm": ("a norm has no derivative at 0", "relay.sqrt((x * x).sum() + 1e-12)"),
    "std": ("the derivative of a deviation is infinite where all numbers are the same", "relay.sqrt(x.var() + 1e-12)"),
    "acos": ("the derivative of arccos is infinite at -1 and 1", "relay.clip(x, -1.0 + 1e-6, 1.0 - 1e-6)"),
    "asin": ("the derivative of arcsin is infinite at -1 and 1", "relay.clip(x, -1.0 + 1e-6, 1.0 - 1e-6)"),
    "divide": ("a division by 0 has no derivative", "divide by relay.where(y == 0.0, 1.0, y)"),
    "reciprocal": ("a division by 0 has no derivative", "divide by relay.where(x == 0.0, 1.0, x)"),
    "rsqrt": ("the derivative of 1 / sqrt(x) is infinite at 0", "relay.rsqrt(x + 1e-12)"),
    "atan2": ("arctan2 has no derivative at 0, 0", "relay.arctan2(y, relay.where((x == 0.0) & (y == 0.0), 1.0, x))"),
    "acosh": ("the derivative of arccosh is infinite at 1", "relay.arccosh(relay.maximum(x, 1.0 + 1e-6))"),
}
"""Operators whose derivative is infinite somewhere."""


def cause_of(chain: Sequence[Operation], is_nan: bool, operators: Sequence[str], drops: bool) -> tuple[str, str] | None:
    """The cause of the NaN or infinity at the origin of a chain, and the fix. `operators` are those written at its
    place; the program `drops` values by `where`."""
    origin = chain[0]
    if not origin.operator:
        return "it is in an argument of the call", "check the code that computes or reads it before the call"
    singular = next((name for name in operators if name in _SINGULAR), None) if origin.is_backward else None
    if singular is not None:
        text, help = _SINGULAR[singular]
        return _dropped_name(text, singular) if is_nan and drops else (text, help)
    constant = next((one for one in origin.inputs if not _is_finite(one.array)), None)
    if constant is not None:
        return f"{constant.name} of the program is not a finite number: {constant.value}", "look at where it is written"
    if special := _of_arrays(origin, is_nan):
        return special
    elements = [one.element for one in origin.inputs]
    found = next((c for c in _FORWARD if c.operator == origin.operator and c.applies(elements)), None)
    if found is None:
        return None
    backward = next((step for step in chain if step.is_backward), None)
    meets_zero = backward is not None and any(one.element == 0 for one in backward.inputs)
    if drops and meets_zero and not origin.is_backward:
        return _dropped_name(found.text, found.operator)
    return found.text, found.help


def _of_arrays(origin: Operation, is_nan: bool) -> tuple[str, str] | None:
    """The causes that no single element shows."""
    arrays = [one.array for one in origin.inputs]
    if origin.operator in ("mean", "var", "std") and arrays[0].size == 0:
        return f"the {origin.operator} of no elements", "look at what chooses the elements, and left none"
    if origin.operator == "cholesky":
        return "a matrix that is not positive definite", "a + 1e-6 * relay.eye(n), and a symmetric a"
    if origin.operator == "triangular_solve":
        return "a matrix without an inverse: there is a 0 on its diagonal", "a + 1e-6 * relay.eye(n)"
    if is_nan or origin.operator not in _GROWING or origin.array.dtype.kind not in "fV":
        return None
    if origin.operator == "power" and any(one.element == 0 for one in origin.inputs[:1]):
        return None
    largest = finfo(origin.array.dtype).max
    dtype = origin.array.dtype.name
    help = "scale the numbers" + (', or compute in float64: x.astype("float64")' if dtype != "float64" else "")
    return f"the result is larger than a {dtype} can be, {float(largest):.3g}", help


def _is_finite(array: np.ndarray) -> bool:
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _dropped_name(text: str, operator: str) -> tuple[str, str]:
    return (
        f"{text}; `where`, or a mask, drops its result, but its cotangent of 0 times infinity is NaN",
        f"give {operator} a harmless operand where it is dropped: "
        f"relay.where(c, relay.{operator}(relay.where(c, x, 1.0)), y)",
    )
