"""Data in pools: code for rows of constructors and cells, shadows, and stacks with the counts of their references."""

from __future__ import annotations

from collections.abc import Sequence

from relay.codegen.lowering.function_state import FunctionState
from relay.codegen.lowering.layout import ROW, TAG, Layout, RowLayout, StackLayout, TupleLayout
from relay.codegen.lowering.memory.ownership import Key, Ownership
from relay.codegen.lowering.values import DataValue, Immediate, Leaf, StackValue, Value
from relay.codegen.tvm.tir import integer, tirx
from relay.ir.expr import Atom, Binding, Block, Construct, RefRead, Shadow, StackGet, StackPrefix, StackPush, StackSet


class PooledData:
    """Emits what one function does with data in pools."""

    def __init__(self, state: FunctionState, ownership: Ownership) -> None:
        self._state = state
        self._code = state.code
        self._shared = state.shared
        self._ownership = ownership

    def construct(self, construct: Construct, layout: Layout) -> Value:
        """A value of a data type, in a new row of its pool if it is recursive."""
        definition, values = construct.definition, tuple(map(self._state.value, construct.arguments))
        active = definition.index(construct.constructor)
        fields = tuple(values if i == active else None for i in range(len(definition.constructors)))
        value = DataValue(self._code.number(active, TAG), fields)
        return self.new_row(layout, value) if isinstance(layout, RowLayout) else value

    def new_row(self, layout: Layout, value: Value) -> Leaf:
        """A new row that holds the value."""
        assert isinstance(layout, RowLayout)
        zero = integer(0)
        row = self._shared.pools.reserve(self._code, layout.pool)
        self._code.assign(self._code.row(layout.pool, row), value)
        for slot in layout.pool.shadows:
            self._code.store_word(self._code.shadow_words(layout.pool, slot, row)[0], zero)
        return Leaf(ROW, Immediate(row))

    def row(self, reference: Atom) -> Value:
        """The content of a cell."""
        layout = self._shared.layouts.atom(reference)
        assert isinstance(layout, RowLayout)
        return self._code.row(layout.pool, self._code.value(self._state.leaf(reference)))

    def drop_content(self, reference: Atom) -> None:
        """Note that the stacks in a cell are of no more use: it gets others."""
        layout = self._shared.layouts.atom(reference)
        assert isinstance(layout, RowLayout)
        self._shared.pools.drop_content(self._code, layout.pool, self._code.value(self._state.leaf(reference)))

    def shadow(self, shadow: Shadow, layout: Layout) -> Leaf:
        """The shadow of a cell, which is created if this sweep has none yet."""
        code, pool = self._code, self._shared.layouts.atom(shadow.reference)
        assert isinstance(pool, RowLayout)
        row = code.value(self._state.leaf(shadow.reference))
        sweep = code.value(self._state.leaf(shadow.sweep)) + integer(1)
        found, (there, cell) = code.leaf(ROW), code.shadow_words(pool.pool, shadow.slot, row)
        code.store(found, code.load_word(cell))
        missing = code.bind(tirx.NE(code.load_word(there), sweep), "bool", "missing")
        with code.collect() as make:
            made = self.new_row(layout, self._state.value(shadow.initial))
            there, cell = code.shadow_words(pool.pool, shadow.slot, row)  # the pool may be the same one, and have moved
            code.store_word(there, sweep)
            code.store_word(cell, code.value(made))
            code.store(found, code.value(made))
        code.emit_if(missing, make)
        return found

    def stack(self, stack: Atom) -> tuple[StackValue, StackLayout]:
        """A stack's offset and length, and its layout."""
        value, layout = self._state.value(stack), self._shared.layouts.atom(stack)
        assert isinstance(value, StackValue) and isinstance(layout, StackLayout)
        return value, layout

    def change_stack(self, change: StackPush | StackSet) -> StackValue:
        """The stack with one element more, or another one."""
        code, moved, pushes = self._code, change in self._ownership.moved, isinstance(change, StackPush)
        held, layout = self.stack(change.stack)
        value, length = self._state.value(change.value), code.value(held.length)
        place = length
        if isinstance(change, StackSet):
            place = code.bind(tirx.Cast("int64", code.load(self._state.leaf(change.index))), name="place")
        if moved and not pushes and change not in self._ownership.overwriting:
            self._shared.pools.drop_element(code, layout.pool, held, place)
        offset = self._shared.pools.make_unique(code, layout.pool, code.value(held.offset), length, pushes, moved)
        code.assign(code.row(layout.pool, offset + place), value)
        longer = code.bind(length + integer(1), name="length") if pushes else length
        return StackValue(Leaf(ROW, Immediate(offset)), Leaf(ROW, Immediate(longer)))

    def prefix(self, prefix: StackPrefix) -> StackValue:
        """The first elements of a stack."""
        code, (held, layout) = self._code, self.stack(prefix.stack)
        shorter = code.value(self._state.leaf(prefix.length))
        if prefix in self._ownership.moved:
            with code.collect() as emptied:
                self._shared.pools.drop(code, layout.pool, held, elements=False)
            code.emit_if(tirx.EQ(shorter, integer(0)), emptied)
        return StackValue(held.offset, Leaf(ROW, Immediate(shorter)))

    def element(self, get: StackGet, block: Block, position: int) -> Value:
        """An element of a stack, which a binding at this position of a block reads."""
        code, (held, layout) = self._code, self.stack(get.stack)
        row = code.load(held.offset) + tirx.Cast("int64", code.load(self._state.leaf(get.index)))
        keep = layout.pool not in self._shared.growth.growing_after(block, position)
        return code.read(code.row(layout.pool, code.bind(row, name="row")), keep)

    def _keyed_stack(self, key: Key) -> tuple[StackValue, StackLayout]:
        """The stack of a key."""
        variable, path = key
        value, layout = self._state.value(variable), self._shared.layouts.atom(variable)
        for position in path:
            assert isinstance(value, tuple) and isinstance(layout, TupleLayout)
            value, layout = value[position], layout.items[position]
        assert isinstance(value, StackValue) and isinstance(layout, StackLayout)
        return value, layout

    def share(self, keys: Sequence[Key]) -> None:
        """Note that there are more references to stacks."""
        for stack, layout in map(self._keyed_stack, keys):
            self._shared.pools.share(self._code, layout.pool, stack)

    def receive(self, binding: Binding, keys: Sequence[Key]) -> None:
        """Note that stacks are where they were read from, too."""
        if not keys or binding not in self._ownership.taken:
            self.share(keys)
            return
        if isinstance(binding.value, RefRead):
            return
        assert isinstance(binding.value, StackGet)
        stack, layout = self.stack(binding.value.stack)
        with self._code.collect() as stays:
            self.share(keys)
        self._code.emit_if(tirx.Not(self._shared.pools.is_alone(self._code, layout.pool, stack)), stays)

    def drop(self, keys: Sequence[Key]) -> None:
        """Note that stacks are of no more use."""
        for stack, layout in map(self._keyed_stack, keys):
            self._shared.pools.drop(self._code, layout.pool, stack)
