"""`==` of texts, where values of the run stand in one.

The text of an integer or truth value says which one it is, so that comparing it with a text that is known compares the
value: `f"{i}" == "3"` is `i == 3`. Two texts of one form are equal if the one value in it is. What takes more than that
is refused: no text is put together while a program runs, but for printing.
"""

from __future__ import annotations

import re

from relay.errors import Span, TypeMismatch
from relay.ir.types import BaseClass, BaseType, TensorType, prune
from relay.typecheck.elaboration.abstract_values import Entity, Number, Object, Output, Text, Typed
from relay.typecheck.elaboration.checker import Session
from relay.typecheck.elaboration.expressions.operators import truth
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.unification import flat_shape, holds

_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def refusal(what: str, span: Span | None) -> TypeMismatch:
    """The error for what would need a text while the program runs."""
    return TypeMismatch(
        f"{what} a text with values of the run",
        span,
        help="such a text is printed, or says why an assertion failed; ask the values in it: `i == 3`, not"
        ' `f"{i}" == "3"`',
    )


def equal(session: Session, out: Output, left: Entity, right: Entity, span: Span | None) -> Entity:
    """`left == right`, one of which is a Text. Raises TypeMismatch where the values in it do not tell."""
    text, other = (left, right) if isinstance(left, Text) else (right, left)
    assert isinstance(text, Text)
    if isinstance(other, Text):
        return _of_two(session, out, text, other, span)
    if not isinstance(other, Object) or not isinstance(other.value, str):
        if isinstance(other, Object | Number):
            return truth(False, span)
        raise refusal("nothing but a text is equal to", span)
    inside = _between(text, other.value)
    if inside is None:
        return truth(False, span)
    if len(text.values) > 1 or text.formats[0] not in ("", "d"):
        raise refusal("the values alone do not tell what is equal to", span)
    value = text.values[0]
    if session.is_open(value):
        return conditional_types.condition(session, span)
    if _is_of(session, value, BaseClass.BOOL):
        if inside not in ("True", "False"):
            return truth(False, span)
        return value if inside == "True" else _apply(session, out, "logical_not", [value], span)
    _require_integer(session, value, span)
    if _INTEGER.fullmatch(inside) is None:
        return truth(False, span)
    type_ = prune(value.type)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    if isinstance(base, BaseType) and not holds(base, int(inside)):
        return truth(False, span)
    return _apply(session, out, "equal", [value, Number(int(inside), span)], span)


def _between(text: Text, whole: str) -> str | None:
    """What a text has from its first value to its last one, if it is `whole`; None if it cannot be that."""
    first, last = text.pieces[0], text.pieces[-1]
    if len(whole) <= len(first) + len(last) or not whole.startswith(first) or not whole.endswith(last):
        return None  # every value writes something
    return whole[len(first) : len(whole) - len(last)]


def _of_two(session: Session, out: Output, left: Text, right: Text, span: Span | None) -> Entity:
    if left.pieces != right.pieces or left.formats != right.formats:
        raise refusal("the values alone do not tell what is equal to", span)
    if all(a.atom is b.atom for a, b in zip(left.values, right.values, strict=True)):
        return truth(True, span)
    if len(left.values) > 1 or left.formats[0] not in ("", "d"):
        raise refusal("the values alone do not tell what is equal to", span)
    (one,), (other,) = left.values, right.values
    if session.is_open(one) or session.is_open(other):
        return conditional_types.condition(session, span)
    if not (_is_of(session, one, BaseClass.BOOL) and _is_of(session, other, BaseClass.BOOL)):
        _require_integer(session, one, span)
        _require_integer(session, other, span)
    return _apply(session, out, "equal", [one, other], span)


def _apply(session: Session, out: Output, name: str, operands: list[Entity], span: Span | None) -> Entity:
    from relay.typecheck.elaboration.expressions.python_operators import apply_named

    return apply_named(session, out, name, operands, {}, span, [])


def _is_of(session: Session, value: Typed, wanted: BaseClass) -> bool:
    base = prune(type_.base) if isinstance(type_ := prune(value.type), TensorType) else None
    return getattr(base, "base_class", None) is wanted


def _require_integer(session: Session, value: Typed, span: Span | None) -> None:
    """Demand that a value is one integer: the text of a float may be that of several."""
    type_ = prune(value.type)
    integers = frozenset({BaseClass.INTEGER})
    if (
        not isinstance(type_, TensorType)
        or flat_shape(type_.shape) != ()
        or not session.solver.restrict(type_.base, integers)
    ):
        raise refusal("only integers and truth values tell what is equal to", span)
