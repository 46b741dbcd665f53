"""Counts and sizes beside floats: variables of `range`, lengths, integers from Python, defaults in derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise

import relay as rl
from relay import ExecutionError, Float64, Tensor, relay


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
    assert float(divided(np.arange(3.0), np.int32(2))) == 0.5


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
    found = assert_modes_agree(derivatives_with_numbers, x)
    np.testing.assert_allclose(found, [0.5 * x, 0.5 * x])


@relay
def between(x: Tensor[Float64, ()], n: int):
    return x * n


def test_declared_integers_take_the_dtype_of_floats() -> None:
    result = assert_modes_agree(between, np.float64(1.5), np.int32(2))
    assert float(result) == 3.0 and result.dtype == np.float64


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


# ---- `int`, `round`, `math.floor`, `math.ceil`, `math.trunc` of a scalar: the integer that Python gives, or an error

TEXT = """
def whole_numbers(x):
    return int(x), round(x), math.floor(x), math.ceil(x), math.trunc(x)

def of_python_numbers(a, b):
    return float(a) * int(a), int(b) * a, int(True), x_times(a, 0.5)

def x_times(a, x):
    return x * int(a)

def scaled(x, y):
    return (x * int(y)).sum() + round(y) * 0.5, x[int(y)], int(y) // 2

def up(x):
    return math.ceil(x)

def down(x):
    return math.floor(x)
"""
OF_TEXT = rl.from_source(TEXT, {"math": math})
whole_numbers, of_python_numbers = OF_TEXT["whole_numbers"], OF_TEXT["of_python_numbers"]

REPRESENTED = "none of the integers that the dtype has"


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize(
    ("numbers", "wrong"),
    [
        ([2.5, -2.5, 2147483646.5, -2147483647.5, -0.0], [2.0**31, -(2.0**31) - 1, 1e300, math.nan, math.inf]),
        (np.float32([2.5, -(2.0**31), 2.0**31 - 128]), np.float32([2.0**31, -(2.0**31) - 256, math.nan, -math.inf])),
        (np.float16([2.5, 65504.0]), np.float16([math.inf, math.nan])),
        (np.int64([2**40, -5]), []),
        (np.uint8([200]), []),
    ],
)
def test_whole_numbers_are_right_or_refused(numbers: np.ndarray, wrong: np.ndarray) -> None:
    for number in numbers:
        scalar = np.asarray(number)
        expected = [f(scalar.item()) for f in (int, round, math.floor, math.ceil, math.trunc)]
        assert [int(n) for n in assert_modes_agree(whole_numbers, scalar)] == expected, number
    for number in wrong:
        assert_modes_raise(whole_numbers, np.asarray(number), error=ExecutionError, match=REPRESENTED)


def test_each_of_them_fails_where_it_leaves_the_integers() -> None:
    """At 2147483647.4 only the number above is none of int32."""
    number = np.float64(2147483647.4)
    assert_modes_agree(OF_TEXT["down"], number, expected=2**31 - 1)
    assert_modes_raise(OF_TEXT["up"], number, error=ExecutionError, match=REPRESENTED)


def test_numbers_of_python_stay_integers() -> None:
    assert_modes_agree(of_python_numbers, 3, 2.5, expected=(9.0, 6, 1, 1.5), rtol=0, atol=0)


def test_whole_numbers_are_converted_where_they_meet_floats() -> None:
    found = assert_modes_agree(OF_TEXT["scaled"], np.arange(5.0), np.float32(2.7))
    assert [float(part) for part in found] == [21.5, 2.0, 1.0] and found[2].dtype == np.int32


@relay
def counted(x):  # type: ignore[no-untyped-def]
    return (x == 0).sum(), np.sum(x > 0), np.cumsum(x != 0)


def test_counts_of_more_elements_than_int32_has() -> None:
    """Of static and of symbolic sizes: a program that counts in int32 is not called for more elements."""
    many = np.broadcast_to(np.int8(0), (50000, 50000))
    for result in counted.lower(many).result.items:
        assert result.base == relay.Int64
    for shape in ((3, 4), (5, 6)):
        counted(np.zeros(shape, np.int8))
    assert "x_0*x_1" in str(counted.programs())
