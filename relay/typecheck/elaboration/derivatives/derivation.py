"""Types of derivatives of functions that are values, whose own types may not be known yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from relay.errors import DifferentiationError, Span, TypeCheckError
from relay.ir.derivative import gradient_type, list_field, output_type
from relay.ir.expr import Grad
from relay.ir.types import (
    NONE,
    FunctionType,
    RefType,
    StackType,
    TupleType,
    Type,
    Unknown,
    prune,
    show,
)
from relay.typecheck.elaboration.abstract_values import DerivativeFunction, LocalFunction
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.derivatives import gradient_types
from relay.typecheck.elaboration.derivatives.gradient_paths import check_parameters, explain
from relay.typecheck.unification import resolve, unknowns


@attrs.define
class Derivation:
    """The type of the derivative of a function, whose own type may not be known yet."""

    checker: Checker
    entity: DerivativeFunction
    node: Grad
    function: Type
    derivative: Type
    fixed: frozenset[int]
    span: Span | None
    is_foreseen: bool = False

    def attempt(self) -> Sequence[Unknown] | None:
        """Find the type of the derivative, or what it waits for."""
        self._foresee()
        waiting = [u for u in unknowns(self.function) if not _says_nothing(self.function, u, self.node.wrt)]
        if waiting:
            return waiting
        known = resolve(self.function)
        if not isinstance(known, FunctionType):
            raise TypeCheckError(
                f"only a function can be differentiated, found {show(known)}", self.span, help="write relay.grad(f)(x)"
            )
        checker, entity, wrt, span = self.checker, self.entity, self.node.wrt, self.node.span
        if wrt is not None:
            check_parameters(checker, entity.of, known, wrt, self.fixed, span)
        for position in range(len(known.parameters)) if wrt is None else wrt:
            if position < len(known.parameters):
                _require_gradient(checker, entity, known.parameters[position], span)
        try:
            found = gradient_type(known, self.node, checker.monomorphic_type, NONE)
            checker.unify_at(attrs.evolve(found, effects=known.effects), self.derivative, self.span, "the derivative")
        except DifferentiationError as error:
            raise explain(error, checker, entity.of, entity.grad.output).with_span(span) from None
        return None

    def _foresee(self) -> None:
        """Note what is known of the type before the function's own is known."""
        checker = self.checker
        if not self.is_foreseen and not checker.generic:
            foreseen = gradient_types.expected_type(checker, self.function, self.node)
            if foreseen is not None:
                self.is_foreseen = True
                checker.unify_at(foreseen, self.derivative, self.span, "the derivative")
        result = prune(self.function.result) if isinstance(self.function, FunctionType) else None
        if self.is_foreseen and isinstance(result, TupleType):
            gradient_types.unify_kept(checker, result, self.derivative, self.node, self.span)
        if isinstance(result, FunctionType):  # what it takes is perhaps never known
            try:
                output_type(result, self.entity.grad)
            except DifferentiationError as error:
                output = self.entity.grad.output
                raise explain(error, checker, self.entity.of, output).with_span(self.node.span) from None


def _require_gradient(checker: Checker, entity: DerivativeFunction, parameter: Type, span: Span | None) -> None:
    """Raise DifferentiationError for a parameter of a type that has no gradient."""
    if _holds(parameter, StackType):
        raise DifferentiationError(
            f"there is no gradient with respect to a dynamic list, {show(parameter)}",
            span,
            help="name the other parameters, `wrt=..`; take the gradient of what its elements are made of",
        )
    listed = list_field(parameter, checker.monomorphic_type)
    if listed is not None:
        raise DifferentiationError(
            f"there is no gradient with respect to data with a dynamic list of floats, {show(parameter)}: the"
            f" field {listed[1]} of {listed[0]}",
            span,
            help="name the other parameters, `wrt=..`; or make the field a relay.List, which has a gradient",
        )
    partial = isinstance(entity.of, LocalFunction) and entity.of.partial
    if not partial and _holds(parameter, RefType):
        raise DifferentiationError(
            f"there is no gradient with respect to a reference, {show(parameter)}",
            span,
            help="name the other parameters, `wrt=..`; for the gradient of its content pass `r.value`",
        )


def _says_nothing(type_: Type, unknown: Unknown, wrt: Collection[int] | None) -> bool:
    """True if a variable of a function's type is the dtype of an integer that is not differentiated."""
    if not unknown.weak or wrt is None or not isinstance(type_, FunctionType):
        return False
    by = [p for i, p in enumerate(type_.parameters) if i in wrt]
    return all(u is not unknown for u in unknowns((*by, type_.result)))


def _holds(type_: Type, kind: type[StackType] | type[RefType]) -> bool:
    """True if values of a type contain, in tuples, a dynamic list, or a reference."""
    known = prune(type_)
    if isinstance(known, TupleType):
        return any(_holds(item, kind) for item in known.items)
    return isinstance(known, kind)
