"""Constant folding: operator calls on constants are computed with the operator's reference."""

from __future__ import annotations

import math

from relay.errors import RelayError
from relay.ir.expr import Atom, Binding, Block, Constant, Module, OpCall, Terminator, Var
from relay.ir.traverse import map_parts, map_terminator, rebound, rebuilt
from relay.ir.types import TensorType, Type
from relay.operator import lookup
from relay.transform.functions import map_bodies

LARGEST = 8 * 1024
"""The most bytes that a folded constant may have."""

LARGEST_GROWN = 16
"""The most that it may have where it is larger than the operands: a kernel fills a tensor faster than it reads one."""


def fold_constants(module: Module, max_size: int = LARGEST) -> Module:
    """The module with calls on constants computed, but none that has a requirement on its operands or a result of more
    than `max_size` bytes."""
    return map_bodies(module, lambda function: _Folding(max_size).block(function.body))


def folded(call: OpCall, type_: Type | None, max_size: int = LARGEST) -> Constant | None:
    """The constant that an operator call on constants is; None if it is none, too large, or may fail."""
    values = [a.value for a in call.arguments if isinstance(a, Constant)]
    if not values or len(values) != len(call.arguments):
        return None
    if not isinstance(type_, TensorType) or not all(isinstance(d, int) for d in type_.shape):
        return None
    operator = lookup(call.operator)
    size, largest_operand = math.prod(type_.dims), max(v.size for v in values)
    if operator.requirements or operator.external is not None or size * type_.dtype.itemsize > max_size:
        return None
    if size > max(largest_operand, LARGEST_GROWN):
        return None
    try:
        return Constant(operator.evaluate(values, call.attributes), call.span)
    except (RelayError, ArithmeticError, ValueError):
        return None  # the run will say what is wrong, where it happens


class _Folding:
    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        self.known: dict[Var, Atom] = {}

    def atom(self, atom: Atom) -> Atom:
        return self.known.get(atom, atom) if isinstance(atom, Var) else atom

    def terminator(self, terminator: Terminator) -> Terminator:
        return map_terminator(terminator, self.atom)

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            value = map_parts(binding.value, atom=self.atom, block=self.block)
            if isinstance(value, OpCall):
                constant = folded(value, binding.targets[0].type, self.max_size)
                if constant is not None:
                    self.known[binding.targets[0]] = constant
                    continue
            bindings.append(rebound(binding, value))
        return rebuilt(block, bindings, self.terminator(block.terminator))
