"""Counts and sizes beside floats: variables of `range`, lengths, integers from Python, defaults in derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as rl
from relay import Float32, Float64, Tensor, TypeMismatch, relay


@relay
def weighted(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * i + (i + 1) * 0.5 + 1 / (i + 1) + np.sqrt(i)
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_take_the_dtype_of_floats(dtype: Any) -> None:
    found = assert_modes_agree(weighted, np.ones(3, dtype), rtol=1e-12)
    assert found.dtype == dtype
    expected = 3 + 3 + 11 / 6 + 1 + np.sqrt(2)
    np.testing.assert_allclose(float(found), expected, rtol=1e-6)


@relay
def divided(x, n):
    total = 0.0
    for i in range(n):
        total += x[i]
    return total / n


def test_an_integer_from_python_that_counts_may_divide() -> None:
    assert float(assert_modes_agree(divided, np.arange(3.0), 2, rtol=1e-12)) == 0.5
    np.testing.assert_allclose(rl.grad(divided, wrt="x")(np.arange(3.0), 2), [0.5, 0.5, 0])
    with pytest.raises(TypeMismatch, match="one dtype"):
        divided(np.arange(3.0), np.int32(2))


@relay
def assigned(x, n):
    y = np.zeros(x.shape)
    for i in range(n):
        y[i] = i
    return y * x


def test_a_count_is_assigned_to_floats() -> None:
    np.testing.assert_array_equal(assert_modes_agree(assigned, np.ones(3), 3, rtol=1e-12), [0, 1, 2])


@relay
def mean_of_list(xs: list[float]):
    return sum(xs) / len(xs)


def test_the_length_of_a_list_divides() -> None:
    assert float(assert_modes_agree(mean_of_list, [1.0, 2.0], rtol=1e-12)) == 1.5


def test_the_general_type_takes_floats_and_integers() -> None:
    @relay
    def ramp(x):
        total = x[0]
        for i in range(3):
            total = total + x[i] * i
        return total

    assert "float or int" in str(ramp.type)
    assert int(ramp(np.arange(3))) == 5 and float(ramp(np.arange(3.0))) == 5.0


@relay
def filled():
    return np.full(2, 0), np.full(2, 0.5), np.full(2, True)


def test_full_is_of_the_kind_of_its_value() -> None:
    assert [str(a.dtype) for a in filled()] == ["int32", "float32", "bool"]


@relay
def table(codes):
    found = np.full(4, 0)
    found[1] = codes[0]
    return found


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_full_of_an_integer_takes_other_dtypes(dtype: Any) -> None:
    found = assert_modes_agree(table, np.array([7], dtype), rtol=1e-12)
    assert found.dtype == dtype and found.tolist() == [0, 7, 0, 0]


@relay
def sized(n):
    return np.zeros(n + 1)


def test_an_integer_from_python_sizes_an_array() -> None:
    assert assert_modes_agree(sized, 3, rtol=1e-12).shape == (4,)
    assert assert_modes_agree(sized, np.int64(2), rtol=1e-12).shape == (3,)


@relay
def heads(x, count=2, scale=0.5):
    return ((x.reshape(count, x.shape[0] // count) * scale) ** 2).sum()


def test_derivatives_of_functions_with_defaults() -> None:
    x = np.arange(4.0)
    found, count, scale = rl.jacobian(heads)(x)
    assert count is None and scale is None
    np.testing.assert_allclose(found, 0.5 * x)
    np.testing.assert_allclose(rl.jacobian(rl.grad(heads, wrt=0), wrt=0)(x), 0.5 * np.eye(4))
    np.testing.assert_allclose(rl.jacobian(heads, wrt="scale")(x), 14.0)


@relay
def derivatives_with_numbers(x):
    return relay.grad(heads, wrt="x")(x, 4), relay.jacobian(heads, wrt="x")(x, 4)


def test_numbers_in_calls_of_derivatives_specialize() -> None:
    x = np.arange(4.0)
    for found in (derivatives_with_numbers(x), derivatives_with_numbers.interpret(x)):
        np.testing.assert_allclose(found, [0.5 * x, 0.5 * x])


@relay
def between(x: Tensor[Float64, ()], n: int):
    return x * n


def test_declared_integers_stay_integers() -> None:
    with pytest.raises(TypeMismatch, match="float64 and int32"):
        between(np.float64(1.0), np.int32(2))
    assert Float32 != Float64


@relay
def scaled_before(x, n):
    """n meets a float before it has to be an integer."""
    step, total = 1.0 / n, 0.0
    for i in reversed(range(n)):
        total = total * step + x[i] * i
    return total + np.zeros(n + 1).shape[0]


def test_an_integer_from_python_meets_floats_first() -> None:
    @relay
    def calling(x):
        return scaled_before(x, 3)

    found = assert_modes_agree(scaled_before, np.ones(3), 3, rtol=1e-12)
    assert float(found) == float(calling(np.ones(3))) == (2 / 3 + 1) / 3 + 4


@relay
def backwards(first, last):
    number = 0
    for i in reversed(range(first, last, 3)):
        number = number * 10 + i
    for i in reversed(range(last, first, -2)):
        number = number * 10 + i
    return number


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 7), (1, 8), (3, 2), (2, 9)])
def test_reversed_ranges(first: int, last: int) -> None:
    digits = [*reversed(range(first, last, 3)), *reversed(range(last, first, -2))]
    expected = int("".join(map(str, digits)) or "0")
    for ends in ((np.int32(first), np.int64(last)), (first, last)):
        assert int(assert_modes_agree(backwards, *ends)) == expected
