"""Lifetimes of loop rounds: memory of a round that neither the next one nor the code after the loop can reach.

Values that outlive their round are in the loop's parameters or results, or were written into a cell that may be older.
Rows of other pools that the round has taken are free at its end. The same is true of tensors of the arena; those that
are parameters themselves can be moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from relay.codegen.lowering.layout import (
    DataLayout,
    Layout,
    Layouts,
    Pool,
    RowLayout,
    SizedLayout,
    StackLayout,
    TensorLayout,
    TupleLayout,
)
from relay.codegen.lowering.memory.pool_growth import PoolGrowth
from relay.ir.expr import Binding, Call, Function, Global, Loop, RefWrite, Shadow, Var
from relay.ir.traverse import walk


class RoundLifetimes:
    """Answers for one module."""

    def __init__(self, functions: Mapping[str, Function], layouts: Layouts, growth: PoolGrowth) -> None:
        self._layouts = layouts
        self._growth = growth
        self._written: dict[str, frozenset[tuple[Pool, bool]]] = dict.fromkeys(functions, frozenset())
        changed = True
        while changed:
            changed = False
            for name, function in functions.items():
                found = self._writes(walk(function.body))
                changed |= found != self._written[name]
                self._written[name] = found

    def freed_pools(self, loop: Loop, targets: Sequence[Var]) -> list[Pool]:
        """The pools whose rows that a round makes are of no use after it. Those of stacks are not among them."""
        made = [p for p in self._growth.growing_after(loop.body, -1) if not p.blocks]
        if not made:
            return []
        kept, _ = self._escaping_pools(loop, targets)
        return sorted((p for p in made if p not in kept), key=lambda p: p.slot or 0)

    def moves(self, loop: Loop, targets: Sequence[Var]) -> bool:
        """True if the tensors of the arena that outlive a round are the loop's parameters, or components of them."""
        _, inside = self._escaping_pools(loop, targets)
        return not inside

    def _escaping_pools(self, loop: Loop, targets: Sequence[Var]) -> tuple[set[Pool], bool]:
        """The pools in which rows may outlive a round, and whether tensors of the arena do so in rows or data."""
        pending = [(self._layouts.of[v], True) for v in (*loop.parameters, *targets)]
        written = self._writes(walk(loop.body))
        pending += ((pool.element, False) for pool, _ in written)
        found: set[Pool] = {pool for pool, is_shadow in written if is_shadow}
        inside = False
        while pending:
            layout, direct = pending.pop()
            match layout:
                case SizedLayout():
                    inside |= not direct
                case TensorLayout():
                    pass
                case TupleLayout(items):
                    pending += ((item, direct) for item in items)
                case DataLayout(_, fields):
                    pending += ((field, False) for constructor in fields for field in constructor)
                case RowLayout() | StackLayout():
                    if layout.pool not in found:
                        found.add(layout.pool)
                        pending.append((layout.pool.element, False))
        return found, inside

    def _writes(self, bindings: Iterable[Binding]) -> frozenset[tuple[Pool, bool]]:
        """The pools of the cells that are written, and whether cells of a pool are found behind others."""
        found: set[tuple[Pool, bool]] = set()
        for binding in bindings:
            match binding.value:
                case RefWrite(reference):
                    found.add((_pool(self._layouts.atom(reference)), False))
                case Shadow():
                    found.add((_pool(self._layouts.of[binding.targets[0]]), True))
                case Call(Global(name)):
                    found |= self._written[name]
                case _:
                    pass
        return frozenset(found)


def _pool(layout: Layout) -> Pool:
    assert isinstance(layout, RowLayout)
    return layout.pool
