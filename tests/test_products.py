"""Sums of products in compiled code, over extents that fill tiles, panels and vectors and that do not."""

import numpy as np
import pytest

from relay import relay


@relay
def products(a, b, bias):
    transposed = a.T
    return (
        a @ b,
        transposed.T @ b + bias,
        relay.maximum(a @ b.T.T, 0.0) * bias,
        relay.stack([a, a + a]) @ b,
        (a @ b).sum(axis=0),
        a[0] @ b,
    )


def expected(a, b, bias):
    return (a @ b, a @ b + bias, np.maximum(a @ b, 0) * bias, np.stack([a, a + a]) @ b, (a @ b).sum(axis=0), a[0] @ b)


@relay
def transposed_products(a, b):
    return a.T @ b, b.T @ a, relay.dense(a.T, b.T)


EXTENTS = [
    (1, 1, 4),
    (1, 7, 300),
    (3, 5, 7),
    (9, 2, 33),
    (17, 3, 64),
    (64, 10, 33),
    (65, 4, 5),
    (130, 20, 71),
]


@pytest.mark.parametrize("extents", EXTENTS)
@pytest.mark.parametrize(("dtype", "threads"), [("float32", 1), ("float32", 3), ("float64", 1)])
def test_products(extents, dtype, threads, monkeypatch):
    from relay.codegen.schedules import product

    monkeypatch.setattr(product, "PARALLEL_PRODUCTS", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    products.reload()
    transposed_products.reload()
    rows, inner, columns = extents
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((rows, inner)).astype(dtype), rng.standard_normal((inner, columns)).astype(dtype)
    bias = rng.standard_normal(columns).astype(dtype)
    # The sums of `inner` terms are added in another order than NumPy's.
    tolerance = np.finfo(dtype).eps * (inner + rows) * 8
    for found, wanted in zip(products(a, b, bias), expected(a, b, bias), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    c = rng.standard_normal((rows, columns)).astype(dtype)
    for found, wanted in zip(transposed_products(a, c), (a.T @ c, c.T @ a, a.T @ c), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@relay
def convolutions(x, weight, narrow):
    return (
        relay.conv2d(x, weight, padding=1),
        relay.relu(relay.conv2d(x, weight, stride=2)),
        relay.conv2d(narrow, weight, padding=1),
    )


@pytest.mark.parametrize("channels", [3, 66])
def test_convolutions_in_tiles_are_those_of_the_interpreter(channels):
    rng = np.random.default_rng(1)
    x, narrow = rng.standard_normal((2, 3, 9, 40)), rng.standard_normal((2, 3, 5, 6))
    weight = rng.standard_normal((channels, 3, 3, 3))
    pairs = zip(convolutions(x, weight, narrow), convolutions.interpret(x, weight, narrow), strict=True)
    for compiled, interpreted in pairs:
        np.testing.assert_allclose(compiled, interpreted, rtol=1e-12, atol=1e-12)
