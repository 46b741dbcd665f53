"""Operators applied to arrays, and code traced from an operator's definition: its requirements and its gradient."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import attrs
import numpy as np

from relay.errors import ExecutionError, InternalError, RelayError
from relay.eval.values import fits
from relay.ir.dims import WIDEST_SIZE
from relay.ir.expr import Atom, Binding, Constant, Expr, MakeTuple, OpCall, Project, Var
from relay.ir.traverse import operands
from relay.ir.types import TensorType, TupleType, Type, base_of_dtype, prune, show
from relay.operator import Emitter, Operator, Value, lookup

_T = TypeVar("_T")
Apply: TypeAlias = Callable[[OpCall, Sequence[_T], Type | None], _T]
"""Applies an operator to values; the type is the result's, None if it is to be inferred."""


@attrs.frozen(eq=False)
class Code:
    """Straight-line code over tensors and tuples of them: `results` (None where there is none) of `bindings`, in
    terms of `parameters`. Values are numbered in the order in which they are made: parameters, constants, bindings."""

    parameters: tuple[Var, ...]
    bindings: tuple[Binding, ...]
    results: tuple[Atom | None, ...]
    _constants: list[Any] = attrs.field(init=False, factory=list)
    _plan: tuple[_Line, ...] = attrs.field(init=False)
    _places: tuple[int | None, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        atoms = [a for b in self.bindings for a in operands(b.value)] + [r for r in self.results if r is not None]
        constants = list(dict.fromkeys(a for a in atoms if isinstance(a, Constant)))
        targets = [b.targets[0] for b in self.bindings]
        place = {atom: i for i, atom in enumerate([*self.parameters, *constants, *targets])}
        self._constants.extend(c.value for c in constants)
        lines = (_Line(b.value, tuple(place[a] for a in operands(b.value)), b.targets[0].type) for b in self.bindings)
        object.__setattr__(self, "_plan", tuple(lines))
        object.__setattr__(self, "_places", tuple(None if r is None else place[r] for r in self.results))

    def evaluate(self, values: Sequence[Any], apply: Apply[Any]) -> list[Any]:
        """The results for these values, with every operator applied by `apply`."""
        made = [*values, *self._constants]
        for line in self._plan:
            expression = line.expression
            given = [made[place] for place in line.operands]
            if type(expression) is OpCall:
                made.append(apply(expression, given, line.type))
            elif type(expression) is Project:
                made.append(given[0][expression.index])
            elif type(expression) is MakeTuple:
                made.append(tuple(given))
            else:
                raise InternalError(f"{type(expression).__name__} in an operator's definition")
        return [None if place is None else made[place] for place in self._places]

    def eliminate_dead_code(self) -> Code:
        """The code without what no result needs."""
        used = {r for r in self.results if r is not None}
        kept = []
        for binding in reversed(self.bindings):
            if binding.targets[0] in used:
                used.update(operands(binding.value))
                kept.append(binding)
        return Code(self.parameters, tuple(reversed(kept)), self.results)


@attrs.frozen(slots=True, eq=False)
class _Line:
    """A binding of code, with the places of its operands."""

    expression: Expr
    operands: tuple[int, ...]
    type: Type | None


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


def operand_arguments(operator: Operator, given: Sequence[_T]) -> Sequence[Any]:
    """Operands as the operator's Python functions take them."""
    return (tuple(given),) if operator.variadic else given


class Operations:
    """Applies operators, and remembers what it found out about each call.

    With `checked`, a result of another shape than the one that the types promised is an ExecutionError.
    """

    def __init__(self, checked: bool = True) -> None:
        self.checked = checked
        self._operators: dict[OpCall, Operator] = {}
        self._prepared: dict[OpCall, tuple[Type | None, Callable[..., Any]]] = {}
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

    def is_collective(self, call: OpCall) -> bool:
        """True for a call whose result depends on all examples along an axis."""
        return self.operator(call).batching.collective

    def update(self, call: OpCall, operands: Sequence[np.ndarray]) -> np.ndarray:
        """The operator's value, made in the operand that it differs from in a part only (`Operator.in_place`).

        Raises ExecutionError at the call's span if the operands break a requirement.
        """
        operator = self.operator(call)
        assert operator.memory.in_place is not None and operator.memory.in_place.write is not None
        if operator.requirements:
            self._require(call, operator, operands)
        operator.memory.in_place.write(*operands, **call.attributes)
        return operands[operator.memory.in_place.operand]

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
            result = operator.reference(*operand_arguments(operator, operands), **call.attributes)
        except Exception as error:
            raise _failure(operator, call, error, type_) from error
        if isinstance(type_, TupleType):
            return tuple(self._typed_array(call, r, t) for r, t in zip(result, type_.items, strict=True))
        return self._typed_array(call, result, type_)

    def prepared_call(self, call: OpCall, type_: Type | None) -> Callable[..., Any]:
        """`apply` for one call and its result's type, as a function of the operands."""
        found = self._prepared.get(call)
        if found is None or found[0] is not type_:
            found = self._prepared[call] = type_, self._prepare(call, type_)
        return found[1]

    def _prepare(self, call: OpCall, type_: Type | None) -> Callable[..., Any]:
        operator = self.operator(call)
        if operator.requirements or operator.variadic or not isinstance(type_, TensorType):
            return lambda *operands: self.apply(call, operands, type_)
        tensor, dtype, shape, asarray = type_, type_.dtype, type_.shape, np.asarray
        reference = functools.partial(operator.reference, **call.attributes) if call.attributes else operator.reference

        def function(*operands: np.ndarray) -> np.ndarray:
            try:
                array = asarray(reference(*operands), dtype)
            except Exception as error:
                raise _failure(operator, call, error, type_) from error
            return array if array.shape == shape else self._typed_array(call, array, tensor)

        return function

    def _typed_array(self, call: OpCall, result: Any, type_: Type) -> np.ndarray:
        assert isinstance(type_, TensorType)
        array = np.asarray(result, type_.dtype)
        if array.shape == type_.shape:  # mostly
            return array
        if self.checked and not fits(array, type_):
            message = f"the reference of {call.operator} returned shape {array.shape}, its type says {type_}"
            raise _in_reference(message, call)
        return array

    def _require(self, call: OpCall, operator: Operator, operands: Sequence[np.ndarray]) -> None:
        key = (call, tuple(o.shape for o in operands))
        code = self._requirements.get(key)
        if code is None:

            def holds(*values: Value) -> list[Value | None]:
                return [r.holds(*operand_arguments(operator, values), **call.attributes) for r in operator.requirements]

            names = [f"x{i}" for i in range(len(operands))]
            code = self._requirements[key] = trace(holds, call, [type_of(o) for o in operands], names)
        conditions = code.evaluate(operands, self.apply)
        for requirement, condition in zip(operator.requirements, conditions, strict=True):
            if condition is not None and not condition:
                raise ExecutionError(requirement.message, call.span)


def _failure(operator: Operator, call: OpCall, error: Exception, type_: Type | None) -> RelayError:
    """The error that users see when an operator's reference fails."""
    if isinstance(error, RelayError):
        return error.with_span(call.span)
    for part in type_.items if isinstance(type_, TupleType) else (type_,):
        if isinstance(part, TensorType) and all(isinstance(dim, int) for dim in part.shape):
            size = math.prod(part.dims) * part.dtype.itemsize
            if isinstance(error, MemoryError) or size > WIDEST_SIZE:  # of which NumPy says several things
                message = f"there is not enough memory for {show(part)}, which takes {size} bytes"
                return ExecutionError(message, call.span)
    return _in_reference(f"{operator.name} failed: {error}", call)


def _in_reference(message: str, call: OpCall) -> ExecutionError:
    """The error of an operator's reference itself."""
    error = ExecutionError(message, call.span)
    error.failed_operator = call.operator
    return error
