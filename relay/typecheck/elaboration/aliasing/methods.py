"""Objects of classes: what `__init__` puts into them, and methods that change them."""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import Span
from relay.ir.definition import giving_back
from relay.ir.expr import Atom, OpCall, Static, Var
from relay.ir.intrinsic import IN_PLACE
from relay.ir.structure import is_plain_class
from relay.ir.surface import Apply, Attribute, IndexUpdate, Slice
from relay.ir.types import TupleType, prune
from relay.typecheck.elaboration.abstract_values import DynamicValue, Method, Tuple
from relay.typecheck.elaboration.aliasing import calls, effects
from relay.typecheck.elaboration.aliasing.objects import NONE, Object, Objects
from relay.typecheck.elaboration.aliasing.places import Place
from relay.typecheck.elaboration.aliasing.walk import Walker
from relay.typecheck.elaboration.values import records, special_methods
from relay.typecheck.elaboration.values.records import class_member


def make_object(walker: Walker, target: Var, cls: type, value: Apply) -> None:
    """An object of a class, whose parts are whatever `__init__` makes them."""
    made = frozenset({Object(True)})
    own = Var("self")
    walker.places[own] = Place(made, walker.tick())
    definition, missed = walker.undecorated(class_member(cls, "__init__")), None
    if definition is not None:
        definition = giving_back(definition) or definition
        calls.call_definition(walker, Var("nothing"), definition, (own, *value.arguments), value)
        missed = walker.summarize(definition).missed.get(0)
    walker.bind(target, made, None, missed)


def _receiver(walker: Walker, atom: Atom) -> Tuple | None:
    """The object that a method is called on, as far as its class tells; None for other values."""
    found = walker.meanings.value(atom) if isinstance(atom, Var) else None
    if isinstance(found, DynamicValue) and isinstance(type_ := prune(found.type), TupleType):
        return Tuple((), type_.form)
    return found if isinstance(found, Tuple) else None


def method_of(walker: Walker, intrinsic: str, value: Apply) -> Method | None:
    """The method of an object's class that the front end's call means; None for others, as of lists."""
    whole = _receiver(walker, value.arguments[0]) if value.arguments else None
    if whole is None:
        return None
    method = records.STATEMENTS.get(intrinsic, intrinsic)
    return Method(whole, method) if records.is_of_user(whole, method) else None


def user_method(walker: Walker, atom: Atom, name: str) -> Method | None:
    """The method of this name that the class of an operand has; None if it has none, or is no class of the user's."""
    whole = _receiver(walker, atom)
    return Method(whole, name) if whole is not None and records.is_of_user(whole, name) else None


def operate(walker: Walker, target: Var, operator: str, operands: Sequence[Atom], span: Span | None) -> bool:
    """An operator for which a class of an operand has a method; False if none has one."""
    names = special_methods.METHODS.get(operator, ())
    for name, whole, others in zip(names, operands, (operands[1:], operands[:1]), strict=False):
        method = user_method(walker, whole, name) if name else None
        if method is not None:
            calls.call_method(walker, target, whole, method, Apply(whole, tuple(others), (), span))
            return True
    return False


def read_property(walker: Walker, target: Var, value: Attribute) -> bool:
    """`p.name` of a property; False for a field."""
    whole = _receiver(walker, value.value)
    getter = None if whole is None else records.getter(whole, value.name)
    if getter is None:
        return False
    calls.call_definition(walker, target, getter.definition, (value.value,), Apply(value.value, (), (), value.span))
    return True


def class_attribute(walker: Walker, atom: Atom, name: str) -> Objects:
    """The object that the class of an operand has under a name which is no field of the operand; none for all else."""
    whole = _receiver(walker, atom)
    form = None if whole is None else whole.form
    if form is None or name in form.names or not is_plain_class(form.cls):
        return NONE
    return walker.outside(f"{form.cls.__name__}.{name}", class_member(form.cls, name))


def set_item(walker: Walker, target: Var, value: IndexUpdate) -> bool:
    """`x[i] = v` of an object whose class has `__setitem__`; False for all else."""
    whole = value.value
    method = user_method(walker, whole, "__setitem__")
    changing = None if method is None else records.changing_method(method.value, "__setitem__")  # type: ignore[arg-type]
    if changing is None:
        return False
    first = value.items[0]
    key = first if len(value.items) == 1 and not isinstance(first, Slice) else Static(None)
    written = Apply(whole, (), (), value.span)
    calls.call_definition(walker, Var("nothing"), changing.definition, (whole, key, value.new), written)
    place = walker.place(whole)
    walker.bind(target, walker.objects(whole), None if place is None else place.slot)
    return True


def augment(walker: Walker, target: Var, value: Apply) -> None:
    """`p += v` where a class has `__iadd__`: what that gives, or the sum."""
    whole, operator, more = value.arguments
    assert isinstance(operator, Static)
    method = user_method(walker, whole, IN_PLACE[str(operator.value)])
    if method is None:
        effects.effect(walker, (target,), OpCall(str(operator.value), (whole, more), {}, value.span))
        return
    assert isinstance(method.value, Tuple)
    changing = records.changing_method(method.value, method.name)
    written = Apply(whole, (more,), (), value.span)
    if changing is not None:
        place = walker.place(whole)
        calls.call_definition(walker, target, changing.definition, (whole, more), written)
        if place is not None and walker.objects(target) == place.objects:  # it has returned its object
            walker.bind(target, place.objects, place.slot)
    else:
        calls.call_method(walker, target, whole, method, written)


def call(walker: Walker, target: Var, intrinsic: str, method: Method, value: Apply) -> None:
    """A call of a method: the object is the same one after it, and may have changed."""
    whole = value.arguments[0]
    written = Apply(whole, value.arguments[1:], value.keywords, value.span, (-1,))
    pair = target if intrinsic in records.TAKING else Var("changed")
    calls.call_changing(walker, pair, method, whole, written)
    if pair is not target:
        place = walker.place(whole)
        walker.bind(target, walker.objects(whole), None if place is None else place.slot)
