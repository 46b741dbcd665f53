"""Alignment of named axes: a tensor's axes in the order of others, as `align_to` and `align_as` of PyTorch's named
tensors.

    x: NHWC, to NCHW          transpose(x, (0, 3, 1, 2))
    b: C, to NCHW             reshape(b, (1, c, 1, 1)), which broadcasts along the axes that it lacks
"""

from __future__ import annotations

from relay.errors import FrontendError, Span, TypeMismatch
from relay.ir.axes import NAMES_HELP, AxisNames, axes_text, read_names
from relay.ir.types import Dim, TensorType, prune
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.values.axis_names import may_get_names, names_of, with_names
from relay.typecheck.unification import flat_shape


def align(
    checker: Checker, out: TypedBlockBuilder, x: AbstractValue, like: AbstractValue, span: Span | None
) -> AbstractValue:
    """The tensor `x` with its axes in the order of those of `like`, a tensor or names, and an axis of extent 1 for each
    name that it lacks. Raises TypeMismatch unless each axis of both has a name of its own, and `like` has those of x.
    """
    typed = checker.materialize(out, x, span)
    return _align_value(checker, out, typed, _target(checker, out, like, span), span)


def _target(checker: Checker, out: TypedBlockBuilder, like: AbstractValue, span: Span | None) -> AxisNames:
    if isinstance(like, PythonObject) or (isinstance(like, Tuple) and like.items):
        items = like.items if isinstance(like, Tuple) else (like,)
        given = [item.value for item in items if isinstance(item, PythonObject) and isinstance(item.value, str)]
        if len(given) == len(items):
            value = tuple(given) if isinstance(like, Tuple) else given[0]
            try:
                names = read_names(value, len(value))
            except FrontendError as error:
                raise TypeMismatch(error.message, span, help=error.help) from None
            return _complete(names, len(value), "the order to align to", span)
    typed = checker.materialize(out, like, span)
    return _named_axes(checker, typed, "the tensor to align to", span)


def _named_axes(checker: Checker, typed: DynamicValue, what: str, span: Span | None) -> AxisNames:
    type_ = prune(typed.type)
    if names_of(typed) is None and checker.generic and may_get_names(typed):
        raise SchemeOnly(span, f"the names of the axes of {what}")
    if not isinstance(type_, TensorType) or not flat_shape(type_.shape):
        found = "a scalar" if isinstance(type_, TensorType) else "no tensor"
        raise TypeMismatch(f"{what} is {found}", span, help="relay.align(x, y), or relay.align(x, 'NCHW')")
    return _complete(names_of(typed), len(flat_shape(type_.shape)), what, span)


def _complete(names: AxisNames | None, rank: int, what: str, span: Span | None) -> AxisNames:
    names = names or (None,) * rank
    if None in names or len(set(names)) < len(names):
        found = f"its axes are {axes_text(names)}" if any(names) else "its axes have no names"
        message = f"each axis of {what} needs a name of its own; {found}"
        raise TypeMismatch(message, span, help=NAMES_HELP)
    return names


def _align_value(
    checker: Checker, out: TypedBlockBuilder, typed: DynamicValue, wanted: AxisNames, span: Span | None
) -> DynamicValue:
    own = _named_axes(checker, typed, "the tensor that is aligned", span)
    extra = [name for name in own if name not in wanted]
    if extra:
        message = f"the axes {axes_text(own)} cannot be aligned to {axes_text(wanted)}, which has no axis {extra[0]!r}"
        raise TypeMismatch(message, span, help=f"reduce it first: relay.sum(x, axis={extra[0]!r})")
    order = tuple(own.index(name) for name in wanted if name in own)
    if order != tuple(range(len(own))):
        moved = operators.apply(checker, out, lookup("transpose"), [typed], {"axes": order}, span, [])
        typed = checker.materialize(out, moved, span)
    if len(own) < len(wanted):
        type_ = prune(typed.type)
        assert isinstance(type_, TensorType)
        extents = iter(flat_shape(type_.shape))
        shape: tuple[Dim, ...] = tuple(next(extents) if name in own else 1 for name in wanted)
        spread = operators.apply(checker, out, lookup("reshape"), [typed], {"shape": shape}, span, [])
        typed = checker.materialize(out, spread, span)
    return with_names(typed, wanted)
