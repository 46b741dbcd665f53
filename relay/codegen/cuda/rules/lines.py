"""Lines of factors in shared memory: rows of one that a block of threads reads several times."""

from __future__ import annotations

from collections.abc import Callable

from relay.codegen.cuda.rules.blocks import guarded_statement, thread_buffer
from relay.codegen.kernels.emission import Emission
from relay.codegen.kernels.loops import loop, number, unravel_index
from relay.codegen.kernels.stage import Extent
from relay.codegen.tvm.tir import Expression, Statement, tirx


class Lines:
    """`count` lines of `length` elements, `pitch` elements apart: one more than the length, where neighboring threads
    read neighboring lines, so that these are in different banks."""

    def __init__(self, name: str, dtype: str, count: int, length: int, pitch: int) -> None:
        self.dtype, self.count, self.length, self.pitch = dtype, count, length, pitch
        self.buffer = thread_buffer(name, count * pitch, dtype, "shared")

    def at(self, line: Expression, along: Expression) -> Expression:
        """An element."""
        return tirx.BufferLoad(self.buffer, [line * self.pitch + along])

    def fetch(
        self,
        e: Emission,
        thread: Expression,
        threads: int,
        lines: tuple[Expression, Extent],
        element: Callable[[Expression, Expression], Expression],
    ) -> list[Statement]:
        """Bring lines here, by all threads of a block: `lines` are the first one and how many the factor has; zeros
        where there are none. `element` gives one by its line in the factor and its place along it."""
        first, limit = lines

        def fetch_element(i: Expression) -> list[Statement]:
            position = i * threads + thread
            line, along = unravel_index(position, (self.count, self.length), e.index)
            place = line * self.pitch + along
            there = tirx.BufferStore(self.buffer, element(first + line, along), [place])
            stored = [
                tirx.BufferStore(self.buffer, tirx.const(0, self.dtype), [place]),
                guarded_statement(first + line < number(limit, e.index), [there]),
            ]
            whole = self.count * self.length
            return [guarded_statement(position < whole, stored)] if whole % threads else stored

        return loop(-(-self.count * self.length // threads), e.index, fetch_element)


__all__ = ["Lines"]
