"""Products for a library: groups that are one product of matrices, with what the library computes behind it.

    y = f(scale * left @ right + addend + bias)

Here left and right may be transposed, left may have several axes of rows, bias goes along the columns, and f is nothing
or relu. Groups with anything else
have kernels of their own, which fuse all of it. Nothing here needs TVM or the library.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.ir.dims import Dim, product
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
    views: dict[Var, tuple[Atom, bool]] = {}
    found: LibraryProduct | None = None
    last: Var | None = None
    for binding in group.bindings:
        call, (target,) = binding.value, binding.targets
        assert isinstance(call, OpCall)
        view = _view(call, target, views) if found is None else None
        if view is not None:
            views[target] = view
            continue
        if found is None or last is None:
            made = _product(call, target, views, places)
        else:
            made = _with_call(found, call, last, places)
        if made is None:
            return None
        found, last = made, target
    if found is None:
        return None
    sizes = [size for size in (found.rows, found.columns, found.terms) if isinstance(size, int)]
    return None if len(sizes) == 3 and not found.pays(*sizes) else found


def _type(atom: Atom) -> TensorType:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    assert isinstance(type_, TensorType)
    return type_


def _rank(atom: Atom) -> int:
    return len(_type(atom).shape)


def _view(call: OpCall, target: Var, views: dict[Var, tuple[Atom, bool]]) -> tuple[Atom, bool] | None:
    """The value in memory that an operator gives another shape, and whether it is transposed; None for any other."""
    if call.operator not in ("transpose", "reshape"):
        return None
    operand = call.arguments[0]
    seen, turned = views.get(operand, (operand, False)) if isinstance(operand, Var) else (operand, False)
    if call.operator == "transpose":
        return (seen, not turned) if _rank(target) == 2 else None
    return None if turned else (seen, False)


def _product(
    call: OpCall, target: Var, views: dict[Var, tuple[Atom, bool]], places: dict[Atom, int]
) -> LibraryProduct | None:
    base = _type(target).base
    if call.operator not in ("matmul", "dense") or call.attributes or not isinstance(base, BaseType):
        return None
    if base.name not in ("float16", "bfloat16", "float32", "float64"):
        return None
    first, second = call.arguments
    (left, turned), (right, other) = (
        views.get(a, (a, False)) if isinstance(a, Var) else (a, False) for a in (first, second)
    )
    if any(atom not in places or _type(atom).base != base for atom in (left, right)):
        return None
    if _rank(second) != 2 or _rank(first) < 2 or (turned and _rank(first) != 2):
        return None
    right_turned = other != (call.operator == "dense")  # dense multiplies by the transposed factor
    *leading, columns = _type(target).shape
    rows = product(leading)  # all axes but the last are one to the library
    terms = _type(first).shape[-1]
    return LibraryProduct(base.name, places[left], places[right], turned, right_turned, rows, columns, terms)


def _with_call(found: LibraryProduct, call: OpCall, last: Var, places: dict[Atom, int]) -> LibraryProduct | None:
    """The product with an operator more, of the last result."""
    if found.relu or sum(atom is last for atom in call.arguments) != 1:
        return None
    others = [atom for atom in call.arguments if atom is not last]
    if call.operator == "relu" and not others:
        return attrs.evolve(found, relu=True)
    if len(others) != 1 or call.operator not in ("multiply", "add", "subtract"):
        return None
    (other,) = others
    if call.operator == "subtract":  # as an update of weights: y - scale * product
        if call.arguments[1] is not last or found.bias is not None or found.addend is not None:
            return None
        found = attrs.evolve(found, scale=-found.scale)
    free = found.bias is None and found.addend is None
    if call.operator == "multiply":
        if not isinstance(other, Constant) or other.value.ndim or not free or found.scale != 1.0:
            return None
        return attrs.evolve(found, scale=float(other.value))
    if not isinstance(other, Var | Constant) or other not in places or str(_type(other).base) != found.dtype:
        return None
    shape = _type(other).shape
    if shape == (found.columns,) and found.bias is None and _rank(last) > 1:
        return attrs.evolve(found, bias=places[other])
    if shape == _type(last).shape and found.addend is None and found.bias is None:
        return attrs.evolve(found, addend=places[other])
    return None


__all__ = ["LEAST_OPERATIONS", "LEAST_SIZE", "LibraryProduct", "library_product"]
