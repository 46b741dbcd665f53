"""Sums that loops carry are computed in their own memory: the interpreter's results, and no copies of large arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay.codegen.lowering.function_builder import Code
from relay.codegen.lowering.memory.replaced_operands import LARGE
from relay.codegen.lowering.values import Leaf, Memory

RANDOM = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The elements of arrays that are copied inside of loops, in the programs generated from now on."""
    found: list[int] = []
    original = Code.copy

    def copy(code: Code, target: Leaf, source: Leaf) -> None:
        if target.place is not source.place and isinstance(target.place, Memory) and code.workspace._loops:
            found.append(target.layout.bytes // target.layout.base.dtype.itemsize)
        original(code, target, source)

    monkeypatch.setattr(Code, "copy", copy)
    return found


@relay.relay
def products(s, x, y):
    for i in range(len(x)):
        s = s + x[i].T @ y[i] * s
    return s


@relay.relay
def outer(s, x, y):
    for i in range(len(x)):
        s = s * 0.5 + np.outer(x[i], y[i])
    return s


@relay.relay
def vectors(s, x, y):
    for i in range(len(x)):
        s = np.tanh(s + y[0] @ x[i])
    return s


@relay.relay
def images(s, x, k):
    for i in range(len(x)):
        s = s + relay.conv2d(x[i], k, padding=1)
    return s


@relay.relay
def columns(s, x):
    for i in range(len(x)):
        s = s + x[i].sum(axis=0)
    return s


@relay.relay
def turned(s, x):
    for i in range(len(x)):
        s = s + x[i].T
    return s


@relay.relay
def either(s, x, y):
    """Two sums, of which a round adds to one."""
    t = s
    for i in range(len(x)):
        if x[i, 0, 0] > 0.0:
            s = s + x[i] @ y
        else:
            t = t + y @ x[i]
    return s, t


SHARING = [
    pytest.param(products, (array(40, 30), array(3, 300, 40), array(3, 300, 30)), id="products"),
    pytest.param(outer, (array(40, 30), array(3, 40), array(3, 30)), id="outer"),
    pytest.param(vectors, (array(1100), array(3, 20, 1100), array(1, 20)), id="vectors"),
    pytest.param(images, (array(2, 8, 9, 9), array(3, 2, 4, 9, 9), array(8, 4, 3, 3)), id="images"),
    pytest.param(columns, (array(40, 30), array(3, 20, 40, 30)), id="columns"),
    pytest.param(turned, (array(40, 30), array(3, 30, 40)), id="turned"),
    pytest.param(either, (array(33, 33), array(5, 33, 33), array(33, 33)), id="either"),
]


@pytest.mark.parametrize(("program", "arguments"), SHARING)
def test_sums_are_computed_in_their_own_memory(program: Any, arguments: Any, copies: list[int]) -> None:
    program.reload()
    assert_modes_agree(program, *arguments)
    assert [size for size in copies if size >= LARGE] == []


@relay.relay
def read_elsewhere(s, x):
    for i in range(len(x)):
        s = s + s[::-1] * x[i] + relay.softmax(s.T).T
    return s


@relay.relay
def kept(s, x):
    """The sum of the round before is needed after the loop."""
    last = s
    for i in range(len(x)):
        last = s
        s = s + x[i] @ x[i]
    return s, last


@relay.relay
def read_later(s, x):
    t = np.zeros_like(s)
    for i in range(len(x)):
        u = s + x[i] @ x[i]
        t = t + s @ u
        s = u
    return s, t


@relay.relay
def exchanged(s, x):
    t = s
    for i in range(len(x)):
        s, t = s + x[i] @ t, t + s
    return s, t


@relay.relay
def in_pair(s, x):
    pair = (s, s)
    for i in range(len(x)):
        pair = (pair[0] + x[i], pair[0] @ pair[1])
    return pair


@relay.relay
def saved(s, x):
    """A list has the sum of each round."""
    found = []
    for i in range(len(x)):
        s = s + x[i]
        found.append(s)
    return found


@pytest.mark.parametrize("program", [read_elsewhere, kept, read_later, exchanged, in_pair, saved])
def test_sums_whose_last_value_is_read_again(program: Any) -> None:
    assert_modes_agree(program, array(40, 40), array(3, 40, 40) / 8)


def test_the_derivative_of_a_loop() -> None:
    @relay.relay
    def f(w, x):
        for i in range(len(x)):
            x = np.tanh(x @ w + x[i])
        return x.sum()

    assert_modes_agree(relay.grad(f, wrt=(0, 1)), array(40, 40) / 8, array(40, 40))
