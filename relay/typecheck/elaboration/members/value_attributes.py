"""Attributes and methods of values of all kinds."""

from __future__ import annotations

import difflib
import enum
import types
from collections.abc import Sequence

import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.expr import RefRead
from relay.ir.types import Kind, RefType, StackType, TensorType, TupleType, Unknown, prune, show
from relay.operator import get_env, lookup
from relay.support import foreign_names
from relay.typecheck.dims import product
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Method,
    Number,
    Places,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    size,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import early_elements
from relay.typecheck.elaboration.effects.effect_notes import READS
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.library import overloads
from relay.typecheck.elaboration.members import places
from relay.typecheck.elaboration.members.structure_items import without_fields
from relay.typecheck.elaboration.values import data, records
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.python_classes import method_overloads
from relay.typecheck.elaboration.values.tensors import (
    ATTRIBUTES,
    COPIES,
    ITEM,
    LIST_METHODS,
    SPREADING,
    is_attribute,
    is_sized,
    tensor_type,
)
from relay.typecheck.unification import resolve


def attribute(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, name: str, span: Span | None, described: str
) -> AbstractValue:
    """`entity.name`."""
    if method_overloads(entity, name):
        return Method(entity, name, described)
    match entity:
        case PythonObject(types.ModuleType() as module):
            found = getattr(module, name, None)
            if found is None and not hasattr(module, name):
                names = (n for n in dir(module) if not n.startswith("_"))
                public = [n for n in names if not isinstance(getattr(module, n, None), types.ModuleType)]
                close = difflib.get_close_matches(name, public, n=1)
                help = foreign_names.MODULE.get(name) or (f"did you mean {close[0]!r}?" if close else None)
                raise TypeCheckError(f"{module.__name__} has no {name!r}", span, help=help)
            return object_entity(found, span)
        case PythonObject(enum.EnumMeta() as cls):
            if name not in cls.__members__:
                close = difflib.get_close_matches(name, cls.__members__, n=1)
                help = f"did you mean {close[0]!r}?" if close else None
                raise TypeCheckError(f"{cls.__name__} has no member {name!r}", span, help=help)
            return PythonObject(cls.__members__[name])
        case PythonObject(enum.Enum() as member) if name in ("name", "value"):
            return object_entity(getattr(member, name), span)
        case PythonObject(type() as cls) if data.is_data_class(cls):
            return data.class_attribute(cls, name, span)
        case PythonObject(type() as cls) if (own := records.method_of_class(cls, name)) is not None:
            return own
        case DynamicValue() if (data_type := data.data_type(entity)) is not None:
            return data.attribute(checker, out, entity, data_type, name, span)
        case DynamicValue() if isinstance(prune(entity.type), TupleType):
            return attribute(checker, out, expand(checker, out, entity, span), name, span, described)
        case DynamicValue():
            return _value_attribute(checker, out, entity, name, span, described)
        case Places():
            return places.method(entity, name, span)
        case Tuple(_, form) if form is not None and (read := records.getter(entity, name)) is not None:
            return checker.engine.call_function(checker, out, read, [entity], (), span, 1)
        case Tuple(_, form) if form is not None and form.names:
            return Method(entity, name) if records.has_method(entity, name) else records.attribute(entity, name, span)
        case Tuple() if entity in checker.gradients:
            raise without_fields(checker, entity, name, f"has no attribute {name!r}", described, span)
        case Tuple() | Number():
            if name == "value" or isinstance(entity, Tuple):
                help = LIST_METHODS.get(name)
                raise TypeCheckError(f"{described} has no attribute {name!r}", span, help=help)
            return _value_attribute(checker, out, checker.materialize(out, entity, span), name, span, described)
        case _:
            is_text = isinstance(entity, PythonObject) and isinstance(entity.value, str)
            help = 'join text in print or assert: f"{x}"' if is_text else None
            raise TypeCheckError(f"{described} has no attribute {name!r}", span, help=help)


def _value_attribute(
    checker: Checker, out: TypedBlockBuilder, typed: DynamicValue, name: str, span: Span | None, described: str
) -> AbstractValue:
    type_ = prune(typed.type)
    if isinstance(type_, RefType) or (isinstance(type_, Unknown) and name == "value"):
        if name != "value":
            checker.refuse_guess(type_, span, described)
            raise TypeCheckError(f"a reference has no attribute {name!r}, only `value`", span)
        content = checker.solver.fresh(Kind.Type)
        checker.unify_at(typed.type, RefType(content), span, described)
        if isinstance(type_, Unknown):
            checker.guess(prune(type_))
        checker.effect("ref", READS, span, typed.atom)
        return expand(checker, out, checker.bind(out, RefRead(typed.atom, span), content, "value", span), span)
    if isinstance(type_, TupleType):
        raise TypeCheckError(f"{described} is a tuple, it has no attribute {name!r}", span)
    if isinstance(type_, Unknown):
        if not is_attribute(name):
            early_elements.read(checker, typed, f"the field {name}", span)
        if checker.generic and not is_attribute(name):
            raise SchemeOnly(span, f"the type of {described}")
        checker.solver.unify(type_, checker.solver.fresh_tensor())
        type_ = prune(type_)
        checker.guess(type_)
    if not isinstance(type_, TensorType):
        what = show(resolve(typed.type))
        help = LIST_METHODS.get(name) if isinstance(type_, StackType) else None
        raise TypeCheckError(f"{described} is {what}, it has no attribute {name!r}", span, help=help)
    if name == "dtype":
        base = prune(type_.base)
        return PythonObject(base)
    if name in ("shape", "ndim", "size"):
        known = tensor_type(typed)
        if known is None or (name != "ndim" and not all(is_sized(d) for d in known.shape)):
            raise SchemeOnly(span, f"the {name} of {described}")
        if name == "ndim":
            return Number(known.rank, span)
        if name == "shape":
            return Tuple(tuple(size(d, span) for d in known.shape))
        return size(product(known.shape), span)
    if name == "T":
        return operators.apply(checker, out, lookup("transpose"), [typed], {"axes": None}, span, [described])
    if name == "at":
        return Places(typed)
    if is_attribute(name):
        return Method(typed, name, described)
    checker.refuse_guess(type_, span, described)
    help = foreign_names.METHODS.get(name)
    if help is None:
        close = difflib.get_close_matches(
            name,
            [*ATTRIBUTES, *(n for n in dir(np.ndarray) if overloads.method(np.ndarray, n)), *get_env().names()],
            n=1,
        )
        help = f"did you mean {close[0]!r}?" if close else None
    raise TypeCheckError(f"a tensor has no attribute {name!r}", span, help=help)


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
        own = records.own_method(method.value, method.name)
        if own is not None:
            return checker.engine.call_function(checker, out, own, [method.value, *arguments], keywords, span, 1)
        return records.call_method(method.value, method.name, arguments, keywords, span)
    if isinstance(method.value, Places):
        return places.call(checker, out, method.value, method.name, arguments, keywords, span)
    if method.name in COPIES:
        if arguments or keywords:
            raise TypeCheckError(f"{method.name} takes no arguments here", span)
        return method.value
    if method.name == ITEM:
        return _item(checker, out, method.value, [*arguments, *(v for _, v in keywords)], span)
    operands = [method.described, *described]
    if method.name in SPREADING and not keywords and all(_is_number(a) for a in arguments):
        arguments = [Tuple(tuple(arguments))]
    given = [method.value, *arguments]
    return checker.engine.call_operator(checker, out, lookup(method.name), given, keywords, span, operands)


def _item(
    checker: Checker,
    out: TypedBlockBuilder,
    value: AbstractValue,
    arguments: Sequence[AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """`x.item()`: the one element of an array, as a scalar."""
    if arguments:
        raise TypeCheckError("`item` takes no arguments here", span, help="write x[i]")
    return checker.engine.call_operator(checker, out, lookup("reshape"), [value, Tuple(())], (), span, [])


def _is_number(entity: AbstractValue) -> bool:
    if not isinstance(entity, DynamicValue):
        return isinstance(entity, Number)
    type_ = tensor_type(entity)
    return type_ is not None and type_.rank == 0
