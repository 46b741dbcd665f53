"""The objects that users write types with: `Tensor[Float, (n, 3)]`, `Fn[[A, B], C]`, `Ref[T]`, `dims("n m")`.

Evaluated by Python they are the types of `relay.ir.types`, so that a type can have a name: `Image = Tensor[Float, (3,
n, n)]`. In the functions of a program the front end reads the same notation from the syntax tree.
"""

from __future__ import annotations

import reprlib
import types
import typing
from collections.abc import Iterable, Sequence

import numpy as np

from relay.errors import FrontendError
from relay.ir.annotations.type_parameters import alias_value, is_alias, is_parameter, known_variable, variable
from relay.ir.axes import AxisNames, read_names
from relay.ir.definition import DataClass
from relay.ir.structure import field_names, is_record_class, written_record
from relay.ir.types import (
    ANY,
    BOOL,
    FLOAT32,
    INT32,
    NONE,
    PYTHON_FLOAT,
    AnyDim,
    Base,
    BaseType,
    DataDefinition,
    DataType,
    Dim,
    DimExpr,
    Form,
    FunctionType,
    Kind,
    QuantifiedType,
    RefType,
    Shape,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    scalar,
)

TENSOR_HELP = "write Tensor[Float, (n, 3)], or Tensor[Float, ()] for a scalar"
FUNCTION_HELP = "write Fn[[A, B], C] for a function from A and B to C"
FORALL_HELP = "write Forall[[A], Fn[[A], A]] for a function from any A to A, with A = type_var('A')"
REFERENCE_HELP = "write Ref[T], with the type of the content"


class Tensor:
    """The type of tensors: `Tensor[element type, shape]`; its axes may have names, `Tensor[Float, (n, c, h, w), NCHW]`,
    `Tensor[Float, dict(batch=n, feature=d)]`."""

    def __new__(cls, *arguments: object) -> Tensor:
        raise FrontendError("Tensor is a type, not a function that makes tensors", help=TENSOR_HELP)

    def __class_getitem__(cls, item: object) -> TensorType:
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            raise FrontendError("Tensor takes an element type and a shape", help=TENSOR_HELP)
        if isinstance(item[1], dict) and len(item) == 2:
            item = (item[0], tuple(item[1].values()), tuple(item[1]))
        shape = to_shape(item[1])
        return TensorType(to_base(item[0]), shape, axis_names(item[2] if len(item) == 3 else None, shape))


class Fn:
    """The type of functions: `Fn[[parameters], result]`."""

    def __class_getitem__(cls, item: object) -> FunctionType:
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], list | tuple):
            raise FrontendError("Fn takes a list of parameter types and a result type", help=FUNCTION_HELP)
        return FunctionType(tuple(to_type(t) for t in item[0]), to_type(item[1]))


class PureFn:
    """The type of functions without effects: `PureFn[[parameters], result]`."""

    def __class_getitem__(cls, item: object) -> FunctionType:
        type_ = Fn.__class_getitem__(item)
        return FunctionType(type_.parameters, type_.result, effects=())


class Forall:
    """The type of polymorphic functions, for parameters: `Forall[[A], Fn[[A], A]]`, where `A = type_var("A")`."""

    def __class_getitem__(cls, item: object) -> QuantifiedType:
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], list | tuple):
            raise FrontendError("Forall takes a list of variables and a function type", help=FORALL_HELP)
        body = to_type(item[1])
        variables = tuple(known_variable(v) for v in item[0])
        return forall(variables, body)


def forall(variables: Sequence[object], body: Type) -> QuantifiedType:
    """The type of functions that have `body` for all values of the variables. Raises FrontendError."""
    for found in variables:
        if not isinstance(found, TypeId):
            raise FrontendError(f"{describe_object(found)} is not a variable of types", help=FORALL_HELP)
    if not isinstance(body, FunctionType):
        raise FrontendError("only functions are polymorphic", help=FORALL_HELP)
    return QuantifiedType(tuple(v for v in variables if isinstance(v, TypeId)), body)


class Ref:
    """`Ref[content]` is the type of references. Its objects are references outside of programs, made by
    `relay.ref(content)`: programs take and return them. What a call writes, `value` is afterwards."""

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: object) -> None:
        self.value = value

    @reprlib.recursive_repr()
    def __repr__(self) -> str:
        return f"Ref({self.value!r})"

    def __class_getitem__(cls, item: object) -> RefType:
        if isinstance(item, tuple):
            raise FrontendError("Ref takes one type", help=REFERENCE_HELP)
        return RefType(to_type(item))


def dims(names: str) -> tuple[TypeId, ...]:
    """New dim variables, one for each name: `n, m = dims("n m")`, `(n,) = dims("n")`."""
    return tuple(TypeId(name, Kind.Dim) for name in _split(names))


def shape_var(name: str) -> TypeId:
    """A new shape variable, which stands for any number of dims: `Tensor[Float, s]`, `Tensor[Float, (*s, 3)]`."""
    return TypeId(_single_parameter(name), Kind.Shape)


def base_type_var(name: str) -> TypeId:
    """A new variable for an element type: `Tensor[b, (n,)]`."""
    return TypeId(_single_parameter(name), Kind.BaseType)


def type_var(name: str) -> TypeId:
    """A new variable for any type."""
    return TypeId(_single_parameter(name), Kind.Type)


def _split(names: str) -> list[str]:
    found = names.replace(",", " ").split() if isinstance(names, str) else []
    if not found or not all(name.isidentifier() for name in found):
        raise FrontendError(f"{names!r} is not a list of names", help='write dims("n m")')
    return found


def _single_parameter(name: str) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise FrontendError(f"{name!r} is not a name for a variable of a type")
    return name


# ---- from Python objects to types


def _resolve_alias(item: object, kind: Kind) -> object:
    """An object, or what it stands for: Python's type parameters are variables, and aliases are what they name."""
    while is_alias(item):
        item = alias_value(item)
    return variable(item, kind) if is_parameter(item) else item


def to_base(item: object) -> Base:
    """An element type. Raises FrontendError for anything else."""
    item = _resolve_alias(item, Kind.BaseType)
    if isinstance(item, BaseType) or (isinstance(item, TypeId) and item.kind is Kind.BaseType):
        return item
    if isinstance(item, type) and item in _SCALARS:
        return _SCALARS[item]
    if isinstance(item, TypeId):
        message = f"{item} is not an element type: it is a variable of kind {item.kind.value}"
        raise FrontendError(message, help=f'write Float, Int, Bool, .., or make one by base_type_var("{item}")')
    raise FrontendError(
        f"{describe_object(item)} is not an element type",
        help=_unpacking(item) or "write Float, Float64, Int, Bool, ...",
    )


def to_shape(item: object) -> Shape:
    """A shape: a tuple or list of dims, or a shape variable. Raises FrontendError for anything else."""
    item = _resolve_alias(item, Kind.Shape)
    if isinstance(item, TypeId) and item.kind is Kind.Shape:
        return (item,)
    if isinstance(item, tuple | list):
        return tuple(to_dim(dim) for dim in item)
    if isinstance(item, TypeId) and item.kind is not Kind.Dim:
        help = "write (3, n) with numbers and variables made by dims, or one made by shape_var"
        raise FrontendError(f"{item} is a variable of kind {item.kind.value}, not a shape", help=help)
    if isinstance(item, int | TypeId | AnyDim) or item is typing.Any:
        shown = "Any" if item is typing.Any else item
        raise FrontendError(
            f"the shape of a tensor is a tuple, found {shown}", help=f"write ({shown},) for one dimension"
        )
    raise FrontendError(f"{describe_object(item)} is not a shape", help=TENSOR_HELP)


def axis_names(given: object, shape: Shape) -> AxisNames | None:
    """The names that are given for the axes of a shape. Raises FrontendError."""
    is_open = any(isinstance(dim, TypeId) and dim.kind is Kind.Shape for dim in shape)
    return read_names(given, None if is_open else len(shape))


def to_dim(item: object) -> Dim:
    """One dim of a shape, or a shape variable in it. Raises FrontendError for anything else."""
    item = _resolve_alias(item, Kind.Dim)
    if isinstance(item, np.integer):
        item = int(item)
    if isinstance(item, bool) or not isinstance(item, int | TypeId | AnyDim | DimExpr):
        if item is typing.Any:
            return ANY
        help = _unpacking(item) or 'write a number, Any, or a variable made by `n, m = dims("n m")`'
        raise FrontendError(f"{describe_object(item)} is not a dimension", help=help)
    if isinstance(item, int) and item < 0:
        raise FrontendError(f"a dimension cannot be negative, found {item}", help="write Any for one that is not known")
    if isinstance(item, TypeId) and item.kind not in (Kind.Dim, Kind.Shape):
        raise FrontendError(
            f"{item} is a variable of kind {item.kind.value}, not a dimension", help='write dims("n m")'
        )
    return item


def to_type(item: object) -> Type:
    """The type that a Python object means. Raises FrontendError if it means none."""
    item = _resolve_alias(item, Kind.Type)
    if isinstance(item, TensorType | TupleType | FunctionType | QuantifiedType | RefType | StackType | DataType):
        return item
    if isinstance(item, TypeId):
        if item.kind is Kind.Type:
            return item
        raise FrontendError(f"{item} is a variable of kind {item.kind.value}, not a type", help=TENSOR_HELP)
    if isinstance(item, DataDefinition):
        return DataType(item)
    if isinstance(item, typing.NewType):
        return to_type(item.__supertype__)
    if item is None:
        return NONE
    if item is float:
        return PYTHON_FLOAT
    if isinstance(item, type) and item in _SCALARS:
        return scalar(_SCALARS[item])
    if isinstance(item, types.GenericAlias) and item.__origin__ is tuple:
        return tuple_type(item.__args__)
    if isinstance(item, types.GenericAlias) and item.__origin__ is list:
        return StackType(RefType(to_type(item.__args__[0])))
    if isinstance(item, BaseType):
        raise FrontendError(f"{item} is an element type, not a type", help=f"write Tensor[{item}, ()] for a scalar")
    if isinstance(item, type) and item in _CONSTRUCTORS:
        raise FrontendError(f"{describe_object(item)} needs its arguments", help=_CONSTRUCTORS[item])
    if is_record_class(item):
        return _record_type(item)  # type: ignore[arg-type]
    definition = getattr(item, "__relay_type__", None)  # what stands for a data type carries it
    if definition is not None and definition is not item:
        return to_type(definition)
    if item is str:
        help = "leave the annotation out: strings are compile-time values"
        raise FrontendError("str is not a type that Relay has", help=help)
    if item is typing.Any or item is ANY:
        help = 'for any type, make a type variable: `A = relay.type_var("A")`, and write `x: A`'
        raise FrontendError("Any is not a type that Relay has", help=help)
    if isinstance(item, types.UnionType) or typing.get_origin(item) is typing.Union:
        help = "define one data type, `@relay.data class Shape:`, with a class inside for each form"
        raise FrontendError(f"{describe_object(item)} is not a type that Relay has", help=help)
    raise FrontendError(f"{describe_object(item)} is not a type that Relay has", help=_unpacking(item) or TENSOR_HELP)


def _record_type(cls: type) -> TupleType:
    """The type of a dataclass's or named tuple's instances. A field whose annotation is not a type holds anything."""
    written = written_record(cls)
    try:
        hints = typing.get_type_hints(cls) if written is None else {}
    except (NameError, TypeError):
        hints = {}
    fields: list[Type] = []
    for name in field_names(cls):
        try:
            fields.append(to_type(hints.get(name, object)) if written is None else written.types[name]())
        except FrontendError:
            fields.append(TypeId(name, Kind.Type))
    return TupleType(tuple(fields), Form(cls, field_names(cls)))


def is_constructor(item: object) -> bool:
    """True if this is a type of Relay's that takes arguments, or may stand for one: a name for it says something."""
    return isinstance(item, type) and (item in _CONSTRUCTORS or item is Forall)


def data_type(owner: DataClass, item: object) -> DataType:
    """`Tree[A]` in Python: a data type with arguments. Raises FrontendError if their number or kinds do not fit."""
    items = item if isinstance(item, tuple) else (item,)
    definition = owner.definition
    if not definition.constructors:  # it is being read
        return DataType(definition, tuple(i if isinstance(i, TypeId | BaseType | int) else to_type(i) for i in items))
    if len(definition.parameters) != len(items):
        raise FrontendError(argument_count(owner, len(items)))
    readers = {Kind.BaseType: to_base, Kind.Shape: to_shape, Kind.Dim: to_dim}
    return DataType(
        definition,
        tuple(readers.get(p.kind, to_type)(i) for p, i in zip(definition.parameters, items, strict=True)),
    )


def argument_count(owner: DataClass, found: int) -> str:
    """The error text for a data type with a wrong number of arguments."""
    name, parameters = owner.definition.name, owner.definition.parameters
    if not parameters:
        return f"{name} takes no arguments in a type"
    count = f"{len(parameters)} argument{'s' * (len(parameters) != 1)}"
    return f"{name} takes {count} in a type ({', '.join(map(str, parameters))}), found {found}"


def tuple_type(items: Sequence[object]) -> TupleType:
    """`tuple[A, B]`; `tuple[()]` is the type of `()`."""
    if Ellipsis in items:
        raise FrontendError("a tuple type lists all its items", help="write tuple[A, A, A]")
    return TupleType(to_types(items))


def to_types(items: Iterable[object]) -> tuple[Type, ...]:
    """Several types."""
    return tuple(to_type(item) for item in items)


def _unpacking(item: object) -> str | None:
    """The correction for a tuple of `dims` in place of its only variable; None for anything else."""
    if isinstance(item, tuple) and len(item) == 1 and isinstance(item[0], TypeId):
        return f'dims returns a tuple: ({item[0]},) = relay.dims("{item[0]}")'
    return None


def describe_object(item: object) -> str:
    """A short name of a Python object for an error."""
    if isinstance(item, type):
        return item.__name__
    if isinstance(item, tuple):
        return f"({', '.join(map(describe_object, item))}{',' if len(item) == 1 else ''})"
    text = str(item) if isinstance(item, TypeId | BaseType | TensorType | FunctionType) else repr(item)
    return text if len(text) <= 60 else f"an object of class {type(item).__name__}"


_SCALARS: dict[type, BaseType] = {int: INT32, float: FLOAT32, bool: BOOL}
_CONSTRUCTORS: dict[type, str] = {
    Tensor: TENSOR_HELP,
    Fn: FUNCTION_HELP,
    PureFn: FUNCTION_HELP,
    Ref: REFERENCE_HELP,
    tuple: "write tuple[A, B]",
}
