"""Functions that programs return to Python: compiled ones give what interpreted ones give."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import relay
from relay import Float, Fn, Tensor
from relay.api.function import RelayFunction
from relay.calling.closures import ReturnedFunction
from relay.errors import ExecutionError, FrontendError, RelayError, TypeCheckError, TypeMismatch

F = Tensor[Float, ()]
Way = Callable[[RelayFunction], Callable[..., Any]]
ways = pytest.mark.parametrize("way", [lambda f: f, lambda f: f.interpret], ids=["compiled", "interpreted"])


class Both(NamedTuple):
    slope: float
    line: Fn[[F], F]


@relay.relay
def adder(n):
    return lambda x: x + n


@relay.relay
def curried(a):
    return lambda b: lambda c: a * 100.0 + b * 10.0 + c


@relay.relay
def several(xs, /, scale: float = 2.0, *, power: float = 1.0):
    def scaled(y):
        return (xs * scale * y**power).sum()

    return (xs.sum(), scaled, relay.grad(scaled)), scale


@relay.relay
def line(n: F) -> Both:
    def along(x: F) -> F:
        return n * x

    return Both(n, along)


@relay.relay
def composed(f, g):
    return lambda x: f(g(x))


@relay.relay
def square(x):
    return x * x


@relay.relay
def twice(f, x):
    return f(f(x))


@ways
def test_returned_functions_can_be_called(way: Way) -> None:
    plus = way(adder)(2.0)
    assert isinstance(plus, ReturnedFunction)
    for _ in range(3):
        assert float(plus(3.0)) == 5.0 and float(plus(np.float32(-1))) == 1.0
    assert float(way(curried)(1.0)(2.0)(3.0)) == 123.0
    parts, scale = way(several)(np.arange(3, dtype=np.float32), power=3.0)
    assert float(parts[0]) == 3.0 and float(scale) == 2.0
    assert [float(f(2.0)) for f in parts[1:]] == [48.0, 72.0]
    both = way(line)(4.0)
    assert float(both.slope) == 4.0 and float(both.line(0.5)) == 2.0


@ways
def test_a_returned_function_takes_all_types_that_it_has_a_meaning_for(way: Way) -> None:
    plus = way(adder)(2.0)
    np.testing.assert_array_equal(plus(np.arange(3, dtype=np.float32)), [2, 3, 4])
    assert plus(np.zeros((2, 1), np.float32)).shape == (2, 1)
    assert float(plus(x=1.0)) == 3.0
    with pytest.raises(TypeMismatch, match="needs operands of one dtype, found float64 and float32"):
        plus(np.zeros(3))
    with pytest.raises(TypeCheckError, match="wrong number of arguments to lambda: expected 1, found 2"):
        plus(1.0, 2.0)


@ways
def test_returned_functions_are_arguments(way: Way) -> None:
    plus = way(adder)(2.0)
    assert float(way(twice)(plus, 1.0)) == 5.0
    both = way(composed)(plus, square)
    assert float(both(3.0)) == 11.0
    assert float(way(composed)(both, both)(1.0)) == 11.0

    @relay.relay
    def paired(fs, x):
        return fs[0](fs[1](x))

    assert float(way(paired)((plus, square), 3.0)) == 11.0

    @relay.relay
    def held(xs: list[F]):
        return xs[0]

    with pytest.raises(TypeMismatch, match="is a function, but a list may contain only arrays"):
        way(held)([plus])


@ways
def test_returned_functions_share_references(way: Way) -> None:
    @relay.relay
    def counter(start):
        total = relay.ref(start)

        def add(x):
            total.value += x
            return total.value

        return {"add": add, "now": lambda: total.value, "cell": total}

    found = way(counter)(np.float32(1.0))
    assert float(found["add"](2.0)) == 3.0 and float(found["add"](3.0)) == 6.0
    assert float(found["now"]()) == 6.0 and float(found["cell"].value) == 6.0
    found["cell"].value = np.float32(10.0)
    assert float(found["now"]()) == 10.0
    other = way(counter)(np.float32(5.0))
    assert float(other["now"]()) == 5.0 and float(found["now"]()) == 10.0


@ways
def test_a_training_step_that_keeps_its_state(way: Way) -> None:
    @relay.relay
    def training(w, rate=0.25):
        state = relay.ref(w)

        def step(x, y):
            def loss(w):
                return ((x @ w - y) ** 2).mean()

            value, gradient = relay.value_and_grad(loss)(state.value)
            state.value = state.value - rate * gradient
            return value

        return step, lambda: state.value

    step, weights = way(training)(np.zeros(3, np.float32))
    w = np.zeros(3, np.float32)
    x, y = np.random.default_rng(0).random((5, 3), np.float32), np.ones(5, np.float32)
    for _ in range(3):
        np.testing.assert_allclose(step(x, y), np.mean((x @ w - y) ** 2), rtol=1e-5)
        w = w - 0.25 * 2 / 5 * x.T @ (x @ w - y)
    np.testing.assert_allclose(weights(), w, rtol=1e-5)


@ways
def test_recursive_and_mutually_recursive_functions_are_returned(way: Way) -> None:
    @relay.relay
    def parity(one):
        def even(n):
            return one if n == 0 else odd(n - 1)

        def odd(n):
            return 0.0 * one if n == 0 else even(n - 1)

        return even, odd

    even, odd = way(parity)(1.0)
    assert [float(f(n)) for f in (even, odd) for n in (3, 4)] == [0.0, 1.0, 1.0, 0.0]


@ways
def test_pullbacks_are_returned(way: Way) -> None:
    @relay.relay
    def linear(w, x):
        return w @ x

    @relay.relay
    def pulled(w, x):
        return relay.vjp(linear, w, x)

    w, x = np.arange(6.0).reshape(2, 3), np.ones(3)
    value, pullback = way(pulled)(w, x)
    np.testing.assert_allclose(value, w @ x)
    for seed in (np.array([1.0, 0.0]), np.array([2.0, 3.0])):
        dw, dx = pullback(seed)
        np.testing.assert_allclose(dw, np.outer(seed, x))
        np.testing.assert_allclose(dx, seed @ w)


def test_derivatives_of_returned_functions() -> None:
    @relay.relay
    def weighted(a):
        return lambda x, y: (a * x * x).sum() * y

    a, x = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    f = weighted(a)
    gradients = relay.grad(f)(x, 2.0)
    np.testing.assert_allclose(gradients[0], 4 * a)
    assert float(gradients[1]) == 3.0
    assert float(relay.grad(f, wrt="y")(x, 2.0)) == 3.0
    assert float(relay.grad(relay.grad(f, wrt="y"), wrt=0, seedable=True)(x, 2.0, 1.0)[1]) == 2.0
    value, gradient = relay.value_and_grad(f, wrt=[-1])(x, 2.0)
    assert float(value) == 6.0 and float(gradient) == 3.0
    np.testing.assert_allclose(relay.hessian(f, wrt=0)(x, 0.5), np.diag(a))
    np.testing.assert_allclose(relay.jacobian(f, wrt="x")(x, 0.5), a)
    assert float(relay.jvp(f, (x, 2.0), (x, None))[1]) == 12.0
    _, pullback = relay.vjp(f, x, 2.0)
    assert float(pullback(1.0)[1]) == 3.0
    np.testing.assert_allclose(relay.grad(relay.checkpoint(f), wrt=0)(x, 1.0), 2 * a)
    with pytest.raises(FrontendError, match="there is no parameter 'z'"):
        relay.grad(f, wrt="z")

    @relay.relay
    def slope(g, x):
        return relay.grad(g)(x, 1.0)[0]

    np.testing.assert_allclose(slope(f, x), 2 * a)


@ways
def test_functions_that_are_selected_at_run_time(way: Way) -> None:
    @relay.relay
    def chosen(n: F, up: bool) -> tuple[F, Fn[[F], F]]:
        return n * 2.0, (lambda x: x + n) if up else (lambda x: x * n)

    for up, expected in ((True, 7.0), (False, 12.0)):
        double, f = way(chosen)(3.0, up)
        assert float(double) == 6.0 and float(f(4.0)) == expected
        assert float(way(twice)(f, 0.0)) == (6.0 if up else 0.0)

    @relay.relay
    def checked(n: F) -> Fn[[F], F]:
        assert n > 0.0, "n is negative"
        return (lambda x: x / n) if n > 1.0 else (lambda x: x)

    assert float(way(checked)(2.0)(1.0)) == 0.5
    with pytest.raises(ExecutionError, match="n is negative"):
        way(checked)(-2.0)

    @relay.relay
    def unannotated(n: F, up: bool):
        return (lambda x: x + n) if up else (lambda x: x * n)

    with pytest.raises(TypeCheckError, match="is selected at run time, so its type cannot be inferred"):
        way(unannotated)(1.0, np.bool_(True))


@ways
def test_an_annotation_says_what_a_returned_function_takes(way: Way) -> None:
    @relay.relay
    def scaled(n: F) -> Fn[[F], F]:
        return lambda x: x * n

    @relay.relay
    def wrong(n: F) -> Fn[[F], Tensor[Float, (2,)]]:
        return lambda x: x * n

    f = way(scaled)(2.0)
    assert float(f(3.0)) == 6.0
    with pytest.raises(TypeMismatch, match="the rank is 0, not 1"):
        f(np.ones(3, np.float32))
    with pytest.raises(TypeMismatch):
        way(wrong)(2.0)


@ways
def test_functions_of_called_functions_are_known(way: Way) -> None:
    """What `relay.vjp` and decorated functions return in a program is returned by that program, too."""

    @relay.relay
    def outer(n):
        cell = relay.ref(n)
        add = adder(n * 2.0)

        def step(x):
            cell.value += x
            return add(cell.value)

        return step, add

    step, add = way(outer)(1.0)
    assert float(step(2.0)) == 5.0 and float(step(1.0)) == 6.0 and float(add(0.0)) == 2.0


@ways
def test_a_returned_function_keeps_what_its_arguments_were(way: Way) -> None:
    @relay.relay
    def dot(xs):
        return lambda y: (xs * y).sum()

    xs = np.ones(3, np.float32)
    f = way(dot)(xs)
    xs[:] = 7.0
    assert float(f(2.0)) == 6.0


def test_calls_of_returned_functions_are_compiled_once(caplog: pytest.LogCaptureFixture) -> None:
    @relay.relay
    def dot(xs):
        return lambda y: (xs * y).sum()

    with caplog.at_level(logging.INFO, logger="relay.compile"):
        for n in range(2, 8):
            xs = np.ones(n, np.float32)
            assert float(dot(xs)(xs)) == n
    compiled = [r for r in caplog.records if r.message.startswith("compiling")]
    assert len(compiled) == 4  # each for the first size, and for all


def test_messages_about_returned_functions() -> None:
    plus = adder(2.0)
    assert repr(plus) == "<relay function lambda, returned by adder>"

    @relay.relay
    def outside(x):
        return plus(x)

    with pytest.raises(FrontendError) as caught:
        outside(1.0)
    assert "pass it as an argument" in str(caught.value)
    with pytest.raises(RelayError, match="adder returns a function, which a compiled program by itself cannot"):
        adder.compile(2.0)


def test_derivatives_of_functions_that_take_them() -> None:
    @relay.relay
    def scaled(w):  # type: ignore[no-untyped-def]
        count = relay.ref(w)

        def layer(x):  # type: ignore[no-untyped-def]
            count.value = count.value + 1.0
            return relay.tanh(x * w) * count.value

        return layer

    @relay.relay
    def twice(f, x):  # type: ignore[no-untyped-def]
        return f(f(x))

    def value(x: float) -> float:
        return float(twice(scaled(np.float64(0.5)), x))

    slope = relay.grad(twice, wrt="x")
    expected = (value(0.3 + 1e-6) - value(0.3 - 1e-6)) / 2e-6
    for found in (
        slope(scaled(np.float64(0.5)), 0.3),
        slope.interpret(scaled.interpret(np.float64(0.5)), 0.3),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-8)


@ways
def test_what_returned_functions_capture(way: Way) -> None:
    """Values of all kinds, those that specialize code among them, and data-dependent sizes."""

    @relay.relay
    def everything(x, mode="sum", count=3):
        kept = x[x > 1.0]
        size, rounds = x.shape[0], range(count)
        parts = {"x": (x, 2, None, relay.Float64), "n": kept.shape[0]}

        def f(y, scale=2.0, *, shift=0.0):
            for i in rounds:
                y = y + parts["x"][0] * parts["x"][1] + float(i)
            total = (y + relay.zeros((size,))).sum() if mode == "sum" else y.max()
            return total.astype(parts["x"][3]) * scale + shift + kept.sum().astype(relay.Float64), parts["n"]

        return f

    x = np.arange(4, dtype=np.float32)
    found, count = way(everything)(x)(x)
    assert (float(found), int(count)) == (2.0 * (7 * 6 + 3 * 4) + 5.0, 2)
    found, _ = way(everything)(x, mode="max", count=1)(x, shift=0.5)
    assert float(found) == 2.0 * 9.0 + 0.5 + 5.0 and found.dtype == np.float64
