"""Python builtins and NumPy functions that are not operators: `any`, `round`, `np.array`, .."""

from __future__ import annotations

import builtins
import functools
import itertools
import math
from collections.abc import Sequence

import attrs
import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.partial_calls import PartialCall
from relay.ir.types import BaseClass, BaseType, Form, Kind, TensorType, prune, scalar
from relay.operator import lookup
from relay.support.foreign_names import ARGUMENT_ADVICE
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    Progression,
    PythonNumber,
    PythonObject,
    Range,
    Size,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_items, list_reductions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import comparisons, operators
from relay.typecheck.elaboration.expressions.attributes import normalize_attribute, static_value
from relay.typecheck.elaboration.expressions.whole_numbers import is_integer, whole_number
from relay.typecheck.elaboration.library import ordering
from relay.typecheck.elaboration.library.creation import array, tuple_items
from relay.typecheck.elaboration.library.library_calls import as_sequence, call_library, list_elements
from relay.typecheck.elaboration.library.overloads import Call, Rule, implements
from relay.typecheck.elaboration.members.elements import elements
from relay.typecheck.elaboration.members.subscripts import index, ranked_type
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.unification import resolve

Keywords = Sequence[tuple[str, AbstractValue]]

MOST_DIGITS = 10
"""The largest number of digits that `round` takes; a float32 holds that power of ten."""


def _quantifier(name: str, decides: bool) -> Rule:
    def rule(call: Call, iterable: AbstractValue, /) -> AbstractValue:
        checker, out, span = call.site
        xs = as_sequence(checker, out, iterable, span, in_any_order=True)
        items = tuple_items(checker, out, xs, span)
        if isinstance(xs, DynamicValue) and dynamic_lists.is_growing(xs):
            return list_reductions.any_or_all(checker, out, xs, lambda body, x: x, decides, span)
        if items is None:
            return operators.apply(checker, out, lookup(name), [xs], {}, span, [])
        truths = (object_entity(bool(i.specialize()), span) if isinstance(i, Number) else i for i in items)
        return comparisons.combine_conditions(checker, out, truths, decides, span)

    return rule


def _rounded_to(call: Call, number: AbstractValue, ndigits: AbstractValue) -> AbstractValue:
    """A number rounded to decimal digits, as Python rounds it: the rounding error of the product with a power of ten
    tells on which side of a half it is (T. J. Dekker, 1971)."""
    checker, out, span = call.site
    digits = ndigits.specialize() if isinstance(ndigits, Number) else None
    if not isinstance(digits, int) or not 0 <= digits <= MOST_DIGITS:
        message = f"the digits of `round` must be a number from 0 to {MOST_DIGITS} that is known at compile time"
        raise TypeCheckError(message, span, help="scale it: relay.round(x * 10.0) / 10.0")
    x = checker.materialize(out, number, span)
    type_ = prune(x.type)
    if isinstance(type_, TensorType) and is_integer(type_.base):
        return x
    checker.unify_at(x.type, scalar(checker.solver.fresh_variable(Kind.BaseType)), span, "what `round` takes")
    double, single = (_halves_of_power(digits, dtype, span) for dtype in (np.float64, np.float32))
    return call_library(checker, out, "round_to__", [x, PythonNumber(10.0**digits, span), double, single], span)


def _halves_of_power(digits: int, dtype: type[np.float64 | np.float32], span: Span | None) -> Tuple:
    """A power of ten as a sum of two numbers with half of the bits each, the factor that splits others in the same way,
    and from where on all numbers are whole."""
    bits = np.finfo(dtype).nmant + 1
    splitter, scale = dtype(2 ** ((bits + 1) // 2) + 1), dtype(10**digits)
    high = splitter * scale - (splitter * scale - scale)
    return Tuple(tuple(PythonNumber(float(part), span) for part in (high, scale - high, splitter, 2 ** (bits - 1))))


@implements(builtins.round)
def _round(call: Call, number: AbstractValue, ndigits: AbstractValue | None = None) -> AbstractValue:
    """Half to even. Of a float scalar it is int32, for Python's is an integer; of a tensor it is elementwise, as in
    NumPy."""
    checker, out, span = call.site
    number = data_dependent.number_at_run_time(checker, out, number, span)
    match number, ndigits:
        case Number(), None:
            return PythonNumber(round(number.specialize()), span)
        case Number(), Number() if isinstance(digits := ndigits.specialize(), int):
            return PythonNumber(round(number.specialize(), digits), span)
    if ndigits is not None:
        return _rounded_to(call, number, ndigits)
    x = checker.materialize(out, number, span)
    if not isinstance(prune(x.type), TensorType):
        checker.unify_at(x.type, scalar(checker.solver.fresh_variable(Kind.BaseType)), span, "what `round` takes")
    type_ = resolve(x.type)
    assert isinstance(type_, TensorType)
    if is_integer(type_.base):
        return x
    rounded = operators.apply(checker, out, lookup("round"), [x], {}, span, [])
    return rounded if type_.shape else whole_number(checker, out, rounded, span, "round")


def _to_integer(name: str) -> Rule:
    """`math.floor` and the like: of a scalar the integer, int32; of a tensor elementwise, as in NumPy."""

    def rule(call: Call, value: AbstractValue, /) -> AbstractValue:
        checker, out, span = call.site
        if not isinstance(value, Size):
            value = data_dependent.number_at_run_time(checker, out, value, span)
        if isinstance(value, Number):
            return value if isinstance(value, Size) else PythonNumber(getattr(math, name)(value.specialize()), span)
        x = checker.materialize(out, value, span)
        if not isinstance(prune(x.type), TensorType):
            checker.unify_at(
                x.type, scalar(checker.solver.fresh_variable(Kind.BaseType)), span, f"what `math.{name}` takes"
            )
        type_ = resolve(x.type)
        assert isinstance(type_, TensorType)
        if is_integer(type_.base):
            return x
        rounded = operators.apply(checker, out, lookup(name), [x], {}, span, [])
        return rounded if type_.shape else whole_number(checker, out, rounded, span, name)

    return rule


@implements(builtins.pow)
def _pow(call: Call, base: AbstractValue, exp: AbstractValue) -> AbstractValue:
    return call.apply("power", base, exp)


@implements(builtins.divmod)
def _divmod(call: Call, x: AbstractValue, y: AbstractValue, /) -> AbstractValue:
    names = ("floor_divide", "mod")
    return Tuple(
        tuple(call.checker.engine.apply_operator(call.checker, call.out, n, [x, y], {}, call.span, []) for n in names)
    )


def _reversed_range(checker: Checker, out: TypedBlockBuilder, xs: Range, span: Span | None) -> AbstractValue:
    """The numbers of a range whose bounds are sizes, or run-time numbers, from the last one on."""
    if not isinstance(xs.start, Number) or not isinstance(xs.stop, Number) or xs.backward:
        return attrs.evolve(xs, backward=not xs.backward, reversed=True)

    def call(name: str, *operands: AbstractValue) -> AbstractValue:
        return checker.engine.apply_operator(checker, out, name, list(operands), {}, span, [])

    step, one = PythonNumber(xs.step, span), PythonNumber(1 if xs.step > 0 else -1, span)
    beyond = call("subtract", call("subtract", xs.stop, one), xs.start)
    last = call("add", xs.start, call("multiply", call("floor_divide", beyond, step), step))
    return Range(last, call("subtract", xs.start, step), -xs.step, reversed=True)


@implements(builtins.reversed)
def _reverse_sequence(call: Call, xs: AbstractValue, /) -> AbstractValue:
    checker, out, span = call.site
    if isinstance(xs, DynamicValue) and dynamic_lists.is_growing(xs):
        return list_items.slice_list(checker, out, xs, None, None, PythonNumber(-1, span), span)
    if isinstance(xs, Range):
        return _reversed_range(checker, out, xs, span)
    if isinstance(xs, Progression):
        return attrs.evolve(xs, backward=not xs.backward)
    if isinstance(xs, DynamicValue) and (type_ := tensor_type(xs)) is not None and type_.rank > 0:
        return index(checker, out, xs, [SliceItem(None, None, PythonNumber(-1, span))], span)
    found = elements(checker, out, xs, span)
    if found is None and checker.generic and isinstance(xs, DynamicValue):
        raise SchemeOnly(span, "the length of the argument of reversed")
    if found is None:
        raise TypeCheckError(
            "`reversed` needs a length that is known", span, help="use range(n - 1, -1, -1), or x[::-1]"
        )
    return Tuple(tuple(reversed(found)))


@implements(np.array, np.asarray)
def _array(
    call: Call,
    object: AbstractValue,
    dtype: AbstractValue | None = None,
    order: AbstractValue | None = None,
    *,
    copy: AbstractValue | None = None,
    ndmin: AbstractValue | None = None,
) -> AbstractValue:
    """`np.array(xs, dtype)`. A value has one form in memory, and is as good as its copy: `order` and `copy` change
    nothing."""
    checker, out, span = call.site
    if copy is not None and not ordering.is_none(copy) and is_constant_bool(copy) is False:
        raise TypeCheckError("np.array with copy=False is not part of Relay", span, help="write np.asarray(x)")
    result = array(checker, out, object, span)
    if not ordering.is_none(dtype):
        assert dtype is not None
        attributes = {"dtype": normalize_attribute("dtype", static_value(dtype, "dtype", span))}
        result = operators.apply(checker, out, lookup("cast"), [result], attributes, span, [])
    least = 0 if ndmin is None else static_value(ndmin, "ndmin", span)
    if isinstance(least, int) and least > 0:
        rank = len(ranked_type(checker.materialize(out, result, span), span).shape)
        axes = tuple(range(least - rank))
        return operators.apply(checker, out, lookup("expand_dims"), [result], {"axis": axes}, span, [])
    return result


@implements(math.log)
def _log(call: Call, x: AbstractValue, base: AbstractValue | None = None, /) -> AbstractValue:
    """`math.log(x)` and `math.log(x, base)`."""
    checker, out, span = call.site
    given = [x] if base is None else [x, base]
    logs = [operators.apply(checker, out, lookup("log"), [a], {}, span, []) for a in given]
    return logs[0] if len(logs) == 1 else operators.apply(checker, out, lookup("divide"), logs, {}, span, [])


@implements(math.pow)
def _float_power(call: Call, x: AbstractValue, y: AbstractValue, /) -> AbstractValue:
    """`math.pow(x, y)`, which is a float where `x ** y` may be an integer."""
    checker, out, span = call.site
    numbers = [PythonNumber(float(a.specialize()), span) if type(a) is PythonNumber else a for a in (x, y)]
    types = [prune(a.type) for a in numbers if isinstance(a, DynamicValue) and not a.of_range]
    bases = [prune(t.base) for t in types if isinstance(t, TensorType)]
    if any(isinstance(b, BaseType) and not b.is_float for b in bases):
        help = "convert: math.pow(float(n), 2.0); or n ** 2, which is an integer"
        raise TypeCheckError("math.pow needs floats, found integers", span, help=help)
    return checker.engine.apply_operator(checker, out, "power", numbers, {}, span, [])


def _is_all_integers(value: AbstractValue) -> bool:
    """True for an integer of the source, and for a list of nothing else."""
    if isinstance(value, Tuple):
        return bool(value.items) and all(map(_is_all_integers, value.items))
    return type(value) is PythonNumber and not value.is_float


def _of_floats(name: str, operator: str, instead: str) -> Rule:
    """A function that NumPy has for integers with another meaning than here."""

    def rule(call: Call, value: AbstractValue, /) -> AbstractValue:
        checker, out, span = call.site
        type_ = prune(value.type) if isinstance(value, DynamicValue) and not value.of_range else None
        base = prune(type_.base) if isinstance(type_, TensorType) else None
        if _is_all_integers(value) or (isinstance(base, BaseType) and base.base_class is BaseClass.INTEGER):
            raise TypeCheckError(f"{name} of integers is not part of Relay", span, help=instead)
        return operators.apply(checker, out, lookup(operator), [value], {}, span, [])

    return rule


@implements(math.prod)
def _product(call: Call, iterable: AbstractValue, /) -> AbstractValue:
    """`math.prod(xs)`: of numbers one after the other, or of the elements of a vector."""
    checker, out, span = call.site
    items = tuple_items(checker, out, iterable, span)
    if items is None:
        x = checker.materialize(out, iterable, span)
        if len(ranked_type(x, span).shape) != 1:
            raise TypeCheckError("math.prod goes along one axis", span, help="of all elements: np.prod(x)")
        return operators.apply(checker, out, lookup("prod"), [x], {}, span, [])
    result: AbstractValue = PythonNumber(1, span)
    for item in items:
        result = checker.engine.apply_operator(checker, out, "multiply", [result, item], {}, span, [])
    return result


def _clip(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    value, low, high = arguments
    for name, bound in (("maximum", low), ("minimum", high)):
        if not (isinstance(bound, PythonObject) and bound.value is None):
            value = operators.apply(checker, out, lookup(name), [value, bound], {}, span, [])
    return value


def clip(
    checker: Checker,
    out: TypedBlockBuilder,
    value: AbstractValue,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`x.clip(low, high)`, also by name."""
    bounds: dict[str, AbstractValue] = dict(zip(("min", "max"), arguments, strict=False))
    for name, bound in keywords:
        if name == "out":
            raise TypeCheckError("clip with 'out' is not part of Relay", span, help=ARGUMENT_ADVICE["out"])
        name = {"a_min": "min", "a_max": "max"}.get(name, name)
        if name not in ("min", "max") or name in bounds:
            raise TypeCheckError("clip takes the bounds min and max, each once", span)
        bounds[name] = bound
    if len(arguments) > 2:
        raise TypeCheckError("clip takes the bounds min and max", span)
    low, high = (bounds.get(name, PythonObject(None)) for name in ("min", "max"))
    return _clip(checker, out, [value, low, high], span)


@implements(np.clip)
def _clip_call(call: Call, a: AbstractValue, /, *bounds: AbstractValue, **named: AbstractValue) -> AbstractValue:
    """`np.clip(x, low, high)`."""
    return clip(call.checker, call.out, a, bounds, call.keywords, call.span)


implements(builtins.any)(_quantifier("any", True))
implements(builtins.all)(_quantifier("all", False))
for _function in (math.floor, math.ceil, math.trunc):
    implements(_function)(_to_integer(_function.__name__))
implements(np.rint)(
    _of_floats("rint", "round", "integers are rounded already: np.round(n); or convert: np.rint(float(n))")
)
implements(np.reciprocal)(_of_floats("reciprocal", "reciprocal", "it is 0 for most of them; convert: 1.0 / float(n)"))


@implements(builtins.isinstance)
def _isinstance(call: Call, obj: AbstractValue, class_or_tuple: AbstractValue, /) -> AbstractValue:
    return comparisons.is_instance(call.checker, call.out, [obj, class_or_tuple], call.span)


# ---- iterators and partial calls


@implements(itertools.chain)
def _chain(call: Call, *iterables: AbstractValue) -> AbstractValue:
    """The elements of all, one iterable after the other. It is a rule, as the class has functions of its own."""
    return call_library(call.checker, call.out, "chained__", iterables, call.span)


@implements(itertools.count)
def _count(call: Call, start: AbstractValue | None = None, step: AbstractValue | None = None) -> AbstractValue:
    """The numbers from one on, for a zip, which ends with another iterable."""
    number = PythonNumber(1) if step is None else step
    if not isinstance(number, Number) or not isinstance(number.specialize(), int):
        help = "count the rounds, and compute it of the number: `start + i * step`"
        raise TypeCheckError("the step of itertools.count must be an integer that is known", call.span, help=help)
    return Range(PythonNumber(0, call.span) if start is None else start, PythonObject(None), int(number.specialize()))


@implements(itertools.islice)
def _islice(call: Call, iterable: AbstractValue, /, *bounds: AbstractValue) -> AbstractValue:
    """Some of the elements: those before an end, or from a start on before an end, in steps."""
    checker, out, span = call.site
    if not 1 <= len(bounds) <= 3:
        raise TypeCheckError(f"itertools.islice takes 2 to 4 arguments, found {1 + len(bounds)}", span)
    start, stop, step = (None, *bounds, None) if len(bounds) == 1 else (*bounds, None)[:3]
    if isinstance(iterable, Range) and isinstance(iterable.stop, PythonObject):
        if ordering.is_none(stop):
            raise TypeCheckError("this has no end", span, help="give islice the number of elements")
        assert stop is not None
        wide = PythonNumber(iterable.step, span)
        end = call.apply("add", iterable.start, call.apply("multiply", stop, wide))
        iterable = Range(iterable.start, end, iterable.step)
    item = SliceItem(*(None if bound is None or ordering.is_none(bound) else bound for bound in (start, stop, step)))
    return index(checker, out, list_elements(checker, out, iterable, span), [item], span)


@implements(functools.partial)
def _partial(call: Call, func: AbstractValue, /, *args: AbstractValue, **keywords: AbstractValue) -> AbstractValue:
    """A function with some of its arguments."""
    form = Form(dict, tuple(name for name, _ in call.keywords))
    parts = func, Tuple(args), Tuple(tuple(value for _, value in call.keywords), form)
    return Tuple(parts, Form(PartialCall, ("func", "args", "keywords")))
