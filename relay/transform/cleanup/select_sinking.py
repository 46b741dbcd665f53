"""Sinking of selects: tensors that branches choose are chosen again where parts of them are read.

    z = if c { yield x } else { yield y }       v = if c { a = index(x, i); yield a } else { b = index(y, i); yield b }
    v = index(z, i)

In the derivative, the element's cotangent then goes straight into that of x or y. As a cotangent of z it would be a
whole tensor each time. This is done in what will be differentiated, in loops and in functions that may be called many
times, to tensors that exist before the branch and of which nothing but parts is read. Where the condition is not a
single boolean from outside of the branch, the branch also yields the number of the arm.
"""

from __future__ import annotations

import attrs
import numpy as np

from relay.errors import Span
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Constant,
    Derivative,
    Expr,
    If,
    Loop,
    Match,
    Module,
    OpCall,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import map_blocks, map_branch
from relay.ir.traverse import blocks, bodies, bound_variables, operands, terminator_operands
from relay.ir.types import BOOL, INT32, TensorType, scalar
from relay.operator import Emitter, Pattern, lookup
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.analysis.loop_analysis import elements, exceeds
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import pass_about


@pass_about(Derivative)
def sink_reads(module: Module) -> Module:
    """The module, if something in it is to be differentiated, with choices of tensors made where they are read."""
    graph = call_graph(module)
    repeated = {n for c in strong_components(graph) for n in c if len(c) > 1 or n in graph[n]}

    def change(function_name: str, body: Block) -> Block:
        choices = _SelectAnalysis()
        choices.block(body, function_name in repeated)
        choices.settle()
        return _SelectSinking(choices.found).block(body) if choices.found else body

    return map_bodies(module, lambda function: change(function.name, function.body))


@attrs.define
class _Select:
    """A tensor that a branch chooses: what it is in each arm that yields, by the arms' numbers."""

    branch: If | Match
    alternatives: dict[int, Atom]
    uses: list[Var | None]  # what its uses bind if they are reads of a part or choices, None for others
    which: Var
    condition: Atom | None  # true in the first of two arms


class _SelectAnalysis:
    """The tensors of one function that branches in loops choose among variables from outside."""

    def __init__(self) -> None:
        self.found: dict[Var, _Select] = {}

    def block(self, block: Block, repeated: bool) -> None:
        for binding in block.bindings:
            value = binding.value
            self._count(binding)
            for inner in blocks(value):
                self.block(inner, repeated or isinstance(value, Loop))
            if repeated and isinstance(value, If | Match):
                self._branch(binding, value)
        self._end(block.terminator)

    def _branch(self, binding: Binding, branch: If | Match) -> None:
        ends = {k: b.terminator for k, b in enumerate(bodies(branch)) if isinstance(b.terminator, Yield)}
        if len(ends) < 2:
            return
        inside = _bound_in(branch)
        which = Var("which", scalar(INT32))
        for position, target in enumerate(binding.targets):
            if not isinstance(target.type, TensorType) or not target.type.rank:
                continue
            alternatives = {k: end.values[position] for k, end in ends.items()}
            if not any(a in inside for a in alternatives.values() if isinstance(a, Var)):
                self.found[target] = _Select(branch, alternatives, [], which, _condition(branch, inside))

    def _count(self, binding: Binding) -> None:
        for position, atom in enumerate(operands(binding.value)):
            if isinstance(atom, Var) and atom in self.found:
                reads = isinstance(binding.value, OpCall) and _reads_part(binding.value, position, binding.targets[0])
                self.found[atom].uses.append(binding.targets[0] if reads else None)

    def _end(self, terminator: Terminator) -> None:
        for atom in terminator_operands(terminator):
            if isinstance(atom, Var) and atom in self.found:
                self.found[atom].uses.append(None)

    def settle(self) -> None:
        """Keep those that are read in parts only, where a kept one as alternative of another counts as such."""
        passed: dict[Var, int] = {}
        for choice in self.found.values():
            for atom in choice.alternatives.values():
                if isinstance(atom, Var):
                    passed[atom] = passed.get(atom, 0) + 1
        changed = True
        while changed:
            changed = False
            for var, choice in list(self.found.items()):
                if sum(use is None for use in choice.uses) > passed.get(var, 0):
                    del self.found[var]
                    for atom in choice.alternatives.values():
                        if isinstance(atom, Var) and atom in passed:
                            passed[atom] -= 1
                    changed = True


def _bound_in(branch: If | Match) -> set[Var]:
    found = set(bound_variables(branch))
    pending = list(blocks(branch))
    while pending:
        for binding in pending.pop().bindings:
            found.update(binding.targets)
            found.update(bound_variables(binding.value))
            pending += blocks(binding.value)
    return found


def _condition(branch: If | Match, inside: set[Var]) -> Atom | None:
    """The condition of a branch with two arms, if it is known outside."""
    if not isinstance(branch, If) or len(branch.arms) != 1:
        return None
    test = branch.arms[0].condition
    assert isinstance(test.terminator, Yield)
    value = test.terminator.values[0]
    known = isinstance(value, Var) and value.type == scalar(BOOL) and value not in inside
    return value if known else None


def _reads_part(call: OpCall, position: int, target: Var) -> bool:
    """True if a call takes some of the elements of an operand."""
    operator = lookup(call.operator)
    if operator.pattern is not Pattern.INJECTIVE or operator.algebra.linear != (position,):
        return False
    whole, part = elements(call.arguments[position]), elements(target)
    return whole is not None and part is not None and exceeds(whole, part)


class _SelectSinking:
    def __init__(self, choices: dict[Var, _Select]) -> None:
        self.choices = choices
        self.numbered = {c.which for c in choices.values() if c.condition is None}

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, OpCall) and any(a in self.choices for a in value.arguments):
                bindings += self._read(value, binding.targets[0])
                continue
            made: Expr = map_blocks(value, self.block)
            targets = binding.targets
            if any(t in self.choices for t in targets):
                assert isinstance(made, If | Match)
                made, targets = self._remove_sunk_targets(made, targets)
                if not targets and not any(b.bindings for b in blocks(made)):
                    continue
            bindings.append(Binding(targets, made))
        return Block(tuple(bindings), block.terminator)

    def _remove_sunk_targets(self, branch: If | Match, targets: tuple[Var, ...]) -> tuple[If | Match, tuple[Var, ...]]:
        """The branch without the tensors that are chosen elsewhere, with the number of its arm where that is asked."""
        choice = next(self.choices[t] for t in targets if t in self.choices)
        kept = [i for i, t in enumerate(targets) if t not in self.choices]
        numbered = choice.which in self.numbered
        count = -1

        def arm(block: Block) -> Block:
            nonlocal count
            count += 1
            end = block.terminator
            if not isinstance(end, Yield):
                return block
            number = [Constant(np.asarray(count, np.int32))] if numbered else []
            return Block(block.bindings, Yield((*(end.values[i] for i in kept), *number), end.span))

        changed = map_branch(branch, arm)
        return changed, (*(targets[i] for i in kept), *([choice.which] if numbered else []))

    def _read(self, call: OpCall, target: Var) -> list[Binding]:
        position, tensor = next((i, a) for i, a in enumerate(call.arguments) if a in self.choices)
        assert isinstance(tensor, Var)
        choice = self.choices[tensor]

        def read(atom: Atom) -> Block:
            inner = Var(target.name, target.type, target.span)
            arguments = (*call.arguments[:position], atom, *call.arguments[position + 1 :])
            again = OpCall(call.operator, arguments, call.attributes, call.span)
            if any(a in self.choices for a in arguments):
                return Block(tuple(self._read(again, inner)), Yield((inner,)))
            return Block((Binding((inner,), again),), Yield((inner,)))

        *first, (_, last) = choice.alternatives.items()
        arms = [Arm(_test(choice, number, call.span), read(atom)) for number, atom in first]
        return [Binding((target,), If(tuple(arms), read(last), call.span))]


def _test(choice: _Select, number: int, span: Span | None) -> Block:
    """The test for this arm."""
    if choice.condition is not None:
        return Block((), Yield((choice.condition,)))
    test = Emitter(span)
    taken = (test.value(choice.which) == number).atom
    return Block(tuple(test.bindings), Yield((taken,)))
