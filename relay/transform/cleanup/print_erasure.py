"""Print erasure: programs without what they print."""

from __future__ import annotations

from relay.ir.expr import Binding, Block, Module, Print
from relay.ir.rebuild import map_blocks
from relay.transform.core.rebuilding import map_bodies


def silent(module: Module) -> Module:
    """The same program, which prints nothing; a `Print` that fails stays."""
    return map_bodies(module, lambda function: _silent(function.body))


def _silent(block: Block) -> Block:
    kept = (b for b in block.bindings if not isinstance(b.value, Print) or b.value.fails)
    return Block(tuple(Binding(b.targets, map_blocks(b.value, _silent)) for b in kept), block.terminator)
