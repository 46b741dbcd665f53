"""Abstract arguments: the static part of a program's arguments, and their types in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from relay.errors import Span
from relay.ir.derivative import cotangent_type, gradient_definition
from relay.ir.dims import Dim
from relay.ir.sizes.extents import Place
from relay.ir.types import (
    NONE,
    DataDefinition,
    DataType,
    Form,
    Kind,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    scalar,
)
from relay.operator.relation import substitute
from relay.typecheck.elaboration.abstract_values import AbstractValue, Tuple, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.closures.returned_functions import Node, unpack_result
from relay.typecheck.elaboration.values import bound_methods, labels
from relay.typecheck.elaboration.values.data import fill, fresh_type
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.guards import LARGEST, SMALLEST


@attrs.frozen
class ScalarArg:
    """A Python number as an argument: a run-time value whose dtype the program decides."""

    value: int | float


@attrs.frozen(eq=False)
class StaticArg:
    """A Python object (None, a string, a decorated function, a default) that specializes the program."""

    value: object
    default: bool = False  # the parameter's own, so that calls need not mention it


@attrs.frozen(eq=False)
class StructureArg:
    """A dict, list, dataclass or named tuple as an argument, by its parts."""

    form: Form
    items: tuple[Argument, ...]


@attrs.frozen
class DataArg:
    """A value of a data type as an argument: what its fields hold, by their types in the definition."""

    definition: DataDefinition
    parts: tuple[tuple[Type, Argument], ...]


@attrs.frozen(eq=False)
class RefArg:
    """A reference as an argument, by what it holds."""

    content: Argument


@attrs.frozen(eq=False)
class ListArg:
    """A list of any length as an argument: what its elements are."""

    items: tuple[Argument, ...]


@attrs.frozen(eq=False)
class ClosureArg:
    """A function that a program has returned as an argument: its static part, and the run-time values in it."""

    node: Node
    items: tuple[Argument, ...]


Argument: TypeAlias = (
    "Type | ScalarArg | StaticArg | StructureArg | DataArg | RefArg | ListArg | ClosureArg"
    " | tuple[Argument, ...] | None"
)
"""The abstract value of one argument; None: nothing is known."""


def holds_returned(argument: Argument) -> bool:
    """True if an argument is or contains a function that a program has returned."""
    match argument:
        case ClosureArg():
            return True
        case StaticArg(value):
            return value is not None
        case tuple() | StructureArg():
            return any(map(holds_returned, argument.items if isinstance(argument, StructureArg) else argument))
        case _:
            return False


def restore_closures(
    checker: Checker, out: TypedBlockBuilder, argument: Argument, entity: AbstractValue, span: Span | None
) -> AbstractValue:
    """The functions in an argument, which the program gets as the values that they have captured."""
    match argument:
        case ClosureArg(node):
            assert isinstance(entity, Tuple)
            return unpack_result(checker, out, node, entity.items, span)
        case StaticArg(value) if value is not None:
            return labels.with_static_numbers(object_entity(value, span))
        case tuple() | StructureArg() if isinstance(entity, Tuple):
            parts = argument.items if isinstance(argument, StructureArg) else argument
            items = (restore_closures(checker, out, a, e, span) for a, e in zip(parts, entity.items, strict=True))
            return bound_methods.as_function(checker, out, Tuple(tuple(items), entity.form), span)
        case _:
            return entity


def is_empty(argument: Argument) -> bool:
    """True if an argument contains an empty list of any length."""
    match argument:
        case ListArg(items):
            return not items or any(map(is_empty, items))
        case StructureArg(items=items):
            return any(map(is_empty, items))
        case tuple():
            return any(map(is_empty, argument))
        case RefArg(content):
            return is_empty(content)
        case _:
            return False


@attrs.frozen(eq=False)
class ArgumentTypeReader:
    """Makes the type of an argument, in which the axes in `symbolic` become variables."""

    checker: Checker
    symbolic: frozenset[Place]
    span: Span | None
    name: str
    position: int
    annotation: Type | None = None
    weak: bool = True  # a Python integer stays one where it meets floats

    def type(self, argument: Argument, path: tuple[int, ...] = ()) -> Type:
        """The type of an argument in this checker: Python numbers get a base type that the program decides."""
        match argument:
            case None:
                return self.checker.solver.fresh_variable(Kind.Type)
            case ScalarArg(value):
                return scalar(self.checker.solver.literal_base(value, self.span, weak=self.weak))
            case tuple():
                return TupleType(self._parts(argument, path))
            case TupleType(items, form):
                return TupleType(self._parts(items, path), form)
            case DataArg(definition, parts):
                return self._data(definition, parts, path)
            case StructureArg(form, items):
                return TupleType(self._parts(items, path), form)
            case RefArg(content):
                return RefType(attrs.evolve(self, symbolic=frozenset()).type(content, path))
            case ListArg(items):
                element = self.checker.solver.fresh_variable(Kind.Type)
                for item in items:
                    found = attrs.evolve(self, symbolic=frozenset()).type(item, path)
                    self.checker.unify_at(found, element, self.span, f"an element of {self.name}")
                return StackType(RefType(element))
            case StaticArg():
                return NONE  # None: others are refused before
            case ClosureArg(items=items):
                return TupleType(self._parts(items, path))
            case TensorType(base, shape):
                return TensorType(base, tuple(self._dim(d, path, axis) for axis, d in enumerate(shape)), argument.axes)
            case _:
                return argument

    def _parts(self, items: Sequence[Argument], path: tuple[int, ...]) -> tuple[Type, ...]:
        return tuple(self.type(item, (*path, index)) for index, item in enumerate(items))

    def _dim(self, dim: Dim, path: tuple[int, ...], axis: int) -> Dim:
        if not isinstance(dim, int) or not SMALLEST <= dim <= LARGEST:
            return dim
        if Place(self.position, path, axis) not in self.symbolic:
            return dim
        return self.checker.hints.symbolic_dim(self._dim_name(path, axis), dim)

    def _dim_name(self, path: tuple[int, ...], axis: int) -> str:
        """The name of an axis: the annotation's, or the parameter's with its number."""
        annotation = self.annotation
        for index in path:
            inside = isinstance(annotation, TupleType) and index < len(annotation.items)
            annotation = annotation.items[index] if inside and isinstance(annotation, TupleType) else None
        if isinstance(annotation, TensorType) and axis < annotation.rank:
            written = annotation.shape[axis]
            if isinstance(written, TypeId) and all(isinstance(d, int | TypeId) for d in annotation.shape):
                return written.name
        return "_".join([self.name, *map(str, path), str(axis)])

    def _data(
        self, definition: DataDefinition, parts: Sequence[tuple[Type, Argument]], path: tuple[int, ...]
    ) -> DataType:
        """The type of a value of a data type, whose arguments are found from its parts. Their sizes are numbers."""
        reader = attrs.evolve(self, symbolic=frozenset())
        fields = [(declared, reader.type(argument, (*path, index))) for index, (declared, argument) in enumerate(parts)]
        if _is_gradient(definition, fields):
            made = gradient_definition(definition)
            assert made is not None
            found = DataType(made)
            fields = [(cotangent_type(declared, nothing=NONE), part) for declared, part in fields]
        else:
            found = fresh_type(self.checker, definition)
        bound = dict(zip(found.definition.parameters, found.arguments, strict=True))
        for declared, part in fields:
            wanted = fill(self.checker, substitute(declared, bound))
            self.checker.unify_at(part, wanted, self.span, f"a field of {definition.name}")
        return found


def _is_gradient(definition: DataDefinition, fields: Sequence[tuple[Type, Type]]) -> bool:
    """True if the declared types and types of a value's fields show that it is a gradient of such values: it has
    None for something that has no gradient, here or in a field."""
    if definition.parameters:  # whose arguments tell
        return False
    for declared, part in fields:
        if isinstance(part, DataType) and isinstance(declared, DataType):
            if part.definition is not declared.definition and not declared.definition.parameters:
                return True
        elif part == NONE and isinstance(declared, TensorType):
            made = gradient_definition(definition)
            return made is not None and made is not definition
    return False
