"""The types of the language.

A shape is a tuple of dims; before and during checking it may also hold shape variables, which stand for any number of
dims. A dim is an integer, a variable, `ANY`, or arithmetic of these. Scalars are tensors of rank 0. Types compare by
structure, variables and data definitions by identity.

    Type   T ::= Tensor[B, S] | (T, ..) | fn(T, ..) -> T | Ref[T] | Stack[T] | D[T, ..] | t | forall a.. . T
                 | Tensor[B, S, names of the axes]
    Base   B ::= float32 | int32 | bool | ..  | b
    Shape  S ::= (d | s, ..)
    Dim    d ::= 0 | 1 | 2 | ..  | n | Any | 2*n + 1 | n//2 | max(n, m) | ..      (`relay.ir.dims`)
"""

from __future__ import annotations

import enum
import functools
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import attrs
import ml_dtypes
import numpy as np

from relay.errors import Signal
from relay.ir.axes import AxisNames
from relay.ir.dims import ANY as ANY
from relay.ir.dims import AnyDim as AnyDim
from relay.ir.dims import Dim as Dim
from relay.ir.dims import DimExpr as DimExpr
from relay.ir.dims import Kind as Kind
from relay.ir.dims import Literal as Literal
from relay.ir.dims import TypeId as TypeId
from relay.ir.dims import Unknown as Unknown
from relay.ir.dims import resolve_dim, variables
from relay.ir.effects import EffectNames
from relay.ir.sizes.facts import DimConstraint, facts


class BaseClass(enum.Enum):
    """The classes of base types that operators distinguish. Each contains the classes before it in `ORDER`."""

    FLOAT = "float"
    INTEGER = "int"
    BOOL = "bool"


@functools.cache
def _dtype(name: str) -> np.dtype[np.generic]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


@attrs.frozen
class BaseType:
    """An element type of tensors, named as in NumPy ("float32"; "bfloat16" is ml_dtypes')."""

    name: str

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return _dtype(self.name)

    @property
    def base_class(self) -> BaseClass:
        if self.name == "bool":
            return BaseClass.BOOL
        return BaseClass.FLOAT if "float" in self.name else BaseClass.INTEGER

    @property
    def is_float(self) -> bool:
        return self.base_class is BaseClass.FLOAT

    def __repr__(self) -> str:
        return self.name


FLOAT16, FLOAT32, FLOAT64, BFLOAT16 = (BaseType(n) for n in ("float16", "float32", "float64", "bfloat16"))
INT8, INT16, INT32, INT64 = (BaseType(n) for n in ("int8", "int16", "int32", "int64"))
UINT8, UINT16, UINT32, UINT64 = (BaseType(n) for n in ("uint8", "uint16", "uint32", "uint64"))
BOOL = BaseType("bool")
BASE_TYPES: dict[str, BaseType] = {
    b.name: b
    for b in (
        FLOAT16, FLOAT32, FLOAT64, BFLOAT16, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BOOL,
    )
}  # fmt: skip


def base_of_dtype(dtype: object) -> BaseType | None:
    """The base type of a NumPy dtype (or what `np.dtype` accepts); None if Relay has none."""
    return _base_of(np.dtype(dtype))  # type: ignore[call-overload]


@functools.cache
def _base_of(dtype: np.dtype) -> BaseType | None:
    return BASE_TYPES.get(dtype.name)


Base: TypeAlias = BaseType | TypeId | Unknown
Shape: TypeAlias = tuple[Dim, ...]  # a TypeId or Unknown of kind Shape among them stands for any number of dims


class SymbolicSize(Signal, TypeError):
    """A number is needed where a dim is none."""


def _shape(shape: Iterable[Dim] | TypeId | Unknown) -> Shape:
    return (shape,) if isinstance(shape, TypeId | Unknown) else tuple(shape)


def _types(types: Iterable[Type]) -> tuple[Type, ...]:
    return tuple(types)


class AnnotationOperators:
    """A type that Python evaluates in an annotation, where it may be one of several: `Tensor[Float, (n,)] | None`."""

    __slots__ = ()

    def __or__(self, other: object) -> object:
        return typing.Union[self, other]  # noqa: UP007

    def __ror__(self, other: object) -> object:
        return typing.Union[other, self]  # noqa: UP007


@attrs.frozen
class TensorType(AnnotationOperators):
    """Tensor[base, shape]. `shape` may be given as a sequence or as one shape variable. `axes` names the axes, where a
    user did: types that differ in it only are equal, and finished modules have none (`relay.ir.axes`)."""

    base: Base
    shape: Shape = attrs.field(converter=_shape)
    axes: AxisNames | Unknown | None = attrs.field(default=None, eq=False)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape as numbers. In the elaboration of a call this makes symbolic dims numbers. Raises SymbolicSize if
        that is not possible."""
        if all(isinstance(dim, int) for dim in self.shape):
            return self.shape  # type: ignore[return-value]
        numbers = [dim if isinstance(dim, int) else facts().number(dim) for dim in self.shape]
        if None in numbers:
            raise SymbolicSize(f"{self} has a dimension that is not a number")
        return tuple(numbers)  # type: ignore[arg-type]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype of a type whose base is known. Raises TypeError if it is not."""
        if not isinstance(self.base, BaseType):
            raise TypeError(f"{self} has no known base type")
        return self.base.dtype

    def __str__(self) -> str:
        return show(self)


@attrs.frozen
class Form:
    """The Python structure that a tuple stands for: dict, list, a dataclass or a named tuple, and its fields' names,
    which are strings; keys of dicts are integers, members of enumerations and tuples, too. Of a registered class also
    what it keeps beside its parts (`relay.ir.structure.register_tree`). `origin`: of a dict, where the program makes
    it, which does not tell forms apart."""

    cls: type
    names: tuple[Any, ...] = ()
    auxiliary: object = None
    origin: object = attrs.field(default=None, eq=False, repr=False, metadata={"is_of_text": True})


@attrs.frozen
class TupleType:
    """A tuple. `form` is known during elaboration only: finished modules have plain tuples."""

    items: tuple[Type, ...] = attrs.field(converter=_types)
    form: Form | None = None

    def __str__(self) -> str:
        return show(self)


UNIT = TupleType(())
"""The type of `()`; in finished modules also that of None, of which nothing is left at run time."""

NONE = TupleType((), Form(type(None)))
"""The type of None, where types have the structures of Python."""


@attrs.frozen
class FunctionType(AnnotationOperators):
    """fn(parameters) -> result. `where` holds a polymorphic function's constraints on its arguments; `effects` are
    those of a call (`relay.ir.effects`). Types that differ in effects only are equal."""

    parameters: tuple[Type, ...] = attrs.field(converter=_types)
    result: Type
    where: tuple[Constraint, ...] = ()
    effects: EffectNames = attrs.field(default=None, eq=False)

    def __str__(self) -> str:
        return show(self)


@attrs.frozen
class QuantifiedType:
    """forall (identifiers). body"""

    identifiers: tuple[TypeId, ...]
    body: Type

    def __str__(self) -> str:
        return show(self)


@attrs.frozen
class RefType(AnnotationOperators):
    """A mutable cell."""

    content: Type

    def __str__(self) -> str:
        return show(self)


@attrs.frozen
class StackType:
    """A sequence that grows at its end: what loops record for their backward part."""

    element: Type

    def __str__(self) -> str:
        return show(self)


@attrs.frozen
class Constructor:
    """One alternative of a data type. `names` are those of its fields, where the user gave them; `declared` are their
    types as the user wrote them, with names of axes and effects, which those of finished modules do not have."""

    name: str
    fields: tuple[Type, ...] = attrs.field(converter=_types)
    names: tuple[str, ...] = ()
    declared: tuple[Type, ...] | None = attrs.field(default=None, eq=False)


@attrs.define(eq=False, repr=False)
class DataDefinition:
    """A sum of products. `constructors` is assigned once, after creation, so that fields may mention the definition.

    A polymorphic one has `parameters`, which its fields mention; it exists until elaboration replaces it by one
    definition for each choice of arguments. `origin` is what the user wrote it as. `gradient` is that of its gradients
    once `relay.ir.derivative` has made it: itself where all tensors in it are floats.
    """

    name: str
    constructors: tuple[Constructor, ...] = ()
    parameters: tuple[TypeId, ...] = ()
    origin: object = None
    gradient: DataDefinition | None = None

    def __repr__(self) -> str:
        return f"<data {self.name}>"

    def index(self, constructor: str) -> int:
        """The position of a constructor. Raises KeyError."""
        for position, candidate in enumerate(self.constructors):
            if candidate.name == constructor:
                return position
        raise KeyError(constructor)


@attrs.frozen
class DataType(AnnotationOperators):
    """A data type by its definition. `arguments` stand for the definition's parameters, each of the parameter's
    kind."""

    definition: DataDefinition
    arguments: tuple[Type | Base | Shape | Dim, ...] = ()

    def __str__(self) -> str:
        return show(self)


Type: TypeAlias = (
    TensorType | TupleType | FunctionType | QuantifiedType | RefType | StackType | DataType | TypeId | Unknown
)


# ---- constraints of polymorphic functions

AttributeValue: TypeAlias = "bool | int | float | str | BaseType | TypeId | DimExpr | tuple[AttributeValue, ...] | None"
"""An operator's attribute. One that is a size, or holds sizes, may hold symbolic dims of the module."""


@attrs.frozen
class Application:
    """A type-level function of shapes, types and dims: `broadcast(s1, s2)`, `reduce(s, axis=0)`."""

    function: str
    arguments: tuple[Type | Base | Shape | Dim, ...]
    attributes: tuple[tuple[str, AttributeValue], ...] = ()

    def __str__(self) -> str:
        return show_application(self)


@attrs.frozen
class Equation:
    """`broadcast(s1, s2) == s3`: the application has this value. None: it has one."""

    application: Application
    value: Type | Shape | None = None

    def __str__(self) -> str:
        return show_constraint(self)


@attrs.frozen
class ClassConstraint:
    """`bt is float or int`: an element type is of one of these classes."""

    base: Base
    classes: frozenset[BaseClass]

    def __str__(self) -> str:
        return show_constraint(self)


Constraint: TypeAlias = DimConstraint | Equation | ClassConstraint


def scalar(base: Base) -> TensorType:
    """The type of a rank-0 tensor."""
    return TensorType(base, ())


def prune(x: Unknown | Type | Base | Dim) -> Type | Base | Dim | Shape:
    """The binding of a solver variable, following chains (and shortening them); anything else is returned as it is.

    A dim with such variables in it is resolved.
    """
    if not isinstance(x, Unknown):
        return resolve_dim(x) if isinstance(x, DimExpr) else x
    if x.binding is None:
        return x
    seen = []
    while isinstance(x, Unknown) and x.binding is not None:
        seen.append(x)
        x = x.binding  # type: ignore[assignment]
    for unknown in seen[:-1]:
        unknown.binding = x
    return resolve_dim(x) if isinstance(x, DimExpr) else x


def type_parts(type_: object) -> tuple[Type, ...]:
    """The types directly in a type: the arguments of a data type among them, and not the types of its fields. A
    polymorphic type has none."""
    match type_:
        case TupleType(items):
            return items
        case FunctionType(parameters, result):
            return (*parameters, result)
        case RefType(part) | StackType(part):
            return (part,)
        case DataType(_, arguments):
            return tuple(a for a in arguments if isinstance(a, Type))
        case _:
            return ()


def map_type_parts(type_: Type, change: Callable[[Type], Type]) -> Type:
    """The type with each of its `type_parts` changed."""
    match type_:
        case TupleType(items, form):
            return TupleType(tuple(map(change, items)), form)
        case FunctionType(parameters, result, where):
            return FunctionType(tuple(map(change, parameters)), change(result), where, type_.effects)
        case RefType(content):
            return RefType(change(content))
        case StackType(element):
            return StackType(change(element))
        case DataType(definition, arguments) if arguments:
            return DataType(definition, tuple(change(a) if isinstance(a, Type) else a for a in arguments))
        case _:
            return type_


def types_in(type_: Type) -> Iterator[Type]:
    """A type and all types in it, but for the fields of data types."""
    pending = [type_]
    while pending:
        found = prune(pending.pop())
        yield found  # type: ignore[misc]
        pending += reversed(type_parts(found))


def map_dims(type_: Type, change: Callable[[Dim], Dim]) -> Type:
    """The type with other dims in its tensors, also in the arguments of data types."""

    def map_part(part: Type) -> Type:
        return map_dims(part, change)

    match type_:
        case TensorType(base, shape):
            return TensorType(base, tuple(map(change, shape)), type_.axes)
        case DataType(definition, arguments) if arguments:
            return DataType(definition, tuple(_map_argument(a, change) for a in arguments))
        case _:
            return map_type_parts(type_, map_part)


def _map_argument(argument: Type | Base | Shape | Dim, change: Callable[[Dim], Dim]) -> Type | Base | Shape | Dim:
    match argument:
        case tuple():
            return tuple(map(change, argument))
        case int() | AnyDim() | DimExpr():
            return change(argument)
        case TensorType() | TupleType() | FunctionType() | RefType() | StackType() | DataType():
            return map_dims(argument, change)
        case _:
            return argument


def axis_names(type_: TensorType) -> AxisNames | None:
    """The names of a tensor's axes; None if it has none."""
    axes = prune(type_.axes) if isinstance(type_.axes, Unknown) else type_.axes
    return axes if isinstance(axes, tuple) else None  # type: ignore[return-value]


def mentioned_definitions(types: Iterable[Type]) -> list[DataDefinition]:
    """The data types that occur in types, without those in their fields, as often as they occur."""
    found: list[DataDefinition] = []
    pending = list(types)
    while pending:
        match prune(pending.pop()):
            case DataType(definition, arguments):
                found.append(definition)
                pending += arguments  # type: ignore[arg-type]
            case TupleType(items):
                pending += items
            case FunctionType(parameters, result, where):
                pending += (*parameters, result)
                for constraint in where:
                    if isinstance(constraint, Equation):
                        pending += (*constraint.application.arguments, constraint.value)  # type: ignore[arg-type]
            case RefType(inner) | StackType(inner):
                pending.append(inner)
            case _:
                pass
    return found


def type_variables(item: object) -> list[TypeId]:
    """The named variables of a type, shape, base or dim, in order of occurrence, perhaps several times."""
    found: list[TypeId] = []
    stack: list[object] = [item]
    while stack:
        item = stack.pop()
        match item:
            case TypeId():
                found.append(item)
            case tuple():
                stack += reversed(item)
            case DimExpr():
                found += sorted((v for v in variables(item) if isinstance(v, TypeId)), key=lambda v: v.name)
            case TensorType(base, shape):
                stack += (shape, base)
            case TupleType(items):
                stack += reversed(items)
            case FunctionType(parameters, result):
                stack += (result, parameters)
            case RefType(inner) | StackType(inner):
                stack.append(inner)
            case DataType(_, arguments):
                stack.append(arguments)
            case QuantifiedType(identifiers, body):
                found += [v for v in type_variables(body) if v not in identifiers]
            case _:
                pass
    return found


@attrs.frozen(eq=False)
class ElementTypes(TypeId):
    """A variable for an element type of some classes (None: of all), which a function's body may decide: `Float` in
    an annotation of jaxtyping."""

    classes: frozenset[BaseClass] | None = None


PYTHON_FLOAT = TensorType(FLOAT32, ())
"""The annotation `float`, this object: in a call a scalar of any float dtype, by itself a float32."""


def unknown_of(variable: TypeId, *, rigid: bool = False) -> Unknown:
    """A variable of the solver for one of an annotation. `rigid`: the function has to be right for all its values."""
    if isinstance(variable, ElementTypes):
        return Unknown(variable.kind, variable.name, classes=variable.classes)
    return Unknown(variable.kind, variable.name, rigid=rigid)


# Printing has a file of its own, which needs the classes above.
from relay.ir.annotations.type_text import show as show  # noqa: E402
from relay.ir.annotations.type_text import show_application as show_application  # noqa: E402
from relay.ir.annotations.type_text import show_argument as show_argument  # noqa: E402
from relay.ir.annotations.type_text import show_attribute as show_attribute  # noqa: E402
from relay.ir.annotations.type_text import show_constraint as show_constraint  # noqa: E402
from relay.ir.annotations.type_text import show_shape as show_shape  # noqa: E402
