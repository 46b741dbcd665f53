"""Loop unrolling: tiny loops of a static trip count become their rounds.

loop for i < 2 (p = a) { q = f(p, i); next (q) }       q = f(a, 0); q' = f(q, 1)
"""

from __future__ import annotations

import numpy as np

from relay.ir.expr import Atom, Binding, Block, Constant, Expr, Loop, Module, Next, Var
from relay.ir.rebuild import copy_block, map_blocks
from relay.ir.sizes.data_dependent import bound_dims
from relay.ir.traverse import count_bindings
from relay.transform.analysis.loop_analysis import rounds
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import pass_about

MAX_BINDINGS = 32
"""A loop is unrolled if all its rounds together have at most this many bindings."""


@pass_about(Loop)
def unroll_loops(module: Module, max_bindings: int = MAX_BINDINGS) -> Module:
    """The module without counted loops whose rounds have at most `max_bindings` bindings together."""
    return map_bodies(module, lambda function: _block(function.body, max_bindings))


def _block(block: Block, limit: int) -> Block:
    bindings: list[Binding] = []
    for binding in block.bindings:
        value: Expr = map_blocks(binding.value, lambda inner: _block(inner, limit))
        if isinstance(value, Loop) and isinstance(value.body.terminator, Next):
            count = rounds(value) if value.counter is None or not value.counter.axis else None
            if bound_dims(value.body):
                count = None  # functions that are called may be given these sizes
            if count is not None and count * max(1, count_bindings(value.body)) <= limit:
                bindings += _rounds(value, count, binding.targets)
                continue
        bindings.append(Binding(binding.targets, value))
    return Block(tuple(bindings), block.terminator)


def _rounds(loop: Loop, count: int, targets: tuple[Var, ...]) -> list[Binding]:
    """The bindings of all rounds, and the loop's targets bound to the last one's values."""
    assert loop.counter is not None and isinstance(loop.counter.count, Constant)
    dtype = loop.counter.count.value.dtype
    bindings: list[Binding] = []
    values: tuple[Atom, ...] = loop.initial
    for number in range(count):
        mapping: dict[Var, Atom] = dict(zip(loop.parameters, values, strict=True))
        mapping[loop.counter.index] = Constant(np.asarray(number, dtype), loop.span)
        copy = copy_block(loop.body, mapping)
        assert isinstance(copy.terminator, Next)
        bindings += copy.bindings
        values = copy.terminator.values
    return [*bindings, *(Binding((target,), value) for target, value in zip(targets, values, strict=True))]
