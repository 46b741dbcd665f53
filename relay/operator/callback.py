"""Operators whose code is a Python function on NumPy arrays, which compiled programs call back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relay.errors import ExecutionError
from relay.ir.expr import Constant
from relay.ir.types import FunctionType, QuantifiedType, TensorType, Type
from relay.operator.definition import Operator
from relay.operator.facets import Batching
from relay.operator.registry import register_op
from relay.operator.relation import Relation


def pure_callback(
    *,
    relation: Relation | QuantifiedType | FunctionType | Callable[..., Type],
    name: str | None = None,
    gradient: Callable[..., Any] | None = None,
    batching: Batching | None = None,
) -> Callable[[Callable[..., Any]], Operator]:
    """Register an operator that runs a Python function on NumPy arrays, as a decorator of that function::

        @relay.pure_callback(relation=Relation("T:float -> T", same))
        def sorted_rows(x: Tensor) -> Tensor:
            "Each row in order. x: (T float, (n, m)) -> (T, (n, m))."
            return np.sort(x, axis=-1)

    The interpreter and compiled programs call it with arrays of the operands' types; it returns one array of exactly
    the result's type. It must be pure: the same result for the same arrays, and nothing else happens, since calls may
    be merged or dropped. All parameters are annotated `Tensor`. `gradient` and `batching` are as for `register_op`;
    without `batching` a batch of calls is a loop.

    Raises RegistrationError before anything is registered; a wrong result raises ExecutionError at the call.
    """

    def decorate(function: Callable[..., Any]) -> Operator:
        def external(type_: FunctionType) -> Callable[..., None]:
            assert isinstance(type_.result, TensorType)
            result = type_.result

            def run(*buffers: np.ndarray) -> None:
                *operands, output = buffers
                output[...] = _checked_call(function, operator.name, operands, result)

            return run

        def reference(*operands: np.ndarray) -> np.ndarray:
            result = operator.infer([Constant(o).type for o in operands], {})
            assert isinstance(result, TensorType)
            return np.array(_checked_call(function, operator.name, [o.copy() for o in operands], result))

        reference.__name__ = name or function.__name__
        reference.__doc__ = function.__doc__
        reference.__module__ = function.__module__
        reference.__wrapped__ = function  # type: ignore[attr-defined]  # its signature is the operator's
        operator = register_op(
            relation=relation,
            name=reference.__name__,
            external=external,
            gradient=gradient,
            batching=batching if batching is not None else Batching(),
            no_gradient=None if gradient is not None else "it is a callback without one",
        )(reference)
        return operator

    return decorate


def _checked_call(function: Callable[..., Any], name: str, operands: Any, result: TensorType) -> np.ndarray:
    """The result of a callback. Raises ExecutionError if it is not of the type of the result."""
    found = np.asarray(function(*operands))
    if found.dtype != result.dtype or found.shape != result.dims:
        raise ExecutionError(f"the callback {name} returned {found.dtype} {found.shape}, its type says {result}")
    return found
