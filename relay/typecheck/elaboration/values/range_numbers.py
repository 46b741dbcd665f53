"""Range variables and list lengths: integers that take the dtype of the operands that they meet.

They are int32 at run time, unless a bound is int64. Where one, or an integer that is made of it and numbers, as `i +
1`, `max(i, 1)` and `i ** 2` are, meets integers of 64 bits or floats, it is converted: in `x[i] * i` for a float64 x it
is a float64, as a literal would be, and so it is in `i * 0.1`, `i / 2` and `sqrt(i)`, whose dtype their uses decide. It
stays an integer everywhere else, also in a variable that a loop carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import attrs

from relay.errors import Span
from relay.ir.expr import OpCall
from relay.ir.types import INT32, INT64, BaseClass, BaseType, TensorType, Unknown, prune, scalar
from relay.operator import lookup
from relay.operator.relation import BaseSignature
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Number, Size, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.restarts import NumberCounts, ParameterPlace
from relay.typecheck.unification import flat_shape

FLOATS = frozenset({BaseClass.FLOAT})

_KEEPING = frozenset(
    {
        *("add", "subtract", "multiply", "floor_divide", "mod", "negative", "power", "abs", "maximum", "minimum"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift"),
    }
)
"""The operators whose result is such a number if their operands are one and literals."""


@overload
def note(checker: Checker, name: str, operands: Sequence[AbstractValue], result: DynamicValue) -> DynamicValue: ...
@overload
def note(checker: Checker, name: str, operands: Sequence[AbstractValue], result: AbstractValue) -> AbstractValue: ...
def note(checker: Checker, name: str, operands: Sequence[AbstractValue], result: AbstractValue) -> AbstractValue:
    """The result of arithmetic, marked as a range variable if its operands are one and literals only."""
    if name not in _KEEPING or not isinstance(result, DynamicValue):
        return result
    ranges = [o for o in operands if isinstance(o, DynamicValue) and o.of_range]
    if not ranges or not all(isinstance(o, Number) or o in ranges for o in operands):
        return result
    for operand in ranges:
        if operand.atom in checker.places_of_numbers:
            checker.places_of_numbers[result.atom] = checker.places_of_numbers[operand.atom]
    literals = [o.specialize() for o in operands if isinstance(o, Number) and not isinstance(o, Size)]
    if name == "add" and literals == [1] and ranges[0].atom in checker.sizes.naturals:  # below the stop of a range
        checker.sizes.naturals.add(result.atom)
    return of_range(result)


def adapt_operands(
    checker: Checker,
    out: TypedBlockBuilder,
    signature: BaseSignature,
    operands: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
) -> list[DynamicValue | None]:
    """The operands of an operator, with numbers of ranges in the dtype of what must have the same one."""
    found = list(values)
    tokens = [signature.token(position) for position in range(len(values))]
    for position, value in enumerate(values):
        if value is None or not value.of_range:
            continue
        alike = [token.text == tokens[position].text for token in tokens]
        for same, other, entity in zip(alike, values, operands, strict=True):
            if not same:
                continue
            if isinstance(entity, Number) and entity.is_float:
                found[position] = _as_float(checker, out, value, entity.specialize(), entity.span)
            elif other is not None and not other.of_range:
                found[position] = fitting_number(checker, out, value, other.type)
        takes_floats = any(same and token.classes == FLOATS for same, token in zip(alike, tokens, strict=True))
        if found[position] is value and takes_floats:
            found[position] = _as_float(checker, out, value, 0.0, value.atom.span)
    return found


def fitting_number(checker: Checker, out: TypedBlockBuilder, value: DynamicValue, wanted: object) -> DynamicValue:
    """A number of a range in the dtype of a tensor type: int64, a float, or one that is open in a function's type."""
    type_, own = prune(wanted), _base(value)  # type: ignore[arg-type]
    if not value.of_range or not isinstance(type_, TensorType):
        return value
    base = prune(type_.base)
    if own in (INT32, INT64) and (base == INT64 or (isinstance(base, BaseType) and base.is_float)) and base != own:
        return _cast(checker, out, value, base)
    is_array = isinstance(base, Unknown) and bool(base.literals) and bool(flat_shape(type_.shape))
    if isinstance(base, Unknown) and (base.classes == FLOATS or is_array) and own in (INT32, INT64):
        return _cast(checker, out, value, base)
    if checker.generic and own in (INT32, INT64) and isinstance(base, Unknown) and not base.literals:
        return DynamicValue(value.atom, TensorType(checker.solver.literal_base(1, value.atom.span), ()))
    return value


def _as_float(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, like: float, span: Span | None
) -> DynamicValue:
    """A number of a range as a float whose dtype its uses decide, as that of a literal."""
    if _base(value) not in (INT32, INT64):
        return value
    return _cast(checker, out, value, checker.solver.literal_base(like, span))


def _cast(checker: Checker, out: TypedBlockBuilder, value: DynamicValue, base: BaseType | Unknown) -> DynamicValue:
    attributes: dict[str, object] = {"dtype": base}
    checker.module.pending_attributes.append(attributes)
    call = OpCall(lookup("cast").name, (value.atom,), attributes)  # type: ignore[arg-type]
    return checker.bind(out, call, TensorType(base, ()), "index", value.atom.span)


def _base(value: DynamicValue) -> object:
    type_ = prune(value.type)
    return prune(type_.base) if isinstance(type_, TensorType) else None


def of_python(checker: Checker, value: DynamicValue, place: ParameterPlace, is_annotated: bool) -> DynamicValue:
    """A parameter that takes, if its argument is a Python integer, the dtype of what it meets, also if it is an integer
    already. In a scheme every argument may be one."""
    base = _base(value)
    is_number = isinstance(base, Unknown) and bool(base.literals) and BaseClass.INTEGER in (base.classes or ())
    is_open = checker.generic and not is_annotated and isinstance(prune(value.type), Unknown)
    if not is_number and not is_open:
        return value
    if place in checker.decisions.counting:
        checker.solver.unify(value.type, scalar(INT32))
    checker.places_of_numbers[value.atom] = place
    return attrs.evolve(value, of_range=True)


def must_count(checker: Checker, value: DynamicValue) -> None:
    """Start again where an integer from Python, or a sum or product of one, has become a float and must not."""
    place = checker.places_of_numbers.get(value.atom)
    if place is not None and place not in checker.decisions.counting:
        raise NumberCounts(place)


def of_range(value: DynamicValue) -> DynamicValue:
    """A number of a range, if it may become another one."""
    return attrs.evolve(value, of_range=True) if _base(value) == INT32 else value


def is_count(value: DynamicValue) -> bool:
    """True if a value is such a number."""
    return value.of_range and _base(value) == INT32
