"""Operands of concatenations and stacks are computed where the result will stand: the interpreter's results, no kernel
that copies, and copies of those operands only that have memory of their own for another reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay.codegen.lowering import function_splitting
from relay.codegen.lowering.function_builder import Code
from relay.codegen.lowering.module_builder import schedules, text
from relay.codegen.lowering.values import Leaf, Memory
from relay.compilation.stages import lowering

pytestmark = pytest.mark.usefixtures("low_effort")

RANDOM = np.random.default_rng(0)
X, Y, W = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((4, 8), (3, 8), (8, 8)))


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The elements of arrays that are copied to parts of results in the programs that are generated from now on."""
    found: list[int] = []
    original = Code.copy

    def copy(code: Code, target: Leaf, source: Leaf) -> None:
        place = target.place
        if isinstance(place, Memory) and place.whole is not None and place is not source.place:
            assert isinstance(target.layout.elements, int)
            found.append(target.layout.elements)
        original(code, target, source)

    monkeypatch.setattr(Code, "copy", copy)
    return found


def operators(f: Any, *arguments: Any, level: int = 2, threads: int = 1) -> list[str]:
    """The operators that the kernels of a function compute."""
    found = schedules(lowering(level)(f.lower(*arguments).typed), threads, {})
    return [name for schedule in found if schedule.name != "no kernel" for name in schedule.operators]


def products(x, y, w):
    return relay.concatenate((relay.tanh(x @ w), y @ w), axis=0)


def images(x, v, w):
    branches = (relay.relu(relay.conv2d(x, v)), relay.max_pool2d(x, 3, 1, 1), relay.conv2d(x, w, padding=1))
    return relay.concatenate(branches, axis=1)


def states(xs, h, w):
    hs = []
    for i in range(3):
        h = relay.tanh(h @ w + xs[i])
        hs.append(h)
    return relay.stack(hs, axis=0)


def dense(x, w):
    for _ in range(3):
        x = relay.concatenate((x @ w, relay.tanh(x @ w)), axis=0)
    return x


def branches(x, y, w):
    left = x @ w if x.sum() > 0.0 else relay.softmax(x)
    right = y
    for _ in range(5):
        right = relay.tanh(right @ w)
    return relay.concatenate((left, right), axis=0)


def rounds(x, y, w):
    for _ in range(4):
        both = relay.concatenate((relay.tanh(x @ w), relay.softmax(y @ w)), axis=0)
        x, y = both[:4] + 1.0, both[4:]
    return x, y


IMAGE, NARROW, WIDE = (
    RANDOM.normal(size=shape).astype(np.float32) for shape in ((1, 4, 6, 6), (5, 4, 1, 1), (6, 4, 3, 3))
)
XS = RANDOM.normal(size=(3, 4, 8)).astype(np.float32)
JOINED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "products": (products, (X, Y, W)),
    "images": (images, (IMAGE, NARROW, WIDE)),
    "states": (states, (XS, X, W)),
    "dense": (dense, (X, W)),
    "branches": (branches, (X, Y, W)),
    "rounds": (rounds, (X, Y, W)),
}


@pytest.mark.parametrize("name", JOINED)
def test_nothing_is_copied(name: str, copied: list[int]) -> None:
    program, arguments = JOINED[name]
    f = relay.relay(program)
    if name == "images":  # channels first, as at level 1
        assert "concatenate" not in operators(f, *arguments, level=1)
    else:
        assert not {"concatenate", "stack"} & {*operators(f, *arguments)}
    assert copied == ([24, 24] if name == "branches" else [])  # what the loop begins with, and what a round ends with
    assert_modes_agree(f, *arguments, levels=(0, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["dense", "branches"])
def test_gradients(name: str) -> None:
    """Where the joined array is read by a product, so that it is in memory, forward and backward."""
    program, arguments = JOINED[name]
    inner = relay.relay(program)

    @relay.relay
    def loss(arguments):
        joined = inner(*arguments)
        return relay.sum(relay.tanh(joined @ arguments[-1]) * joined)

    assert_modes_agree(loss, arguments, levels=(2,), gradient=True, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["states", "branches"])
def test_all_sizes(name: str) -> None:
    program, arguments = JOINED[name]
    f = relay.relay(dynamic=True)(program)
    assert not {"concatenate", "stack"} & {*operators(f, *arguments)}
    assert_modes_agree(f, *arguments, rtol=1e-4, atol=1e-5)


def test_batches() -> None:
    f = relay.vmap(relay.relay(products), in_axes=(0, 0, None))
    assert_modes_agree(f, np.stack([X, X + 1]), np.stack([Y, Y - 1]), W, rtol=1e-4, atol=1e-5)


@relay.relay
def twice(x, w):
    y = x @ w
    return relay.concatenate((y, y, x), axis=0), y * 2.0


@relay.relay
def returned(x, w):
    y, z = x @ w, relay.softmax(x @ w)
    return y, relay.concatenate((y, z), axis=0)


@relay.relay
def in_both(x, w):
    y, z = x @ w, relay.softmax(x @ w)
    return relay.concatenate((y, z), axis=0), relay.concatenate((z, y), axis=0)


@relay.relay
def updated_operand(x, w):
    y = x @ w
    c = relay.concatenate((y, relay.softmax(y)), axis=0)
    y[0] = y[0] + 100.0
    return c, y


@relay.relay
def updated_result(x, w):
    y, z = x @ w, relay.softmax(x @ w)
    c = relay.concatenate((y, z), axis=0)
    before = c.sum()
    for i in range(3):
        c[i] = c[i] * 2.0
    return c, before, y


@relay.relay
def with_numbers(x, w):
    y = x @ w
    return relay.concatenate((relay.sum(y, axis=None, keepdims=True)[0], relay.sum(y @ w, axis=0), y[0, :0]), axis=0)


@relay.relay
def arguments_only(x, w):
    return relay.concatenate((x, w), axis=0)


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (twice, 32 + 32), (returned, 32), (in_both, 2 * 32), (updated_operand, None), (updated_result, None),
        (with_numbers, None), (arguments_only, 0),
    ],
)  # fmt: skip
def test_operands_with_other_memory_are_copied(f: Any, left: int | None, copied: list[int]) -> None:
    """Or a kernel joins all operands, as it does where most would be copied."""
    operators(f, X, W)
    assert left is None or sum(copied) in (0, left)
    assert_modes_agree(f, X, W, rtol=1e-4, atol=1e-5)


def test_large_operands_are_not_copied_on_one_of_several_threads() -> None:
    @relay.relay
    def f(x, y):
        return relay.concatenate((relay.softmax(x), y), axis=0)

    x = np.ones((300, 300), np.float32)
    assert operators(f, x, x) == ["softmax"]
    assert operators(f, x, x, threads=2) == ["softmax", "concatenate"]


def test_donated_memory_is_no_result_that_is_begun_early() -> None:
    @relay.relay(donate_argnames=("x",))
    def f(x, w):
        y, z = x[:2] @ w, x[2:] @ w
        return relay.concatenate((y, z), axis=0)

    expected = X @ W
    np.testing.assert_allclose(f(X.copy(), W), expected, rtol=1e-4, atol=1e-5)


def test_in_parts_of_long_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_splitting, "LONGEST", 3)
    monkeypatch.setattr(function_splitting, "SHORTEST", 2)
    monkeypatch.setenv("RELAY_CACHE_SIZE", "0")

    @relay.relay
    def f(h, w):
        hs = []
        for _ in range(12):
            h = relay.softmax(h @ w)
            hs.append(h)
        return relay.stack(hs, axis=0), relay.stack([h @ w, relay.softmax(h @ w)], axis=0).sum(axis=0) @ w

    assert "_part1" in text(f.core(X, W), 1)
    assert_modes_agree(f, X, W, rtol=1e-4, atol=1e-5)
