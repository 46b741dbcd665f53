"""Attributes of operators: Python values that are known at compile time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import numpy as np

from relay.errors import Span, TypeMismatch
from relay.ir.expr import Constant
from relay.ir.types import BaseType, DimExpr, Shape, TensorType, TypeId, Unknown, base_of_dtype, prune, show
from relay.operator import Operator
from relay.typecheck.dims import is_dim
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonObject,
    Size,
    Text,
    Tuple,
    is_constant_bool,
)
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.unification import flat_shape, resolve, shape_variable


def open_shape(shape: Shape) -> bool:
    """True if the number of dims of a shape is not known yet."""
    return shape_variable(flat_shape(shape)) is not None


_ATTRIBUTES = (bool, int, float, str, tuple, np.generic, BaseType, Unknown, TypeId, DimExpr)


def static_value(entity: AbstractValue, name: str, span: Span | None, *, symbolic: bool = False) -> object:
    """The Python value of an attribute. `symbolic`: sizes in it may stay dims. Raises TypeMismatch if it is only known
    at run time."""
    match entity:
        case Size(dim) if symbolic:
            return prune(dim)
        case Number():
            return entity.specialize()
        case PythonObject(value):
            found = dtype_of(value)
            if found is not None and not isinstance(found, _ATTRIBUTES):
                raise TypeMismatch(f"{name} cannot be {_describe_object(value)}", span)
            return found
        case Tuple(items):
            return tuple(static_value(i, name, span, symbolic=symbolic) for i in items)
        case DynamicValue():
            known = is_constant_bool(entity)
            if known is not None:
                return known
            if isinstance(entity.atom, Constant) and entity.atom.value.ndim == 0:
                return entity.atom.value.item()
            type_ = prune(entity.type)
            if isinstance(type_, Unknown) or (isinstance(type_, TensorType) and open_shape(type_.shape)):
                raise SchemeOnly(span, name)
            is_weak = isinstance(type_, TensorType) and isinstance(prune(type_.base), Unknown)
            found = "a run-time number" if is_weak else f"a value of type {show(resolve(entity.type))}"
            raise TypeMismatch(
                f"{name} must be known at compile time, found {found}",
                span,
                help="an argument is known if its parameter is static: @relay(static_argnames=(..,)),"
                " or `# relay: static` on the parameter's line",
            ).needing_value(entity.atom)
        case Text():
            message = f"{name} must be known at compile time, found an f-string with run-time values"
            raise TypeMismatch(message, span)
        case _:
            raise TypeMismatch(f"{name} cannot be a function", span)


def _describe_object(value: object) -> str:
    """A Python object that is not an attribute, for messages."""
    name = getattr(value, "__name__", None)
    kind = type(value).__name__
    return f"the {kind} {name}" if isinstance(name, str) else f"of the class {kind}"


def dtype_of(value: object) -> object:
    if isinstance(value, BaseType):
        return value
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic | bool)):
        return base_of_dtype(value)
    if value is float:
        return BaseType("float32")
    if value is int:
        return BaseType("int32")
    return value


def normalize_attribute(name: str, value: object) -> object:
    """Attributes in the one form that operators expect: shapes are tuples, dtypes base types. Raises TypeMismatch."""
    if isinstance(value, BaseType) and "dtype" not in name:
        raise TypeMismatch(f"{name} cannot be a dtype, {value}")
    if name == "shape" and is_dim(value):
        return (value,)
    if name == "dtype" and isinstance(value, str):
        try:
            return base_of_dtype(value)
        except TypeError:
            help = "write relay.Float32, relay.Int32, relay.Bool or another dtype"
            raise TypeMismatch(f"{value!r} is not a dtype", help=help) from None
    return value


def checked_attribute(operator: Operator, name: str, value: object, span: Span | None) -> object:
    """The value of an attribute, if it is one that the operator's signature allows; 0 and 1 are booleans where one
    is wanted. Raises TypeMismatch."""
    if name == "dtype":
        if value is None or isinstance(value, BaseType | Unknown):
            return value
        message = f"the dtype of {operator.name} must be a dtype, found {value!r}"
        raise TypeMismatch(message, span, help="write relay.Float32, or np.float32")
    wanted = _annotations(operator).get(name)
    tests = None if wanted is None else _annotation_tests(wanted)
    if tests is None or any(test(value) for test in tests):
        return value
    if wanted == "bool" and value in (0, 1):
        return bool(value)
    if name == "shape":
        raise TypeMismatch(f"a shape must hold integers that are not negative, found {value!r}", span)
    found = f"the number {value}" if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)
    raise TypeMismatch(f"{name} of {operator.name} must be {_ALIASES.get(wanted or '', wanted)}, found {found}", span)


@functools.lru_cache(maxsize=1024)
def _annotations(operator: Operator) -> dict[str, str]:
    """The annotations of the attributes in an operator's signature."""
    function = operator.reference if operator.composition is None else operator.composition.function
    parameters = inspect.signature(function).parameters
    return {n: str(p.annotation) for n, p in parameters.items() if n in operator.attributes}


_ALIASES = {"Axes": "int | tuple[int, ...] | None"}


def _is_integer(value: object) -> bool:
    return is_dim(value) and not isinstance(value, bool)


_KINDS: dict[str, Callable[[object], bool]] = {
    "bool": lambda value: isinstance(value, bool),
    "int": _is_integer,
    "float": lambda value: isinstance(value, float | bool) or _is_integer(value),
    "str": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
}


@functools.cache
def _annotation_tests(annotation: str) -> list[Callable[[object], bool]] | None:
    """Tests for the parts of an annotation; None where one of them is not known here."""
    tests = []
    for part in _ALIASES.get(annotation, annotation).split(" | "):
        if part in _KINDS:
            tests.append(_KINDS[part])
        elif part in ("tuple[int, ...]", "tuple[int, int]"):
            tests.append(lambda value: isinstance(value, tuple) and all(map(_is_integer, value)))
        else:
            return None
    return tests
