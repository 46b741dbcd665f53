"""Calls of what the table of overloads has: the first overload whose kinds of arguments are those of the call."""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from relay.errors import Label, RegistrationError, Span, TypeCheckError
from relay.ir.definition import Definition
from relay.ir.expr import Function, Parameter
from relay.ir.structure import is_record_class
from relay.ir.types import (
    BaseType,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    show,
)
from relay.support.foreign_names import argument_help, own_name
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    Number,
    PythonObject,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
    empty_context,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import structure_of
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.library import overloads, undecorated
from relay.typecheck.elaboration.library.overloads import (
    Call,
    DecoratedFunction,
    Overload,
    Rule,
    parameters_of,
    positional_counts,
)
from relay.typecheck.elaboration.values import tensors
from relay.typecheck.elaboration.values.objects import is_meaningful, object_entity
from relay.typecheck.unification import flat_shape, shape_variable


def call(found: Sequence[Overload], call: Call) -> AbstractValue:
    """The result of the first of these overloads that takes the arguments of a call. Raises TypeCheckError if none
    does."""
    for overload in found:
        if not overload.is_written:
            return _apply_rule(overload, call)
        definition = overload.definition
        assert definition is not None
        if len(found) == 1 or _takes(definition.function, call):
            callee = GlobalFunction(definition)
            return call.checker.engine.call_function(
                call.checker, call.out, callee, call.arguments, call.keywords, call.span
            )
    given = [*call.arguments, *(entity for _, entity in call.keywords)]
    if any(map(call.checker.is_open, given)):
        raise SchemeOnly(call.span, f"the arguments of {found[0].name}")
    definitions = [o.definition for o in found if o.definition is not None]
    places = tuple(Label(d.function.span, "takes other arguments") for d in definitions if d.function.span is not None)
    kinds = ", ".join(map(structure_of, given))
    takes = " or ".join(f"({', '.join(map(_parameter_text, d.function.parameters))})" for d in definitions)
    message = f"no overload of {found[0].name} takes ({kinds})"
    raise TypeCheckError(message, call.span, labels=places, help=f"there is one for {takes}")


def call_first(found: Sequence[Overload], given: Call) -> AbstractValue | None:
    """The result of the first of these functions of the language that takes the arguments; None if none does."""
    for overload in found:
        if overload.definition is not None and _takes(overload.definition.function, given):
            return call((overload,), given)
    return None


def call_subscript(
    found: Sequence[Overload],
    checker: Checker,
    out: TypedBlockBuilder,
    value: AbstractValue,
    items: Sequence[AbstractValue | SliceItem],
    new: AbstractValue | None,
    span: Span | None,
) -> AbstractValue:
    """`value[items]`, or the value after `value[items] = new`, by these overloads of `__getitem__` or `__setitem__`.
    Functions of the language get one key, as Python's methods do; rules get all items."""
    key = key_of(items)
    given = [value, *([] if key is None else [key]), *([] if new is None else [new])]
    packed = Call(checker, empty_context(), out, found[0].function, given, (), span)
    for overload in found:
        if not overload.is_written:
            named = () if new is None else (("new", new),)
            whole: Any = [value, *items]
            return _apply_rule(overload, Call(checker, empty_context(), out, overload.function, whole, named, span))
        definition = overload.definition
        assert definition is not None
        if key is not None and (len(found) == 1 or _takes(definition.function, packed)):
            return call((overload,), packed)
    if key is None:
        raise TypeCheckError(f"{found[0].name} takes no slices", span, help="index it by numbers")
    return call(found, packed)


def key_of(items: Sequence[AbstractValue | SliceItem]) -> AbstractValue | None:
    """The key that Python's `__getitem__` gets: the item of a subscript, or all of them in a tuple. None for slices."""
    whole = [item for item in items if not isinstance(item, SliceItem)]
    if len(whole) != len(items):
        return None
    return whole[0] if len(whole) == 1 else Tuple(tuple(whole))


def _apply_rule(overload: Overload, call: Call) -> AbstractValue:
    """The result of a rule, whose signature is the callable's. Raises TypeCheckError for other arguments."""
    rule: Rule = overload.implementation  # type: ignore[assignment]
    arguments = call.arguments
    least, most = positional_counts(rule)
    if not call.keywords and least <= len(arguments) <= most:
        return rule(call, *arguments)
    parameters = parameters_of(rule)
    kinds = {p.kind for p in parameters}
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(arguments) > len(positional) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise _wrong_count(overload, call, positional, len(arguments))
    missing = [p.name for p in positional[len(arguments) :] if p.default is p.empty]
    named: dict[str, AbstractValue] = {}
    if inspect.Parameter.VAR_KEYWORD in kinds:  # the others of such rules are by position only: no name is taken twice
        named.update(call.keywords)
    elif call.keywords:
        taken = {p.name for p in positional[: len(arguments)]}
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        for written, entity in call.keywords:
            name = own_name(written, names) if call.bound else written
            if name not in names:
                known = argument_help(name, names) or (f"it has {' and '.join(names)}" if names else None)
                raise TypeCheckError(f"{overload.name} takes no argument {name!r}", call.span, help=known)
            if name in taken or name in named:
                raise TypeCheckError(f"{overload.name} got two values for {name!r}", call.span)
            named[name] = entity
        missing = [name for name in missing if name not in named]
    if missing:
        raise _wrong_count(overload, call, positional, len(arguments) + len(named))
    return rule(call, *arguments, **named)


def _wrong_count(overload: Overload, call: Call, positional: Sequence[inspect.Parameter], found: int) -> TypeCheckError:
    """The error for another number of arguments than a rule takes."""
    written = positional[call.bound :]
    least, most = sum(p.default is p.empty for p in written), len(written)
    takes = f"{most} argument{'s' * (most != 1)}" if least == most else f"{least} to {most} arguments"
    return TypeCheckError(f"{overload.name} takes {takes}, found {found - call.bound}", call.span)


def _parameter_text(parameter: object) -> str:
    name, type_ = parameter.name, parameter.type  # type: ignore[attr-defined]
    return str(name) if type_ is None else f"{name}: {show(type_)}"


def _takes(function: Function, call: Call) -> bool:
    """True if the parameters of a function take the arguments of a call, as far as their kinds are known."""
    signature = function.signature or tuple(Parameter() for _ in function.parameters)
    positional = [i for i, p in enumerate(signature) if p.kind != "keyword_only"]
    if len(call.arguments) > len(positional):
        return False
    given: dict[int, AbstractValue] = dict(zip(positional, call.arguments, strict=False))
    places = {p.name: i for i, p in enumerate(function.parameters) if signature[i].kind != "positional_only"}
    for name, entity in call.keywords:
        if name not in places or places[name] in given:
            return False
        given[places[name]] = entity
    if any(p.default is None and i not in given for i, p in enumerate(signature)):
        return False
    return all(accepts(function.parameters[i].type, entity) for i, entity in given.items())


def accepts(written: Type | None, entity: AbstractValue) -> bool:
    """True if a value may be of the written type of a parameter: of its kind, and of its rank and dtype where these
    are known. Sizes do not distinguish overloads."""
    if written is None or isinstance(written, TypeId | Unknown):
        return True
    if isinstance(entity, DynamicValue):
        found = prune(entity.type)
        if isinstance(found, Unknown) and isinstance(written, TupleType) and _is_record(written):
            return False  # nothing is known of it: what everything else takes comes first
        return _may_be(found, written)
    match written:
        case TensorType(base, shape):
            is_whole = isinstance(base, BaseType) and not base.is_float
            return isinstance(entity, Number) and not flat_shape(shape) and not (entity.is_float and is_whole)
        case TupleType(items, form):
            if not isinstance(entity, Tuple) or entity.form != form or len(entity.items) != len(items):
                return False
            return all(map(accepts, items, entity.items))
        case StackType(element):
            if not isinstance(entity, Tuple) or not dynamic_lists.is_list(entity):
                return False
            return all(accepts(element, item) for item in entity.items)
        case FunctionType():
            return isinstance(entity, FUNCTIONS) or (isinstance(entity, PythonObject) and callable(entity.value))
        case _:
            return False


def _may_be(found: object, written: object) -> bool:
    """True if a type can become another one, as far as kinds, ranks and dtypes tell."""
    found, written = prune(found), prune(written)  # type: ignore[arg-type]
    if isinstance(found, Unknown | TypeId) or isinstance(written, Unknown | TypeId):
        return True
    match found, written:
        case TensorType(base, shape), TensorType(wanted, extents):
            bases = prune(base), prune(wanted)
            if all(isinstance(b, BaseType) for b in bases) and bases[0] != bases[1]:
                return False
            first, second = flat_shape(shape), flat_shape(extents)
            is_open = shape_variable(first) is not None or shape_variable(second) is not None
            return is_open or len(first) == len(second)
        case TupleType(items, form), TupleType(others, other):
            return form == other and len(items) == len(others) and all(map(_may_be, items, others))
        case StackType(element), StackType(other_element):
            return _may_be(element, other_element)
        case DataType(definition), DataType(other_definition):
            return definition is other_definition
        case RefType(content), RefType(other_content):
            return _may_be(content, other_content)
        case ((FunctionType() as one), (FunctionType() as two)):
            return len(one.parameters) == len(two.parameters)
        case one_type, other_type:
            return type(one_type) is type(other_type)


def has_own_class(definition: Definition) -> bool:
    """True if a parameter of a function is annotated with a class of the user's."""
    types = [p.type for p in definition.function.parameters]
    return any(isinstance(t, DataType) or (isinstance(t, TupleType) and _is_record(t)) for t in types)


def _is_record(type_: TupleType) -> bool:
    return type_.form is not None and is_record_class(type_.form.cls)


def add_user_overload(function: object, name: str, implementation: DecoratedFunction, owner: tuple[str, str]) -> None:
    """Enter what a user's function means for a callable. Raises RegistrationError for a callable that has a meaning
    already, unless the function is about a class of the user's, and for arguments that an earlier overload takes."""
    definition = implementation.__relay__
    known = overloads.find(function)
    others = [o for o in known if o.owner is not None and o.owner != owner]
    if any(o.owner is None for o in known) or (not known and _has_meaning(function)):
        if not has_own_class(definition):
            raise RegistrationError(
                f"{name} has a meaning in programs already",
                definition.function.span,
                help="write another function; or annotate a parameter with a class of your own, to which it gives one",
            )
        if not known and is_meaningful(function):
            meaning = object_entity(function, None)
            original = Overload(function, name, lambda given, *_, **__: _original(meaning, given))
            overloads.add(original, of_user=True)
    types = [p.type for p in definition.function.parameters]
    for other in others:
        if other.definition is not None and [p.type for p in other.definition.function.parameters] == types:
            span = other.definition.function.span
            raise RegistrationError(
                f"{name} has an overload for these arguments already",
                definition.function.span,
                labels=() if span is None else (Label(span, "it is here"),),
                help="annotate the parameters, so that the arguments tell them apart",
            )
    overloads.add(Overload(function, name, implementation, owner), of_user=True)


def _has_meaning(function: object) -> bool:
    if undecorated.is_written(function) or (isinstance(function, types.FunctionType) and undecorated.is_read(function)):
        return False  # an overload replaces what its text means
    if isinstance(function, property):
        return False
    cls, name = getattr(function, "__objclass__", None), getattr(function, "__name__", "")
    changes_list = cls is list and name in tensors.LIST_METHODS  # which the front end translates
    return (
        is_meaningful(function)
        or changes_list
        or (cls is np.ndarray and (tensors.is_attribute(name) or name.startswith("__")))
    )


def _original(meaning: AbstractValue, given: Call) -> AbstractValue:
    return given.checker.engine.call(
        given.checker, given.context, given.out, meaning, given.arguments, given.keywords, given.span, given.described
    )
