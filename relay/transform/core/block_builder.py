"""Block builders, and the joins that end blocks.

How a block ends is not known before all blocks that lead to the same join are: the functions among their values may
differ. Such a block is a draft until the join is closed; an expression that holds drafts is built last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from relay.errors import InternalError, Span
from relay.ir.expr import Atom, Binding, Block, Expr, Terminator, Var
from relay.ir.types import Type
from relay.transform.core.static_values import StaticValue


@attrs.frozen(eq=False)
class DeferredBinding:
    """A binding whose expression holds drafts."""

    targets: tuple[Var, ...]
    build: Callable[[], Expr]


@attrs.define(eq=False)
class BlockBuilder:
    """A block that is being written."""

    items: list[Binding | DeferredBinding] = attrs.field(factory=list)
    terminator: Terminator | None = None

    def bind(self, value: Expr, type_: Type, name: str, span: Span | None = None) -> Var:
        """Write `name = value`."""
        var = Var(name, type_, span)
        self.items.append(Binding((var,), value))
        return var

    def perform(self, value: Expr) -> None:
        """Write an expression that has no result."""
        self.items.append(Binding((), value))

    def bindings(self) -> tuple[Binding, ...]:
        """Everything written."""
        return tuple(b if isinstance(b, Binding) else Binding(b.targets, b.build()) for b in self.items)

    def block(self) -> Block:
        """The finished block. Raises InternalError if nothing ended it."""
        if self.terminator is None:
            raise InternalError("a block without an end")
        return Block(self.bindings(), self.terminator)


@attrs.frozen(eq=False)
class IncomingPath:
    """One way to a join: the block that ends there, and the values that it brings."""

    draft: BlockBuilder
    values: Sequence[StaticValue]
    span: Span | None


End = Callable[[tuple[Atom, ...], "Span | None"], Terminator]


@attrs.define(eq=False)
class Join:
    """Where several blocks meet: the targets of an If or Match, or the results of a loop."""

    paths: list[IncomingPath] = attrs.field(factory=list)
