"""Programs in 8 bits: what the samples say of the scales, and how far the answers are off."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.eval import interpreter
from relay.ir.expr import OpCall
from relay.ir.traverse import walk
from relay.ir.validation.check import check
from relay.transform.pipeline import Pipeline

RANDOM = np.random.default_rng(0)
KERNEL = (RANDOM.normal(size=(8, 3, 3, 3)) * 0.2).astype(np.float32)
WEIGHTS = (RANDOM.normal(size=(8, 10)) * 0.3).astype(np.float32)


@relay
def network(x, b):  # type: ignore[no-untyped-def]
    h = relay.relu(relay.conv2d(x, KERNEL, padding=1) + b)
    return relay.softmax(relay.mean(h, axis=(2, 3)) @ WEIGHTS)


def samples(count: int = 3) -> list[list[np.ndarray]]:
    draw = np.random.default_rng(1).normal
    return [[draw(size=(2, 3, 8, 8)).astype(np.float32), draw(size=(8, 1, 1)).astype(np.float32)] for _ in range(count)]


@pytest.mark.parametrize("method", ["max", "percentile", "kl"])
def test_a_network_in_8_bits(method: str) -> None:
    given = samples()
    quantized = relay.to_int8(network, given, method)  # type: ignore[arg-type]
    check(quantized.module, "structured")
    operators = [b.value.operator for b in quantized.module.main.body.bindings if isinstance(b.value, OpCall)]
    assert "conv2d" not in operators and "matmul" not in operators
    assert [layer.operator for layer in quantized.layers] == ["conv2d", "matmul"]
    for layer in quantized.layers:
        assert 0 < layer.error < 0.03 and 0 < layer.total < 0.05
        assert all(np.log2(scale) % 1 == 0 for scale in layer.scales)
    exact = network.interpret(*given[0])
    found = interpreter.run(quantized.module, given[0])
    np.testing.assert_allclose(found, exact, atol=0.01)
    np.testing.assert_allclose(quantized(*given[0]), found, atol=1e-6)
    assert str(quantized).count("error") == 2


SMALL = (RANDOM.normal(size=(8, 8, 3, 3)) * 0.1).astype(np.float32)
WIDE = (RANDOM.normal(size=(8, 8, 1, 1)) * 0.2).astype(np.float32)
BIAS = RANDOM.normal(size=(8, 1, 1)).astype(np.float32)


@relay
def residual_network(x):  # type: ignore[no-untyped-def]
    """Blocks whose addition is of a product and of what is kept, and of two products; a loop; pooling."""
    h = relay.max_pool2d(relay.relu(relay.conv2d(x, KERNEL, padding=1) + BIAS), 2)
    for _ in range(2):
        h = relay.relu(relay.conv2d(relay.relu(relay.conv2d(h, SMALL, padding=1) + BIAS), SMALL, padding=1) + h)
    y = relay.relu(relay.conv2d(h, SMALL, padding=1, stride=2) + relay.conv2d(h, WIDE, stride=2))
    return relay.minimum(relay.mean(y, axis=(2, 3)) @ WEIGHTS, 3.0)


def test_integers_between_products() -> None:
    given = [[x] for x, _ in samples()]
    quantized = relay.to_int8(residual_network, given, "max", integer=True)
    check(quantized.module, "structured")
    exact = residual_network.interpret(*given[0])
    found = interpreter.run(quantized.module, given[0])
    np.testing.assert_allclose(found, exact, atol=0.25)
    np.testing.assert_allclose(found, relay.to_int8(residual_network, given, "max")(*given[0]), atol=0.2)
    np.testing.assert_allclose(quantized(*given[0]), found, atol=1e-6)
    assert [layer.times for layer in quantized.layers] == [3, 6, 6, 3, 3, 3]
    assert all(0 < layer.error < 0.05 and 0 < layer.total < 0.1 for layer in quantized.layers)
    operators = [b.value.operator for b in walk(quantized.module.main.body) if isinstance(b.value, OpCall)]
    assert operators.count("quantize") == 4  # of the argument, the means, and what the loop is given and has made
    assert operators.count("dequantize") == 4  # of the same but the argument, and the result
    assert "relu" not in operators and operators.count("right_shift") == 5
    with pytest.raises(ValueError, match="scales that are powers of two"):
        relay.to_int8(residual_network, given, integer=True, power_of_two=False)


def test_outliers_do_not_count_by_percentile_and_kl() -> None:
    @relay
    def product(x, w):  # type: ignore[no-untyped-def]
        return x @ w

    x = RANDOM.normal(size=(64, 64)).astype(np.float32)
    x[0, 0] = 1000.0
    w = RANDOM.normal(size=(64, 4)).astype(np.float32)
    scales = {m: relay.to_int8(product, [[x, w]], m, 99.9).layers[0].scales[0] for m in ("max", "percentile", "kl")}  # type: ignore[arg-type]
    assert scales["max"] == 8.0  # 2 ** ceil(log2(1000 / 127))
    assert scales["percentile"] <= 2**-4 and scales["kl"] < scales["max"]


def test_scales_that_fit_the_range() -> None:
    given = samples()
    exact = relay.to_int8(network, given, "max", power_of_two=False)
    shifts = relay.to_int8(network, given, "max")
    for one, other in zip(exact.layers, shifts.layers, strict=True):
        assert one.error <= other.error  # the range is used to its end
        assert all(a <= b < 2 * a for a, b in zip(one.scales, other.scales, strict=True))
    assert exact.layers[0].scales[1] == np.abs(KERNEL).max() / 127
    np.testing.assert_allclose(exact(*given[0]), network.interpret(*given[0]), atol=0.01)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_samples_that_8_bits_cannot_hold(bad: float) -> None:
    (given,) = samples(1)
    given[0][0, 0, 0, 0] = bad
    with pytest.raises(ValueError, match=r"test_quantization.py:\d+:\d+: the samples give conv2d infinities or NaNs"):
        relay.to_int8(network, [given])


def test_a_shared_operand_is_quantized_once() -> None:
    @relay
    def shared(x, v, w):  # type: ignore[no-untyped-def]
        y = x @ v + x @ w
        for _ in range(40):
            y = relay.tanh(y @ w)
        return y

    given = [RANDOM.normal(size=(4, 4)).astype(np.float32) for _ in range(3)]
    quantized = relay.to_int8(shared, [given])
    operators = [b.value.operator for b in quantized.module.main.body.bindings if isinstance(b.value, OpCall)]
    assert operators.count("quantize") == 3 and operators.count("quantized_dense") == 2
    inside = [b.value.operator for b in walk(quantized.module.main.body) if isinstance(b.value, OpCall)]
    assert inside.count("quantize") == 4  # in the loop, w is quantized already
    assert [layer.times for layer in quantized.layers] == [1, 1, 40]
    assert "matmul(" not in relay.to_text(quantized.module)


@relay
def recurrent(xs, h):  # type: ignore[no-untyped-def]
    for t in range(xs.shape[0]):
        h = relay.tanh(xs[t] @ SQUARE + h @ SQUARE)
    return h @ SQUARE


@relay
def branching(x, c):  # type: ignore[no-untyped-def]
    if c > 0.0:
        y = x @ SQUARE
    elif c < -5.0:
        y = x @ (SQUARE + 1.0)  # which no sample reaches
    else:
        y = relay.relu(x @ SQUARE) @ SQUARE
    return y


@relay
def powers(x, n):  # type: ignore[no-untyped-def]
    """By recursion: the product is in a function of its own."""
    return x if n <= 0 else relay.tanh(powers(x, n - 1) @ SQUARE)


SQUARE = (RANDOM.normal(size=(8, 8)) * 0.3).astype(np.float32)
ROWS = RANDOM.normal(size=(5, 2, 8)).astype(np.float32)
IN_BLOCKS = [
    (recurrent, [[ROWS, ROWS[0]], [ROWS[:, ::-1].copy(), ROWS[1]]], [2, 10, 2]),  # one of them leaves the loop
    (branching, [[ROWS[0], np.float32(1)], [ROWS[1], np.float32(-1)], [ROWS[2], np.float32(-2)]], [1, 2, 2]),
    (powers, [[ROWS[0], np.int32(4)]], [4]),
]


@pytest.mark.parametrize(("program", "given", "times"), IN_BLOCKS, ids=lambda v: getattr(v, "__name__", ""))
def test_products_in_loops_branches_and_functions(
    program: relay.RelayFunction, given: list[list[np.ndarray]], times: list[int]
) -> None:
    quantized = relay.to_int8(program, given)
    check(quantized.module, "structured")
    assert [layer.times for layer in quantized.layers] == times
    for layer in quantized.layers:
        assert 0 < layer.error < 0.03 and 0 < layer.total < 0.06
    for arguments in given:
        found = interpreter.run(quantized.module, arguments)
        np.testing.assert_allclose(found, program.interpret(*arguments), atol=0.1)
        np.testing.assert_allclose(quantized(*arguments), found, atol=1e-5)
    stays = relay.to_text(quantized.module).count("matmul(")
    assert stays == (1 if program is branching else 0)


def test_errors_are_of_the_times_that_both_compute() -> None:
    """A choice that falls otherwise in the quantized program."""

    @relay
    def f(x):  # type: ignore[no-untyped-def]
        y = x @ SQUARE
        if y[0, 0] > limit:
            y = y @ SQUARE
        return y

    exact = float((ROWS[0] @ SQUARE)[0, 0])
    for limit in (np.float32(exact - 1e-4), np.float32(exact + 1e-4)):
        f.reload()
        layers = relay.to_int8(f, [[ROWS[0]]]).layers
        assert len(layers) == (2 if limit < exact else 1)
        assert all(np.isfinite(layer.total) for layer in layers)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="needs samples"):
        relay.to_int8(network, [])
    with pytest.raises(ValueError, match="max, percentile, kl; found 'mean'"):
        relay.to_int8(network, samples(), "mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most 100, found 101"):
        relay.to_int8(network, samples(), "percentile", 101)


def test_what_has_no_products_stays() -> None:
    module = Pipeline("dce")(relay.parse("fn f(%x: Tensor[float32, (3,)]) -> Tensor[float32, (3,)] { %x }"))
    quantized = relay.to_int8(module, [[np.ones(3, np.float32)]])
    assert quantized.layers == () and relay.to_text(quantized.module) == relay.to_text(module)
