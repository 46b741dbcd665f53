"""References: `relay.ref`, and reading and writing what they hold."""

from __future__ import annotations

from relay.errors import Span
from relay.ir.definition import is_optional
from relay.ir.expr import Binding, RefNew, RefRead, RefWrite
from relay.ir.types import Kind, RefType, StackType, TensorType, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import optionals
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.effects.effect_notes import READS, WRITES
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.restarts import ListGrows
from relay.typecheck.elaboration.values.expansion import expand


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
    if dynamic_lists.IN_REFERENCES not in checker.decisions.growing and dynamic_lists.lengths_differ(
        value.type, content
    ):
        raise ListGrows(dynamic_lists.IN_REFERENCES)
    checker.unify_at(value.type, content, span, "the new value of the reference")
    out.items.append(Binding((), RefWrite(typed.atom, value.atom, span)))


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
