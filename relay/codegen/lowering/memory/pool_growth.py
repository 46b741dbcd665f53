"""Pool growth analysis: the pools that may grow, and so move, or change while something is executed.

Elsewhere their rows can be read in place.
"""

from __future__ import annotations

from collections.abc import Mapping

from relay.codegen.lowering.layout import Layouts, Pool, RowLayout, StackLayout
from relay.ir.expr import Binding, Block, Call, Construct, Function, Global, RefNew, Shadow, StackPush, StackSet
from relay.ir.traverse import blocks, walk


class PoolGrowth:
    """Answers for one module."""

    def __init__(self, functions: Mapping[str, Function], layouts: Layouts) -> None:
        self._layouts = layouts
        self._of_function: dict[str, frozenset[Pool]] = dict.fromkeys(functions, frozenset())
        self._after: dict[Block, list[frozenset[Pool]]] = {}
        changed = True
        while changed:
            changed = False
            for name, function in functions.items():
                found = frozenset().union(*(self._direct_pools(binding) for binding in walk(function.body)))
                changed |= found != self._of_function[name]
                self._of_function[name] = found

    def growing_after(self, block: Block, position: int) -> frozenset[Pool]:
        """The pools that may grow in the bindings of a block after the one at a position (-1: in all)."""
        if block not in self._after:
            found: frozenset[Pool] = frozenset()
            suffixes = [found]
            for binding in reversed(block.bindings):
                found = found | self._direct_pools(binding)
                for inner in blocks(binding.value):
                    found |= self.growing_after(inner, -1)
                suffixes.append(found)
            self._after[block] = suffixes[::-1]
        return self._after[block][position + 1]

    def _direct_pools(self, binding: Binding) -> frozenset[Pool]:
        match binding.value:
            case StackPush(stack) | StackSet(stack):
                layout = self._layouts.atom(stack)
                assert isinstance(layout, StackLayout)
                return frozenset((layout.pool,))
            case RefNew() | Shadow() | Construct():
                layout = self._layouts.of[binding.targets[0]]
                return frozenset((layout.pool,)) if isinstance(layout, RowLayout) else frozenset()
            case Call(Global(name)):
                return self._of_function[name]
            case _:
                return frozenset()
