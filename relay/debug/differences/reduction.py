"""Reduction: the smallest piece of a program that still differs.

Bindings are left out, one by one, and what they computed becomes a parameter with the value that it had, as long as the
rest differs; first those before the binding that was found, then those in its blocks. At last sizes become smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from relay.debug.differences.outcomes import Deviation
from relay.debug.differences.pieces import PIECE, Piece, leaves_block, may_pass, piece_of, values_in
from relay.debug.differences.search import Comparison, FoundBinding, Search
from relay.errors import InternalError
from relay.eval.values import map_leaves
from relay.ir.dims import Dim, TypeId
from relay.ir.expr import Atom, Binding, Block, Constant, Expr, Function, Module, OpCall, Var, Yield
from relay.ir.rebuild import copy_function, map_atoms, map_blocks
from relay.ir.traverse import all_blocks, blocks, bound_variables, free_variables, operands, walk
from relay.ir.types import map_dims
from relay.ir.validation.check import check
from relay.support import progress

MOST_TRIALS = 60
"""The largest number of programs that are tried."""


@attrs.frozen(eq=False)
class ReducedPiece:
    """A small piece that differs, and how."""

    piece: Piece
    deviation: Deviation


@attrs.frozen(eq=False)
class _Draft:
    bindings: tuple[Binding, ...]
    results: tuple[Var, ...]


class Reduction:
    """The reduction of what a search has found."""

    def __init__(self, module: Module, sizes: Mapping[TypeId, int], comparison: Comparison) -> None:
        self._module = module
        self._sizes = sizes
        self._comparison = comparison
        self._left = MOST_TRIALS
        self._values: dict[Var, object] = {}

    def run(self, search: Search, found: FoundBinding) -> ReducedPiece | None:
        """The smallest piece; None if what was found does not differ by itself."""
        targets = found.binding.targets
        whole = search.piece(found.way, found.position, targets)
        bindings = found.way.block.bindings[: found.position + 1]
        self._values = {**values_in(whole), **found.way.values}
        if found.together:
            targets = tuple(t for b in bindings for t in b.targets if may_pass(t.type))
        best = self._try(_Draft(bindings, targets))
        if best is None:
            return None
        draft, reduced = best
        draft, reduced = self._without_others(draft, reduced, found.binding)
        draft, reduced = self._without_inner(draft, reduced)
        return self._with_smaller_sizes(reduced)

    def _try(self, draft: _Draft) -> tuple[_Draft, ReducedPiece] | None:
        """The piece of a draft, if it differs."""
        if self._left <= 0 or not self._is_complete(draft):
            return None
        self._left -= 1
        progress.show_progress("making the program smaller")
        piece = piece_of(self._module, self._sizes, self._values, draft.bindings, draft.results)
        deviation = self._comparison.deviation(piece)
        return None if deviation is None else (draft, ReducedPiece(piece, deviation))

    def _is_complete(self, draft: _Draft) -> bool:
        """True if all that it reads can be passed to it."""
        free = free_variables(Block(draft.bindings, Yield(draft.results)))
        return all(v in self._values and may_pass(v.type) for v in free)

    # ---- bindings before it

    def _without_others(self, draft: _Draft, reduced: ReducedPiece, last: Binding) -> tuple[_Draft, ReducedPiece]:
        """Without the bindings that do not matter: the nearest ones that are enough, of which each is tried then."""
        if len(draft.results) == len(last.targets):
            near = 1
            while near < len(draft.bindings):
                found = self._try(_Draft(_nearest_bindings(draft.bindings, near), draft.results))
                if found is not None:
                    draft, reduced = found
                    break
                near *= 2
        for binding in draft.bindings[:-1]:
            rest = tuple(b for b in draft.bindings if b is not binding)
            found = self._try(_Draft(rest, tuple(r for r in draft.results if r not in binding.targets)))
            if found is not None:
                draft, reduced = found
        return draft, reduced

    # ---- bindings inside of it

    def _without_inner(self, draft: _Draft, reduced: ReducedPiece) -> tuple[_Draft, ReducedPiece]:
        """Without bindings in blocks, the innermost last."""
        inner = [b for top in draft.bindings for block in blocks(top.value) for b in walk(block)]
        for binding in inner:
            if leaves_block(binding.value) or any(t not in self._values for t in binding.targets):
                continue
            if not any(b is binding for top in draft.bindings for block in blocks(top.value) for b in walk(block)):
                continue  # it is gone with another one
            bindings = tuple(Binding(b.targets, _without_binding(b.value, binding)) for b in draft.bindings)
            found = self._try(_Draft(bindings, draft.results))
            if found is not None:
                draft, reduced = found
        return draft, reduced

    # ---- sizes

    def _with_smaller_sizes(self, reduced: ReducedPiece) -> ReducedPiece:
        """With smaller sizes, as far as these are numbers in a single function."""
        if len(reduced.piece.module.functions) > 1:
            return reduced
        for extent in sorted(_extents(reduced.piece.module.main), reverse=True):
            for size in dict.fromkeys((1, 2, 3, 4, extent // 4, extent // 2, extent - 1)):
                if not 0 < size < extent or self._left <= 0:
                    continue
                self._left -= 1
                piece = _resized_piece(reduced.piece, extent, size)
                deviation = None if piece is None else self._comparison.deviation(piece)
                if piece is not None and deviation is not None:
                    reduced = ReducedPiece(piece, deviation)
                    break
        return reduced


def _nearest_bindings(bindings: Sequence[Binding], steps: int) -> tuple[Binding, ...]:
    """The last binding, and those that it is computed from in this many steps, in order."""
    made = {t: b for b in bindings for t in b.targets}
    kept, edge = {id(bindings[-1])}, [bindings[-1]]
    for _ in range(steps - 1):
        read = [v for b in edge for v in _read(b.value)]
        edge = [made[v] for v in read if v in made and id(made[v]) not in kept]
        kept |= {id(b) for b in edge}
    return tuple(b for b in bindings if id(b) in kept)


def _read(value: Expr) -> list[Var]:
    """The variables that a binding reads, in its blocks, too."""
    own = [a for a in operands(value) if isinstance(a, Var)]
    bound = set(bound_variables(value))
    return [*own, *(v for block in blocks(value) for v in free_variables(block) if v not in bound)]


def _without_binding(value: Expr, binding: Binding) -> Expr:
    """An expression without a binding in its blocks."""

    def block(old: Block) -> Block:
        kept = tuple(b for b in old.bindings if b is not binding)
        return Block(
            tuple(Binding(b.targets, map_blocks(b.value, block)) if blocks(b.value) else b for b in kept),
            old.terminator,
        )

    return map_blocks(value, block)


def _extents(function: Function) -> set[int]:
    """The extents of the tensors in a function that are numbers, but for 0 and 1."""
    found: set[int] = set()

    def note(dim: Dim) -> Dim:
        if isinstance(dim, int) and dim > 1:
            found.add(dim)
        return dim

    for var in _variables(function):
        if var.type is not None:
            map_dims(var.type, note)
    return found


def _variables(function: Function) -> list[Var]:
    found = list(function.parameters)
    for block in all_blocks(function.body):
        for binding in block.bindings:
            found += [*binding.targets, *bound_variables(binding.value)]
    return found


def _resized_piece(piece: Piece, extent: int, size: int) -> Piece | None:
    """The piece with another size for all axes of an extent; None if it has no types then."""

    def change(dim: Dim) -> Dim:
        return size if dim == extent else dim

    function = copy_function(piece.module.main)
    for var in _variables(function):
        if var.type is not None:
            var.type = map_dims(var.type, change)

    def atom(old: Atom) -> Atom:
        return Constant(_cut(old.value, extent, size), old.span) if isinstance(old, Constant) else old

    def block(old: Block) -> Block:
        return Block(tuple(Binding(b.targets, expression(b.value)) for b in old.bindings), old.terminator)

    def expression(old: Expr) -> Expr:
        new = map_blocks(map_atoms(old, atom), block)
        if isinstance(new, OpCall):
            shapes = {
                key: tuple(size if item == extent and type(item) is int else item for item in value)
                for key, value in new.attributes.items()
                if isinstance(value, tuple) and "shape" in key
            }
            new = OpCall(new.operator, new.arguments, {**new.attributes, **shapes}, new.span)
        return new

    body = block(function.body)
    result = None if function.result is None else map_dims(function.result, change)
    function = Function(PIECE, function.parameters, body, function.label, result, span=function.span)
    module = Module({PIECE: function}, PIECE, piece.module.data, piece.module.where)
    cut: Callable[[object], object] = lambda v: _cut(v, extent, size) if isinstance(v, np.ndarray) else v  # noqa: E731
    try:
        check(module)
    except InternalError:
        return None
    return Piece(module, [map_leaves(value, cut) for value in piece.arguments])


def _cut(array: np.ndarray, extent: int, size: int) -> np.ndarray:
    return array[tuple(slice(size) if n == extent else slice(None) for n in array.shape)]
