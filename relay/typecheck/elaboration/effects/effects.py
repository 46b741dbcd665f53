"""Effect propagation between functions: through arguments, and into parameters that must be pure."""

from __future__ import annotations

import attrs

from relay.errors import Span
from relay.ir.effects import Effects, Purity
from relay.ir.expr import Function, Var
from relay.ir.types import DataType, FunctionType, RefType, StackType, TupleType, Type, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.effects.effect_notes import DRAWS, IMPURE, WRITES
from relay.typecheck.mapping import map_type


def declared_pure(entity: AbstractValue, parameter: Var, function: str, call: Span | None) -> AbstractValue:
    """A function as the argument of a parameter that may demand that it has no effects."""
    demands = isinstance(parameter.type, FunctionType) and parameter.type.effects == ()
    if not demands or not isinstance(entity, GlobalFunction):
        return entity
    what = f"argument {parameter.name} of {function}"
    return attrs.evolve(entity, pure=Purity(what, parameter.span, IMPURE, call=call))


def declared_purity(function: Function) -> Purity:
    """The demand of `@relay(pure=True)`."""
    return Purity(function.name, function.span, "leave `pure=True` out, or return what it would print")


def demand_purity(checker: Checker, callee: GlobalFunction | LocalFunction, effects: Effects) -> None:
    """Note that a function must have no effects, where that is required."""
    if callee.pure is not None:
        checker.pure.append((effects, callee.pure))


def evaluated_often(made: LocalFunction, of: AbstractValue, name: str, span: Span | None) -> None:
    """Demand of a template's function, which evaluates another one more than once, that this writes no references of
    others: how often it does must not matter."""
    if isinstance(of, DerivativeFunction):
        evaluated_often(made, of.of, name, span)
    elif isinstance(of, LocalFunction) and any(map(_is_reference, _transitive_captures(of))):
        made.pure = _writes_nothing(name, span)


def writing_nothing(of: AbstractValue, name: str, span: Span | None) -> AbstractValue:
    """The function that a template evaluates more than once: it must not write references of its arguments."""
    if isinstance(of, DerivativeFunction):
        return attrs.evolve(of, of=writing_nothing(of.of, name, span))
    if isinstance(of, GlobalFunction) and of.pure is None:
        return attrs.evolve(of, pure=_writes_nothing(name, span))
    return of


def _writes_nothing(name: str, span: Span | None) -> Purity:
    return Purity(
        f"the function that {name} evaluates many times",
        span,
        "let it return the new value instead of writing it, and take what it draws as an argument",
        only=(WRITES, DRAWS),
    )


def _transitive_captures(function: LocalFunction) -> list[AbstractValue]:
    """The variables that a function reads of the function around it, also through others."""
    found: list[AbstractValue] = []
    seen, pending = {id(function)}, [function]
    while pending:
        captured = pending.pop().environment.values()
        found += captured
        inner = [e for e in captured if isinstance(e, LocalFunction) and id(e) not in seen]
        seen.update(map(id, inner))
        pending += inner
    return found


def _is_reference(entity: AbstractValue) -> bool:
    return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), RefType)


def parameter_type(type_: Type) -> Type:
    """The type of an argument, as the called function sees it: its functions have the effects of those that are
    passed, in all calls."""

    def with_passed_effects(function: FunctionType) -> FunctionType:
        effects = Effects()
        if isinstance(function.effects, Effects):
            effects.include(function.effects)
        return attrs.evolve(function, effects=effects)

    return map_type(type_, function=with_passed_effects)


def flow(found: Type, expected: Type) -> None:
    """Let the functions in a type have the effects of those in an equal one, which is passed there."""
    pairs: list[tuple[Type, Type]] = [(found, expected)]
    while pairs:
        match tuple(map(prune, pairs.pop())):
            case FunctionType() as given, FunctionType() as taken:
                if isinstance(given.effects, Effects) and isinstance(taken.effects, Effects):
                    taken.effects.include(given.effects)
                pairs += [*zip(taken.parameters, given.parameters, strict=True), (given.result, taken.result)]
            case TupleType(items), TupleType(others):
                pairs += zip(items, others, strict=True)
            case (RefType(a), RefType(b)) | (StackType(a), StackType(b)):
                pairs += [(a, b), (b, a)]
            case DataType(_, a), DataType(_, b):
                pairs += [(x, y) for x, y in zip(a, b, strict=True) if isinstance(x, Type) and isinstance(y, Type)]
            case _:
                pass
