"""Equations between operator calls, from the algebraic facts in the operators' definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
import numpy as np

from relay.ir.expr import Atom, Constant, OpCall, Var
from relay.ir.types import BaseType, TensorType, Type
from relay.operator import Operator, Pattern, lookup

LARGEST = 1024
"""The most elements of a constant that are looked at."""

Definition: TypeAlias = Callable[[Atom], OpCall | None]
"""Looks up the operator call that an atom was bound to."""


@attrs.frozen
class Rule:
    """An equation: what a call of an operator with this fact equals, if the rule fits."""

    equation: str
    fits: Callable[[Operator], bool]
    result: Callable[[Operator, OpCall, Type, Definition], Atom | None]


def _type(atom: Atom) -> Type | None:
    return atom.type if isinstance(atom, Var | Constant) else None


_COPYING = (Pattern.BROADCAST, Pattern.INJECTIVE)


def _is_identity(operator: Operator, atom: Atom, definition: Definition) -> bool:
    """True if all elements are the neutral element, with its sign: x + 0.0 is not x where x is -0.0, but x + -0.0
    is."""
    if operator.algebra.identity is None:
        return False
    signed = isinstance(type_ := _type(atom), TensorType) and isinstance(type_.base, BaseType) and type_.base.is_float
    while (call := definition(atom)) is not None:
        inner = lookup(call.operator)
        if not (inner.algebra.coercion and inner.pattern in _COPYING):  # the result's elements are the operand's
            break
        atom = call.arguments[0]
    if call is not None and (fill := lookup(call.operator).memory.constant) is not None:
        return bool(fill == operator.algebra.identity) and not (fill == 0 and signed)
    if not isinstance(atom, Constant) or not 1 <= atom.value.size <= LARGEST:
        return False
    neutral = np.asarray(operator.algebra.identity).astype(atom.value.dtype)
    return atom.value.tobytes() == neutral.tobytes() * atom.value.size


def _right_identity(operator: Operator, call: OpCall, type_: Type, definition: Definition) -> Atom | None:
    left, right = call.arguments
    return left if _type(left) == type_ and _is_identity(operator, right, definition) else None


def _left_identity(operator: Operator, call: OpCall, type_: Type, definition: Definition) -> Atom | None:
    left, right = call.arguments
    return right if _type(right) == type_ and _is_identity(operator, left, definition) else None


def _only_operand(operator: Operator, call: OpCall, type_: Type, _: Definition) -> Atom | None:
    return call.arguments[0] if _type(call.arguments[0]) == type_ else None


def _equal_operands(operator: Operator, call: OpCall, type_: Type, _: Definition) -> Atom | None:
    return call.arguments[0] if call.arguments[0] is call.arguments[1] else None


def _involution_operand(operator: Operator, call: OpCall, type_: Type, definition: Definition) -> Atom | None:
    inner = definition(call.arguments[0])
    return inner.arguments[0] if inner is not None and lookup(inner.operator) is operator else None


def _done_already(operator: Operator, call: OpCall, type_: Type, definition: Definition) -> Atom | None:
    inner = definition(call.arguments[0])
    if inner is None or lookup(inner.operator) is not operator or inner.attributes != call.attributes:
        return None
    return call.arguments[0]


def _binary(operator: Operator) -> bool:
    return len(operator.operands) == 2


def _has_identity(operator: Operator) -> bool:
    return _binary(operator) and operator.algebra.identity is not None


def _unary(operator: Operator) -> bool:
    return len(operator.operands) == 1 and not operator.variadic


RULES: tuple[Rule, ...] = (
    Rule("f(x, e) = x", _has_identity, _right_identity),
    Rule("f(e, x) = x", lambda f: _has_identity(f) and f.algebra.commutative, _left_identity),
    Rule("f(x, x) = x", lambda f: _binary(f) and f.algebra.idempotent, _equal_operands),
    Rule("f(f(x)) = f(x)", lambda f: _unary(f) and f.algebra.idempotent, _done_already),
    Rule("f(f(x)) = x", lambda f: _unary(f) and f.algebra.involution, _involution_operand),
    Rule("f(x: T): T = x", lambda f: _unary(f) and f.algebra.coercion, _only_operand),
)
"""The equations of operator calls. The order does not matter. The order does not matter."""


def rules_for(operator: Operator) -> tuple[Rule, ...]:
    """The equations that hold for an operator."""
    return tuple(rule for rule in RULES if rule.fits(operator))
