"""Relations of operators at work: base types unify as the signature says, and the user converts what does not fit; the
shape of the result follows at once, or when what is open in the shapes of the operands is known."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.axes import ResultNames
from relay.ir.types import BOOL, Application, BaseClass, BaseType, Kind, Shape, TensorType, Unknown, prune
from relay.operator import Operator, Relation, Undetermined
from relay.operator.relation import BaseToken, class_names
from relay.typecheck.elaboration.abstract_values import (
    DynamicValue,
    Number,
    Text,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.constraints import default_of
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of, operand_notes, operator_name
from relay.typecheck.elaboration.schemes import rank_polymorphism, stuck_terms
from relay.typecheck.elaboration.values import axis_names
from relay.typecheck.relations import broadcast, same_shape
from relay.typecheck.unification import Clash, flat_shape, shape_variable

_INTEGER_DIVISION = "use // for integer division, or convert: float(x), x.astype(...)"


def refuse_float(operator: Operator, number: Number, base: BaseType, span: Span | None, notes: tuple[str, ...]) -> None:
    raise TypeMismatch(
        f"{operator_name(operator)} of {base} and the float {number.specialize()}: there is no implicit conversion",
        span,
        notes=notes,
        help="convert the tensor: x.astype(relay.Float32)",
    )


def unify_token(
    checker: Checker,
    operator: Operator,
    token: BaseToken,
    base: object,
    bound: dict[str, object],
    position: int,
    described: Sequence[str] = (),
) -> None:
    if not checker.solver.restrict(base, token.classes):
        assert token.classes is not None
        found = prune(base)  # type: ignore[arg-type]
        if operator.name == "divide":
            raise TypeMismatch(
                f"`/` needs floats, found {found}",
                help=_INTEGER_DIVISION,
            )
        raise TypeMismatch(
            f"{operator_name(operator)} needs {class_names(token.classes)}, found {found}", help=_cast(token, found)
        )
    if token.is_variable:
        first = bound.setdefault(token.text, base)
        expected: object = first
    else:
        expected = BaseType(token.text)
    try:
        checker.solver.unify_base(base, expected)
    except Clash as clash:
        left, right = prune(expected), prune(base)  # type: ignore[arg-type]
        if clash.reason is not None:
            mixed = any(isinstance(side, BaseType) and side.base_class is BaseClass.INTEGER for side in (left, right))
            raise TypeMismatch(clash.reason, help="convert: x.astype(relay.Float32)" if mixed else None) from None
        if token.is_variable and isinstance(left, Unknown) and isinstance(right, BaseType) and not right.is_float:
            help = _INTEGER_DIVISION if operator.name == "divide" else _cast(token, right)
            raise TypeMismatch(f"{operator_name(operator)} needs floats, found {right}", help=help) from None
        if token.is_variable:
            raise TypeMismatch(
                f"{operator_name(operator)} needs operands of one dtype, found {left} and {right}",
                help=f"convert one: {_conversion(left, right, position, described)}",
            ) from None
        raise TypeMismatch(
            f"operand {position + 1} of {operator_name(operator)} must be {left}, found {right}",
            help="compare with something: `x > 0`" if left == BOOL else None,
        ) from None


def _cast(token: BaseToken, found: object) -> str | None:
    if found == BOOL:
        return "for the numbers 0 and 1 write x.astype(relay.Int32); booleans are combined by `&`, `|` and `^`"
    if token.classes == frozenset({BaseClass.FLOAT}):
        return "convert it: x.astype(relay.Float32)"
    if token.classes == frozenset({BaseClass.BOOL}):
        return "compare with something: x != 0"
    return None


def _conversion(first: object, second: object, position: int, described: Sequence[str]) -> str:
    """The advice for two operands of different dtypes: convert an integer rather than a float."""
    integers_second = not (isinstance(first, BaseType) and isinstance(second, BaseType)) or first.is_float
    place, target = (position, first) if integers_second else (0, second)
    text = described[place] if place < len(described) else "x"
    return f"{text if text.isidentifier() else f'({text})'}.astype({spelling(target)})"


def spelling(base: object) -> str:
    """The name of a dtype in programs."""
    name = str(base)
    for start, spelled in (("uint", "UInt"), ("bfloat", "BFloat")):
        if name.startswith(start):
            return f"relay.{spelled}{name[len(start) :]}"
    return f"relay.{name.capitalize()}"


def result_base(
    operator: Operator, token: BaseToken, bound: dict[str, object], attributes: dict[str, object]
) -> object:
    if token.text.startswith("@"):
        value = attributes[token.text[1:]]
        if not isinstance(value, BaseType | Unknown):
            found = kind_of(value) if isinstance(value, Text) else repr(value)
            raise TypeMismatch(f"the {token.text[1:]} of {operator.name} must be a dtype, found {found}")
        return value
    if token.is_variable and token.text not in bound:
        raise TypeMismatch(f"{operator_name(operator)} needs at least one tensor")
    return bound[token.text] if token.is_variable else BaseType(token.text)


def decide_dtype(checker: Checker, value: object, span: Span | None) -> object:
    """A dtype that is compared, which has to be known: that of numbers is the one that they have alone, from here on.
    What only ever holds integers stays as it is."""
    if not isinstance(value, Unknown) or value.kind is not Kind.BaseType:
        return value
    checker.solver.run()
    base = prune(value)
    if isinstance(base, Unknown) and base.literals and base.weak:
        return default_of(base)
    if isinstance(base, Unknown) and base.literals:
        checker.default_literal(base)
        base = prune(base)
    if isinstance(base, Unknown):
        raise TypeCheckError("the dtype is not known here", span, help="annotate the tensor, or give it a dtype")
    return base


# ---- shapes


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
