"""Failures: what may fail in a function, and which changes of what it is given are lost then.

A function that is called gives its caller what it changes with its result. If it fails there is none, and a handler
around the call would see the objects as they were before: in Python, it sees what was changed before the error.
"""

from __future__ import annotations

import attrs

from relay.ir.expr import Assert, Atom, Expr, Global, OpCall, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, Attribute, Index, IndexUpdate, Slice
from relay.typecheck.elaboration.abstract_values import Tuple
from relay.typecheck.elaboration.aliasing.kinds import Kind
from relay.typecheck.elaboration.aliasing.objects import Change, Object, Objects
from relay.typecheck.elaboration.aliasing.walk import Walker

_FAILING = ("pop", "popitem", "remove", "raise")
_DIVISIONS = ("floor_divide", "remainder", "mod", "divmod")


def note(walker: Walker, value: Expr) -> None:
    """Note that an expression may fail, with what has changed until then."""
    if _may_fail(walker, value):
        walker.fail()


def _may_fail(walker: Walker, value: Expr) -> bool:
    match value:
        case Assert():
            return True
        case Index(whole, items) | IndexUpdate(whole, items):
            if any(isinstance(i, Slice) for i in items) or walker.kind_of(whole) not in (Kind.LIST, Kind.ARRAY):
                return False
            is_known = walker.kind_of(whole) is Kind.ARRAY or _is_structure(walker, whole)
            if is_known and all(isinstance(i, Static) for i in items):
                return False  # which is known before it runs
            return _is_new(walker, whole, items)  # type: ignore[arg-type]
        case Apply(Static(Intrinsic(name))):
            return name in _FAILING
        case OpCall(operator):
            return operator in _DIVISIONS
        case _:
            return False


def _is_structure(walker: Walker, whole: Atom) -> bool:
    """True for a list or dict whose items are known."""
    return isinstance(whole, Var) and isinstance(walker.meanings.value(whole), Tuple)


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
    walker.indices.add(key)
    return is_new


def _is_counter(walker: Walker, index: Atom, objects: Objects) -> bool:
    """True for the variable of a loop over `range(len(x))`, `range(.., len(x))` or `x.shape[0]` of these objects."""
    bounds = walker.values.get(walker.iterables.get(index)) if isinstance(index, Var) else None  # type: ignore[arg-type]
    match bounds:
        case Apply(Global("range"), (end,) | (_, end)):
            length = walker.values.get(end) if isinstance(end, Var) else None
        case _:
            return False
    if isinstance(length, Apply) and isinstance(length.function, Global) and length.function.name == "len":
        return walker.objects(length.arguments[0]) == objects
    if isinstance(length, Index) and isinstance(length.value, Var):
        shape = walker.values.get(length.value)
        return isinstance(shape, Attribute) and shape.name == "shape" and walker.objects(shape.value) == objects
    return False


def lose(walker: Walker, changed: Objects | set[Object], change: Change) -> None:
    """Note that changes of objects are lost if the call fails that makes them."""
    for one in changed:
        walker.failed[one] = change
        if walker.lost:
            walker.lost[-1][one] = attrs.evolve(change, is_lost=True)
