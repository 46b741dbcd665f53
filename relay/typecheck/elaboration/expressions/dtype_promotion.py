"""Integers and booleans that meet floats: they take the dtype of the floats, as in NumPy, JAX and PyTorch.

     E |- n : Tensor[i, s]   E |- x : Tensor[f, t]
    ----------------------------------------------- (i an integer or bool, f a float)
     E |- cast_f(n) + x : Tensor[f, ..]

An operator of floats alone, as `/` and `sqrt`, converts integers to a float whose dtype its uses decide, as that of a
literal. Of two integer dtypes the smaller one becomes the larger one, if that has all of its values. Two dtypes of
floats are an error: one of them would lose digits, or the other one gain some that are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from relay.errors import Span
from relay.ir.expr import OpCall
from relay.ir.types import BASE_TYPES, BOOL, INT32, BaseClass, BaseType, TensorType, TupleType, Type, Unknown, prune
from relay.operator import Operator, lookup
from relay.operator.relation import BaseSignature
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.restarts import IntegersWiden, Place
from relay.typecheck.unification import resolve

_FLOATS = frozenset({BaseClass.FLOAT})
Base = BaseType | Unknown


def base_of(value: DynamicValue | None) -> Base | None:
    """The dtype of a tensor, as far as it is known; None for another value."""
    type_ = prune(value.type) if value is not None else None
    return prune(type_.base) if isinstance(type_, TensorType) else None  # type: ignore[return-value]


def promoted_operands(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    signature: BaseSignature,
    operands: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
    span: Span | None,
) -> list[DynamicValue | None]:
    """The operands of an operator, those of integers and booleans in the dtype of the others that have to have the
    same one."""
    found = list(values)
    groups: dict[str, list[int]] = {}
    for position in range(len(values)):
        if signature.token(position).is_variable:
            groups.setdefault(signature.token(position).text, []).append(position)
    updates = operator.memory.in_place is not None and operator.memory.in_place.operand == 0
    for positions in groups.values():
        classes = signature.token(positions[0]).classes
        target = _target(checker, classes, [operands[p] for p in positions], [found[p] for p in positions])
        first = base_of(found[positions[0]])
        if target is None or (updates and positions[0] == 0 and len(positions) > 1 and first != target):
            continue  # elements that are written never change the dtype of what holds them
        for position in positions:
            value = found[position]
            base = base_of(value)
            takes = _is_whole(base) or (_is_open_integer(base) and _is_float(target))
            if value is not None and takes and base != target:
                found[position] = convert(checker, out, value, target, span)
    return found


def booleans_as_numbers(
    checker: Checker, out: TypedBlockBuilder, operator: Operator, operands: Sequence[AbstractValue], span: Span | None
) -> list[AbstractValue] | None:
    """The operands of an operator of numbers that are booleans as integers, or None: it takes them as they are, or
    other numbers decide what they become."""
    kind = operator.algebra.of_booleans
    booleans = [isinstance(operand, DynamicValue) and base_of(operand) == BOOL for operand in operands]
    if kind is None or not any(booleans):
        return None
    if kind == "integers":
        others = [o for o, is_boolean in zip(operands, booleans, strict=True) if not is_boolean]
        ones = [o for o, is_boolean in zip(operands, booleans, strict=True) if is_boolean]
        if others and (_are_truth_values(ones) or not all(map(_is_small, others))):
            return None
    elif not all(booleans) or _is_ambiguous(operator, operands):
        return None
    return [
        convert(checker, out, o, INT32, span) if is_boolean and isinstance(o, DynamicValue) else o
        for o, is_boolean in zip(operands, booleans, strict=True)
    ]


def truth_as_integer(
    checker: Checker, out: TypedBlockBuilder, operand: AbstractValue, span: Span | None
) -> AbstractValue:
    """The operand that Python's `sum` adds: booleans count as 0 and 1, since it begins with 0."""
    if isinstance(operand, DynamicValue) and base_of(operand) == BOOL:
        return convert(checker, out, operand, INT32, span)
    return operand


def _is_small(operand: AbstractValue) -> bool:
    """True for a number by which booleans are shifted within an int32: NumPy's become int64."""
    return type(operand) is PythonNumber and isinstance(operand.value, int) and -1 < operand.value < 31


def _is_ambiguous(operator: Operator, operands: Sequence[AbstractValue]) -> bool:
    """True for `+` of single booleans, or `abs` of one: Python's are integers, and NumPy's booleans."""
    is_single = _are_truth_values(operands)
    if len(operands) == 1:
        return is_single and operator.algebra.homogeneous
    return is_single and not operator.algebra.idempotent


def _are_truth_values(operands: Iterable[AbstractValue]) -> bool:
    return all(isinstance(o, DynamicValue) and resolve(o.type) == TensorType(BOOL, ()) for o in operands)


def convert(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, base: Base, span: Span | None
) -> DynamicValue:
    """A value in another dtype."""
    type_ = prune(value.type)
    assert isinstance(type_, TensorType)
    attributes: dict[str, object] = {"dtype": base}
    checker.module.pending_attributes.append(attributes)
    call = OpCall(lookup("cast").name, (value.atom,), attributes, span)  # type: ignore[arg-type]
    return checker.bind(out, call, attrs.evolve(type_, base=base), "converted", span)


def stored_value(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, holder: TensorType, span: Span | None
) -> DynamicValue:
    """A value as an element of a tensor: integers become floats or larger integers, nothing else changes."""
    base, wanted = base_of(value), prune(holder.base)
    assert isinstance(wanted, BaseType | Unknown)
    if not _is_whole(base) or base == wanted or not (_is_float(wanted) or common_integer_dtype(base, wanted) == wanted):
        return value
    return convert(checker, out, value, wanted, span)


def common_integer_dtype(left: Base | None, right: Base | None) -> BaseType | None:
    """The integer dtype that has the values of both; None if there is none."""
    if not isinstance(left, BaseType) or not isinstance(right, BaseType) or not (_is_whole(left) and _is_whole(right)):
        return None
    found = BASE_TYPES[np.promote_types(left.name, right.name).name]
    return None if found.is_float else found


def _target(
    checker: Checker,
    classes: frozenset[BaseClass] | None,
    operands: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
) -> Base | None:
    """The dtype that integers and booleans among these take; None where they stay what they are."""
    bases = [base for value in values if (base := base_of(value)) is not None]
    whole = [base for base in bases if _is_whole(base)]
    if not whole and not any(map(_is_open_integer, bases)):
        return None
    if classes is None or BaseClass.FLOAT in classes:
        floats = [base for base in bases if _is_float(base)]
        if floats:
            return next((base for base in floats if isinstance(base, BaseType)), floats[0])
        if classes == _FLOATS or any(isinstance(o, Number) and o.is_float for o in operands):
            return checker.solver.literal_base(0.0, None)
    if not whole:
        return None
    if all(base == BOOL for base in whole):
        takes_numbers = classes is None or (BaseClass.INTEGER in classes and len(classes) > 1)  # a shift is wider
        meets_number = any(isinstance(o, Number) for o in operands) or len(whole) < len(bases)
        return INT32 if takes_numbers and meets_number else None
    target: BaseType | None = None
    for base in whole:
        target = base if target is None else common_integer_dtype(target, base)  # type: ignore[assignment]
        if target is None:
            return None
    return target


def _is_whole(base: Base | None) -> bool:
    return isinstance(base, BaseType) and not base.is_float


def _is_open_integer(base: Base | None) -> bool:
    """True for a dtype that is not known, and is none of floats: that of `k & 1`, for any k."""
    return isinstance(base, Unknown) and base.classes is not None and BaseClass.FLOAT not in base.classes


def _is_float(base: Base) -> bool:
    return base.is_float if isinstance(base, BaseType) else base.classes == _FLOATS


# ---- integers of two dtypes at one place: on several paths, in the rounds of a loop, among the results of a function
#
#      E |- i : Tensor[b, s]   E |- k : Tensor[c, s] on another path
#     --------------------------------------------------------------- (b, c integers, d holds the values of both)
#      E |- cast_d(i), cast_d(k) : Tensor[d, s]
#
# `argmax` counts in an int32, and NumPy's indices are int64. A place that has been passed already with the smaller
# dtype begins again with the larger one.


def on_all_paths(
    checker: Checker,
    outs: Sequence[TypedBlockBuilder],
    values: Sequence[DynamicValue],
) -> list[DynamicValue]:
    """The values of several paths in the dtype that holds the integers of all of them."""
    wanted: BaseType | None = None
    for base in map(_integer_dtype, (value.type for value in values)):
        if base is not None:
            wanted = base if wanted is None else common_integer_dtype(wanted, base)
            if wanted is None:  # int64 and uint64
                return list(values)
    if wanted is None:
        return list(values)
    return [_widened(checker, out, v, wanted, v.atom.span) for out, v in zip(outs, values, strict=True)]


def missing_dtype(found: Type, expected: Type) -> BaseType | None:
    """The dtype that a place needs for a value of another dtype; None where its own one will do, or none does."""
    base, own = _integer_dtype(found), _integer_dtype(expected)
    wider = common_integer_dtype(base, own)
    return None if wider == own else wider


def fitted_value(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, expected: Type, span: Span | None
) -> DynamicValue:
    """A value in the dtype of the place that it goes to, if that holds all integers of its own one."""
    own = _integer_dtype(expected)
    if own is None or common_integer_dtype(_integer_dtype(value.type), own) != own:
        return value
    return _widened(checker, out, value, own, span)


def at_place(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, place: Place | None, span: Span | None
) -> DynamicValue:
    """A value at a place, in the dtype that later ones need. None: an element of a list."""
    wanted = checker.decisions.widened.get(place)
    return value if wanted is None else _widened(checker, out, value, wanted, span)


def refuse_smaller(found: Type, expected: Type, place: Place | None) -> None:
    """Start again where a place got a smaller dtype from an earlier value."""
    if (wider := missing_dtype(found, expected)) is not None:
        raise IntegersWiden(place, wider)


def as_element(
    checker: Checker, out: TypedBlockBuilder, value: AbstractValue, element: Type, span: Span | None
) -> AbstractValue:
    """A value as an element of a list. Starts again where the list has smaller integers already: from then on all lists
    have the larger ones."""
    known = prune(element)
    match value:
        case Tuple(items, form):
            same = isinstance(known, TupleType) and len(known.items) == len(items)
            types: Sequence[Type] = known.items if same and isinstance(known, TupleType) else [element] * len(items)
            parts = (as_element(checker, out, i, t, span) for i, t in zip(items, types, strict=True))
            return Tuple(tuple(parts), form)
        case DynamicValue() if _integer_dtype(value.type) is not None:
            value = at_place(checker, out, value, None, span)
            refuse_smaller(value.type, element, None)
            return fitted_value(checker, out, value, element, span)
        case _:
            return value


def _widened(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, wanted: BaseType, span: Span | None
) -> DynamicValue:
    if weak_types.is_weak(value):
        return weak_types.cast_weak(checker, out, value, wanted, span)
    base = _integer_dtype(value.type)
    return value if base is None or base == wanted else convert(checker, out, value, wanted, span)


def _integer_dtype(type_: Type) -> BaseType | None:
    known = prune(type_)
    base = prune(known.base) if isinstance(known, TensorType) else None
    return base if isinstance(base, BaseType) and not base.is_float and base != BOOL else None
