"""Growing pools in generated code: one function for each pool that makes room for a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.codegen import tir
from relay.codegen.code import Code, Table
from relay.codegen.context import RESULT, RUNNING_OUT_OF_MEMORY
from relay.codegen.layout import Pool
from relay.codegen.tir import GlobalVar, integer, tirx
from relay.ir.dims import TypeId

SMALLEST = 16  # rows of a pool at its first growth


@attrs.frozen(eq=False)
class Pools:
    """The pools of a program. `functions` are the generated ones, `slots` each pool's place and number of leaves."""

    functions: dict[Any, Any]
    names: dict[Pool, Any]
    slots: tuple[tuple[int, int], ...]

    def reserve(self, code: Code, pool: Pool, offset: Any, length: Any) -> Any:
        """Make room for a row after the rows offset .. offset + length - 1 of a pool; returns their new offset.

        They stay where they are if they end at the pool's top, and are copied there otherwise.
        """
        code.check(tir.call(self.names[pool], [code.context, offset, length]))
        return code.bind(code.table(RESULT), name="offset")


def make_pools(pools: Sequence[Pool], table: Table, sizes: Mapping[TypeId, int]) -> Pools:
    """Give pools their places in the table, and generate their functions."""
    functions: dict[Any, Any] = {}
    names: dict[Pool, Any] = {}
    slots = []
    for number, pool in enumerate(pools):
        count = len(pool.leaves())
        pool.slot = table.reserve(3 + count)  # top, capacity, the leaves' addresses, bytes
        slots.append((pool.slot, count))
        names[pool] = GlobalVar(f"reserve{number}")
        functions[names[pool]] = _reserve(pool, sizes)
    return Pools(functions, names, tuple(slots))


def _reserve(pool: Pool, places: Mapping[TypeId, int]) -> Any:
    """reserve(context, offset, length): see `Pools.reserve`. The new offset goes to the table's RESULT.

    Rows are addressed by their number, since growing moves them.
    """
    code = Code(places)
    assert pool.slot is not None
    top_slot, capacity_slot, first_base = pool.slot, pool.slot + 1, pool.slot + 2
    sizes = [code.size(layout.bytes) for layout in pool.leaves()]
    offset, length = tirx.Var("offset", "int64"), tirx.Var("length", "int64")
    top = code.bind(code.table(top_slot), name="top")
    in_place = code.bind(tirx.EQ(offset + length, top), "bool", "in_place")
    needed = code.bind(top + tirx.if_then_else(in_place, integer(0), length) + integer(1), name="needed")
    with code.collect() as grow:
        doubled = tirx.max(code.table(capacity_slot) * integer(2), integer(SMALLEST))
        capacity = code.bind(tirx.max(doubled, needed), name="capacity")
        bytes_ = code.bind(capacity * sum(sizes, integer(0)), name="bytes")
        code.spend(bytes_ - code.table(first_base + len(sizes)))
        code.set_table(first_base + len(sizes), bytes_)
        for position, size in enumerate(sizes):
            old = code.table(first_base + position)
            new = code.bind(tir.extern("realloc", old, capacity * tirx.max(size, integer(1))), name="base")
            with code.collect() as exhausted:
                code.emit(*code.failure(RUNNING_OUT_OF_MEMORY))
            code.when(tirx.EQ(new, integer(0)), exhausted)
            code.set_table(first_base + position, new)
        code.set_table(capacity_slot, capacity)
    code.when(tirx.GT(needed, code.table(capacity_slot)), grow)
    with code.collect() as move:
        for position, size in enumerate(sizes):
            base = code.bind(code.table(first_base + position), name="base")
            target, source = base + top * size, base + offset * size
            code.emit(tirx.Evaluate(tir.extern("memcpy", target, source, length * size)))
    code.when(tirx.Not(in_place), move)
    code.set_table(RESULT, tirx.if_then_else(in_place, offset, top))
    code.set_table(top_slot, needed)
    body, _ = code.finish()
    return tir.function([code.context, offset, length], body)
