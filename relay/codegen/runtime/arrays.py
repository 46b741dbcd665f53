"""Array conversion: Python's lists and NumPy's arrays as generated code reads them, with no work per array.

The fields follow the head of every Python object. They belong to the binary interfaces that all extension modules are
compiled for (`PyListObject`, `PyArrayObject_fields`); `cpu.check_heads` makes sure of them.

    list:  size: int, items: pointer to pointers
    array: data: pointer, nd: int, dimensions: pointer, strides: pointer, base: pointer, descr: pointer, flags: int
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relay.codegen.lowering.context import HEAD
from relay.codegen.lowering.function_builder import Code, ContextTable
from relay.codegen.lowering.layout import ROW, TensorLayout
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, integer, tirx
from relay.ir.dims import TypeId
from relay.ir.types import BaseType

_ITEMS = 8  # bytes after the head
_DATA, _RANK, _DIMENSIONS, _DESCRIPTION, _FLAGS = 0, 8, 16, 40, 48

_CONTIGUOUS_AND_ALIGNED = 0x1 | 0x100  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED


class Arrays:
    """Reads the arrays of one program's calls. `dtypes`: those whose addresses are in the context table, by
    position."""

    def __init__(self, table: ContextTable) -> None:
        self._table = table
        self._places: dict[BaseType, int] = {}

    @property
    def dtypes(self) -> dict[int, BaseType]:
        return {place: base for base, place in self._places.items()}

    def _field(self, code: Code, array: Expression, offset: int, dtype: str = "int64") -> Expression:
        return self._word(code, array + code.table(HEAD) + integer(offset), dtype)

    def _word(self, code: Code, address: Expression, dtype: str = "int64") -> Expression:
        view, statements = tir.view("field", (1,), dtype, address)
        code.emit(*statements)
        return code.bind(tirx.Cast("int64", tirx.BufferLoad(view, [0])), name="field")

    def items(self, code: Code, list_: Expression, count: int) -> list[Expression]:
        """The addresses of the objects in a list."""
        first = self._field(code, list_, _ITEMS)
        return [self._word(code, first + integer(8 * position)) for position in range(count)]

    def data(self, code: Code, array: Expression) -> Expression:
        """The address of an array's elements."""
        return self._field(code, array, _DATA)

    def extent(self, code: Code, array: Expression, axis: int) -> Expression:
        """The extent of an array's axis."""
        return self._word(code, self._field(code, array, _DIMENSIONS) + integer(8 * axis))

    def mismatch_flag(
        self,
        code: Code,
        layouts: Sequence[TensorLayout],
        arrays: Sequence[Expression],
        sizes: Mapping[TypeId, int],
        shown: Mapping[TypeId, tuple[int, int]],
    ) -> Expression:
        """0 if the arrays have these dtypes and shapes and the memory layout of generated code.

        Symbolic dims are written to the table at `sizes`, from the array and axis in `shown`. Other dims are not
        checked.
        """
        found = code.leaf(ROW)
        code.store(found, integer(0))
        for layout, array in zip(layouts, arrays, strict=True):
            if layout.base not in self._places:
                self._places[layout.base] = self._table.reserve(1)
            description = code.table(self._places[layout.base]) ^ self._field(code, array, _DESCRIPTION)
            rank = self._field(code, array, _RANK, "int32") ^ integer(len(layout.dims))
            flags = self._field(code, array, _FLAGS, "int32")
            order = (flags & integer(_CONTIGUOUS_AND_ALIGNED)) ^ integer(_CONTIGUOUS_AND_ALIGNED)
            code.store(found, code.load(found) | description | rank | order)
        with code.collect() as same_ranks:
            for position, (layout, array) in enumerate(zip(layouts, arrays, strict=True)):
                for axis, dim in enumerate(layout.dims):
                    if isinstance(dim, int):
                        extent = self.extent(code, array, axis)
                        code.store(found, code.load(found) | (extent ^ integer(dim)))
                    elif isinstance(dim, TypeId) and shown[dim] == (position, axis):
                        code.set_table(sizes[dim], self.extent(code, array, axis))
        code.emit_if(tirx.EQ(code.load(found), integer(0)), same_ranks)
        return code.value(found)
