"""Named arrays: the arguments and results of a program as entries of an `.npz` file.

    Tensor            x                     the array
    (A, B)            p.0  p.1              the components
    one constructor   p.w  p.b              the fields, or p.0, p.1 if they have no names
    several           t = "Node"  t.left    the name of the constructor, and its fields
    a list            l[0]  l[1]            the elements; l = "Nil" if there are none
    Stack[A]          s[0]  s[1]            the same; an array of no elements if there are none
    Ref[A]            as A                  the content

A list is a data type with a constructor without fields, and another one that holds the type itself once and something
more: `List { Nil, Cons(head: A, tail: List) }`. `l[0]` is the head, `l[0].key`, `l[0].value` are its parts if there are
several. What is a list may be written as the other data types are, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np

from relay.cli.refusal import Refusal
from relay.eval.values import Data, Reference, Stack
from relay.ir.types import (
    BFLOAT16,
    BaseType,
    Constructor,
    DataDefinition,
    DataType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    show,
)


@attrs.frozen
class _Chain:
    """How a list is made: its two constructors, and the position of the rest in the second one."""

    empty: Constructor
    longer: Constructor
    rest: int

    @property
    def parts(self) -> list[int]:
        """The positions of what an element is made of."""
        return [i for i in range(len(self.longer.fields)) if i != self.rest]


def _chain(definition: DataDefinition) -> _Chain | None:
    """How the values of a data type are lists; None if they are not."""
    constructors = sorted(definition.constructors, key=lambda c: len(c.fields))
    if len(constructors) != 2 or constructors[0].fields:
        return None
    empty, longer = constructors
    own = [i for i, field in enumerate(longer.fields) if isinstance(field, DataType) and field.definition is definition]
    return _Chain(empty, longer, own[0]) if len(own) == 1 and len(longer.fields) > 1 else None


def _label(constructor: Constructor, position: int) -> str:
    """The name of a field, or its position."""
    return constructor.names[position] if constructor.names else str(position)


def _element(name: str, index: int, chain: _Chain, position: int) -> str:
    """The name of a part of an element of a list."""
    whole = f"{name}[{index}]"
    return whole if len(chain.parts) == 1 else f"{whole}.{_label(chain.longer, position)}"


# ---- reading


class Arrays:
    """The arrays of a file by their names, and which of them have been read."""

    def __init__(self, arrays: Mapping[str, np.ndarray], file: str) -> None:
        self.arrays = arrays
        self.file = file
        self.used: set[str] = set()
        self._beginnings = {key[:end] for key in arrays for end in _ends(key)}

    def value(self, name: str, type_: Type | None) -> object:
        """The value of a type that has this name. Raises Refusal if there is none."""
        match type_:
            case TensorType(BaseType()):
                return self._tensor(name, type_)
            case TupleType(items):
                return tuple(self.value(f"{name}.{i}", item) for i, item in enumerate(items))
            case DataType(definition, ()):
                return self._data(name, definition)
            case RefType(content):
                return Reference(self.value(name, content))
            case StackType(item):
                found = [self.value(f"{name}[{i}]", item) for i in range(self._length(name))]
                if not found and not self._is_empty(name):
                    raise self._missing(f"{name}[0]", item, f", nor an empty array {name!r}")
                return Stack(found, len(found))
            case None:
                raise Refusal(f"{name} has no type")
            case _:
                raise Refusal(
                    f"{name} is {show(type_)}: only tensors, tuples, data, references and lists of them are read"
                )

    def _tensor(self, name: str, type_: TensorType) -> np.ndarray:
        if name not in self.arrays:
            raise self._missing(name, type_)
        self.used.add(name)
        array, base = self.arrays[name], type_.base
        assert isinstance(base, BaseType)
        if base == BFLOAT16 and array.dtype == "V2":  # files do not know that two bytes are a bfloat16
            array = array.view(base.dtype)
        if array.dtype != base.dtype or not _fits(array.shape, type_):
            raise Refusal(f"{name} is {show(type_)}, found {array.dtype} {array.shape} in {self.file}")
        return array

    def _data(self, name: str, definition: DataDefinition) -> Data:
        constructors = {c.name: c for c in definition.constructors}
        if len(constructors) == 1:
            (constructor,) = constructors.values()
            return self._construct(name, definition, constructor)
        chain = _chain(definition)
        if name in self.arrays:
            chosen = constructors.get(self._word(name, definition))
            assert chosen is not None
            return self._construct(name, definition, chosen)
        if chain is None or not self._length(name):
            also = "" if chain is None else f", nor its first element, {_element(name, 0, chain, chain.parts[0])!r}"
            raise Refusal(
                f"{self.file} has no array {name!r} that says which {definition.name} it is, "
                f"{_words(constructors)}{also}"
            )
        value = Data(definition, chain.empty.name, ())
        for index in reversed(range(self._length(name))):
            fields: list[object] = [value] * len(chain.longer.fields)
            for i in chain.parts:
                fields[i] = self.value(_element(name, index, chain, i), chain.longer.fields[i])
            value = Data(definition, chain.longer.name, tuple(fields))
        return value

    def _construct(self, name: str, definition: DataDefinition, constructor: Constructor) -> Data:
        fields = (self.value(f"{name}.{_label(constructor, i)}", f) for i, f in enumerate(constructor.fields))
        return Data(definition, constructor.name, tuple(fields))

    def _word(self, name: str, definition: DataDefinition) -> str:
        """The name of a constructor."""
        array, known = self.arrays[name], [c.name for c in definition.constructors]
        self.used.add(name)
        if array.dtype.kind != "U" or array.ndim:
            raise Refusal(
                f"{name} is a {definition.name}, found {array.dtype} {array.shape} in {self.file}: "
                f"it is the text {_words(known)}"
            )
        if str(array) not in known:
            raise Refusal(f"{name} is a {definition.name}, {_words(known)}, found {str(array)!r} in {self.file}")
        return str(array)

    def _length(self, name: str) -> int:
        """How many elements of a list there are."""
        count = 0
        while f"{name}[{count}]" in self._beginnings:
            count += 1
        return count

    def _is_empty(self, name: str) -> bool:
        self.used.add(name)
        return name in self.arrays and self.arrays[name].size == 0

    def _missing(self, name: str, type_: Type, also: str = "") -> Refusal:
        return Refusal(f"{self.file} has no array {name!r} for the parameter of type {show(type_)}{also}")


def _ends(key: str) -> Iterator[int]:
    """Where the names end that a name begins with: before each `.` and `[`, and at its end."""
    yield from (i for i, character in enumerate(key) if character in ".[")
    yield len(key)


def _words(names: Sequence[str] | Mapping[str, object]) -> str:
    return " or ".join(repr(name) for name in names)


def _fits(shape: tuple[int, ...], type_: TensorType) -> bool:
    """Whether an array may have this shape; symbolic sizes are checked by the program."""
    return len(shape) == type_.rank and all(
        extent == dim for extent, dim in zip(shape, type_.shape, strict=True) if isinstance(dim, int)
    )


# ---- writing


def elements(value: Stack | list[object]) -> list[object]:
    """The elements of a list, which compiled programs return as one of Python's."""
    return value.buffer[: value.length] if isinstance(value, Stack) else value


def arrays_of(name: str, value: object) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of a value by their names, as they are read."""
    match value:
        case tuple():
            for index, item in enumerate(value):
                yield from arrays_of(f"{name}.{index}", item)
        case Reference(content):
            yield from arrays_of(name, content)
        case Stack() | list():
            items = elements(value)
            if not items:
                yield name, np.zeros(0)
            for index, item in enumerate(items):
                yield from arrays_of(f"{name}[{index}]", item)
        case Data(definition):
            yield from _arrays_of_data(name, value, definition)
        case _:
            yield name, np.asarray(value)


def _arrays_of_data(name: str, value: Data, definition: DataDefinition) -> Iterator[tuple[str, np.ndarray]]:
    chain, index = _chain(definition), 0
    while chain is not None and value.constructor == chain.longer.name:
        for i in chain.parts:
            yield from arrays_of(_element(name, index, chain, i), value.fields[i])
        rest = value.fields[chain.rest]
        assert isinstance(rest, Data)
        value, index = rest, index + 1
    if index:
        return
    if len(definition.constructors) > 1:
        yield name, np.array(value.constructor)
    constructor = next(c for c in definition.constructors if c.name == value.constructor)
    for i, field in enumerate(value.fields):
        yield from arrays_of(f"{name}.{_label(constructor, i)}", field)
