"""Constant folding: operator calls on constants are computed with the operator's reference.

Calls without operands (`zeros`, `arange`) stay, since a kernel makes their result faster than it reads it, and so do
copies of them to larger shapes; results computed from them become constants.
"""

from __future__ import annotations

import math

import numpy as np

from relay.errors import RelayError
from relay.ir.dims import DimExpr, TypeId
from relay.ir.expr import Atom, AttributeValue, Binding, Block, Constant, Module, OpCall, Terminator, Var
from relay.ir.rebuild import map_parts, map_terminator, rebind, rebuild_block
from relay.ir.types import TensorType, Type
from relay.operator import Pattern, lookup
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import module_pass

LARGEST = 8 * 1024
"""The most bytes that a folded constant may have."""

LARGEST_GROWN = 16
"""The most elements that one may have which is larger than the operands and made of them without arithmetic, or is the
same everywhere: a kernel fills a tensor faster than it reads one."""


@module_pass
def fold_constants(module: Module, max_size: int = LARGEST, made: bool = False) -> Module:
    """The module with calls on constants computed, but none that has a requirement on its operands or a result of more
    than `max_size` bytes. With `made` also what is made in the program, as `zeros`, `ones` and `arange` do, and
    everything of constants, even if a kernel makes it faster than it reads it."""
    return map_bodies(module, lambda function: _ConstantFolding(max_size, made).block(function.body))


def folded_constant(call: OpCall, type_: Type | None, max_size: int = LARGEST) -> Constant | None:
    """The constant that an operator call on constants is; None if it is none, too large, or may fail."""
    if not call.arguments:
        return None
    value = _evaluate_call(call, type_, max_size)
    return value if value is not None and _is_worth_reading(call, value) else None


def _evaluate_call(call: OpCall, type_: Type | None, max_size: int) -> Constant | None:
    """The result of a call of constants, or without operands; None if it has more bytes, or may fail."""
    operator = lookup(call.operator)
    if operator.requirements or operator.external is not None or operator.memory.uninitialized:
        return None
    if operator.batching.collective:
        return None
    if not isinstance(type_, TensorType) or not all(isinstance(d, int) for d in type_.shape):
        return None
    if math.prod(type_.dims) * type_.dtype.itemsize > max_size or any(map(_has_dims, call.attributes.values())):
        return None
    if operator.memory.constant is not None:
        return Constant(np.full(type_.dims, operator.memory.constant, type_.dtype), call.span)
    values = [a.value for a in call.arguments if isinstance(a, Constant)]
    if len(values) != len(call.arguments):
        return None
    try:
        return Constant(operator.evaluate(values, call.attributes), call.span)
    except (RelayError, ArithmeticError, ValueError):
        return None  # what is wrong is said at run time, where it happens


def _has_dims(value: AttributeValue) -> bool:
    """True if an attribute depends on sizes that are known only at a call or at run time."""
    return any(map(_has_dims, value)) if isinstance(value, tuple) else isinstance(value, TypeId | DimExpr)


def _is_worth_reading(call: OpCall, result: Constant) -> bool:
    """True if it is faster to read a result from memory than to compute it again."""
    array = result.value
    if array.size <= max([LARGEST_GROWN, *(a.value.size for a in call.arguments if isinstance(a, Constant))]):
        return True
    if lookup(call.operator).pattern is Pattern.INJECTIVE or array.nbytes > LARGEST:
        return False
    return not np.array_equal(array, np.broadcast_to(array.flat[0], array.shape), equal_nan=array.dtype.kind == "f")


class _ConstantFolding:
    def __init__(self, max_size: int, everything: bool) -> None:
        self.max_size = max_size
        self.everything = everything
        self.known: dict[Var, Atom] = {}
        self.made: dict[Var, OpCall | Constant | None] = {}  # what is made of nothing: its call, or what that gave

    def atom(self, atom: Atom) -> Atom:
        return self.known.get(atom, atom) if isinstance(atom, Var) else atom

    def terminator(self, terminator: Terminator) -> Terminator:
        return map_terminator(terminator, self.atom)

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            value = map_parts(binding.value, atom=self.atom, block=self.block)
            if isinstance(value, OpCall):
                constant = self.fold_call(binding.targets[0], value)
                if constant is not None:
                    self.known[binding.targets[0]] = constant
                    continue
            bindings.append(rebind(binding, value))
        return rebuild_block(block, bindings, self.terminator(block.terminator))

    def fold_call(self, target: Var, call: OpCall) -> Constant | None:
        """The constant that equals a call, or None. Results of constants that do not become constants are kept for
        later calls. What is none, but computed of constants, is kept for those that use it."""
        if self.everything and not call.arguments:
            return _evaluate_call(call, target.type, self.max_size)
        if not call.arguments or lookup(call.operator).memory.constant is not None:
            self.made[target] = call
            return None
        arguments = [self.constant(a) for a in call.arguments]
        if not all(isinstance(a, Constant) for a in arguments):
            return None
        whole = OpCall(call.operator, tuple(arguments), call.attributes, call.span)
        value = _evaluate_call(whole, target.type, self.max_size)
        if value is not None and not self.everything and not _is_worth_reading(call, value):
            self.made[target] = value
            return None
        return value

    def constant(self, atom: Atom) -> Atom:
        """An atom's value, if it is known."""
        if not isinstance(atom, Var) or atom not in self.made:
            return atom
        found = self.made[atom]
        if isinstance(found, OpCall):
            found = self.made[atom] = _evaluate_call(found, atom.type, self.max_size)
        return atom if found is None else found
