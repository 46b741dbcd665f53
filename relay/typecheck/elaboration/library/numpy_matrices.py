"""Functions of NumPy that join arrays in other ways, compare them, or are about square matrices: `np.linalg.solve`,
`inv`, `det`, `slogdet`; `np.hstack`, `vstack`, `column_stack`; `np.array_equal`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import ShapeError, Span, TypeCheckError
from relay.ir.dims import Dim
from relay.ir.types import show_shape
from relay.operator import lookup
from relay.typecheck.dims import equal
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Tuple, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.expressions.operators import truth
from relay.typecheck.elaboration.library.ordering import call_library
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.subscripts import ranked_type, reshape_tensor

Rule = Callable[[Checker, TypedBlockBuilder, Sequence[AbstractValue], "Span | None"], AbstractValue]


def of_matrix(name: str, library: str) -> Rule:
    """`np.linalg.name` of a square matrix, and of the right sides of equations. Raises ShapeError."""

    def rule(
        checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
    ) -> AbstractValue:
        matrix, *sides = (checker.materialize(out, a, span) for a in arguments)
        shape = tuple(ranked_type(matrix, span).shape)
        if len(shape) != 2 or not equal(shape[0], shape[1]):
            help = "loop over a batch: `relay.stack([np.linalg." + name + "(m) for m in a])`"
            raise ShapeError(
                f"{name} needs a square matrix, found the shape {show_shape(shape)}",
                span,
                help=help if len(shape) > 2 else None,
            )
        for side in sides:
            other = tuple(ranked_type(side, span).shape)
            if len(other) not in (1, 2) or not equal(other[0], shape[0]):
                raise ShapeError(
                    f"{name} of the shapes {show_shape(shape)} and {show_shape(other)}: the second must be"
                    f" ({shape[0]},) or ({shape[0]}, k)",
                    span,
                )
        return call_library(checker, out, library, [matrix, *sides], span)

    return rule


def concatenation_rule(name: str) -> Rule:
    """`np.name(xs)` as a concatenation: `hstack`, `vstack`, `column_stack`."""

    def rule(
        checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
    ) -> AbstractValue:
        entity = arguments[0]
        if isinstance(entity, DynamicValue):
            entity = expand(checker, out, entity, span)
        if not isinstance(entity, Tuple) or not entity.items:
            raise TypeCheckError(f"{name} takes a tuple or list of tensors", span, help=f"np.{name}((x, y))")
        parts = []
        for item in entity.items:
            part = checker.materialize(out, item, span)
            shape = tuple(ranked_type(part, span).shape)
            parts.append(
                reshape_tensor(checker, out, part, _padded_shape(name, shape), span) if len(shape) < 2 else part
            )
        flat = name == "hstack" and len(tuple(ranked_type(parts[0], span).shape)) == 1
        axis = 0 if flat or name == "vstack" else 1
        return operators.apply(checker, out, lookup("concatenate"), parts, {"axis": axis}, span, [])

    return rule


def _padded_shape(name: str, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """A shape of fewer than two axes as these functions take it."""
    if name == "hstack":
        return shape or (1,)
    ones = (1,) * (2 - len(shape))
    return (*shape, *ones) if name == "column_stack" else (*ones, *shape)


def array_equal(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """Whether two arrays have one shape and the same elements."""
    left, right = (checker.materialize(out, a, span) for a in arguments)
    shapes = [tuple(ranked_type(x, span).shape) for x in (left, right)]
    if len(shapes[0]) != len(shapes[1]) or not all(map(equal, *shapes)):
        return truth(False, span)
    same = operators.apply(checker, out, lookup("equal"), [left, right], {}, span, [])
    return operators.apply(checker, out, lookup("all"), [same], {}, span, [])


def isclose(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """|x - y| <= atol + rtol |y| for finite y, or x == y: `np.isclose(x, y, rtol, atol)`."""
    x, y, relative, absolute = arguments

    def call(name: str, *operands: AbstractValue) -> AbstractValue:
        return operators.apply(checker, out, lookup(name), list(operands), {}, span, [])

    bound = call("add", call("multiply", call("abs", y), relative), absolute)
    near = call("less_equal", call("abs", call("subtract", x, y)), bound)
    return call("logical_or", call("logical_and", near, call("isfinite", y)), call("equal", x, y))


def allclose(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """Whether all elements are close: `np.allclose(x, y, rtol, atol)`."""
    close = isclose(checker, out, arguments, span)
    return operators.apply(checker, out, lookup("all"), [close], {}, span, [])


def norm(
    checker: Checker,
    out: TypedBlockBuilder,
    x: DynamicValue,
    order: object,
    axis: object,
    keepdims: bool,
    span: Span | None,
) -> DynamicValue:
    """`np.linalg.norm(x, ord, axis, keepdims)`: of the elements as a vector without an order and axis, along one axis
    that of vectors, and along two that of matrices. Raises ShapeError, TypeCheckError."""
    rank = len(tuple(ranked_type(x, span).shape))

    def call(name: str, operand: DynamicValue, **attributes: object) -> DynamicValue:
        return operators.apply(checker, out, lookup(name), [operand], attributes, span, [])

    if axis is None and order is None:
        return call("norm", x, ord=2, axis=None, keepdims=keepdims)
    axes = tuple(range(rank)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) not in (1, 2):
        what = f"along {len(axes)} axes" if axis is not None else f"of rank {rank}"
        raise ShapeError(f"np.linalg.norm {what}", span, help="it is about one axis, for vectors, or two, for matrices")
    if not all(isinstance(a, int) and not isinstance(a, bool) and -rank <= a < rank for a in axes):
        raise ShapeError(f"np.linalg.norm of rank {rank} has no axis {axis}", span)
    places = tuple(a % rank for a in axes)
    if len(set(places)) < len(places):
        raise ShapeError(f"np.linalg.norm needs two axes, found {axis}", span)
    is_number = isinstance(order, int | float) and not isinstance(order, bool)
    if len(places) == 1:
        if order is not None and not is_number:
            raise TypeCheckError(f"the order of a vector's norm is a number, found {order!r}", span)
        return call("norm", x, ord=2 if order is None else order, axis=places[0], keepdims=keepdims)
    if order is None or order == "fro":
        return call("norm", x, ord=2, axis=places, keepdims=keepdims)
    if order not in (1, -1, float("inf"), float("-inf")):
        raise TypeCheckError(
            f"the norm of order {order!r} of matrices is not part of Relay",
            span,
            help="np.linalg.norm(A) is the Frobenius norm, orders 1 and inf are sums along columns and rows;"
            " the norm of all elements as a vector: np.linalg.norm(A.ravel(), ord)",
        )
    summed, compared = places if order in (1, -1) else (places[1], places[0])
    sums = call("sum", call("abs", x), axis=summed, keepdims=True)
    most = call("max" if order in (1, float("inf")) else "min", sums, axis=compared, keepdims=True)
    return most if keepdims else call("squeeze", most, axis=places)


__all__ = ["allclose", "array_equal", "concatenation_rule", "isclose", "norm", "of_matrix", "ranked_type"]
