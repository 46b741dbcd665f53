"""Products for a library: groups that are one product of matrices, with what the library computes behind it.

    y = f(scale * left @ right + addend + bias)

Here left and right may be transposed, left may have several axes of rows, bias goes along the columns, and f is nothing
or relu. Both factors may have leading axes, of batches, which one of them may lack: it is the same for all products of
the batch. Groups with anything else have kernels of their own, which fuse all of it. Nothing here needs TVM or the
library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from relay.ir.dims import Dim, product
from relay.ir.expr import Atom, Constant, OpCall, Var
from relay.ir.types import BaseType, TensorType
from relay.transform.fusion.fusion_groups import FusionGroup
from relay.typecheck.relations import permutation

LEAST_OPERATIONS = 1 << 24
"""Multiplications of a whole batch from which a library is faster than the group's own kernels, which start as one."""

LEAST_SIZE = 64
"""Rows, columns and terms, each: a library's tiles would be empty for less."""


@attrs.frozen
class LibraryProduct:
    """`batch` products of `rows` x `terms` by `terms` x `columns`, in one dtype, added up in float32 or float64. The
    operands are positions among the group's; a factor of which there is one for the whole batch is `shared`. `scale` is
    a factor of the product, before anything is added."""

    dtype: str
    left: int
    right: int
    left_transposed: bool
    right_transposed: bool
    rows: Dim
    columns: Dim
    terms: Dim
    batch: Dim = 1
    left_shared: bool = False
    right_shared: bool = False
    scale: float = 1.0
    bias: int | None = None
    addend: int | None = None
    relu: bool = False

    @property
    def sizes(self) -> tuple[Dim, Dim, Dim, Dim]:
        """Rows, columns, terms, and products of the batch."""
        return self.rows, self.columns, self.terms, self.batch

    def pays(self, rows: int, columns: int, terms: int, batch: int = 1) -> bool:
        """True if a library is faster for a product of these sizes."""
        return min(rows, columns, terms) >= LEAST_SIZE and rows * columns * terms * batch >= LEAST_OPERATIONS


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
    sizes = [size for size in found.sizes if isinstance(size, int)]
    return None if len(sizes) == len(found.sizes) and not found.pays(*sizes) else found


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
        rank = _rank(target)
        axes: Any = call.attributes.get("axes")
        swapped = rank >= 2 and permutation(axes, rank) == (*range(rank - 2), rank - 1, rank - 2)
        return (seen, not turned) if swapped else None
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
    if _rank(first) < 2 or _rank(second) < 2:
        return None
    right_turned = other != (call.operator == "dense")  # dense multiplies by the transposed factor
    *leading, rows, columns = _type(target).shape
    one_right, one_left = (set(_type(factor).shape[:-2]) <= {1} for factor in (second, first))
    made = LibraryProduct(
        *(base.name, places[left], places[right], turned, right_turned),
        *(rows, columns, _type(first).shape[-1], product(leading)),
    )
    if made.batch == 1:
        return made
    if one_right and not turned:  # all axes but the last are one to the library
        return attrs.evolve(made, rows=product([*leading, rows]), batch=1)
    whole = tuple(leading)
    shared = tuple(_type(factor).shape[:-2] != whole for factor in (first, second))
    if (shared[0] and not one_left) or (shared[1] and not one_right):  # each factor is repeated along other axes
        return None
    return attrs.evolve(made, left_shared=shared[0], right_shared=shared[1])


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
