"""Shapes of operators' results: at once, or when what is open in the shapes of the operands is known."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.errors import Span, TypeMismatch
from relay.ir.axes import ResultNames
from relay.ir.types import Application, Kind, Shape, TensorType, Unknown, prune
from relay.operator import Operator, Relation, Undetermined
from relay.typecheck.elaboration.abstract_values import DynamicValue
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import operand_notes, operator_name
from relay.typecheck.elaboration.schemes import rank_polymorphism, stuck_terms
from relay.typecheck.elaboration.values import axis_names
from relay.typecheck.relations import broadcast, same_shape
from relay.typecheck.unification import Clash, flat_shape, shape_variable


@attrs.frozen(eq=False)
class ShapeInference:
    """The inference of one result's shape by a relation, from operands with these shapes."""

    checker: Checker
    operator: Operator
    relation: Relation
    values: Sequence[DynamicValue]
    shapes: Sequence[Shape]
    attributes: dict[str, object]
    described: Sequence[str]
    span: Span | None

    def result(self, base: object) -> TensorType:
        """The type of the result with this base type. Raises TypeMismatch and ShapeError, now or later."""
        waiting = _open(self.shapes)
        if not waiting:
            try:
                names = self._names()
                return TensorType(base, self._rule(), names)  # type: ignore[arg-type]
            except Undetermined as undetermined:
                waiting = undetermined.unknowns
        distinct = {flat_shape(s) for s in self.shapes if flat_shape(s)}
        if self.relation.shape in (broadcast, same_shape) and len(distinct) == 1 and not self.operator.variadic:
            return TensorType(base, distinct.pop(), axis_names.common_names(self.values))  # type: ignore[arg-type]
        return self._later(base)

    def _later(self, base: object) -> TensorType:
        """The type with variables for what is decided later."""
        checker = self.checker
        shape, axes = checker.solver.fresh_variable(Kind.Shape), checker.solver.fresh_variable(Kind.Shape)
        result = TensorType(base, (shape,), axes)  # type: ignore[arg-type]

        def application() -> Application:
            return stuck_terms.application_of(self.operator, self.relation.shape, self.shapes, self.attributes)

        def at_any_rank() -> bool:
            return self._solve_at_any_rank(shape)

        if checker.generic and at_any_rank():
            return result
        checker.defer(
            lambda: self._attempt(shape, axes),
            self.span,
            lambda: str(application()),
            result=shape,
            application=application if checker.generic else None,
            at_any_rank=at_any_rank if checker.generic else None,
        )
        return result

    def _names(self) -> ResultNames:
        operator, attributes = self.operator, self.attributes
        return axis_names.result_names(operator, self.values, attributes, self.described, self.span, self._rule)

    def _rule(self) -> tuple[object, ...]:
        return self._apply([flat_shape(s) for s in self.shapes])

    def _apply(self, shapes: Sequence[Shape]) -> Shape:
        return self.relation.apply(shapes, self.operator.variadic, self.attributes)

    def _attempt(self, shape: Unknown, axes: Unknown) -> Sequence[Unknown] | None:
        """Unify the result's variables with the shape and its names; returns what has to be known before."""
        checker = self.checker
        still = _open(self.shapes)
        if still:
            return still
        try:
            names = self._names()
            if names is not None and prune(axes) is axes:
                checker.solver.bind(axes, names)
            self._unify(shape)
        except Undetermined as undetermined:
            checker.question = undetermined.question
            checker.asked_of = lambda: operand_notes(self.values, self.described)
            return undetermined.unknowns
        return None

    def _unify(self, shape: Unknown) -> None:
        try:
            self.checker.solver.unify_shape((shape,), self._rule())  # type: ignore[arg-type]
        except TypeMismatch as error:
            self._add_operands(error)
            raise

    def _solve_at_any_rank(self, shape: Unknown) -> bool:
        try:
            return rank_polymorphism.solve_at_any_rank(self.checker, self.shapes, self._apply, shape)
        except Clash as clash:
            raise TypeMismatch(
                f"the result of {operator_name(self.operator)} is not what is needed: {clash.reason or 'other shapes'}",
                self.span,
                notes=operand_notes(self.values, self.described),
            ) from None
        except TypeMismatch as error:
            self._add_operands(error)
            raise

    def _add_operands(self, error: TypeMismatch) -> None:
        error.span = error.span or self.span
        error.notes = (*error.notes, *operand_notes(self.values, self.described))


def _open(shapes: Sequence[object]) -> tuple[Unknown, ...]:
    """The shape variables that keep these shapes from having a rank."""
    waiting = []
    for shape in shapes:
        flat = flat_shape(shape)  # type: ignore[arg-type]
        at = shape_variable(flat)
        if at is not None and isinstance(flat[at], Unknown):
            waiting.append(flat[at])
        elif at is not None:
            raise Undetermined
    return tuple(waiting)  # type: ignore[arg-type]
