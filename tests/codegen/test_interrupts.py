"""Signals while compiled code runs, and processes that are copied."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import relay as package
from relay import Int, Tensor, relay
from relay.support.locks import compiling
from relay.support.signals import deferral


class Stop(Exception):
    pass


@pytest.fixture
def stopped():
    """A signal comes soon, whose handler raises."""

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@relay
def endless(x):
    while x >= 0:
        x = x * 0.5 + 0.5
    return x


@relay
def fibonacci(n: Tensor[Int, ()]) -> Tensor[Int, ()]:
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@relay
def endless_in_rounds(x):
    """Each loop is short, and there is no end of them."""
    while x >= 0:
        for _ in range(10):
            x = x * 0.5 + 0.5
    return x


@relay
def rows(x, w):
    while x.sum() > -1.0:
        x = relay.tanh(x @ w)
    return x


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (endless, (np.float32(1),)),
        (endless_in_rounds, (np.float32(1),)),
        (fibonacci, (np.int32(70),)),
        (rows, (np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32))),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_handler_that_raises_ends_the_call(function, arguments, request):
    function.compile(*arguments)
    request.getfixturevalue("stopped")
    with pytest.raises(Stop):
        function(*arguments)


def test_the_function_can_be_called_again(request):
    fibonacci.compile(np.int32(70))
    request.getfixturevalue("stopped")
    with pytest.raises(Stop):
        fibonacci(np.int32(70))
    assert int(fibonacci(np.int32(20))) == 6765


def test_a_handler_that_returns_lets_the_call_go_on():
    fibonacci.compile(np.int32(3))
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        assert int(fibonacci(np.int32(30))) == 832040
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_copy_of_a_process_computes(tmp_path):
    script = """
        import os, numpy as np, relay
        @relay.relay
        def f(x, w):
            return relay.tanh(x @ w).sum()
        x, w = np.ones((256, 512), np.float32), np.full((512, 512), 0.01, np.float32)
        first = float(f(x, w))
        child = os.fork()
        if not child:
            slope = np.asarray(relay.grad(f, wrt=0)(x, w))  # compiled in the child
            os._exit(0 if float(f(x, w)) == first and slope.shape == x.shape else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
        assert float(f(x, w)) == first
    """
    file = tmp_path / "fork.py"
    file.write_text(textwrap.dedent(script))
    environment = {**os.environ, "RELAY_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_copy_that_is_made_while_another_thread_compiles(tmp_path):
    """The copy compiles the same and other functions, and collects garbage."""
    script = """
        import gc, os, threading, time, numpy as np, relay
        text = "def f(x):\\n    h = x\\n" + "    h = relay.tanh(h) * x\\n" * 400 + "    return h\\n"
        long = relay.from_source(text, {"relay": relay})
        short = relay.from_source("def g(x):\\n    return relay.exp(x) * 2.0\\n", {"relay": relay})
        x = np.zeros(3, np.float32)
        thread = threading.Thread(target=long, args=(x,))
        thread.start()
        children = []
        for _ in range(4):
            time.sleep(0.1)
            child = os.fork()
            if not child:
                right = gc.isenabled() and float(short(x)[0]) == 2 and float(long(x)[0]) == 0
                os._exit(0 if right else 1)
            children.append(child)
        for child in children:
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0, status
        thread.join()
        assert gc.isenabled()
    """
    file = tmp_path / "fork.py"
    file.write_text(textwrap.dedent(script))
    environment = {**os.environ, "RELAY_CACHE_SIZE": "0"}
    done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# ---- while a program is compiled


def raised_at(step, work):
    """What `work` raises if a signal, whose handler raises, comes at its call number `step` of a Python function; None
    if there are not so many."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        if event == "call":
            calls += 1
            if calls == step:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGALRM)

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    sys.setprofile(count)
    try:
        work()
    except BaseException as error:
        return error
    finally:
        sys.setprofile(None)
        assert signal.signal(signal.SIGALRM, before) is stop  # it is in its place again
    return None


def written(number):
    """A program that is compiled anew for each number."""
    text = (
        f"def f(x):\n    t = 0.0\n    for i in range(3):\n        t += relay.tanh(x * {number}.5).sum()\n    return t\n"
    )
    return package.from_source(text, {"relay": relay})


def test_a_signal_while_a_program_is_compiled_is_what_its_handler_raises():
    x = np.ones(3)
    written(0)(x)
    steps = [1, 30, 500, *range(1000, 20_000, 2000)]
    found = []
    for number, step in enumerate(steps, 1):
        f = written(number)
        found.append(raised_at(step, lambda f=f: f(x)))
    assert {type(error) for error in found} <= {KeyboardInterrupt, type(None)}, found
    assert sum(error is not None for error in found) > len(steps) // 2
    np.testing.assert_allclose(f(x), 9 * np.tanh(number + 0.5), rtol=1e-12)
    assert gc.isenabled()


def test_handlers_wait_for_the_end_of_a_step():
    seen = []

    def handler(number, frame):
        seen.append(number)
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Stop), compiling, compiling:
            signal.raise_signal(signal.SIGALRM)
            assert seen == []
            with pytest.raises(Stop):
                deferral.handle()
            assert len(seen) == 1
            deferral.handle()
            signal.raise_signal(signal.SIGALRM)
        assert len(seen) == 2
        with pytest.raises(Stop):
            signal.raise_signal(signal.SIGALRM)
        ran = threading.Thread(target=lambda: compiling.__enter__() or compiling.__exit__(None, None, None))
        ran.start()  # of another thread they are no concern
        ran.join()
        assert signal.getsignal(signal.SIGALRM) is handler
        with compiling:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN  # what is set meanwhile stays
    finally:
        signal.signal(signal.SIGALRM, before)


def test_waiting_for_another_thread_that_compiles_can_be_interrupted():
    held, done = threading.Event(), threading.Event()

    def hold():
        with compiling:
            held.set()
            done.wait()

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    other = threading.Thread(target=hold)
    other.start()
    try:
        held.wait()
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(Stop), compiling:
            pass
    finally:
        done.set()
        other.join()
        signal.signal(signal.SIGALRM, before)
    with compiling:
        pass


@pytest.mark.parametrize("step", [50, 400, 900])
def test_a_signal_in_the_interpreter(step):
    f = written(1)
    assert isinstance(raised_at(step, lambda: f.interpret(np.ones(3))), KeyboardInterrupt)
    np.testing.assert_allclose(f.interpret(np.ones(3)), 9 * np.tanh(1.5), rtol=1e-12)
