"""Failures: what may fail in a function, and which changes of what it is given are lost then.

A function that is called gives its caller what it changes with its result. If it fails there is none, and a handler
around the call would see the objects as they were before: in Python, it sees what was changed before the error.
Everything may fail that is not known to be sure.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import attrs

from relay.ir.definition import Definition, is_optional
from relay.ir.dims import ANY, DataDependentDim
from relay.ir.expr import Assert, Atom, Constant, Expr, Global, OpCall, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.structure import is_plain_class, is_record_class
from relay.ir.surface import Apply, Attribute, Index, IndexUpdate, Slice, Unpack
from relay.ir.traverse import operands
from relay.ir.types import BaseType, DataType, Form, StackType, TensorType, prune
from relay.operator import Operator, lookup
from relay.operator.definition import Pattern
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Method,
    Number,
    PythonObject,
    Tuple,
)
from relay.typecheck.elaboration.aliasing.kinds import Kind
from relay.typecheck.elaboration.aliasing.objects import Change, Object, Objects
from relay.typecheck.elaboration.aliasing.walk import Walker
from relay.typecheck.elaboration.dynamic_lists import tables
from relay.typecheck.elaboration.library.known_callables import library_operator
from relay.typecheck.elaboration.values.bound_methods import method_function
from relay.typecheck.unification import resolve

_SURE_INTRINSICS = frozenset({
    "append", "augment", "changed_copy", "clear", "contains", "each", "error_text", "extend", "format", "generated",
    "given_back", "growing", "inherited", "insert", "is_none", "is_same", "keep", "leave_handler", "list", "print",
    "reverse", "set_field", "setdefault", "sort", "spread", "unset", "update",
})  # fmt: skip
"""The intrinsics that do not fail by themselves. A method of the user's is walked through."""

_SURE_FUNCTIONS: frozenset[object] = frozenset(
    {abs, all, any, bool, dict, enumerate, frozenset, isinstance, iter, len, list, print, reversed, set, sorted, str}
    | {sum, tuple, zip}
)

_SURE_METHODS = frozenset({
    "_asdict", "_replace", "add", "astype", "copy", "count", "discard", "endswith", "find", "get", "isalpha", "isdigit",
    "items", "join", "keys", "lower", "replace", "split", "startswith", "strip", "sum", "upper", "values",
})  # fmt: skip

_WHOLE = (int, round, math.floor, math.ceil, math.trunc)
"""The functions that give an integer, of every number but NaN and those that are too large."""


def note(walker: Walker, value: Expr) -> None:
    """Note that an expression may fail, with what has changed until then."""
    if _is_length(value):
        walker.lengths[value] = _shifts(walker.objects(value.arguments[0]))  # type: ignore[union-attr]
    if _may_fail(walker, value):
        walker.fail()


def _may_fail(walker: Walker, value: Expr) -> bool:
    if any(_may_be_none(walker, atom) for atom in operands(value)) and isinstance(value, OpCall | Index | Attribute):
        return True
    match value:
        case Assert():
            return True
        case Index(whole, items):
            if any(isinstance(i, Slice) for i in items):
                return False
            if _is_known(walker, whole) and all(isinstance(i, Static) for i in items):
                return False  # which is known before it runs
            return _is_new(walker, whole, items)  # type: ignore[arg-type]
        case IndexUpdate(whole, items):
            if any(isinstance(i, Slice) for i in items):
                return False
            if not _has_indices(walker, whole):
                _is_new(walker, whole, items)  # type: ignore[arg-type]  # from now on a key of the dict
                return False
            if _is_known(walker, whole) and all(isinstance(i, Static) for i in items):
                return False
            return _is_new(walker, whole, items)  # type: ignore[arg-type]
        case Unpack(whole):
            return isinstance(_meaning(walker, whole), DynamicValue) and walker.kind_of(whole) is Kind.LIST
        case OpCall(operator, arguments):
            return _operator_may_fail(walker, lookup(operator), arguments)
        case Apply():
            return _call_may_fail(walker, value)
        case _:
            return False


def _meaning(walker: Walker, atom: Atom) -> AbstractValue | None:
    return walker.meanings.value(atom) if isinstance(atom, Var) else None


def _may_be_none(walker: Walker, atom: Atom) -> bool:
    found = _meaning(walker, atom)
    type_ = prune(found.type) if isinstance(found, DynamicValue) else None
    return isinstance(type_, DataType) and is_optional(type_)


def _is_known(walker: Walker, whole: Atom) -> bool:
    """True for an array, and a tuple, list or dict whose items are known: elaboration has checked indices that are
    known, too."""
    found = _meaning(walker, whole)
    return walker.kind_of(whole) is Kind.ARRAY or (isinstance(found, Tuple) and not _is_table(found))


def _is_table(found: AbstractValue) -> bool:
    return tables.is_dict(found) or tables.is_set(found)


def _has_indices(walker: Walker, whole: Atom) -> bool:
    """True for what is assigned at indices that it has already: dicts get new keys."""
    found = _meaning(walker, whole)
    type_ = prune(found.type) if isinstance(found, DynamicValue) else None
    return _is_known(walker, whole) or isinstance(type_, StackType)


def _is_new(walker: Walker, whole: Atom, items: tuple[Atom, ...]) -> bool:
    """True unless the same index has been used before, in an object whose length has not changed."""
    objects = walker.objects(whole)
    sizes = sum(o.sizes for o in objects)
    if all(_is_counter(walker, i, objects) for i in items):
        return False
    moments = [(walker.moments.get(i, 0), walker.rounds_of.get(i, 0)) for i in items if isinstance(i, Var)]
    key = (objects, sizes, tuple(i.value if isinstance(i, Static) else i for i in items), *moments)
    try:
        is_new = key not in walker.indices
    except TypeError:
        return True
    walker.indices[key] = None
    return is_new or not objects


def _is_length(value: Expr) -> bool:
    """True for `len(xs)`."""
    return isinstance(value, Apply) and isinstance(value.function, Global) and value.function.name == "len"


def _shifts(objects: Objects) -> int:
    """The number of times that elements have been taken from lists."""
    return sum(one.shifts for one in objects)


def _is_counter(walker: Walker, index: Atom, objects: Objects) -> bool:
    """True for the variable of a loop over `range(len(x))`, `range(.., len(x))` or `x.shape[0]` of these objects."""
    bounds = walker.values.get(walker.iterables.get(index)) if isinstance(index, Var) else None  # type: ignore[arg-type]
    match bounds:
        case Apply(Global("range"), (end,) | (_, end)):
            length = walker.values.get(end) if isinstance(end, Var) else None
        case _:
            return False
    if isinstance(length, Apply) and _is_length(length):
        return walker.objects(length.arguments[0]) == objects and walker.lengths.get(length) == _shifts(objects)
    if isinstance(length, Index) and isinstance(length.value, Var):
        shape = walker.values.get(length.value)
        return isinstance(shape, Attribute) and shape.name == "shape" and walker.objects(shape.value) == objects
    return False


def _operator_may_fail(walker: Walker, operator: Operator, arguments: tuple[Atom, ...]) -> bool:
    """True unless an operator computes each element from those of its operands, whose sizes are known to fit."""
    if operator.pattern not in (Pattern.ELEMENTWISE, Pattern.BROADCAST):
        return True
    if len(arguments) > 1 and any(_has_computed_size(walker, a) for a in arguments):
        return True
    return bool(operator.requirements) and not _is_number(arguments[-1])


def _is_number(atom: Atom) -> bool:
    """True for a positive number: integers are divided by it, and taken to its power."""
    value = atom.value if isinstance(atom, Static | Constant) else None
    return isinstance(value, int | float) and value > 0


def _has_computed_size(walker: Walker, atom: Atom) -> bool:
    found = _meaning(walker, atom)
    type_ = resolve(found.type) if isinstance(found, DynamicValue) else None
    shape = type_.shape if isinstance(type_, TensorType) else ()
    return not isinstance(shape, tuple) or any(d is ANY or isinstance(d, DataDependentDim) for d in shape)


def _call_may_fail(walker: Walker, value: Apply) -> bool:
    match value.function:
        case Static(Intrinsic("pop")) if len(value.arguments) > 1:  # also `del d[k]`
            return len(value.arguments) == 2 and _is_new(walker, value.arguments[0], value.arguments[1:])
        case Static(Intrinsic(name)):
            sure = name in _SURE_INTRINSICS or _is_unpacked_structure(walker, name, value)
            return not sure or _has_key(value)
        case Static(found):
            return _function_may_fail(walker, found, value)
        case Global(name):
            return _function_may_fail(walker, walker.definition.scope.resolve(name), value)
    match _meaning(walker, value.function):
        case LocalFunction(inner):
            return inner.label not in walker.defined  # others are walked through
        case GlobalFunction(definition):
            return _function_may_fail(walker, definition, value)
        case PythonObject(found):
            return _function_may_fail(walker, found, value)
        case Method(name=name) as method:
            own = method_function(method)
            return name not in _SURE_METHODS and (own is None or walker.is_own(own.definition))
        case Tuple(form=Form()) | DynamicValue() as called:
            return method_function(Method(called, "__call__")) is None
        case _:
            return True


def _is_unpacked_structure(walker: Walker, intrinsic: str, value: Apply) -> bool:
    return intrinsic == "unpack" and isinstance(_meaning(walker, value.arguments[0]), Tuple)


def _has_key(value: Apply) -> bool:
    """True for a call with a function that tells the order: that may fail, too."""
    return any(name == "key" for name, _ in value.keywords)


def _function_may_fail(walker: Walker, found: object, value: Apply) -> bool:
    """True unless a function is walked through, or known to be sure."""
    count, keywords = len(value.arguments), dict(value.keywords)
    definition = found if isinstance(found, Definition) else getattr(found, "__relay__", None)
    if isinstance(definition, Definition) and not walker.is_own(definition):
        return False
    if isinstance(found, type) and (is_plain_class(found) or is_record_class(found)):
        return False
    if walker.undecorated(found) is not None or getattr(found, "__relay_builtin__", None) in ("ref", "replace"):
        return False
    if _has_key(value):
        return True
    if found in (min, max):
        return count < 2 and "default" not in keywords
    if found is next:
        return count < 2
    if found is range:
        return count > 2 and not isinstance(value.arguments[2], Static)
    if found is float or found in _WHOLE:
        return not all(_converts(walker, a, found is not float) for a in value.arguments)
    if isinstance(found, Hashable) and found in _SURE_FUNCTIONS:
        return "strict" in keywords
    operator = found if isinstance(found, Operator) else library_operator(found)
    return operator is None or _operator_may_fail(walker, operator, value.arguments)


def _converts(walker: Walker, atom: Atom, to_integer: bool) -> bool:
    """True for a number that is one of another dtype, too."""
    found = _meaning(walker, atom)
    if isinstance(atom, Static | Constant):
        return not isinstance(atom.value, str)
    if isinstance(found, Number):
        return True
    type_ = resolve(found.type) if isinstance(found, DynamicValue) else None
    if not isinstance(type_, TensorType):
        return False
    return not to_integer or (isinstance(type_.base, BaseType) and type_.base.dtype.kind in "iub")


def lose(walker: Walker, changed: Objects | set[Object], change: Change) -> None:
    """Note that changes of objects are lost if the call fails that makes them."""
    for one in changed:
        walker.failed[one] = change
        if walker.lost:
            walker.lost[-1][one] = attrs.evolve(change, is_lost=True)
