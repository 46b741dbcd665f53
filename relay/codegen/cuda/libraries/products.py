"""Products for a library: groups that are one product of matrices, with what the library computes behind it.

    y = f(scale * left @ right + addend + bias)

Here left and right may be transposed, bias goes along the columns, and f is nothing or relu. Groups with anything else
have kernels of their own, which fuse all of it. Nothing here needs TVM or the library.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.ir.dims import Dim
from relay.ir.expr import Atom, Constant, OpCall, Var
from relay.ir.types import BaseType, TensorType
from relay.transform.fusion.fusion_groups import FusionGroup

LEAST_OPERATIONS = 1 << 24
"""Multiplications from which a library is faster than the group's own kernels, which start as one."""

LEAST_SIZE = 64
"""Rows, columns and terms, each: a library's tiles would be empty for less."""


@attrs.frozen
class LibraryProduct:
    """A product of `rows` x `terms` by `terms` x `columns`, in one dtype, added up in float32 or float64. The operands
    are positions among the group's; `scale` is a factor of the product, before anything is added."""

    dtype: str
    left: int
    right: int
    left_transposed: bool
    right_transposed: bool
    rows: Dim
    columns: Dim
    terms: Dim
    scale: float = 1.0
    bias: int | None = None
    addend: int | None = None
    relu: bool = False

    def pays(self, rows: int, columns: int, terms: int) -> bool:
        """True if a library is faster for a product of these sizes."""
        return min(rows, columns, terms) >= LEAST_SIZE and rows * columns * terms >= LEAST_OPERATIONS


def library_product(group: FusionGroup, operands: Sequence[Atom]) -> LibraryProduct | None:
    """The product that a group is; None for anything else, and for one that is surely too small."""
    if len(group.outputs) != 1 or group.kept or group.outputs[0] is not group.bindings[-1].targets[0]:
        return None
    places = {atom: number for number, atom in enumerate(operands)}
    transposed: dict[Var, Atom] = {}
    found: LibraryProduct | None = None
    last: Var | None = None
    for binding in group.bindings:
        call, (target,) = binding.value, binding.targets
        assert isinstance(call, OpCall)
        if found is None and call.operator == "transpose" and _rank(target) == 2:
            transposed[target] = call.arguments[0]
            continue
        made = _product(call, target, transposed, places) if found is None else _with_call(found, call, last, places)
        if made is None:
            return None
        found, last = made, target
    if found is None:
        return None
    sizes = [size for size in (found.rows, found.columns, found.terms) if isinstance(size, int)]
    return None if len(sizes) == 3 and not found.pays(*sizes) else found


def _type(atom: Atom | None) -> TensorType:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    assert isinstance(type_, TensorType)
    return type_


def _rank(atom: Atom) -> int:
    return len(_type(atom).shape)


def _product(call: OpCall, target: Var, transposed: dict[Var, Atom], places: dict[Atom, int]) -> LibraryProduct | None:
    base = _type(target).base
    if call.operator not in ("matmul", "dense") or call.attributes or not isinstance(base, BaseType):
        return None
    if base.name not in ("float16", "bfloat16", "float32", "float64"):
        return None
    read = [(transposed[a], True) if isinstance(a, Var) and a in transposed else (a, False) for a in call.arguments]
    (left, turned), (right, other) = read
    if any(atom not in places or _rank(atom) != 2 or _type(atom).base != base for atom in (left, right)):
        return None
    right_turned = other != (call.operator == "dense")  # dense multiplies by the transposed factor
    rows, columns = _type(target).shape
    terms = _type(left).shape[0 if turned else 1]
    return LibraryProduct(base.name, places[left], places[right], turned, right_turned, rows, columns, terms)


def _with_call(
    product: LibraryProduct, call: OpCall, last: Var | None, places: dict[Atom, int]
) -> LibraryProduct | None:
    """The product with an operator more, of the last result."""
    if product.relu or sum(atom is last for atom in call.arguments) != 1:
        return None
    others = [atom for atom in call.arguments if atom is not last]
    if call.operator == "relu" and not others:
        return attrs.evolve(product, relu=True)
    if len(others) != 1 or call.operator not in ("multiply", "add"):
        return None
    (other,) = others
    free = product.bias is None and product.addend is None
    if call.operator == "multiply":
        if not isinstance(other, Constant) or other.value.ndim or not free or product.scale != 1.0:
            return None
        return attrs.evolve(product, scale=float(other.value))
    if not isinstance(other, Var | Constant) or other not in places or str(_type(other).base) != product.dtype:
        return None
    shape = _type(other).shape
    if shape == (product.columns,) and product.bias is None:
        return attrs.evolve(product, bias=places[other])
    if shape == (product.rows, product.columns) and product.addend is None and product.bias is None:
        return attrs.evolve(product, addend=places[other])
    return None


__all__ = ["LEAST_OPERATIONS", "LEAST_SIZE", "LibraryProduct", "library_product"]
