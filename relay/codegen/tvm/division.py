"""Division of indices without a choice: floor(a / b) and the remainder, where neither is negative, as the processor
divides.

TVM's index arithmetic rounds down, the processor towards zero. If TVM cannot prove that an index is not negative, since
it does not know the sizes, it computes both quotients and chooses; and in the quotient of a quotient, as in the indices
of successive axes, each choice copies the expression inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import relay.codegen.tvm.without_torch  # noqa: F401  (before TVM)

# isort: split

from tvm import tirx
from tvm_ffi import structural_map, structural_walk

Expression = Any


def without_choices(body: Any, least: Mapping[Any, int]) -> Any:
    """A kernel's body, whose parameters that are sizes are this large at `least`."""
    divisions: list[Any] = []
    structural_walk(body, (((tirx.FloorDiv, tirx.FloorMod), divisions.append),))
    if all(isinstance(division.b, tirx.IntImm) for division in divisions) and not least:
        return body
    lowest: dict[Any, int | None] = dict(least)

    def loop(made: Any) -> None:
        lowest[made.loop_var] = _lower_bound(made.min, lowest)

    def name(made: Any) -> None:
        lowest[made.var] = _lower_bound(made.value, lowest)

    structural_walk(body, ((tirx.For, loop), ((tirx.Bind, tirx.Let), name)))

    def division(made: Any) -> Any:
        dividend, divisor = _lower_bound(made.a, lowest), _lower_bound(made.b, lowest)
        if dividend is None or dividend < 0 or divisor is None or divisor < 0:
            return made
        return (tirx.Div if isinstance(made, tirx.FloorDiv) else tirx.Mod)(made.a, made.b)

    return structural_map(body, (((tirx.FloorDiv, tirx.FloorMod), division),))


def _lower_bound(expression: Expression, names: Mapping[Any, int | None]) -> int | None:
    """A number that an integer, or each of a vector, is not below; None if none is known."""
    match expression:
        case tirx.IntImm():
            return int(expression.value)
        case tirx.Var():
            return names.get(expression)
        case tirx.Broadcast():
            return _lower_bound(expression.value, names)
        case tirx.Cast() if _bits(expression) >= _bits(expression.value):
            return _lower_bound(expression.value, names)
        case tirx.Ramp():
            base, stride = _lower_bound(expression.base, names), _lower_bound(expression.stride, names)
            return base if stride is not None and stride >= 0 else None
        case tirx.Add() | tirx.Mul() if _bits(expression) < 64:
            return None  # numbers of the program, which wrap around
        case tirx.Add() | tirx.Mul() | tirx.Min() | tirx.Max() | tirx.Div() | tirx.Mod() | tirx.FloorDiv():
            return _of_both(expression, _lower_bound(expression.a, names), _lower_bound(expression.b, names))
        case tirx.Sub() if isinstance(expression.b, tirx.IntImm):
            left = _lower_bound(expression.a, names)
            return None if left is None else left - int(expression.b.value)
        case tirx.FloorMod():
            divisor = _lower_bound(expression.b, names)
            return 0 if divisor is not None and divisor >= 0 else None
    return None


def _bits(expression: Expression) -> int:
    return int(expression.ty.dtype.bits)


def _of_both(expression: Expression, left: int | None, right: int | None) -> int | None:
    if isinstance(expression, tirx.Max):
        return right if left is None else left if right is None else max(left, right)
    if left is None or right is None:
        return None
    if isinstance(expression, tirx.Add):
        return left + right
    if isinstance(expression, tirx.Min):
        return min(left, right)
    if left < 0 or right < 0:
        return None
    return left * right if isinstance(expression, tirx.Mul) else 0


__all__ = ["without_choices"]
