"""Expansion of run-time values: tuples component by component, tensors with a dim for each `Any` in their types."""

from __future__ import annotations

from relay.errors import Span
from relay.ir.expr import (
    Project,
    Var,
)
from relay.ir.types import (
    NONE,
    TensorType,
    TupleType,
    Unknown,
    prune,
)
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DependsOnPoison,
    DynamicValue,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_shapes.data_dependent import open_sizes


def settle(checker: Checker, out: TypedBlockBuilder, value: DynamicValue, span: Span | None) -> AbstractValue:
    """As `expand`, where the program depends on what the value is: what decides its type is decided now, as at the end,
    for nothing that follows tells more of it. In a scheme the type may stay open.

    Raises DependsOnPoison where a mistake may be why the type is not known.
    """
    checker.solver.run()
    found = expand(checker, out, value, span)
    if not checker.generic and isinstance(found, DynamicValue) and isinstance(prune(found.type), Unknown):
        if checker.errors:
            raise DependsOnPoison
        checker.force()
        found = expand(checker, out, found, span)
        if checker.errors and isinstance(found, DynamicValue) and isinstance(prune(found.type), Unknown):
            raise DependsOnPoison  # of what was decided now
    return found


def expand(checker: Checker, out: TypedBlockBuilder, typed: DynamicValue, span: Span | None) -> AbstractValue:
    """A value whose type is a known tuple, component by component; a tensor with a dim for each `Any` in its type;
    anything else is itself."""
    type_ = prune(typed.type)
    if isinstance(type_, TensorType):
        return open_sizes(checker, out, typed, span)
    if not isinstance(type_, TupleType):
        return typed
    if type_ == NONE:
        return PythonObject(None)
    items = []
    names = (type_.form.names if type_.form is not None else ()) or range(len(type_.items))
    for index, (field, item) in enumerate(zip(names, type_.items, strict=True)):
        name = f"{typed.atom.name}_{field}" if isinstance(typed.atom, Var) else "item"
        part = checker.bind(out, Project(typed.atom, index, span), item, name, span)
        items.append(expand(checker, out, part, span))
    return Tuple(tuple(items), type_.form)
