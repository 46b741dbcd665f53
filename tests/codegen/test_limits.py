"""Deep recursion, and data that grows without end, in compiled programs."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from relay import Float, Int, List, Tensor, relay
from relay.codegen.runtime.native_stacks import run_both
from relay.errors import CompileError, ExecutionError
from relay.support import limits


@relay
def count(n: Tensor[Int, ()]) -> Tensor[Int, ()]:
    if n == 0:
        return 0
    return 1 + count(n - 1)


@relay
def layers(n, x):
    if n == 0:
        return x
    return relay.tanh(layers(n - 1, x)) + 1.0


@relay
def endless(n: Tensor[Int, ()]) -> Tensor[Int, ()]:
    return 1 + endless(n + 1)


@relay
def total(n, x):
    return relay.sum(layers(n, x))


def test_recursion_deeper_than_the_stack_of_the_thread() -> None:
    for _ in range(2):
        assert int(count(1_000_000)) == 1_000_000
    x = np.ones(4, np.float32)
    np.testing.assert_allclose(layers(200_000, x), layers(100, x), rtol=1e-5)
    gradient = relay.grad(total, wrt=1)
    np.testing.assert_allclose(gradient(150_000, x), np.zeros(4))


def test_deep_recursion_in_many_threads() -> None:
    count(3)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(int(count(400_000)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [400_000] * 4


def test_a_thread_with_a_small_stack_compiles_and_recurs_deeply() -> None:
    @relay
    def fresh(n: Tensor[Int, ()]) -> Tensor[Int, ()]:
        if n == 0:
            return 0
        return 2 + fresh(n - 1)

    found: list[int] = []
    usual = threading.stack_size(64 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(int(fresh(100_000))))
        thread.start()
    finally:
        threading.stack_size(usual)
    thread.join()
    assert found == [200_000]


def test_what_others_set_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def starting(thread: threading.Thread) -> None:
        start(thread)
        threading.stack_size(1 << 20)  # as another thread might

    monkeypatch.setattr(threading.Thread, "start", starting)
    assert run_both(lambda: 1, lambda: 2) == (1, 2)
    assert threading.stack_size(0) == 1 << 20


def test_a_stack_that_there_is_no_memory_for_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_STACK_SIZE", str(1 << 60))
    assert int(count(200_000)) == 200_000


def test_recursion_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_STACK_SIZE", str(16 << 20))
    with pytest.raises(ExecutionError, match=r"recursion deeper than \d{6}: the stack is used up") as raised:
        endless(0)
    assert "RELAY_STACK_SIZE" in (raised.value.help or "")
    assert int(count(100)) == 100


def test_interpreted_recursion_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_STACK_SIZE", str(12 << 20))
    with pytest.raises(ExecutionError, match="recursion deeper than 12288: the stack is used up") as raised:
        endless.interpret(0)
    assert "RELAY_STACK_SIZE" in (raised.value.help or "")
    assert int(count.interpret(np.int32(12_000))) == 12_000


def test_what_calls_python_runs_once_on_a_large_stack(capsys: pytest.CaptureFixture[str]) -> None:
    @relay
    def printing(n: Tensor[Int, ()]) -> Tensor[Int, ()]:
        if n == 1_000_000:
            print("first")
        if n == 0:
            return 0
        return 1 + printing(n - 1)

    assert int(printing(1_000_000)) == 1_000_000
    assert capsys.readouterr().out == "first\n"


def test_what_overwrites_its_arguments_runs_once_on_a_large_stack() -> None:
    @relay(donate_argnames="x")
    def shifted(x, n: Tensor[Int, ()]):
        return x + float(count(n))

    x = np.ones(1000, np.float32)
    np.testing.assert_array_equal(shifted(x, 300_000), np.full(1000, 300_001, np.float32))


def test_ctrl_c_ends_a_deep_recursion(tmp_path: Path) -> None:
    """The function calls itself twice, so that it takes very long once it is deep."""
    program = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where tests run in the background, which ignores it
sys.path[:0] = {sys.path!r}
from relay import Int, Tensor, relay

@relay
def twice(n: Tensor[Int, ()], depth: Tensor[Int, ()]) -> Tensor[Int, ()]:
    if depth > 0:
        return 1 + twice(n, depth - 1)
    if n == 0:
        return 1
    return twice(n - 1, 0) + twice(n - 1, 0)

twice(1, 1)
print("ready", flush=True)
try:
    twice(60, 1_000_000)
except KeyboardInterrupt:
    assert int(twice(2, 1_000_000)) == 1_000_004
    print("interrupted")
"""
    script = tmp_path / "deep.py"
    script.write_text(program)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert output == "interrupted\n"


@relay
def growing(n):
    made = List.Nil()
    while n > 0:
        made = List.Cons(n, made)
    return made


@relay
def growing_list(n):
    found = [relay.ones((1000,))]
    while n > 0:
        found.append(relay.ones((1000,)))
    return relay.sum(found[0])


@relay
def growing_tensor(x):
    while relay.sum(x) > 0.0:
        x = x[x > 0.0]
        x = relay.concatenate((x, x))
    return x


@relay
def wide(n: Tensor[Int, ()]) -> Tensor[Float, (10000,)]:
    x = wide(n + 1)
    return x + wide(n - 1)


@pytest.mark.parametrize(
    ("function", "argument"),
    [(growing, 1), (growing_list, 1), (growing_tensor, np.ones(10, np.float32)), (wide, 0)],
    ids=["data", "list", "tensor", "frames"],
)
def test_data_that_grows_without_end_is_an_error(
    function: relay, argument: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAY_MEMORY_LIMIT", str(8 << 20))
    for _ in range(2):
        with pytest.raises(ExecutionError, match="there is not enough memory for the data") as raised:
            function(argument)
        assert raised.value.help == "RELAY_MEMORY_LIMIT says how many bytes it may take"


def test_memory_that_is_given_back_counts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_MEMORY_LIMIT", str(10 << 20))

    @relay
    def masked(x, rounds):
        for _ in range(rounds):
            x = x[x > 0.0] + 1.0
        return relay.sum(x)

    @relay
    def summed(n, x):
        if n == 0:
            return relay.sum(x)
        y = relay.tanh(x)
        return relay.sum(y) + summed(n - 1, y)

    for _ in range(20):
        masked(np.ones(20_000, np.float32), 10)
        summed(20, np.ones(20_000, np.float32))


@pytest.mark.parametrize("variable", ["RELAY_STACK_SIZE", "RELAY_MEMORY_LIMIT"])
def test_wrong_limits_are_errors(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1G")
    with pytest.raises(CompileError, match=f"{variable} is not a number: '1G'"):
        limits.stack_size() if variable == "RELAY_STACK_SIZE" else limits.memory_limit()


def test_the_limits_follow_the_memory_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_available_memory", lambda: 80 << 20)
    assert limits.stack_size() == 10 << 20
    assert limits.memory_limit() == 72 << 20
    monkeypatch.setattr(limits, "_available_memory", lambda: None)
    assert limits.stack_size() == 1 << 30
    assert limits.memory_limit() == limits.UNLIMITED


def test_results_for_which_there_is_no_memory_are_errors_of_the_run() -> None:
    @relay
    def table(x, y, z):
        return x[:, None, None] * y[None, :, None] * z, x

    @relay
    def alone(x, y, z):
        return x[:, None, None] * y[None, :, None] * z

    @relay
    def between(x, y, z):
        return relay.sum(relay.cumsum(x[:, None, None] * y[None, :, None] * z))

    large = np.ones(1 << 16, np.float32)  # of whose cubes no address space holds one
    for function in (table, alone, between):
        for count in (3, 4, 5):  # later calls have a program for all sizes
            function(large[:count], large[:count], large[:count])
            with pytest.raises(ExecutionError, match="there is not enough memory for the"):
                function(large, large, large)
    np.testing.assert_array_equal(alone(large[:2], large[:3], large[:4]), np.ones((2, 3, 4)))
