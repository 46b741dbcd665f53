"""Expansion of run-time values: tuples component by component, tensors with a dim for each `Any` in their types."""

from __future__ import annotations

from relay.errors import Span
from relay.ir.expr import (
    Project,
    Var,
)
from relay.ir.types import (
    TensorType,
    TupleType,
    prune,
)
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_shapes.data_dependent import open_sizes


def expand(checker: Checker, out: TypedBlockBuilder, typed: DynamicValue, span: Span | None) -> AbstractValue:
    """A value whose type is a known tuple, component by component; a tensor with a dim for each `Any` in its type;
    anything else is itself."""
    type_ = prune(typed.type)
    if isinstance(type_, TensorType):
        return open_sizes(checker, out, typed, span)
    if not isinstance(type_, TupleType):
        return typed
    items = []
    names = (type_.form.names if type_.form is not None else ()) or range(len(type_.items))
    for index, (field, item) in enumerate(zip(names, type_.items, strict=True)):
        name = f"{typed.atom.name}_{field}" if isinstance(typed.atom, Var) else "item"
        part = checker.bind(out, Project(typed.atom, index, span), item, name, span)
        items.append(expand(checker, out, part, span))
    return Tuple(tuple(items), type_.form)
