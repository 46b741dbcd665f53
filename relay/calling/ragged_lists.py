"""Lists of arrays that differ in size, as arguments: all elements are packed into one block of memory, one after the
other, without padding but for what alignment takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from relay.codegen.lowering.layout import Pool, SizedLayout
from relay.codegen.lowering.memory.workspace import ALIGNMENT
from relay.codegen.runtime.marshalling import array_at
from relay.ir.dims import ANY
from relay.ir.types import INT64


@attrs.frozen(eq=False)
class PackedList:
    """The elements of a list in one call: for each the leaves of its row, which are its address and the sizes that its
    type leaves open; where the rows begin in the pool at `slot`; and the memory. If the elements are cells, the pool of
    their `numbers`, and the place where these begin."""

    slot: int
    row: int
    leaves: np.ndarray
    memory: np.ndarray
    numbers: int | None
    start: int

    def write(self, words: Any) -> None:
        """Fill the rows, by the words of the context table."""
        count, end = self.leaves.shape[1], self.row + self.leaves.shape[1]
        for place, leaf in enumerate(self.leaves, start=self.slot + 2):
            array_at(words[place], (end,), INT64.dtype)[self.row :] = leaf
        if self.numbers is not None:
            column = array_at(words[self.numbers + 2], (self.start + count,), INT64.dtype)
            column[self.start :] = np.arange(self.row, end)


@attrs.frozen(eq=False)
class RaggedList:
    """A parameter that is a list of arrays of one dtype and number of axes: the pool of their rows, and that of their
    `numbers` if the rows are cells."""

    slot: int
    dtype: np.dtype[Any]
    extents: tuple[int | None, ...]  # None: it differs
    numbers: int | None

    @staticmethod
    def of_pool(pool: Pool, numbers: int | None) -> RaggedList | None:
        """The parameter whose elements are rows of a pool; None where they are something else."""
        layout = pool.element
        if not isinstance(layout, SizedLayout) or pool.slot is None:
            return None
        extents = [None if dim is ANY else dim for dim in layout.dims]
        known = tuple(dim for dim in extents if dim is None or isinstance(dim, int))
        return RaggedList(pool.slot, layout.base.dtype, known, numbers) if len(known) == len(extents) else None

    def pack(self, items: Sequence[Any], row: int, start: int) -> PackedList | None:
        """The elements, in rows from `row` on, and their numbers from `start` on; None if one is of another type."""
        shapes = [item.shape for item in items]
        if any(item.dtype != self.dtype for item in items) or not self._fit(shapes):
            return None
        width = ALIGNMENT // math.gcd(ALIGNMENT, self.dtype.itemsize)  # elements
        sizes = np.array([item.size for item in items], np.int64)
        room = -(-sizes // width) * width
        places = np.cumsum(room) - room
        memory = np.empty(int(room.sum()) + width, self.dtype)
        first = -(memory.ctypes.data // self.dtype.itemsize) % width
        block = memory[first:]
        if (sizes == room).all() and len(items):
            np.concatenate([item.ravel() for item in items], out=block[: int(room.sum())])
        else:
            for item, place, size in zip(items, places.tolist(), sizes.tolist(), strict=True):
                block[place : place + size] = item.ravel()
        open_axes = [axis for axis, extent in enumerate(self.extents) if extent is None]
        leaves = np.empty((1 + len(open_axes), len(items)), np.int64)
        leaves[0] = block.ctypes.data + places * self.dtype.itemsize
        for place, axis in enumerate(open_axes, start=1):
            leaves[place] = [shape[axis] for shape in shapes]
        return PackedList(self.slot, row, leaves, memory, self.numbers, start)

    def _fit(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """True if the shapes are those of the type."""
        count = len(self.extents)
        fixed = [(axis, extent) for axis, extent in enumerate(self.extents) if extent is not None]
        return all(len(shape) == count and all(shape[axis] == extent for axis, extent in fixed) for shape in shapes)
