"""Types of derivatives as far as they follow from structures, where dtypes of arguments are found later."""

from __future__ import annotations

from relay.errors import Span
from relay.ir.expr import Grad
from relay.ir.types import FunctionType, Kind, TupleType, Type, Unknown, prune
from relay.typecheck.elaboration.checker import Checker


def expected_type(checker: Checker, function: Type, grad: Grad) -> FunctionType | None:
    """The type of a derivative as far as it follows from the structures of the parameters, whose dtypes and sizes may
    be found later; None where they are not known. `g["w"]` needs no more."""
    if not isinstance(function, FunctionType):
        return None
    places = range(len(function.parameters)) if grad.wrt is None else grad.wrt
    wanted = [prune(function.parameters[p]) for p in places if 0 <= p < len(function.parameters)]
    if len(wanted) < len(places) or any(isinstance(t, Unknown) for t in wanted):
        return None

    def gradient(type_: Type) -> Type:
        known = prune(type_)
        if isinstance(known, TupleType):
            return TupleType(tuple(map(gradient, known.items)), known.form)
        return checker.solver.fresh_variable(Kind.Type)

    gradients = [gradient(function.parameters[p]) for p in places]
    if grad.has_aux and len(gradients) > 1:
        gradients = [TupleType(tuple(gradients))]
    kept = [checker.solver.fresh_variable(Kind.Type) for _ in grad.keeping]
    result: Type = gradients[0] if len(gradients) == 1 and not kept else TupleType((*gradients, *kept))
    if grad.with_value:
        result = TupleType((function.result, result))
    seed = (checker.solver.fresh_variable(Kind.Type),) if grad.seedable else ()
    return FunctionType((*function.parameters, *seed), result, (), function.effects)


def unify_kept(checker: Checker, result: TupleType, derivative: Type, grad: Grad, span: Span | None) -> None:
    """Let the components that a derivative hands on have the types that they have in a function's result, also where
    the dtype of an argument is found later."""
    known = prune(derivative)
    found = prune(known.result) if isinstance(known, FunctionType) else None
    if grad.with_value and isinstance(found, TupleType):
        found = prune(found.items[1])
    if not grad.keeping or not isinstance(found, TupleType):
        return
    for position, kept in zip(grad.keeping, found.items[-len(grad.keeping) :], strict=True):
        if -len(result.items) <= position < len(result.items):
            checker.unify_at(kept, result.items[position], span, "the derivative")
