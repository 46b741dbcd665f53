"""The codec of compiled modules: a closed set of classes as bytes, read without running anything of them.

Each value is a letter and what belongs to it. Numbers are 64 bits, texts and lists begin with their length. An object
of one of `_CLASSES` is its class's number and its fields; a further occurrence is the position of the first one, so
that identity is kept. Places and data types of the program are numbers in it.
"""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from relay.codegen.lowering.layout import (
    DataLayout,
    Pool,
    RowLayout,
    SizedLayout,
    StackLayout,
    TensorLayout,
    TupleLayout,
)
from relay.codegen.runtime.header import ExportError
from relay.ir.dims import (
    AnyDim,
    DataDependentDim,
    DimExpr,
    Kind,
    TypeId,
)
from relay.ir.sizes.extents import Place
from relay.ir.sizes.polynomials import Extremum, Quotient
from relay.ir.types import (
    BASE_TYPES,
    BaseType,
    Form,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    base_of_dtype,
)

VERSION = 1
"""Of this notation: it counts up when a class gets other fields, or the list of classes changes."""

_CLASSES: tuple[type[Any], ...] = (
    TensorLayout, TupleLayout, SizedLayout, DataLayout, RowLayout, StackLayout, Pool,
    TypeId, DataDependentDim, DimExpr, Quotient, Extremum, Place, TensorType, TupleType, Form, FunctionType, RefType,
    StackType,
)  # fmt: skip
_CYCLIC = (RowLayout, StackLayout, Pool)
"""Their fields may lead to themselves."""

_ENUMERATIONS: tuple[type[enum.Enum], ...] = (Kind, AnyDim)
_STRUCTURES: tuple[type[Any], ...] = (dict, list, tuple)
_NUMBER = struct.Struct("<q")
_FLOAT = struct.Struct("<d")
_DEEPEST = 200

Outside = Callable[[object], tuple[int, int] | None]
"""The number of an object that is not written but stands elsewhere: of which list, and where in it."""

Inside = Callable[[int, int], object]
"""The object that such a number means. Raises IndexError."""


Classes = Sequence[type[Any]]


class DamagedDataError(Exception):
    """Bytes that nobody has written here."""


def encode(value: object, outside: Outside = lambda _: None, more: Classes = ()) -> bytes:
    """A value as bytes. `more`: further classes of attrs. Raises ExportError for what is of another class."""
    writer = _Writer(outside, (*_CLASSES, *more))
    writer.write(value)
    return b"".join(writer.parts)


def decode(content: bytes, inside: Inside | None = None, more: Classes = ()) -> Any:
    """The object that `encode` was called with, with `more` of the same classes. Raises DamagedDataError for other
    bytes."""
    reader = _Reader(content, inside, (*_CLASSES, *more))
    try:
        found = reader.read(0)
    except (ValueError, TypeError, KeyError, IndexError, struct.error, OverflowError, AttributeError) as error:
        raise DamagedDataError(str(error)) from None
    if reader.at != len(content):
        raise DamagedDataError("bytes are left over")
    return found


class _Writer:
    def __init__(self, outside: Outside, classes: Classes) -> None:
        self.parts: list[bytes] = []
        self._outside = outside
        self._numbers = {kind: number for number, kind in enumerate(classes)}
        self._known: dict[int, int] = {}  # positions of objects by identity

    def number(self, value: int) -> None:
        self.parts.append(_NUMBER.pack(value))

    def bytes(self, letter: bytes, value: bytes) -> None:
        self.parts += [letter, _NUMBER.pack(len(value)), value]

    def write(self, value: object) -> None:
        """Add a value."""
        match value:
            case None:
                self.parts.append(b"N")
            case bool():
                self.parts.append(b"T" if value else b"F")
            case enum.Enum() if type(value) in _ENUMERATIONS:
                self.parts.append(b"e")
                self.number(_ENUMERATIONS.index(type(value)))
                self.bytes(b"", value.name.encode())
            case int() if type(value) is int and -(2**63) <= value < 2**63:
                self.parts.append(b"i")
                self.number(value)
            case float() if type(value) is float:
                self.parts += [b"f", _FLOAT.pack(value)]
            case str():
                self.bytes(b"s", value.encode("utf-8", "surrogatepass"))
            case bytes():
                self.bytes(b"b", value)
            case tuple() | list() | set() | frozenset() if type(value) in _LETTERS:
                self.parts.append(_LETTERS[type(value)])
                self.number(len(value))
                for item in value:
                    self.write(item)
            case dict():
                self.parts.append(b"d")
                self.number(len(value))
                for key, item in value.items():
                    self.write(key)
                    self.write(item)
            case BaseType(name):
                self.bytes(b"B", name.encode())
            case np.dtype():
                self.bytes(b"D", self._base(value).encode())
            case np.ndarray():
                self._array(value)
            case type() if value in _STRUCTURES:
                self.parts.append(b"c")
                self.number(_STRUCTURES.index(value))
            case _:
                self._object(value)

    def _base(self, dtype: np.dtype[Any]) -> str:
        base = base_of_dtype(dtype)
        if base is None or base.dtype != dtype:
            raise ExportError(f"there is an array of dtype {dtype}")
        return base.name

    def _array(self, value: np.ndarray) -> None:
        self.bytes(b"a", self._base(value.dtype).encode())
        self.write(value.shape)
        self.parts.append(np.ascontiguousarray(value).tobytes())

    def _object(self, value: Any) -> None:
        elsewhere = self._outside(value)
        if elsewhere is not None:
            self.parts.append(b"p")
            self.number(elsewhere[0])
            self.number(elsewhere[1])
            return
        known = self._known.get(id(value))
        if known is not None:
            self.parts.append(b"r")
            self.number(known)
            return
        if type(value) not in self._numbers:
            raise ExportError(f"a {type(value).__name__} has no form in a file")
        self._known[id(value)] = len(self._known)
        self.parts.append(b"o")
        self.number(self._numbers[type(value)])
        for field in attrs.fields(type(value)):  # those of the text that a program is made from are not kept
            self.write(None if field.metadata.get("is_of_text") else getattr(value, field.name))


_LETTERS: dict[type[Any], bytes] = {tuple: b"t", list: b"l", set: b"S", frozenset: b"z"}
_COLLECTIONS: dict[bytes, type[Any]] = {letter: kind for kind, letter in _LETTERS.items()}


class _Reader:
    def __init__(self, content: bytes, inside: Inside | None, classes: Classes) -> None:
        self.at = 0
        self._content = content
        self._inside = inside
        self._classes = classes
        self._objects: list[object] = []

    def _take(self, count: int) -> bytes:
        start, end = self.at, self.at + count
        if count < 0 or end > len(self._content):
            raise DamagedDataError("it ends too early")
        self.at = end
        return self._content[start:end]

    def _number(self) -> int:
        found: int = _NUMBER.unpack(self._take(_NUMBER.size))[0]
        return found

    def _count(self) -> int:
        """The number of parts that follow, each of at least one byte."""
        count = self._number()
        if not 0 <= count <= len(self._content) - self.at:
            raise DamagedDataError("a length is wrong")
        return count

    def read(self, depth: int) -> Any:
        """The next value."""
        if depth > _DEEPEST:
            raise DamagedDataError("it is nested too deeply")
        letter = self._take(1)
        match letter:
            case b"N":
                return None
            case b"T" | b"F":
                return letter == b"T"
            case b"i":
                return self._number()
            case b"f":
                return _FLOAT.unpack(self._take(_FLOAT.size))[0]
            case b"s":
                return self._text()
            case b"b":
                return self._take(self._count())
            case b"t" | b"l" | b"S" | b"z":
                return _COLLECTIONS[letter](self.read(depth + 1) for _ in range(self._count()))
            case b"d":
                return {self.read(depth + 1): self.read(depth + 1) for _ in range(self._count())}
            case b"B":
                return BASE_TYPES[self._text()]
            case b"D":
                return BASE_TYPES[self._text()].dtype
            case b"a":
                return self._array(depth)
            case b"c":
                return _STRUCTURES[self._index(len(_STRUCTURES))]
            case b"e":
                return _ENUMERATIONS[self._index(len(_ENUMERATIONS))][self._text()]
            case b"p" if self._inside is not None:
                return self._inside(self._number(), self._number())
            case b"r":
                return self._back_reference()
            case b"o":
                return self._object(depth)
            case _:
                raise DamagedDataError(f"there is no form {letter!r}")

    def _text(self) -> str:
        return self._take(self._count()).decode("utf-8", "surrogatepass")

    def _index(self, count: int) -> int:
        number = self._number()
        if not 0 <= number < count:
            raise DamagedDataError("a number is wrong")
        return number

    def _back_reference(self) -> object:
        found = self._objects[self._index(len(self._objects))]
        if found is _UNFINISHED:
            raise DamagedDataError("an object contains itself")
        return found

    def _array(self, depth: int) -> np.ndarray:
        dtype, shape = BASE_TYPES[self._text()].dtype, self.read(depth + 1)
        if type(shape) is not tuple or not all(type(size) is int and size >= 0 for size in shape):
            raise DamagedDataError("a shape is wrong")
        content = self._take(math.prod(shape) * dtype.itemsize)
        return np.frombuffer(content, dtype).reshape(shape)

    def _object(self, depth: int) -> object:
        kind: Any = self._classes[self._index(len(self._classes))]
        position = len(self._objects)
        self._objects.append(_UNFINISHED)
        if kind in _CYCLIC:
            made = self._objects[position] = object.__new__(kind)
            for field in attrs.fields(kind):
                setattr(made, field.name, self.read(depth + 1))
            return made
        made = kind(**{field.alias: self.read(depth + 1) for field in attrs.fields(kind)})
        self._objects[position] = made
        return made


_UNFINISHED = object()
