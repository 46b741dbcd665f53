"""Abstraction of Python arguments: their signature, abstract values and run-time values.

An argument is an array, a number, a structure of them, a value of a data type, a reference, or something that
specializes the program: None, a string, a dtype, a function, the value of a static parameter. What it adds to a call's
signature is its `key`.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.calling import marshalling
from relay.calling.array import Array
from relay.calling.closures import ReturnedFunction
from relay.calling.devices.device_array import array_content as held_by
from relay.calling.devices.device_array import from_dlpack
from relay.codegen.cuda.tensors import DeviceTensor
from relay.errors import Label, RelayError, TypeMismatch
from relay.ir.annotations.annotation import Ref
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Function
from relay.ir.partial_calls import partial_call
from relay.ir.structure import part_names, split
from relay.ir.tree import Structure, node_of
from relay.ir.types import (
    ANY,
    INT32,
    NONE,
    BaseType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    base_of_dtype,
    prune,
    scalar,
)
from relay.operator import Operator
from relay.typecheck.elaboration import (
    Argument,
    ClosureArg,
    ListArg,
    RefArg,
    ScalarArg,
    StaticArg,
    StructureArg,
    holds_returned,
)
from relay.typecheck.elaboration.abstract_values import Identity
from relay.typecheck.elaboration.closures.returned_closures import holds_closures
from relay.typecheck.elaboration.library import undecorated
from relay.typecheck.elaboration.values.objects import is_meaningful

NUMPY = ("numpy", "numpy.linalg")
"""The modules of functions that programs may mention, if they are not written in C."""


@attrs.frozen
class ArgumentDescription:
    """An argument to the compiler: its part of the signature, what elaboration knows of it, and the value."""

    key: object
    argument: Argument
    value: Any


def describe(
    value: Any,
    function: Function,
    position: int,
    path: str = "",
    annotation: Type | None = None,
    held: bool = False,
) -> ArgumentDescription:
    """The description of an argument, or of the part that `path` reads, for the compiler.

    `annotation`: its written type; in it `list[A]` is a list of any length, and in a reference or such a list (`held`),
    an `Any` is any size. Raises TypeMismatch at the parameter for what Relay cannot take.
    """
    annotation = None if annotation is None else prune(annotation)  # type: ignore[assignment]
    if isinstance(value, TensorType | RefType | StackType):
        return _describe_type(value, function, position, path)
    if isinstance(value, Array):
        value = held_by(value)
    if isinstance(value, DeviceTensor):
        return _describe_array(value, function, position, path, annotation, held)
    if isinstance(value, np.integer) and annotation == scalar(INT32) and -(2**31) <= value < 2**31:
        value = int(value)  # Python's integer, which `n: int` takes
    if isinstance(value, np.ndarray | np.generic):
        _require_plain(value, function, position, path)
        return _describe_array(np.asarray(value), function, position, path, annotation, held)
    if isinstance(value, bool):
        return ArgumentDescription(("bool", ()), TensorType(BaseType("bool"), ()), value)
    if isinstance(value, enum.Enum):
        return ArgumentDescription(("fixed", type(value), value), StaticArg(value), None)
    if isinstance(value, int | float):
        return ArgumentDescription(type(value), ScalarArg(value), value)
    if marshalling.is_value(value):
        return _describe_data(value, function, position, path)
    if isinstance(value, ReturnedFunction):
        return _describe_returned(value, function, position, path, held)
    if isinstance(value, Ref):
        content = annotation.content if isinstance(annotation, RefType) else None
        part = describe(value.value, function, position, path + ".value", content, True)
        _refuse_fixed(part, function, position, path + ".value", "a reference")
        return ArgumentDescription(("reference", part.key), RefArg(part.argument), value)
    if (given := _key_of_partial(value)) is not None:
        return ArgumentDescription(("partial", len(value.args), given), StaticArg(value), value)
    value = partial_call(value) or value
    structure = split(value)
    if isinstance(annotation, StackType) and isinstance(value, list):
        return _describe_items(value, annotation, function, position, path)
    if structure is not None:
        return _describe_parts(*structure, function, position, path, annotation, held)
    if isinstance(value, StaticArg):
        inner = value.value
        key = (type(inner).__name__, inner) if isinstance(inner, int | float | str | None) else Identity(inner)
        return ArgumentDescription(("fixed", key), value, None)
    if isinstance(value, np.dtype):
        value = base_of_dtype(value) or value
    if value is None or isinstance(value, str | BaseType | Structure):
        return ArgumentDescription(("fixed", value), StaticArg(value), None)
    if is_function(value):
        return ArgumentDescription(("function", value), StaticArg(value), value)  # the key keeps it alive
    if hasattr(value, "__dlpack__"):
        try:
            array = from_dlpack(value)
        except TypeMismatch as error:
            raise _bad_argument(function, position, f"is {error.message}", error.help, path) from None
        return describe(array, function, position, path)
    raise _unsupported_argument(value, function, position, path)


def _key_of_partial(value: Any) -> object:
    """The key of a partial call of an operator, whose attributes are static: `partial(relay.sum, axis=0)`."""
    if isinstance(value, functools.partial) and not hasattr(value.func, "__relay__") and is_function(value.func):
        return static_key((value.func, *value.args, *value.keywords, *value.keywords.values()))
    return None


def _describe_type(
    type_: TensorType | RefType | StackType, function: Function, position: int, path: str
) -> ArgumentDescription:
    """The description of any argument of a type, which stands for it."""
    if not isinstance(type_, TensorType):
        return ArgumentDescription(type_, type_, None)
    if not isinstance(type_.base, BaseType) or not all(isinstance(dim, int) for dim in type_.shape):
        raise _bad_argument(function, position, f"is the type {type_}, which has unbound variables", path=path)
    return ArgumentDescription((type_.base.name, type_.shape), type_, None)


def _require_plain(value: object, function: Function, position: int, path: str) -> None:
    """Raise TypeMismatch for NumPy's arrays whose operators mean something else than those of others."""
    if isinstance(value, np.ma.MaskedArray):
        what = "is a masked array, whose mask would be lost"
        raise _bad_argument(function, position, what, path=path, help="pass x.filled(0.0)")
    if isinstance(value, np.matrix):
        what = "is an np.matrix, whose `*` and `**` would have another meaning"
        raise _bad_argument(function, position, what, path=path, help="pass np.asarray(x), and write `@` for products")


def _describe_array(
    array: np.ndarray | DeviceTensor, function: Function, position: int, path: str, annotation: Type | None, held: bool
) -> ArgumentDescription:
    base = base_of_dtype(array.dtype)
    if base is None:
        text = f"has dtype {array.dtype}, which Relay does not have"
        help = "convert it: x.astype(np.float64)" if array.dtype.kind == "f" else None
        raise _bad_argument(function, position, text, help, path)
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        array = array.astype(base.dtype)
    shape = _with_any(array.shape, annotation) if held else array.shape
    return ArgumentDescription((base.name, shape), TensorType(base, shape), array)


def _describe_returned(
    value: ReturnedFunction, function: Function, position: int, path: str, held: bool
) -> ArgumentDescription:
    """A function that a program has returned, by the values that it captures."""
    captured = [
        ArgumentDescription(("chosen", type_), type_, v)
        if holds_closures(type_)
        else describe(v, function, position, path, type_, held)
        for v, type_ in zip(value.values, value.types, strict=True)
    ]
    own = ("returned", value.node, *(p.key for p in captured))
    held_values = tuple(() if isinstance(p.argument, StaticArg) else p.argument for p in captured)
    return ArgumentDescription(own, ClosureArg(value.node, held_values), tuple(p.value for p in captured))


def _describe_parts(
    form: Any,
    parts: Sequence[Any],
    function: Function,
    position: int,
    path: str,
    annotation: Type | None,
    held: bool,
) -> ArgumentDescription:
    """A Python structure of this form, by its parts."""
    names = part_names(form, len(parts))
    written: Sequence[Any] = [None] * len(parts)
    if isinstance(annotation, TupleType) and len(annotation.items) == len(parts):
        written = annotation.items
    described = [
        describe(v, function, position, path + name, type_, held)
        for v, name, type_ in zip(parts, names, written, strict=True)
    ]
    items = tuple(p.argument for p in described)
    values = tuple(None if isinstance(p.argument, StaticArg) else p.value for p in described)
    whole = ("tuple", form, *(p.key for p in described))
    return ArgumentDescription(whole, items if form is None else StructureArg(form, items), values)


def _unsupported_argument(value: Any, function: Function, position: int, path: str) -> RelayError:
    """The error of a value of which Relay knows nothing."""
    help = "decorate it with @relay" if callable(value) else None
    if isinstance(value, Collection | memoryview) and not isinstance(value, bytes | Mapping):
        help = "pass an array: np.array(x)" if isinstance(value, Sequence | memoryview) else "pass np.array(list(x))"
        if isinstance(value, Collection) and any(isinstance(item, str) for item in value):
            help = "pass tuple(x)"
    if help is None and type(value).__module__ != "builtins":
        help = f"make {type(value).__name__} a data type: decorate the class with @relay.data or @dataclass"
    return _bad_argument(
        function, position, f"is a Python {type(value).__name__}, which Relay cannot take", path=path, help=help
    )


def _refuse_fixed(part: ArgumentDescription, function: Function, position: int, path: str, holder: str) -> None:
    """Raise TypeMismatch if a part of an argument is not a run-time value, nor None."""
    argument = part.argument
    if holds_returned(argument):
        held = "a structure with a string or a function"
        found = "a function" if isinstance(argument, ClosureArg) else held
        found = repr(argument.value) if isinstance(argument, StaticArg) else found
        text = f"is {found}, but {holder} may contain only arrays, numbers and None"
        raise _bad_argument(function, position, text, path=path, help="pass it as a separate static argument")


def _with_any(shape: tuple[int, ...], annotation: Type | None) -> tuple[Any, ...]:
    """The shape with `Any` where the annotation has it."""
    if not isinstance(annotation, TensorType) or len(annotation.shape) != len(shape):
        return shape
    return tuple(ANY if dim is ANY else size for dim, size in zip(annotation.shape, shape, strict=True))


def _describe_items(
    value: list[Any], annotation: StackType, function: Function, position: int, path: str
) -> ArgumentDescription:
    """The description of a dynamic list: each kind of its elements once."""
    element = annotation.element.content if isinstance(annotation.element, RefType) else None
    found: dict[object, Argument] = {}
    for index, item in enumerate(value):
        part = describe(item, function, position, f"{path}[{index}]", element, True)
        _refuse_fixed(part, function, position, f"{path}[{index}]", "a list")
        found.setdefault(part.key, part.argument)
    if not value and isinstance(element, TensorType) and _is_concrete(element):  # as lists that have elements
        assert isinstance(element.base, BaseType)
        found[element.base.name, element.shape] = element
    return ArgumentDescription(("list", frozenset(found)), ListArg(tuple(found.values())), value)


def _is_concrete(type_: TensorType) -> bool:
    """True if arrays have this type as it is written."""
    return isinstance(type_.base, BaseType) and all(isinstance(dim, int) or dim is ANY for dim in type_.shape)


def _describe_data(value: Any, function: Function, position: int, path: str) -> ArgumentDescription:
    """The description of a value of a data type."""

    def part(field: Any, declared: Type) -> tuple[object, Argument]:
        described = describe(field, function, position, path, declared, True)
        if holds_returned(described.argument):
            text = f"holds {field!r}, but data may contain only arrays, numbers and None"
            raise _bad_argument(function, position, text, path=path)
        return described.key, NONE if isinstance(described.argument, StaticArg) else described.argument

    key, argument = marshalling.describe(value, part)
    return ArgumentDescription(key, argument, value)


def describe_static(value: Any, function: Function, position: int) -> ArgumentDescription:
    """The description of a static parameter's argument: a Python value that specializes the program."""
    fixed = value if isinstance(value, StaticArg) else StaticArg(python_value(value))
    value = fixed.value
    key: object = ("default",) if fixed.default else static_key(value)
    if key is None:
        text = (
            "is static, so it must be a Python number, string, None, dtype, function, or a tuple of them;"
            f" found {type(value).__name__}"
        )
        name = function.parameters[position].name
        help = f"keep {name} out of static_argnames and off the lines with `# relay: static`, or give one of these"
        raise _bad_argument(function, position, text, help)
    return ArgumentDescription(("static", key), fixed, None)


def python_value(value: Any) -> Any:
    """A static argument with NumPy's numbers as Python's, and lists as tuples."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray | Array) and value.ndim == 0):
        return value.item()
    return tuple(map(python_value, value)) if isinstance(value, list | tuple) else value


def static_key(value: Any) -> object:
    """The part of a call's signature that a static argument adds; None for what is not such a value."""
    if isinstance(value, tuple):
        parts = [static_key(v) for v in value]
        return None if None in parts else tuple(parts)
    if isinstance(value, enum.Enum):
        return (type(value), value)
    if value is None or isinstance(value, int | float | str | BaseType | np.dtype | type | Structure):
        return (type(value).__name__, value)
    return ("function", value) if is_function(value) else None  # the key keeps it alive


def too_deep(given: Sequence[Any], function: Function) -> RelayError:
    """The error for arguments one of which contains itself, or that are nested more deeply than Python's stack."""
    for position, argument in enumerate(given):
        if _contains_itself(argument):
            return _bad_argument(function, position, "contains itself", help="pass it without the cycle")
    return TypeMismatch(
        f"an argument of {function.name} is nested too deeply",
        function.span,
        help="make the nested part a data type, with @relay.data, or pass it as one list",
    )


def _contains_itself(value: Any) -> bool:
    """True if lists, tuples, dicts and records contain themselves."""
    around: set[int] = set()
    pending: list[tuple[bool, Any]] = [(False, value)]
    finished: set[int] = set()
    while pending:
        leaves, item = pending.pop()
        if leaves:
            around.discard(id(item))
            finished.add(id(item))
            continue
        if id(item) in around:
            return True
        if id(item) in finished:
            continue
        inside = node_of(item)
        around.add(id(item))
        pending.append((True, item))
        pending += [(False, part) for part in (() if inside is None else inside[1])]
    return False


def _bad_argument(function: Function, position: int, text: str, help: str | None = None, path: str = "") -> RelayError:
    if position >= len(function.parameters):
        return TypeMismatch(f"the cotangent of {function.name} {text}", function.span, help=help)
    parameter = function.parameters[position]
    labels = (Label(function.span, ""),) if parameter.span is None and function.span is not None else ()
    return TypeMismatch(
        f"argument {parameter.name}{path} of {function.name} {text}", parameter.span, labels=labels, help=help
    )


def is_function(value: Any) -> bool:
    """True if it is a decorated function, an operator, or a function of Python or NumPy that programs may call."""
    if isinstance(value, np.ufunc | types.BuiltinFunctionType) or getattr(value, "__module__", None) in NUMPY:
        return is_meaningful(value)
    if isinstance(value, types.FunctionType) and not hasattr(value, "__relay__"):
        return undecorated.is_read(value)
    return isinstance(value, Operator) or isinstance(getattr(value, "__relay__", None), Definition | DerivedDefinition)
