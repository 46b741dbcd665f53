"""`try`: where errors lead to, and what is asked of them there."""

from __future__ import annotations

import numpy as np

from relay.errors import RelayError, Span
from relay.ir.dims import ANY
from relay.ir.expr import Assert, Atom, Attempt, Binding, CatchesError, Constant, Dead, EndAttempt, Rethrow, Var
from relay.ir.types import BOOL, INT32, TensorType, scalar
from relay.typecheck.elaboration.abstract_values import Context, DynamicValue, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions.atoms import atom_entity
from relay.typecheck.elaboration.restarts import ErrorsAreCaught

TYPES = (scalar(BOOL), scalar(INT32), TensorType(INT32, (ANY,)))
"""The types of what an `Attempt` gives: whether it has failed, the error, and its text as code points."""


def elaborate(
    checker: Checker,
    context: Context,
    targets: tuple[Var, ...],
    value: Attempt | EndAttempt | CatchesError | Rethrow,
    out: TypedBlockBuilder,
) -> None:
    """Write one of the parts of a `try`."""
    match value:
        case Attempt(span):
            if not checker.decisions.caught and not checker.generic:
                raise ErrorsAreCaught
            made = tuple(Var(t.name, type_, span) for t, type_ in zip(targets, TYPES, strict=True))
            out.items.append(Binding(made, value))
            context.assign(targets, [DynamicValue(v, type_) for v, type_ in zip(made, TYPES, strict=True)])
        case EndAttempt(failed, span):
            out.items.append(Binding((), EndAttempt(_value(context, failed), span)))
        case CatchesError(error, names, span):
            asked = CatchesError(_value(context, error), names, span)
            context.environment[targets[0]] = checker.bind(out, asked, scalar(BOOL), "caught", span)
        case Rethrow(error, span):
            checker.effect("assert", "may fail in an assertion", span)
            out.items.append(Binding((), Rethrow(_value(context, error), span)))


def fail(checker: Checker, out: TypedBlockBuilder, error: RelayError, span: Span | None) -> None:
    """Write an operation that fails wherever it runs as an error that may be caught, which ends the block."""
    place = checker.visible_span(error.span or span)
    checker.effect("assert", "may fail in an assertion", place)
    out.items.append(Binding((), Assert(Constant(np.array(False), place), error.at_run_time or error.message, place)))
    out.terminator = Dead()
    checker.may_have_ended = True


def _value(context: Context, atom: Atom) -> Var:
    entity = atom_entity(context, atom)
    assert isinstance(entity, DynamicValue) and isinstance(entity.atom, Var)
    return entity.atom
