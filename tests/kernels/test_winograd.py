"""Convolutions of 3 by 3 places with constant weights, by fewer multiplications than places and weights."""

from __future__ import annotations

import numpy as np
import pytest

from relay import relay
from relay.codegen.kernels.gemm import winograd


def convolution(weight, bias, padding=0, stride=1, dilation=1):
    """relu(conv2d(x, weight) + bias), and the same with the input added."""

    attributes = {"padding": padding, "stride": stride, "dilation": dilation}

    @relay
    def of(x):
        y = relay.conv2d(x, weight, layout="NHWC", **attributes) + bias
        return relay.relu(y), y * relay.conv2d(x, weight, layout="NHWC", **attributes)

    return of


def arrays(images, height, width, channels, columns, dtype="float64"):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((images, height, width, channels)).astype(dtype)
    weight = rng.standard_normal((3, 3, channels, columns)).astype(dtype)
    return x, weight, rng.standard_normal(columns).astype(dtype)


def places_of_weights(function, x):
    """Among the weights of each convolution, how many there are for a pair of channels."""
    channels = x.shape[-1]
    constants = function.compile(x)._program.native.constants.values()
    return {array.size // channels for array in constants if array.size % channels == 0 and array.size > 16 * channels}


SIZES = [(1, 4, 4, 3, 5), (2, 5, 7, 20, 37), (1, 6, 9, 16, 16), (3, 2, 3, 8, 70), (1, 1, 5, 4, 4), (1, 12, 3, 33, 32)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("padding", "threads"), [(1, 1), (((1, 0), (0, 2)), 3)])
def test_results_are_those_of_the_interpreter(sizes, padding, threads, monkeypatch):
    monkeypatch.setattr(winograd.WinogradConvolution, "pays", True)
    monkeypatch.setattr(winograd, "PARALLEL_PRODUCTS", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    if padding != 1 and sizes[1] == 1:
        padding = 1
    x, weight, bias = arrays(*sizes)
    function = convolution(weight, bias, padding=padding)
    for compiled, interpreted in zip(function(x), function.interpret(x), strict=True):
        np.testing.assert_allclose(compiled, interpreted, rtol=1e-10, atol=1e-10)


def test_errors_are_no_larger_than_those_of_the_direct_sum(monkeypatch):
    x, weight, bias = arrays(1, 12, 12, 64, 32)
    small = [a.astype(np.float32) for a in (x, weight, bias)]
    wide = [a.astype(np.float64) for a in small]
    exact = np.asarray(convolution(*wide[1:]).interpret(wide[0])[0])
    errors = []
    for pays in (True, False):
        monkeypatch.setattr(winograd.WinogradConvolution, "pays", pays)
        found = np.asarray(convolution(*small[1:])(small[0])[0])
        errors.append(np.sqrt(np.mean((found - exact) ** 2)))
    assert errors[0] < 1.2 * errors[1] < 1e-4


def test_where_it_pays_and_what_is_none():
    x, weight, bias = arrays(1, 16, 16, 32, 32, "float32")
    assert places_of_weights(convolution(weight, bias, padding=1), x) == {16 * 32}
    for attributes in ({"stride": 2}, {"dilation": 2}):
        assert places_of_weights(convolution(weight, bias, **attributes), x) == {9 * 32}
    x, weight, bias = arrays(1, 32, 32, 3, 32, "float32")  # for few channels the transforms are most of the work
    assert places_of_weights(convolution(weight, bias), x) == {9 * 32}


def test_one_program_for_all_numbers_of_images(monkeypatch):
    monkeypatch.setattr(winograd.WinogradConvolution, "pays", True)
    _, weight, bias = arrays(1, 1, 1, 4, 8)

    @relay
    def function(x):
        return relay.relu(relay.conv2d(x, weight, layout="NHWC", padding=1) + bias)

    for images in (1, 2, 5, 0, 3):
        x = arrays(images, 6, 5, 4, 8)[0]
        np.testing.assert_allclose(function(x), function.interpret(x), rtol=1e-10, atol=1e-10)
