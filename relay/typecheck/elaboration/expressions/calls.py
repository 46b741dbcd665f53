"""Calls: of operators, functions, derivatives, methods, Python builtins and Relay's own functions."""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.intrinsic import Intrinsic
from relay.ir.partial_calls import PartialCall
from relay.ir.structure import is_record_class
from relay.ir.types import BaseType, Form, Kind, TypeId, Unknown, base_of_dtype, show
from relay.operator import Operator
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Method,
    Number,
    PythonObject,
    Size,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.closures import returned_closures
from relay.typecheck.elaboration.derivatives import derivatives, templates
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.expressions import intrinsics
from relay.typecheck.elaboration.expressions.operator_calls import Keywords, arity, call_operator, cast
from relay.typecheck.elaboration.expressions.references import call_read, call_write, make_reference
from relay.typecheck.elaboration.instances import call_function
from relay.typecheck.elaboration.library import numpy_names, ordering, python_builtins, trees
from relay.typecheck.elaboration.library.builtin_functions import BUILTINS, start_argument
from relay.typecheck.elaboration.values import axis_names, bound_methods, data, records, special_methods, tensors
from relay.typecheck.elaboration.values.function_values import call_derived, call_value
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.unification import resolve


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
        case Tuple(form=Form(cls)) if cls is PartialCall:
            inner, given, named = bound_methods.parts_of(callee)
            named |= dict(keywords)
            return apply(checker, context, out, inner, [*given, *arguments], list(named.items()), span, described)
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
        case PythonObject(Intrinsic(name)) if name in trees.NAMES:
            return trees.call(checker, context, out, name, arguments, keywords, span)
        case PythonObject(Intrinsic(name)):
            return intrinsics.apply(checker, context, out, name, arguments, keywords, span)
        case PythonObject(functools.partial() as partial):
            first = [object_entity(a, span) for a in partial.args]
            named = {k: object_entity(v, span) for k, v in partial.keywords.items()} | dict(keywords)
            inner = object_entity(partial.func, span)
            return apply(checker, context, out, inner, [*first, *arguments], list(named.items()), span, [])
        case PythonObject(BaseType() as base):
            return cast(checker, out, base, arguments, keywords, span)
        case PythonObject(Unknown() | TypeId() as open_base) if open_base.kind is Kind.BaseType:
            raise SchemeOnly(span, "the dtype that is called")
        case PythonObject(type() as cls) if (
            issubclass(cls, np.generic) and (found_base := base_of_dtype(cls)) is not None
        ):
            return cast(checker, out, found_base, arguments, keywords, span)
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
            if relay_name in trees.NAMES:
                return trees.call(checker, context, out, relay_name, arguments, keywords, span)
            if relay_name is not None:
                return _RELAY[relay_name](checker, out, arguments, keywords, span)
            found = ordering.call(checker, context, out, value, arguments, keywords, span)
            if found is not None:
                return found
            found = python_builtins.call(checker, out, value, arguments, keywords, span)
            if found is not None:
                return found
            for builtin, rule in BUILTINS.items():
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
                    return rule(checker, out, [*arguments, *start_argument(keywords, span)], span)
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


def _is_items(entity: AbstractValue) -> bool:
    return isinstance(entity, Tuple) or dynamic_lists.is_growing(entity)


# ---- Relay's own functions


def _rename_axes(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None
) -> AbstractValue:
    arity("rename_axes", arguments, 2, span)
    entity, given = arguments
    typed = checker.materialize(out, entity, span)
    return axis_names.rename_axes(checker, typed, given, span)


_RELAY: dict[str, Callable[..., AbstractValue]] = {
    "grad": derivatives.grad(False),
    "value_and_grad": derivatives.grad(True),
    "ref": make_reference,
    "read": call_read,
    "write": call_write,
    "replace": data.replace,
    "rename_axes": _rename_axes,
}
