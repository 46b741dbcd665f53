"""Parameters that are polymorphic functions: `def f(g: Forall[[A], Fn[[A], A]], x, y): return g(x), g(y)`.

The argument of such a parameter specializes the function that takes it, so each use of it has an instance of its own. A
call checks that the argument is as polymorphic as declared: its body is elaborated once, with variables for the
quantified ones that are bound to nothing. The result is dropped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from relay.errors import Label, RelayError, Span, TypeCheckError, TypeMismatch
from relay.ir.definition import Definition
from relay.ir.effects import Effects
from relay.ir.expr import Var
from relay.ir.types import FunctionType, Kind, QuantifiedType, TypeId, Unknown, show
from relay.operator.relation import substitute
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DependsOnPoison,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    PythonObject,
    TypedBlockBuilder,
    local_function,
    surface_function,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.constraints import DeferredConstraint
from relay.typecheck.elaboration.library.overloads import is_function
from relay.typecheck.elaboration.values.operator_functions import operator_function
from relay.typecheck.type_differences import name_unknowns
from relay.typecheck.unification import unknowns


def is_polymorphic(parameter: Var) -> bool:
    """True if a parameter is annotated as a polymorphic function."""
    return isinstance(parameter.type, QuantifiedType)


def at_fresh_types(checker: Checker, type_: QuantifiedType) -> FunctionType:
    """The type of a polymorphic function for one use."""
    found = substitute(type_.body, {i: _fresh_variable(checker, i) for i in type_.identifiers})
    assert isinstance(found, FunctionType)
    return found


def _fresh_variable(checker: Checker, identifier: TypeId) -> object:
    unknown = checker.solver.fresh_variable(identifier.kind)
    return (unknown,) if identifier.kind is Kind.Shape else unknown


def check_polymorphic_argument(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, parameter: Var, function: str, span: Span | None
) -> GlobalFunction | LocalFunction:
    """The argument for a parameter that is polymorphic.

    Raises TypeMismatch if it is not a function, or has the declared type for some of its variables only.
    """

    declared = parameter.type
    assert isinstance(declared, QuantifiedType)
    what = f"argument {parameter.name} of {function}"
    labels = (Label(parameter.span, f"declared as {show(declared)}"),) if parameter.span is not None else ()
    if isinstance(entity, PythonObject) and is_function(entity.value):
        entity = operator_function(checker, entity.value, out, span)
    if not isinstance(entity, GlobalFunction | LocalFunction):
        if isinstance(entity, DynamicValue):
            name_unknowns(entity.type)
        found = show(entity.type) if isinstance(entity, DynamicValue) else "a number or object"
        found = "a derivative" if isinstance(entity, DerivativeFunction) else found
        raise TypeMismatch(f"{what} must be {show(declared)}, found {found}", span, labels=labels)
    bound: dict[TypeId, object] = {}
    for identifier in declared.identifiers:
        rigid: object = Unknown(identifier.kind, identifier.name, rigid=True)
        if identifier.kind is Kind.Dim:
            rigid = TypeId(identifier.name, Kind.Dim)
        bound[identifier] = (rigid,) if identifier.kind is Kind.Shape else rigid
    wanted = substitute(declared.body, bound)
    assert isinstance(wanted, FunctionType)
    mistake = _mistake(checker, entity, wanted, span)
    if mistake is not None:
        where = (Label(mistake.span, "here"),) if mistake.span is not None and mistake.span != span else ()
        message = f"{what} must be {show(declared)}, and is not: {mistake.message}"
        raise TypeMismatch(message, span, labels=(*where, *labels), notes=mistake.notes)
    return entity


def _mistake(
    checker: Checker, entity: GlobalFunction | LocalFunction, wanted: FunctionType, span: Span | None
) -> RelayError | None:
    """The mistake that keeps a function from having a type whose variables are bound to nothing."""
    function = surface_function(entity)
    if len(function.parameters) != len(wanted.parameters):
        count, found = len(wanted.parameters), len(function.parameters)
        return TypeCheckError(f"it has {found} parameter{'s' * (found != 1)}, not {count}", function.span)
    probe = entity if isinstance(entity, GlobalFunction) else attrs.evolve(entity, slot=TypedBlockBuilder())
    errors, pending, assumed = len(checker.errors), len(checker.pending), len(checker.hints.assumed)
    with discarded_elaboration(checker):
        try:
            values = [
                DynamicValue(checker.variable(p.name, t, p.span), t)
                for p, t in zip(function.parameters, wanted.parameters, strict=True)
            ]
            instance = checker.engine.instantiate(checker, probe, values, values, span)
            checker.unify_at(instance.result, wanted.result, function.span, f"the result of {function.name}")
            checker.solver.run()
        except DependsOnPoison:
            pass
        except RelayError as error:
            return error
        if len(checker.errors) > errors:
            return checker.errors[errors]
        waiting = next((p for p in checker.pending[pending:] if not p.done and _is_refuted(p)), None)
        if waiting is not None:
            return TypeCheckError(f"it depends on {waiting.text()}", waiting.span)
        if len(checker.hints.assumed) > assumed:
            return TypeCheckError(f"it needs {checker.hints.assumed[assumed]}", function.span)
    return None


def _is_refuted(pending: DeferredConstraint) -> bool:
    """True if a constraint waits for quantified variables only, which will never be bound."""
    application = None if pending.application is None else pending.application()
    return application is None or all(u.rigid for part in application.arguments for u in unknowns(part))


@contextlib.contextmanager
def discarded_elaboration(checker: Checker) -> Iterator[None]:
    """While something is elaborated of which only the mistakes matter, as for all sizes."""
    lists: Sequence[list[Any]] = (
        checker.pending, checker.module.variables, checker.module.finishers, checker.module.pending_attributes,
        checker.errors,
        checker.scheme.opened, checker.solver.literal_bases, checker.solver.conversions, checker.hints.assumed,
        checker.pure, checker.scheme.unseen, checker.used_early,
    )  # fmt: skip
    lengths = [len(items) for items in lists]
    instances, functions = dict(checker.module.instances), dict(checker.module.globals)
    failures, generic, is_partial = checker.failures, checker.generic, checker.is_partial
    checker.generic = True
    checker.hints.generic, was_generic = True, checker.hints.generic
    try:
        with checker.effects_of(Effects()):
            yield
    finally:
        for items, length in zip(lists, lengths, strict=True):
            del items[length:]
        checker.module.instances, checker.module.globals = instances, functions
        checker.failures, checker.generic, checker.is_partial = failures, generic, is_partial
        checker.hints.generic = was_generic


def localize_callee(
    checker: Checker, out: TypedBlockBuilder, callee: GlobalFunction | LocalFunction, entities: Sequence[AbstractValue]
) -> GlobalFunction | LocalFunction:
    """The function that is called with polymorphic arguments. Those that see variables of the caller make it a function
    inside of the caller, the same one for calls of itself."""
    local = any(local_function(e) is not None for e in entities)
    if not local or isinstance(callee, LocalFunction):
        return callee
    for instance in reversed(checker.frame.active):
        if isinstance(instance.code, LocalFunction) and instance.code.function is callee.definition.function:
            return instance.code
    definition = callee.definition
    context = Context({}, {}, definition.scope)
    return checker.function_here(out, definition.function, {}, context)


def require_right(checker: Checker, definition: Definition) -> None:
    """Check, once in a program, that a function uses its polymorphic parameters as they are declared."""
    if definition not in checker.right:
        checker.right.add(definition)
        checker.engine.elaborate_scheme(checker.engine, definition)
