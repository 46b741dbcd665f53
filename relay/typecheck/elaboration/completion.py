"""The end of an elaboration: what is left is solved, number literals take their default dtypes, types become final.

What then still waits (`constraints.py`) is reported by the earliest place in the source, unless there are other
mistakes (`mistakes.py`).
"""

from __future__ import annotations

import attrs

from relay.errors import InternalError, TypeCheckError
from relay.ir.expr import Derivative, Function, Module
from relay.ir.sizes.facts import assume_facts
from relay.ir.types import FLOAT32, DimExpr, Kind, TupleType, Type, Unknown, prune, show
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.schemes import ambiguity, effect_inference
from relay.typecheck.unification import erase_forms, outer_unknowns, resolve, unknowns


def finish(checker: Checker) -> None:
    """Solve what is left, give literals their defaults, and fix the type of every variable.

    Raises the errors that were found, before their consequences are checked.
    """
    checker.solver.run()
    if checker.generic:
        _leave_to_calls(checker)
    checker.stop()
    if checker.left_open:
        ambiguity.refuse_results(checker)
        raise checker.left_open[0]
    if not checker.generic:
        _decide_the_rest(checker)
    checker.hints.close()
    with assume_facts(checker.hints.assumptions()):
        for finisher in checker.module.finishers:
            finisher()
    _finalize_variables(checker)
    for attributes in checker.module.pending_attributes:
        for name, value in attributes.items():
            attributes[name] = _resolve_attribute(value)


def _leave_to_calls(checker: Checker) -> None:
    """Solve what a scheme does not leave to its calls."""
    checker.force_waiting()
    checker.default_literals(weak=True)  # no call decides them
    checker.solve_at_any_rank()
    checker.refuse_assumptions()
    for pending in checker.pending:  # the effects of what a scheme does not look at
        if not pending.done and pending.unseen is not None:
            pending.unseen()
    effect_inference.settle(checker)
    for error in checker.impurities():
        checker.report(error)


def _decide_the_rest(checker: Checker) -> None:
    """Decide what is open in a program. Raises TypeCheckError for what nothing decides."""
    checker.force()
    ambiguity.refuse_results(checker)
    for error in checker.impurities():
        checker.report(error)
    checker.stop()
    waiting = [p for p in checker.pending if not p.done]
    if waiting:
        first = min(waiting, key=lambda p: (p.span.line, p.span.column) if p.span else (0, 0))
        raise TypeCheckError(f"the type of {first.text()} is not known here", first.span, help="annotate it")


def _finalize_variables(checker: Checker) -> None:
    """Let the types of all variables be final."""
    for var in checker.module.variables:
        if var.type is None:
            raise InternalError(f"{var!r} has no type")
        found = resolve(var.type)
        if not checker.generic:
            found = _close_data(checker, found)
        if not checker.generic and next(unknowns(found), None) is not None:
            raise TypeCheckError(
                f"the type of {var.name} is not determined: {show(found)}", var.span, help="annotate it"
            )
        var.type = checker.final_type(found)
    for var in checker.module.variables:
        assert var.type is not None
        var.type = erase_forms(var.type)


def _close_data(checker: Checker, type_: Type) -> Type:
    """Let arguments of data types that nothing determines, as the elements of a list that is always empty, be
    unit."""
    open_ = set(map(id, outer_unknowns(type_)))
    inside = [u for u in unknowns(type_) if id(u) not in open_]
    defaults: dict[Kind, object] = {Kind.Type: TupleType(()), Kind.BaseType: FLOAT32, Kind.Shape: (), Kind.Dim: 0}
    for unknown in inside:
        if unknown.binding is None:
            checker.solver.bind(unknown, defaults[unknown.kind])
    return resolve(type_) if inside else type_


def _resolve_attribute(value: object) -> object:
    """An attribute with the solver's variables replaced."""
    match value:
        case Unknown() | DimExpr():
            return prune(value)
        case tuple():
            return tuple(map(_resolve_attribute, value))
        case _:
            return value


def finished_module(checker: Checker, entry: str) -> Module:
    """The program, of which everything is known now."""
    functions: dict[str, Function | Derivative] = {}
    for name, instance in checker.module.globals.items():
        if instance.build is None:
            raise InternalError(f"{name} was not finished")
        function = instance.build()
        if isinstance(function, Function) and function.result is not None:
            function = attrs.evolve(function, result=erase_forms(function.result))  # type: ignore[misc]
        functions[name] = function
    return Module(functions, entry, checker.module.monomorphization.definitions, checker.hints.assumptions())
