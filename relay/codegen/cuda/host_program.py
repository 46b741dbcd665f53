"""The host program: a core program whose control flow the host walks through, and whose operators are kernels.

Here it is made: the kernels of each block, and the variables that are of no more use after each binding. `execution`
runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from relay.codegen.cuda.attention_groups import with_attention
from relay.codegen.cuda.launches import GroupKernels, HostBlock, Launch
from relay.errors import CompileError, InternalError, Span
from relay.ir.analysis.liveness import Liveness
from relay.ir.expr import Block, Function, If, Loop, Module, OpCall, Var
from relay.ir.sizes.facts import assume_facts
from relay.ir.traverse import blocks, operands, terminator_operands, walk
from relay.operator import lookup
from relay.transform.fusion.fusion_groups import FusionGroup, plan

NOT_YET = "docs/gpu.md lists what the target 'cuda' does not have; leave target= out for the processor"


@attrs.frozen(eq=False)
class HostProgram:
    """A program, what the host needs of its blocks, and its different kernels."""

    module: Module
    blocks: Mapping[Block, HostBlock]
    launches: Sequence[Launch]

    @property
    def has_conditions(self) -> bool:
        """True if some of it may depend on values: then it has the kernel of conditional nodes."""
        return any(isinstance(b.value, If) for block in self.blocks for b in block.bindings)


def host_program(module: Module) -> HostProgram:
    """The program of an optimized core. Raises CompileError for what the target does not have. The caller holds
    `locks.compiling`."""
    from relay.codegen.cuda.kernels import DeviceKernels
    from relay.codegen.cuda.persistent.regions import with_regions

    kernels = DeviceKernels()
    plans: dict[Block, dict[int, FusionGroup]] = {}

    def groups(block: Block) -> dict[int, GroupKernels]:
        ordinary, found = with_attention(block, plan(block), kernels)
        plans[block] = ordinary
        return {at: found[at] if at in found else kernels.group(ordinary[at]) for at in sorted({*ordinary, *found})}

    with assume_facts(module.where):
        found = host_blocks(module, groups)
        functions = [function.body for function in module.functions.values() if isinstance(function, Function)]
        found = with_regions(found, plans, functions)
    launches = {n.name: n for b in found.values() for group in b.launched for n in group.all_launches}
    return HostProgram(module, found, tuple(launches.values()))


def host_blocks(module: Module, groups: object) -> dict[Block, HostBlock]:
    """All blocks as the host runs them. `groups` gives those of a block."""
    assert callable(groups)
    made: dict[Block, HostBlock] = {}
    for function in module.functions.values():
        if not isinstance(function, Function):
            raise InternalError(f"{function} has not been derived before code generation")
        liveness = Liveness(function, lambda v: (v,))
        pending: list[tuple[Block, frozenset[Var]]] = [(function.body, frozenset())]
        while pending:
            block, held = pending.pop()
            _refuse(block)
            found = groups(block)
            made[block] = _host_block(block, found, liveness, held)
            later = set(held)
            for at in range(len(block.bindings) - 1, -1, -1):
                parts = blocks(block.bindings[at].value)
                if parts:
                    pending += ((part, frozenset(later)) for part in parts)
                if at in found:
                    later.update(found[at].read)
    return made


def all_blocks(block: Block) -> list[Block]:
    """A block and those in it, in the order of the text."""
    found = [block]
    for binding in walk(block):
        found += blocks(binding.value)
    return found


def _host_block(
    block: Block, groups: Mapping[int, GroupKernels], liveness: Liveness[Var], held: frozenset[Var]
) -> HostBlock:
    """A variable is dead after the last binding that reads it, here or in a block inside, unless what comes
    after the block reads it. Operators read where their group runs, perhaps after blocks that come after them: what
    groups around this block will read is `held`."""
    places: dict[Var, int] = {}
    for at, binding in enumerate(block.bindings):
        value = binding.value
        if at in groups:
            places.update((variable, at) for variable in groups[at].read)
        if not isinstance(value, OpCall):
            places.update((atom, at) for atom in operands(value) if isinstance(atom, Var))
        for part in blocks(value):
            places.update((variable, at) for variable in liveness.before[part])
        places.update((target, at) for target in binding.targets)
    end = liveness.keys_of(terminator_operands(block.terminator))
    kept = liveness.leading[block] | end | held
    last: list[list[Var]] = [[] for _ in block.bindings]
    for variable, at in places.items():
        if variable not in kept:
            last[at].append(variable)
    carried = {}
    for at, binding in enumerate(block.bindings):
        if isinstance(binding.value, Loop):
            initial = {atom for atom in binding.value.initial if isinstance(atom, Var)}
            carried[at] = tuple(initial & {*last[at]} - liveness.before[binding.value.body])
    return HostBlock(groups, tuple(map(tuple, last)), tuple(end - liveness.leading[block] - held), carried)


def _refuse(block: Block) -> None:
    """Raise CompileError for an operator that the target does not have."""
    for binding in block.bindings:
        value = binding.value
        if isinstance(value, OpCall) and lookup(value.operator).compute is None:
            span: Span | None = value.span
            raise CompileError(f"{value.operator} runs in Python, not on the target 'cuda'", span, help=NOT_YET)


__all__ = ["NOT_YET", "HostBlock", "HostProgram", "all_blocks", "host_blocks", "host_program"]
