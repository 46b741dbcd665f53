"""Branches and loops that graphs decide by values on the GPU, and what leaves them to the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER, EmulatedDriver, emulation

import relay
from relay.codegen.cuda.compiler import machine_code
from relay.codegen.cuda.conditions import KERNEL
from relay.codegen.cuda.driver import use_toolchain
from relay.codegen.cuda.program import kernels_of
from relay.codegen.cuda.target import ARCHITECTURES

pytestmark = pytest.mark.usefixtures("separate_kernels")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)


@pytest.fixture(scope="module")
def driver() -> Iterator[EmulatedDriver]:
    made = EmulatedDriver()
    with use_toolchain(emulation(made)):
        yield made


def calls_agree(driver: EmulatedDriver, function: Any, values: list[Any], *others: Any) -> int:
    """The number of graphs launched, once each call gives what the interpreter does. They read no condition then."""
    driver.calls.clear()
    driver.rounds = 0
    for value in values:
        found = function(relay.device_put(value), *others)
        assert_agree(found, function.interpret(value, *others), rtol=1e-5, atol=1e-6)
    before = driver.calls["cuMemcpyDtoHAsync"], driver.calls["cuGraphLaunch"]
    function(relay.device_put(values[0]), *others)
    if driver.calls["cuGraphLaunch"] > before[1]:
        assert driver.calls["cuMemcpyDtoHAsync"] == before[0]  # nothing is read on the way
    return driver.calls["cuGraphLaunch"]


@needs_compiler
def test_loops(driver: EmulatedDriver) -> None:
    @relay.relay
    def halved(x):
        while (x * x).sum() > 0.1:
            x = x * 0.5
        return x

    @relay.relay
    def newton(x):
        n = 0
        while abs(x * x - 2.0) > 1e-6 and n < 20:
            x = x - (x * x - 2.0) / (2.0 * x)
            n += 1
        return x, n

    @relay.relay
    def swapped(x):
        """Each round's parameters are others of the round before; a loop in a loop; a loop of known length inside."""
        y, z, rounds = x * 0.5, x + 1.0, 0
        while (x * x).sum() > 0.5:
            x, y, z = y, z * 0.1, x
            while z.max() > 1.0:
                z = z * 0.25
                rounds += 1
            for i in range(2):
                z = z + 0.01 * i
        return x, y, z, rounds

    values = [np.float32(factor) * X for factor in (1, 4, 0.01, 8)]
    assert calls_agree(driver, halved, values) == 4
    assert driver.rounds > 10
    assert calls_agree(driver, newton, [np.float32(x) for x in (1, 3, 0.2, 9)]) == 4
    assert calls_agree(driver, swapped, values) == 4


@needs_compiler
def test_branches(driver: EmulatedDriver) -> None:
    @relay.relay
    def chosen(x):
        kept = x * 3.0
        if x.sum() > 1.0:
            y, n = kept * 2.0, 1
        elif x.sum() < -1.0:
            y, n = x - kept, 2
        else:
            y, n = x, 3
        for _ in range(3):
            y = relay.tanh(y)
        return y + kept, n

    @relay.relay
    def in_a_loop(x):
        total = x.sum() * 0.0
        while x.max() > 0.1:
            if x.sum() > 4.0:
                x = x * 0.25
            else:
                x = x * 0.5
                total = total + x.max()
        return x, total

    values = [np.float32(0.3) * X + np.float32(mean) for mean in (0, 2, -2, 0.5)]
    assert calls_agree(driver, chosen, values) == 4
    assert calls_agree(driver, in_a_loop, values) == 4


@needs_compiler
def test_what_is_left_to_the_host(driver: EmulatedDriver) -> None:
    """What changes values of the host, or leaves a loop on one path of a branch only."""

    @relay.relay
    def listed(x):
        seen = []
        while (x * x).sum() > 0.1:
            x = x * 0.5
            seen.append(x.sum())
        return x, len(seen)

    @relay.relay
    def counted(x):
        cell = relay.ref(x.sum())
        while (x * x).sum() > 0.1:
            x = x * 0.5
            cell.value = cell.value + x.sum()
        return x, cell.value

    @relay.relay
    def broken(x):
        while (x * x).sum() > 0.1:
            x = x * 0.5
            if x.max() > 3.0:
                break
            x = x - 0.01
        return x, x.sum()

    @relay.relay
    def early(x, n):
        for _ in range(n):
            x = x * 0.5
            if (x * x).sum() < 0.1:
                break
        return x, x.sum()

    @relay.relay
    def down(x):
        return x if (x * x).sum() < 0.1 else down(x * 0.5) + 0.0

    values = [np.float32(factor) * X for factor in (1, 4, 0.01, 8)]
    for function, others in ((listed, ()), (counted, ()), (broken, ()), (early, (5,)), (down, ())):
        calls_agree(driver, function, values, *others)
    gradient = relay.grad(relay.relay(lambda x: listed(x)[0].sum()))
    calls_agree(driver, gradient, values)


@needs_compiler
def test_drivers_without_conditional_nodes() -> None:
    class Older(EmulatedDriver):
        def _cuGraphConditionalHandleCreate(self, graph: Any, context: int, default: int, flags: int) -> Any:
            return self._codes.CUDA_ERROR_NOT_SUPPORTED, None

    @relay.relay
    def halved(x):
        while (x * x).sum() > 0.1:
            x = x * 0.5
        return x

    older = Older()
    with use_toolchain(emulation(older)):
        assert calls_agree(older, halved, [np.float32(factor) * X for factor in (1, 4, 0.01)]) == 0


def test_machine_code() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")

    @relay.relay
    def halved(x):
        while (x * x).sum() > 0.1:
            x = x * 0.5
        return x

    for architecture in ARCHITECTURES.values():
        _, source = kernels_of(halved.core(X), architecture)
        assert KERNEL in machine_code(source, architecture).resources
