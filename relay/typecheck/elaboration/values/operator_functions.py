"""Operators as functions: what a program passes on or returns."""

from __future__ import annotations

from relay.errors import InternalError, Span
from relay.ir.expr import (
    Binding,
    Block,
    Exit,
    Expr,
    Function,
    LoopLabel,
    OpCall,
    Parameter,
    Static,
    Var,
)
from relay.ir.surface import Apply
from relay.operator import Operator
from relay.typecheck.elaboration.abstract_values import (
    Context,
    LocalFunction,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.library.overloads import arity


def operator_function(checker: Checker, operator: object, out: TypedBlockBuilder, span: Span | None) -> LocalFunction:
    """A function that applies an operator, or calls a function of a library."""
    if isinstance(operator, Operator):
        name, names = operator.name, list(operator.operands)
    else:
        name, names = getattr(operator, "__name__", "function"), [f"x{i + 1}" for i in range(arity(operator) or 0)]
    parameters = tuple(Var(n, None, span) for n in names)
    label, result = LoopLabel(name), Var("result", None, span)
    call: Expr = OpCall(name, parameters, {}, span)
    if not isinstance(operator, Operator):
        call = Apply(Static(operator, span), parameters, (), span)
    body = Block((Binding((result,), call),), Exit(label, (result,), span))
    function = Function(name, parameters, body, label, None, tuple(Parameter() for _ in parameters), None, span)

    class NoScope:
        def resolve(self, name: str) -> object:
            raise InternalError(f"operators have no free names, found {name}")

        def names(self) -> list[str]:
            return []

    return checker.function_here(out, function, {}, Context({}, {}, NoScope()))
