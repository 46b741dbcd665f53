"""Equality of strings that contain run-time values.

The text of an integer or boolean says which one it is, so that comparing it with a known text compares the value:
`f"{i}" == "3"` is `i == 3`. Two texts of one form are equal if the one value in it is. Other comparisons
make run-time strings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from relay.errors import Span, TypeMismatch
from relay.ir.literals import holds
from relay.ir.types import BaseClass, BaseType, TensorType, Unknown, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    Text,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import structure_of
from relay.typecheck.elaboration.expressions.operators import bool_value
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.elaboration.values import texts
from relay.typecheck.elaboration.values.data import is_text
from relay.typecheck.unification import flat_shape

_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def refusal(what: str, span: Span | None) -> TypeMismatch:
    """The error for what run-time strings do not have."""
    return TypeMismatch(
        f"{what} a run-time string",
        span,
        help="run-time strings have `+`, `*`, comparisons, `in`, `len`, indices, slices, `for`, "
        + ", ".join(texts.METHODS),
    )


def joined_to_other(operands: Sequence[AbstractValue], span: Span | None) -> TypeMismatch:
    """The error for `+` of a string and something else."""
    left, right = operands
    at_left = is_text(right)
    found = structure_of(left if at_left else right)
    return TypeMismatch(
        f"`+` joins a string to a string; its {'left' if at_left else 'right'} operand is {found}",
        span,
        help=f"write `{_with_str(span, at_left)}`",
    )


def _with_str(span: Span | None, at_left: bool) -> str:
    """The text of a sum with `str(..)` around one operand."""
    text = "" if span is None else span.source.line(span.line)
    if span is not None and span.line == span.end_line:
        text = text[span.column - 1 : span.end_column - 1]
    try:
        (statement,) = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return 'f"{a}{b}"'
    match statement:
        case ast.Expr(ast.BinOp(op=ast.Add()) as sum_):
            left, right = map(ast.unparse, (sum_.left, sum_.right))
            return f"str({left}) + {right}" if at_left else f"{left} + str({right})"
        case ast.AugAssign(op=ast.Add()) if not at_left:
            return f"{ast.unparse(statement.target)} += str({ast.unparse(statement.value)})"
        case _:
            return 'f"{a}{b}"'


def equal(
    checker: Checker, out: TypedBlockBuilder, left: AbstractValue, right: AbstractValue, span: Span | None
) -> AbstractValue:
    """`left == right`, one of which is a Text. Raises TypeMismatch where the values in it do not tell."""
    text, other = (left, right) if isinstance(left, Text) else (right, left)
    assert isinstance(text, Text)
    try:
        return _by_values(checker, out, text, other, span)
    except TypeMismatch:
        found = texts.operate(checker, out, "equal", [text, other], span)
        if found is None:
            raise
        return found


def _by_values(
    checker: Checker, out: TypedBlockBuilder, text: Text, other: AbstractValue, span: Span | None
) -> AbstractValue:
    """Equality by the values in the texts alone. Raises TypeMismatch where these do not decide."""
    if isinstance(other, Text):
        return _of_two(checker, out, text, other, span)
    if not isinstance(other, PythonObject) or not isinstance(other.value, str):
        if isinstance(other, PythonObject | Number):
            return bool_value(False, span)
        raise refusal("only strings can be compared with", span)
    inside = _middle_text(text, other.value)
    if inside is None:
        return bool_value(False, span)
    if len(text.values) > 1 or text.formats[0] not in ("", "d"):
        raise refusal("the values alone do not decide equality of", span)
    value = text.values[0]
    if checker.is_open(value):
        return conditional_types.condition(checker, span)
    if _is_of(checker, value, BaseClass.BOOL):
        if inside not in ("True", "False"):
            return bool_value(False, span)
        return value if inside == "True" else _apply(checker, out, "logical_not", [value], span)
    _require_integer(checker, value, span)
    if _INTEGER.fullmatch(inside) is None:
        return bool_value(False, span)
    type_ = prune(value.type)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    if isinstance(base, BaseType) and not holds(base, int(inside)):
        return bool_value(False, span)
    return _apply(checker, out, "equal", [value, PythonNumber(int(inside), span)], span)


def _middle_text(text: Text, whole: str) -> str | None:
    """The part of a text from its first value to its last one, if it is `whole`; None if it cannot be that."""
    first, last = text.pieces[0], text.pieces[-1]
    if len(whole) <= len(first) + len(last) or not whole.startswith(first) or not whole.endswith(last):
        return None  # every value writes something
    return whole[len(first) : len(whole) - len(last)]


def _of_two(checker: Checker, out: TypedBlockBuilder, left: Text, right: Text, span: Span | None) -> AbstractValue:
    if left.pieces != right.pieces or left.formats != right.formats:
        raise refusal("the values alone do not decide equality of", span)
    if all(a.atom is b.atom for a, b in zip(left.values, right.values, strict=True)):
        return bool_value(True, span)
    if len(left.values) > 1 or left.formats[0] not in ("", "d"):
        raise refusal("the values alone do not decide equality of", span)
    (one,), (other,) = left.values, right.values
    if checker.is_open(one) or checker.is_open(other):
        return conditional_types.condition(checker, span)
    if not (_is_of(checker, one, BaseClass.BOOL) and _is_of(checker, other, BaseClass.BOOL)):
        _require_integer(checker, one, span)
        _require_integer(checker, other, span)
    return _apply(checker, out, "equal", [one, other], span)


def _apply(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: list[AbstractValue], span: Span | None
) -> AbstractValue:
    return checker.engine.apply_operator(checker, out, name, operands, {}, span, [])


def _is_of(checker: Checker, value: DynamicValue, wanted: BaseClass) -> bool:
    base = prune(type_.base) if isinstance(type_ := prune(value.type), TensorType) else None
    return getattr(base, "base_class", None) is wanted


def _require_integer(checker: Checker, value: DynamicValue, span: Span | None) -> None:
    """Demand that a value is one integer: the text of a float may be that of several."""
    type_ = prune(value.type)
    integers = frozenset({BaseClass.INTEGER})
    if (
        not isinstance(type_, TensorType)
        or flat_shape(type_.shape) != ()
        or _is_float(type_.base)
        or not checker.solver.restrict(type_.base, integers)
    ):
        raise refusal("only a single integer or bool decides equality of", span)


def _is_float(base: object) -> bool:
    """True if an open dtype is that of a float."""
    known = prune(base)  # type: ignore[arg-type]
    return isinstance(known, Unknown) and any(isinstance(n.value, float) for n in known.literals)
