"""Data-dependent sizes: their text, scopes and copies, what is checked when they meet, and their memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise

import relay as rl
from relay import relay
from relay.errors import ExecutionError, InternalError, TypeMismatch
from relay.ir.analysis.alpha import alpha_equal
from relay.ir.dims import DataDependentDim, made_dim
from relay.ir.expr import BindDim, Function, Module
from relay.ir.rebuild import copy_block, copy_function
from relay.ir.sizes.data_dependent import bound_dims, free_dims
from relay.ir.sizes.facts import DIFFERENT, EQUAL, Facts
from relay.ir.validation.check import check

TEXT = """dims made k, made j;

entry fn main(%x: Tensor[float64, (3,)], %n: Tensor[int64, ()]) -> Tensor[float64, (Any,)] {
  dim k = %n;
  let %zeros: Tensor[float64, (k,)] = zeros(shape=(k,), dtype=float64);
  let %both: Tensor[float64, (k + 3,)] = concatenate(%zeros, %x, axis=0);
  let %out: Tensor[float64, (Any,)] = ascribe %both;
  let %size: Tensor[int64, ()] = size %out 0;
  dim j = %size;
  let %again: Tensor[float64, (j,)] = ascribe %out;
  let %double: Tensor[float64, (j,)] = add(%again, %again);
  let %number: Tensor[int64, ()] = extent[j, int64];
  assert true "there";
  let %result: Tensor[float64, (Any,)] = ascribe %double;
  %result
}"""
X = np.array([1.0, 2.0, 3.0])


def module(text: str = TEXT) -> Module:
    made = rl.parse(text)
    assert isinstance(made, Module)
    return made


def test_text_is_read_back() -> None:
    assert rl.to_text(module()) == TEXT
    assert alpha_equal(module(), module(TEXT.replace("k", "length")))
    wide = TEXT.replace("made k", "made wide k")
    assert rl.to_text(module(wide)) == wide and not alpha_equal(module(), module(wide))
    assert not alpha_equal(module(), module(TEXT.replace("size=(k,)", "size=(j,)").replace("extent[j", "extent[k")))


def test_a_size_ends_with_its_block() -> None:
    text = """dims made k;

entry fn main(%n: Tensor[int64, ()], %c: Tensor[bool, ()]) -> Tensor[float64, ()] {
  let %y: Tensor[float64, ()] = if %c then {
    dim k = %n;
    let %a: Tensor[float64, (k,)] = zeros(shape=(k,), dtype=float64);
    let %s: Tensor[float64, ()] = sum(%a, axis=none, keepdims=false);
    yield %s
  } else { yield 1.0f64 };
  OUTSIDE
  %y
}"""
    check(module(text.replace("  OUTSIDE\n", "")))
    with pytest.raises((InternalError, rl.RelayError), match="not in scope"):
        check(module(text.replace("OUTSIDE", "let %z: Tensor[float64, (k,)] = zeros(shape=(k,), dtype=float64);")))


def test_copies_of_a_block_make_sizes_of_their_own() -> None:
    main = module().main
    copied = bound_dims(copy_block(main.body))
    assert len(copied) == 2 and not set(copied) & set(bound_dims(main.body))
    assert set(bound_dims(copy_function(main).body)) == set(bound_dims(main.body))


def test_the_sizes_of_callers_are_known() -> None:
    @relay
    def outer(x):
        y = x[x > 0.0]

        def inner(v):
            return (v * y).sum()

        return inner(y) + inner(y * 2.0)

    core = outer.core(X)
    functions = [f for f in core.functions.values() if isinstance(f, Function)]
    assert all(not free_dims(f) for f in functions if f.name == core.entry)
    assert float(outer(X)) == float(outer.interpret(X)) == 42.0


def test_no_axis_of_such_a_size_is_repeated() -> None:
    k, j = made_dim("k"), made_dim("j")
    facts = Facts()
    assert facts.ask(k, EQUAL, 1) is False and facts.ask(1, DIFFERENT, k + j) is True
    assert facts.ask(k, EQUAL, j) is None and facts.ask(k, EQUAL, 3) is None
    assert facts.ask(k % 2, EQUAL, 0) is None and facts.equal(k, 0) is None
    with pytest.raises(TypeError):
        list(k)


@relay
def sum_of_chosen(x, y):
    return x[x > 0.0] + y[y > 0.0]


@relay
def beside_three(x):
    return x[x > 0.0] + np.array([1.0, 2.0, 3.0])


@relay
def largest(x):
    return relay.argmax(x[x > 0.0])


@relay
def second(x):
    return x[x > 0.0][1]


@relay
def made(n):
    return relay.zeros((n, 2), relay.Float64)


@relay
def product(x, y):
    return x[x > 0.0] @ y[y > 0.0]


@relay
def declared_three(x) -> rl.Tensor[rl.Float64, (3,)]:
    return x[x > 0.0]


@relay
def annotated_three(x):
    y: rl.Tensor[rl.Float64, (3,)] = x[x > 0.0]
    return y


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        (declared_three, (np.ones(2),), "axis 0 of the result of declared_three must have 3 elements"),
        (annotated_three, (np.ones(4),), "axis 0 of y must have 3 elements"),
        (product, (X, X[:2]), r"axis 0 of x\[x > 0.0\] and axis 0 of y\[y > 0.0\] must have"),
        (sum_of_chosen, (X, -X), "must have the same number of elements"),
        (sum_of_chosen, (X, np.array([1.0, -1.0])), "must have the same number of elements"),
        (beside_three, (np.array([1.0, -1.0]),), "must have 3 elements here"),
        (largest, (-X,), "an axis is empty, but must have"),
        (second, (np.array([1.0, -1.0]),), "index out of range"),
        (made, (np.int32(-1),), "a size must be a number from 0"),
        (product, (X, X[:2]), "must have the same number of elements"),
    ],
    ids=lambda v: v.__name__ if callable(v) else None,
)
def test_what_is_checked_when_the_program_runs(function, arguments, text) -> None:
    for caught in assert_modes_raise(function, *arguments, error=ExecutionError, match=text):
        assert caught.value.span is not None


def test_sizes_that_are_equal_pass() -> None:
    np.testing.assert_array_equal(sum_of_chosen(X, np.array([3.0, -1.0, 2.0, 1.0])), [4.0, 4.0, 4.0])
    np.testing.assert_array_equal(beside_three(np.array([1.0, -1.0, 1.0, 1.0])), [2.0, 3.0, 4.0])
    assert sum_of_chosen(-X, -X).shape == (0,)
    assert made(np.int64(0)).shape == (0, 2)


@relay
def rounds(x, n):
    total = 0.0
    for i in range(n):
        y = x[x > float(i % 3)]
        total = total + (relay.concatenate([y, y]) ** 2).sum()
    return total


def test_memory_of_a_round_is_given_back() -> None:
    x = np.linspace(-1.0, 4.0, 2000)
    few, many = rounds(x, np.int32(3)), rounds(x, np.int32(300))
    np.testing.assert_allclose(float(many), float(few) * 100)
    program = next(iter(rounds._programs.exact.values())).program
    table = program._contexts[-1].table
    assert program.native.arena is not None
    top, end, chunk = (int(table[program.native.arena + i]) for i in range(3))
    assert chunk <= top <= end and end - chunk < 2**21


def test_other_sizes_of_arguments_are_no_other_program() -> None:
    for size in range(3, 9):
        x = np.linspace(-1.0, 1.0, size)
        np.testing.assert_array_equal(relay_positive(x), x[x > 0.0])
    assert len(relay_positive.programs()) <= 3


@relay
def relay_positive(x):
    return x[x > 0.0]


def test_convolutions_over_data_dependent_sizes() -> None:
    @relay
    def smoothed(x):
        y = x[x > 0.0].reshape((1, 1, -1))
        return relay.conv1d(y, relay.ones((1, 1, 2), y.dtype)).sum()

    chosen = X[X > 0.0]
    np.testing.assert_allclose(smoothed(X), chosen[:-1].sum() + chosen[1:].sum(), rtol=1e-12)
    np.testing.assert_allclose(rl.grad(smoothed)(X), rl.grad(smoothed).interpret(X), rtol=1e-12)


def test_every_stage_binds_each_size_once() -> None:
    typed = sum_of_chosen.typed(X, X)
    bound = [d for f in typed.functions.values() if isinstance(f, Function) for d in bound_dims(f.body)]
    assert bound and len(set(bound)) == len(bound) and all(isinstance(d, DataDependentDim) for d in bound)
    assert BindDim.__doc__ is not None


@relay
def chosen_squares(x):
    return x[x > 0.3] ** 2, x[:2]


@pytest.mark.parametrize("executor", ["compiled", "interpreted"])
def test_cotangents_have_the_data_dependent_size(executor: str) -> None:
    pullback = rl.grad(chosen_squares, seedable=True, output=0, keeping=(1,))
    run = pullback if executor == "compiled" else pullback.interpret
    x = np.linspace(0.2, 1.1, 5)
    found, kept = run(x, np.arange(4.0))
    np.testing.assert_allclose(found, [0.0, 0.0, *(2.0 * x[2:] * np.arange(1.0, 4.0))])
    np.testing.assert_array_equal(kept, x[:2])
    for wrong in (np.ones(3), np.ones(0), np.ones(7)):
        with pytest.raises(ExecutionError, match=r"cotangent must have the size|the seed is Tensor"):
            run(x, wrong)
    with pytest.raises(TypeMismatch, match=r"the rank is 2, not 1"):
        run(x, np.ones((4, 1)))


def test_annotated_sizes_of_arguments_are_checked_at_run_time() -> None:
    (n,) = rl.dims("n")

    @relay
    def of_three(x: rl.Tensor[rl.Float, (3,)]):
        return x.sum()

    @relay
    def product(x: rl.Tensor[rl.Float, (n,)], y: rl.Tensor[rl.Float, (n,)]):
        return x @ y

    @relay
    def chosen(x: rl.Tensor[rl.Float, (n,)]):
        return of_three(x[x > 0.0])

    @relay
    def both(x: rl.Tensor[rl.Float, (n,)]):
        return product(x[x > 0.0], x[x < 3.0])

    x = np.float32([1.0, 2.0, 3.0, -1.0])
    assert float(chosen.interpret(x)) == 6.0
    assert float(both.interpret(x)) == 1.0 * 1.0 + 2.0 * 2.0 + 3.0 * -1.0
    text = "axis 0 of argument x of of_three must have 3 elements, but has a different number"
    with pytest.raises(ExecutionError, match=text):
        chosen.interpret(np.float32([1.0, 2.0]))
    text = "axis 0 of argument y of product must have n elements, as in the other arguments"
    with pytest.raises(ExecutionError, match=text):
        both.interpret(np.float32([1.0, 2.0, 5.0, 6.0, -1.0]))


def test_nothing_is_taken_from_nothing() -> None:
    """Not even the nearest element; no index takes nothing from it."""

    @relay
    def nearest(x, places):  # type: ignore[no-untyped-def]
        return relay.take(x, places, mode="clip")

    @relay
    def nearest_positive(x, places):  # type: ignore[no-untyped-def]
        return relay.take(x[x > 0.0], places, mode="clip")

    nothing, some, none = np.zeros(0), np.array([0, 5], np.int32), np.zeros(0, np.int32)
    for function in (nearest, nearest_positive):
        assert_modes_raise(function, nothing, some, error=ExecutionError, match="index out of range")
        assert len(assert_modes_agree(function, nothing, none)) == 0
        assert assert_modes_agree(function, np.arange(1.0, 4.0), some).shape[0] == 2
    assert_modes_raise(nearest_positive, -np.ones(3), some, error=ExecutionError, match="index out of range")
    assert assert_modes_agree(nearest_positive, -np.ones(3), none).shape == (0,)


def test_a_number_made_of_sizes_has_a_name() -> None:
    """A name specializes nothing: the number is computed in each call, of sizes that the program computes, too."""

    @relay
    def weights(x):  # type: ignore[no-untyped-def]
        chosen = x[x > 0.0]
        count, share = float(len(chosen)), 1.0 / len(x)
        return x * share, count

    for size in (3, 4, 5, 6):
        x = np.ones(size)
        x[0] = -1.0
        found, count = assert_modes_agree(weights, x)
        np.testing.assert_allclose(found, x / size)
        assert count == size - 1
    assert len(weights.programs()) == 2


NUMBERS = (
    *("abs(s)", "abs(n)", "abs(-n)", "abs(n - 9)", "min(s, 2.0)", "max(s, 5.0)", "max(n, 2)", "max(s, 1)", "round(s)"),
    *("round(s / 2)", "int(s)", "int(s * 0.5)", "math.floor(s * 0.5)", "math.ceil(s / 2)", "-s", "s ** 2", "s // 2"),
    *("s % 2", "n // 2", "5 % n", "7 / n", "n & 1", "n << 2", "n ^ 5", "~n", "divmod(n, 2)[0]", "sum([n, 2])"),
    *("(2, 4, 8, 16)[n]", "[1, 2, 3, 4][-n]", "f'{n}' == '3'", "len([s] * n)", "np.full(3, n)[1]", "np.full(3, s)[2]"),
    *(
        "np.array([n, 2])[0]",
        "sorted([n, 2])[0]",
        "n in (1, 3)",
        "s == 3.0",
        "bool(s)",
        "s if n > 2 else 0.5",
        "total(s, 1)",
    ),
)


def test_numbers_made_of_computed_sizes_are_as_in_python() -> None:
    """What needs the number itself, and not a dim, reads it at run time."""
    text = """
def total(t, n):
    return t if n == 0 else 0.5 * total(t * t, n - 1) + t

def f(x):
    z = x[x > 0.5]
    n, s = len(z), float(len(z))
    return ({},)
"""
    names = {"np": np, "math": math, "n": 3, "s": 3.0, "total": lambda t, n: 0.5 * t * t + t}
    function = rl.from_source(text.format(", ".join(NUMBERS)), {"np": np, "math": math})["f"]
    expected = [float(eval(number, names)) for number in NUMBERS]
    found = [float(part) for part in assert_modes_agree(function, np.array([1.0, 0.0, 2.0, 3.0]))]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
