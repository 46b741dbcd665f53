"""Signals while compiled code runs, and processes that are copied."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from relay import Int, Tensor, relay


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
