"""From Python's arguments to run-time values, and from results to what the caller gets.

An argument is an array, a number, a structure of them, a value of a data type, or something that specialises the
program: None, a string, a dtype, a function, the value of a static parameter. What it adds to a call's signature is
its `key`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from relay import exchange
from relay.array import Array
from relay.errors import Label, RelayError, TypeMismatch
from relay.eval.values import Data
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Function
from relay.ir.structure import build, fields_of, form_of
from relay.ir.types import BaseType, DataType, TensorType, TupleType, Type, base_of_dtype
from relay.operator import Operator
from relay.typecheck.elaboration import Argument, Fixed, Scalar, Structure
from relay.typecheck.unification import holds


def only_arrays(arguments: Sequence[Any]) -> tuple[list[Any], object]:
    """The arguments as NumPy arrays, and their dtypes and shapes; None for these if there is anything but arrays."""
    arrays: list[Any] = []
    signature: list[object] = []
    for argument in arguments:
        kind = type(argument)
        if kind is Array:
            argument = argument.numpy()
        elif kind is not np.ndarray:
            return arrays, None
        arrays.append(argument)
        signature += argument.dtype, argument.shape
    return arrays, tuple(signature)


@attrs.frozen
class Described:
    """An argument to the compiler: its part of the signature, what elaboration knows of it, and the value."""

    key: object
    argument: Argument
    value: Any


def describe(value: Any, function: Function, position: int) -> Described:
    """What an argument is to the compiler. Raises TypeMismatch at the parameter for what Relay cannot take."""
    if isinstance(value, Array):
        value = value.numpy()
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        base = base_of_dtype(array.dtype)
        if base is None:
            raise _bad_argument(function, position, f"has dtype {array.dtype}, which Relay does not have")
        return Described((base.name, array.shape), TensorType(base, array.shape), array)
    if isinstance(value, bool):
        return Described(("bool", ()), TensorType(BaseType("bool"), ()), np.asarray(value))
    if isinstance(value, int | float):
        return Described(type(value), Scalar(value), value)
    if exchange.is_value(value):
        return _describe_data(value, function, position)
    form = form_of(value)
    if form is not None or isinstance(value, tuple):
        parts = [describe(v, function, position) for v in (value if form is None else fields_of(value, form))]
        if any(isinstance(p.argument, Fixed) for p in parts):
            raise _bad_argument(function, position, "holds something that is no array or number")
        items, values = tuple(p.argument for p in parts), tuple(p.value for p in parts)
        structure = ("tuple", form, *(p.key for p in parts))
        return Described(structure, items if form is None else Structure(form, items), values)
    if isinstance(value, Fixed):
        inner = value.value
        key = (type(inner).__name__, inner) if isinstance(inner, int | float | str | None) else id(inner)
        return Described(("fixed", key), value, None)
    if value is None or isinstance(value, str | BaseType):
        return Described(("fixed", value), Fixed(value), None)
    if _is_function(value):
        return Described(("function", id(value)), Fixed(value), value)
    if hasattr(value, "__dlpack__"):
        return describe(np.from_dlpack(value), function, position)
    help = "decorate it with @relay" if callable(value) else None
    raise _bad_argument(function, position, f"is a Python {type(value).__name__}, which Relay cannot take", help)


def _describe_data(value: Any, function: Function, position: int) -> Described:
    """What a value of a data type is to the compiler."""

    def part(field: Any) -> tuple[object, Argument]:
        described = describe(field, function, position)
        if isinstance(described.argument, Fixed) and described.argument.value is not None:
            raise _bad_argument(function, position, "holds something that is no array or number")
        return described.key, () if isinstance(described.argument, Fixed) else described.argument

    key, argument = exchange.describe(value, part)
    return Described(key, argument, value)


def describe_static(value: Any, function: Function, position: int) -> Described:
    """What the argument of a static parameter is to the compiler: a Python value that specialises the program."""
    fixed = value if isinstance(value, Fixed) else Fixed(_python_value(value))
    value = fixed.value
    key: object = ("default",) if fixed.default else _static_key(value)
    if key is None:
        text = (
            "is static, so it must be a Python number, string, None, dtype, function, or a tuple of them;"
            f" found {type(value).__name__}"
        )
        raise _bad_argument(function, position, text)
    return Described(("static", key), fixed, None)


def _python_value(value: Any) -> Any:
    """A static argument with NumPy's numbers as Python's, and lists as tuples."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray | Array) and value.ndim == 0):
        return value.item()
    return tuple(map(_python_value, value)) if isinstance(value, list | tuple) else value


def _static_key(value: Any) -> object:
    if isinstance(value, tuple):
        parts = [_static_key(v) for v in value]
        return None if None in parts else tuple(parts)
    if value is None or isinstance(value, int | float | str | BaseType | np.dtype | type):
        return (type(value).__name__, value)
    return ("function", id(value)) if _is_function(value) else None


def _bad_argument(function: Function, position: int, text: str, help: str | None = None) -> RelayError:
    if position >= len(function.parameters):
        return TypeMismatch(f"the cotangent of {function.name} {text}", function.span, help=help)
    parameter = function.parameters[position]
    labels = (Label(function.span, ""),) if parameter.span is None and function.span is not None else ()
    return TypeMismatch(
        f"argument {parameter.name} of {function.name} {text}", parameter.span, labels=labels, help=help
    )


def run_time_value(value: Any, type_: Type, name: str) -> Any:
    """An argument as the run-time value of its (known) type."""
    if isinstance(type_, DataType):
        return exchange.to_data(value, type_, lambda part, part_type: run_time_value(_plain(part), part_type, name))
    if isinstance(type_, TupleType):
        return (
            () if value is None else tuple(run_time_value(v, t, name) for v, t in zip(value, type_.items, strict=True))
        )
    assert isinstance(type_, TensorType)
    if isinstance(value, int | float) and not isinstance(value, bool):
        assert isinstance(type_.base, BaseType)
        if not holds(type_.base, value):
            raise TypeMismatch(f"argument {name}: the number {value} is not a {type_.base}")
        return np.asarray(value, dtype=type_.dtype)
    return value


def _plain(value: Any) -> Any:
    """What a field of a Python object holds, as an array, a number, a tuple or an object of a data type."""
    if isinstance(value, Array):
        return value.numpy()
    if isinstance(value, bool | np.generic):
        return np.asarray(value)
    form = form_of(value)
    if form is not None or isinstance(value, tuple):
        return tuple(map(_plain, value if form is None else fields_of(value, form)))
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray) else value


def wrap(value: Any, type_: Type) -> Any:
    """A run-time value as what the caller gets: arrays, Python structures of them, None for unit."""
    if isinstance(value, tuple) and isinstance(type_, TupleType):
        parts = tuple(wrap(v, t) for v, t in zip(value, type_.items, strict=True))
        return build(type_.form, parts) if type_.form is not None else parts if parts else None
    if isinstance(value, np.ndarray):
        return Array(value)
    if isinstance(value, Data):
        return exchange.from_data(value, type_, wrap)
    return value


def _is_function(value: Any) -> bool:
    return isinstance(value, Operator) or isinstance(getattr(value, "__relay__", None), Definition | DerivedDefinition)
