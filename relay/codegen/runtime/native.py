"""Native modules: machine code, and the description that calls need."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from relay.codegen.lowering.layout import Layout, Pool, leaves
from relay.errors.diagnostic import Span
from relay.ir.dims import TypeId
from relay.ir.expr import Var
from relay.ir.sizes.extents import Place
from relay.ir.types import BaseType
from relay.support.locks import compiling

if TYPE_CHECKING:
    from relay.codegen.runtime.devices import Callbacks

ALIGNMENT = 64
"""Bytes: constants lie at multiples of it."""


@attrs.frozen(eq=False)
class NativeModule:
    """A compiled module: a library, object code in memory, or what TVM's compiler holds; then `code` is None."""

    module: Any
    code: tuple[bytes, ...] | None  # files that a linker takes
    parameters: tuple[Layout, ...]
    result: Layout
    replaced: Mapping[int, int]  # by the position of a result's leaf that of the argument's leaf whose memory it takes
    inputs: Collection[Pool]  # those that hold parts of the arguments
    table_size: int
    workspace: int  # bytes
    recursive: bool
    constants: dict[int, np.ndarray]  # by place in the context table
    dtypes: dict[int, BaseType]  # whose addresses stand in the context table, by place
    pools: tuple[tuple[int, int], ...]  # memory that grows: place and number of leaves of each pool
    arena: int | None  # the place of the memory of tensors of data-dependent size
    dims: dict[TypeId, Place]  # the symbolic dims, and where arguments show their sizes
    shown: dict[TypeId, tuple[int, int]]  # by which axis of which leaf
    failures: list[tuple[str, Span | None]]
    externals: Callbacks | None  # None if it calls no Python
    kernels: int  # how many different ones

    def __attrs_post_init__(self) -> None:
        for place, array in self.constants.items():
            self.constants[place] = _cache_aligned_array(array)

    @property
    def function(self) -> Any:
        """The function that runs it: takes the addresses of the context table and of two lists, the arrays that are
        the arguments' leaves, and those that are the results'."""
        with compiling:
            return self.module["main"]

    @property
    def object_code(self) -> tuple[bytes, ...]:
        """The machine code as a linker takes it: files."""
        if self.code is not None:
            return self.code
        with compiling:
            from relay.codegen.tvm import tir

            return (tir.object_code(self.module.mod),)

    @property
    def description(self) -> dict[str, Any]:
        """All but the machine code and what it calls in Python."""
        fields = attrs.fields_dict(NativeModule)
        return {name: getattr(self, name) for name in fields if name not in ("module", "code", "externals")}

    @staticmethod
    def from_library(
        library: Any, code: tuple[bytes, ...], description: Mapping[str, Any], externals: Callbacks | None = None
    ) -> NativeModule:
        """The module whose code a library holds."""
        return NativeModule(module=library, code=code, externals=externals, **description)


def _cache_aligned_array(array: np.ndarray) -> np.ndarray:
    """The array, at an address where no vector lies in two lines of the cache."""
    if array.ctypes.data % ALIGNMENT == 0:
        return array
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    made = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def unused_donations(native: NativeModule, parameters: Sequence[Var], donated: Iterable[int]) -> list[str]:
    """The donated parameters whose memory no result takes."""
    ends = [0, *itertools.accumulate(sum(1 for _ in leaves(layout)) for layout in native.parameters)]
    taken = set(native.replaced.values())
    return [parameters[n].name for n in sorted(donated) if taken.isdisjoint(range(ends[n], ends[n + 1]))]
