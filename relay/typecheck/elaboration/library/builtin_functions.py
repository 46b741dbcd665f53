"""Python's builtin functions: `len`, `range`, `enumerate`, conversions, `min`, `max`, `sum`, `tuple`, `list`."""

from __future__ import annotations

import builtins
import enum

from relay.errors import TypeCheckError, TypeMismatch
from relay.ir.expr import Assert, Binding, OpCall
from relay.ir.types import BOOL, INT32, BaseClass, BaseType, Form, Kind, TensorType, prune, show
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    Progression,
    PythonNumber,
    PythonObject,
    Range,
    Size,
    SizeExpression,
    Tuple,
    Zip,
)
from relay.typecheck.elaboration.control_flow import trip_counts
from relay.typecheck.elaboration.control_flow.optionals import may_be_none
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_positions, list_reductions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import dtype_promotion, intrinsics
from relay.typecheck.elaboration.expressions.conditions import require_bool
from relay.typecheck.elaboration.expressions.whole_numbers import whole_number
from relay.typecheck.elaboration.library import ordering
from relay.typecheck.elaboration.library.library_calls import as_sequence, list_elements
from relay.typecheck.elaboration.library.overloads import Call, Rule, implements
from relay.typecheck.elaboration.members.elements import elements
from relay.typecheck.elaboration.members.iterated import iterated
from relay.typecheck.elaboration.members.value_attributes import attribute
from relay.typecheck.elaboration.values import range_numbers, records, sizes, special_methods, texts
from relay.typecheck.elaboration.values.data import is_string_of_run
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import resolve


@implements(builtins.len)
def _len(call: Call, obj: AbstractValue, /) -> AbstractValue:
    checker, out, span = call.site
    entity = obj
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    if (own := special_methods.call(checker, out, "__len__", entity, (), span)) is not None:
        return own
    if isinstance(entity, Tuple):
        if records.is_of_user(entity, "__next__"):
            help = "call `next(..)` without a default, in a `try` with `except StopIteration`"
            raise TypeCheckError(f"{kind_of(entity)} does not tell whether it has a next element", span, help=help)
        if not records.is_sequence(entity):
            raise TypeCheckError(f"{kind_of(entity)} has no length", span, help="define __len__ in its class")
        return PythonNumber(len(entity.items), span)
    if isinstance(entity, DynamicValue) and dynamic_lists.is_growing(entity):
        return list_positions.length(checker, out, entity, span)
    if isinstance(entity, PythonObject) and isinstance(entity.value, str | frozenset | enum.EnumMeta):
        return PythonNumber(len(entity.value), span)
    if is_string_of_run(entity):
        return texts.length(checker, out, entity, span)
    if isinstance(entity, Range | Progression):
        return trip_counts.length(checker, out, entity, span)
    shape = attribute(checker, out, entity, "shape", span, "the argument of len")
    if not isinstance(shape, Tuple) or not shape.items:
        raise TypeCheckError("a scalar has no length", span, help="tensors with axes, tuples, lists and dicts have")
    return shape.items[0]


@implements(builtins.range)
def _range(
    call: Call, first: AbstractValue, second: AbstractValue | None = None, third: AbstractValue | None = None, /
) -> AbstractValue:
    checker, out, span = call.site
    start: AbstractValue = first if second is not None else PythonNumber(0, span)
    stop = first if second is None else second
    step = PythonNumber(1, span) if third is None else third
    if isinstance(step, Number) and (step.is_float or step.specialize() == 0):
        raise TypeCheckError(
            f"the step of range must be an integer and not 0, found {step.specialize()}",
            span,
            help="count the rounds: `for k in range(rounds): x = start + float(k) * step`" if step.is_float else None,
        )
    for bound in (start, stop, step):
        if isinstance(bound, Number) and bound.is_float:
            raise TypeMismatch(f"range needs integers, found {bound.specialize()}", span)
        if not isinstance(bound, Number):
            typed = checker.materialize(out, bound, span)
            checker.unify_at(
                typed.type, TensorType(checker.solver.fresh_variable(Kind.BaseType), ()), span, "a bound of range"
            )
            type_ = prune(typed.type)
            if isinstance(type_, TensorType) and not checker.solver.restrict(
                type_.base, frozenset({BaseClass.INTEGER})
            ):
                range_numbers.must_count(checker, typed)
                help = "convert it: range(int(x))"
                raise TypeMismatch(f"range needs integers, found {show(resolve(typed.type))}", span, help=help)
    start, stop, step = (trip_counts.signed_bound(checker, out, bound, span) for bound in (start, stop, step))
    if isinstance(step, Number):
        return Range(start, stop, int(step.specialize()))
    typed = checker.materialize(out, step, span)
    some = checker.engine.apply_operator(checker, out, "not_equal", [typed, PythonNumber(0, span)], {}, span, [])
    held = checker.materialize(out, some, span).atom
    out.items.append(Binding((), Assert(held, "the step of range must not be 0", span)))
    return Progression(start, stop, typed)


@implements(builtins.enumerate)
def _enumerate(call: Call, iterable: AbstractValue, start: AbstractValue | None = None) -> AbstractValue:
    first = PythonNumber(0, call.span) if start is None else start
    return Zip((Range(first, PythonObject(None), 1), _iterated(call, iterable)))


@implements(builtins.zip)
def _zip(call: Call, *iterables: AbstractValue, strict: AbstractValue | None = None) -> AbstractValue:
    return intrinsics.make_zip(call.checker, tuple(_iterated(call, i) for i in iterables), strict, call.span)


def _iterated(call: Call, iterable: AbstractValue) -> AbstractValue:
    """The iterable; of a run-time string, the list of its characters, of a hash table, that of its keys."""
    checker, out, span = call.site
    iterable = iterated(checker, out, iterable, span)
    return texts.characters(checker, out, iterable, span) if is_string_of_run(iterable) else iterable


def _convert(base: BaseType | None) -> Rule:
    def rule(call: Call, entity: AbstractValue, /) -> AbstractValue:
        checker, out, span = call.site
        name = "float" if base is None else "int" if base is INT32 else "bool"
        has_parts = isinstance(entity, Tuple) or dynamic_lists.is_growing(entity)
        if base is BOOL and (has_parts or may_be_none(entity)):
            return require_bool(checker, out, entity, span, "the argument of bool")
        if isinstance(entity, PythonObject) and isinstance(entity.value, str) and base is not BOOL:
            try:
                return PythonNumber(float(entity.value) if base is None else int(entity.value), span)  # float("inf")
            except ValueError:
                error = TypeMismatch(f"{entity.value!r} is not a number", span, help="write a number")
                raise error.wherever_it_runs() from None
        if base is not BOOL and is_string_of_run(entity):
            entity = texts.convert(checker, out, "real" if base is None else "integer", entity, span)
        is_count = isinstance(entity, Size) or (isinstance(entity, DynamicValue) and range_numbers.is_count(entity))
        if is_count and base is INT32:
            return entity
        if isinstance(entity, Size | SizeExpression) and base is None:
            return SizeExpression("multiply", (entity, PythonNumber(1.0)), lambda a, b: a * b, True, span)
        entity = data_dependent.number_at_run_time(checker, out, entity, span)
        if isinstance(entity, Number) and base is not BOOL:
            return PythonNumber(float(entity.specialize()) if base is None else int(entity.specialize()), span)
        if base is INT32:
            return whole_number(checker, out, entity, span, name)
        target: object = base
        if base is None:
            target = checker.solver.literal_base(0.0, span)
        typed = checker.materialize(out, entity, span)
        checker.unify_at(
            typed.type, TensorType(checker.solver.fresh_variable(Kind.BaseType), ()), span, f"the argument of {name}"
        )
        result = TensorType(target, ())  # type: ignore[arg-type]
        attributes: dict[str, object] = {"dtype": target}
        checker.module.pending_attributes.append(attributes)
        return checker.bind(out, OpCall("cast", (typed.atom,), attributes, span), result, name, span)  # type: ignore[arg-type]

    return rule


@implements(builtins.ord)
def _ord(call: Call, c: AbstractValue, /) -> AbstractValue:
    """The code point of a character."""
    if isinstance(c, PythonObject) and isinstance(c.value, str) and len(c.value) == 1:
        return PythonNumber(ord(c.value), call.span)
    if not is_string_of_run(c):
        raise TypeMismatch(f"ord needs one character, found {kind_of(c)}", call.span)
    return texts.convert(call.checker, call.out, "code_point", c, call.span)


@implements(builtins.chr)
def _chr(call: Call, i: AbstractValue, /) -> AbstractValue:
    """The character of a code point."""
    if isinstance(i, PythonNumber) and isinstance(i.value, int) and 0 <= i.value < 0x110000:
        return PythonObject(chr(i.value))
    return texts.convert(
        call.checker, call.out, "character", call.checker.materialize(call.out, i, call.span), call.span
    )


@implements(builtins.abs)
def _abs(call: Call, x: AbstractValue, /) -> AbstractValue:
    checker, out, span = call.site
    if isinstance(x, Number):
        number = sizes.size_arithmetic("abs", [x], builtins.abs, span)
        return PythonNumber(abs(x.specialize()), span) if number is None else number
    own = special_methods.call(checker, out, "__abs__", x, (), span)
    return own or checker.engine.call_operator(checker, out, lookup("abs"), [x], (), span, [])


def _extremum_rule(pair: str, reduction: str) -> Rule:
    def rule(
        call: Call, *arguments: AbstractValue, key: AbstractValue | None = None, default: AbstractValue | None = None
    ) -> AbstractValue:
        checker, out, span = call.site
        given = (("key", key), ("default", default))
        options = {n: v for n, v in given if v is not None and not ordering.is_none(v)}
        found = ordering.keyed_extremum(checker, call.context, out, reduction == "max", arguments, options, span)
        if found is not None:
            return found
        parts = list(arguments)
        if len(parts) == 1:
            only = as_sequence(checker, out, parts[0], span, in_any_order=True)
            if isinstance(only, DynamicValue) and dynamic_lists.is_growing(only):
                return list_reductions.list_extremum(checker, out, only, pair, span)
            if not isinstance(only, Tuple):
                return checker.engine.call_operator(checker, out, lookup(reduction), [only], (), span, [])
            parts = list(only.items)
        if not parts:
            raise TypeCheckError(f"{reduction} of an empty sequence", span)
        numbers = [p for p in parts if isinstance(p, Number)]
        if len(numbers) == len(parts):
            compute = builtins.min if reduction == "min" else builtins.max
            if (number := sizes.size_arithmetic(pair, numbers, compute, span)) is not None:
                return number
            if not any(map(data_dependent.mentioned_in_number, numbers)):
                return PythonNumber(compute(p.specialize() for p in numbers), span)
        result = parts[0]
        for part in parts[1:]:
            result = checker.engine.call_operator(checker, out, lookup(pair), [result, part], (), span, [])
        return result

    return rule


@implements(builtins.sum)
def _sum(call: Call, iterable: AbstractValue, /, start: AbstractValue | None = None) -> AbstractValue:
    total = _total(call, iterable)
    return total if start is None else call.apply("add", start, total)


def _total(call: Call, xs: AbstractValue) -> AbstractValue:
    checker, out, span = call.site
    only = as_sequence(checker, out, xs, span, in_any_order=True)
    if isinstance(only, DynamicValue) and dynamic_lists.is_growing(only):
        return list_reductions.total(checker, out, only, span)
    if isinstance(only, Tuple):
        result: AbstractValue = PythonNumber(0, span)
        for position, part in enumerate(only.items):
            part = dtype_promotion.truth_as_integer(checker, out, part, span)
            result = part if position == 0 else call.apply("add", result, part)
        return result
    return checker.engine.call_operator(checker, out, lookup("sum"), [only, PythonNumber(0, span)], (), span, [])


@implements(builtins.tuple)
def _tuple(call: Call, iterable: AbstractValue, /) -> AbstractValue:
    checker, out, span = call.site
    iterable = iterated(checker, out, iterable, span)
    only = expand(checker, out, iterable, span) if isinstance(iterable, DynamicValue) else iterable
    found = elements(checker, out, only, span)
    if found is None:
        raise TypeCheckError(
            "a tuple needs a length that is known at compile time", span, help="make a list: `[x for x in xs]`"
        )
    return Tuple(tuple(found))


@implements(builtins.list)
def _list(call: Call, iterable: AbstractValue | None = None, /) -> AbstractValue:
    checker, out, span = call.site
    if iterable is None:
        return Tuple((), Form(list))
    if is_string_of_run(iterable):
        return texts.characters(checker, out, iterable, span)
    iterable = iterated(checker, out, iterable, span)
    only = expand(checker, out, iterable, span) if isinstance(iterable, DynamicValue) else iterable
    if dynamic_lists.is_growing(only):
        return only
    if isinstance(only, Tuple):
        return Tuple(tuple(records.iteration_items(only, span)), Form(list))
    return list_elements(checker, out, only, span)


implements(builtins.float)(_convert(None))
implements(builtins.int)(_convert(INT32))
implements(builtins.bool)(_convert(BOOL))
implements(builtins.min)(_extremum_rule("minimum", "min"))
implements(builtins.max)(_extremum_rule("maximum", "max"))
