"""Programs over data whose constructors are static: nothing of it is left, and answers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay as R
from relay import relay
from relay.compilation.stages import lowering
from relay.ir.expr import Construct, Function, Loop, Match, Module
from relay.ir.traverse import count_bindings, walk
from relay.prelude import List, Option


@relay
def folded(x):  # type: ignore[no-untyped-def]
    return List.Cons(2.0, List.Cons(x, List.Nil())).fold(lambda a, b: a * b, x)


@relay
def mapped_and_reversed(x):  # type: ignore[no-untyped-def]
    return List.Cons(2.0, List.Cons(x, List.Nil())).map(lambda v: R.sin(v)).reverse().sum(0.0)


@relay
def by_tail_recursion(x):  # type: ignore[no-untyped-def]
    def go(xs, product):  # type: ignore[no-untyped-def]
        match xs:
            case List.Nil():
                return product
            case List.Cons(head, tail):
                return go(tail, product * head)

    return go(List.Cons(2.0, List.Cons(3.0, List.Nil())), x)


@relay
def by_recursion(x):  # type: ignore[no-untyped-def]
    def polynomial(xs):  # type: ignore[no-untyped-def]
        match xs:
            case List.Nil():
                return 0.0
            case List.Cons(head, tail):
                return head + polynomial(tail) * x

    return polynomial(List.Cons(2.0, List.Cons(x, List.Cons(x * x, List.Nil()))))


@relay
def layers(x):  # type: ignore[no-untyped-def]
    """Records of weights in a list."""
    weights = List.Cons({"w": x + 1.0, "b": 1.0}, List.Cons({"w": x * 2.0, "b": x}, List.Nil()))
    return weights.fold(lambda h, layer: R.tanh(h * layer["w"] + layer["b"]), x)


@relay
def functions(x):  # type: ignore[no-untyped-def]
    for layer in [R.tanh, lambda v: v * 2.0, R.sin]:
        x = layer(x)
    return x


@relay
def maybe(x):  # type: ignore[no-untyped-def]
    return Option.Some(x).map(lambda v: v * v).get(0.0)


PROGRAMS = (folded, mapped_and_reversed, by_tail_recursion, by_recursion, layers, functions, maybe)


def rest(module: Module) -> list[str]:
    """What is left of data, loops and functions."""
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    kinds = [type(b.value).__name__ for f in functions for b in walk(f.body)]
    return [k for k in kinds if k in (Construct.__name__, Match.__name__, Loop.__name__)] + ["function"] * (
        len(functions) - 1
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_nothing_is_left_of_known_structures(program: Any) -> None:
    x = np.float64(0.7)
    assert rest(lowering(2)(program.typed(x))) == []
    assert rest(lowering(2)(R.grad(program).typed(x))) == []
    np.testing.assert_allclose(program(x), program.interpret(x), rtol=1e-14)
    np.testing.assert_allclose(R.grad(program)(x), R.grad(program).interpret(x), rtol=1e-13)


@relay
def of_the_run(x, n):  # type: ignore[no-untyped-def]
    """A list that the run makes, behind an element that is known."""
    xs = List.Nil()
    for _ in range(n):
        xs = List.Cons(x, xs)
    return List.Cons(3.0, xs).sum(0.0)


def test_the_rest_of_a_list_stays_a_loop() -> None:
    module = lowering(2)(of_the_run.typed(np.float64(2), np.int32(3)))
    assert rest(module).count("Loop") == 2
    assert of_the_run(np.float64(2), np.int32(3)) == 9.0
    assert of_the_run(np.float64(2), np.int32(0)) == 3.0


@relay
def until(xs, x):  # type: ignore[no-untyped-def]
    """A loop that what is known does not end: each round has a choice of the run."""
    rest, total = List.Cons(x, xs), x
    while True:
        match rest:
            case List.Nil():
                return total
            case List.Cons(head, tail):
                if total > 10.0:
                    return -total
                total, rest = total + head, tail


def test_a_round_that_the_run_may_leave_stays() -> None:
    for values in ([], [1.0, 20.0, 5.0]):
        items = List.Nil()
        for value in values:
            items = List.Cons(np.float64(value), items)
        assert float(until(items, np.float64(2))) == float(until.interpret(items, np.float64(2)))


def test_long_lists_stay_data() -> None:
    """More than the budget is not unrolled."""
    lines = ["def f(x):", "    xs = List.Nil()", *(f"    xs = List.Cons(x * {i}.0, xs)" for i in range(200))]
    long = R.from_source("\n".join([*lines, "    return xs.map(relay.sin).sum(0.0)\n"]), {"List": List, "relay": R})
    assert rest(lowering(2)(long.typed(np.float64(1)))).count("Loop") == 3
    np.testing.assert_allclose(long(np.float64(1)), np.sin(np.arange(200.0)).sum(), rtol=1e-12)


@relay
def growing(x: R.Tensor[R.Float64, ()], n: R.Tensor[R.Int32, ()]) -> R.Tensor[R.Float64, ()]:  # type: ignore[valid-type]
    """Each call has a longer list, so versions of it would never end."""

    def go(xs, n):  # type: ignore[no-untyped-def]
        return xs.sum(0.0) if n <= 0 else go(List.Cons(x, xs), n - 1)

    return go(List.Nil(), n)


def test_structures_that_grow_end_as_a_call() -> None:
    assert growing(np.float64(2), np.int32(50)) == 100.0


def test_effects_stay_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    @relay
    def f(x):  # type: ignore[no-untyped-def]
        xs, total = List.Cons(1.0, List.Cons(x, List.Cons(3.0, List.Nil()))), 0.0
        while True:
            match xs:
                case List.Nil():
                    return total
                case List.Cons(head, xs):
                    print(head)
                    assert head > 0.0, "a positive number"
                    total += head

    assert rest(lowering(2)(f.typed(np.float64(2)))) == []
    f(np.float64(2))
    assert capsys.readouterr().out.split() == ["1.0", "2.0", "3.0"]
    with pytest.raises(R.ExecutionError, match="a positive number"):
        f(np.float64(-2))
    assert capsys.readouterr().out.split() == ["1.0", "-2.0"]


def test_a_continuation_that_grows_from_call_to_call_is_not_made_for() -> None:
    """Nor are those of functions that call each other."""

    @relay
    def sum_to(n, k):
        if n == 0:
            return k(0)
        return sum_to(n - 1, lambda r: k(n + r))

    @relay
    def total(n):  # type: ignore[no-untyped-def]
        return sum_to(n, lambda r: r)

    @relay
    def even_to(n, k):
        return k(0) if n <= 0 else odd_to(n - 1, lambda r: k(n + r))

    @relay
    def odd_to(n, k):
        return k(0) if n <= 0 else even_to(n - 1, lambda r: k(n * r))

    @relay
    def both(n):
        return even_to(n, lambda r: r)

    for function, expected in ((total, 21), (both, 6 + 5 * (4 + 3 * (2 + 0)))):
        core = function.core(6)
        assert sum(count_bindings(f.body) for f in core.functions.values()) < 60
        assert int(function.interpret(6)) == expected
