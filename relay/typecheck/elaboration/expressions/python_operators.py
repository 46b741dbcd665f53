"""Operators of Python's syntax: on numbers and Python objects they are computed at once, tuples and lists have their
own, and what is left are calls of operators."""

from __future__ import annotations

import operator as python
import types
from collections.abc import Callable, Sequence

from relay.errors import Span, TypeMismatch
from relay.ir.structure import is_named_tuple
from relay.ir.types import BASE_TYPES, INT64, Form, StackType, Unknown, prune
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    MaskedElements,
    Number,
    PythonNumber,
    PythonObject,
    Size,
    SizeExpression,
    Tuple,
    TypedBlockBuilder,
    dim_of,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow.optionals import may_be_none
from relay.typecheck.elaboration.diagnostics.descriptions import operator_name
from relay.typecheck.elaboration.diagnostics.mistakes import MOST_ELEMENTS, SchemeOnly, refuse_many
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, tables
from relay.typecheck.elaboration.dynamic_shapes import data_dependent, masks, size_conditions, slice_windows
from relay.typecheck.elaboration.engine import late_import
from relay.typecheck.elaboration.expressions import comparisons, known_strings, operators
from relay.typecheck.elaboration.expressions.attributes import dtype_of
from relay.typecheck.elaboration.expressions.conditions import is_number, require_bool
from relay.typecheck.elaboration.expressions.operator_relations import decide_dtype
from relay.typecheck.elaboration.expressions.operators import bool_value
from relay.typecheck.elaboration.library import formatting, ordering, text_equality
from relay.typecheck.elaboration.library.library_calls import call_library
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.elaboration.values import range_numbers, records, sizes, special_methods, texts
from relay.typecheck.elaboration.values.data import is_string, is_string_of_run, is_text
from relay.typecheck.elaboration.values.labels import as_number

LONGEST = 1 << 14
"""The largest number of bits of an integer while numbers are computed; no dtype holds more than 64."""


def _power(base: int | float, exponent: int | float) -> int | float:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * max(exponent, 0) > 2 * LONGEST:
        raise OverflowError("the result is too large")
    result = base**exponent
    if isinstance(result, complex):
        raise TypeError("a root of a negative number")
    return result


def _shift_left(number: int, bits: int) -> int:
    if isinstance(bits, int) and bits > LONGEST:
        raise OverflowError("the result is too large")
    return number << bits


_FOLD: dict[str, Callable[..., int | float]] = {
    "add": python.add,
    "subtract": python.sub,
    "multiply": python.mul,
    "divide": python.truediv,
    "floor_divide": python.floordiv,
    "mod": python.mod,
    "power": _power,
    "negative": python.neg,
    "bitwise_not": python.invert,
    "left_shift": _shift_left,
    "right_shift": python.rshift,
    "bitwise_and": python.and_,
    "bitwise_or": python.or_,
    "bitwise_xor": python.xor,
}
OF_BITS = ("left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor")
"""The operators above that are none of sizes."""

_COMPARE: dict[str, Callable[..., bool]] = {
    "equal": python.eq,
    "not_equal": python.ne,
    "less": python.lt,
    "less_equal": python.le,
    "greater": python.gt,
    "greater_equal": python.ge,
}


def apply_named(
    checker: Checker,
    out: TypedBlockBuilder,
    name: str,
    operands: list[AbstractValue],
    attributes: dict[str, object],
    span: Span | None,
    described: Sequence[str],
) -> AbstractValue:
    """An operator that Python's syntax calls: numbers are computed at once, and so are comparisons of Python
    objects."""

    if checker.gradients:
        with late_import:
            from relay.typecheck.elaboration.diagnostics import whole_gradients

        whole_gradients.require_operands(checker, name, operands, described, span)
    if name in ("equal", "not_equal") and any(map(may_be_none, operands)):
        same = comparisons.equal(checker, out, operands[0], operands[1], span)
        return same if name == "equal" else apply_named(checker, out, "logical_not", [same], {}, span, [])
    if any(isinstance(o, MaskedElements) for o in operands):
        return masks.combine_masked(checker, out, name, operands, span)
    if name == "logical_not" and is_number(operands[0]):
        operands = [require_bool(checker, out, operands[0], span, "the operand of `not`")]
    if not all(isinstance(o, PythonObject) for o in operands) or name not in ("equal", "not_equal"):
        operands = [as_number(operand, span) for operand in operands]
    folded = _fold(checker, out, name, operands, span)
    if folded is None:
        folded = special_methods.operator(checker, out, name, operands, span)
    if folded is None and any(isinstance(o, Tuple) or _is_growing(o) for o in operands):
        folded = _apply_to_structures(checker, out, name, operands, span)
    if folded is not None:
        return folded
    special_methods.require_method(name, operands, span)
    result = operators.apply(checker, out, lookup(name), operands, attributes, span, described)
    slice_windows.note(checker, name, operands, result)
    size_conditions.note(checker, name, operands, result)
    if (told := size_conditions.fold_logical(name, operands, result)) is not result:
        return told
    return range_numbers.note(checker, name, operands, result)


def _is_growing(entity: AbstractValue) -> bool:
    return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), StackType)


def _apply_to_structures(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue | None:
    """Python's operators of tuples and lists: `+` joins them, `*` repeats one, `==` compares them."""
    match name, list(operands):
        case "logical_not", [only]:
            condition = require_bool(checker, out, only, span, "the operand of `not`")
            return apply_named(checker, out, "logical_not", [condition], {}, span, [])
        case "add", [left, right] if _are_lists_to_loop_over(left, right):
            return dynamic_lists.concatenate_lists(checker, out, [left, right], span)
        case "multiply", [left, right] if dynamic_lists.is_growing(left) != dynamic_lists.is_growing(right):
            once, times = (left, right) if dynamic_lists.is_growing(left) else (right, left)
            if isinstance(times, Number | DynamicValue):
                return dynamic_lists.repeat_list(checker, out, once, checker.materialize(out, times, span), span)
            return None
        case (("equal" | "not_equal"), [left, right]) if _are_lists_to_loop_over(left, right):
            lists = [dynamic_lists.as_growing(checker, out, side, span) for side in (left, right)]
            same = call_library(checker, out, "same__", lists, span)
            return same if name == "equal" else apply_named(checker, out, "logical_not", [same], {}, span, [])
        case _ if any(map(dynamic_lists.is_growing, operands)):
            return None
    if name == "multiply" and any(isinstance(o, Tuple) for o in operands):
        operands = [data_dependent.number_at_run_time(checker, out, o, span) for o in operands]
    match name, list(operands):
        case "add", [Tuple(first, form), Tuple(second, other)] if form == other and (form is None or not form.names):
            return Tuple((*first, *second), form)
        case ("multiply", [Tuple(items, form), Number() as times] | [Number() as times, Tuple(items, form)]) if (
            isinstance(count := times.specialize(), int)
        ):
            if form is not None and form.names:
                return None
            xs = Tuple(items, form)
            if len(items) * count > MOST_ELEMENTS and dynamic_lists.is_literal(xs):
                return dynamic_lists.repeat_list(
                    checker, out, xs, checker.constant(out, PythonNumber(count, span), INT64), span
                )
            refuse_many(len(items) * count, span)
            return Tuple(items * count, form)
        case ("multiply", [Tuple() as xs, DynamicValue() as count]) | (
            "multiply",
            [DynamicValue() as count, Tuple() as xs],
        ) if dynamic_lists.is_literal(xs):
            return dynamic_lists.repeat_list(checker, out, xs, count, span)
        case "bitwise_or", [Tuple(_, Form(left_class)), Tuple(_, Form(right_class))] if (
            left_class is dict and right_class is dict
        ):
            return records.make_dict(checker, out, operands, (), span)
        case "add", [left, right] if any(map(checker.is_open, operands)) and any(map(dynamic_lists.is_list, operands)):
            raise SchemeOnly(span, "whether both are lists")
        case (("equal" | "not_equal"), _) if any(map(checker.is_open, operands)):
            raise SchemeOnly(span, "the value compared with a tuple")
        case (("less" | "less_equal" | "greater" | "greater_equal"), [Tuple() as left, Tuple() as right]) if _class(
            left.form
        ) is _class(right.form):
            return ordering.compare_sequences(checker, out, name, left, right, span)
        case "equal", [left, right]:
            return comparisons.equal(checker, out, left, right, span)
        case "not_equal", [left, right]:
            same = comparisons.equal(checker, out, left, right, span)
            return apply_named(checker, out, "logical_not", [same], {}, span, [])
        case _:
            return None


def _are_lists_to_loop_over(left: AbstractValue, right: AbstractValue) -> bool:
    """True if both are lists, and at least one of them is a dynamic list."""
    both_known = isinstance(left, Tuple) and isinstance(right, Tuple)
    return dynamic_lists.is_list(left) and dynamic_lists.is_list(right) and not both_known


def _class(form: Form | None) -> type:
    return tuple if form is None or is_named_tuple(form.cls) else form.cls


def _fold_numbers(
    checker: Checker, out: TypedBlockBuilder, name: str, numbers: list[Number], span: Span | None
) -> AbstractValue | None:
    if name in OF_BITS and any(isinstance(n, Size | SizeExpression) for n in numbers):
        return _shifted_size(checker, out, name, numbers, span)
    if name in _FOLD and (number := sizes.size_arithmetic(name, numbers, _FOLD[name], span)) is not None:
        return number
    if name in _COMPARE and (answer := sizes.compare_sizes(name, *numbers)) is not None:
        return bool_value(answer, span)
    if any(map(data_dependent.mentioned_in_number, numbers)):
        return None  # it is known only at run time
    are_sizes = any(isinstance(n, Size) for n in numbers) and all(dim_of(n) is not None for n in numbers)
    if name in _COMPARE and are_sizes:
        return None  # a call will know
    values = [n.specialize() for n in numbers]
    if name in _FOLD:
        try:
            result = _FOLD[name](*values)
        except (ArithmeticError, TypeError, ValueError) as error:
            if isinstance(error, ZeroDivisionError) and checker.may_be_skipped:
                return None  # an error where it runs
            raise TypeMismatch(f"{error} in an expression of numbers", span) from None
        if isinstance(result, int) and result.bit_length() > LONGEST:
            raise TypeMismatch("the result is too large in an expression of numbers", span)
        return PythonNumber(result, span)
    if name in _COMPARE:
        return bool_value(bool(_COMPARE[name](*values)), span)
    return None


def _fold(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: list[AbstractValue], span: Span | None
) -> AbstractValue | None:
    numbers = [o for o in operands if isinstance(o, Number)]
    if len(numbers) == len(operands):
        return _fold_numbers(checker, out, name, numbers, span)
    if (text := known_strings.operate(name, operands, span)) is not None:
        return text
    if name == "add" and any(map(is_text, operands)) and not all(map(is_text, operands)):
        if any(map(checker.is_open, operands)):
            raise SchemeOnly(span, "the operand of a string")
        raise text_equality.joined_to_other(operands, span)
    if name in ("equal", "not_equal") and any(map(is_text, operands)) and not checker.generic:
        for operand in operands:  # an element of a list of which nothing else is known yet
            if isinstance(operand, DynamicValue) and isinstance(prune(operand.type), Unknown):
                texts.take_as_string(checker, operand, span, "what is compared with a string")
    if name == "multiply" and any(map(is_text, operands)) and any(_is_counting(checker, o) for o in operands):
        operands = [texts.of_run(checker, out, operand, span) for operand in operands]
    if any(map(is_string_of_run, operands)):
        return _of_texts(checker, out, name, operands, span)
    if name in ("equal", "not_equal") and any(isinstance(o, PythonObject) for o in operands):
        if any(map(tables.is_set, operands)):
            return None
        left, right = (_comparison_key(o) for o in operands)
        dtype_is_open = checker.generic and any(isinstance(o, Unknown) for o in (left, right))
        if dtype_is_open or any(map(checker.is_open, operands)):
            return conditional_types.condition(checker, span)
        if left is not right:
            left, right = (decide_dtype(checker, side, span) for side in (left, right))
        return bool_value((left == right) is (name == "equal"), span)
    if name == "bitwise_or":
        classes = [
            o.value for o in operands if isinstance(o, PythonObject) and isinstance(o.value, type | types.UnionType)
        ]
        if len(classes) == len(operands):
            return PythonObject(classes[0] | classes[1])
    if name == "logical_not" and (known := is_constant_bool(operands[0])) is not None:
        return bool_value(not known, span)
    match name, list(operands):
        case "logical_not", [PythonObject(str() | frozenset() as known_value)]:
            return bool_value(not known_value, span)
    return None


def _is_counting(checker: Checker, operand: AbstractValue) -> bool:
    """True for a number that is known at run time only, of which a text may have as many copies."""
    return isinstance(operand, DynamicValue) and not is_text(operand) and not checker.is_open(operand)


def _of_texts(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """Operators of texts with run-time values."""
    match name, list(operands):
        case "equal" | "not_equal", [left, right] if not any(map(is_string, operands)):
            same = text_equality.equal(checker, out, left, right, span)
            return same if name == "equal" else apply_named(checker, out, "logical_not", [same], {}, span, [])
        case "equal" | "not_equal", [left, right] if not all(map(is_text, operands)):
            if any(map(checker.is_open, operands)):
                return conditional_types.condition(checker, span)
            return bool_value(name == "not_equal", span)
        case "logical_not", [text]:
            filled = require_bool(checker, out, text, span, "the operand of `not`")
            return apply_named(checker, out, "logical_not", [filled], {}, span, [])
        case "add", [left, right] if is_text(left) and is_text(right):
            return formatting.concatenate_texts(checker, out, operands, span)
        case _:
            if (found := texts.operate(checker, out, name, operands, span)) is not None:
                return found
            if any(map(checker.is_open, operands)):
                raise SchemeOnly(span, "the operand of a string")
            raise text_equality.refusal(f"{operator_name(lookup(name))} does not take", span)


def _shifted_size(
    checker: Checker, out: TypedBlockBuilder, name: str, numbers: Sequence[Number], span: Span | None
) -> AbstractValue | None:
    """A size times a power of two, or divided by one; None for what is not a shift by a known number."""
    size, bits = numbers
    if name not in ("left_shift", "right_shift") or type(bits) is not PythonNumber or type(bits.value) is not int:
        return None
    if not 0 <= bits.value < 63:
        raise TypeMismatch(f"a size cannot be shifted by {bits.value} bits", span)
    instead = "multiply" if name == "left_shift" else "floor_divide"
    return _fold(checker, out, instead, [size, PythonNumber(1 << bits.value, span)], span)


def numbers_alone(
    checker: Checker, out: TypedBlockBuilder, name: str, operands: Sequence[AbstractValue], span: Span | None
) -> AbstractValue | None:
    """The result of an operator that is called by its name for numbers without a dtype; None for others. It is
    exact, as Python's is."""
    if name not in _FOLD or name in ("divide", "power") or not all(type(o) is PythonNumber for o in operands):
        return None
    return _fold(checker, out, name, list(operands), span)


def _comparison_key(entity: AbstractValue) -> object:
    """The key that `==` compares: dtypes in all of NumPy's spellings are one."""
    if not isinstance(entity, PythonObject):
        return entity
    value = dtype_of(entity.value)
    if isinstance(value, str) and value in BASE_TYPES:
        return BASE_TYPES[value]
    return value
