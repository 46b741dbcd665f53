"""The cost of kernels: floating-point operations, and the bytes that are moved, by the operators' definitions.

    flops   the sum of the operators' own: 1 for each element of an elementwise one, `POLYNOMIAL` for each of an
            elementary function, 2 m n k of a product, also of integers, the operand's elements of a reduction; nothing
            for moved data and other operators on integers
    bytes   what the kernel reads of its operands and writes of its results; what passes from one of its operators to
            another stays in registers and caches, and counts as nothing

An operand is read once. Numbers, tensors of one element, stay in registers and count as no bytes. One that is read at
some places only, as a table by its rows, counts as the elements that are taken; of a result that is written over an
operand, only the part that changes. The caller says what sizes are: numbers, or formulas of symbolic sizes, and so are
the costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from relay.ir.dims import Dim, add, divide_exactly, floor_divide, maximum, minimum, multiply, product
from relay.ir.expr import Atom, Binding, Constant, OpCall, Var
from relay.ir.types import BaseType, TensorType
from relay.operator.definition import Operator, Pattern
from relay.operator.registry import lookup

POLYNOMIAL = 30
"""The operations of an element of exp, tanh and the like: their polynomials take 25 (exp, tanh) to 60 (sin, log1p)."""

Sizes = Callable[[Dim], Dim]
"""A function from a size to a number, or to a formula of sizes that stay symbolic."""


@attrs.frozen
class Cost:
    """Floating-point operations; bytes read and written; and elements computed or moved, which tell what integers and
    moved data take."""

    flops: Dim = 0
    bytes: Dim = 0
    elements: Dim = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(add(self.flops, other.flops), add(self.bytes, other.bytes), add(self.elements, other.elements))

    @property
    def weight(self) -> Dim:
        """By which the time of a kernel is divided among its operators."""
        return maximum(self.flops, self.elements)


def kernel_cost(bindings: Sequence[Binding], outputs: Sequence[Var], size: Sizes) -> list[Cost]:
    """The cost of each of the calls that run as one kernel with these results: their sum is the kernel's. What is read
    counts at the call that reads most of it. Of what only a slice is taken inside, only that is computed."""
    wanted = _wanted_elements(bindings, outputs, size)
    read: dict[Atom, tuple[int, Dim]] = {}
    parts: list[Cost] = []
    for place, binding in enumerate(bindings):
        call, target = binding.value, binding.targets[0]
        assert isinstance(call, OpCall)
        operator, result = lookup(call.operator), _sized_type(target, size)
        types = [_sized_type(a, size) for a in _tensors(call)]
        updated = _updated_position(operator)
        elements = wanted[target]
        for position, (atom, type_) in enumerate(zip(_tensors(call), types, strict=True)):
            if atom not in wanted and position != updated and _is_array(type_):
                whole = _elements(type_)
                taken = minimum(whole, elements) if operator.pattern in _ELEMENT_BY_ELEMENT else whole
                amount = multiply(taken, type_.dtype.itemsize)
                first, before = read.get(atom, (place, 0))
                most = maximum(before, amount)
                read[atom] = (place if most != before else first, most)
        written = multiply(elements, result.dtype.itemsize) if target in outputs and _is_array(result) else 0
        if updated is not None and operator.algebra.accumulates is not None:
            written = multiply(written, 2)  # what is added to is read
        busy = elements
        if operator.pattern in (Pattern.REDUCTION, Pattern.OPAQUE):
            busy = maximum(elements, *(_elements(t) for i, t in enumerate(types) if i != updated))
        parts.append(Cost(_flops(operator, types, result, elements), written, busy))
    for place, amount in read.values():
        parts[place] += Cost(0, amount, 0)
    return parts


_ELEMENT_BY_ELEMENT = (Pattern.ELEMENTWISE, Pattern.BROADCAST, Pattern.INJECTIVE)


def _wanted_elements(bindings: Sequence[Binding], outputs: Sequence[Var], size: Sizes) -> dict[Atom, Dim]:
    """The number of elements of each call's result that are computed."""
    wanted: dict[Atom, Dim] = {binding.targets[0]: 0 for binding in bindings}
    for binding in reversed(bindings):
        call, target = binding.value, binding.targets[0]
        assert isinstance(call, OpCall)
        operator, whole = lookup(call.operator), _elements(_sized_type(target, size))
        updated = _updated_position(operator)
        if target in outputs:
            wanted[target] = whole
        if updated is not None:  # the part that changes is as large as what is written there
            others = [_elements(_sized_type(a, size)) for i, a in enumerate(_tensors(call)) if i != updated]
            wanted[target] = minimum(whole, maximum(*others)) if others else whole
        for atom in _tensors(call):
            if atom in wanted:
                all_ = _elements(_sized_type(atom, size))
                taken = minimum(all_, wanted[target]) if operator.pattern in _ELEMENT_BY_ELEMENT else all_
                wanted[atom] = maximum(wanted[atom], taken)
    return wanted


def _tensors(call: OpCall) -> list[Var | Constant]:
    return [atom for atom in call.arguments if isinstance(atom, Var | Constant)]


def _updated_position(operator: Operator) -> int | None:
    """The position of the operand that the result is written over, if there is one."""
    return operator.memory.in_place.operand if operator.memory.in_place is not None else None


def _flops(operator: Operator, types: Sequence[TensorType], result: TensorType, elements: Dim) -> Dim:
    """The operations of a call on tensors of these types, which computes this many elements of the result."""
    if operator.memory.fill is not None:
        return 0
    if operator.memory.in_place is not None:
        return elements if operator.algebra.accumulates is not None and result.dtype.kind in "fV" else 0
    found, whole = operator.flop_count(types, result), _elements(result)
    if elements != whole:
        part, whole = multiply(found, elements), maximum(whole, 1)
        exact = divide_exactly(part, whole)
        found = floor_divide(part, whole) if exact is None else exact
    is_elementwise = operator.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST)
    return multiply(found, POLYNOMIAL) if is_elementwise and operator.numerics.expensive_to_recompute else found


def _sized_type(atom: Var | Constant, size: Sizes) -> TensorType:
    """The type of a tensor, its sizes as the caller says."""
    type_ = atom.type
    assert isinstance(type_, TensorType) and isinstance(type_.base, BaseType)
    return TensorType(type_.base, tuple(size(dim) for dim in type_.shape))


def _elements(type_: TensorType) -> Dim:
    return product(type_.shape)


def _is_array(type_: TensorType) -> bool:
    """False for one element, and for none."""
    elements = _elements(type_)
    return not isinstance(elements, int) or elements > 1


__all__ = ["POLYNOMIAL", "Cost", "kernel_cost"]
