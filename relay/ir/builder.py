"""The builder of blocks, for the front end, elaboration, passes and gradients.

A block may be incomplete: a binding whose expression contains unfinished blocks is made when these are finished
(`DeferredBinding`), and a place may be reserved for code that is added later (`slot`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, Union

import attrs

from relay.errors import InternalError, Span
from relay.ir.expr import Binding, Block, Expr, Terminator, Var
from relay.ir.types import Type


@attrs.frozen(eq=False)
class DeferredBinding:
    """A binding whose expression is made when its block is finished."""

    targets: tuple[Var, ...]
    build: Callable[[], Expr]


Item: TypeAlias = Union[Binding, DeferredBinding, "BlockBuilder"]


@attrs.define(eq=False, slots=False)
class BlockBuilder:
    """A block that is being written: what has been, in order, and how it ends. It is open until it has an end."""

    items: list[Item] = attrs.field(factory=list)
    terminator: Terminator | None = None

    @property
    def is_open(self) -> bool:
        """True if nothing ends the block yet."""
        return self.terminator is None

    def emit(self, targets: tuple[Var, ...], value: Expr) -> None:
        """Write `targets = value`."""
        self.items.append(Binding(targets, value))

    def perform(self, value: Expr) -> None:
        """Write an expression that has no result."""
        self.items.append(Binding((), value))

    def assign(self, value: Expr, type_: Type, name: str, span: Span | None = None) -> Var:
        """Write `name = value`, for a new variable."""
        var = Var(name, type_, span)
        self.items.append(Binding((var,), value))
        return var

    def slot(self) -> BlockBuilder:
        """Reserve a place here, in which is written later."""
        place = BlockBuilder()
        self.items.append(place)
        return place

    @property
    def length(self) -> int:
        """The number of bindings. None is made to count them: what a deferred one holds may be deferred, too."""
        count, pending = 0, [self]
        while pending:
            for item in pending.pop().items:
                if isinstance(item, BlockBuilder):
                    pending.append(item)
                else:
                    count += 1
        return count

    def all_bindings(self) -> tuple[Binding, ...]:
        """Everything written, in order."""
        found: list[Binding] = []
        pending: list[Item] = [self]
        while pending:
            item = pending.pop()
            if isinstance(item, BlockBuilder):
                pending += reversed(item.items)
            elif isinstance(item, DeferredBinding):
                found.append(Binding(item.targets, item.build()))
            else:
                found.append(item)
        return tuple(found)

    def block(self, end: Terminator | None = None) -> Block:
        """The finished block, which ends in `end` unless it has an end. Raises InternalError if it has none."""
        terminator = self.terminator if self.terminator is not None else end
        if terminator is None:
            raise InternalError("a block without an end")
        return Block(self.all_bindings(), terminator)
