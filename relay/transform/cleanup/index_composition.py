"""Index composition: elements that are read through rows are read from the whole tensor.

    r = index(x, i); v = index(r, j)        v = gather_nd(x, stack(i, j))

This is done in what will be differentiated: the cotangent of an element then goes straight into that of the tensor. On
the way through the row it would be a whole row each time.
"""

from __future__ import annotations

from relay.ir.expr import Atom, Binding, Block, Derivative, Expr, Module, OpCall, Var
from relay.ir.rebuild import map_blocks, rebind, rebuild_block
from relay.ir.types import INT64
from relay.operator import Emitter, IndexKind, lookup
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import pass_about


@pass_about(Derivative)
def compose_indices(module: Module) -> Module:
    """The module, if something in it is to be differentiated, with elements of rows read in one step."""
    return map_bodies(module, lambda function: _IndexComposition().block(function.body))


class _IndexComposition:
    def __init__(self) -> None:
        self.rows: dict[Atom, tuple[Atom, tuple[Atom, ...]]] = {}  # the tensor and indices that a row is read from

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            value: Expr = binding.value
            if isinstance(value, OpCall) and lookup(value.operator).indexing.kind is IndexKind.ROW:
                bindings += self._read(value, binding.targets[0])
            else:
                bindings.append(rebind(binding, map_blocks(value, self.block)))
        return rebuild_block(block, bindings, block.terminator)

    def _read(self, call: OpCall, target: Var) -> list[Binding]:
        row, index = call.arguments
        whole, before = self.rows.get(row, (row, ()))
        indices = (*before, index)
        self.rows[target] = (whole, indices)
        if not before:
            return [Binding((target,), call)]
        emitter = Emitter(call.span)
        wide = [emitter.value(i).op("cast", dtype=INT64) for i in indices]
        place = emitter.call(lookup("stack"), wide, {"axis": 0}).atom
        return [*emitter.bindings, Binding((target,), OpCall("gather_nd", (whole, place), {}, call.span))]
