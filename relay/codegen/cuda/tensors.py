"""Values of programs for GPUs on the host: tensors on the device, and what holds them.

A number of an integer dtype that the host knows (a loop's counter, a size) is a NumPy array of rank 0, and becomes a
tensor on the device only where a kernel reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from relay.codegen.cuda.memory import Memory


class DeviceTensor:
    """A tensor in the memory of a GPU, in row major order. `owner`: what else has the memory, if it is not `memory`
    that was allocated here."""

    __slots__ = ("dtype", "gpu", "memory", "owner", "shape")

    def __init__(
        self, gpu: Any, memory: Memory, dtype: np.dtype[Any], shape: tuple[int, ...], owner: object = None
    ) -> None:
        self.gpu, self.memory, self.dtype, self.shape, self.owner = gpu, memory, dtype, shape, owner

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """A copy on the host, once all that was started has run."""
        array = np.empty(self.shape, self.dtype)
        with self.gpu.lock:
            self.gpu.enter()
            self.gpu.download(self.memory, array)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)


@attrs.frozen(eq=False, slots=True)
class DataValue:
    """A value of a data type."""

    definition: Any
    constructor: str
    fields: tuple[Any, ...]


@attrs.define(eq=False, slots=True)
class Cell:
    """The cell of a reference. `outside` is the reference of the caller, if it has one, and `shadows` are the cells
    behind it, by their slots, each with the sweep that it belongs to (`relay.ir.expr.Shadow`)."""

    content: Any
    outside: Any = None
    shadows: Mapping[str, tuple[object, Cell]] = MappingProxyType({})

    def shadow(self, slot: str, sweep: object, initial: object) -> Cell:
        """The cell behind this one."""
        found, cell = self.shadows.get(slot, (None, None))
        if found is not sweep or cell is None:
            cell = Cell(initial)
            self.shadows = {**self.shadows, slot: (sweep, cell)}
        return cell


@attrs.frozen(eq=False, slots=True)
class HostStack:
    """The first `length` values of a buffer, which longer stacks may share."""

    buffer: list[Any]
    length: int

    def push(self, value: Any) -> HostStack:
        """A stack with one value more: in place, unless something was pushed on this one before."""
        buffer = self.buffer if len(self.buffer) == self.length else self.buffer[: self.length]
        buffer.append(value)
        return HostStack(buffer, self.length + 1)

    def with_element(self, position: int, value: Any, alone: bool) -> HostStack:
        """A stack with another value at a position; in place if nothing else sees this one."""
        buffer = self.buffer if alone else self.buffer[: self.length]
        buffer[position] = value
        return HostStack(buffer, self.length)

    def prefix(self, length: int, alone: bool) -> HostStack:
        """The first values. The others are dropped if nothing else sees them."""
        if alone:
            del self.buffer[length:]
        return HostStack(self.buffer, length)


# ---- whole values, of any depth


def convert_values(
    values: Sequence[Any],
    children: Callable[[Any], Sequence[Any] | None],
    rebuild: Callable[[Any, list[Any]], Any],
    leaf: Callable[[Any], Any],
    cell: Callable[[Any], tuple[Any, Callable[[Any], None]] | None],
) -> list[Any]:
    """Values rebuilt from their leaves. `children`: the parts of a value, None for a leaf; `rebuild` makes a value
    of its new parts. `cell`: for a reference, which may lead back to itself, the new one and what gives it its content,
    of the old one's `content`. What is shared stays so. Works on length, not by recursion."""
    made: dict[int, Any] = {}
    fill: list[tuple[Any, Callable[[Any], None]]] = []
    roots = list(values)
    pending = list(reversed(roots))
    while pending or fill:
        if not pending:
            old, give = fill[-1]
            if id(old.content) not in made:
                pending.append(old.content)
            else:
                fill.pop()
                give(made[id(old.content)])
            continue
        value = pending[-1]
        if id(value) in made:
            pending.pop()
            continue
        if (found := cell(value)) is not None:
            pending.pop()
            made[id(value)] = found[0]
            fill.insert(0, (value, found[1]))
            roots.append(value.content)  # what has an id here stays alive
            continue
        parts = children(value)
        if parts is None:
            pending.pop()
            made[id(value)] = leaf(value)
            continue
        missing = [part for part in parts if id(part) not in made]
        roots.extend(missing)
        if missing:
            pending.extend(reversed(missing))
            continue
        pending.pop()
        made[id(value)] = rebuild(value, [made[id(part)] for part in parts])
    return [made[id(value)] for value in values]


__all__ = ["Cell", "DataValue", "DeviceTensor", "HostStack", "convert_values"]
