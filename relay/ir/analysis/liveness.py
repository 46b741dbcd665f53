"""Liveness analysis of the IR: values that are used after a binding.

    live before b = (live after b - what b defines) + what b uses
    live at the end of a block     Yield: after its construct; Next: what a round reads; Exit: after the loop it leaves

What a round reads and does not make is live until the loop has ended, whichever way it ends.

A value is named by a key: a variable itself, or what several variables have in common. What no key is asked for costs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar, assert_never

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Dead,
    Exit,
    Function,
    If,
    Lambda,
    Loop,
    LoopLabel,
    Match,
    Next,
    Var,
    Yield,
)
from relay.ir.traverse import blocks, bound_variables, free_variables, operands, terminator_operands, walk
from relay.ir.types import StackType, TupleType, Type, prune

K = TypeVar("K", bound=Hashable)


class Liveness(Generic[K]):
    """`after[block][i]` are the keys that are live after the block's binding i, `before[block]` those before the block,
    and `leading[block]` those where its terminator leads to.

    `keys` gives those of a variable, `defined` those that begin with a variable (its own, for most)."""

    def __init__(
        self,
        function: Function,
        keys: Callable[[Var], Iterable[K]],
        defined: Callable[[Var], Iterable[K]] | None = None,
    ) -> None:
        self._keys = keys
        self._defined = defined or keys
        self.after: dict[Block, list[frozenset[K]]] = {}
        self.before: dict[Block, frozenset[K]] = {}
        self.leading: dict[Block, frozenset[K]] = {}
        self._rounds: dict[LoopLabel, frozenset[K]] = {}
        self._exits: dict[LoopLabel, frozenset[K]] = {function.label: frozenset()}
        self._block(function.body, frozenset())

    def keys_of(self, atoms: Iterable[Atom]) -> frozenset[K]:
        """The keys of atoms."""
        return frozenset(k for a in atoms if isinstance(a, Var) for k in self._keys(a))

    def _live_at_target(self, block: Block, after: frozenset[K]) -> frozenset[K]:
        """The keys that are live at the target of the block's terminator: `after` for a Yield."""
        match block.terminator:
            case Yield():
                return after
            case Next(label):
                return self._rounds[label]
            case Exit(label):
                return self._exits[label]
            case Dead():
                return frozenset()
            case other:
                assert_never(other)

    def _block(self, block: Block, after: frozenset[K]) -> frozenset[K]:
        self.leading[block] = self._live_at_target(block, after)
        live = self.leading[block] | self.keys_of(terminator_operands(block.terminator))
        found: list[frozenset[K]] = []
        for binding in reversed(block.bindings):
            found.append(live)
            live = self._binding(binding, live)
        self.after[block] = found[::-1]
        self.before[block] = live
        return live

    def _binding(self, binding: Binding, after: frozenset[K]) -> frozenset[K]:
        value = binding.value
        begun = self._defined_keys(binding.targets)
        live = after - begun if begun else after
        match value:
            case If(arms, orelse):
                live = self._block(orelse, live_out := live)
                for arm in reversed(arms):
                    live |= self._block(arm.body, live_out)
                    live = self._block(arm.condition, live)
            case Match(_, match_arms):
                arm_starts = [self._block(arm.body, live) - self._defined_keys(arm.fields) for arm in match_arms]
                live = frozenset[K]().union(*arm_starts)
            case Loop(label, _, _, body):
                inside = self._read(body) - self._defined_keys(bound_variables(value))
                live = live | inside
                self._exits[label] = self._rounds[label] = live
                self._block(body, frozenset())
            case Lambda(function):
                live |= self.keys_of(free_variables(function))
            case _:
                pass
        used = self.keys_of(operands(value))
        return live | used if used else live

    def _defined_keys(self, variables: Iterable[Var]) -> frozenset[K]:
        return frozenset(k for v in variables for k in self._defined(v))

    def _read(self, body: Block) -> frozenset[K]:
        """The keys that a block reads and does not define."""
        read: set[K] = set()
        begun: set[K] = set()
        pending = [body]
        while pending:
            block = pending.pop()
            read |= self.keys_of(terminator_operands(block.terminator))
            for binding in block.bindings:
                read |= self.keys_of(operands(binding.value))
                begun |= self._defined_keys((*binding.targets, *bound_variables(binding.value)))
                if isinstance(binding.value, Lambda):
                    read |= self.keys_of(free_variables(binding.value.function))
                else:
                    pending += blocks(binding.value)
        return frozenset(read - begun)


def variables_of(function: Function) -> Iterable[Var]:
    """All variables that a function binds."""
    yield from function.parameters
    for binding in walk(function.body):
        yield from binding.targets
        yield from bound_variables(binding.value)


def holds_stack(type_: Type | None) -> bool:
    """True if a value of this type is or contains a stack."""
    match None if type_ is None else prune(type_):
        case StackType():
            return True
        case TupleType(items):
            return any(map(holds_stack, items))
        case _:
            return False
