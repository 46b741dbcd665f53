"""The error for a tuple of gradients that is used as if it were one: `relay.grad(f)` differentiates with respect to all
parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.errors import Span, TypeMismatch
from relay.operator import lookup
from relay.operator.definition import Operator
from relay.typecheck.elaboration.abstract_values import AbstractValue, Tuple
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import operator_name
from relay.typecheck.elaboration.library.overloads import callable_name

_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "floor_divide", "power", "matmul", "mod", "negative"})


def require_operands(
    checker: Checker, name: str, operands: Sequence[AbstractValue], described: Sequence[str], span: Span | None
) -> None:
    """Raise TypeMismatch if an operator of arithmetic has such a tuple as operand."""
    if name in _ARITHMETIC:
        _require_single(checker, operator_name(lookup(name)), operands, described, span)


def require_arguments(
    checker: Checker, function: object, arguments: Sequence[AbstractValue], described: Sequence[str], span: Span | None
) -> None:
    """Raise TypeMismatch if a function of arrays has such a tuple as argument."""
    if _is_of_arrays(function):
        name = function.name if isinstance(function, Operator) else callable_name(function)
        _require_single(checker, name, arguments, described, span)


def _require_single(
    checker: Checker, used_by: str, operands: Sequence[AbstractValue], described: Sequence[str], span: Span | None
) -> None:
    """Raise TypeMismatch if an operand is the tuple of all gradients of a function of several parameters."""
    for position, operand in enumerate(operands):
        places = checker.gradients.get(operand) if isinstance(operand, Tuple) else None
        if places is not None:
            name = described[position] if position < len(described) else ""
            name = name.strip("`") if name.strip("`").isidentifier() else "g"
            raise TypeMismatch(
                f"{used_by} needs one gradient, found a tuple of {len(places)}, one for each parameter",
                span,
                help=f"did you mean `wrt={places[0]}`, or `{name}[0]`?",
            )


def _is_of_arrays(function: object) -> bool:
    """True for functions of arrays: operators, and NumPy's functions, except those that put several together."""
    if isinstance(function, Operator):
        return not function.variadic
    if function in (np.stack, np.concatenate, np.array, np.asarray, np.hstack, np.vstack):
        return False
    return isinstance(function, np.ufunc) or str(getattr(function, "__module__", "")).partition(".")[0] == "numpy"
