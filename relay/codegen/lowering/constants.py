"""Constant arrays of a program: the context table holds their addresses."""

from __future__ import annotations

import numpy as np

from relay.codegen.kernels.schedules import Packing
from relay.codegen.lowering.function_builder import Code, ContextTable
from relay.codegen.lowering.layout import TensorLayout
from relay.codegen.lowering.values import Immediate, Leaf, Memory
from relay.codegen.tvm import tir
from relay.ir.expr import Constant
from relay.ir.types import BaseType


class Constants:
    """The constants that functions have used so far."""

    def __init__(self, table: ContextTable) -> None:
        self.arrays: dict[int, np.ndarray] = {}  # by place in the table; the program keeps them alive
        self._table = table
        self._places: dict[Constant, int] = {}
        self._packed: dict[tuple[Constant, Packing], int] = {}

    def leaf(self, code: Code, constant: Constant) -> Leaf:
        """A constant as a value: a number as an expression, an array by its address."""
        base = constant.type.base
        assert isinstance(base, BaseType)
        layout = TensorLayout(base, constant.value.shape)
        fits = base.name != "uint64" or constant.value.size != 1 or int(constant.value.flat[0]) < 2**63
        if tir.by_value(base, layout.elements) and fits:
            return Leaf(layout, Immediate(tir.literal(constant.value.flat[0], base)))
        if constant not in self._places:
            place = self._places[constant] = self._table.reserve(1)
            self.arrays[place] = np.array(constant.value, order="C")
        return self._array(code, layout, self._places[constant])

    def pack_constant(self, code: Code, constant: Constant, packing: Packing) -> Leaf:
        """A constant array arranged as a kernel reads it."""
        base = constant.type.base
        assert isinstance(base, BaseType)
        place = self._packed.get((constant, packing))
        if place is None:
            place = self._packed[constant, packing] = self._table.reserve(1)
            self.arrays[place] = packing(constant.value)
        layout = TensorLayout(base, self.arrays[place].shape)
        return self._array(code, layout, place)

    def _array(self, code: Code, layout: TensorLayout, place: int) -> Leaf:
        return Leaf(layout, Memory(code.table(place), entry=place))
