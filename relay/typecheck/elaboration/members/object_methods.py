"""Objects of plain Python classes: how they are made, and calls of methods that change them.

Stack(3)         ->   what `Stack.__init__` makes of an object without fields
stack.push(v)    ->   the pair of what the method gives and of the changed object, which the variable gets
"""

from __future__ import annotations

import builtins
import copy
import types
from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.intrinsic import IN_PLACE, Intrinsic
from relay.ir.structure import class_obstacle
from relay.ir.types import Form, RefType, TupleType, prune, types_in
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    GlobalFunction,
    Method,
    PythonObject,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
    empty_context,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.library import undecorated
from relay.typecheck.elaboration.library.overloads import Call, implements
from relay.typecheck.elaboration.members import changing_calls
from relay.typecheck.elaboration.values import records
from relay.typecheck.elaboration.values.bound_methods import inherited_method
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import resolve

Keywords = Sequence[tuple[str, AbstractValue]]


def make(
    checker: Checker,
    out: TypedBlockBuilder,
    cls: type,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`Class(..)` of a plain class. Raises TypeCheckError for one whose objects are not made by `__init__` alone."""
    obstacle = class_obstacle(cls)
    if obstacle is not None:
        message = f"{cls.__name__} has {obstacle}, so that its objects cannot be made in a program"
        raise TypeCheckError(message, span, help="make the object outside, and pass it as an argument")
    if cls is types.SimpleNamespace:
        return Tuple(tuple(v for _, v in keywords), Form(cls, tuple(name for name, _ in keywords)))
    empty = Tuple((), Form(cls))
    if records.class_member(cls, "__init__") is object.__init__:
        if arguments or keywords:
            raise TypeCheckError(f"{cls.__name__} takes no arguments: it has no __init__", span)
        return empty
    _, made = call_changing(checker, empty_context(), out, Method(empty, "__init__"), arguments, keywords, span)
    return made


def make_record(
    checker: Checker,
    out: TypedBlockBuilder,
    cls: type,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`Class(..)` of a dataclass or named tuple, with what its `__init__` or `__post_init__` does, if it has one."""
    empty = Tuple((), Form(cls))
    if records.is_of_user(empty, "__init__"):
        _, made = call_changing(checker, empty_context(), out, Method(empty, "__init__"), arguments, keywords, span)
        assert isinstance(made, Tuple)
        return records.in_field_order(made)
    made = records.make(cls, arguments, keywords, span)
    assert isinstance(made, Tuple)
    if records.is_of_user(made, "__post_init__"):
        _, made = call_changing(checker, empty_context(), out, Method(made, "__post_init__"), (), (), span)
        assert isinstance(made, Tuple)
        return records.in_field_order(made)
    return made


def of_syntax(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    intrinsic: str,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue | None:
    """The meaning of `x.append(v)` and the like where x is an object whose class has such a method; else None."""
    name = intrinsic if intrinsic in records.TAKING else records.STATEMENTS.get(intrinsic)
    if name is None or not arguments:
        return None
    whole, *given = arguments
    if isinstance(whole, DynamicValue) and isinstance(prune(whole.type), TupleType):
        whole = expand(checker, out, whole, span)
    if not isinstance(whole, Tuple) or not records.is_of_user(whole, name):
        return None
    result, after = call_changing(checker, context, out, Method(whole, name), given, keywords, span)
    return Tuple((result, after)) if name in records.TAKING else after


def call_changing(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    method: Method,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> tuple[AbstractValue, AbstractValue]:
    """The result of a method, which may change its object, and the object after it."""
    call = Call(checker, context, out, method, arguments, keywords, span)
    result, after = changing_calls.apply(call, method, (-1,)).items
    return result, after


@implements(Intrinsic("inherited"), name="inherited")
def _inherited(call: Call, whole: AbstractValue, above: AbstractValue, name: AbstractValue, /) -> AbstractValue:
    """`super().name`: the method that an object has from the classes above one, or the value of a property."""
    checker, out, span = call.site
    assert isinstance(name, PythonObject) and isinstance(name.value, str)
    if checker.is_open(whole):
        raise SchemeOnly(span, "the class of the object")
    if isinstance(whole, DynamicValue):
        whole = expand(checker, out, whole, span)
    found = None
    if isinstance(whole, Tuple) and isinstance(above, PythonObject):
        found = inherited_method(whole, above.value, name.value)
    if found is None:
        raise TypeCheckError(f"no class above has a method {name.value!r}", span)
    assert isinstance(whole, Tuple)
    getter = records.getter(whole, found.name, found.owner)
    return found if getter is None else checker.engine.call_function(checker, out, getter, [whole], (), span, 1)


def set_property(
    checker: Checker, out: TypedBlockBuilder, record: Tuple, name: str, new: AbstractValue, span: Span | None
) -> AbstractValue:
    """The object after `p.name = v` of a property. Raises TypeCheckError for one that has no setter."""
    found = records.member(record, name)
    assert isinstance(found, property)
    if not undecorated.is_written(found.fset):
        raise TypeCheckError(f"the property {name!r} cannot be assigned", span)
    setter = GlobalFunction(undecorated.definition(found.fset))
    call = Call(checker, empty_context(), out, setter, [record, new], (), span)
    return changing_calls.apply(call, setter, (0,)).items[1]


def set_item(
    checker: Checker,
    out: TypedBlockBuilder,
    record: Tuple,
    items: Sequence[AbstractValue | SliceItem],
    new: AbstractValue,
    span: Span | None,
    inside: bool,
) -> AbstractValue:
    """The object after its class's own `__setitem__`. Raises TypeCheckError for slices, and for a change `inside` of an
    item, which is what `__getitem__` has given."""
    if inside:
        help = "assign the item to a variable, change that, and assign it to the item again"
        raise TypeCheckError("what an object's `__getitem__` gives cannot be changed in its place", span, help=help)
    keys = tuple(item for item in items if not isinstance(item, SliceItem))
    if len(keys) < len(items):
        raise TypeCheckError("an object's `__setitem__` takes no slices here", span, help="pass the bounds as numbers")
    key = keys[0] if len(keys) == 1 else Tuple(keys)
    return call_changing(checker, empty_context(), out, Method(record, "__setitem__"), [key, new], (), span)[1]


@implements(Intrinsic("augment"), name="augment")
def _augment(call: Call, whole: AbstractValue, operator: AbstractValue, more: AbstractValue, /) -> AbstractValue:
    """The value of a variable after `p += v`: the result of the class's method, or the sum."""
    checker, out, span = call.site
    assert isinstance(operator, PythonObject)
    if isinstance(whole, DynamicValue) and isinstance(prune(whole.type), TupleType):
        whole = expand(checker, out, whole, span)
    name = IN_PLACE[str(operator.value)]
    if isinstance(whole, Tuple) and records.is_of_user(whole, name):
        return call_changing(checker, call.context, out, Method(whole, name), [more], (), span)[0]
    operands = [whole, more]
    return checker.engine.apply_operator(checker, out, str(operator.value), operands, {}, span, call.described[::2])


@implements(builtins.type)
def _type(call: Call, obj: AbstractValue, /) -> AbstractValue:
    """`type(p)` of an object, which is its class."""
    if isinstance(obj, DynamicValue):
        obj = expand(call.checker, call.out, obj, call.span)
    if isinstance(obj, Tuple) and obj.form is not None and records.is_record(obj) and obj.form.cls is not dict:
        return PythonObject(obj.form.cls)
    raise TypeCheckError(
        "`type` of this is not part of Relay",
        call.span,
        help="types are known: test `x.ndim == 1`, `x.dtype == relay.Float32` or `isinstance(p, C)`",
    )


@implements(copy.copy, copy.deepcopy)
def _copy(call: Call, x: AbstractValue, /) -> AbstractValue:
    """A copy, which every value is. Raises TypeCheckError for one that holds references."""
    if _holds_references(x):
        raise TypeCheckError("a copy of a reference is the same reference here", call.span, help="relay.ref(r.value)")
    return x


def _holds_references(x: AbstractValue) -> bool:
    if isinstance(x, Tuple):
        return any(map(_holds_references, x.items))
    return isinstance(x, DynamicValue) and any(isinstance(t, RefType) for t in types_in(resolve(x.type)))
