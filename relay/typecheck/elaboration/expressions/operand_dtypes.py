"""The base types of an operator's operands: they unify as its signature says, and the user converts what does not
fit."""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.types import BOOL, BaseClass, BaseType, Kind, Unknown, prune
from relay.operator import Operator
from relay.operator.relation import BaseToken, class_names
from relay.typecheck.elaboration.abstract_values import (
    Number,
    Text,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.constraints import default_of
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of, operator_name
from relay.typecheck.unification import Clash

_INTEGER_DIVISION = "use // for integer division, or convert: float(x), x.astype(...)"


def refuse_float(operator: Operator, number: Number, base: BaseType, span: Span | None, notes: tuple[str, ...]) -> None:
    raise TypeMismatch(
        f"{operator_name(operator)} of {base} and the float {number.specialize()}: there is no implicit conversion",
        span,
        notes=notes,
        help="convert the tensor: x.astype(relay.Float32)",
    )


def unify_token(
    checker: Checker,
    operator: Operator,
    token: BaseToken,
    base: object,
    bound: dict[str, object],
    position: int,
    described: Sequence[str] = (),
) -> None:
    if not checker.solver.restrict(base, token.classes):
        assert token.classes is not None
        found = prune(base)  # type: ignore[arg-type]
        if operator.name == "divide":
            raise TypeMismatch(
                f"`/` needs floats, found {found}",
                help=_INTEGER_DIVISION,
            )
        raise TypeMismatch(
            f"{operator_name(operator)} needs {class_names(token.classes)}, found {found}", help=_cast(token, found)
        )
    if token.is_variable:
        first = bound.setdefault(token.text, base)
        expected: object = first
    else:
        expected = BaseType(token.text)
    try:
        checker.solver.unify_base(base, expected)
    except Clash as clash:
        left, right = prune(expected), prune(base)  # type: ignore[arg-type]
        if clash.reason is not None:
            mixed = any(isinstance(side, BaseType) and side.base_class is BaseClass.INTEGER for side in (left, right))
            raise TypeMismatch(clash.reason, help="convert: x.astype(relay.Float32)" if mixed else None) from None
        if token.is_variable and isinstance(left, Unknown) and isinstance(right, BaseType) and not right.is_float:
            help = _INTEGER_DIVISION if operator.name == "divide" else _cast(token, right)
            raise TypeMismatch(f"{operator_name(operator)} needs floats, found {right}", help=help) from None
        if token.is_variable:
            raise TypeMismatch(
                f"{operator_name(operator)} needs operands of one dtype, found {left} and {right}",
                help=f"convert one: {_conversion(left, right, position, described)}",
            ) from None
        raise TypeMismatch(
            f"operand {position + 1} of {operator_name(operator)} must be {left}, found {right}",
            help="compare with something: `x > 0`" if left == BOOL else None,
        ) from None


def _cast(token: BaseToken, found: object) -> str | None:
    if found == BOOL:
        return "for the numbers 0 and 1 write x.astype(relay.Int32); booleans are combined by `&`, `|` and `^`"
    if token.classes == frozenset({BaseClass.FLOAT}):
        return "convert it: x.astype(relay.Float32)"
    if token.classes == frozenset({BaseClass.BOOL}):
        return "compare with something: x != 0"
    return None


def _conversion(first: object, second: object, position: int, described: Sequence[str]) -> str:
    """The advice for two operands of different dtypes: convert an integer rather than a float."""
    integers_second = not (isinstance(first, BaseType) and isinstance(second, BaseType)) or first.is_float
    place, target = (position, first) if integers_second else (0, second)
    text = described[place] if place < len(described) else "x"
    return f"{text if text.isidentifier() else f'({text})'}.astype({spelling(target)})"


def spelling(base: object) -> str:
    """The name of a dtype in programs."""
    name = str(base)
    return "relay." + ("UInt" + name[4:] if name.startswith("uint") else name.capitalize())


def result_base(
    operator: Operator, token: BaseToken, bound: dict[str, object], attributes: dict[str, object]
) -> object:
    if token.text.startswith("@"):
        value = attributes[token.text[1:]]
        if not isinstance(value, BaseType | Unknown):
            found = kind_of(value) if isinstance(value, Text) else repr(value)
            raise TypeMismatch(f"the {token.text[1:]} of {operator.name} must be a dtype, found {found}")
        return value
    if token.is_variable and token.text not in bound:
        raise TypeMismatch(f"{operator_name(operator)} needs at least one tensor")
    return bound[token.text] if token.is_variable else BaseType(token.text)


def decide_dtype(checker: Checker, value: object, span: Span | None) -> object:
    """A dtype that is compared, which has to be known: that of numbers is the one that they have alone, from here on.
    What only ever holds integers stays as it is."""
    if not isinstance(value, Unknown) or value.kind is not Kind.BaseType:
        return value
    checker.solver.run()
    base = prune(value)
    if isinstance(base, Unknown) and base.literals and base.weak:
        return default_of(base)
    if isinstance(base, Unknown) and base.literals:
        checker.default_literal(base)
        base = prune(base)
    if isinstance(base, Unknown):
        raise TypeCheckError("the dtype is not known here", span, help="annotate the tensor, or give it a dtype")
    return base
