"""Python's builtin functions: `len`, `range`, `enumerate`, conversions, `min`, `max`, `sum`, `tuple`, `list`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.expr import Assert, Binding, OpCall
from relay.ir.types import BOOL, INT32, BaseClass, BaseType, Form, Kind, TensorType, prune, show
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    Progression,
    PythonObject,
    Range,
    Size,
    SizeExpression,
    Text,
    Tuple,
    TypedBlockBuilder,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import trip_counts
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_positions, list_reductions
from relay.typecheck.elaboration.expressions import intrinsics
from relay.typecheck.elaboration.expressions.operator_calls import Keywords, arity, call_operator
from relay.typecheck.elaboration.expressions.python_operators import apply_named
from relay.typecheck.elaboration.library import ordering
from relay.typecheck.elaboration.values import range_numbers, records, sizes, special_methods, tensors
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import resolve


def _len(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    arity("len", arguments, 1, span)
    entity = arguments[0]
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    if isinstance(entity, Tuple):
        return Number(len(entity.items), span)
    if isinstance(entity, DynamicValue) and dynamic_lists.is_growing(entity):
        return list_positions.length(checker, out, entity, span)
    if isinstance(entity, PythonObject) and isinstance(entity.value, str):
        return Number(len(entity.value), span)
    if isinstance(entity, Text):
        raise TypeCheckError(
            "the length of an f-string with run-time values is not known at compile time", span, help="count its parts"
        )
    if isinstance(entity, Range | Progression):
        return trip_counts.length(checker, out, entity, span)
    shape = tensors.attribute(checker, out, entity, "shape", span, "the argument of len")
    if not isinstance(shape, Tuple) or not shape.items:
        raise TypeCheckError("a scalar has no length", span, help="tensors with axes, tuples, lists and dicts have")
    return shape.items[0]


def _range(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    if not 1 <= len(arguments) <= 3:
        raise TypeCheckError(f"range takes 1 to 3 arguments, found {len(arguments)}", span)
    start: AbstractValue = arguments[0] if len(arguments) > 1 else Number(0, span)
    stop = arguments[1] if len(arguments) > 1 else arguments[0]
    step = arguments[2] if len(arguments) == 3 else Number(1, span)
    if isinstance(step, Number) and (step.is_float or step.value == 0):
        raise TypeCheckError(
            f"the step of range must be an integer and not 0, found {step.value}",
            span,
            help="count the rounds: `for k in range(rounds): x = start + float(k) * step`" if step.is_float else None,
        )
    for bound in (start, stop, step):
        if isinstance(bound, Number) and bound.is_float:
            raise TypeMismatch(f"range needs integers, found {bound.value}", span)
        if not isinstance(bound, Number):
            typed = checker.materialize(out, bound, span)
            checker.unify_at(typed.type, TensorType(checker.solver.fresh(Kind.BaseType), ()), span, "a bound of range")
            type_ = prune(typed.type)
            if isinstance(type_, TensorType) and not checker.solver.restrict(
                type_.base, frozenset({BaseClass.INTEGER})
            ):
                range_numbers.must_count(checker, typed)
                help = "convert it: range(int(x))"
                raise TypeMismatch(f"range needs integers, found {show(resolve(typed.type))}", span, help=help)
    start, stop, step = (trip_counts.signed_bound(checker, out, bound, span) for bound in (start, stop, step))
    if isinstance(step, Number):
        return Range(start, stop, int(step.value))
    typed = checker.materialize(out, step, span)
    some = apply_named(checker, out, "not_equal", [typed, Number(0, span)], {}, span, [])
    held = checker.materialize(out, some, span).atom
    out.items.append(Binding((), Assert(held, "the step of range must not be 0", span)))
    return Progression(start, stop, typed)


def start_argument(keywords: Keywords, span: Span | None) -> list[AbstractValue]:
    """The keyword argument of `enumerate`."""
    if len(keywords) > 1 or any(name != "start" for name, _ in keywords):
        raise TypeCheckError("enumerate takes no keyword argument but start", span)
    return [start for _, start in keywords]


def _enumerate(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    if not 1 <= len(arguments) <= 2:
        raise TypeCheckError(f"enumerate takes an iterable and a start, found {len(arguments)}", span)
    start = arguments[1] if len(arguments) == 2 else Number(0, span)
    return Zip((Range(start, PythonObject(None), 1), arguments[0]))


def _convert(base: BaseType | None) -> Callable[..., AbstractValue]:
    from relay.typecheck.elaboration.expressions.blocks import require_bool

    def rule(
        checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
    ) -> AbstractValue:
        name = "float" if base is None else "int" if base is INT32 else "bool"
        arity(name, arguments, 1, span)
        entity = arguments[0]
        if base is BOOL and (isinstance(entity, Tuple) or dynamic_lists.is_growing(entity)):
            return require_bool(checker, out, entity, span, "the argument of bool")
        if isinstance(entity, PythonObject) and isinstance(entity.value, str) and base is not BOOL:
            try:
                return Number(float(entity.value) if base is None else int(entity.value), span)  # float("inf")
            except ValueError:
                raise TypeMismatch(f"{entity.value!r} is not a number", span, help="write a number") from None
        is_count = isinstance(entity, Size) or (isinstance(entity, DynamicValue) and range_numbers.is_count(entity))
        if is_count and base is INT32:
            return entity
        if isinstance(entity, Size | SizeExpression) and base is None:
            return SizeExpression("multiply", (entity, Number(1.0)), lambda a, b: a * b, True, span)
        if isinstance(entity, Number) and base is not BOOL:
            return Number(float(entity.value) if base is None else int(entity.value), span)
        target: object = base
        if base is None:
            target = checker.solver.literal_base(0.0, span)
        typed = checker.materialize(out, entity, span)
        checker.unify_at(
            typed.type, TensorType(checker.solver.fresh(Kind.BaseType), ()), span, f"the argument of {name}"
        )
        result = TensorType(target, ())  # type: ignore[arg-type]
        attributes: dict[str, object] = {"dtype": target}
        checker.pending_attributes.append(attributes)
        return checker.bind(out, OpCall("cast", (typed.atom,), attributes, span), result, name, span)  # type: ignore[arg-type]

    return rule


def _operator(name: str) -> Callable[..., AbstractValue]:
    def rule(
        checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
    ) -> AbstractValue:
        if len(arguments) == 1 and isinstance(arguments[0], Number) and name == "abs":
            return Number(abs(arguments[0].value), span)
        own = special_methods.call(checker, out, f"__{name}__", arguments[0], (), span) if arguments else None
        return own or call_operator(checker, out, lookup(name), arguments, (), span, [])

    return rule


def _extreme(pair: str, reduction: str) -> Callable[..., AbstractValue]:
    def rule(
        checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
    ) -> AbstractValue:
        parts = list(arguments)
        if len(parts) == 1:
            only = ordering.values(checker, out, parts[0], span)
            if isinstance(only, DynamicValue) and dynamic_lists.is_growing(only):
                return list_reductions.extreme(checker, out, only, pair, span)
            if not isinstance(only, Tuple):
                return call_operator(checker, out, lookup(reduction), [only], (), span, [])
            parts = list(only.items)
        if not parts:
            raise TypeCheckError(f"{reduction} of an empty sequence", span)
        numbers = [p for p in parts if isinstance(p, Number)]
        if len(numbers) == len(parts):
            if (number := sizes.size_arithmetic(pair, numbers, builtins.max, span)) is not None:
                return number
            values = [p.value for p in numbers]
            return Number(min(values) if reduction == "min" else max(values), span)
        result = parts[0]
        for part in parts[1:]:
            result = call_operator(checker, out, lookup(pair), [result, part], (), span, [])
        return result

    return rule


def _sum(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    if len(arguments) == 2:
        total = _sum(checker, out, arguments[:1], span)
        return apply_named(checker, out, "add", [arguments[1], total], {}, span, [])
    arity("sum", arguments, 1, span)
    only = ordering.values(checker, out, arguments[0], span)
    if isinstance(only, DynamicValue) and dynamic_lists.is_growing(only):
        return list_reductions.total(checker, out, only, span)
    if isinstance(only, Tuple):
        result: AbstractValue = Number(0, span)
        for position, part in enumerate(only.items):
            result = part if position == 0 else apply_named(checker, out, "add", [result, part], {}, span, [])
        return result
    return call_operator(checker, out, lookup("sum"), [only, Number(0, span)], (), span, [])


def _tuple(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    arity("tuple", arguments, 1, span)
    only = expand(checker, out, arguments[0], span) if isinstance(arguments[0], DynamicValue) else arguments[0]
    found = intrinsics.elements(checker, out, only, span)
    if found is None:
        raise TypeCheckError(
            "only something whose length is known can be made a tuple", span, help="make a list: `[x for x in xs]`"
        )
    return Tuple(tuple(found))


def _list(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    if not arguments:
        return Tuple((), Form(list))
    arity("list", arguments, 1, span)
    only = expand(checker, out, arguments[0], span) if isinstance(arguments[0], DynamicValue) else arguments[0]
    if dynamic_lists.is_growing(only):
        return only
    if isinstance(only, Tuple):
        return Tuple(tuple(records.iteration_items(only, span)), Form(list))
    return ordering.list_elements(checker, out, only, span)


BUILTINS: dict[object, Callable[..., AbstractValue]] = {
    builtins.len: _len,
    builtins.range: _range,
    builtins.zip: lambda checker, out, arguments, span: intrinsics.make_zip(arguments, (), span),
    builtins.enumerate: _enumerate,
    builtins.float: _convert(None),
    builtins.int: _convert(INT32),
    builtins.bool: _convert(BOOL),
    builtins.abs: _operator("abs"),
    builtins.min: _extreme("minimum", "min"),
    builtins.max: _extreme("maximum", "max"),
    builtins.sum: _sum,
    builtins.tuple: _tuple,
    builtins.list: _list,
}
