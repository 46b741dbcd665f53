"""Operands of the surface IR: what they mean, and how the user wrote them."""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.dims import Dim, resolve_dim
from relay.ir.expr import (
    Atom,
    Constant,
    Global,
    Static,
    Var,
)
from relay.ir.surface import Slice
from relay.ir.types import Kind, TypeId
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    SliceItem,
    size,
)
from relay.typecheck.elaboration.values.objects import object_entity, resolve_name


def handed_entities(context: Context, atoms: Sequence[Atom]) -> tuple[AbstractValue, ...]:
    """The values of the operands of control flow: of a `yield`, `next` or `exit`, or at the start of a loop. Some
    may be Failed."""
    return tuple(context.lookup(atom) if isinstance(atom, Var) else atom_entity(context, atom) for atom in atoms)


def atom_entity(context: Context, atom: Atom) -> AbstractValue:
    """The meaning of a surface atom. Raises DependsOnPoison if a mistake left it without a meaning."""
    match atom:
        case Var():
            return context.value(atom)
        case Constant():
            return DynamicValue(atom, atom.type)
        case Static(value, span):
            return object_entity(value, span)
        case Global(name, _, span):
            if (dim := _dim_variable(context, context.scope.resolve(name))) is not None:
                return size(dim, span)
            return resolve_name(context.scope, name, span, context.names())


def _dim_variable(context: Context, value: object) -> Dim | None:
    """The size that a variable of the annotations has here; None for everything else."""
    if not isinstance(value, TypeId) or value.kind is not Kind.Dim or value not in context.annotated:
        return None
    return resolve_dim(context.annotated[value])  # type: ignore[arg-type]


def describe(atom: Atom) -> str:
    """An operand as the user wrote it, for messages."""
    match atom:
        case Var(name, _, span) | Global(name, _, span):
            if span is not None and span.line == span.end_line:
                text = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
                if 0 < len(text) <= 30:
                    return text
            return name
        case Static(value):
            return repr(value)
        case Constant(value):
            return str(value) if value.ndim == 0 else "constant"


def index_items(context: Context, items: Sequence[Atom | Slice]) -> list[AbstractValue | SliceItem]:
    """The items of a subscript as entities."""

    def part(atom: Atom | None) -> AbstractValue | None:
        return None if atom is None else atom_entity(context, atom)

    return [
        SliceItem(part(i.start), part(i.stop), part(i.step)) if isinstance(i, Slice) else atom_entity(context, i)
        for i in items
    ]
