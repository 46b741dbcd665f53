"""`for` over a data type that is a list: one constructor without fields, and one with an element and the rest."""

from __future__ import annotations

from relay.errors import Span
from relay.ir.definition import complete_definition
from relay.ir.expr import Binding, Dead, Exit, Loop, LoopLabel, Match, MatchArm, Next, Var
from relay.ir.surface import ForEach
from relay.ir.types import Constructor, DataType
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DeferredBinding,
    DynamicValue,
    Handler,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow.joins import rename
from relay.typecheck.elaboration.control_flow.loops import LoopState
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions.atoms import handed_entities
from relay.typecheck.elaboration.values import data
from relay.typecheck.elaboration.values.expansion import expand


def list_constructors(entity: AbstractValue) -> tuple[DataType, Constructor, Constructor] | None:
    """The type and the two constructors of a list; None for anything else."""
    type_ = data.data_type(entity)
    if type_ is None:
        return None
    definition = complete_definition(type_.definition)
    if len(definition.constructors) != 2:
        return None
    empty, more = sorted(definition.constructors, key=lambda c: len(c.fields))
    own = DataType(definition, definition.parameters)
    return (type_, empty, more) if not empty.fields and len(more.fields) == 2 and more.fields[1] == own else None


def elaborate_for_list(
    checker: Checker,
    context: Context,
    targets: tuple[Var, ...],
    node: ForEach,
    iterable: DynamicValue,
    out: TypedBlockBuilder,
) -> None:
    """A loop that carries the rest of the list."""
    found = list_constructors(iterable)
    assert found is not None
    type_, empty, more = found
    carried = LoopState(checker, context, out, node, handed_entities(context, node.initial))
    label, span = LoopLabel(node.label.name), node.span
    rest = checker.variable("rest", type_, span)
    element_type, tail_type = data.field_types(checker, type_, more)
    head = checker.variable(node.element.name, element_type, span)
    tail = checker.variable("tail", tail_type, span)
    inside, ended = TypedBlockBuilder(), TypedBlockBuilder()

    def on_next(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], at: Span | None) -> None:
        place.terminator = Next(label, (tail, *carried.fit(place, entities, at)), at)

    def on_exit(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], at: Span | None) -> None:
        place.terminator = Exit(label, carried.fit(place, entities, at), at)

    context.handlers[node.label] = Handler(label, on_next, on_exit, len(checker.frame.scopes))
    with checker.scope(inside):
        context.environment[node.element] = expand(checker, inside, DynamicValue(head, element_type), span)
        context.assign(node.parameters, carried.round_entities(inside))
        checker.engine.elaborate_block(checker, context, node.body, inside, None)
    results = [checker.variable(p.name, p.type or type_, p.span) for p in carried.parameters]
    renamed = dict(zip(carried.parameters, results, strict=True))

    def build() -> Loop:
        ended.terminator = Exit(label, tuple(carried.parameters), span)
        arms = (MatchArm(empty.name, (), ended.block()), MatchArm(more.name, (head, tail), inside.block()))
        body = TypedBlockBuilder([Binding((), Match(rest, arms, span))], Dead())
        return Loop(label, (rest, *carried.parameters), (iterable.atom, *carried.initial), body.block(), None, span)

    out.items.append(DeferredBinding(tuple(results), build))
    opened = [data_dependent.all_opened(checker, out, rename(e, renamed), span) for e in carried.entities]
    context.assign(targets, opened)
