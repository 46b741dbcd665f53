"""Calls: of operators, functions, derivatives, methods, Python builtins and Relay's own functions."""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.expr import Assert, Binding, OpCall, RefNew, RefRead, RefWrite
from relay.ir.intrinsic import Intrinsic
from relay.ir.structure import is_record_class
from relay.ir.types import (
    BOOL,
    INT32,
    BaseClass,
    BaseType,
    Form,
    Kind,
    RefType,
    StackType,
    TensorType,
    TypeId,
    Unknown,
    base_of_dtype,
    prune,
    show,
)
from relay.operator import Operator, lookup
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    Context,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Method,
    Number,
    Progression,
    PythonObject,
    Range,
    Size,
    SizeExpression,
    Tuple,
    TypedBlockBuilder,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.closures import returned_closures
from relay.typecheck.elaboration.control_flow import trip_counts
from relay.typecheck.elaboration.derivatives import derivatives, tangents, templates
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_positions, list_reductions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.effects.effect_notes import READS, WRITES
from relay.typecheck.elaboration.expressions import intrinsics, operators, weak_types
from relay.typecheck.elaboration.expressions.attributes import checked_attribute, normalize_attribute, static_value
from relay.typecheck.elaboration.expressions.python_operators import apply_named, numbers_alone
from relay.typecheck.elaboration.instances import call_function, expand
from relay.typecheck.elaboration.library import creation, numpy_names, ordering, python_builtins
from relay.typecheck.elaboration.restarts import ListGrows
from relay.typecheck.elaboration.values import (
    axis_names,
    bound_methods,
    data,
    range_numbers,
    records,
    sizes,
    special_methods,
    tensors,
)
from relay.typecheck.elaboration.values.function_values import call_derived, call_value
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.unification import resolve

Keywords = Sequence[tuple[str, AbstractValue]]


def apply(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    callee: AbstractValue,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
    described: Sequence[str],
    name: str = "this function",
) -> AbstractValue:
    """Call anything. `name` is the called function for messages."""
    arguments = [bound_methods.as_function(checker, out, a, span) for a in arguments]
    keywords = [(key, bound_methods.as_function(checker, out, a, span)) for key, a in keywords]
    match callee:
        case GlobalFunction() | LocalFunction():
            return call_function(checker, out, callee, arguments, keywords, span)
        case DerivativeFunction():
            return call_derived(checker, out, callee, arguments, keywords, span)
        case Method(value) if data.data_type(value) is not None:
            return data.call_method(checker, out, callee, arguments, keywords, span)
        case Method(value, str(name)) if name in ordering.LIST_METHODS and not keywords and _is_items(value):
            return ordering.list_method(checker, out, name, value, arguments, span)
        case Method():
            return tensors.call_method(checker, out, callee, arguments, keywords, span, described)
        case DynamicValue() if (chosen := returned_closures.to_call(checker, out, callee, span)) is not None:
            return apply(checker, context, out, chosen, arguments, keywords, span, described, name)
        case DynamicValue() if data.data_type(callee) is not None:
            found = special_methods.call(checker, out, "__call__", callee, arguments, span)
            if found is None or keywords:
                raise TypeCheckError(f"{show(resolve(callee.type))} has no method __call__ for this call", span)
            return found
        case DynamicValue():
            if keywords:
                raise TypeCheckError("a function value takes no keyword arguments", span)
            return call_value(checker, out, callee, arguments, span, name)
        case PythonObject(numpy_names.NumpyFunction() as function):
            return numpy_names.call(checker, out, function, arguments, keywords, span, described)
        case PythonObject(Operator() as operator):
            return call_operator(checker, out, operator, arguments, keywords, span, described)
        case PythonObject(Intrinsic(name)) if name in templates.STRUCTURAL:
            return templates.apply(checker, context, out, name, arguments, span)
        case PythonObject(Intrinsic(name)):
            return intrinsics.apply(checker, context, out, name, arguments, keywords, span)
        case PythonObject(functools.partial() as partial):
            first = [object_entity(a, span) for a in partial.args]
            named = {k: object_entity(v, span) for k, v in partial.keywords.items()} | dict(keywords)
            inner = object_entity(partial.func, span)
            return apply(checker, context, out, inner, [*first, *arguments], list(named.items()), span, [])
        case PythonObject(BaseType() as base):
            return _cast(checker, out, base, arguments, keywords, span)
        case PythonObject(Unknown() | TypeId() as open_base) if open_base.kind is Kind.BaseType:
            raise SchemeOnly(span, "the dtype that is called")
        case PythonObject(type() as cls) if (
            issubclass(cls, np.generic) and (found_base := base_of_dtype(cls)) is not None
        ):
            return _cast(checker, out, found_base, arguments, keywords, span)
        case PythonObject(type() as cls) if data.is_data_class(cls):
            return data.construct(checker, out, cls, arguments, keywords, span)
        case PythonObject(type() as cls) if cls is dict:
            return records.make_dict(checker, out, arguments, keywords, span)
        case PythonObject(type() as cls) if is_record_class(cls):
            return records.make(cls, arguments, keywords, span)
        case PythonObject(value) if value is dataclasses.replace and len(arguments) == 1:
            record = records.as_record(checker, out, arguments[0], span)
            if record is None:
                raise TypeCheckError("replace needs a dataclass", span)
            return records.replace(record, keywords, span)
        case PythonObject(value) if hasattr(value, "__relay_template__"):
            return derivatives.from_template(checker, out, value.__relay_template__, arguments, keywords, span)
        case PythonObject(value):
            relay_name = getattr(value, "__relay_builtin__", None)
            if relay_name is not None:
                return _RELAY[relay_name](checker, out, arguments, keywords, span)
            found = ordering.call(checker, context, out, value, arguments, keywords, span)
            if found is not None:
                return found
            found = python_builtins.call(checker, out, value, arguments, keywords, span)
            if found is not None:
                return found
            for builtin, rule in _PYTHON.items():
                if value is builtin:
                    if builtin is builtins.zip:
                        return intrinsics.make_zip(arguments, keywords, span)
                    if keywords and builtin is not builtins.enumerate:
                        raise TypeCheckError(
                            f"{getattr(builtin, '__name__', builtin)} takes no keyword arguments here",
                            span,
                            help="relay.argmax(x) and relay.argmin(x) give the position; or compare in a loop"
                            if builtin in (builtins.max, builtins.min)
                            else None,
                        )
                    return rule(checker, out, [*arguments, *_start(keywords, span)], span)
            if value is str:
                raise TypeCheckError("`str` is not part of Relay", span, help='use an f-string in print: print(f"{x}")')
            raise TypeCheckError(f"{getattr(value, '__name__', value)!r} cannot be called", span)
        case Tuple() as record if records.member(record, "__call__") is not None:
            own = records.own_method(record, "__call__")
            if own is None:
                help = "decorate its method __call__ with @relay, or the class with @relay.data"
                raise TypeCheckError("methods of this class are not part of Relay", span, help=help)
            return call_function(checker, out, own, [record, *arguments], keywords, span, 1)
        case Size() | Number():
            help = "write `*` for a product; the size of an axis is x.shape[i]"
            raise TypeCheckError("a number is not a function", span, help=help)
        case Tuple():
            raise TypeCheckError("a tuple is not a function", span, help="write `[i]` for an item")
        case _:
            raise TypeCheckError("this value is not a function", span, help="write `*` for a product")


def call_operator(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
    described: Sequence[str],
) -> AbstractValue:
    """Call an operator by its Python signature."""
    if operator.algebra.maps_over_tree and len(arguments) == 1 and not keywords:
        parts = tangents.of_parts(checker, out, operator.name, arguments[0], span)
        if parts is not None:
            return parts
    try:
        if operator.variadic and arguments and not operator.spread:
            first = arguments[0]
            if isinstance(first, DynamicValue):
                first = expand(checker, out, first, span)
            if isinstance(first, DynamicValue) and dynamic_lists.is_growing(first):
                whole = list_reductions.as_tensor(checker, out, first, span)
                if whole is not None and operator is lookup("stack"):
                    return _stack_rows(checker, out, whole, arguments[1:], keywords, span)
                if whole is not None and operator is lookup("concatenate"):
                    return _concatenate_rows(checker, out, whole, arguments[1:], keywords, span)
                first = list_reductions.element_tuple(checker, out, first, span)
            if not isinstance(first, Tuple):
                raise TypeMismatch(f"{operator.name} takes a tuple of tensors", help=f"relay.{operator.name}((x, y))")
            operands, named = operator.bind([first.items, *arguments[1:]], dict(keywords))
            if not operands:
                raise TypeMismatch(f"{operator.name} needs at least one tensor, found an empty tuple")
        else:
            arguments = creation.completed_arguments(operator, arguments, dict(keywords))
            operands, named = operator.bind(arguments, dict(keywords))
    except TypeMismatch as error:
        raise error.with_span(span) from None
    if not named and (number := numbers_alone(checker, out, operator.name, operands, span)) is not None:
        return number
    made = creation.run_time_arange(checker, out, operator, named, keywords, span)
    if made is not None:
        return made
    for name in operator.sizes & named.keys():
        named[name] = data_dependent.as_sizes(checker, out, named[name], span)
    if operator is lookup("reshape"):
        named["shape"] = data_dependent.with_found_extent(checker, out, operands[0], named["shape"], span)
    made = creation.call_full(checker, out, operator, named, span)
    if made is not None:
        return made
    creation.open_dtype(checker, out, operator, named, len(arguments), dict(keywords), span)
    attributes = {}
    given = (*dict(keywords), *(*operator.operands, *operator.attributes)[: len(arguments)])
    for name, value in named.items():
        static = value
        if _is_entity(value):
            static = static_value(value, name, span, symbolic=name in operator.sizes)
        attributes[name] = normalize_attribute(name, static)
    axis_names.axes_by_name(checker, operator, operands, attributes, span)
    attributes = {name: checked_attribute(operator, name, value, span) for name, value in attributes.items()}
    if "layout" not in given:
        axis_names.followed_layout(operator, operands, attributes)
    result = operators.apply(checker, out, operator, operands, attributes, span, described)
    return expand(checker, out, range_numbers.note(checker, operator.name, operands, result), span)


def _cast(
    checker: Checker,
    out: TypedBlockBuilder,
    base: BaseType,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`np.float32(x)`, `relay.Int64(n)`: the value in another dtype."""
    _arity(str(base), arguments, 1, span)
    if keywords:
        raise TypeCheckError(f"{base} takes no keyword arguments", span)
    (value,) = arguments
    if isinstance(value, Number) and (base.is_float or not value.is_float) and base != BOOL:
        return checker.constant(
            out, value if isinstance(value, Size | SizeExpression) else Number(value.value, span), base
        )
    return operators.apply(checker, out, lookup("cast"), [value], {"dtype": base}, span, [])


def _stack_rows(
    checker: Checker,
    out: TypedBlockBuilder,
    whole: DynamicValue,
    rest: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`stack(xs, axis)` of rows that are stacked along the first axis."""
    given = dict(zip(("axis",), rest, strict=False)) | dict(keywords)
    axis = static_value(given["axis"], "axis", span) if "axis" in given else 0
    rank = len(whole.type.shape) if isinstance(whole.type, TensorType) else 0
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise TypeMismatch(f"axis {axis} is out of range for a stack of rank {rank}", span)
    if axis % rank == 0:
        return whole
    order = [*range(1, rank)]
    order.insert(axis % rank, 0)
    return operators.apply(checker, out, lookup("transpose"), [whole], {"axes": tuple(order)}, span, [])


def _concatenate_rows(
    checker: Checker,
    out: TypedBlockBuilder,
    whole: DynamicValue,
    rest: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`concatenate(xs, axis)` of tensors that are stacked along a new first axis."""
    given = dict(zip(("axis",), rest, strict=False)) | dict(keywords)
    axis = static_value(given["axis"], "axis", span) if "axis" in given else 0
    type_ = prune(whole.type)
    assert isinstance(type_, TensorType)
    count, *shape = type_.shape
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        raise TypeMismatch(f"axis {axis} is out of range for tensors of rank {len(shape)}", span)
    axis %= len(shape)
    if axis:
        order = [*range(1, len(shape) + 1)]
        order.insert(axis, 0)
        whole = operators.apply(checker, out, lookup("transpose"), [whole], {"axes": tuple(order)}, span, [])
    shape[axis] = shape[axis] * count
    return operators.apply(checker, out, lookup("reshape"), [whole], {"shape": tuple(shape)}, span, [])


def _is_items(entity: AbstractValue) -> bool:
    return isinstance(entity, Tuple) or dynamic_lists.is_growing(entity)


def _is_entity(value: object) -> bool:
    return isinstance(value, (DynamicValue, Number, Tuple, PythonObject, Method, Range, Progression, Zip, *FUNCTIONS))


# ---- references


def read(checker: Checker, out: TypedBlockBuilder, reference: AbstractValue, span: Span | None) -> AbstractValue:
    """The content of a reference."""
    typed = checker.materialize(out, reference, span)
    checker.effect("ref", READS, span, typed.atom)
    content = checker.solver.fresh(Kind.Type)
    checker.unify_at(typed.type, RefType(content), span, "the reference")
    return expand(checker, out, checker.bind(out, RefRead(typed.atom, span), content, "value", span), span)


def write(
    checker: Checker, out: TypedBlockBuilder, reference: AbstractValue, new: AbstractValue, span: Span | None
) -> None:
    """Replace the content of a reference."""
    typed = checker.materialize(out, reference, span)
    checker.effect("ref", WRITES, span, typed.atom)
    content = checker.solver.fresh(Kind.Type)
    checker.unify_at(typed.type, RefType(content), span, "the reference")
    base = prune(content)
    if isinstance(base, StackType):
        new = dynamic_lists.as_growing(checker, out, new, span)
    if isinstance(new, Number) and isinstance(base, TensorType) and base.shape == ():
        value = checker.constant(out, new, base.base)
    else:
        new = data_dependent.pack_sizes(checker, out, new, None, base, span)  # type: ignore[arg-type]
        value = checker.materialize(out, weak_types.free_count(checker, out, new), span)
    if dynamic_lists.IN_REFERENCES not in checker.decisions.growing and dynamic_lists.lengths_differ(
        value.type, content
    ):
        raise ListGrows(dynamic_lists.IN_REFERENCES)
    checker.unify_at(value.type, content, span, "the new value of the reference")
    out.items.append(Binding((), RefWrite(typed.atom, value.atom, span)))


# ---- Relay's own functions


def _ref(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None
) -> AbstractValue:
    _arity("ref", arguments, 1, span)
    content = arguments[0]
    if dynamic_lists.is_literal(content) and isinstance(content, Tuple) and not content.items:
        content = dynamic_lists.as_growing(checker, out, content, span)  # nothing else can be written to it
    elif dynamic_lists.IN_REFERENCES in checker.decisions.growing:
        content = dynamic_lists.growing_inside(checker, out, content, span)
    content = weak_types.free_count(checker, out, data_dependent.pack_sizes(checker, out, content, None, None, span))
    typed = checker.materialize(out, content, span)
    made = checker.bind(out, RefNew(typed.atom, span), RefType(typed.type), "ref", span)
    checker.made_reference(made.atom)
    return made


def _read(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None
) -> AbstractValue:
    _arity("read", arguments, 1, span)
    return read(checker, out, arguments[0], span)


def _write(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None
) -> AbstractValue:
    _arity("write", arguments, 2, span)
    write(checker, out, arguments[0], arguments[1], span)
    return Tuple(())


def _rename_axes(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None
) -> AbstractValue:
    _arity("rename_axes", arguments, 2, span)
    entity, given = arguments
    typed = checker.materialize(out, entity, span)
    return axis_names.rename_axes(checker, typed, given, span)


_RELAY: dict[str, Callable[..., AbstractValue]] = {
    "grad": derivatives.grad(False),
    "value_and_grad": derivatives.grad(True),
    "ref": _ref,
    "read": _read,
    "write": _write,
    "replace": data.replace,
    "rename_axes": _rename_axes,
}


def _arity(name: str, arguments: Sequence[AbstractValue], count: int, span: Span | None) -> None:
    if len(arguments) != count:
        raise TypeCheckError(f"{name} takes {count} argument{'s' * (count != 1)}, found {len(arguments)}", span)


# ---- Python's builtins


def _len(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    _arity("len", arguments, 1, span)
    entity = arguments[0]
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    if isinstance(entity, Tuple):
        return Number(len(entity.items), span)
    if isinstance(entity, DynamicValue) and dynamic_lists.is_growing(entity):
        return list_positions.length(checker, out, entity, span)
    if isinstance(entity, PythonObject) and isinstance(entity.value, str):
        return Number(len(entity.value), span)
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


def _start(keywords: Keywords, span: Span | None) -> list[AbstractValue]:
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
        _arity(name, arguments, 1, span)
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
    _arity("sum", arguments, 1, span)
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
    _arity("tuple", arguments, 1, span)
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
    _arity("list", arguments, 1, span)
    only = expand(checker, out, arguments[0], span) if isinstance(arguments[0], DynamicValue) else arguments[0]
    if dynamic_lists.is_growing(only):
        return only
    if isinstance(only, Tuple):
        return Tuple(tuple(records.iteration_items(only, span)), Form(list))
    return ordering.list_elements(checker, out, only, span)


_PYTHON: dict[object, Callable[..., AbstractValue]] = {
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
