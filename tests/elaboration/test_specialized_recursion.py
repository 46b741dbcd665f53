"""Recursion that elaboration follows: it ends, and its work grows with the depth of the recursion, not its calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay as rl
from relay import relay

# ---- at sizes that change


@relay
def fft(re, im):
    n = re.shape[0]
    if n == 1:
        return re, im
    ar, ai = fft(re[::2], im[::2])
    br, bi = fft(re[1::2], im[1::2])
    angle = -2.0 * np.pi * np.arange(n // 2) / n
    c, s = np.cos(angle), np.sin(angle)
    br, bi = c * br - s * bi, c * bi + s * br
    return np.concatenate([ar + br, ar - br]), np.concatenate([ai + bi, ai - bi])


@relay
def merged(x):
    """Halves that are rounded up and down."""
    n = x.shape[0]
    if n <= 1:
        return x
    a, b = merged(x[: n // 2]), merged(x[n // 2 :])
    return np.concatenate([b, a])


@relay
def thirds(x):
    if x.shape[0] <= 2:
        return x.sum()
    return thirds(x[::3]) + 2.0 * thirds(x[1::3]) + 3.0 * thirds(x[2::3])


def python_thirds(x: Any) -> float:
    if x.shape[0] <= 2:
        return float(x.sum())
    return python_thirds(x[::3]) + 2 * python_thirds(x[1::3]) + 3 * python_thirds(x[2::3])


def python_merged(x: Any) -> Any:
    n = x.shape[0]
    return x if n <= 1 else np.concatenate([python_merged(x[n // 2 :]), python_merged(x[: n // 2])])


def test_recursion_with_several_calls_has_an_instance_for_each_size() -> None:
    """At the first size, and at others, where sizes are symbolic first."""
    for depth in range(1, 8):
        x = np.random.default_rng(depth).normal(size=2**depth)
        assert len(fft.typed(x, 0 * x).functions) == depth + 1
        if depth < 6:
            expected = np.fft.fft(x)
            np.testing.assert_allclose(fft.interpret(x, 0 * x), [expected.real, expected.imag], atol=1e-12)
    for n in (3, 17, 33, 100):
        assert len(merged.typed(np.ones(n)).functions) <= 2 * n.bit_length()
    for n in (13, 29, 81):
        assert len(thirds.typed(np.ones(n)).functions) <= 2 * n.bit_length()
    x = np.random.default_rng(0).normal(size=29)
    np.testing.assert_array_equal(merged.interpret(x), python_merged(x))
    np.testing.assert_allclose(float(thirds.interpret(x)), python_thirds(x), rtol=1e-12)


def test_compiled_recursion_at_sizes_that_follow_each_other() -> None:
    for n in (3, 4, 5, 9):
        x = np.random.default_rng(n).normal(size=n)
        np.testing.assert_array_equal(merged(x), python_merged(x))


# ---- at sizes that change, with dtypes that are found later


@relay
def from_zeros(u):
    """The dtype of the zeros is that of what they are assigned to."""
    if u.shape[0] <= 3:
        return u + 1.0
    u[::2] = from_zeros(np.zeros(u[::2].shape))
    return u


@relay
def with_number(u, h):
    if u.shape[0] <= 3:
        return u * h
    u[::2] = with_number(u[::2], 2 * h)
    return u


@relay
def tree_with_number(u, h):
    if u.shape[0] <= 2:
        return u.sum() * h
    return tree_with_number(u[::2], 2 * h) + tree_with_number(u[1::2], 0.5 * h)


@relay
def pair_of_zeros(p, n):
    """The sizes stay after the first call."""
    if n == 0:
        return p[0].sum() + p[1]
    return pair_of_zeros((np.zeros(2), p[0].sum() + p[1]), n - 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("h", [1.0, np.float64(1.0), 1])
def test_recursion_at_other_sizes_where_a_dtype_is_not_known_yet(dtype: Any, h: Any) -> None:
    if isinstance(h, np.float64) and dtype is np.float32:
        h = np.float32(1.0)
    x = np.arange(1.0, 18.0).astype(dtype)
    zeros, scaled, summed = x.copy(), x.copy(), x
    zeros[::2] = 0
    zeros[::8] = 1
    scaled[::8] *= 8
    np.testing.assert_array_equal(from_zeros.interpret(x), zeros)
    np.testing.assert_array_equal(with_number.interpret(x, h), scaled)

    def tree(u: Any, factor: float) -> float:
        return u.sum() * factor if len(u) <= 2 else tree(u[::2], 2 * factor) + tree(u[1::2], 0.5 * factor)

    if not isinstance(h, int):
        assert float(tree_with_number.interpret(summed, h)) == tree(summed, 1.0)
        assert len(tree_with_number.typed(summed, h).functions) <= 10
    assert float(pair_of_zeros.interpret((x, h * 1.0), 3)) == x.sum() + 1


# ---- through functions that it returns


@relay
def compose(f, g):
    return lambda v: f(g(v))


@relay
def by_lambda(f, i):
    return (lambda x: x) if i == 0 else (lambda x: f(by_lambda(f, i - 1)(x)))


@relay
def by_composition(f, i):
    return (lambda x: x) if i == 0 else compose(f, by_composition(f, i - 1))


@relay
def by_name(f, i):
    if i == 0:
        return lambda x: x
    g = by_name(f, i - 1)
    return lambda x: f(g(x))


@relay
def by_local_function(f, i):
    def again(j):
        if j == 0:
            return lambda x: x
        return lambda x: again(j - 1)(f(x))

    return again(i)


@relay
def odd_times(f, i):
    return lambda x: f(even_times(f, i - 1)(x))


@relay
def even_times(f, i):
    return (lambda x: x) if i == 0 else (lambda x: f(odd_times(f, i - 1)(x)))


@relay
def main_lambda(x, i):
    return by_lambda(lambda v: v + v, i)(x)


@relay
def main_composition(x, i):
    return by_composition(lambda v: v + v, i)(x)


@relay
def main_name(x, i):
    return by_name(lambda v: v + v, i)(x)


@relay
def main_local(x, i):
    return by_local_function(lambda v: v + v, i)(x)


@relay
def main_mutual(x, i):
    return even_times(lambda v: v + v, i)(x)


@pytest.mark.parametrize("main", [main_lambda, main_composition, main_name, main_local, main_mutual])
def test_a_function_that_returns_functions_calls_itself_inside_of_them(main: Any) -> None:
    x, i = np.float64(1.5), np.int32(4)
    typed = main.typed(x, i)
    assert len(typed.functions) <= 4
    assert float(main.interpret(x, i)) == 24.0
    assert float(rl.grad(main, wrt=0).interpret(x, i)) == 16.0


def test_compiled_iteration_of_a_function() -> None:
    @relay
    def all_of_them(x, i):
        def double(v):
            return v + v

        return by_lambda(double, i)(x) + by_composition(double, 2)(x) + by_name(double, i)(x)

    x = np.float64(1.5)
    assert float(all_of_them(x, np.int32(3))) == 1.5 * (8 + 4 + 8)
    assert float(rl.grad(all_of_them, wrt=0)(x, np.int32(3))) == 20.0
