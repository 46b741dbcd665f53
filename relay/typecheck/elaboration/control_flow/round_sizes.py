"""Sizes after a round of a loop, found from its text before inference: tensors whose extents change, and lists.

The size of a variable after a round is followed back to sizes at its beginning. What is not found here, since only
types tell it, elaboration finds out later, and starts again (`SizeVaries`, `ListGrows`).
"""

from __future__ import annotations

from collections.abc import Collection

from relay.ir.dims import Dim
from relay.ir.sizes.facts import mentions_made
from relay.ir.types import ANY, TensorType, Type, prune
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Tuple
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow.round_start import LENGTH, Root, RoundStart
from relay.typecheck.elaboration.control_flow.size_flow import DATA_DEPENDENT, VARIES, Size, SizeFlow
from relay.typecheck.elaboration.control_flow.value_flow import Path
from relay.typecheck.unification import is_known


class RoundSizes:
    """The sizes of a loop's parameters after a round, where the loop is not unrolled."""

    def __init__(self, checker: Checker, start: RoundStart) -> None:
        self._checker, self._start = checker, start
        self._sizes = SizeFlow(start)
        self._asked: dict[tuple[int, Path, int], bool] = {}

    def is_resized(self, place: tuple[int, ...], entity: AbstractValue) -> bool:
        """True if a component of a parameter is a list of known items, and has another number of them after a round."""
        if not isinstance(entity, Tuple) or entity.form is None or entity.form.cls is not list:
            return False
        return self._changes(place[0], self._start.path(place), LENGTH, len(entity.items), ())

    def varying_axes(self, place: tuple[int, ...], type_: Type, may: Collection[int]) -> set[int]:
        """The axes at which a tensor has another size after a round: among those that `may`, and data-dependent ones.

        Data decide the size of a vector from which a mask selects."""
        found = prune(type_)
        if not isinstance(found, TensorType) or not is_known(found.shape):
            return set()
        shape = found.shape
        return {
            axis
            for axis, dim in enumerate(shape)
            if (axis in may or mentions_made(dim) or len(shape) == 1)
            and dim is not ANY
            and self._changes(place[0], self._start.path(place), axis, dim, may)
        }

    def _changes(self, position: int, path: Path, axis: int, size: Dim, may: Collection[int]) -> bool:
        """True if a component of a parameter has another size after a round than before it."""
        asked = position, path, axis
        if asked in self._asked:
            return self._asked[asked]
        self._asked[asked] = False
        flow = self._start.flow
        own = (self._start.loop.parameters[position], path)
        varies = axis == LENGTH or axis in may or mentions_made(size)
        ends = flow.round_ends(self._start.loop, position)
        sizes = [self._sizes.size(flow, atom, path, axis) for atom in dict.fromkeys(ends)]
        result = any(s is DATA_DEPENDENT or (varies and self._is_other(s, own, axis, size)) for s in sizes)
        self._asked[asked] = result
        return result

    def _is_other(self, size: Size | None, own: Root, axis: int, before: Dim) -> bool:
        """True if a size after a round is certainly another one than before it."""
        if size is None or size is VARIES:
            return size is not None
        dim = 0 if size.root is None else before if size.root == own else self._start.dim(size.root, axis)
        if dim is None:
            return False
        if size.root is not None and size.root != own and (dim is ANY or self._root_changes(size.root, axis, dim)):
            return True
        if isinstance(dim, int) and isinstance(before, int):
            after = max(size.scale * dim + size.offset, 0)
            return after > before if size.at_least else after != before
        is_root_size = (size.scale, size.offset, size.at_least) == (1, 0, False)
        return size.differs if dim == before else is_root_size and mentions_made(dim)

    def _root_changes(self, root: Root, axis: int, dim: Dim) -> bool:
        """True if another component has another size after a round, so that it is dynamic."""
        position = self._start.position(root[0])
        if position is None:
            return False
        entity = self._start.entities[position]
        axes = self._checker.sizes.axes_of_any.get(entity.atom, ()) if isinstance(entity, DynamicValue) else ()
        may = {*axes, *self._checker.axes_of_any_size(root[0].name)} if not root[1] else set(axes)
        return self._changes(position, root[1], axis, dim, may)
