"""Derivatives through references that come from outside: values, and what is left in the references."""

from __future__ import annotations

import runpy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from agreement import modes
from generators.random_references import Writer

import relay
from relay import Float64, Ref, Tensor
from relay.errors import ExecutionError, TypeCheckError
from relay.eval import interpreter

Real = Tensor[Float64, ()]
(SIZE,) = relay.dims("n")
Vector = Tensor[Float64, (relay.Any,)]
X = np.float64(0.7)


@relay.relay
def exchange(x, r: Ref[Real], s: Ref[Real]):
    r.value = r.value * x + s.value
    s.value = s.value + relay.sin(r.value)
    return r.value * s.value * x


def cell(value: float) -> Ref:
    return relay.ref(np.float64(value))


def two(same: bool) -> tuple[Ref, Ref]:
    first = cell(1.5)
    return first, first if same else cell(0.5)


def held(*cells: Ref) -> list[float]:
    return [float(np.asarray(c.value)) for c in cells]


def slope(function, *references_of) -> float:
    """The difference quotient of a function of a number, with new references for each call."""
    high, low = (float(function.interpret(X + d, *(make() for make in references_of))) for d in (1e-6, -1e-6))
    return (high - low) / 2e-6


@pytest.mark.parametrize("compiled", [True, False])
def test_the_same_reference_twice_and_two_of_them(compiled, caplog):
    caplog.set_level("INFO", "relay.compile")
    derivative = relay.grad(exchange, wrt="x")
    run = derivative if compiled else derivative.interpret
    for same in (True, False, True):
        high, low = (float(exchange.interpret(X + d, *two(same))) for d in (1e-6, -1e-6))
        given, left = two(same), two(same)
        exchange.interpret(X, *left)
        np.testing.assert_allclose(run(X, *given), (high - low) / 2e-6, rtol=1e-8)
        assert held(*given) == held(*left)
        if same:
            caplog.clear()  # two references are of the same types as one
    assert "compiling" not in caplog.text


@pytest.mark.parametrize("same", [True, False])
def test_higher_orders(same):
    second = relay.grad(relay.grad(exchange, wrt="x"), wrt="x")
    third = relay.grad(second, wrt="x")
    for derivative, lower in ((second, relay.grad(exchange, wrt="x")), (third, second)):
        high, low = (float(lower(X + d, *two(same))) for d in (1e-6, -1e-6))
        found = derivative(X, *two(same))
        np.testing.assert_allclose(found, (high - low) / 2e-6, rtol=1e-7)
        np.testing.assert_allclose(found, derivative.interpret(X, *two(same)))


@relay.data
class Knot:
    """Data that may lead back to itself."""

    class Tied:
        value: Ref[Real]
        following: Ref[Knot]

    class Loose:
        pass


@relay.relay
def used(x, r: Ref[Real], s: Ref[Real]):
    r.value = r.value * x
    return s.value * x


@pytest.mark.parametrize(("same", "value", "derivative"), [(True, 1.5 * X * X, 3.0 * X), (False, 0.5 * X, 0.5)])
def test_references_have_no_cotangents_and_no_tangents(same, value, derivative):
    given = two(same)
    np.testing.assert_allclose(relay.jvp(used, (X, *given), (np.float64(1.0), None, None)), (value, derivative))
    assert held(given[0]) == [1.5 * X]
    found, pullback = relay.vjp(used, X, *two(same))
    np.testing.assert_allclose(found, value)
    given[0].value = np.float64(1.5)
    assert pullback(np.float64(1.0))[1:] == (None, None)

    @relay.relay
    def inside(x, r: Ref[Real], s: Ref[Real]):
        value, tangent = relay.jvp(used, (x, r, s), (1.0, None, None))
        r.value = r.value / x
        again, pullback = relay.vjp(used, x, r, s)
        r.value = r.value / x
        slope, first, second = pullback(1.0)
        return value, tangent, again, slope, first, second

    for run in modes(inside):
        *numbers, first, second = run(X, *two(same))
        np.testing.assert_allclose(numbers, [value, derivative, value, derivative])
        assert first is None and second is None


def test_what_is_evaluated_many_times_writes_no_reference():
    @relay.relay
    def read(x, r: Ref[Real], s: Ref[Real]):
        return r.value * s.value * x * x

    np.testing.assert_allclose(relay.hessian(read, wrt="x")(X, *two(False)), 1.5)
    for wrong in (relay.jacobian(used, wrt="x"), relay.hessian(used, wrt="x")):
        with pytest.raises(TypeCheckError, match="evaluates many times must be pure, but it writes a reference"):
            wrong(X, *two(False))


def ring() -> Knot:
    back = relay.ref(Knot.Loose())
    shared = cell(0.5)
    knot = Knot.Tied(shared, relay.ref(Knot.Tied(cell(0.3), relay.ref(Knot.Tied(shared, back)))))
    back.value = knot
    return knot


@relay.relay
def around(x, knot: Knot, rounds):
    total = x * 0.0
    for _ in range(rounds):
        match knot:
            case Knot.Tied(value, following):
                value.value = relay.sin(value.value + x)
                total = total * x + value.value
                knot = following.value
            case Knot.Loose():
                total = total + 1.0
    return total


def test_data_that_leads_back_to_itself():
    derivative = relay.grad(around, wrt="x")
    high, low = (float(around.interpret(X + d, ring(), 7)) for d in (1e-6, -1e-6))
    np.testing.assert_allclose(derivative(X, ring(), 7), (high - low) / 2e-6, rtol=1e-8)
    np.testing.assert_allclose(derivative(X, ring(), 7), derivative.interpret(X, ring(), 7))


@relay.relay
def of_cells(x, cells: list[Ref[Real]]):
    total = x * 0.0
    for c in cells:
        c.value = c.value * x
        total = total + relay.sin(c.value)
    return total * cells[0].value


def test_a_list_with_one_reference_many_times():
    def cells() -> list[Ref]:
        first = cell(1.5)
        return [first, cell(0.5), first, first]

    derivative = relay.grad(of_cells, wrt="x")
    np.testing.assert_allclose(derivative(X, cells()), slope(of_cells, cells), rtol=1e-8)
    assert len(cells()) != len(cells()[:2])
    for given in (cells(), cells()[:2]):
        copies = [relay.ref(c.value) for c in given]
        np.testing.assert_allclose(derivative(X, copies), derivative.interpret(X, [relay.ref(c.value) for c in given]))


@relay.relay
def of_any_size(x, r: Ref[Vector], s: Ref[Vector]):
    r.value = relay.concatenate([r.value * x, s.value])
    return relay.sum(s.value * x) + relay.sum(r.value * r.value)


def test_references_to_tensors_of_any_size():
    def apart() -> tuple[Ref, Ref]:
        return relay.ref(np.arange(3.0)), relay.ref(np.ones(2))

    def same() -> tuple[Ref, Ref]:
        first = relay.ref(np.arange(3.0))
        return first, first

    derivative = relay.grad(of_any_size, wrt="x")
    for make in (apart, same):
        high, low = (float(of_any_size.interpret(X + d, *make())) for d in (1e-6, -1e-6))
        found = derivative(X, *make())
        np.testing.assert_allclose(found, (high - low) / 2e-6, rtol=1e-8)
        np.testing.assert_allclose(found, derivative.interpret(X, *make()))


@relay.relay
def summed(x, r: Ref[Tensor[Float64, (SIZE,)]], s: Ref[Tensor[Float64, (SIZE,)]]):
    r.value = r.value * x + s.value[0]
    return relay.sum(s.value * s.value * x)


def test_a_size_that_is_no_number():
    derivative = relay.grad(summed, wrt="x")
    for size in (3, 40, 2):
        one = relay.ref(np.arange(1.0, 1.0 + size))
        other = relay.ref(np.arange(1.0, 1.0 + size))
        np.testing.assert_allclose(derivative(X, one, one), derivative.interpret(X, other, other))


@relay.relay
def stopped(x, r: Ref[Real], s: Ref[Real]):
    r.value = r.value * x
    assert s.value < 3.0, "too large"
    return r.value * s.value


def test_after_an_error():
    derivative = relay.grad(stopped, wrt="x")
    one = cell(1.0)
    with pytest.raises(ExecutionError, match="too large"):
        derivative(np.float64(4.0), one, one)
    assert held(one) == [4.0]
    one.value = np.float64(1.0)
    np.testing.assert_allclose(derivative(np.float64(2.0), one, one), 4.0)


def test_many_threads():
    derivative = relay.grad(exchange, wrt="x")
    wanted = [float(derivative(X, *two(same))) for same in (True, False)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: float(derivative(X, *two(i % 2 == 0))), range(200)))
    assert found == wanted * 100


def test_the_text_of_a_derivative_is_read_back():
    core = relay.grad(exchange, wrt="x").core(X, *two(True))
    text = relay.to_text(core)
    assert "= shadow %" in text
    assert relay.to_text(relay.parse(text)) == text
    assert relay.parse(text).alpha_hash() == core.alpha_hash()


def test_references_that_are_told_apart_have_no_shadows():
    @relay.relay
    def own(x):
        r, s = relay.ref(x), relay.ref(x * x)
        t = r if x > 0.0 else s
        t.value = t.value * x
        return r.value * s.value

    @relay.relay
    def one(x, r: Ref[Real], count: Ref[Tensor[relay.Int32, ()]]):
        r.value = r.value * x
        count.value += 1
        return r.value

    for core in (relay.grad(own).core(X), relay.grad(one, wrt="x").core(X, cell(1.0), relay.ref(np.int32(0)))):
        assert "shadow" not in relay.to_text(core)


@relay.relay
def lowered(x, r: Ref[Real], s: Ref[Real]):
    r.value = r.value * s.value + x
    return relay.sin(x) * 3.0


@lowered.def_gradient
def lowered_gradient(saved, seed):
    x, _, s = saved
    return seed * x * s.value, None, None


def test_a_gradient_of_its_own_says_what_the_result_does():
    """Its rule at every order; the references are the function's own."""

    @relay.relay
    def around_it(x, r: Ref[Real], s: Ref[Real]):
        first = lowered(x, r, s)
        r.value = r.value * x
        return lowered(first, s, r) + r.value * s.value

    derivative = relay.grad(around_it, wrt="x")
    for each in (derivative, relay.grad(derivative, wrt="x")):
        for same in (True, False):
            np.testing.assert_allclose(each(X, *two(same)), each.interpret(X, *two(same)), rtol=1e-12)
    r, s = cell(1.0), cell(2.0)
    np.testing.assert_allclose(relay.grad(lowered, wrt="x")(X, r, s), X * 2.0)  # not 3 cos(x)


def test_the_result_of_a_function_with_its_own_gradient_depends_on_its_arguments_alone():
    @relay.relay
    def held_only(x, s: Ref[Real]):
        s.value = s.value * x
        return reading(2.0, s) + s.value

    for run in modes(relay.grad(held_only, wrt="x")):
        np.testing.assert_allclose(run(X, cell(3.0)), 2 * 9.0 * X)


@relay.relay
def reading(x: Real, s: Ref[Real]):
    s.value = s.value * s.value
    return x * s.value


@reading.def_gradient
def reading_gradient(saved, seed):
    _, s = saved
    return seed * s.value, None


def test_a_checkpoint_that_returns_a_function():
    @relay.relay
    def through(x):
        def make(v):
            s = relay.sin(v)
            return lambda w: w * s

        total = x
        for _ in range(3):
            total = relay.checkpoint(make)(total)(x)
        return total

    for run in (through, relay.grad(through), relay.grad(relay.grad(through))):
        np.testing.assert_allclose(run(X), run.interpret(X), rtol=1e-12)
    assert relay.check_gradient(through, X) < 1e-7


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed, tmp_path):
    """The derivative of a program with a derivative through references: transform, tape and differences."""
    path = tmp_path / f"random{seed}.py"
    path.write_text(Writer(seed).program())
    main = runpy.run_path(str(path))["main"]
    derivative = relay.grad(main)
    by_tape = float(derivative.interpret(X))
    lowered = derivative.lower(X)
    np.testing.assert_allclose(
        np.asarray(interpreter.run(lowered.core, lowered.values)), by_tape, rtol=1e-8, atol=1e-10
    )
    if seed % 4 == 0:
        np.testing.assert_allclose(derivative(X), by_tape, rtol=1e-8, atol=1e-10)
    high, low = (float(main.interpret(X + d)) for d in (1e-6, -1e-6))
    np.testing.assert_allclose(by_tape, (high - low) / 2e-6, rtol=1e-4, atol=1e-6)


@relay.data
class Pair:
    x: Real
    y: Real


@pytest.mark.parametrize("way", ["compiled", "interpreted"])
def test_references_and_lists_of_records(way: str) -> None:
    @relay.relay
    def moved(pairs: list[Pair], cell: Ref[Pair]):  # type: ignore[no-untyped-def]
        total = 0.0
        for p in pairs:
            total = total + p.x * p.y
        cell.value = Pair(total, cell.value.x)
        return pairs, cell, relay.ref(Pair(cell.value.y, total))

    run = moved if way == "compiled" else moved.interpret
    cell = relay.ref(Pair(1.0, 2.0))
    before = 1.0
    for count in (2, 3, 0):
        given = [Pair(2.0, 1.0 + i * 2.0) for i in range(count)]
        pairs, same, other = run(given, cell)
        assert same is cell and len(pairs) == count
        expected = (sum(2.0 * (1.0 + i * 2.0) for i in range(count)), before)
        before = expected[0]
        assert (float(cell.value.x), float(cell.value.y)) == expected
        assert (float(other.value.x), float(other.value.y)) == expected[::-1]
