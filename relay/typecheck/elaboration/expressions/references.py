"""References: `relay.ref`, and reading and writing what they hold."""

from __future__ import annotations

from relay.errors import Label, Span, TypeMismatch
from relay.ir.definition import is_optional
from relay.ir.expr import Atom, Binding, RefNew, RefRead, RefWrite, Var
from relay.ir.types import (
    DataType,
    Kind,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    Unknown,
    prune,
    show,
    show_shape,
)
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import optionals
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of
from relay.typecheck.elaboration.diagnostics.mistakes import display_type
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.effects.effect_notes import READS, WRITES
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.restarts import ListGrows
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import resolve

_NEW_VALUE = "the new value of the reference"


def read(checker: Checker, out: TypedBlockBuilder, reference: AbstractValue, span: Span | None) -> AbstractValue:
    """The content of a reference."""
    typed = checker.materialize(out, reference, span)
    checker.effect("ref", READS, span, typed.atom)
    content = checker.solver.fresh_variable(Kind.Type)
    checker.unify_at(typed.type, RefType(content), span, "the reference")
    return expand(checker, out, checker.bind(out, RefRead(typed.atom, span), content, "value", span), span)


def write(
    checker: Checker, out: TypedBlockBuilder, reference: AbstractValue, new: AbstractValue, span: Span | None
) -> None:
    """Replace the content of a reference."""
    typed = checker.materialize(out, reference, span)
    checker.effect("ref", WRITES, span, typed.atom)
    content = checker.solver.fresh_variable(Kind.Type)
    checker.unify_at(typed.type, RefType(content), span, "the reference")
    base = prune(content)
    if is_optional(base):  # type: ignore[arg-type]
        new = optionals.as_optional(checker, out, new, base, span)  # type: ignore[arg-type]
    if isinstance(base, StackType):
        new = dynamic_lists.as_growing(checker, out, new, span)
    if isinstance(new, Number) and isinstance(base, TensorType) and base.shape == ():
        value = checker.constant(out, new, base.base)
    else:
        new = data_dependent.pack_sizes(checker, out, new, None, base, span)  # type: ignore[arg-type]
        value = checker.materialize(out, weak_types.free_count(checker, out, new), span)
    dynamic_lists.refuse_keys(value.type, content)
    if dynamic_lists.IN_REFERENCES not in checker.decisions.growing and dynamic_lists.lengths_differ(
        value.type, content
    ):
        raise ListGrows(dynamic_lists.IN_REFERENCES)
    checker.unify_at(value.type, content, span, _NEW_VALUE)
    out.items.append(Binding((), RefWrite(typed.atom, value.atom, span)))


def note_use(checker: Checker, variable: Atom, use: str, span: Span | None) -> None:
    """Note where a variable that functions capture is read, or gets its first value: its type may follow from there."""
    if isinstance(variable, Var) and span is not None:
        checker.uses_of_variables.setdefault(variable.name, {}).setdefault(use, span)


def assign_variable(
    checker: Checker,
    out: TypedBlockBuilder,
    variable: Atom,
    reference: AbstractValue,
    new: AbstractValue,
    span: Span | None,
) -> None:
    """Assign a variable that functions capture, which is kept in a reference: it has one type.

    Raises TypeMismatch, with the places from which that follows.
    """
    try:
        write(checker, out, reference, new, span)
    except TypeMismatch as error:
        if not isinstance(variable, Var) or not error.message.startswith(_NEW_VALUE):
            raise
        content = prune(reference.type) if isinstance(reference, DynamicValue) else None
        held = resolve(content.content) if isinstance(content, RefType) else None
        raise _two_types(checker, variable.name, held, new, span, error) from None


def _two_types(
    checker: Checker, name: str, held: Type | None, new: AbstractValue, span: Span | None, error: TypeMismatch
) -> TypeMismatch:
    found = new.type if isinstance(new, DynamicValue) else None
    if isinstance(held, StackType) and isinstance(found, StackType) and name in checker.uses_of_variables:
        held, found = _content(held.element), _content(found.element)  # in a list: it is read before it has a value
    shown = kind_of(new) if found is None else _kind_text(found)
    earlier = "something else" if held is None else _kind_text(held)
    uses = checker.uses_of_variables.get(name, {})
    places = {use: at for use, at in uses.items() if span is None or at.source == span.source}
    labels = tuple(Label(place, f"{use}, as {earlier}") for use, place in places.items())
    return TypeMismatch(
        f"`{name}` becomes {shown} here, and is {earlier} elsewhere: a variable that functions read has one type",
        span,
        labels=labels,
        notes=error.notes,
        help=f"give the value of another type a name of its own, or pass `{name}` to the function as an argument",
    )


def _content(element: Type) -> Type:
    held = resolve(element)
    return resolve(held.content) if isinstance(held, RefType) else held


def _kind_text(type_: Type) -> str:
    match resolve(type_):
        case TensorType(base, ()):
            return "a number" if isinstance(base, Unknown) else f"a number of {base}"
        case TensorType(_, shape):
            is_known = isinstance(shape, tuple) and all(isinstance(dim, int) for dim in shape)
            return f"a tensor of the shape {show_shape(shape)}" if is_known else "a tensor"
        case DataType() if show(type_) == "String":
            return "a string"
        case StackType():
            return "a list"
        case TupleType(_, None):
            return "a tuple"
        case _:
            return display_type(type_)


def make_reference(
    checker: Checker, out: TypedBlockBuilder, content: AbstractValue, span: Span | None
) -> AbstractValue:
    """A new reference to this content."""
    if dynamic_lists.is_literal(content) and isinstance(content, Tuple) and not content.items:
        content = dynamic_lists.as_growing(checker, out, content, span)  # nothing else can be written to it
    return new_reference(checker, out, weak_types.free_count(checker, out, content), span)


def new_reference(checker: Checker, out: TypedBlockBuilder, content: AbstractValue, span: Span | None) -> DynamicValue:
    """A reference to a value, as a variable that functions capture is kept in one."""
    if dynamic_lists.IN_REFERENCES in checker.decisions.growing:
        content = dynamic_lists.growing_inside(checker, out, content, span)
    if optionals.is_none(content):
        content = optionals.new_cell(checker, out, span)
    typed = checker.materialize(out, data_dependent.pack_sizes(checker, out, content, None, None, span), span)
    made = checker.bind(out, RefNew(typed.atom, span), RefType(typed.type), "ref", span)
    checker.made_reference(made.atom)
    return made
