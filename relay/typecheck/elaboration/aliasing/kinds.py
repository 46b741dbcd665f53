"""Kinds of values: which are objects in Python that can change, or hold such objects."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

from relay.ir.definition import content_type, data_class, is_optional
from relay.ir.expr import Var
from relay.ir.types import (
    DataType,
    Form,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
)
from relay.ir.types import Kind as KindOfType
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    LocalFunction,
    Method,
    Text,
    Tuple,
    Zip,
)
from relay.typecheck.unification import resolve


class Kind(enum.Enum):
    """The kind of a value. PLAIN: no object that can change. LIST: lists and dicts. FIXED: holds objects, and cannot
    change itself, as tuples and functions do."""

    PLAIN = enum.auto()
    ARRAY = enum.auto()
    LIST = enum.auto()
    RECORD = enum.auto()
    FIXED = enum.auto()
    CELL = enum.auto()
    UNKNOWN = enum.auto()

    @property
    def can_change(self) -> bool:
        """True if values may change in place by `+=`."""
        return self in (Kind.ARRAY, Kind.LIST)


def kind_of_value(value: AbstractValue) -> Kind:
    """The kind of what a variable means."""
    match value:
        case Tuple(items, form):
            return _of_structure((kind_of_value(i) for i in items), form)
        case DynamicValue():
            return kind_of_type(value.type)
        case Text():
            return Kind.PLAIN
        case Method(whole):
            return Kind.PLAIN if kind_of_value(whole) is Kind.PLAIN else Kind.FIXED
        case LocalFunction() | Zip():
            return Kind.FIXED
        case _:
            return Kind.PLAIN


def kind_of_type(type_: Type) -> Kind:
    """The kind of values of a type."""
    match prune(type_):
        case TensorType() as tensor:
            return _of_shape(tensor)
        case TupleType(items, form):
            return _of_structure((kind_of_type(i) for i in items), form)
        case StackType():
            return Kind.LIST
        case RefType():
            return Kind.CELL
        case FunctionType():
            return Kind.FIXED
        case DataType() as data:
            if is_optional(data):
                return kind_of_type(content_type(data))
            owner = data_class(data.definition)
            return Kind.PLAIN if owner is None or hasattr(owner.cls, "__relay_result__") else Kind.FIXED
        case Unknown():
            return Kind.UNKNOWN
        case _:
            return Kind.PLAIN


def _of_shape(type_: TensorType) -> Kind:
    resolved = resolve(type_)
    shape = resolved.shape if isinstance(resolved, TensorType) else None
    if not isinstance(shape, tuple) or (shape and all(_may_be_nothing(axis) for axis in shape)):
        return Kind.UNKNOWN
    return Kind.ARRAY if shape else Kind.PLAIN


def _may_be_nothing(axis: object) -> bool:
    """True if a part of a shape stands for any number of axes."""
    return isinstance(axis, Unknown | TypeId) and axis.kind is KindOfType.Shape


def _of_structure(items: Iterable[Kind], form: Form | None) -> Kind:
    if form is not None and form.cls in (list, dict):
        return Kind.LIST
    if form is not None and not issubclass(form.cls, tuple) and not _is_frozen(form.cls):
        return Kind.RECORD if form.cls is not type(None) else Kind.PLAIN
    return Kind.FIXED if any(i is not Kind.PLAIN for i in items) else Kind.PLAIN


def _is_frozen(cls: type) -> bool:
    parameters = getattr(cls, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


class Meanings:
    """The meanings of the variables of a function in its instances."""

    def __init__(self, contexts: Iterable[Context]) -> None:
        self._environments = [e for context in contexts for e in _environments(context)]
        self._kinds: dict[Var, Kind | None] = {}

    def values(self, variable: Var) -> Iterator[AbstractValue]:
        """All meanings of a variable."""
        for environment in self._environments:
            if variable in environment:
                yield environment[variable]

    def value(self, variable: Var) -> AbstractValue | None:
        """A meaning of a variable; None for one in code that does not run."""
        return next(self.values(variable), None)

    def kind(self, variable: Var) -> Kind | None:
        """The kind of a variable's values; None for one in code that does not run."""
        if variable not in self._kinds:
            found = {kind_of_value(v) for v in self.values(variable)}
            several = found - {Kind.PLAIN}
            only = next(iter(several), Kind.PLAIN)
            self._kinds[variable] = None if not found else only if len(several) < 2 else Kind.UNKNOWN
        return self._kinds[variable]


def _environments(context: Context) -> Iterator[dict[Var, AbstractValue]]:
    waiting = [context]
    while waiting:
        current = waiting.pop()
        yield current.environment
        waiting += current.copies
