"""Loop-invariant code motion: what is the same in every round of a loop is computed once, before it.

    loop L (p = a) { t = exp(x); .. }       t = exp(x); loop L (p = a) { .. }

An operator call moves if it cannot fail and all that it reads is bound outside of the loop; so do tuples and their
components, and sizes. Calls that save nothing stay: constants that a kernel fills in, and data that is only repeated (a
broadcast). Code in a branch moves only if this branch decides whether the loop continues.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.analysis.tail_positions import tail_branch
from relay.ir.dims import total
from relay.ir.expr import Atom, Binding, Block, Expr, Extent, Loop, MakeTuple, Module, OpCall, Project, Var
from relay.ir.rebuild import map_blocks, map_branch, rebind, rebuild_block
from relay.ir.sizes.data_dependent import bound_dims, dims_of_binding
from relay.operator import Pattern, lookup
from relay.transform.analysis.loop_analysis import bound_in, elements, exceeds, may_fail, with_body_block
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import pass_about


@pass_about(Loop)
def hoist_invariants(module: Module) -> Module:
    """The module with pure operators on what a loop does not change moved before it."""
    return map_bodies(module, lambda function: _block(function.body))


def _block(block: Block) -> Block:
    bindings: list[Binding] = []
    for binding in block.bindings:
        value: Expr = map_blocks(binding.value, _block)
        if isinstance(value, Loop) and not (value.counter is not None and value.counter.axis):
            before, value = without_invariants(value)
            bindings += before
        bindings.append(rebind(binding, value))
    return rebuild_block(block, bindings, block.terminator)


def without_invariants(loop: Loop) -> tuple[list[Binding], Loop]:
    """The bindings of a loop that may stand before it, and the loop without them."""
    hoisting = _InvariantHoisting(loop)
    body = hoisting.block(loop.body)
    return hoisting.before, with_body_block(loop, body)


class _InvariantHoisting:
    """One loop. `before` collects what moves."""

    def __init__(self, loop: Loop) -> None:
        self.inside = bound_in(loop)
        self.made = bound_dims(loop.body)  # the data-dependent sizes that each round makes
        self.before: list[Binding] = []

    def block(self, block: Block) -> Block:
        kept: list[Binding] = []
        for binding in block.bindings:
            if self._moves(binding):
                self.before.append(binding)
                self.inside.difference_update(binding.targets)
            else:
                kept.append(binding)
        branch = tail_branch(block)
        if branch is not None:
            kept[-1] = Binding((), map_branch(branch, self.block))
        return Block(tuple(kept), block.terminator)

    def _moves(self, binding: Binding) -> bool:
        if self.made and any(dim in self.made for dim in dims_of_binding(binding)):
            return False
        match binding.value:
            case Extent():
                return True
            case MakeTuple(items):
                return self._invariant(items)
            case Project(whole):
                return self._invariant((whole,))
            case OpCall() as call:
                free = self._invariant(call.arguments) and _saves(binding.targets[0], call)
                return free and not may_fail(call)
            case _:
                return False

    def _invariant(self, atoms: Sequence[Atom]) -> bool:
        return not any(isinstance(a, Var) and a in self.inside for a in atoms) and bool(atoms)


def _saves(target: Var, call: OpCall) -> bool:
    """True if it is cheaper to read the result than to compute it again."""
    operator = lookup(call.operator)
    if operator.memory.constant is not None or not any(isinstance(a, Var) for a in call.arguments):
        return False
    if operator.pattern is not Pattern.INJECTIVE:
        return True
    made = elements(target)
    return made is None or not exceeds(made, total(e for a in call.arguments if (e := elements(a)) is not None))
