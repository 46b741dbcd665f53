"""Named arrays, `relay.eval.named_arrays`, read as the values of types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from relay.cli.refusal import Refusal
from relay.eval.named_arrays import chain_of, element, label
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
                    raise self._missing_array(f"{name}[0]", item, f", nor an empty array {name!r}")
                return Stack(found, len(found))
            case None:
                raise Refusal(f"{name} has no type")
            case _:
                raise Refusal(
                    f"{name} is {show(type_)}: only tensors, tuples, data, references and lists of them are read"
                )

    def _tensor(self, name: str, type_: TensorType) -> np.ndarray:
        if name not in self.arrays:
            raise self._missing_array(name, type_)
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
        chain = chain_of(definition)
        if name in self.arrays:
            chosen = constructors.get(self._word(name, definition))
            assert chosen is not None
            return self._construct(name, definition, chosen)
        if chain is None or not self._length(name):
            also = "" if chain is None else f", nor its first element, {element(name, 0, chain, chain.parts[0])!r}"
            raise Refusal(
                f"{self.file} has no array {name!r} that says which {definition.name} it is, "
                f"{_words(constructors)}{also}"
            )
        value = Data(definition, chain.empty.name, ())
        for index in reversed(range(self._length(name))):
            fields: list[object] = [value] * len(chain.longer.fields)
            for i in chain.parts:
                fields[i] = self.value(element(name, index, chain, i), chain.longer.fields[i])
            value = Data(definition, chain.longer.name, tuple(fields))
        return value

    def _construct(self, name: str, definition: DataDefinition, constructor: Constructor) -> Data:
        fields = (self.value(f"{name}.{label(constructor, i)}", f) for i, f in enumerate(constructor.fields))
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
        """The number of elements of a list."""
        count = 0
        while f"{name}[{count}]" in self._beginnings:
            count += 1
        return count

    def _is_empty(self, name: str) -> bool:
        self.used.add(name)
        return name in self.arrays and self.arrays[name].size == 0

    def _missing_array(self, name: str, type_: Type, also: str = "") -> Refusal:
        return Refusal(f"{self.file} has no array {name!r} for the parameter of type {show(type_)}{also}")


def _ends(key: str) -> Iterator[int]:
    """The ends of the names that a name begins with: before each `.` and `[`, and at its end."""
    yield from (i for i, character in enumerate(key) if character in ".[")
    yield len(key)


def _words(names: Sequence[str] | Mapping[str, object]) -> str:
    return " or ".join(repr(name) for name in names)


def _fits(shape: tuple[int, ...], type_: TensorType) -> bool:
    """True if an array may have this shape; symbolic sizes are checked by the program."""
    return len(shape) == type_.rank and all(
        extent == dim for extent, dim in zip(shape, type_.shape, strict=True) if isinstance(dim, int)
    )
