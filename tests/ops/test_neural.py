"""Operators of neural networks against formulas written once more with NumPy and SciPy, and their edge cases."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise
from scipy import ndimage, special

import relay
from relay.errors import ExecutionError, ShapeError, TypeMismatch

RANDOM = np.random.default_rng(0)
KEY = relay.random.key(5)


def array(*shape: int) -> Any:
    return RANDOM.standard_normal(shape)


# ---- activations

LIMITS = {
    "silu": (0, 0), "mish": (0, 0), "gelu": (0, 0), "gelu_tanh": (0, 0), "hardswish": (0, 0), "relu": (0, 0),
    "softplus": (0, 0), "elu": (-1, 0), "selu": (-1.7580993408473766, 0),
}  # fmt: skip
"""What they are at -infinity, and their derivatives there; at infinity all are infinite, with the derivative 1."""


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", LIMITS)
def test_activations_and_both_derivatives_have_their_limits_at_infinity(name: str, dtype: str) -> None:
    call = f"relay.{name}(x)".replace("gelu_tanh(x)", "gelu(x, approximate='tanh')")
    value = relay.from_source(f"def value(x):\n    return {call}\n", {"relay": relay})
    total = relay.from_source("def total(x):\n    return relay.sum(value(x) * 8.0)\n", {"relay": relay, "value": value})
    x = np.array([-np.inf, -60000, 60000, np.inf], dtype)
    low, slope = LIMITS[name]
    scale = 1.0507009873554805 if name == "selu" else 1.0
    np.testing.assert_allclose(value.interpret(x), [low, low, 60000 * scale, np.inf], rtol=1e-3)
    first = relay.grad(total)
    np.testing.assert_allclose(first.interpret(x), [slope, slope, 8 * scale, 8 * scale], rtol=1e-3)
    second = relay.from_source("def second(x):\n    return relay.sum(first(x))\n", {"relay": relay, "first": first})
    np.testing.assert_array_equal(relay.grad(second).interpret(x), np.zeros(4, dtype))


# ---- normalization


def normalized(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def test_normalization() -> None:
    x, weight, bias = array(2, 4, 3, 5), array(4), array(4)
    channel = (slice(None), None, None)
    for found, axes in (
        (relay.batch_norm_training(x, weight, bias)[0], (0, 2, 3)),
        (relay.instance_norm(x, weight, bias), (2, 3)),
    ):
        np.testing.assert_allclose(found, normalized(x, axes, 1e-5) * weight[channel] + bias[channel], rtol=1e-9)
    trained, mean, variance = relay.batch_norm_training(x, weight, bias)
    np.testing.assert_allclose(mean, x.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(variance, x.var((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(relay.batch_norm(x, weight, bias, mean, variance), trained, rtol=1e-9)
    grouped = normalized(x.reshape(2, 2, 2, 3, 5), (2, 3, 4), 1e-5).reshape(x.shape)
    np.testing.assert_allclose(
        relay.group_norm(x, weight, bias, 2), grouped * weight[channel] + bias[channel], rtol=1e-9
    )
    gain, shift = array(3, 5), array(3, 5)
    np.testing.assert_allclose(
        relay.layer_norm(x, gain, shift), normalized(x, (2, 3), 1e-5) * gain + shift, rtol=1e-8, atol=1e-12
    )
    root = np.sqrt((x**2).mean((2, 3), keepdims=True) + 1e-6)
    np.testing.assert_allclose(relay.rms_norm(x, gain), x / root * gain, rtol=1e-9)
    squares = np.pad(x**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    np.testing.assert_allclose(relay.lrn(x, 3, alpha=0.3), x / (1 + 0.1 * total) ** 0.75, rtol=1e-9)


def test_small_floats_are_normalized_in_float32() -> None:
    x = np.float16([[60000, 60000, -60000, -60000]])  # whose squares float16 does not hold
    found = relay.layer_norm(x, np.ones(4, np.float16), np.zeros(4, np.float16))
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, [[1, 1, -1, -1]])


def test_normalization_names_what_clashes() -> None:
    with pytest.raises(ShapeError, match=r"an element for each channel, of which there are 3; found the shape \(2,\)"):
        relay.batch_norm_training(array(2, 3), array(2), array(3))
    with pytest.raises(ShapeError, match="group_norm of 4 channels in 3 groups: it must divide them"):
        relay.group_norm(array(2, 4), array(4), array(4), 3)


# ---- losses


def test_cross_entropies() -> None:
    logits, target = array(5, 4), np.int32([0, 3, 2, 2, 1])
    scores = special.log_softmax(logits, axis=-1)
    wanted = -scores[np.arange(5), target]
    np.testing.assert_allclose(relay.cross_entropy(logits, target, reduction="none"), wanted)
    np.testing.assert_allclose(relay.nll_loss(scores, target), wanted.mean())
    ignored = np.where(target == 2, -1, target)
    np.testing.assert_allclose(relay.cross_entropy(logits, ignored, ignore_index=-1), wanted[target != 2].mean())
    even = -scores.mean(axis=-1)
    np.testing.assert_allclose(
        relay.cross_entropy(logits, target, label_smoothing=0.2), (0.8 * wanted + 0.2 * even).mean()
    )
    soft = np.eye(4)[target]
    np.testing.assert_allclose(relay.soft_cross_entropy(logits, soft), wanted.mean())

    @relay
    def loss(logits, target):  # type: ignore[no-untyped-def]
        return relay.cross_entropy(logits, target)

    assert_modes_raise(loss, logits, np.int32([0, 4, 0, 0, 0]), error=ExecutionError, match="a target is not a class")


def test_losses_of_extreme_logits() -> None:
    x = np.float32([-1000, -30, -1e-3, 0, 30, 1000])
    for target in (0.0, 1.0, 0.3):
        y = np.full_like(x, target)
        exact = np.logaddexp(0, x.astype(np.float64)) - target * x.astype(np.float64)
        found = relay.binary_cross_entropy_with_logits(x, y, reduction="none")
        np.testing.assert_allclose(found, exact, rtol=2e-6, atol=1e-12)

    @relay
    def loss(x, y):  # type: ignore[no-untyped-def]
        return relay.binary_cross_entropy_with_logits(x, y, reduction="sum")

    slope = relay.grad(loss, wrt=0)
    np.testing.assert_allclose(slope(x, np.zeros_like(x)), special.expit(x), rtol=2e-6)
    zeros, ones = np.float64([0.0]), np.float64([1.0])
    assert relay.binary_cross_entropy(zeros, ones) == 100
    np.testing.assert_allclose(relay.kl_div(np.log([[0.25, 0.75]]), np.float64([[0, 1]])), -np.log(0.75) / 2)


LOSSES = {
    "cross_entropy": "relay.cross_entropy(x, classes, reduction='none')",
    "smoothed": "relay.cross_entropy(x, classes, label_smoothing=0.1, reduction='none')",
    "soft": "relay.soft_cross_entropy(x, relay.softmax(y * 1e-4), reduction='none')",
    "nll": "relay.nll_loss(relay.log_softmax(x), classes, reduction='none')",
    "logits": "relay.binary_cross_entropy_with_logits(x, relay.sigmoid(y), reduction='none')",
    "kl": "relay.kl_div(relay.log_softmax(x), relay.softmax(y * 1e-4), reduction='none')",
    "huber": "relay.huber_loss(x, y, delta=5.0, reduction='none')",
    "hinge": "relay.hinge_loss(x, relay.sign(y), reduction='none')",
    "l1": "relay.l1_loss(x, y, reduction='none')",
    "mse": "relay.mse_loss(x, y, reduction='none')",
    "logsumexp": "relay.logsumexp(x, axis=-1)",
    "logaddexp": "relay.logaddexp(x, y)",
    "softplus": "relay.softplus(x)",
    "sigmoid": "relay.sigmoid(x)",
    "softmax": "relay.softmax(x)",
    "log_softmax": "relay.log_softmax(x)",
}
"""Of numbers up to 10,000 in size, where exponentials of float32 overflow from 89 on."""


def large_numbers() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1e4, 1e4, (12, 5))
    x[0], x[1], x[2, :2], x[3] = 1e4, -1e4, (1e4, -1e4), np.linspace(-1e4, 1e4, 5)
    x[4:7] = 1e4 + rng.integers(-8, 9, (3, 5)) / 4
    x[7] = rng.standard_normal(5)
    y = rng.permutation(x.reshape(-1)).reshape(x.shape)
    return x.astype(np.float32), y.astype(np.float32), rng.integers(0, 5, 12).astype(np.int32)


def test_losses_and_their_gradients_are_right_for_large_numbers() -> None:
    """Against the same in float64, in which the sums of the stable forms have 29 more bits."""
    x, y, classes = large_numbers()
    calls = ", ".join(LOSSES.values())
    values = relay.from_source(f"def values(x, y, classes):\n    return {calls}\n", {"relay": relay})
    weighed = " + ".join(f"relay.sum({call} * 0.25)" for call in LOSSES.values())
    total = relay.from_source(f"def total(x, y, classes):\n    return {weighed}\n", {"relay": relay})
    wide = x.astype(np.float64), y.astype(np.float64), classes
    for name, found, wanted in zip(
        LOSSES, assert_modes_agree(values, x, y, classes), values.interpret(*wide), strict=True
    ):
        assert np.isfinite(np.asarray(wanted)).all(), name
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6, err_msg=name)
    gradient = relay.grad(total, wrt=(0, 1))
    for found, wanted in zip(gradient(x, y, classes), gradient.interpret(*wide), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=6e-4)  # of terms up to 10,000


def test_the_stable_forms_are_right_in_float64() -> None:
    """Which the test above relies on, against sums in decimals of 60 digits."""
    x = large_numbers()[0].astype(np.float64)
    with decimal.localcontext(prec=60):
        for row, found in zip(x, np.asarray(relay.logsumexp(x, axis=-1)), strict=True):
            exact = sum(decimal.Decimal(n).exp() for n in row.tolist()).ln()
            assert found == pytest.approx(float(exact), rel=1e-15)
        for number, found in zip(x.reshape(-1).tolist(), np.asarray(relay.softplus(x)).reshape(-1), strict=True):
            assert found == pytest.approx(float((1 + decimal.Decimal(number).exp()).ln()), rel=1e-15, abs=1e-50)


def test_elementwise_losses() -> None:
    x, y = array(3, 4), array(3, 4)
    np.testing.assert_allclose(relay.mse_loss(x, y), ((x - y) ** 2).mean())
    np.testing.assert_allclose(relay.l1_loss(x, y, reduction="sum"), np.abs(x - y).sum())
    np.testing.assert_allclose(relay.huber_loss(x, y, delta=0.7, reduction="none"), special.huber(0.7, x - y))
    np.testing.assert_allclose(relay.hinge_loss(x, np.sign(y)), np.maximum(0, 1 - x * np.sign(y)).mean())
    with pytest.raises(ShapeError, match=r"of shape \(3, 4\) need targets of the same shape, found \(3,\)"):
        relay.mse_loss(x, array(3))
    with pytest.raises(ShapeError, match="reduction must be 'mean', 'sum' or 'none', found 'average'"):
        relay.mse_loss(x, y, reduction="average")


# ---- attention


def test_attention() -> None:
    q, k, v = array(2, 3, 4), array(2, 5, 4), array(2, 5, 6)
    scores = q @ k.swapaxes(1, 2) / 2
    np.testing.assert_allclose(relay.scaled_dot_product_attention(q, k, v), special.softmax(scores, -1) @ v)
    visible = np.arange(5) <= np.arange(3)[:, None]
    wanted = special.softmax(np.where(visible, scores, -np.inf), -1) @ v
    np.testing.assert_allclose(relay.scaled_dot_product_attention(q, k, v, causal=True), wanted)
    np.testing.assert_allclose(relay.masked_attention(q, k, v, visible), wanted)
    bias = array(3, 5)
    np.testing.assert_allclose(relay.masked_attention(q, k, v, bias), special.softmax(scores + bias, -1) @ v)
    with pytest.raises(ShapeError, match="the extents 4 and 3 of query and key differ"):
        relay.scaled_dot_product_attention(q, array(2, 5, 3), v)


# ---- images


def test_resizing() -> None:
    x = array(1, 2, 4, 5)
    smooth = relay.resize2d(x, (7, 9), coordinates="align_corners")
    np.testing.assert_allclose(smooth, ndimage.zoom(x, (1, 1, 7 / 4, 9 / 5), order=1), rtol=1e-9)
    np.testing.assert_array_equal(relay.upsampling(x, 3), x.repeat(3, 2).repeat(3, 3))
    picked = relay.resize2d(x, (2, 10), method="nearest", coordinates="asymmetric")
    np.testing.assert_array_equal(picked, x[:, :, ::2].repeat(2, 3))


def test_grid_sample_is_interpolation() -> None:
    x, grid = array(1, 1, 5, 6), RANDOM.uniform(-1.4, 1.4, (1, 4, 7, 2))
    for align in (False, True):
        sizes = np.array([6, 5])
        places = (grid[0] + 1) * (sizes - 1) / 2 if align else (grid[0] + 1) * sizes / 2 - 0.5
        coordinates = np.moveaxis(places[..., ::-1], -1, 0)
        for padding, mode in (
            ("zeros", "grid-constant"),
            ("border", "nearest"),
            ("reflection", "mirror" if align else "reflect"),
        ):
            found = relay.grid_sample(x, grid, padding=padding, align_corners=align)
            wanted = ndimage.map_coordinates(x[0, 0], coordinates, order=1, mode=mode)
            np.testing.assert_allclose(found[0, 0], wanted, rtol=1e-9, atol=1e-12)
    lost = np.full((1, 1, 1, 2), np.nan)

    @relay
    def sampled(x, grid):  # type: ignore[no-untyped-def]
        return relay.grid_sample(x, grid, padding="border")

    np.testing.assert_array_equal(sampled(x, lost), x[:, :, :1, :1])
    np.testing.assert_array_equal(relay.grid_sample(x, lost, padding="border"), x[:, :, :1, :1])


def test_slices_of_bilateral_grids() -> None:
    grid, guide = array(1, 2, 3, 2, 4), RANDOM.uniform(0, 1, (1, 6, 5))
    rows, columns = (np.arange(6) + 0.5) * 2 / 6 - 0.5, (np.arange(5) + 0.5) * 4 / 5 - 0.5
    coordinates = np.stack([guide[0] * 3 - 0.5, *np.meshgrid(rows, columns, indexing="ij")])
    found = relay.bilateral_slice(grid, guide)
    for channel in range(2):
        wanted = ndimage.map_coordinates(grid[0, channel], coordinates, order=1, mode="nearest")
        np.testing.assert_allclose(found[0, channel], wanted, rtol=1e-9, atol=1e-12)


# ---- sorting


def test_sorting_is_numpys() -> None:
    x = np.round(array(4, 50))
    x[1, 3] = np.nan
    np.testing.assert_array_equal(relay.sort(x, axis=0), np.sort(x, axis=0))
    np.testing.assert_array_equal(relay.argsort(x), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(relay.argsort(-x, descending=True)[0], np.argsort(x[0], kind="stable"))

    @relay
    def largest(x):  # type: ignore[no-untyped-def]
        return relay.argsort(x), relay.topk_indices(x, 3), relay.topk_values(x, 3)

    big = RANDOM.permutation(1000).astype(np.float64)
    order, places, values = largest(big)
    np.testing.assert_array_equal(order, np.argsort(big))
    np.testing.assert_array_equal(places, np.argsort(-big)[:3])
    np.testing.assert_array_equal(values, [999, 998, 997])
    with pytest.raises(
        ShapeError, match=r"k must be an integer from 0 to the extent of axis -1 of \(4, 50\), found 51"
    ):
        relay.topk_values(x, 51)


def test_topk_gives_values_and_places() -> None:
    @relay
    def best(x):  # type: ignore[no-untyped-def]
        values, places = relay.topk(x, 2)
        return values.sum(), places

    x = np.float64([3, 1, 4, 2])
    total, places = assert_modes_agree(best, x)
    assert total == 7
    np.testing.assert_array_equal(places, [2, 0])
    np.testing.assert_array_equal(relay.grad(best, output=0)(x), [1, 0, 1, 0])
    values, places = relay.topk(x, 3, largest=False)
    np.testing.assert_array_equal(values, [1, 2, 3])
    np.testing.assert_array_equal(places, [1, 3, 0])


def test_unique_is_numpys() -> None:
    @relay
    def distinct(x):  # type: ignore[no-untyped-def]
        return relay.unique(x, size=4)

    np.testing.assert_array_equal(distinct(np.float64([3, np.nan, 1, np.nan])), [1, 3, np.nan, 1])
    for x in (np.float64([3, 1, np.nan, 3, np.nan]), np.int32([[5, 5], [5, 5]]), np.float32([7])):
        wanted = np.unique(x)
        np.testing.assert_array_equal(relay.unique(x, size=len(wanted)), wanted)
        np.testing.assert_array_equal(relay.unique(x, size=len(wanted) + 2, fill_value=9)[len(wanted) :], [9, 9])


# ---- choices


def test_choices() -> None:
    p = np.float32([0.1, 0.9])
    draws = np.asarray(relay.random.bernoulli(KEY, p, shape=(20_000, 2)))
    np.testing.assert_allclose(draws.mean(0), p, atol=0.01)
    logits = np.log(np.float64([0.2, 0.5, 0.3]))
    chosen = np.bincount(relay.random.categorical(KEY, logits, shape=(20_000,)), minlength=3)
    np.testing.assert_allclose(chosen / 20_000, [0.2, 0.5, 0.3], atol=0.015)
    order = relay.random.permutation(KEY, np.arange(500, dtype=np.int32))
    np.testing.assert_array_equal(np.sort(order), np.arange(500))
    assert abs(np.corrcoef(order, np.arange(500))[0, 1]) < 0.15
    x = np.ones(20_000, np.float32)
    dropped = np.asarray(relay.dropout(x, KEY, rate=0.2))
    assert set(np.unique(dropped)) == {np.float32(0), np.float32(1.25)} and abs(dropped.mean() - 1) < 0.02
    with pytest.raises(TypeMismatch, match=r"must be in \[0, 1\), found 1.5"):
        relay.dropout(x, KEY, rate=1.5)


# ---- 8 bits


def test_quantized_numbers() -> None:
    x = np.float32([0.024, 0.025, 0.026, -0.075, 100, -100, np.nan, np.inf])
    found = relay.quantize(x, np.float32(0.05), np.int32(-3))
    np.testing.assert_array_equal(found, [-3, -3, -2, -5, 127, -128, -3, 127])

    @relay
    def quantized(x):  # type: ignore[no-untyped-def]
        return relay.quantize(x, 0.05, -3)

    np.testing.assert_array_equal(quantized(x), found)
    values, weights = (RANDOM.integers(-128, 128, shape).astype(np.int8) for shape in ((5, 300), (4, 300)))
    product = relay.quantized_dense(values, weights)
    np.testing.assert_array_equal(product, values.astype(np.int64) @ weights.T.astype(np.int64))
    scaled = relay.requantize(product, np.float32(0.01), np.int32(0), np.float32(20.0), np.int32(7))
    np.testing.assert_array_equal(scaled, np.clip(np.rint(product * (0.01 / 20.0)) + 7, -128, 127))
    with pytest.raises(TypeMismatch, match="quantized_dense takes int8 and uint8, found"):
        relay.quantized_dense(np.int32([[1]]), np.int32([[1]]))
