"""Function results as values: dynamic-length lists, and sizes that differ between return paths."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.errors import Span
from relay.ir.definition import is_optional
from relay.ir.expr import Function
from relay.ir.types import Kind, StackType, TupleType, Type, prune
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Tuple, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.control_flow import optionals
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import dtype_promotion
from relay.typecheck.elaboration.restarts import IsOptional, ListGrows
from relay.typecheck.elaboration.values.expansion import expand


def result_value(
    checker: Checker,
    out: TypedBlockBuilder,
    function: Function,
    instance: Instance,
    entity: AbstractValue,
    by_sizes: bool,
    span: Span | None,
) -> DynamicValue:
    """A result as a value. A list has a fixed length only if it has the same one wherever the function returns."""
    if function.result is not None:
        if not is_optional(instance.result):
            entity = optionals.content(checker, out, entity, "the result", span)
        entity = data_dependent.narrow_to_annotation(
            checker, out, entity, instance.result, f"the result of {function.name}", span
        )
    parts = _ResultParts(checker, out, function, by_sizes, span)
    fitting = parts.with_growing(entity, instance.result, ())
    if isinstance(fitting, DynamicValue) and isinstance(prune(fitting.type), TupleType):
        fitting = expand(checker, out, fitting, span)
    fitting = data_dependent.pack_sizes(checker, out, fitting, checker.escaping, instance.result, span)
    return parts.with_varying(fitting, instance.result, function.result, ())


@attrs.frozen
class _ResultParts:
    """The parts of a function's result, made to fit those of its other results."""

    checker: Checker
    out: TypedBlockBuilder
    function: Function
    by_sizes: bool
    span: Span | None

    def with_varying(
        self, entity: AbstractValue, expected: Type, written: Type | None, path: tuple[int, ...]
    ) -> DynamicValue:
        """A result as a value, with `Any` for the sizes in which the function's results differ: the data-dependent
        ones, those that the annotation leaves open, or all (`by_sizes`)."""
        checker, out, span, place = self.checker, self.out, self.span, (self.function.label, path)
        if isinstance(entity, Tuple):
            known = prune(expected)
            same = isinstance(known, TupleType) and len(known.items) == len(entity.items)
            types = known.items if same else [checker.solver.fresh_variable(Kind.Type) for _ in entity.items]  # type: ignore[union-attr]
            parts: Sequence[Type | None] = [None] * len(entity.items)
            if isinstance(written, TupleType) and len(written.items) == len(entity.items):
                parts = written.items
            items = [
                self.with_varying(item, type_, part, (*path, position))
                for position, (item, type_, part) in enumerate(zip(entity.items, types, parts, strict=True))
            ]
            entity = Tuple(tuple(items), entity.form)
        value = checker.materialize(out, entity, span)
        if (axes := checker.decisions.varying.get(place)) is not None:
            value = data_dependent.widen_axes(checker, out, value, axes, span)
        if written is None:
            value = dtype_promotion.at_place(checker, out, value, place, span)
            dtype_promotion.refuse_smaller(value.type, expected, place)
            value = dtype_promotion.fitted_value(checker, out, value, expected, span)
        may_vary = None if self.by_sizes else set(data_dependent.any_axes(written))
        data_dependent.refuse_sizes(checker, value.type, expected, place, may_vary)
        return value

    def with_growing(self, entity: AbstractValue, expected: Type | None, path: tuple[int, ...]) -> AbstractValue:
        """A result, or a part of one, with the lists that grow as such. `expected` is the type of earlier results
        there."""
        checker, out, span, place = self.checker, self.out, self.span, (self.function.label, path)
        if isinstance(entity, DynamicValue):
            entity = expand(checker, out, entity, span)
        known = None if expected is None else prune(expected)
        if place in checker.decisions.optional:
            entity = optionals.as_optional(checker, out, entity, optionals.optional_type(checker), span)
        elif known is not None and self.function.result is None and optionals.is_new_option(entity, known):
            raise IsOptional({place: None})
        if dynamic_lists.is_list(entity):
            if place in checker.decisions.growing or isinstance(known, StackType):
                return dynamic_lists.as_growing(checker, out, entity, span)
            was_fixed = isinstance(known, TupleType) and known.form is not None and known.form.cls is list
            if was_fixed and not (
                isinstance(entity, Tuple) and isinstance(known, TupleType) and len(entity.items) == len(known.items)
            ):
                raise ListGrows(place)
        if not isinstance(entity, Tuple):
            return entity
        types: Sequence[Type | None] = [None] * len(entity.items)
        if isinstance(known, TupleType) and len(known.items) == len(entity.items):
            types = known.items
        parts = enumerate(zip(entity.items, types, strict=True))
        return Tuple(tuple(self.with_growing(i, t, (*path, p)) for p, (i, t) in parts), entity.form)
