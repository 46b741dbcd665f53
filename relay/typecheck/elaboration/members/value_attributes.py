"""Attributes and methods of values of all kinds."""

from __future__ import annotations

import difflib
import enum
import types
from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.types import Kind, RefType, StackType, TensorType, TupleType, Unknown, prune, show
from relay.operator import lookup
from relay.support import foreign_names
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Method,
    Number,
    Places,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    empty_context,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import early_elements
from relay.typecheck.elaboration.library import overload_calls, overloads
from relay.typecheck.elaboration.members import enumerations, places
from relay.typecheck.elaboration.members.python_classes import method_overloads
from relay.typecheck.elaboration.members.structure_items import without_fields
from relay.typecheck.elaboration.values import data, records
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.labels import members_of_run
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.tensors import (
    LIST_METHODS,
    attribute_names,
    is_attribute,
)
from relay.typecheck.unification import resolve


def attribute(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, name: str, span: Span | None, described: str
) -> AbstractValue:
    """`entity.name`, by the overloads of its class first."""
    if isinstance(entity, DynamicValue) and isinstance(prune(entity.type), Unknown):
        _guess_class(checker, entity, name, span, described)
    if isinstance(entity, Number) and name != "value":
        entity = checker.materialize(out, entity, span)
    if name == "__class__" and isinstance(entity, Tuple) and entity.form is not None and records.is_record(entity):
        return PythonObject(entity.form.cls)
    if known := method_overloads(entity, name):
        if name == "__setitem__":
            raise TypeCheckError(
                "a call of `__setitem__` is not part of Relay", span, help=f"write `{described}[i] = v`"
            )
        if not overloads.is_attribute(known[0].function):
            return Method(entity, name, described)
        call = overloads.Call(checker, empty_context(), out, known[0].function, [entity], (), span, [described])
        return overload_calls.call(known, call)
    match entity:
        case PythonObject(types.ModuleType() as module):
            found = getattr(module, name, None)
            if found is None and not hasattr(module, name):
                names = (n for n in dir(module) if not n.startswith("_"))
                public = [n for n in names if not isinstance(getattr(module, n, None), types.ModuleType)]
                close = difflib.get_close_matches(name, public, n=1)
                help = foreign_names.MODULE.get(name) or (f"did you mean {close[0]!r}?" if close else None)
                raise TypeCheckError(f"{described or module.__name__} has no {name!r}", span, help=help)
            return object_entity(found, span)
        case PythonObject(enum.EnumMeta() as cls):
            if name not in cls.__members__:
                close = difflib.get_close_matches(name, cls.__members__, n=1)
                help = f"did you mean {close[0]!r}?" if close else None
                raise TypeCheckError(f"{cls.__name__} has no member {name!r}", span, help=help)
            return PythonObject(cls.__members__[name])
        case PythonObject(enum.Enum() as member) if name in ("name", "value"):
            return object_entity(getattr(member, name), span)
        case PythonObject(type() as cls) if overloads.method(cls, name):
            return object_entity(getattr(cls, name), span)
        case PythonObject(type() as cls) if data.is_data_class(cls):
            return data.class_attribute(cls, name, span)
        case PythonObject(type() as cls) if (own := records.of_class(cls, name, span)) is not None:
            return own
        case DynamicValue() if (data_type := data.data_type(entity)) is not None:
            return data.attribute(checker, out, entity, data_type, name, span)
        case DynamicValue() if isinstance(prune(entity.type), TupleType):
            return attribute(checker, out, expand(checker, out, entity, span), name, span, described)
        case DynamicValue() if isinstance(prune(entity.type), TensorType) and is_attribute(name):
            return Method(entity, name, described)
        case DynamicValue():
            raise _missing_attribute(checker, entity, name, span, described)
        case Places():
            return places.method(entity, name, span)
        case Tuple() if name in ("name", "value") and members_of_run(entity) is not None:
            return enumerations.field_of_member(checker, out, entity, name, span)
        case Tuple(_, form) if form is not None and (read := records.getter(entity, name)) is not None:
            return checker.engine.call_function(checker, out, read, [entity], (), span, 1)
        case Tuple() if records.is_record(entity):
            return Method(entity, name) if records.has_method(entity, name) else records.attribute(entity, name, span)
        case Tuple() if entity in checker.gradients:
            raise without_fields(checker, entity, name, f"has no attribute {name!r}", described, span)
        case Tuple():
            help = LIST_METHODS.get(name)
            raise TypeCheckError(f"{described} has no attribute {name!r}", span, help=help)
        case _:
            is_text = isinstance(entity, PythonObject) and isinstance(entity.value, str)
            help = 'join text in print or assert: f"{x}"' if is_text else None
            if isinstance(entity, PythonObject) and isinstance(entity.value, frozenset) and name == "add":
                help = f"keep a list: `if x not in {described}: {described}.append(x)`"
            raise TypeCheckError(f"{described} has no attribute {name!r}", span, help=help)


def _guess_class(checker: Checker, value: DynamicValue, name: str, span: Span | None, described: str) -> None:
    """Decide by an attribute that is read what a value of unknown type is: a reference, or a tensor."""
    if name == "value":
        checker.unify_at(value.type, RefType(checker.solver.fresh_variable(Kind.Type)), span, described)
    else:
        if not is_attribute(name):
            early_elements.read(checker, value, f"the field {name}", span)
            if checker.generic:
                raise SchemeOnly(span, f"the type of {described}")
        checker.solver.unify(value.type, checker.solver.fresh_tensor())
    checker.guess(prune(value.type))


def _missing_attribute(
    checker: Checker, value: DynamicValue, name: str, span: Span | None, described: str
) -> TypeCheckError:
    """The error for an attribute that a tensor, reference or list does not have."""
    type_ = prune(value.type)
    if isinstance(type_, RefType):
        checker.refuse_guess(type_, span, described)
        return TypeCheckError(f"a reference has no attribute {name!r}, only `value`", span)
    if not isinstance(type_, TensorType):
        help = LIST_METHODS.get(name) if isinstance(type_, StackType) else None
        return TypeCheckError(
            f"{described} is {show(resolve(value.type))}, it has no attribute {name!r}", span, help=help
        )
    checker.refuse_guess(type_, span, described)
    help = foreign_names.METHODS.get(name)
    if help is None:
        close = difflib.get_close_matches(name, attribute_names(), n=1)
        help = f"did you mean {close[0]!r}?" if close else None
    return TypeCheckError(f"a tensor has no attribute {name!r}", span, help=help)


def call_method(
    checker: Checker,
    out: TypedBlockBuilder,
    method: Method,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
    described: Sequence[str],
) -> AbstractValue:
    """`x.name(..)`: the operator of that name, with x as its first operand."""
    if isinstance(method.value, Tuple):
        own = records.own_method(method.value, method.name, method.owner)
        if own is not None:
            return checker.engine.call_function(checker, out, own, [method.value, *arguments], keywords, span, 1)
        if method.name == "__init__" and records.member(method.value, "__init__", method.owner) is object.__init__:
            return PythonObject(None)
        return records.call_method(method.value, method.name, arguments, keywords, span)
    if isinstance(method.value, Places):
        return places.call(checker, out, method.value, method.name, arguments, keywords, span)
    operands = [method.described, *described]
    given = [method.value, *arguments]
    return checker.engine.call_operator(checker, out, lookup(method.name), given, keywords, span, operands)
