"""Nests of affine loops as instructions: two loops in the instruction, the others in its micro-ops.

    for each loop: dst += .dst, src += .src, wgt += .wgt

The micro-ops run innermost. Pipelines read a row that was written within the last two steps too early, so consecutive
steps must have other rows: loops that move `dst` are further inside than those that sum up.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import attrs
import numpy as np

MicroOps: TypeAlias = tuple[tuple[int, int, int], ...]
_DISTANCE = 2  # steps within which no row is written twice
_ITERATIONS = (1 << 14) - 1
MOST_UOPS = 512
"""The micro-ops in one list."""


@attrs.frozen
class Axis:
    """A loop, and how far each of its rounds moves the three indices."""

    extent: int
    dst: int = 0
    src: int = 0
    wgt: int = 0

    @property
    def steps(self) -> tuple[int, int, int]:
        """The three distances."""
        return self.dst, self.src, self.wgt


@attrs.frozen
class Nest:
    """Loops in any order, and where their indices begin. Loops that do not move `dst` sum up."""

    axes: tuple[Axis, ...]
    dst: int = 0
    src: int = 0
    wgt: int = 0

    @property
    def size(self) -> int:
        """The number of steps."""
        return int(np.prod([axis.extent for axis in self.axes], dtype=np.int64))


@attrs.frozen
class Limits:
    """The limits of an instruction's fields: factors below these, and this many micro-ops in one list."""

    dst: int
    src: int
    wgt: int
    uops: int = MOST_UOPS


@attrs.frozen
class FoldedLoops:
    """One instruction: its micro-ops, and its outer and inner loop."""

    uops: MicroOps
    outer: Axis = Axis(1)
    inner: Axis = Axis(1)

    @property
    def size(self) -> int:
        """The number of steps."""
        return len(self.uops) * self.outer.extent * self.inner.extent


def fold(nest: Nest, limits: Limits) -> tuple[FoldedLoops, ...]:
    """The instructions for a nest: mostly one, with the fewest micro-ops."""
    folded = _fold(nest.axes, limits)
    if not (nest.dst or nest.src or nest.wgt):
        return folded
    return tuple(
        attrs.evolve(f, uops=tuple((d + nest.dst, s + nest.src, w + nest.wgt) for d, s, w in f.uops)) for f in folded
    )


def _merge_axes(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Two loops of which the outer one goes on where the inner one ends are one loop."""
    rest = [axis for axis in axes if axis.extent != 1]
    while True:
        for outer, inner in itertools.permutations(rest, 2):
            if all(o == i * inner.extent for o, i in zip(outer.steps, inner.steps, strict=True)):
                rest.remove(outer)
                rest[rest.index(inner)] = attrs.evolve(inner, extent=inner.extent * outer.extent)
                break
        else:
            return tuple(rest)


@functools.lru_cache(maxsize=4096)
def _fold(axes: tuple[Axis, ...], limits: Limits) -> tuple[FoldedLoops, ...]:
    axes = _merge_axes(axes)
    for folded in sorted(_candidates(axes, limits), key=lambda f: len(f[2])):
        outer, inner, inside = folded
        if _size(inside) > limits.uops:
            continue
        uops = _uops(inside)
        if _is_free_of_hazards(uops, outer, inner):
            return (FoldedLoops(uops, outer, inner),)
    return tuple(_unrolled_loops(axes, limits))


def _size(axes: Sequence[Axis]) -> int:
    return int(np.prod([axis.extent for axis in axes], dtype=np.int64))


def _candidates(axes: tuple[Axis, ...], limits: Limits) -> list[tuple[Axis, Axis, tuple[Axis, ...]]]:
    """The choices of loops of the instruction, and of loops in its micro-ops, in their order; fewest first."""
    none = Axis(1)
    usable = [axis for axis in axes if _fits(axis, limits)]
    found = []
    for outer, inner in [(none, none), *((none, a) for a in usable), *itertools.permutations(usable, 2)]:
        inside = [axis for axis in axes if axis is not outer and axis is not inner]
        inside.sort(key=lambda axis: axis.dst != 0)  # sums outside
        found.append((outer, inner, tuple(inside)))
    found.sort(key=lambda candidate: _size(candidate[2]))
    return found


def _fits(axis: Axis, limits: Limits) -> bool:
    pairs = zip(axis.steps, (limits.dst, limits.src, limits.wgt), strict=True)
    return axis.extent <= _ITERATIONS and all(0 <= step < limit for step, limit in pairs)


def _uops(axes: Sequence[Axis]) -> MicroOps:
    return tuple(
        (
            sum(n * axis.dst for n, axis in zip(point, axes, strict=True)),
            sum(n * axis.src for n, axis in zip(point, axes, strict=True)),
            sum(n * axis.wgt for n, axis in zip(point, axes, strict=True)),
        )
        for point in itertools.product(*(range(axis.extent) for axis in axes))
    )


def _is_free_of_hazards(uops: MicroOps, outer: Axis, inner: Axis) -> bool:
    """True if no row is written again within a few steps."""
    inside = np.array([dst for dst, _, _ in uops])
    rounds = np.arange(outer.extent)[:, None] * outer.dst + np.arange(inner.extent)[None, :] * inner.dst
    rows = (rounds[:, :, None] + inside).ravel()
    return not any(bool((rows[near:] == rows[:-near]).any()) for near in range(1, _DISTANCE + 1) if len(rows) > near)


def _unrolled_loops(axes: tuple[Axis, ...], limits: Limits) -> Iterator[FoldedLoops]:
    """Several instructions: one for each round of a loop, a summing one if there is any."""
    chosen = max(axes, key=lambda axis: (axis.dst == 0, -axis.extent if axis.dst == 0 else axis.extent))
    rest = tuple(axis for axis in axes if axis is not chosen)
    for number in range(chosen.extent):
        yield from fold(Nest(rest, *(number * step for step in chosen.steps)), limits)
