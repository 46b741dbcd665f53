"""Calls: of operators, functions, derivatives, methods, Python builtins and Relay's own functions."""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence

import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.intrinsic import Intrinsic
from relay.ir.partial_calls import PartialCall
from relay.ir.structure import is_plain_class, is_record_class
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
    TensorMethod,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.closures import returned_closures
from relay.typecheck.elaboration.derivatives import derivatives
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.engine import late_import
from relay.typecheck.elaboration.expressions.operator_calls import Keywords, call_operator, cast
from relay.typecheck.elaboration.instances import call_function
from relay.typecheck.elaboration.library import (
    overload_calls,
    overloads,
)
from relay.typecheck.elaboration.members import enumerations, object_methods
from relay.typecheck.elaboration.members.python_classes import method_overloads
from relay.typecheck.elaboration.members.value_attributes import call_method
from relay.typecheck.elaboration.values import bound_methods, data, special_methods
from relay.typecheck.elaboration.values.data_construction import construct
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
    if isinstance(callee, PythonObject) and checker.gradients:
        with late_import:
            from relay.typecheck.elaboration.diagnostics import whole_gradients

        whole_gradients.require_arguments(checker, callee.value, arguments, described, span)
    match callee:
        case GlobalFunction() | LocalFunction():
            return call_function(checker, out, callee, arguments, keywords, span)
        case Tuple(form=Form(cls)) if cls is PartialCall:
            inner, given, named = bound_methods.parts_of(callee)
            named |= dict(keywords)
            return apply(checker, context, out, inner, [*given, *arguments], list(named.items()), span, described)
        case DerivativeFunction():
            return call_derived(checker, out, callee, arguments, keywords, span)
        case Method(value, name) if known := method_overloads(value, name):
            given, said = [value, *arguments], [callee.described, *described]
            return overload_calls.call(
                known, overloads.Call(checker, context, out, known[0].function, given, keywords, span, said, 1)
            )
        case Method(value) if data.data_type(value) is not None:
            return data.call_method(checker, out, callee, arguments, keywords, span)
        case Method():
            return call_method(checker, out, callee, arguments, keywords, span, described)
        case DynamicValue() if (chosen := returned_closures.to_call(checker, out, callee, span)) is not None:
            return apply(checker, context, out, chosen, arguments, keywords, span, described, name)
        case DynamicValue() if data.data_type(callee) is not None:
            found = special_methods.call(checker, out, "__call__", callee, arguments, span, keywords)
            if found is None:
                raise TypeCheckError(f"{show(resolve(callee.type))} has no method __call__ for this call", span)
            return found
        case DynamicValue():
            if keywords:
                checker.decisions.holding.append(True)  # the function itself may have parameters of these names
                raise TypeCheckError("a function value takes no keyword arguments", span)
            return call_value(checker, out, callee, arguments, span, name)
        case PythonObject(TensorMethod(method)):
            bound = Method(arguments[0], method)
            return apply(checker, context, out, bound, arguments[1:], keywords, span, described)
        case PythonObject(Operator() as operator):
            return call_operator(checker, out, operator, arguments, keywords, span, described)
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
        case PythonObject(enum.EnumMeta() as members) if len(arguments) == 1 and not keywords:
            return enumerations.member_of_value(checker, out, members, arguments[0], span)
        case PythonObject(type() as cls) if data.is_data_class(cls):
            return construct(checker, out, cls, arguments, keywords, span)
        case PythonObject(type() as cls) if is_record_class(cls):
            return object_methods.make_record(checker, out, cls, arguments, keywords, span)
        case PythonObject(Intrinsic(method)) if (
            found := object_methods.of_syntax(checker, context, out, method, arguments, keywords, span)
        ) is not None:
            return found
        case PythonObject(type() as cls) if is_plain_class(cls):
            return object_methods.make(checker, out, cls, arguments, keywords, span)
        case PythonObject(value) if hasattr(value, "__relay_template__"):
            return derivatives.from_template(checker, out, value.__relay_template__, arguments, keywords, span)
        case PythonObject(value) if known := overloads.find(value):
            return overload_calls.call(
                known, overloads.Call(checker, context, out, value, arguments, keywords, span, described)
            )
        case PythonObject(value):
            raise TypeCheckError(f"{getattr(value, '__name__', value)!r} cannot be called", span)
        case Size() | Number():
            help = "write `*` for a product; the size of an axis is x.shape[i]"
            raise TypeCheckError("a number is not a function", span, help=help)
        case Tuple():
            found = special_methods.call(checker, out, "__call__", callee, arguments, span, keywords)
            if found is None:
                raise TypeCheckError("a tuple is not a function", span, help="write `[i]` for an item")
            return found
        case _:
            raise TypeCheckError("this value is not a function", span, help="write `*` for a product")
