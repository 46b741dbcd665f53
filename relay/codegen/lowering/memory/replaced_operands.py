"""Operands whose memory the result of a group of operators can take, since each element is computed from its own.

Kernels write each element of a result once, after all that it is computed from was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from relay.ir.dims import ANY, product
from relay.ir.expr import Atom, OpCall, Var
from relay.ir.traverse import operands
from relay.ir.types import TensorType
from relay.operator import Pattern, lookup
from relay.transform.analysis.loop_analysis import likely
from relay.transform.fusion.fusion_groups import FusionGroup, in_place_operands

LARGE = 1024
"""The least number of elements of an array whose copies are worth avoiding."""


def replaced_operands(
    group: FusionGroup, nodes: Mapping[Var, Var], roots: Callable[[Iterable[Atom]], frozenset[Var]]
) -> list[Var]:
    """The large operands in whose memory the only result of a group can be computed, in that of any one of them.
    `nodes` are the arrays that variables are, and `roots` gives those whose memory some atoms have."""
    last = group.bindings[-1]
    if group.outputs != last.targets or not _is_large(last.targets[0]) or in_place_operands(last):
        return []
    (target,) = last.targets
    found = []
    for atom in dict.fromkeys(a for b in group.bindings for a in operands(b.value)):
        if not isinstance(atom, Var) or atom.type != target.type or (node := nodes.get(atom)) is None:
            continue
        if each_from_its_own(group, target, lambda a, node=node: node in roots((a,))):  # type: ignore[misc]
            found.append(atom)
    return found


def _is_large(variable: Var) -> bool:
    type_ = variable.type
    assert isinstance(type_, TensorType)
    return ANY not in type_.shape and likely(product(type_.shape)) >= LARGE


def each_from_its_own(group: FusionGroup, variable: Var, reads: Callable[[Atom], bool]) -> bool:
    """True if each element of a group's result is computed from the same element of an array, and of no other, and no
    other code of the group that is computed completely reads the array. `reads` tells which atoms have its memory."""
    depends: set[Atom] = set()
    shape = _shape(variable)
    for binding in group.bindings:
        read = [a for a in operands(binding.value) if a in depends or reads(a)]
        if read:
            assert isinstance(binding.value, OpCall)
            operator = lookup(binding.value.operator)
            elementwise = operator.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST)
            if not elementwise or operator.compute is None or operator.memory.in_place is not None:
                return False
            if any(_shape(a) != shape for a in (*read, binding.targets[0])):
                return False
            (target,) = binding.targets
            if len(group.outputs) == 1 or target not in group.outputs:
                depends.add(target)
            elif target is not variable:
                return False
    return True


def _shape(atom: Atom) -> object:
    return atom.type.shape if isinstance(atom, Var) and isinstance(atom.type, TensorType) else None
