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

from collections.abc import Iterator

import attrs
import numpy as np

from relay.eval.values import Data, Reference, Stack
from relay.ir.types import Constructor, DataDefinition, DataType


@attrs.frozen
class Chain:
    """The list form of a data type: its two constructors, and the position of the rest in the second one."""

    empty: Constructor
    longer: Constructor
    rest: int

    @property
    def parts(self) -> list[int]:
        """The positions of an element's parts."""
        return [i for i in range(len(self.longer.fields)) if i != self.rest]


def chain_of(definition: DataDefinition) -> Chain | None:
    """The list form of a data type; None if its values are not lists."""
    constructors = sorted(definition.constructors, key=lambda c: len(c.fields))
    if len(constructors) != 2 or constructors[0].fields:
        return None
    empty, longer = constructors
    own = [i for i, field in enumerate(longer.fields) if isinstance(field, DataType) and field.definition is definition]
    return Chain(empty, longer, own[0]) if len(own) == 1 and len(longer.fields) > 1 else None


def label(constructor: Constructor, position: int) -> str:
    """The name of a field, or its position."""
    return constructor.names[position] if constructor.names else str(position)


def element(name: str, index: int, chain: Chain, position: int) -> str:
    """The name of a part of an element of a list."""
    whole = f"{name}[{index}]"
    return whole if len(chain.parts) == 1 else f"{whole}.{label(chain.longer, position)}"


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
    chain, index = chain_of(definition), 0
    while chain is not None and value.constructor == chain.longer.name:
        for i in chain.parts:
            yield from arrays_of(element(name, index, chain, i), value.fields[i])
        rest = value.fields[chain.rest]
        assert isinstance(rest, Data)
        value, index = rest, index + 1
    if index:
        return
    if len(definition.constructors) > 1:
        yield name, np.array(value.constructor)
    constructor = next(c for c in definition.constructors if c.name == value.constructor)
    for i, field in enumerate(value.fields):
        yield from arrays_of(f"{name}.{label(constructor, i)}", field)
