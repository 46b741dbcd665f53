"""Run-time values of the interpreter.

A tensor is always an `np.ndarray`, also at rank 0; a tuple is a tuple. While a function is differentiated, float
tensors may be wrapped in a `Box`, which holds their tape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs
import numpy as np

from relay.errors import InternalError
from relay.ir.dims import ANY, TypeId, evaluate
from relay.ir.expr import Function, Grad, Module, Var
from relay.ir.types import (
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    base_of_dtype,
    prune,
    show,
    show_shape,
)

if TYPE_CHECKING:
    from relay.eval.tape import Tape


@attrs.define(slots=True, eq=False, repr=False)
class Reference:
    """A mutable cell. `outside` is its Python object, if any; `shadows` are the cells behind it, by their slots,
    each with its sweep."""

    content: object
    outside: object = None
    shadows: Mapping[str, tuple[object, Reference]] = MappingProxyType({})

    def shadow(self, slot: str, sweep: object, initial: object) -> Reference:
        """The cell behind this one (`relay.ir.expr.Shadow`)."""
        found, cell = self.shadows.get(slot, (None, None))
        if found is not sweep or cell is None:
            cell = Reference(initial)
            self.shadows = {**self.shadows, slot: (sweep, cell)}
        return cell


def copy_prefix(buffer: list[object], length: int) -> list[object]:
    """The first elements of a buffer in one of their own: the only work on stacks that takes time in their length."""
    return buffer[:length]


@attrs.frozen(slots=True, eq=False, repr=False)
class Stack:
    """The first `length` elements of a buffer, which longer stacks may share."""

    buffer: list[object]
    length: int

    def push(self, value: object, alone: bool = False) -> Stack:
        """A stack with one more element. In place if nothing was pushed on this one before, or nothing else sees it,
        else by copying."""
        buffer = self.buffer
        if len(buffer) != self.length:
            buffer = self._owned_buffer(alone)
            del buffer[self.length :]
        buffer.append(value)
        return Stack(buffer, self.length + 1)

    def with_element(self, position: int, value: object, alone: bool = False) -> Stack:
        """A stack with another element at a position. In place if nothing else sees this one."""
        buffer = self._owned_buffer(alone)
        buffer[position] = value
        return Stack(buffer, self.length)

    def prefix(self, length: int, alone: bool = False) -> Stack:
        """The first elements. The others are dropped if nothing else sees them."""
        if alone:
            del self.buffer[length:]
        return Stack(self.buffer, length)

    def _owned_buffer(self, alone: bool) -> list[object]:
        """The elements in a buffer that can be changed."""
        return self.buffer if alone else copy_prefix(self.buffer, self.length)


@attrs.frozen(slots=True, eq=False, repr=False)
class Data:
    """A value of a data type."""

    definition: DataDefinition
    constructor: str
    fields: tuple[object, ...]


@attrs.frozen(slots=True, eq=False, repr=False)
class Closure:
    """A function value: the variables that it captured, the module that its global names belong to, and the sizes of
    the call where it was made."""

    function: Function
    environment: Mapping[Var, object]
    module: Module
    sizes: Mapping[TypeId, int] = MappingProxyType({})


@attrs.frozen(slots=True, eq=False, repr=False)
class GradientFunction:
    """The derivative of a function value, as a function value."""

    function: Closure | GradientFunction
    grad: Grad


@attrs.define(slots=True, eq=False, repr=False)  # not frozen: made for each operator, in a third of the time
class Box:
    """A float tensor on a tape. `value` is the tensor as the levels further out see it: an array or a box of theirs."""

    value: np.ndarray | Box
    tape: Tape
    position: int  # the entry of the tape that made it


def primal(value: np.ndarray | Box) -> np.ndarray:
    """The array inside any number of boxes."""
    while isinstance(value, Box):
        value = value.value
    return value


def is_float(array: np.ndarray) -> bool:
    """True if an array has a float dtype, and so a gradient."""
    if array.dtype.kind != "V":  # bfloat16 is not a type of NumPy's
        return array.dtype.kind == "f"
    base = base_of_dtype(array.dtype)
    return base is not None and base.is_float


def fits(value: object, type_: Type, sizes: Mapping[TypeId, int] | None = None) -> bool:
    """True if a value has a (known) type, in which symbolic dims have these sizes (None: whatever they are).
    Contents of references, stacks, data and functions are not checked."""
    if type(value) is np.ndarray and type(type_) is TensorType and value.shape == type_.shape:
        return bool(value.dtype == type_.dtype)  # most values
    if type(type_) is StackType:
        return isinstance(value, Stack)
    match prune(type_):
        case TensorType() as tensor:
            if isinstance(value, Box):
                value = primal(value)
            if not isinstance(value, np.ndarray) or value.dtype != tensor.dtype or value.ndim != tensor.rank:
                return False
            return all(d == n for d, n in zip(tensor.shape, value.shape, strict=True) if isinstance(d, int)) and (
                sizes is None
                or all(d is ANY or evaluate(d, sizes) == n for d, n in zip(tensor.shape, value.shape, strict=True))
            )
        case TupleType(items):
            return (
                isinstance(value, tuple)
                and len(value) == len(items)
                and all(fits(v, t, sizes) for v, t in zip(value, items, strict=True))
            )
        case FunctionType():
            return isinstance(value, Closure | GradientFunction)
        case RefType():
            return isinstance(value, Reference)
        case DataType(definition):
            return isinstance(value, Data) and value.definition is definition
        case _:
            raise InternalError(f"{type_} is not the type of a run-time value")


def describe(value: object) -> str:
    """The description of a value for messages: its type as far as it shows."""
    match value:
        case Box():
            return describe(primal(value))
        case np.ndarray():
            return f"Tensor[{value.dtype}, {show_shape(value.shape)}]"
        case tuple():
            inside = ", ".join(map(describe, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case Reference():
            return "a reference"
        case Stack(_, length):
            return f"a stack of {length}"
        case Data(definition, constructor):
            return f"{definition.name}.{constructor}"
        case Closure(function):
            return f"fn {function.name}" if function.result is None else f"fn {function.name}: {show(function.type)}"
        case GradientFunction(function):
            return f"grad({describe(function)})"
        case _:
            return f"the Python object {value!r}"


def map_tree(
    value: object, leaf: Callable[[object], object], data: Callable[[Data, tuple[object, ...]], object]
) -> object:
    """The value with `leaf` applied, in order, to all that is neither a tuple nor data, and `data` to data with its new
    fields. Data may be of any depth; shared parts are visited each time."""
    finished: list[object] = []
    pending: list[tuple[object, bool]] = [(value, False)]
    while pending:
        current, done = pending.pop()
        parts = current.fields if isinstance(current, Data) else current
        if not isinstance(parts, tuple):
            finished.append(leaf(current))
        elif not done:
            pending.append((current, True))
            pending += [(part, False) for part in reversed(parts)]
        else:
            count = len(parts)
            new = tuple(finished[len(finished) - count :])
            del finished[len(finished) - count :]
            finished.append(data(current, new) if isinstance(current, Data) else new)
    return finished[0]


def same_data(value: Data, fields: tuple[object, ...]) -> Data:
    """The value with other fields."""
    return Data(value.definition, value.constructor, fields)


def map_leaves(value: object, leaf: Callable[[object], object]) -> object:
    """The value with `leaf` applied to all that is neither a tuple nor data. Data may be of any depth; shared parts are
    visited once and stay shared."""
    done: dict[int, object] = {}
    pending = [value]
    while pending:
        current = pending[-1]
        if id(current) in done:
            pending.pop()
            continue
        if isinstance(current, tuple):
            parts = current
        elif isinstance(current, Data):
            parts = current.fields
        else:
            done[id(current)] = leaf(current)
            continue
        missing = [part for part in parts if id(part) not in done]
        if missing:
            pending += reversed(missing)
            continue
        new = tuple(done[id(part)] for part in parts)
        done[id(current)] = Data(current.definition, current.constructor, new) if isinstance(current, Data) else new
    return done[id(value)]
