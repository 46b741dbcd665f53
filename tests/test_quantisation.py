"""Programs in 8 bits: what the samples say of the scales, and how far the answers are off."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.eval import interpreter
from relay.ir.check import check
from relay.ir.expr import OpCall
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
    quantised = relay.quantise(network, given, method)  # type: ignore[arg-type]
    check(quantised.module, "structured")
    operators = [b.value.operator for b in quantised.module.main.body.bindings if isinstance(b.value, OpCall)]
    assert "conv2d" not in operators and "matmul" not in operators
    assert [layer.operator for layer in quantised.layers] == ["conv2d", "matmul"]
    for layer in quantised.layers:
        assert 0 < layer.error < 0.03 and 0 < layer.total < 0.05
        assert all(np.log2(scale) % 1 == 0 for scale in layer.scales)
    exact = network.interpret(*given[0])
    found = interpreter.run(quantised.module, given[0])
    np.testing.assert_allclose(found, exact, atol=0.01)
    np.testing.assert_allclose(quantised(*given[0]), found, atol=1e-6)
    assert str(quantised).count("error") == 2


def test_outliers_do_not_count_by_percentile_and_kl() -> None:
    @relay
    def product(x, w):  # type: ignore[no-untyped-def]
        return x @ w

    x = RANDOM.normal(size=(64, 64)).astype(np.float32)
    x[0, 0] = 1000.0
    w = RANDOM.normal(size=(64, 4)).astype(np.float32)
    scales = {m: relay.quantise(product, [[x, w]], m, 99.9).layers[0].scales[0] for m in ("max", "percentile", "kl")}  # type: ignore[arg-type]
    assert scales["max"] == 8.0  # 2 ** ceil(log2(1000 / 127))
    assert scales["percentile"] <= 2**-4 and scales["kl"] < scales["max"]


def test_a_shared_operand_is_quantised_once_and_loops_stay() -> None:
    @relay
    def shared(x, v, w):  # type: ignore[no-untyped-def]
        y = x @ v + x @ w
        for _ in range(40):
            y = relay.tanh(y @ w)
        return y

    given = [RANDOM.normal(size=(4, 4)).astype(np.float32) for _ in range(3)]
    quantised = relay.quantise(shared, [given])
    operators = [b.value.operator for b in quantised.module.main.body.bindings if isinstance(b.value, OpCall)]
    assert operators.count("quantize") == 3 and operators.count("quantized_dense") == len(quantised.layers) == 2
    assert "matmul(" in relay.to_text(quantised.module)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="needs samples"):
        relay.quantise(network, [])
    with pytest.raises(ValueError, match="max, percentile, kl; found 'mean'"):
        relay.quantise(network, samples(), "mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most 100, found 101"):
        relay.quantise(network, samples(), "percentile", 101)


def test_what_has_no_products_stays() -> None:
    module = Pipeline("dce")(relay.parse("fn f(%x: Tensor[float32, (3,)]) -> Tensor[float32, (3,)] { %x }"))
    quantised = relay.quantise(module, [[np.ones(3, np.float32)]])
    assert quantised.layers == () and relay.to_text(quantised.module) == relay.to_text(module)
