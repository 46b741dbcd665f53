"""Operands of joining operators that are computed where the result will stand, so that no kernel copies them.

    c = concatenate(a, b, axis=0)       a and b are computed in their parts of c's memory

The parts lie one after another if the axes before the joined one have one element (`Memory.joins`). An operand goes
there if its block makes it in memory of its own: not an argument, a constant, a part of a data structure, what shares
memory with other variables (`aliasing`), or what is wanted elsewhere. Such ones are copied, unless that may take longer
than in a kernel: then the kernel joins all of them. Nobody reads the parts before the result is complete but as the
operands that they are, and nobody writes the result again, which shares memory with no other variable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import attrs

from relay.codegen.kernels.loops import PARALLEL_WORK
from relay.codegen.tvm import tir
from relay.ir.dims import ANY, Dim, add, product
from relay.ir.expr import Atom, Block, Call, Constant, If, Loop, Match, OpCall, Var
from relay.ir.sizes.data_dependent import data_dependent_dims_in
from relay.ir.sizes.facts import facts
from relay.ir.types import BaseType, TensorType
from relay.operator import lookup
from relay.transform.fusion.fusion_calls import bytes_of, shape_of
from relay.transform.fusion.fusion_groups import FusionGroup


@attrs.frozen(eq=False)
class JoinedOperands:
    """A call that joins operands: its result, each operand with the byte where its part begins, and those that are
    computed there."""

    result: Var
    parts: Sequence[tuple[Var | Constant, Dim]]
    computed: Collection[Var]


def joined_operands(
    block: Block,
    groups: Sequence[FusionGroup | None],
    wanted: Collection[Var],
    shared: Collection[Var],
    threads: int,
) -> Iterator[JoinedOperands]:
    """The joining calls of a block some of whose operands are computed in the result, the last one first. `groups` are
    those of the block in the order in which they run. Operands that are `wanted` elsewhere stay there, and what is
    in `shared` memory is neither a result nor such an operand."""
    made = {target: binding.value for binding in block.bindings for target in binding.targets}
    taken = {*wanted, *shared}
    for group in reversed(groups):
        parts = None if group is None else _parts(group)
        if group is None or parts is None or group.outputs[0] in shared:
            continue
        computed = {
            atom
            for atom, _ in parts
            if isinstance(atom, Var)
            and atom not in taken
            and isinstance(made.get(atom), OpCall | Call | If | Match | Loop)
            and _is_buffer(atom)
        }
        if computed and _copies_little(parts, computed, threads):
            taken |= computed
            yield JoinedOperands(group.outputs[0], parts, computed)


def _parts(group: FusionGroup) -> list[tuple[Var | Constant, Dim]] | None:
    """The operands that a group does nothing with but to join them, with the bytes before their parts; None if the
    parts do not lie one after another."""
    call, result = group.bindings[-1].value, group.outputs[0]
    assert isinstance(call, OpCall)
    name = lookup(call.operator).memory.joins
    if name is None or len(group.bindings) > 1 or not _is_buffer(result):
        return None
    shape, axis = shape_of(result), call.attributes[name]
    assert isinstance(axis, int)
    if any(facts().equal(dim, 1) is not True for dim in shape[: axis % len(shape)]):
        return None
    parts: list[tuple[Var | Constant, Dim]] = []
    begin: Dim = 0
    for atom in call.arguments:
        assert isinstance(atom, Var | Constant)
        parts.append((atom, begin))
        begin = add(begin, bytes_of(atom))
    return parts


def _copies_little(parts: Sequence[tuple[Atom, Dim]], computed: Collection[Atom], threads: int) -> bool:
    """True if the operands that are copied take no longer than in a kernel, which would use all threads."""
    first: set[Atom] = set()
    copied: Dim = 0
    saved: Dim = 0
    for atom, _ in parts:
        if atom in computed and atom not in first:
            saved = add(saved, bytes_of(atom))
        else:
            copied = add(copied, bytes_of(atom))
        first.add(atom)
    few = threads == 1 or facts().at_least(PARALLEL_WORK, copied) is True
    return few and facts().at_least(saved, copied) is True


def _is_buffer(variable: Var) -> bool:
    """True if a variable is a tensor in memory, whose size is known when its function starts."""
    type_ = variable.type
    if not isinstance(type_, TensorType) or not isinstance(type_.base, BaseType) or ANY in type_.shape:
        return False
    elements = product(type_.shape)
    known = not any(True for _ in data_dependent_dims_in(type_.shape))
    return known and elements != 0 and not tir.by_value(type_.base, elements)
