"""Operators applied to arrays, and code traced from an operator's definition: its requirements and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import attrs
import numpy as np

from relay.errors import ExecutionError, InternalError, RelayError
from relay.eval.values import fits
from relay.ir.expr import Atom, Binding, Constant, MakeTuple, OpCall, Project, Var
from relay.ir.types import TensorType, TupleType, Type, base_of_dtype, prune
from relay.operator import Emitter, Operator, Value, lookup

_T = TypeVar("_T")
Apply: TypeAlias = Callable[[OpCall, Sequence[_T], Type | None], _T]
"""Applies an operator to values; the type is the result's, None if it is to be inferred."""


@attrs.frozen
class Code:
    """Straight-line code over tensors and tuples of them: `results` (None where there is none) of `bindings`, in terms
    of `parameters`."""

    parameters: tuple[Var, ...]
    bindings: tuple[Binding, ...]
    results: tuple[Atom | None, ...]

    def evaluate(self, values: Sequence[Any], apply: Apply[Any]) -> list[Any]:
        """The results for these values, with every operator applied by `apply`."""
        environment: dict[Var, Any] = dict(zip(self.parameters, values, strict=True))

        def atom(a: Atom) -> Any:
            match a:
                case Var():
                    return environment[a]
                case Constant(value):
                    return value
                case _:
                    raise InternalError(f"{a!r} in an operator's definition")

        for binding in self.bindings:
            (target,) = binding.targets
            match binding.value:
                case OpCall(_, arguments) as call:
                    environment[target] = apply(call, [atom(a) for a in arguments], target.type)
                case Project(whole, index):
                    environment[target] = atom(whole)[index]
                case MakeTuple(items):
                    environment[target] = tuple(map(atom, items))
                case other:
                    raise InternalError(f"{type(other).__name__} in an operator's definition")
        return [None if r is None else atom(r) for r in self.results]


def trace(
    function: Callable[..., Sequence[Value | None]], call: OpCall, types: Sequence[TensorType], names: Sequence[str]
) -> Code:
    """The code that `function` emits for values of these types."""
    emitter = Emitter(call.span)
    parameters = tuple(Var(name, type_) for name, type_ in zip(names, types, strict=True))
    results = function(*(emitter.value(p, p.type) for p in parameters))
    return Code(parameters, tuple(emitter.bindings), tuple(None if r is None else r.atom for r in results))


def type_of(array: np.ndarray) -> TensorType:
    """The type of an array."""
    base = base_of_dtype(array.dtype)
    if base is None:
        raise InternalError(f"an array of dtype {array.dtype}")
    return TensorType(base, array.shape)


def spread(operator: Operator, operands: Sequence[_T]) -> Sequence[Any]:
    """Operands as the operator's Python functions take them."""
    return (tuple(operands),) if operator.variadic else operands


class Operations:
    """Applies operators, and remembers what it found out about each call.

    With `checked`, a result of another shape than the one that the types promised is an ExecutionError.
    """

    def __init__(self, checked: bool = True) -> None:
        self.checked = checked
        self._operators: dict[OpCall, Operator] = {}
        self._requirements: dict[tuple[OpCall, tuple[tuple[int, ...], ...]], Code] = {}

    def operator(self, call: OpCall) -> Operator:
        """The operator of a call."""
        found = self._operators.get(call)
        if found is None:
            try:
                found = lookup(call.operator)
            except KeyError:
                raise InternalError(f"there is no operator named {call.operator!r}") from None
            self._operators[call] = found
        return found

    def update(self, call: OpCall, operands: Sequence[np.ndarray]) -> np.ndarray:
        """The operator's value, made in the operand that it differs from in a part only (`Operator.in_place`).

        Raises ExecutionError at the call's span if the operands break a requirement.
        """
        operator = self.operator(call)
        assert operator.in_place is not None and operator.in_place.write is not None
        if operator.requirements:
            self._require(call, operator, operands)
        operator.in_place.write(*operands, **call.attributes)
        return operands[operator.in_place.operand]

    def apply(self, call: OpCall, operands: Sequence[np.ndarray], type_: Type | None) -> Any:
        """The operator's value: an array, or a tuple of several.

        Raises ExecutionError at the call's span if the operands break a requirement.
        """
        operator = self.operator(call)
        if operator.requirements:
            self._require(call, operator, operands)
        if type_ is None:
            type_ = operator.infer([type_of(o) for o in operands], call.attributes)
        type_ = prune(type_)  # type: ignore[assignment]
        try:
            result = operator.reference(*spread(operator, operands), **call.attributes)
        except RelayError as error:
            raise error.at(call.span) from None
        except Exception as error:
            raise ExecutionError(f"{operator.name} failed: {error}", call.span) from error
        if isinstance(type_, TupleType):
            return tuple(self._typed(call, r, t) for r, t in zip(result, type_.items, strict=True))
        return self._typed(call, result, type_)

    def _typed(self, call: OpCall, result: Any, type_: Type) -> np.ndarray:
        assert isinstance(type_, TensorType)
        array = np.asarray(result, type_.dtype)
        if array.shape == type_.shape:  # mostly
            return array
        if self.checked and not fits(array, type_):
            message = f"the reference of {call.operator} returned shape {array.shape}, its type says {type_}"
            raise ExecutionError(message, call.span)
        return array

    def _require(self, call: OpCall, operator: Operator, operands: Sequence[np.ndarray]) -> None:
        key = (call, tuple(o.shape for o in operands))
        code = self._requirements.get(key)
        if code is None:

            def holds(*values: Value) -> list[Value | None]:
                return [r.holds(*spread(operator, values), **call.attributes) for r in operator.requirements]

            names = [f"x{i}" for i in range(len(operands))]
            code = self._requirements[key] = trace(holds, call, [type_of(o) for o in operands], names)
        conditions = code.evaluate(operands, self.apply)
        for requirement, condition in zip(operator.requirements, conditions, strict=True):
            if condition is not None and not condition:
                raise ExecutionError(requirement.message, call.span)
