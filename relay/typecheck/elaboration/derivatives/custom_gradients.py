"""Gradients that programs give their functions: typed where they are defined, at the types of each instance.

f: (A, ..) -> R      backward: (saved, CT(R)) -> CT(A), ..      forward: (A, ..) -> (R, saved), or saved = (A, ..)
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import DifferentiationError, TypeCheckError
from relay.ir.definition import DefinedGradient, Definition
from relay.ir.derivative import cotangent_type
from relay.ir.expr import CustomGradient
from relay.ir.types import NONE, Kind, TupleType, Type, Unknown
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    PythonObject,
)
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.derivatives.template_scopes import TemplateScope
from relay.typecheck.elaboration.expressions.attributes import static_value
from relay.typecheck.unification import resolve, unknowns


def define_gradient(
    checker: Checker,
    callee: GlobalFunction,
    gradient: DefinedGradient,
    instance: Instance,
    entities: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
) -> None:
    """Make the instances of a function's gradient, as soon as the types of its parameters and result are known.

    Raises TypeCheckError at the gradient where it does not fit the function.
    """
    code = gradient.backward.function
    of = GlobalFunction(gradient.backward)
    dynamic = [v is not None for v in values]
    if not any(dynamic):
        return  # nor is there anything to differentiate by
    if not all(dynamic):
        _refuse_others(callee, entities, dynamic)
        statics = {
            f"static{i}__": static_value(e, p.name, p.span)
            for i, (e, p) in enumerate(zip(entities, callee.definition.function.parameters, strict=True))
            if not dynamic[i]
        }
        of = GlobalFunction(
            Definition(
                gradient.adapted(dynamic), TemplateScope({"backward__": gradient.backward, "tuple": tuple, **statics})
            )
        )

    def attempt() -> Sequence[Unknown] | None:
        waiting = [u for t in (*instance.parameters, instance.result) for u in unknowns(t)]
        if waiting:
            return waiting
        types: list[Type] = [resolve(t) for t in instance.parameters]
        result = resolve(instance.result)
        saved: Type = TupleType(tuple(types))
        forward = None
        try:
            gradients = tuple(cotangent_type(t, checker.monomorphic_type, NONE) for t in types)
            seed = cotangent_type(result, checker.monomorphic_type, NONE)
        except DifferentiationError as error:
            raise error.with_span(code.span) from None
        if gradient.forward is not None:
            span = gradient.forward.function.span
            forward = checker.engine.instantiate(checker, GlobalFunction(gradient.forward), entities, values, span)
            instance.effects.include(forward.effects)  # derivatives have the effects of the function
            saved = checker.solver.fresh_variable(Kind.Type)
            checker.unify_at(forward.result, TupleType((result, saved)), span, "the result of `saving`")
        arguments = [DynamicValue(checker.variable(n, t, code.span), t) for n, t in (("saved", saved), ("seed", seed))]
        backward = checker.engine.instantiate(checker, of, arguments, arguments, code.span)
        instance.effects.include(backward.effects)
        expected = gradients[0] if len(gradients) == 1 else TupleType(gradients)
        help = "there is one cotangent for each parameter, None only for integers; zeros: relay.zeros_like(x)"
        checker.unify_at(backward.result, expected, code.span, f"the result of {code.name}", help=help)
        instance.rule = CustomGradient(backward.name, None if forward is None else forward.name)
        return None

    checker.defer(attempt, code.span, f"the parameters of {callee.definition.function.name}")


def _refuse_others(callee: GlobalFunction, entities: Sequence[AbstractValue], dynamic: Sequence[bool]) -> None:
    """Raise TypeCheckError for functions as arguments, for what they capture would get no gradient, and for strings and
    their like, which cannot be saved."""
    function = callee.definition.function
    kept = callee.definition.gradient is not None and callee.definition.gradient.forward is not None
    for parameter, entity, is_dynamic in zip(function.parameters, entities, dynamic, strict=True):
        if isinstance(entity, PythonObject) and entity.value is not None and not kept:
            raise TypeCheckError(
                f"{parameter.name} is a compile-time value, so the gradient of {function.name} cannot receive it",
                parameter.span,
                help="def_gradient(saving=..) takes the function's own parameters and keeps what the gradient needs",
            )
        if not is_dynamic and isinstance(entity, LocalFunction | DerivativeFunction):
            raise TypeCheckError(
                f"{function.name} has a gradient of its own, so {parameter.name} cannot be a function that captures",
                parameter.span,
                help="pass what it captures as arguments of their own",
            )
