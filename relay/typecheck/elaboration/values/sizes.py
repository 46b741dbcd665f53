"""Sizes as numbers: arithmetic and comparisons of symbolic dims, and their values at run time.

Arithmetic on sizes stays with the checker as long as it gives dims. A comparison of sizes is decided at once, so that a
condition on sizes chooses its arm; what decided it is assumed of the program's sizes. Where the program needs a size
as a value, an `Extent` reads it; what is not a dim, as `1.0 / n`, is computed in float64 and then converted, as Python
would do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir import dims
from relay.ir.dims import Dim, resolve_dim
from relay.ir.expr import Binding, Constant, Extent, OpCall
from relay.ir.literals import out_of_range_text
from relay.ir.sizes.facts import mentions_made
from relay.ir.types import (
    FLOAT64,
    INT32,
    INT64,
    BaseType,
    TensorType,
    TypeId,
    prune,
    scalar,
)
from relay.operator import Undetermined, lookup
from relay.typecheck.dims import at_least, equal, follows_at_least, follows_equal
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    Size,
    SizeExpression,
    TypedBlockBuilder,
    dim_of,
    size,
)
from relay.typecheck.guards import fits_int32

if TYPE_CHECKING:
    from relay.typecheck.elaboration.checker import Checker

_DIM_OPERATIONS: dict[str, Callable[..., Dim]] = {
    "add": dims.add,
    "subtract": dims.subtract,
    "multiply": dims.multiply,
    "floor_divide": dims.floor_divide,
    "mod": dims.modulo,
    "negative": lambda dim: dims.subtract(0, dim),
    "maximum": dims.maximum,
    "minimum": dims.minimum,
    "abs": lambda dim: dims.maximum(dim, dims.subtract(0, dim)),
}
_COMPARISONS: dict[str, Callable[[Dim, Dim], bool]] = {
    "equal": equal,
    "not_equal": lambda a, b: not equal(a, b),
    "greater_equal": at_least,
    "less_equal": lambda a, b: at_least(b, a),
    "greater": lambda a, b: not at_least(b, a),
    "less": lambda a, b: not at_least(a, b),
}


def size_arithmetic(
    name: str, operands: list[Number], compute: Callable[..., int | float], span: Span | None
) -> Number | None:
    """An arithmetic operator on numbers some of which are sizes; None if none is."""
    if not any(isinstance(o, Size | SizeExpression) for o in operands):
        return None
    found = [dim_of(o) for o in operands]
    known = [d for d in found if d is not None]
    if len(known) == len(found):
        if name in _DIM_OPERATIONS and not (name in ("floor_divide", "mod") and not _is_positive(known[1])):
            return size(_DIM_OPERATIONS[name](*known), span)
        if name == "power" and isinstance(known[1], int) and 0 <= known[1] <= 4:
            return size(dims.product([known[0]] * known[1]), span)
    floats = name == "divide" or any(o.is_float for o in operands)
    of_floats = name in ("maximum", "minimum", "abs") and all(o.is_float for o in operands)
    if not floats or not (of_floats or name in ("add", "subtract", "multiply", "divide", "negative", "power")):
        return None
    return SizeExpression(name, tuple(operands), compute, True, span)


def _is_positive(dim: Dim) -> bool:
    return follows_at_least(dim, 1) if mentions_made(dim) else at_least(dim, 1)


def compare_sizes(name: str, left: Number, right: Number) -> bool | None:
    """A comparison of sizes; None if neither is one, or it is more than that."""
    if not isinstance(left, Size) and not isinstance(right, Size):
        return None
    a, b = dim_of(left), dim_of(right)
    if a is None or b is None:
        return None
    if mentions_made(a) or mentions_made(b):
        return _compare_data_dependent(name, a, b)
    try:
        return _COMPARISONS[name](a, b)
    except Undetermined as error:
        if not is_decided_later(error):
            raise
        return None


def _compare_data_dependent(name: str, a: Dim, b: Dim) -> bool | None:
    """The answer where it follows from what is known. What shape rules take for granted of such sizes, as that they are
    neither 0 nor 1, is what a program asks."""
    if name in ("equal", "not_equal"):
        is_equal = follows_equal(a, b)
        return None if is_equal is None else is_equal is (name == "equal")
    if name in ("less", "less_equal"):
        a, b = b, a
    strict = name in ("less", "greater")
    if follows_at_least(a, dims.add(b, int(strict))):
        return True
    return False if follows_at_least(b, dims.add(a, int(not strict))) else None


def is_decided_later(error: Undetermined) -> bool:
    """True if a question about sizes is open because they are annotated, and stand for all numbers."""
    question = error.question
    if question is None:
        return False
    found = [*dims.variables(dims.resolve_dim(question.left)), *dims.variables(dims.resolve_dim(question.right))]
    return bool(found) and all(isinstance(v, TypeId) for v in found)


def constant(
    checker: Checker, out: TypedBlockBuilder, number: Size | SizeExpression, base: object = None
) -> DynamicValue:
    """A size as a rank-0 tensor of this base type (unknown: decided by its uses)."""
    span = number.span
    is_large = isinstance(number, Size) and not fits_int32(checker.hints, number.dim)
    open_base = checker.solver.literal_base(0.0 if number.is_float else LARGE if is_large else SMALL, span)
    wanted = open_base if base is None else prune(base)  # type: ignore[arg-type]
    if isinstance(wanted, BaseType) and number.is_float and not wanted.is_float:
        raise TypeMismatch(f"the size is a float here ({wanted} expected)", span, help="use // for integer division")
    if wanted is not open_base:
        checker.unify_base_at(open_base, wanted, span)
    type_ = TensorType(wanted, ())  # type: ignore[arg-type]
    var = checker.variable("size", type_, span)
    place = out.slot()

    def finish() -> None:
        found = prune(wanted)  # type: ignore[arg-type]
        if not isinstance(found, BaseType):
            return  # a scheme, which is not run
        if isinstance(number, Size) and found in (INT32, INT64):
            place.items.append(Binding((var,), _expression(number.dim, found, span)))
            return
        value = _float64(checker, place, number, span)
        place.items.append(Binding((var,), OpCall("cast", (value.atom,), {"dtype": found}, span)))

    checker.module.finishers.append(finish)
    return DynamicValue(var, type_)


SMALL, LARGE = 1, 2**31
"""The numbers that stand for a size where it is asked whether a dtype holds it: for one of 32 bits, and for others."""


def _float64(checker: Checker, out: TypedBlockBuilder, number: Number, span: Span | None) -> DynamicValue:
    """A number as a float64: an integer up to 2**53 is one exactly."""
    match number:
        case Size():
            whole = checker.bind(out, _expression(number.dim, INT64, span), scalar(INT64), "size", span)
            call = OpCall("cast", (whole.atom,), {"dtype": FLOAT64}, span)
            return checker.bind(out, call, scalar(FLOAT64), "size", span)
        case SizeExpression():
            operands = [_float64(checker, out, o, span) for o in number.operands]
            call = OpCall(lookup(number.operator).name, tuple(o.atom for o in operands), {}, span)
            return checker.bind(out, call, scalar(FLOAT64), "size", span)
        case _:
            return checker.constant(out, PythonNumber(float(number.specialize()), span), FLOAT64)


def extent(checker: Checker, out: TypedBlockBuilder, dim: Dim, base: BaseType, span: Span | None) -> DynamicValue:
    """A dim that is not a number as an integer of 32 or 64 bits."""
    dim = dims.resolve_dim(dim)
    if base == INT32 and not fits_int32(checker.hints, dim):
        raise TypeMismatch(f"the size may be {out_of_range_text(INT32)}", span, help="cast the other operand to Int64")
    var = checker.variable("size", scalar(base), span)
    place = out.slot()
    checker.module.finishers.append(lambda: place.items.append(Binding((var,), _expression(dim, base, span))))
    return DynamicValue(var, scalar(base))


def _expression(dim: Dim, base: BaseType, span: Span | None) -> Extent | Constant:
    dim = dims.resolve_dim(dim)
    return Constant(np.asarray(dim, base.dtype), span) if isinstance(dim, int) else Extent(dim, base, span)


def slice_number(entity: AbstractValue | None, span: Span | None) -> Dim | None:
    match entity:
        case None | PythonObject(None):
            return None
        case Size(dim):
            return resolve_dim(dim)
        case PythonNumber(int(value)):
            return value
        case _:
            raise TypeCheckError(
                "the bounds of a slice must be known at compile time",
                span,
                help="index with an integer, or relay.take(x, relay.arange(..) + start)",
            ).needing_value(getattr(entity, "atom", None))
