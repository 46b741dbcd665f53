"""Loops as instructions: the same steps, no row twice within two steps, and few micro-ops."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relay.codegen.vta.layers.folding import Axis, FoldedLoops, Limits, Nest, fold
from relay.codegen.vta.layers.packing import bias_row, pack_bias_weights
from relay.codegen.vta.layers.streams import rectangles

LIMITS = Limits(2048, 2048, 1024, 64)


def steps(folded: FoldedLoops) -> list[tuple[int, int, int]]:
    """The indices of an instruction's steps, in order."""
    return [
        tuple(u + o * a + i * b for u, a, b in zip(uop, folded.outer.steps, folded.inner.steps, strict=True))  # type: ignore[misc]
        for o in range(folded.outer.extent)
        for i in range(folded.inner.extent)
        for uop in folded.uops
    ]


def nest_steps(nest: Nest) -> Counter[tuple[int, ...]]:
    """All steps of a nest."""
    points = np.ndindex(*(axis.extent for axis in nest.axes))
    return Counter(
        tuple(
            start + sum(n * axis.steps[k] for n, axis in zip(point, nest.axes, strict=True))
            for k, start in enumerate((nest.dst, nest.src, nest.wgt))
        )
        for point in points
    )


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    """Loops over distinct rows, and loops that sum up."""
    axes, rows = [], 1
    for _ in range(draw(st.integers(1, 4))):
        extent, moves = draw(st.integers(1, 4)), draw(st.booleans())
        axes.append(Axis(extent, rows if moves else 0, draw(st.integers(-2, 9)), draw(st.integers(0, 5))))
        rows *= extent if moves else 1
    return Nest(tuple(draw(st.permutations(axes))), 7, 100, 3)


@given(nests())
def test_instructions_have_the_steps_of_a_nest_and_no_hazards(nest: Nest) -> None:
    made = fold(nest, LIMITS)
    assert sum((Counter(steps(one)) for one in made), Counter()) == nest_steps(nest)
    for one in made:
        rows = [dst for dst, _, _ in steps(one)]
        assert all(a != b for near in (1, 2) for a, b in zip(rows, rows[near:], strict=False))
        assert len(one.uops) <= LIMITS.uops
        assert all(step >= 0 for axis in (one.outer, one.inner) for step in axis.steps)


def test_a_convolution_is_one_instruction() -> None:
    """Rows and columns are the loops of the instruction; the kernel and blocks of channels stand in its micro-ops."""
    axes = (
        *(Axis(4, 56 * 6, 0, 9), Axis(3, 0, 58, 3), Axis(3, 0, 1, 1)),
        *(Axis(6, 56, 58), Axis(56, 1, 1)),
    )
    (one,) = fold(Nest(axes), LIMITS)
    assert (one.inner.extent, one.outer.extent, len(one.uops)) in ((56, 6, 36), (6, 56, 36))


def test_one_row_of_sums_is_an_instruction_for_each_step() -> None:
    made = fold(Nest((Axis(8, 0, 1, 1),)), LIMITS)
    assert [len(steps(one)) for one in made] == [1] * 8


@given(st.lists(st.integers(1, 5), min_size=4, max_size=4), st.data())
def test_rectangles_cover_a_part(sizes: list[int], data: st.DataObject) -> None:
    whole = np.arange(int(np.prod(sizes))).reshape(sizes)
    spans = [sorted(data.draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))) for n in sizes]
    part = whole[tuple(slice(a, b + 1) for a, b in spans)]
    strides = [s // whole.itemsize for s in whole.strides]
    start = sum(a * s for (a, _), s in zip(spans, strides, strict=True))
    axes = [(s, n) for s, n in zip(strides, part.shape, strict=True)]
    found = np.full(part.size, -1)
    for r in rectangles(axes, start):
        rows = [whole.ravel()[r.dram + y * r.x_stride :][: r.x_size] for y in range(r.y_size)]
        found[r.sram : r.sram + r.y_size * r.x_size] = np.concatenate(rows)
    np.testing.assert_array_equal(found, part.ravel())
    assert len(rectangles(axes, start)) <= part.shape[0] * part.shape[1]


@given(st.lists(st.integers(-64 * 127 * 15, 64 * 127 * 15), min_size=1, max_size=20))
def test_biases_are_products(bias: list[int]) -> None:
    weights = pack_bias_weights(np.array(bias)).astype(np.int64)
    found = (weights @ bias_row()[0].astype(np.int64)).ravel()
    assert found[: len(bias)].tolist() == bias and not found[len(bias) :].any()
