"""Value places: where the parts of a value are while a function is generated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, assert_never

import attrs

from relay.codegen.lowering.layout import TensorLayout
from relay.codegen.lowering.memory.workspace import Slot
from relay.codegen.tvm.tir import Expression
from relay.ir.dims import Dim


@attrs.frozen(eq=False)
class Memory:
    """At an address; in the workspace if there is a slot, and of a constant array if there is an entry of the context
    table that holds its address. An `optional` address is 0 where the value that it belongs to has no such part. A part
    of a `whole` lies `begin` bytes after it, in the same slot."""

    address: Expression
    slot: Slot | None = None
    entry: int | None = None
    optional: bool = False
    whole: Memory | None = None
    begin: Dim = 0


@attrs.frozen(eq=False)
class Register:
    """One element on the stack, which LLVM makes a register."""

    view: object
    address: Expression


@attrs.frozen(eq=False)
class Immediate:
    """One element that is an expression without loads, so it may be evaluated anywhere."""

    expression: Expression


Place: TypeAlias = Memory | Register | Immediate


@attrs.frozen(eq=False)
class Leaf:
    """A tensor (or a tag, row, offset or length) and its place."""

    layout: TensorLayout
    place: Place


@attrs.frozen(eq=False)
class DataValue:
    """A tag and the fields of each constructor; None where the value is known not to be of that constructor."""

    tag: Leaf
    fields: tuple[tuple[Value, ...] | None, ...]


@attrs.frozen(eq=False)
class StackValue:
    """Rows offset .. offset + length - 1 of a pool."""

    offset: Leaf
    length: Leaf


Value: TypeAlias = "Leaf | tuple[Value, ...] | DataValue | StackValue"


def parts(value: Value) -> Iterator[Leaf]:
    """The leaves that are there."""
    match value:
        case Leaf():
            yield value
        case tuple():
            for item in value:
                yield from parts(item)
        case DataValue(tag, fields):
            yield tag
            for constructor in fields:
                for field in constructor or ():
                    yield from parts(field)
        case StackValue(offset, length):
            yield offset
            yield length
        case _:
            assert_never(value)


def pairs(target: Value, source: Value) -> Iterator[tuple[Leaf, Leaf]]:
    """The leaves of two values of one layout, side by side, as far as both are there."""
    match target, source:
        case Leaf(), Leaf():
            yield target, source
        case tuple(), tuple():
            for left, right in zip(target, source, strict=True):
                yield from pairs(left, right)
        case DataValue(), DataValue():
            yield target.tag, source.tag
            for left_fields, right_fields in zip(target.fields, source.fields, strict=True):
                if left_fields is not None and right_fields is not None:
                    for left, right in zip(left_fields, right_fields, strict=True):
                        yield from pairs(left, right)
        case StackValue(), StackValue():
            yield target.offset, source.offset
            yield target.length, source.length
        case _:
            raise AssertionError("values of different layouts")
