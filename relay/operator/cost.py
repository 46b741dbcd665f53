"""The cost of kernels: floating-point operations, and the bytes that are moved, by the operators' definitions.

    flops   the sum of the operators' own: 1 for each element of an elementwise one, `POLYNOMIAL` for each of an
    elementary
            function, 2 m n k of a product, the operand's elements of a reduction; nothing for moved data and integers
    bytes   what the kernel reads of its operands and writes of its results; what passes from one of its operators to
            another stays in registers and caches, and counts as nothing

An operand is read once. Numbers, tensors of one element, stay in registers and count as no bytes. One that is read at
some places only, as a table by its rows, counts as the elements that are taken; of a result that is written over an
operand, only the part that changes. Sizes are given as numbers by the caller, so the same code counts programs of
symbolic sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs

from relay.ir.dims import Dim
from relay.ir.expr import Atom, Binding, Constant, OpCall, Var
from relay.ir.types import BaseType, TensorType
from relay.operator.definition import Operator, Pattern
from relay.operator.registry import lookup

POLYNOMIAL = 30
"""The operations of an element of exp, tanh and the like: their polynomials take 25 (exp, tanh) to 60 (sin, log1p)."""

Numbers = Callable[[Dim], int]
"""A function from a size to a number."""


@attrs.frozen
class Cost:
    """Floating-point operations; bytes read and written; and elements computed or moved, which tell what integers and
    moved data take."""

    flops: int = 0
    bytes: int = 0
    elements: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes, self.elements + other.elements)

    @property
    def weight(self) -> int:
        """By which the time of a kernel is divided among its operators."""
        return max(self.flops, self.elements)


def kernel_cost(bindings: Sequence[Binding], outputs: Sequence[Var], number: Numbers) -> tuple[Cost, list[Cost]]:
    """The cost of calls that run as one kernel with these results, and of each call as part of it. Of what only a slice
    is taken inside, only that is computed."""
    wanted = _wanted_elements(bindings, outputs, number)
    read: dict[Atom, int] = {}
    parts: list[Cost] = []
    for binding in bindings:
        call, target = binding.value, binding.targets[0]
        assert isinstance(call, OpCall)
        operator, result = lookup(call.operator), _sized(target, number)
        types = [_sized(a, number) for a in _tensors(call)]
        updated = _updated(operator)
        elements = wanted[target]
        for position, (atom, type_) in enumerate(zip(_tensors(call), types, strict=True)):
            if atom not in wanted and position != updated and (size := _elements(type_)) > 1:
                taken = min(size, elements) if operator.pattern in _ELEMENT_BY_ELEMENT else size
                read[atom] = max(read.get(atom, 0), taken * type_.dtype.itemsize)
        written = elements * result.dtype.itemsize if target in outputs and _elements(result) > 1 else 0
        if updated is not None and operator.algebra.accumulates is not None:
            written *= 2  # what is added to is read
        busy = elements
        if operator.pattern in (Pattern.REDUCTION, Pattern.OPAQUE):
            busy = max([elements, *(_elements(t) for i, t in enumerate(types) if i != updated)])
        flops = _flops(operator, types, result, elements)
        parts.append(Cost(flops, written, busy))
    return sum(parts, Cost(0, sum(read.values()), 0)), parts


_ELEMENT_BY_ELEMENT = (Pattern.ELEMENTWISE, Pattern.BROADCAST, Pattern.INJECTIVE)


def _wanted_elements(bindings: Sequence[Binding], outputs: Sequence[Var], number: Numbers) -> dict[Atom, int]:
    """The number of elements of each call's result that are computed."""
    wanted: dict[Atom, int] = {binding.targets[0]: 0 for binding in bindings}
    for binding in reversed(bindings):
        call, target = binding.value, binding.targets[0]
        assert isinstance(call, OpCall)
        operator, size = lookup(call.operator), _elements(_sized(target, number))
        updated = _updated(operator)
        if target in outputs:
            wanted[target] = size
        if updated is not None:  # the part that changes is as large as what is written there
            others = (_elements(_sized(a, number)) for i, a in enumerate(_tensors(call)) if i != updated)
            wanted[target] = min(size, max(others, default=size))
        for atom in _tensors(call):
            if atom in wanted:
                whole = _elements(_sized(atom, number))
                taken = min(whole, wanted[target]) if operator.pattern in _ELEMENT_BY_ELEMENT else whole
                wanted[atom] = max(wanted[atom], taken)
    return wanted


def _tensors(call: OpCall) -> list[Var | Constant]:
    return [atom for atom in call.arguments if isinstance(atom, Var | Constant)]


def _updated(operator: Operator) -> int | None:
    """The position of the operand that the result is written over, if there is one."""
    return operator.memory.in_place.operand if operator.memory.in_place is not None else None


def _flops(operator: Operator, types: Sequence[TensorType], result: TensorType, elements: int) -> int:
    """The operations of a call on tensors of these types, which computes this many elements of the result."""
    if operator.memory.fill is not None:
        return 0
    if operator.memory.in_place is not None:
        return elements if operator.algebra.accumulates is not None and result.dtype.kind in "fV" else 0
    found = operator.flops(types, result) * elements // max(_elements(result), 1)
    is_elementwise = operator.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST)
    return found * POLYNOMIAL if is_elementwise and operator.numerics.expensive_to_recompute else found


def _sized(atom: Var | Constant, number: Numbers) -> TensorType:
    """The type of a tensor, its sizes as numbers."""
    type_ = atom.type
    assert isinstance(type_, TensorType) and isinstance(type_.base, BaseType)
    return TensorType(type_.base, tuple(number(dim) for dim in type_.shape))


def _elements(type_: TensorType) -> int:
    return math.prod(type_.dims)


__all__ = ["POLYNOMIAL", "Cost", "kernel_cost"]
