"""Variables that are None on one path and something else on another: loops, branches, results, captured variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, assert_close, assert_modes_agree, assert_modes_raise

import relay as R
from relay import ExecutionError, TypeCheckError, TypeMismatch
from relay.errors import DifferentiationError

PROGRAMS = """
def largest(x, n):
    best, i = None, 0
    while i < n:
        if best is None or x[i] > best:
            best = x[i]
        i += 1
    return best

def place(x, n):
    found = None
    for i in range(n):
        if found is None or x[i] > x[found]:
            found = i
    return found

def first(x, n):
    for v in x[1:]:
        if v * n > 3.0:
            return v
    return None

def total(x, n):
    sofar = None
    while n > 0:
        n -= 1
        sofar = x[n] if sofar is None else sofar + x[n]
    return sofar, n

def states(x, n):
    state, seen = None, []
    while n > 0:
        n -= 1
        state = (x[n], n) if state is None else (state[0] + x[n], n)
        seen.append(state)
    return state, seen

def nested(x, n):
    best = None
    for i in range(n):
        for v in x:
            if best is None or v * i > best:
                best = v * i
    return best

def branch(x, n):
    y = None
    if n > 2:
        y = x * 2
    return {"y": y, "n": n}

def growing(x, n):
    xs = None
    while n > 0:
        n -= 1
        if xs is None:
            xs = []
        xs.append(x[n])
    return xs

def matched(x, n):
    m = None
    while n > 0:
        n -= 1
        match m:
            case None:
                m = (x[n], n)
            case (a, b):
                m = (a + x[n], b)
    return m

def captured(x, n):
    best, count = None, 0
    def note(v):
        nonlocal best, count
        if best is None or v > best:
            best = v
            count += 1
    while n > 0:
        n -= 1
        note(x[n])
    return best, count

def better(v, best):
    return best is None or v > best

def passed(x, n):
    best = None
    while n > 0:
        n -= 1
        if better(x[n], best):
            best = x[n]
    return best

def field(x, n):
    state = {"best": None, "n": 0}
    while n > 0:
        n -= 1
        if state["best"] is None or x[n] > state["best"]:
            state["best"] = x[n]
        state["n"] += 1
    return state

def held(x, n):
    cell = R.ref(None)
    def note(v):
        cell.value = v * 2
    if n > 1:
        note(x)
    return cell.value

def count(x, n):
    found = None
    for v in x[1:]:
        if v * n > 7.0:
            found = v - 3.0
    k = 2.0 if found else 1.0
    return k, found or x[1], (found and 2.0 * found) is None, bool(found), not found

def whole(x, n):
    found = None
    for v in x:
        if v * n > 3.0:
            found = v
    if not found:
        return -1.0
    assert found
    if x[0] < n and found:
        return found + 1.0
    return found

def several(x, n):
    xs, text, pair = None, None, None
    if n > 1:
        xs, text, pair = [v for v in x if v > n], "yes" if n > 2 else "", (x[n - 1], n)
    return len(xs) if xs else -1, len(text or "no"), pair[0] if pair and pair[0] > 2.0 else 0.0

def going(x, n):
    v, rounds = None, 0
    if n > 0:
        v = x[n - 1]
    while v:
        rounds += 1
        v = None if rounds > 5 else v - 1.0
    return rounds, v is None

def chosen(x, n):
    kept = [v if v > n else None for v in x]
    return sum(1 for v in kept if v), [v for v in kept if v and v < 5.0]

def integers(x, n):
    best = None
    for i in range(n):
        if x[i] > 1.0:
            best = int(np.argmax(x)) if best is None else int(np.int64(n))
    return best or -1

def masked(x, n):
    m = None
    while n > 0:
        n -= 1
        m = x[x > x[n]] if m is None else m
    return m
"""


def _names(text: str) -> list[str]:
    return [line[4 : line.index("(")] for line in text.splitlines() if line.startswith("def ")]


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize("name", _names(PROGRAMS))
def test_programs_do_what_python_does(name: str) -> None:
    if name == "better":
        return
    scope: dict[str, Any] = {"R": R, "np": np}
    exec(PROGRAMS, scope)
    function = R.from_source(PROGRAMS, {"R": R, "np": np})[name]
    x = np.array([1.0, 3.0, 2.0, 5.0])
    for n in (0, 1, 4):
        wanted = scope[name](x, n)
        found = assert_modes_agree(function, x, np.int32(n))
        if wanted is None:
            assert found is None
        else:
            _assert_same(found, wanted)


def _assert_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        found, wanted = tuple(found.values()), tuple(wanted.values())
    if isinstance(wanted, tuple | list):
        assert type(found) is type(wanted) and len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            _assert_same(one, other)
    elif wanted is None or found is None:
        assert wanted is found
    else:
        assert_close(found, wanted)


WITH_GRADIENTS = """
def largest(x, n):
    best, i = None, 0
    while i < n:
        if best is None or x[i] > best:
            best = x[i]
        i += 1
    return 0.0 if best is None else best * best

def asserted(x, n):
    best = None
    for i in range(n):
        if best is None or x[i] * i > best:
            best = x[i] * i
    assert best is not None
    return best * best

def differences(x, n):
    previous, total, i = None, 0.0, 0
    while i < n:
        if previous is not None:
            total += (x[i] - previous) ** 2
        previous = x[i]
        i += 1
    return total

def until(x, n):
    found, i = None, 0
    while found is None:
        if x[i] * n > 2.0:
            found = x[i] ** 3
        i += 1
    return found

def states(x, n):
    a = b = None
    while n > 0:
        if a is None:
            a = x
        elif b is None:
            b = (x * x, n)
        else:
            a = R.sin(a) + b[0]
        n -= 1
    if a is not None and b is not None:
        return a.sum() + b[0].sum() * b[1]
    return x.sum()

def captured(x, n):
    scale = None
    def weighted(v):
        if scale is None:
            return v.sum()
        return (v * scale).sum()
    total = 0.0
    for i in range(n):
        total += weighted(x)
        scale = x * i
    return total
"""


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize("name", _names(WITH_GRADIENTS))
def test_gradients(name: str) -> None:
    """Of the value, compiled as interpreted, by finite differences, and of the gradient."""
    function = R.from_source(WITH_GRADIENTS, {"R": R})[name]
    x = np.array([1.1, 3.2, 2.3])
    for n in (1, 3):
        assert_modes_agree(function, x, np.int32(n))
        gradient = R.grad(function, wrt=0)
        assert_agree(gradient(x, np.int32(n)), gradient.interpret(x, np.int32(n)))
        R.check_gradient(function, x, np.int32(n), wrt=0)  # raises where they differ
    second = R.hessian(function, wrt=0)
    assert_agree(second(x, np.int32(3)), second.interpret(x, np.int32(3)))


def test_use_of_none_stops_at_its_line() -> None:
    function = R.from_source("def f(x, n):\n    y = None\n    if n > 2:\n        y = x * 2\n    return y + 1\n")
    assert_modes_agree(function, np.ones(3), np.int32(3))
    for caught in assert_modes_raise(function, np.ones(3), np.int32(1), error=ExecutionError, match="y is None here"):
        assert caught.value.span is not None and caught.value.span.line == 5


REFUSED = {
    "a gradient": (
        "def f(x):\n    y = None\n    if x[0] > 2:\n        y = x[0]\n    return y\n",
        DifferentiationError,
        "assert x is not None",
    ),
    "several types": (
        "def f(x):\n    y = None\n    for v in x:\n        if v > 2:\n            y = x\n        else:\n"
        "            y = v\n    return y\n",
        TypeMismatch,
        "on another",
    ),
    "never assigned": (
        "def f(x):\n    y = None\n    def g():\n        nonlocal y\n        y = y + x\n    g()\n    return x\n",
        TypeCheckError,
        "y is None: no value is assigned to it before",
    ),
    "no end": (
        "def f(x):\n    for v in x:\n        if v > 2:\n            return v\n",
        R.RelayError,
        "where there is none, write `return None`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_told(name: str) -> None:
    text, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        function = R.from_source(text)
        (R.grad(function) if name == "a gradient" else function)(np.ones(3))


def test_examples_of_a_batch_are_never_none() -> None:
    function = R.from_source("def f(x):\n    y = None\n    if x[0] > 2:\n        y = x\n    return y\n")
    with pytest.raises(TypeCheckError, match="this one may be None"):
        R.vmap(function)(np.ones((2, 3)))
    text = "def f(x):\n    y = None\n    if x[0] > 2:\n        y = x\n    return -x if y is None else y\n"
    whole = R.from_source(text)
    assert_modes_agree(R.vmap(whole), np.array([[1.0, 2.0], [3.0, 4.0]]), expected=np.array([[-1.0, -2.0], [3.0, 4.0]]))


def test_one_program_for_several_sizes() -> None:
    text = (
        "def f(x):\n    h, i = None, 0\n    while i < 3:\n        h = x if h is None else R.tanh(h + x)\n"
        "        i += 1\n    return h\n"
    )
    function = R.from_source(text, {"R": R})
    for size in (1, 2, 7, 33, 0, 5):
        x = np.linspace(0.0, 1.0, size)
        assert_modes_agree(function, x, expected=np.tanh(np.tanh(x + x) + x))
