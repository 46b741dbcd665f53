"""Profiles: calls and operations are exact, times add up, and what is written can be read."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from relay import Float64, Relation, Tensor, debug
from relay.codegen.runtime.machine_peak import MachinePeak
from relay.debug.profiling import machine
from relay.debug.profiling import profile as profiles
from relay.errors import ExecutionError, FrontendError
from relay.typecheck.relations import same_shape

PEAK = MachinePeak(1, {"float32": 2e10, "float64": 1e10}, ((1 << 13, 5e10), (1 << 26, 5e9)))


@pytest.fixture(autouse=True, scope="module")
def measured_peak() -> Iterator[None]:
    """The machine is not measured for each test, has one thread, and is not asked how fast it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAY_NUM_THREADS", "1")
        patch.setattr(profiles, "ALLOWED", 1e9)  # each kernel is measured by itself
        for threads in (1, 2):
            patch.setitem(machine._known, threads, PEAK)
        yield


def check_sums(found: debug.Profile) -> None:
    """Lines add up to kernels, kernels and the rest to the call."""
    rest = found.between + found.calling
    assert sum(kernel.seconds for kernel in found.kernels) + rest == pytest.approx(found.seconds)
    assert sum(line.seconds for line in found.lines) + rest == pytest.approx(found.seconds)
    assert sum(line.flops for line in found.lines) == found.flops
    for kernel in found.kernels:
        assert sum(share.share for share in kernel.shares) == pytest.approx(1.0)
        assert kernel.calls > 0 and kernel.seconds >= 0


def calls(found: debug.Profile, operator: str) -> int:
    """How often kernels with an operator were called."""
    return sum(kernel.calls for kernel in found.kernels if operator in kernel.operators)


@relay
def layers(x, w, v):
    h = relay.tanh(x @ w)
    total = 0.0
    for _ in range(7):
        h = relay.tanh(h @ v)
        total = total + h.sum()
    return total


ARRAYS = (np.ones((16, 8)), np.full((8, 12), 0.1), np.full((12, 12), 0.1))


BODY = layers.surface.main.span.line + 1  # type: ignore[union-attr]
"""The first line of its body."""


@pytest.fixture(scope="module")
def gradient() -> debug.Profile:
    """A profile of a function with its gradient."""
    return debug.profile(relay.value_and_grad(layers), *ARRAYS, runs=2)


def test_operations_of_a_loop_and_its_gradient(gradient: debug.Profile) -> None:
    check_sums(gradient)
    assert gradient.name == "layers" and gradient.runs == 2
    forward: dict[int | None, int] = {}
    for kernel in gradient.kernels:
        for share in kernel.shares:
            if not share.is_backward:
                forward[share.line] = forward.get(share.line, 0) + kernel.calls * share.flops
    assert forward[BODY] == 2 * 16 * 8 * 12 + 30 * 16 * 12
    assert forward[BODY + 3] == 7 * (2 * 16 * 12 * 12 + 30 * 16 * 12)
    assert forward[BODY + 4] == 7 * (16 * 12 + 1)
    product = next(k for k in gradient.kernels if "tanh" in k.operators and k.calls == 7)
    assert product.bytes == 7 * 8 * (16 * 12 + 12 * 12 + 16 * 12)
    assert {k.is_backward for k in gradient.kernels} == {False, True}
    products = [k for k in gradient.kernels if k.is_backward and {"matmul", "dense"} & {*k.operators}]
    assert sum(k.calls for k in products) == 2 * 8
    line = next(line for line in gradient.lines if line.line == BODY + 3)
    assert 0 < line.backward < line.seconds and line.forward + line.backward == pytest.approx(line.seconds)
    assert line.text == "h = relay.tanh(h @ v)" and Path(line.file or "").name == "test_profiles.py"
    text = str(gradient)
    assert "layers: " in text and "between kernels" in text and f"test_profiles.py:{BODY + 3}" in text


@relay
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def test_recursion_counts_each_call() -> None:
    found = debug.profile(fibonacci, 10, runs=2)
    check_sums(found)
    assert calls(found, "less") == 177
    assert calls(found, "add") == 88
    assert found.flops == 0


@relay
def either(x, wants):
    total = 0.0
    for i in range(6):
        if i < wants:  # noqa: SIM108
            total = total + (x * x).sum()
        else:
            total = total + relay.exp(x).max()
    return total


def test_branches_count_what_was_run() -> None:
    found = debug.profile(either, np.ones((40, 50)), 2, runs=2)
    check_sums(found)
    assert (calls(found, "sum"), calls(found, "max")) == (2, 4)
    by_operator = {s.operator: s.flops for k in found.kernels for s in k.shares}
    assert (by_operator["exp"], by_operator["max"]) == (30 * 2000, 2000)
    assert calls(debug.profile(either, np.ones((40, 50)), 6, runs=1), "max") == 0


def test_short_kernels_share_what_they_take_together(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = np.ones((40, 50)), 2
    monkeypatch.setattr(profiles, "ALLOWED", 0.0)
    found = debug.profile(either, *arguments, runs=2)
    check_sums(found)
    assert all(k.is_divided and k.shortest is None for k in found.kernels)
    assert calls(found, "sum") == 2 and found.probe_overhead == 0.0
    assert "about " in str(found)
    monkeypatch.setattr(profiles, "ALLOWED", 1e9)
    each = debug.profile(either, *arguments, runs=2)
    assert not any(k.is_divided for k in each.kernels) and each.probe_overhead > 0
    assert all(k.shortest <= k.longest <= k.seconds * 1.001 + 1e-8 for k in each.kernels if k.calls > 1)  # type: ignore[operator]
    assert len(each.events) == sum(k.calls for k in each.kernels) and each.dropped == 0


def test_symbolic_and_data_dependent_sizes() -> None:
    @relay
    def scaled(x):
        return (x * 2.0 + 1.0).sum()

    for size in (1000, 2000, 3000):
        found = debug.profile(scaled, np.ones(size), runs=1)
        check_sums(found)
        assert found.flops == 3 * size
    assert len(scaled.programs()) == 2  # the second one is of symbolic size

    @relay
    def chosen(x):
        kept = x[x > 0.5]
        return relay.exp(kept).sum()

    x = np.zeros(1000)
    x[:300] = 1.0
    found = debug.profile(chosen, x, runs=1)
    by_operator = {s.operator: s.flops for k in found.kernels for s in k.shares}
    assert by_operator["exp"] == 30 * 300


def test_arguments_are_left_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    @relay
    def counting(cell, x):
        while cell.value < 5.0:
            cell.value = cell.value + 1.0
            print("one more", cell.value)
        return cell.value * x

    cell = relay.ref(np.float64(0.0))
    found = debug.profile(counting, cell, np.ones(3), runs=3)
    assert cell.value == 0.0 and capsys.readouterr().out == ""
    assert calls(found, "less") == 6
    np.testing.assert_array_equal(counting(cell, np.ones(3)), 5.0 * np.ones(3))
    assert capsys.readouterr().out.count("one more") == 5

    @relay(donate_argnames="x")
    def doubled(x):
        return x * 2.0

    x = np.ones(100)
    debug.profile(doubled, x, runs=2)
    np.testing.assert_array_equal(x, np.ones(100))


def test_what_is_written_can_be_read(gradient: debug.Profile, tmp_path: Path) -> None:
    found = gradient
    for name in ("flame.svg", "memory.svg"):
        found.save_flame_graph(tmp_path / name) if "flame" in name else found.save_memory_plot(tmp_path / name)
        root = ElementTree.fromstring((tmp_path / name).read_text())
        assert root.tag.endswith("svg") and len(list(root)) > 10
    titles = [e.text or "" for e in ElementTree.fromstring((tmp_path / "flame.svg").read_text()).iter() if e.text]
    assert any("backward" in title for title in titles) and any("test_profiles.py" in title for title in titles)

    found.save_flame_graph(tmp_path / "flame.html")
    page, boxes = (tmp_path / "flame.html").read_text(), []

    class Boxes(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            boxes.extend(value for name, value in attrs if name == "data-width")

    Boxes().feed(page)
    assert float(boxes[0] or 0) == 1.0 and len(boxes) > 10
    assert "relay-flame" in found._repr_html_()

    found.save_trace(str(tmp_path / "trace.json"))
    events: list[dict[str, Any]] = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    stretches = [e for e in events if e["ph"] == "X"]
    assert all({"name", "pid", "tid", "ts", "dur"} <= {*e} and e["dur"] >= 0 for e in stretches)
    kernels = [e for e in stretches if e["pid"] == 1]
    assert len(kernels) == sum(k.calls for k in found.kernels)
    assert [e["ts"] for e in kernels] == sorted(e["ts"] for e in kernels)
    assert {e["args"]["phase"] for e in stretches if e["pid"] == 2} == {phase.name for phase in found.phases}
    assert any(e["ph"] == "C" and e["args"]["bytes"] > 0 for e in events)

    for save, name in ((found.save_flame_graph, "a.png"), (found.save_trace, "a"), (found.save_memory_plot, "a.html")):
        with pytest.raises(FrontendError, match="the name ends in"):
            save(tmp_path / name)


def test_memory_and_phases(gradient: debug.Profile) -> None:
    found, memory = gradient, gradient.memory
    inputs = sum(a.nbytes for a in ARRAYS)
    assert (memory.arguments, memory.results, memory.constants) == (inputs, 8 + inputs, 0)
    assert memory.workspace >= 16 * 12 * 8
    assert memory.fixed + 16 * 12 * 8 <= memory.peak <= memory.fixed + memory.workspace
    assert len(memory.times) == len(memory.bytes) == sum(k.calls for k in found.kernels)
    assert list(memory.times) == sorted(memory.times)
    names = [phase.name for phase in found.phases]
    assert names == ["type checking", "passes", "kernels", "host code", "machine code"]
    assert all(phase.seconds == pytest.approx(sum(phase.parts.values())) for phase in found.phases)
    kernels = next(phase for phase in found.phases if phase.name == "kernels")
    assert {*kernels.parts} == {k.name for k in found.kernels}
    assert all(k.compile_seconds == kernels.parts[k.name] for k in found.kernels)


@relay
def grown(n):
    xs = []
    for i in range(n):
        xs.append(relay.cast(i, Float64) * 0.5)
    return sum(xs)


def test_memory_that_grows_while_the_program_runs() -> None:
    found = debug.profile(grown, 3000, runs=1)
    check_sums(found)
    assert found.memory.peak >= 3000 * 8
    assert found.memory.bytes[0] < found.memory.peak


def test_operators_with_functions_of_their_own() -> None:
    @relay.pure_callback(relation=Relation("T:float -> T", same_shape))
    def summed_up(x: Tensor) -> Tensor:
        """The sums up to each element. x: (T float, (n,)) -> (T, (n,))."""
        return np.cumsum(x)

    @relay
    def outside(x):
        return summed_up(x * 2.0).sum()

    try:
        found = debug.profile(outside, np.arange(4.0), runs=2)
    finally:
        del relay.get_env()._operators["summed_up"]
    check_sums(found)
    (callback,) = (k for k in found.kernels if k.kind == "Python")
    assert (callback.name, callback.calls, callback.fraction) == ("summed_up", 1, None)


def test_structures_keywords_static_arguments_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_NUM_THREADS", "2")

    @relay(static_argnames="rounds")
    def stepped(p, x, rounds, scale=1.0):
        for _ in range(rounds):
            x = relay.exp(x * p["w"] - relay.max(x)) * scale
        return {"x": x}

    p = {"w": np.ones((300, 200))}
    found = debug.profile(stepped, p, x=np.ones((300, 200)), rounds=3, scale=0.5, runs=1)
    check_sums(found)
    assert calls(found, "exp") == 3 and found.threads == 2


def test_wrong_calls() -> None:
    with pytest.raises(FrontendError, match="profile takes a decorated function, found function"):
        debug.profile(lambda x: x, 1)  # type: ignore[arg-type]
    for runs in (0, -1, 2.5, True):
        with pytest.raises(FrontendError, match="runs is a number from 1 on"):
            debug.profile(layers, *ARRAYS, runs=runs)  # type: ignore[arg-type]
    with pytest.raises(FrontendError, match="threads is a number"):
        debug.machine_peak(0)

    @relay
    def failing(x, n):
        return x[n]

    with pytest.raises(ExecutionError):
        debug.profile(failing, np.ones(3), 7, runs=1)
    assert calls(debug.profile(failing, np.ones(3), 1, runs=1), "index") <= 1


def test_interrupts_leave_nothing_broken() -> None:
    @relay
    def endless(n):
        k = 0
        while k < n:
            k = k + 2 - 1
        return k

    assert endless(3) == 3
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        debug.profile(endless, np.int64(2**62), runs=1)
    timer.cancel()
    assert time.monotonic() - start < 60
    assert endless(4) == 4 and debug.profile(endless, 5, runs=1).runs == 1


def test_the_measured_peak_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("RELAY_CACHE_SIZE", "1000000")
    measured: list[int] = []

    def measure(threads: int) -> MachinePeak:
        measured.append(threads)
        return MachinePeak(threads, {"float32": 1e10 * len(measured)}, ((8192, 1e9),))

    monkeypatch.setattr(machine, "_measure", measure)
    first = debug.machine_peak(7)
    monkeypatch.delitem(machine._known, 7)
    assert debug.machine_peak(7) == first and measured == [7]
    assert debug.machine_peak(7, again=True).flops == {"float32": 2e10}
    monkeypatch.delitem(machine._known, 7)
    (file,) = tmp_path.glob("peak-*.json")
    file.write_text("{}")
    assert debug.machine_peak(7).flops == {"float32": 3e10}
    monkeypatch.delitem(machine._known, 7)


def test_the_peak_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.codegen.tvm import peak_kernels

    monkeypatch.setattr(peak_kernels, "SIZES", (1 << 13, 1 << 18))
    found = peak_kernels.measure(1)
    assert found.flops_of("float32") > 1e8 and found.flops_of("float16") == found.flops_of("float32")
    rates = [rate for _, rate in found.bandwidth]
    assert rates == sorted(rates, reverse=True) and found.bandwidth_of(10) == rates[0]
    assert found.bandwidth_of(1 << 40) == rates[-1]
    assert MachinePeak.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_an_interrupted_run_does_not_lower_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the short runs takes as long as one that is long enough to be measured."""
    from relay.codegen.tvm import peak_kernels

    clock = [0.0]

    def run(rounds: int) -> None:
        clock[0] += 1e-6 + rounds * 1e-9 + (0.01 if rounds == 16 and clock[0] == 0.0 else 0.0)

    monkeypatch.setattr(peak_kernels.time, "perf_counter", lambda: clock[0])
    assert peak_kernels._rate(run) == pytest.approx(1e9, rel=0.01)
