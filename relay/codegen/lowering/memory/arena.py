"""The arena: memory for tensors of data-dependent size, which only grows, in chunks that do not move.

A tensor of the type `Tensor[B, (Any, ..)]` is its address and the extents that its type leaves open; it never changes,
so copies of it are the same memory. All memory is released when the next call begins, and that of a loop's round at its
end, if none of it can be in use any more. Where a loop carries such tensors from round to round, they are moved when a
chunk is full (`keep`).

    chunk: address of the chunk before, address of its end, memory
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from relay.codegen.lowering.context import RESULT, RUNNING_OUT_OF_MEMORY
from relay.codegen.lowering.function_builder import Code, ContextTable
from relay.codegen.lowering.memory.workspace import ALIGNMENT
from relay.codegen.lowering.values import Leaf
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, GlobalVar, integer, tirx
from relay.ir.dims import WIDEST_SIZE

SMALLEST = 1 << 16
"""The bytes of the first chunk; each is at least twice as large as the one before."""

HEAD = 16


@attrs.frozen(eq=False)
class ArenaMark:
    """The arena's top and chunk before a loop, and the chunk since which nothing has been given back."""

    top: Expression
    chunk: Expression
    latest: Leaf


class Arena:
    """The arena of one program. `functions` are the generated ones; its `place` in the context table has the top, the
    end and the chunk at hand."""

    def __init__(self, table: ContextTable, used: bool) -> None:
        """`used`: the program makes sizes."""
        self.place = table.reserve(3)
        self.used = used
        self._reserve, self._release = GlobalVar("arena_reserve"), GlobalVar("arena_release")

    @property
    def functions(self) -> dict[Any, Any]:
        """The functions, if the program makes sizes."""
        return {self._reserve: self._reserve_function(), self._release: self._release_function()} if self.used else {}

    def reserve(self, code: Code, size: Expression) -> Expression:
        """Memory of this many bytes."""
        code.check(tir.call(self._reserve, [code.context, size]))
        return code.bind(code.table(RESULT), name="there")

    @contextmanager
    def release_scope(self, code: Code) -> Iterator[None]:
        """A context: memory that the code emitted inside takes is released after it."""
        top, chunk = code.bind(code.table(self.place), name="top"), code.bind(code.table(self.place + 2), name="chunk")
        yield
        code.check(tir.call(self._release, [code.context, top, chunk]))

    def mark(self, code: Code) -> ArenaMark:
        """The state of the arena before a loop."""
        top, chunk = code.bind(code.table(self.place), name="top"), code.bind(code.table(self.place + 2), name="chunk")
        return ArenaMark(top, chunk, code.leaf_at(None))

    def begin(self, code: Code, mark: ArenaMark) -> None:
        """Note that a loop begins."""
        code.store(mark.latest, mark.chunk)

    def keep(self, code: Code, mark: ArenaMark, tensors: Sequence[tuple[Leaf, Expression]]) -> None:
        """Give back what was taken since a loop began but these tensors, which are moved: the places of their
        addresses, and their bytes. It is done when a chunk has been made since the last time, and leaves as much room
        as they take, so that it costs a share of what the loop has done."""
        with code.collect() as move:
            sizes = [code.bind((n + integer(ALIGNMENT - 1)) & integer(-ALIGNMENT), name="bytes") for _, n in tensors]
            total = code.bind(sum(sizes, integer(0)), name="total")
            aside = code.bind(tir.extern("malloc", tirx.max(total, integer(1))), name="aside")
            with code.collect() as failed:
                code.emit(*code.failure(RUNNING_OUT_OF_MEMORY))
            code.emit_if(tirx.EQ(aside, integer(0)), failed)
            place = aside
            for (address, bytes_), size in zip(tensors, sizes, strict=True):
                code.emit(tir.copy_bytes(place, code.value(address), bytes_))
                place = code.bind(place + size, name="place")
            code.check(tir.call(self._release, [code.context, mark.top, mark.chunk]))
            there = self.reserve(code, total * integer(2) + integer(SMALLEST))
            code.emit(tir.copy_bytes(there, aside, total))
            code.emit(tirx.Evaluate(tir.extern("free", aside)))
            for (address, _), size in zip(tensors, sizes, strict=True):
                code.store(address, there)
                there = code.bind(there + size, name="there")
            code.set_table(self.place, there)
            code.store(mark.latest, code.table(self.place + 2))
        code.emit_if(tirx.NE(code.value(mark.latest), code.table(self.place + 2)), move)

    def reset(self, code: Code) -> None:
        """Give back everything, at the begin of a call; the last chunk stays for it."""
        last = code.bind(code.table(self.place + 2), name="chunk")
        with code.collect() as some:
            before = code.leaf_at(last)
            _free_until(code, before, integer(0))
            code.store_word(last, integer(0))
            code.set_table(self.place, _first(last))
        code.emit_if(tirx.NE(last, integer(0)), some)

    def _reserve_function(self) -> Any:
        code, size = Code(), tirx.Var("size", "int64")
        with code.collect() as exhausted:
            code.emit(*code.failure(RUNNING_OUT_OF_MEMORY))
        code.emit_if((size < integer(0)) | (size > integer(WIDEST_SIZE)), exhausted)
        needed = code.bind((size + integer(ALIGNMENT - 1)) & integer(-ALIGNMENT), name="needed")
        with code.collect() as grow:
            chunk = code.table(self.place + 2)
            doubled = (code.table(self.place + 1) - chunk) * integer(2)
            least = tirx.max(needed + integer(HEAD + ALIGNMENT), integer(SMALLEST))
            capacity = code.bind(tirx.max(doubled, least), name="capacity")
            code.spend(capacity)
            made = code.bind(tir.extern("malloc", capacity), name="made")
            with code.collect() as failed:
                code.emit(*code.failure(RUNNING_OUT_OF_MEMORY))
            code.emit_if(tirx.EQ(made, integer(0)), failed)
            code.store_word(made, code.table(self.place + 2))
            code.store_word(made + integer(8), made + capacity)
            code.set_table(self.place, _first(made))
            code.set_table(self.place + 1, made + capacity)
            code.set_table(self.place + 2, made)
        top = code.table(self.place)
        code.emit_if(tirx.GT(top + needed, code.table(self.place + 1)), grow)
        code.set_table(RESULT, code.table(self.place))
        code.set_table(self.place, code.table(self.place) + needed)
        body, _ = code.finish()
        return tir.function([code.context, size], body)

    def _release_function(self) -> Any:
        code, top, chunk = Code(), tirx.Var("top", "int64"), tirx.Var("chunk", "int64")
        at = code.leaf_at(None)
        code.store(at, code.table(self.place + 2))
        _free_until(code, at, chunk)
        code.set_table(self.place + 2, chunk)
        code.set_table(self.place, top)
        with code.collect() as some:
            code.set_table(self.place + 1, code.load_word(chunk + integer(8)))
        with code.collect() as none:
            code.set_table(self.place + 1, integer(0))
        code.emit_if(tirx.NE(chunk, integer(0)), some, none)
        body, _ = code.finish()
        return tir.function([code.context, top, chunk], body)


def _first(chunk: Expression) -> Expression:
    return (chunk + integer(HEAD + ALIGNMENT - 1)) & integer(-ALIGNMENT)


def _free_until(code: Code, at: Any, last: Expression) -> None:
    """Free the chunks from the one whose address is in a place to the one after `last`."""
    with code.collect() as body:
        here = code.value(at)
        code.store(at, code.load_word(here))
        code.spend(here - code.load_word(here + integer(8)))
        code.emit(tirx.Evaluate(tir.extern("free", here)))
    code.emit(tirx.While(tirx.NE(code.load(at), last), tir.sequence(body)))
