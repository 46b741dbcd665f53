"""Updates of parts of tensors on a GPU: in place where nothing else reads the old elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER, EmulatedDriver, emulation

import relay
from relay.codegen.cuda.driver import use_toolchain

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no g++"),
    pytest.mark.usefixtures("separate_kernels"),
]

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)


@pytest.fixture
def driver() -> Iterator[EmulatedDriver]:
    made = EmulatedDriver()
    with use_toolchain(emulation(made)):
        yield made


def copies(driver: EmulatedDriver, function: Callable[..., Any], *arguments: Any) -> int:
    """How often a call copies memory on the GPU. Its result is the interpreter's."""
    made = relay.relay(function)
    given = relay.device_put(arguments)
    before = driver.calls["cuMemcpyDtoDAsync"]
    found = made(*given)
    count = driver.calls["cuMemcpyDtoDAsync"] - before
    assert_agree(found, made.interpret(*arguments), rtol=1e-5, atol=1e-6)
    assert_agree(given[0], arguments[0], rtol=0)  # which belongs to the caller
    return count


def table(x: Any) -> Any:
    rows = relay.zeros((20, 6))
    for n in range(20):
        x = relay.tanh(x + 0.1)
        rows = rows.at[n].set(x[n % 4])
    return rows


def test_a_table_is_filled_in_place(driver: EmulatedDriver) -> None:
    """Without a copy of it in each round."""
    assert copies(driver, table, X) == 0


def test_a_recurrence_reads_the_table_that_it_fills(driver: EmulatedDriver) -> None:
    def recurrence(x):
        rows = relay.zeros((20, 6)).at[0].set(x[0])
        for n in range(19):
            rows = rows.at[n + 1].set(relay.tanh(rows[n] + rows.sum(axis=0)))
        return rows

    assert copies(driver, recurrence, X) == 0


def test_the_first_update_of_an_argument_copies_it(driver: EmulatedDriver) -> None:
    def changed(x, y, n):
        for _ in range(4):
            n = (3 * n + 1) % 4
            x = x.at[n].add(relay.tanh(y[n]) + x.sum())
        return x

    assert copies(driver, changed, X, X + 1, 2) == 1


def test_old_elements_that_are_read_later(driver: EmulatedDriver) -> None:
    def both(x, n):
        hidden = relay.tanh(x)
        new = hidden.at[n].set(x[0])
        return relay.cumsum(hidden, axis=0), relay.cumsum(new, axis=0)

    def viewed(x, n):
        hidden = relay.tanh(x)
        flat = hidden.reshape(24)
        new = flat.at[n].set(5.0)
        return relay.cumsum(hidden, axis=0), relay.cumsum(new)

    def stored(x, n):
        seen = []
        for _ in range(3):
            x = x.at[n].set(relay.cumsum(x.sum(axis=0)))
            seen.append(x)
            n = n - 1
        return seen[0], seen[1], seen[2]

    assert copies(driver, both, X, 2) == 1
    assert copies(driver, viewed, X, 2) == 1
    assert copies(driver, stored, X, 2) == 3


KINDS: dict[str, Callable[..., Any]] = {
    "item": lambda h, x: h.at[1, 2].set(x[0, 0]),
    "row": lambda h, x: h.at[-1].add(x[0]),
    "slice": lambda h, x: h.at[1:3].set(x[:2] + 1),
    "strided": lambda h, x: h.at[::2, 1].add(x[:2, 0]),
    "indices": lambda h, x: h.at[np.array([3, 0, 3])].add(x[:3]),
    "own elements": lambda h, x: h.at[0].set(h[1] + h[2]),
    "all own": lambda h, x: h.at[np.array([1, 2])].set(h[np.array([2, 1])]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(driver: EmulatedDriver, kind: str) -> None:
    update = KINDS[kind]

    def in_a_loop(x):
        hidden = relay.tanh(x)
        for _ in range(3):
            hidden = update(hidden, x)
        return hidden

    assert copies(driver, in_a_loop, X) <= 3


def test_graphs(driver: EmulatedDriver) -> None:
    """A graph begins each time with the arguments' elements."""
    filled = relay.relay(table)
    changed = relay.relay(lambda x, y: (relay.tanh(x).at[0].set(y[1]).at[1].add(y[0]).sum(axis=0), x.at[2].set(y[2])))
    for factor in map(np.float32, (1, -1, 2, 0.5)):
        assert_agree(filled(relay.device_put(factor * X)), filled.interpret(factor * X), rtol=1e-5, atol=1e-6)
        arguments = factor * X, X - factor
        found = changed(*relay.device_put(arguments))
        assert_agree(found, changed.interpret(*arguments), rtol=1e-5, atol=1e-6)
    assert driver.calls["cuGraphLaunch"] >= 3


def test_gradients(driver: EmulatedDriver) -> None:
    loss = relay.relay(lambda x: (table(x) ** 2).sum())
    gradient = relay.grad(loss)
    assert_agree(gradient(relay.device_put(X)), gradient.interpret(X), rtol=1e-4, atol=1e-5)
