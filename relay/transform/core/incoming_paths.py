"""Joins: several unfinished blocks with a common target.

The end of a block is not known before all blocks that lead to the same join are: the functions among their values may
differ. So the expressions that contain such blocks are made last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from relay.errors import Span
from relay.ir.builder import BlockBuilder
from relay.ir.expr import Atom, Terminator
from relay.transform.core.static_values import StaticValue


@attrs.frozen(eq=False)
class IncomingPath:
    """One way to a join: the block that ends there, and the values that it brings."""

    draft: BlockBuilder
    values: Sequence[StaticValue]
    span: Span | None


End = Callable[[tuple[Atom, ...], "Span | None"], Terminator]


@attrs.define(eq=False)
class Join:
    """The common target of several blocks: the targets of an If or Match, or the results of a loop."""

    paths: list[IncomingPath] = attrs.field(factory=list)
