"""Persistent kernels: loops and runs of small kernels that are one kernel of one block of threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER, EmulatedDriver, emulation, run_emulated

import relay
from relay.codegen.cuda.compiler import exceeded_resource, machine_code
from relay.codegen.cuda.driver import use_toolchain
from relay.codegen.cuda.persistent import costs
from relay.codegen.cuda.persistent.costs import Times, longer_times
from relay.codegen.cuda.program import kernels_of
from relay.codegen.cuda.target import ARCHITECTURES, DEFAULT

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

RANDOM = np.random.default_rng(0)

ONLY = ["persistent"]


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def launched_rules(function: Any, *arguments: Any, rtol: float = 1e-5, **options: Any) -> list[str]:
    """The rules of a function's kernels, whose results are the interpreter's."""
    found, program = run_emulated(function, arguments, **options)
    assert_agree(found, function.interpret(*arguments), rtol=rtol, atol=1e-5)
    return [launch.rule for launch in program.host.launches]


def lstm_loss(parameters: Any, xs: Any) -> Any:
    w, u, b = parameters
    h, c = np.zeros(8, np.float32), np.zeros(8, np.float32)
    for x in xs:
        z = x @ w + h @ u + b
        c = relay.sigmoid(z[8:16]) * c + relay.sigmoid(z[0:8]) * relay.tanh(z[16:24])
        h = relay.sigmoid(z[24:32]) * relay.tanh(c)
    return (h * h).sum()


def newton_of(x: Any, limit: Any) -> Any:
    n = 0
    while abs(x * x - 2.0) > 1e-6 and n < limit:
        x = x - (x * x - 2.0) / (2.0 * x)
        n += 1
    return x, n


LSTM = (normal(6, 32), normal(8, 32), normal(32)), normal(5, 6)


@needs_compiler
def test_networks_over_time() -> None:
    """The cell, its loop, and the sweep back over its tape, which is written in place."""
    loss = relay.relay(lstm_loss)
    assert launched_rules(loss, *LSTM) == ONLY
    assert launched_rules(relay.value_and_grad(loss), *LSTM, rtol=1e-4) == ONLY


@needs_compiler
def test_loops_that_end_by_values() -> None:
    newton = relay.relay(newton_of)
    for x in (1.0, 3.0, 0.2, 90.0):
        assert launched_rules(newton, np.float32(x), 20) == ONLY

    @relay.relay
    def left_early(x):
        """A loop in a loop; each is left on several ways, with other values than its parameters."""
        total = x.sum() * 0.0
        for i in range(6):
            y = x * 1.0
            while y.max() > 0.1:
                y = y * 0.5
                if y.sum() < -40.0:
                    break
                if y.min() > -0.2:
                    continue
                total = total + y.max()
            x = x + 0.1 * i
            if total > 4.0:
                break
        return x, total

    for factor in (1.0, 4.0, 0.01, -8.0):
        assert launched_rules(left_early, np.float32(factor) * normal(4, 6)) == ONLY


@needs_compiler
def test_parameters_of_a_round_are_others_of_the_round_before() -> None:
    @relay.relay
    def rotated(x, y, z, n):
        while n > 0:
            x, y, z, n = y, z * 0.9, x, n - 1
        return x, y, z

    for n in range(4):
        assert launched_rules(rotated, normal(700), normal(700), normal(700), n) == ONLY

    @relay.relay
    def decided_by_parameters(x, on):
        """The condition is itself a parameter of the loop, which the next round has another one of."""
        n = 0
        while on:
            n, on = n + 1, (x * n).sum() < 30.0
            x = x + 1.0
        return x, n

    for on in (False, True):
        assert launched_rules(decided_by_parameters, normal(5), on) == ONLY


@needs_compiler
def test_branches() -> None:
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
        return y + kept, n, x

    for mean in (0, 2, -2):
        assert launched_rules(chosen, np.float32(0.3) * normal(4, 6) + np.float32(mean)) == ONLY


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32"])
def test_dtypes(dtype: str) -> None:
    from relay.ir.types import BaseType

    @relay.relay
    def steps(x, w):
        for i in range(3):
            x = x @ w + x
            x = x - x.max() * (x > 1).astype(x.dtype) + i
        return x.sum(axis=1), x

    numpy = BaseType(dtype).dtype
    arguments = (normal(5, 40) * 0.1).astype(numpy), (normal(40, 40) * 0.1).astype(numpy)
    # Sums of 40 terms are in another order, and rounded to the dtype's 8 or 11 bits after each round.
    rtol = {"float64": 1e-12, "int32": 0.0}.get(dtype, 0.1)
    found, program = run_emulated(steps, arguments)
    assert [launch.rule for launch in program.host.launches] == ONLY
    assert_agree(found, steps.interpret(*arguments), rtol=rtol, atol=rtol)


@needs_compiler
def test_updates() -> None:
    """In place where nothing reads the old elements, in a copy where something does."""

    @relay.relay
    def filled(x):
        kept, squares = x * 0.0, x * 0.0
        for i in range(7):
            before = squares * 1.0
            squares[i] = x[i] * x[i]
            kept[i] = before.sum() + squares.sum()
        return squares, kept, x

    seen: list[str] = []
    assert launched_rules(filled, normal(50), change=lambda text: (seen.append(text), text)[1]) == ONLY
    assert seen[-1].count("[index") == 0

    @relay.relay
    def both(x):
        old = x
        for i in range(3):
            old = x.copy()
            x[i] = x[i + 1] * 2.0
        return x, old

    assert launched_rules(both, normal(50)) == ONLY


@needs_compiler
def test_missing_barriers_are_noticed() -> None:
    """All but one of the barriers, in front of a copy by the threads that have computed the elements."""

    @relay.relay
    def mixed(x):
        for _ in range(2):
            x = relay.cumsum(x)[::-1] * 0.1
        return x

    x = normal(300)
    seen: list[str] = []
    assert launched_rules(mixed, x, rtol=1e-4, change=lambda text: (seen.append(text), text)[1]) == ONLY
    text = seen[-1]
    places = [n for n in range(len(text)) if text.startswith("__syncthreads();", n)]
    noticed = 0
    for place in places:
        changed = text[:place] + text[place + len("__syncthreads();") :]
        try:
            launched_rules(mixed, x, rtol=1e-4, change=lambda _, changed=changed: changed)
        except AssertionError:
            noticed += 1
    assert (noticed, len(places)) == (3, 4)


@needs_compiler
def test_what_is_not_persistent() -> None:
    """Lists and assertions, which the host has; symbolic sizes; and tensors for which a GPU has more than one block."""

    @relay.relay
    def listed(x):
        seen = []
        while (x * x).sum() > 0.1:
            x = x * 0.5
            seen.append(x.sum())
        return x, len(seen)

    @relay.relay(dynamic=True)
    def symbolic(x):
        for _ in range(3):
            x = relay.tanh(x) * 0.5
        return x

    @relay.relay
    def large(x):
        for _ in range(3):
            x = relay.tanh(x) * 0.5
        return x

    @relay.relay
    def counted(n):
        total = 0
        for i in range(10):
            total = total + n * i
        return total

    assert len(launched_rules(listed, normal(4, 6))) > 1
    assert launched_rules(large, normal(4, 6)) == ONLY
    assert launched_rules(large, normal(512, 512)) == ["elements"]
    assert "persistent" not in launched_rules(symbolic, normal(4, 6), symbolic=True)
    assert "persistent" not in launched_rules(counted, 4)


def test_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = Times(0.5, 4.0), Times(9.0, 4.0)
    assert few.is_persistent and not many.is_persistent and not few.scaled(3).scaled(0).is_persistent
    assert longer_times(few, many) is many and longer_times(many, few) is many
    monkeypatch.setattr(costs, "LAUNCH", 0.0)

    @relay.relay
    def chain(x):
        return relay.softmax(relay.tanh(x @ x) @ x)

    host, _ = kernels_of(chain.core(normal(9, 9)), DEFAULT)
    assert "persistent" not in {launch.rule for launch in host.launches}


@needs_compiler
def test_calls(tmp_path: Path) -> None:
    """Calls launch one kernel, of which `relay.debug.profile` knows the lines; in files it is as it was."""
    newton = relay.relay(newton_of)
    driver = EmulatedDriver()
    with use_toolchain(emulation(driver)):
        for x in (1.0, 3.0, 7.0):
            found = newton(relay.device_put(np.float32(x)), 20)
            assert_agree(found, newton.interpret(np.float32(x), 20), rtol=1e-6)
        assert driver.launched == ["persistent0"] * 3
        profile = str(relay.debug.profile(newton, relay.device_put(np.float32(3)), 20))
        assert "persistent" in profile
    assert launched_rules(newton, np.float32(3), 20, file=tmp_path / "newton") == ONLY


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=str)
def test_machine_code(architecture: Any) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    step = relay.value_and_grad(relay.relay(lstm_loss))
    host, source = kernels_of(step.core(*LSTM), architecture)
    (launch,) = host.launches
    resources = machine_code(source, architecture).resources[launch.name]
    assert exceeded_resource(resources, launch.threads, architecture) is None and resources.shared_bytes > 0
