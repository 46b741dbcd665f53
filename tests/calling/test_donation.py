"""Donated arguments: results in their memory, and what becomes of the arrays."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import leaves

import relay as relay_package
from relay import Array, relay
from relay.errors import ExecutionError, FrontendError, TypeMismatch


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def lies_in(result: Any, given: np.ndarray) -> bool:
    return bool(np.shares_memory(np.asarray(result), given))


@relay
def network(params, x):
    for w, b in params:
        x = relay.tanh(x @ w + b)
    return relay.sum(x)


def updated(params, velocities, x):
    value, gradients = relay.value_and_grad(network, wrt=0)(params, x)
    velocities = [
        (0.9 * v - 0.1 * g, 0.9 * vb - 0.1 * gb) for (v, vb), (g, gb) in zip(velocities, gradients, strict=True)
    ]
    params = [(w + v, b + vb) for (w, b), (v, vb) in zip(params, velocities, strict=True)]
    return value, params, velocities


step = relay(donate_argnames=("params", "velocities"))(updated)
plain_step = relay(updated)


def training_state() -> tuple[Any, Any, np.ndarray]:
    params = [(array(64, 64, seed=n), array(64, seed=n)) for n in range(3)]
    velocities = [(np.zeros((64, 64), np.float32), np.zeros(64, np.float32)) for _ in range(3)]
    return params, velocities, array(8, 64, seed=9)


def test_a_training_step_makes_its_results_in_the_memory_of_what_it_updates() -> None:
    params, velocities, x = training_state()
    expected = plain_step(params, velocities, x)
    places = [a.ctypes.data for a in leaves((params, velocities))]
    result = step(params, velocities, x)
    for found, right in zip(leaves(result[1:3]), leaves(expected[1:3]), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
    assert [np.asarray(a).ctypes.data for a in leaves(result[1:3])] == places
    del params, velocities  # from here on nobody else holds the arrays
    before = result
    result = step(before[1], before[2], x)
    assert [np.asarray(a).ctypes.data for a in leaves(result[1:3])] == places
    assert all(a.is_deleted() for a in leaves(before[1:3]))


def test_a_donating_step_takes_no_memory_for_what_it_updates() -> None:
    params, velocities, x = training_state()
    for _ in range(3):
        _, params, velocities = step(params, velocities, x)
    tracemalloc.start()
    for _ in range(3):
        _, params, velocities = step(params, velocities, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 1024  # one matrix has as much


def test_what_was_donated_is_no_longer_there() -> None:
    @relay(donate_argnums=0)
    def doubled(x):
        return x + x

    (first,) = (doubled(array(100)),)
    second = doubled(first)
    assert first.is_deleted() and not second.is_deleted()
    assert repr(first) == "Array(donated to doubled)"
    for use in (np.asarray, len, lambda a: a + 1.0, lambda a: a.numpy(), lambda a: a.shape, doubled, lambda a: a[0]):
        with pytest.raises(ExecutionError, match="this array was donated to doubled"):
            use(first)
    with pytest.raises(AttributeError, match="no attribute 'color'"):
        _ = second.color


def test_arrays_that_others_hold_are_copied_first() -> None:
    @relay(donate_argnames="x")
    def doubled(x):
        return x + x

    made = doubled(array(100))
    held = made.numpy()
    kept = held.copy()
    result = doubled(made)
    np.testing.assert_array_equal(held, kept)
    np.testing.assert_array_equal(result, 2 * kept)


def test_read_only_and_strided_arrays_are_not_written() -> None:
    @relay(donate_argnames="x")
    def doubled(x):
        return x + x

    fixed = array(10, 10)
    fixed.flags.writeable = False
    for given in (fixed, array(10, 10).T, array(20, 10)[::2], np.broadcast_to(array(10), (10, 10))):
        kept = given.copy()
        for _ in range(2):
            np.testing.assert_array_equal(doubled(given), 2 * kept)
            np.testing.assert_array_equal(given, kept)


def reversed_order(a, b):
    return b, a


def both_read(a, b):
    return a + b, a - b


def read_later(a, b):
    c = a * 2.0
    return c, relay.sum(a) + b


def transposed(a, b):
    return a.T + b, b


def product(a, b):
    return a - a @ b, b


def product_taken(a, b):
    return a - b @ b, b


def chosen(a, b):
    if relay.sum(a) > 0.0:
        return a + b, b * a
    return b, a - b


def chosen_inside(a, b):
    if relay.sum(a) > 0.0:
        c = a + b
    else:
        c = b - a
        c = c * c
    return c, b


def loop(a, b):
    for _ in range(3):
        a = a + b
    return a, b


def loop_reading(a, b):
    c = a
    for _ in range(3):
        c = c + a * b
    return c, b


def until(a, b):
    while relay.sum(a) < 1000.0:
        a = a + relay.abs(b) + 1.0
        if relay.sum(b) > 0.0:
            break
    return a, b


def element(a, b):
    a[1] = b[0]
    a[2] = a[1] + b[1]
    return a, b


def rows(a, b):
    for i in range(a.shape[0]):
        a[i] = a[i] * 2.0 + b[i]
    return a, b


def twice(a, b):
    c = a + b
    return c, c


def unchanged_twice(a, b):
    return a, a


def normalized(a, b):
    return relay.softmax(a) + b, (b - relay.mean(b)) * a


def shifted(a, b):
    return relay.roll(a, 1, axis=0), b[::-1]


def wide(a, b):
    return a + b[0], b + relay.sum(a, axis=0)


PROGRAMS = [
    reversed_order, both_read, read_later, transposed, product, product_taken, chosen, chosen_inside, loop,
    loop_reading, until, element, rows, twice, unchanged_twice, normalized, shifted, wide,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_results_are_those_without_donation(program: Any) -> None:
    donating = relay(donate_argnums=(0, 1))(program)
    for seed in (0, 1):
        a, b = array(16, 16, seed=seed), array(16, 16, seed=seed + 2)
        expected = relay(program)(a, b)
        found = donating(a.copy(), b.copy())
        for left, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("program", [product_taken, loop, element, rows, until, reversed_order])
def test_the_first_result_takes_memory(program: Any) -> None:
    donating = relay(donate_argnums=(0, 1))(program)
    a, b = array(16, 16), array(16, 16, seed=1)
    first, second = donating(a, b)
    assert lies_in(first, a) or lies_in(first, b)
    assert not lies_in(first, second.numpy())


def test_symbolic_sizes() -> None:
    @relay(donate_argnames="x", dynamic=True)
    def f(x, y):
        return x * y + x

    for n in (5, 70, 9):
        x, y = array(n), array(n, seed=1)
        expected = x * y + x
        result = f(x, y)
        np.testing.assert_allclose(result, expected, rtol=1e-6)
        assert lies_in(result, x)


def test_shared_memory_is_refused() -> None:
    @relay(donate_argnames="x")
    def f(x, y):
        return x + y

    x = array(10)
    with pytest.raises(TypeMismatch, match="argument x of f is donated, and argument y shares its memory"):
        f(x, x)
    with pytest.raises(TypeMismatch, match="argument y shares its memory"):
        f(x[1:6], x[:5])
    np.testing.assert_array_equal(f(x[:5], x[5:]), x[:5])

    @relay(donate_argnums=0)
    def g(pair):
        return pair[0] + pair[1]

    with pytest.raises(TypeMismatch, match="argument pair of g is donated, and other parts of it share its memory"):
        g((x, x))


def test_a_failed_check_before_the_run_leaves_the_array() -> None:
    @relay(donate_argnames="x")
    def f(x, y):
        assert relay.sum(y) > 0.0, "not positive"
        return x + y

    given = f(array(10), np.ones(10, np.float32))
    with pytest.raises(relay_package.ShapeError):
        f(given, np.ones(7, np.float32))
    assert not given.is_deleted()
    with pytest.raises(ExecutionError, match="not positive"):
        f(given, -np.ones(10, np.float32))
    assert given.is_deleted()


def test_wrong_names_are_errors() -> None:
    def f(params, n):
        return params

    with pytest.raises(FrontendError, match="donate_argnames: f has no parameter 'param'") as raised:
        relay(donate_argnames="param")(f)
    assert raised.value.help == "did you mean 'params'?"
    with pytest.raises(FrontendError, match="donate_argnums: f has 2 parameters, and none at 2"):
        relay(donate_argnums=2)(f)
    with pytest.raises(FrontendError, match="n is static, so it has no memory to donate"):
        relay(donate_argnames="n", static_argnames="n")(f)


def test_compiled_and_exported_functions_donate(tmp_path: Path) -> None:
    params, velocities, x = training_state()
    expected = plain_step(params, velocities, x)
    compiled = step.compile(params, velocities, x)
    compiled.export(tmp_path / "step.so")
    for executable in (compiled, relay_package.load(tmp_path / "step.so")):
        params, velocities, x = training_state()
        first = executable(params, velocities, x)
        assert lies_in(first[1][0][0], params[0][0])
        second = executable(first[1], first[2], x)
        assert first[1][0][0].is_deleted()
        np.testing.assert_allclose(first[0], expected[0], rtol=1e-5)
        assert isinstance(second[1][0][0], Array)


def test_the_interpreter_and_derivatives_leave_arguments() -> None:
    @relay(donate_argnames="x")
    def f(x):
        return relay.sum(x * x)

    x = Array(array(10))
    f.interpret(x)
    relay.grad(f)(x)
    assert not x.is_deleted()


def test_a_donation_without_use_is_said(caplog: pytest.LogCaptureFixture) -> None:
    @relay(donate_argnums=(0, 1))
    def f(x, y):
        return x + relay.sum(y)

    with caplog.at_level("WARNING", logger="relay.compile"):
        f(array(5), array(7))
    assert "f: no result is made in the memory of y" in caplog.text
