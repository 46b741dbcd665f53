"""Elementwise operator calls: each element of a result depends on the same element of the operands.

e = exp(x); y = tanh(e); z = squeeze(y)        loops over them may be cut into blocks anywhere
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.ir.dims import product
from relay.ir.expr import Atom, Binding, Constant, OpCall, Var
from relay.ir.sizes.facts import facts
from relay.ir.types import BFLOAT16, BOOL, Shape, TensorType
from relay.operator import IndexKind, Pattern, lookup

_ARITHMETIC = (Pattern.ELEMENTWISE, Pattern.BROADCAST)


def are_flat(bindings: Sequence[Binding]) -> bool:
    """True if calls go over the same elements in the same order, in machine numbers."""
    space = _axes(bindings[0].targets[0])
    return space is not None and all(_is_flat(binding, space) for binding in bindings)


def _is_flat(binding: Binding, space: Shape) -> bool:
    call, (target,) = binding.value, binding.targets
    assert isinstance(call, OpCall)
    operator = lookup(call.operator)
    if operator.compute is None or operator.memory.uninitialized or operator.memory.in_place is not None:
        return False
    if not call.arguments:
        return operator.memory.constant is not None and _axes(target) in (space, ())
    if operator.pattern not in _ARITHMETIC and operator.indexing.kind is not IndexKind.RESHAPE:
        return False
    return _axes(target) == space and all(_axes(atom) == space or _is_single(atom) for atom in call.arguments)


def _axes(atom: Atom) -> Shape | None:
    """The extents of a tensor of machine numbers that are not 1."""
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    if not isinstance(type_, TensorType) or type_.base == BFLOAT16:
        return None
    return tuple(dim for dim in type_.shape if dim != 1)


def _is_single(atom: Atom) -> bool:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    return isinstance(type_, TensorType) and facts().at_least(1, product(type_.shape)) is True


def is_number(variable: Var) -> bool:
    """True if a tensor's elements are numbers that vectors hold."""
    return isinstance(variable.type, TensorType) and variable.type.base not in (BOOL, BFLOAT16)
