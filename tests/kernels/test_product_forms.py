"""Products whose loops are chosen for their form: few columns, and a vector times a large matrix."""

from __future__ import annotations

import numpy as np
import pytest

import relay as R
from relay import relay


@relay
def product(x, y):  # type: ignore[no-untyped-def]
    z = x @ y
    return z, R.relu(z) + 1, R.sum(z, axis=-1)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("left", "right", "dtype"),
    [
        ((100, 67), (67, 8), "float32"), ((33, 64), (64, 4), "float32"), ((40, 300), (300, 5), "float32"),
        ((2, 35, 130), (2, 130, 6), "float32"), ((50, 45), (45, 4), "float64"), ((61, 80), (80, 7), "float32"),
        ((1, 300), (300, 1100), "float32"), ((2, 1, 259), (2, 259, 1030), "float32"), ((301,), (301, 600), "float64"),
    ],
)  # fmt: skip
def test_forms(
    left: tuple[int, ...], right: tuple[int, ...], dtype: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from relay.codegen.kernels import loops

    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    product.reload()
    random = np.random.default_rng(0)
    x, y = random.standard_normal(left).astype(dtype), random.standard_normal(right).astype(dtype)
    error = 2e-5 if dtype == "float32" else 1e-12
    for found, wanted in zip(product(x, y), product.interpret(x, y), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=error, atol=10 * error)


def test_infinities_are_added_once() -> None:
    """The last vector of a row repeats a part of the one before."""
    x, y = np.ones((40, 67), np.float32), np.ones((67, 5), np.float32)
    x[3, 60], x[4, 2], y[55, 1] = np.inf, -np.inf, np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.asarray(product(x, y)[0]), x @ y)


def test_weights_that_are_constants() -> None:
    y = np.random.default_rng(0).standard_normal((70, 6)).astype(np.float32)

    @relay
    def layer(x):  # type: ignore[no-untyped-def]
        return R.tanh(x @ y)

    x = np.random.default_rng(1).standard_normal((50, 70)).astype(np.float32)
    np.testing.assert_allclose(layer(x), layer.interpret(x), rtol=2e-5, atol=2e-5)
