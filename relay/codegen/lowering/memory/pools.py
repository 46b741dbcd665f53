"""Relocatable pools in generated code: one function for each pool that makes room for rows.

The rows of a stack lie in a block of the pool of 4, 8, 16, .. rows. A word of the first row has the state of a block:

    the rows in use << 7  |  whether one reference is left << 6  |  the logarithm of its rows

or 0 if the rows came from outside. A push is in place if its block has room and nothing was pushed after this stack,
or if it is the last to use a block that nobody else refers to; so is a change of an element. Otherwise the stack is
copied to a block of its own. Blocks that are of no more use are free for others of their size: `Pool.free` is the place
of the set of the sizes that there are, followed by the first block of each, and a free block's word has the next. A
stack of no elements has no block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from relay.codegen.lowering.context import COPIED, RESULT, RUNNING_OUT_OF_MEMORY
from relay.codegen.lowering.function_builder import Code, ContextTable
from relay.codegen.lowering.layout import Layout, Pool, StackLayout, TupleLayout, has_fixed_rows, leaves
from relay.codegen.lowering.values import StackValue
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, GlobalVar, integer, tirx
from relay.ir.dims import TypeId

SMALLEST = 16  # rows of a pool at its first growth

_SIZES = 48  # a block has fewer than 2**48 rows
_SMALLEST_BLOCK = 2  # as a logarithm
_ALONE = 64
_LAST = -1  # the next of the last free block


@attrs.frozen(eq=False)
class Pools:
    """The pools of a program. `functions` are the generated ones, `slots` each pool's place and number of leaves."""

    functions: dict[Any, Any]
    names: dict[Pool, Any]
    releases: dict[Pool, Any]
    slots: tuple[tuple[int, int], ...]

    def reserve(self, code: Code, pool: Pool) -> Any:
        """Make room for a row of a pool without stacks; returns its number."""
        code.check(tir.call(self.names[pool], [code.context]))
        return code.bind(code.table(RESULT), name="row")

    @contextmanager
    def release_scope(self, code: Code, pools: Sequence[Pool]) -> Iterator[None]:
        """A context: rows that the code emitted inside takes are free after it."""
        tops = [(pool.slot, code.bind(code.table(pool.slot), name="top")) for pool in pools if pool.slot is not None]
        yield
        for pool, (slot, top) in zip(pools, tops, strict=True):
            rows = code.bind(code.table(slot) - top, name="rows")
            _each_row(code, pool, top, rows, lambda row, pool=pool: _release_inner(code, pool, row, self.releases))  # type: ignore[misc]
        for slot, top in tops:
            code.set_table(slot, top)

    def make_unique(self, code: Code, pool: Pool, offset: Any, length: Any, longer: bool, moved: bool) -> Any:
        """The offset at which the rows of a stack can be changed, with room for one more if it gets `longer`.
        `moved`: the stack is not used again."""
        code.check(tir.call(self.names[pool], [code.context, offset, length, integer(longer), integer(moved)]))
        return code.bind(code.table(RESULT), name="offset")

    def share(self, code: Code, pool: Pool, stack: StackValue) -> None:
        """Note that there is another reference to a stack."""
        with code.collect() as some:
            word = _word(code, pool, code.value(stack.offset))
            code.store_word(word, code.load_word(word) & integer(~_ALONE))
        code.emit_if(tirx.GT(code.value(stack.length), integer(0)), some)

    def is_alone(self, code: Code, pool: Pool, stack: StackValue) -> Expression:
        """True if a stack, which has elements, has the only reference to its block."""
        word = code.load_word(_word(code, pool, code.value(stack.offset)))
        return tirx.NE(word & integer(_ALONE), integer(0))

    def drop(self, code: Code, pool: Pool, stack: StackValue, elements: bool = True) -> None:
        """Note that a stack is of no more use, and neither are the stacks in it, if `elements`."""
        offset, length = code.value(stack.offset), code.value(stack.length)
        with code.collect() as some:
            rows = length if elements else integer(0)
            code.emit(tirx.Evaluate(tir.call(self.releases[pool], [code.context, offset, rows])))
        code.emit_if(tirx.GT(length, integer(0)), some)

    def drop_element(self, code: Code, pool: Pool, stack: StackValue, place: Expression) -> None:
        """Note that the stacks in an element are of no more use, which is replaced if the stack is alone."""
        if any(True for _ in _inner_stacks(pool.element)):
            with code.collect() as replaced:
                row = code.bind(code.value(stack.offset) + place, name="row")
                _release_inner(code, pool, row, self.releases)
            code.emit_if(self.is_alone(code, pool, stack), replaced)

    def drop_content(self, code: Code, pool: Pool, row: Expression) -> None:
        """Note that the stacks in a row of a pool without stacks are of no more use, which is replaced."""
        _release_inner(code, pool, row, self.releases)


def make_pools(pools: Sequence[Pool], table: ContextTable, sizes: Mapping[TypeId, int]) -> Pools:
    """Give pools their places in the table, and generate their functions."""
    functions: dict[Any, Any] = {}
    names: dict[Pool, Any] = {}
    releases: dict[Pool, Any] = {}
    slots = []
    for number, pool in enumerate(pools):
        count = len(pool.leaves())
        pool.slot = table.reserve(3 + count)  # top, capacity, the leaves' addresses, bytes
        slots.append((pool.slot, count))
        names[pool] = GlobalVar(f"reserve{number}")
        if pool.blocks:
            pool.free = table.reserve(1 + _SIZES)
            releases[pool] = GlobalVar(f"release{number}")
    functions.update(
        (name, (_make_unique_function if pool.blocks else _reserve)(pool, sizes)) for pool, name in names.items()
    )
    functions.update((name, _release(pool, sizes, releases)) for pool, name in releases.items())
    return Pools(functions, names, releases, tuple(slots))


def _reserve(pool: Pool, places: Mapping[TypeId, int]) -> Any:
    """reserve(context): see `Pools.reserve`. The new row's number goes to the table's RESULT.

    Rows are addressed by their number, since growing moves them.
    """
    code = Code(places)
    assert pool.slot is not None
    top = code.bind(code.table(pool.slot), name="top")
    _grow(code, pool, code.bind(top + integer(1), name="needed"))
    code.set_table(RESULT, top)
    code.set_table(pool.slot, top + integer(1))
    body, _ = code.finish()
    return tir.function([code.context], body)


def _grow(code: Code, pool: Pool, needed: Expression) -> None:
    """Make room for this many rows."""
    assert pool.slot is not None
    capacity_slot, first_base = pool.slot + 1, pool.slot + 2
    sizes = [code.size(layout.bytes) for layout in pool.leaves()]
    with code.collect() as grow:
        doubled = tirx.max(code.table(capacity_slot) * integer(2), integer(SMALLEST))
        capacity = code.bind(tirx.max(doubled, needed), name="capacity")
        if not has_fixed_rows(pool):
            rows = [tir.magnitude(layout.bytes, code.size) for layout in pool.leaves()]
            code.limit_bytes(tirx.Cast("float64", capacity) * sum(rows, tirx.const(0.0, "float64")))
        bytes_ = code.bind(capacity * sum(sizes, integer(0)), name="bytes")
        code.spend(bytes_ - code.table(first_base + len(sizes)))
        code.set_table(first_base + len(sizes), bytes_)
        for position, size in enumerate(sizes):
            old = code.table(first_base + position)
            new = code.bind(tir.extern("realloc", old, capacity * tirx.max(size, integer(1))), name="base")
            with code.collect() as exhausted:
                code.emit(*code.failure(RUNNING_OUT_OF_MEMORY))
            code.emit_if(tirx.EQ(new, integer(0)), exhausted)
            code.set_table(first_base + position, new)
        code.set_table(capacity_slot, capacity)
    code.emit_if(tirx.GT(needed, code.table(capacity_slot)), grow)


def _make_unique_function(pool: Pool, places: Mapping[TypeId, int]) -> Any:
    """own(context, offset, length, longer, moved): see `Pools.own`. The offset goes to the table's RESULT."""
    code, one = Code(places), integer(1)
    offset, length, longer, moved = (tirx.Var(name, "int64") for name in ("offset", "length", "longer", "moved"))
    held = code.leaf_at(None)
    code.store(held, integer(0))
    with code.collect() as some:
        code.store(held, code.load_word(_word(code, pool, offset)))
    code.emit_if(tirx.GT(length, integer(0)), some)
    word = code.value(held)
    size = code.bind(word & integer(_ALONE - 1), name="size")
    alone = code.bind((word >> integer(6)) & moved, name="alone")
    rows = code.bind(tirx.if_then_else(tirx.NE(word, integer(0)), one << size, integer(0)), name="rows")
    room = code.bind(length + longer, name="room")
    last = tirx.And(tirx.NE(longer, integer(0)), tirx.EQ(word >> integer(7), length))
    fits = tirx.And(tirx.LE(room, rows), tirx.Or(tirx.NE(alone, integer(0)), last))
    with code.collect() as here:
        with code.collect() as pushed:
            described = (room << integer(7)) | (alone << integer(6)) | size
            code.store_word(_word(code, pool, offset), described)
        code.emit_if(tirx.NE(longer, integer(0)), pushed)
        code.set_table(RESULT, offset)
    with code.collect() as elsewhere:
        _move(code, pool, offset, length, size, alone, rows, room)
    code.emit_if(fits, here, elsewhere)
    body, _ = code.finish()
    return tir.function([code.context, offset, length, longer, moved], body)


def _move(
    code: Code,
    pool: Pool,
    offset: Expression,
    length: Expression,
    size: Expression,
    alone: Expression,
    rows: Expression,
    room: Expression,
) -> None:
    """Put the rows of a stack into a larger block: a free one, else the one that it has if that ends at the pool's top,
    else a new one."""
    assert pool.slot is not None and pool.free is not None
    one, top = integer(1), code.bind(code.table(pool.slot), name="top")
    larger, start = code.leaf_at(None), code.leaf_at(None)
    code.store(larger, integer(_SMALLEST_BLOCK))
    with code.collect() as doubling:
        code.store(larger, code.load(larger) + one)
    code.emit(tirx.While(tirx.LT(one << code.load(larger), room), tir.sequence(doubling)))
    found = code.value(larger)
    free = code.bind((code.table(pool.free) >> found) & one, name="free")
    at_top = tirx.And(tirx.NE(alone & (one - free), integer(0)), tirx.EQ(offset + rows, top))
    extends = code.bind(tirx.if_then_else(at_top, one, integer(0)), name="extends")
    code.store(start, tirx.if_then_else(tirx.NE(extends, integer(0)), offset, top))
    with code.collect() as again:
        head = pool.free + one + found
        code.store(start, code.table(head))
        following = code.load_word(_word(code, pool, code.value(start)))
        code.set_table(head, following)
        with code.collect() as none:
            code.set_table(pool.free, code.table(pool.free) & ~(one << found))
        code.emit_if(tirx.EQ(following, integer(_LAST)), none)
    with code.collect() as new:
        needed = code.bind(code.value(start) + (one << found), name="needed")
        _grow(code, pool, needed)
        code.set_table(pool.slot, needed)
    code.emit_if(tirx.NE(free, integer(0)), again, new)
    with code.collect() as move:
        for position, layout in enumerate(leaves(pool.element)):
            bytes_ = code.size(layout.bytes)
            base = code.bind(code.table(pool.slot + 2 + position), name="base")
            target, source = base + code.value(start) * bytes_, base + offset * bytes_
            code.emit(tir.copy_bytes(target, source, length * bytes_))
        code.set_table(COPIED, code.table(COPIED) + length)
        with code.collect() as left:
            _free(code, pool, offset, size)
        with code.collect() as twice:
            _share_inner(code, pool, offset, length)
        code.emit_if(tirx.NE(alone, integer(0)), left, twice)
    code.emit_if(tirx.And(tirx.EQ(extends, integer(0)), tirx.GT(length, integer(0))), move)
    described = (room << integer(7)) | integer(_ALONE) | found
    code.store_word(_word(code, pool, code.value(start)), described)
    code.set_table(RESULT, code.value(start))


def _release(pool: Pool, places: Mapping[TypeId, int], releases: Mapping[Pool, Any]) -> Any:
    """release(context, offset, rows): the block of a stack is free if nobody else refers to it, and so are those of the
    stacks in its first rows."""
    code, offset, rows = Code(places), tirx.Var("offset", "int64"), tirx.Var("rows", "int64")
    word = code.load_word(_word(code, pool, offset))
    with code.collect() as free:
        _each_row(code, pool, offset, rows, lambda row: _release_inner(code, pool, row, releases))
        _free(code, pool, offset, code.bind(word & integer(_ALONE - 1), name="size"))
    code.emit_if(tirx.NE(word & integer(_ALONE), integer(0)), free)
    body, _ = code.finish()
    return tir.function([code.context, offset, rows], body)


# ---- stacks in stacks


def _inner_stacks(layout: Layout, first: int = 0) -> Iterator[tuple[int, Pool]]:
    """The stacks that an element is, or has as components: the number of the leaf with the offset, and the pool."""
    match layout:
        case StackLayout():
            yield first, layout.pool
        case TupleLayout(items):
            for item in items:
                yield from _inner_stacks(item, first)
                first += sum(1 for _ in leaves(item))
        case _:
            return


def _each_row(
    code: Code, pool: Pool, offset: Expression, rows: Expression, visit: Callable[[Expression], None]
) -> None:
    """Do something with each of some rows, if there are stacks in them."""
    if not any(True for _ in _inner_stacks(pool.element)):
        return
    at = code.leaf_at(None)
    code.store(at, integer(0))
    with code.collect() as body:
        visit(code.bind(offset + code.value(at), name="row"))
        code.store(at, code.load(at) + integer(1))
    code.emit(tirx.While(tirx.LT(code.load(at), rows), tir.sequence(body)))


def _row_stack(code: Code, pool: Pool, leaf: int, row: Expression) -> tuple[Expression, Expression]:
    """The offset and length of a stack in a row."""
    assert pool.slot is not None
    offset, length = (code.load_word(code.table(pool.slot + 2 + leaf + n) + row * integer(8)) for n in range(2))
    return offset, length


def _release_inner(code: Code, pool: Pool, row: Expression, releases: Mapping[Pool, Any]) -> None:
    """The stacks in a row are of no more use."""
    for leaf, inner in _inner_stacks(pool.element):
        offset, length = _row_stack(code, pool, leaf, row)
        with code.collect() as some:
            code.emit(tirx.Evaluate(tir.call(releases[inner], [code.context, offset, length])))
        code.emit_if(tirx.GT(length, integer(0)), some)


def _share_inner(code: Code, pool: Pool, offset: Expression, rows: Expression) -> None:
    """The stacks in some rows are in others, too."""

    def share(row: Expression) -> None:
        for leaf, inner in _inner_stacks(pool.element):
            held, length = _row_stack(code, pool, leaf, row)
            with code.collect() as some:
                word = _word(code, inner, held)
                code.store_word(word, code.load_word(word) & integer(~_ALONE))
            code.emit_if(tirx.GT(length, integer(0)), some)

    _each_row(code, pool, offset, rows, share)


def _free(code: Code, pool: Pool, offset: Expression, size: Expression) -> None:
    assert pool.free is not None
    head, sizes = pool.free + integer(1) + size, code.bind(code.table(pool.free), name="sizes")
    is_first = tirx.EQ((sizes >> size) & integer(1), integer(0))
    code.store_word(_word(code, pool, offset), tirx.if_then_else(is_first, integer(_LAST), code.table(head)))
    code.set_table(head, offset)
    code.set_table(pool.free, sizes | (integer(1) << size))


def _word(code: Code, pool: Pool, offset: Expression) -> Expression:
    """The address of the state word of the block that begins at a row."""
    assert pool.slot is not None
    base = code.table(pool.slot + 2 + sum(1 for _ in leaves(pool.element)))
    return code.bind(base + offset * integer(8), name="word")
