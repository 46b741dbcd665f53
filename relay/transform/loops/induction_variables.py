"""Induction-variable folding: expressions of a loop's counter that are equal in all rounds become constants.

    loop for i < n { c = less(i, n); assert c "index out of range"; .. }       c becomes true

Comparisons of expressions that are linear in sizes and counters follow from the counters' bounds (`value_ranges`).
Other expressions are evaluated for all rounds if these are few enough: the operators' references are run on all values
of the counter at once. The results may decide further comparisons, so bodies are visited again until nothing is found.
"""

from __future__ import annotations

import numpy as np

from relay.ir.expr import Atom, Binding, Block, Constant, Extent, If, Loop, Module, OpCall, Var
from relay.ir.rebuild import map_parts, map_terminator, rebind, rebuild_block
from relay.transform.analysis.loop_analysis import RoundValues
from relay.transform.analysis.value_ranges import ValueRanges
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import pass_about


@pass_about(Loop, If, Extent)
def fold_induction_variables(module: Module) -> Module:
    """The module with what the counters of loops decide alone decided. Linear in its size and the numbers of rounds."""
    return map_bodies(module, lambda function: _fold_body(function.body))


def _fold_body(body: Block) -> Block:
    while True:
        folding = _InductionFolding(body)
        body = folding.block(body)
        if not folding.found:
            return body


class _InductionFolding:
    def __init__(self, body: Block) -> None:
        decided = ValueRanges(body).decided
        self.known: dict[Var, Atom] = {v: Constant(np.array(answer), v.span) for v, answer in decided.items()}
        self.around: list[RoundValues] = []
        self.found = False  # whether trying all rounds has shown something

    def atom(self, atom: Atom) -> Atom:
        return self.known.get(atom, atom) if isinstance(atom, Var) else atom

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            match binding.value:
                case OpCall() if binding.targets[0] in self.known:
                    continue
                case OpCall() as call if self.around:
                    made = map_parts(call, atom=self.atom)
                    assert isinstance(made, OpCall)
                    if self._fold_call(binding.targets[0], made):
                        continue
                    bindings.append(rebind(binding, made))
                case Loop() as loop:
                    self.around.append(RoundValues(loop))
                    bindings.append(rebind(binding, map_parts(loop, atom=self.atom, block=self.block)))
                    self.around.pop()
                case value:
                    bindings.append(rebind(binding, map_parts(value, atom=self.atom, block=self.block)))
        return rebuild_block(block, bindings, map_terminator(block.terminator, self.atom))

    def _fold_call(self, target: Var, call: OpCall) -> bool:
        for loop in self.around:
            values = loop.add(target, call)
            if values is not None and values.size and bool((values == values.flat[0]).all()):
                self.known[target] = Constant(np.array(values.flat[0], values.dtype), call.span)
                self.found = True
                return True
        return False
