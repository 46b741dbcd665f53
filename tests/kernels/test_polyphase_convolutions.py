"""Transposed convolutions with a stride, the derivatives of strided ones: each phase of the stride by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from guarded import guarded

import relay as R

FORMS = [
    # rank, sizes of x, kernel, stride, padding, layout
    (2, (9, 8), (3, 3), 2, 1, "NCHW"),
    (2, (9, 8), (3, 3), 2, 1, "NHWC"),
    (2, (12, 11), (1, 1), 2, 0, "NCHW"),
    (2, (16, 15), (7, 7), 2, 3, "NCHW"),
    (2, (13, 17), (5, 4), (3, 2), (1, 2), "NHWC"),
    (2, (15, 15), (3, 3), (1, 2), 1, "NCHW"),
    (2, (9, 9), (2, 2), 3, 0, "NCHW"),
    (1, (40,), (4,), 2, 1, "NCW"),
    (3, (5, 6, 4), (3, 2, 3), 2, 1, "NCDHW"),
]


@pytest.mark.parametrize(("rank", "sizes", "kernel", "stride", "padding", "layout"), FORMS)
def test_derivatives_of_strided_convolutions(
    rank: int, sizes: tuple[int, ...], kernel: tuple[int, ...], stride: Any, padding: Any, layout: str
) -> None:
    options = f"stride={stride}, padding={padding}, layout='{layout}'"
    f = R.from_source(f"def f(x, w):\n    return relay.conv{rank}d(x, w, {options})\n", {"relay": R})
    random = np.random.default_rng(0)
    x, w = random.normal(size=(2, 3, *sizes)), random.normal(size=(5, 3, *kernel))
    if layout.endswith("C"):
        x, w = np.moveaxis(x, 1, -1).copy(), np.moveaxis(w, (0, 1), (-1, -2)).copy()
    seed = random.normal(size=f(x, w).shape)
    gradient = R.grad(f, seedable=True)
    wanted = gradient.interpret(x, w, seed)
    for end in (False, True):
        found = gradient(*(guarded(array, end=end) for array in (x, w, seed)))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-11, atol=1e-11)


def test_a_layer_that_enlarges_images() -> None:
    text = (
        "def f(y, w):\n"
        "    return relay.relu(relay.conv2d_transpose(y, w, stride=2, padding=1, output_padding=1) + 1.0)\n"
    )
    f = R.from_source(text, {"relay": R})
    random = np.random.default_rng(0)
    for batch, size in ((2, 7), (3, 7), (3, 8)):  # the second time one is symbolic, the third time both
        y, w = random.normal(size=(batch, 4, size, 5)), random.normal(size=(4, 6, 3, 3))
        np.testing.assert_allclose(np.asarray(f(y, w)), np.asarray(f.interpret(y, w)), rtol=1e-11, atol=1e-11)
