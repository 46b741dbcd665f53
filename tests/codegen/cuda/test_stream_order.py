"""The order of streams: programs on a driver whose streams run only when the host waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from gpu import stand_in_cublas, stand_in_cudnn
from gpu.delays import DelayedDriver
from gpu.emulation import COMPILER, emulation

import relay
from relay.codegen.cuda.driver import use_toolchain

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)


@pytest.fixture
def driver() -> Iterator[DelayedDriver]:
    made = DelayedDriver()
    cublas, cudnn = stand_in_cublas.StandIn(made), stand_in_cudnn.StandIn(made)
    with use_toolchain(emulation(made, cublas=lambda: cublas, cudnn=lambda: cudnn)):
        yield made


def calls_agree(function: Any, arguments: list[Any], atol: float = 1e-5) -> None:
    """Repeated calls, which become graphs, with results that are read once all have been started."""
    given = [tuple(np.float32(factor) * a for a in arguments) for factor in (1, 2, 0.5, 3)]
    found = [function(*relay.device_put(part)) for part in given]
    for result, part in zip(found, given, strict=True):
        assert_agree(result, function.interpret(*part), rtol=1e-4, atol=atol)


def test_nothing_waits_before_results_are_read(driver: DelayedDriver) -> None:
    step = relay.relay(lambda x, w: relay.softmax(relay.tanh(x @ w) @ w.T))
    found = step(*relay.device_put((X, X.T.copy())))
    assert driver.waits == 0
    assert_agree(found, step.interpret(X, X.T.copy()), rtol=1e-5, atol=1e-6)
    assert driver.waits


def test_repeated_calls(driver: DelayedDriver) -> None:
    calls_agree(relay.relay(lambda x: relay.cumsum(x, axis=1) @ relay.sort(x, axis=1).T), [X])


@pytest.mark.usefixtures("separate_kernels")
def test_graphs_and_conditions(driver: DelayedDriver) -> None:
    @relay.relay
    def looped(x):
        while (x * x).sum() > 0.5:
            x = x * 0.5
            if x.max() > 0.3:
                x = x - 0.1
        for _ in range(3):
            x = relay.tanh(x) + x.sum()
        return x

    @relay.relay
    def listed(x):
        seen = []
        while x.max() > 0.2:
            x = x * 0.5
            seen.append(x)
        return seen[0] if len(seen) > 1 else x

    calls_agree(looped, [X])
    assert driver.calls["cuGraphLaunch"] >= 2
    calls_agree(listed, [X])


def test_libraries(driver: DelayedDriver) -> None:
    a = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32) * np.float32(0.1)

    @relay.relay
    def layers(x, w):
        for _ in range(4):
            x = relay.relu(x @ w)
        return x

    calls_agree(layers, [a, a.T.copy()], atol=1e-4)  # of numbers of about 30, in four sums of 256 terms


def test_convolutions(driver: DelayedDriver) -> None:
    """Copies to the library's layout, and back, run in the order of the stream."""
    x, w = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((1, 64, 24, 24), (64, 64, 3, 3)))

    @relay.relay
    def layers(x, w):
        for _ in range(2):
            x = relay.relu(relay.conv2d(x, w, padding=1) * 0.05)
        return x

    calls_agree(layers, [x, w], atol=1e-3)


def test_memory_of_arguments_is_used_again_in_order(driver: DelayedDriver) -> None:
    """A tensor that the host has dropped is still read by what was started before."""
    double = relay.relay(lambda x: x * 2.0)
    found = [double(double(relay.device_put(X + np.float32(n)))) for n in range(5)]
    assert driver.waits == 0
    for n, result in enumerate(found):
        assert_agree(result, 4 * (X + np.float32(n)), rtol=1e-6)
