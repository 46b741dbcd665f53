"""What only ever holds integers is an integer, wherever it goes; where it meets a float, it is converted there.

Python is the oracle: a Python int is an int32 here, a NumPy float has the dtype of x, a Python float is float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from agreement import assert_agree, assert_modes_agree, assert_modes_raise, leaves

import relay as rl
from relay import Float32, Tensor, TypeMismatch, relay

PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """A program of x (three floats), an integer from Python and a boolean, which Python runs, too."""
    PROGRAMS.append(function)
    return function


@program
def counter(x, n, c):
    count = 0
    for _v in x:
        count += 1
    return x.sum() / count, count


@program
def counter_of_some(x, n, c):
    count = 0
    for v in x:
        if v > 1.5:
            count += 1
    return x.sum() / count, count, count // 2, x[count], x * 2.0**count


@program
def counter_of_while(x, n, c):
    count = 0
    while count < n:
        count += 1
    return x * count, count, count % 3


@program
def counters_of_counts(x, n, c):
    up, down, most, product = 0, 0, 0, 1
    for i, v in enumerate(x):
        up += i
        down = down - (i + 1) * 2
        most = max(most, i)
        product *= len(x) - i
        if v > 1.5:
            up = i + up
    for i in range(n):
        up += i * n
    return up * x, down / 2, most * 0.5, x[most], product / x.sum(), up, down // 2, most, product


@program
def accumulator(x, n, c):
    total, rounds = 0, 0
    for v in x:
        total = total + v
        rounds = rounds + 1
    return total, rounds, total / rounds


@program
def accumulator_of_both(x, n, c):
    total, start = n, n
    for v in x:
        total = total + start
        total = total + v
    return total, start


@program
def counts_in_arithmetic(x, n, c):
    total = x[0] * 0
    for i in range(n):
        total = total + x[0] * (i & 1) + x[1] * max(i, 1) - x[0] * abs(i - 2) + x[1] * i**2 + x[0] * (i << 1)
        total = total + x[1] * min(i, n) + x[0] * int(i) + x[0] * ~i + x[1] * (i | 2) - x[0] * (i ^ 1) + x[1] * (i >> 1)
        total = total + x[0] * np.maximum(i, 1) + x[1] * np.abs(i - 1) + x[0] * pow(i, 2)
    return total, max(n, 2) * 0.5


@program
def branches(x, n, c):
    three = 3
    either = three if c else x[0]
    zero = x[1] if c else 0
    return either * x[1], three, zero


@program
def nested_loops(x, n, c):
    count = 0
    for _a in x:
        for b in x:
            if b > 0.0:
                count += 1
    return x.sum() / count, count


@program
def copies(x, n, c):
    m = n
    k = n * 2
    for v in x:
        m = m + v
    return m, n, k * x[0], k, k + n


@program
def becomes_a_float_later(x, n, c):
    m, k, total = 0, 0, 0
    while k < n:
        m = total + k
        total = total + x[0]
        k += 1
    return m, total, k


@program
def recursion(x, n, c):
    def go(total, k):
        return total if k == 0 else go(total + x[0], k - 1)

    def factorial(k):
        return 1 if k == 0 else k * factorial(k - 1)

    return go(n, n), n, x * factorial(n), factorial(n)


@program
def closures(x, n, c):
    count = 0
    while count < 3:
        count += 1

    def scaled(v):
        return v * count

    def mean(a, k):
        return a.sum() / k

    return scaled(x), scaled(n), count, mean(x, count), mean(x, 2)


@program
def tuples_and_dicts(x, n, c):
    pair = (0, 0)
    both = {"count": 0, "sum": 0}
    for v in x:
        pair = (pair[0] + 1, pair[1] + v)
        both = {"count": both["count"] + 1, "sum": both["sum"] + v}
    return pair[0], pair[1], x / pair[0], both["count"], both["sum"], x / both["count"]


@program
def lists(x, n, c):
    xs = [0, 1]
    ys = [0.5]
    for v in x:
        xs.append(len(xs))
        ys.append(v * len(xs))
    return xs[3], x * xs[1], sum(xs), x[0] * sum(xs) / len(xs), ys[2], [k * n for k in range(3)][2]


@program
def operators(x, n, c):
    return n // 2, n % 3, n**2, -n, abs(-n), max(n, 4), min(n, x[1]), x[n % 3], x**n, n / 2, 1 / n, n - 1


@program
def conversions(x, n, c):
    return round(n), int(n), float(n), np.sqrt(x * n), len(x), len(x) * x, round(n / 2), int(n / 2)


@program
def comparisons(x, n, c):
    return (1 if n < x[0] else 2), (1 if x[0] < n else 2), n


@program
def variables_of_ranges(x, n, c):
    best, last, total = 0, 0, x[0] / n
    for i in range(n):
        if x[i % 3] > 1.5:
            best = i
        last = i if c else 0
        total += x[i % 3] / n + last
    return best, x[best], x * best, last, x * last, total


@program
def variables_of_ranges_in_calls(x, n, c):
    def weighted(v, i):
        return v * i

    def next_of(i):
        return i + 1

    total = x[0]
    for i in range(3):
        total = total + weighted(x[i], i) + x[i] / next_of(i)
    return total


@program
def sizes_and_bounds(x, n, c):
    m = 0
    while m < n:
        m += 1
    total = x[0]
    for i in range(m):
        total += i
    return total / m, m, np.ones(m).shape[0], x * np.arange(3)


@program
def arrays(x, n, c):
    a = np.arange(3)
    b = a * x
    counts = np.array([0, 0, 0])
    for _v in x:
        counts[1] += 1
    return a.sum(), b, counts[1], x / counts[1], np.where(x > 1.0, n, x), np.maximum(x, n), np.stack([n, x[0]])


@program
def swapped(x, n, c):
    a, b = 1, x[1]
    for _ in range(2):
        a, b = b, a
    return a * x[0], b


@program
def returned_early(x, n, c):
    count = 0
    for v in x:
        if v > 1.5:
            return count
        count += 1  # noqa: SIM113
    return -1


@program
def divided_before_it_counts(x, n, c):
    count = 0
    half = x[0] * 0
    for _v in x:
        half = x[0] * (count / 2)
        count = count + 1
    return half, count


DTYPES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32), np.dtype(np.float64)]


FEW_ROUNDINGS = {t.name: (4 * float(ml_dtypes.finfo(t).eps), 0.0) for t in DTYPES}


def expected_of(function: Callable[..., Any], dtype: np.dtype[Any]) -> Any:
    """What Python gives: arrays' numbers in the arguments' dtype, counts in int32, other numbers in float32."""

    def cast(value: Any) -> Any:
        if isinstance(value, int) or (isinstance(value, np.generic) and value.dtype.kind == "i"):
            return np.int32(value)
        return np.asarray(value, dtype if isinstance(value, np.generic | np.ndarray) else np.float32)

    expected = function(np.array([1.0, 2.0, 3.0]), 3, True)
    return tuple(map(cast, expected)) if isinstance(expected, tuple) else cast(expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_interpreted(function: Callable[..., Any], dtype: np.dtype[Any]) -> None:
    assert_agree(
        relay(function).interpret(np.array([1, 2, 3], dtype), 3, True),
        expected_of(function, dtype),
        tolerances=FEW_ROUNDINGS,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_compiled(dtype: np.dtype[Any]) -> None:
    functions = tuple(map(relay, PROGRAMS))

    @relay
    def all_of_them(x, n, c):
        return tuple(f(x, n, c) for f in functions)

    for found, function in zip(all_of_them(np.array([1, 2, 3], dtype), 3, True), PROGRAMS, strict=True):
        assert_agree(found, expected_of(function, dtype), tolerances=FEW_ROUNDINGS)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_functions_have_types(function: Callable[..., Any]) -> None:
    assert str(relay(function).type)


@relay
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@relay
def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


@relay
def steps_to_zero(n, limit):
    if n <= limit:
        return 0
    steps = 1 + steps_to_zero(n // 2, limit)
    return steps


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_counts_that_recursive_functions_give(dtype: np.dtype[Any]) -> None:
    def series(x, n, c):
        total = x.sum() * 0.0
        for i in range(n):
            total += x[0] ** i / factorial(i)
            total += 0.5 * fibonacci(i + 2) - fibonacci(i) / fibonacci(i + 1)
            total += np.sqrt(steps_to_zero(n - i, 0)) * x[fibonacci(i) % len(x)]
        return total, factorial(n), fibonacci(n)

    def wanted(x, n, c):
        return x[0] * 6.0 + 3.0 * np.sqrt(x[1]), 6, 2

    assert_agree(
        relay(series).interpret(np.array([1, 2, 3], dtype), 3, True),
        expected_of(wanted, dtype),
        tolerances=FEW_ROUNDINGS,
    )
    assert_agree(
        relay(series)(np.array([1, 2, 3], dtype), 3, True), expected_of(wanted, dtype), tolerances=FEW_ROUNDINGS
    )


def test_the_type_of_a_counter() -> None:
    @relay
    def steps(x: Tensor[Float32, (3,)], limit: int):
        count = 0
        while count < limit:
            count += 1
        return x / count, count

    shown = "fn(Tensor[float32, (3,)], Tensor[int32, ()]) -> (Tensor[float32, (3,)], Tensor[int32, ()])"
    assert str(steps.type) == shown


@relay
def counted_from(x, first, limit):
    count = first
    rounds = 0
    while count < limit:
        count += 1
        rounds += 1
        assert rounds < 4000, "the counter is stuck"
    return x / count, x * count, count, rounds


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("first", "limit"), [(0, 3000), (2**24 - 5, 2**24 + 5)])
def test_counters_do_not_stick(dtype: np.dtype[Any], first: int, limit: int) -> None:
    divided, scaled, count, rounds = assert_modes_agree(counted_from, np.ones(2, dtype), first, limit, rtol=0.0)
    assert (int(count), int(rounds)) == (limit, limit - first)
    with np.errstate(over="ignore"):
        expected = np.full(2, limit).astype(dtype)
    np.testing.assert_array_equal(np.asarray(scaled), expected)
    np.testing.assert_array_equal(np.asarray(divided), np.ones(2, dtype) / expected)


def test_other_integers() -> None:
    @relay
    def scaled(x, n):
        count = 0
        for _v in x:
            count += 1
        return x * count, x * n, count

    for dtype in (np.int64, np.int8, np.uint16):
        by_count, by_number, count = assert_modes_agree(scaled, np.array([1, 2], dtype), 5, rtol=0.0)
        assert (by_count.dtype, by_number.dtype, count.dtype) == (dtype, dtype, np.int32)
        assert by_count.tolist() == [2, 4] and by_number.tolist() == [5, 10]
    assert_modes_raise(
        scaled,
        np.array([1, 2], np.int8),
        300,
        error=rl.ExecutionError,
        match=r"the number is out of range for int8 \(-128 to 127\)",
    )
    with pytest.raises(TypeMismatch, match=r"300 is out of range for int8 \(-128 to 127\)"):
        relay(lambda x, n: x * n)(np.array([1, 2], np.int8), 300)


def test_data_are_converted_where_they_meet_floats() -> None:
    @relay
    def mean_of(x, counts):
        n = 0
        for c in counts:
            n += c
        return x / n, n

    found, count = mean_of(np.ones(2), np.array([1, 3], np.int32))
    assert found.dtype == np.float64 and count.dtype == np.int32
    np.testing.assert_array_equal(found, [0.25, 0.25])


def test_references() -> None:
    @relay
    def counted(x):
        rounds, total = rl.ref(0), rl.ref(0)
        n = 2
        copied = rl.ref(n)
        for v in x:
            rounds.value += 1
            total.value += v
            copied.value = copied.value + v
        return rounds.value, total.value, copied.value, n, x / rounds.value

    found = list(leaves(assert_modes_agree(counted, np.float16([1, 2, 3]), rtol=0.0)))
    assert [str(v.dtype) for v in found] == ["int32", "float16", "float16", "int32", "float16"]
    assert [float(v) for v in found[:4]] == [3, 6, 8, 2]


@relay
def half(x):
    return x * 0.5


@relay
def root(x):
    guess = x
    for _ in range(20):
        guess = (guess + x / guess) / 2
    return guess


@relay
def scaled(x, n):
    total = 0
    for i in range(3):
        total = total + x * n * i
    return total / n


@relay
def slopes(x):
    return relay.grad(half)(3), relay.grad(scaled, wrt="x")(x, 3), relay.grad(scaled)(x, 3), relay.vjp(half, 3)[1](1.0)


def test_derivatives() -> None:
    """What one differentiates by is a float where it meets one, also if Python gives an integer."""
    assert float(rl.grad(half)(3)) == 0.5 and float(rl.jacobian(half)(3)) == 0.5
    np.testing.assert_allclose(float(rl.grad(root)(2)), 0.5 / np.sqrt(2), rtol=1e-6)
    assert float(root(2)) == pytest.approx(np.sqrt(2)) and int(relay(lambda x: x * x)(3)) == 9
    assert [float(g) for g in rl.grad(scaled)(np.float64(2), 3)] == [3, 0]
    assert float(rl.grad(scaled, wrt="x")(np.float64(2), 3)) == 3
    assert_modes_agree(slopes, np.float64(2), expected=[0.5, 3, 3, 0, 0.5], atol=1e-15)


def test_weak_integers_take_linear_time() -> None:
    """Each conversion costs the same, however many there are of one counter."""
    sizes = []
    for count in (50, 100):
        lines = "".join(f"    y = y * n + k\n    k = k + {i}\n" for i in range(count))
        function = rl.from_source(
            f"def f(x, n):\n    k = 0\n    while k < n:\n        k += 1\n    y = x\n{lines}    return y, k, n\n"
        )
        sizes.append(rl.to_text(function.typed(np.ones(2), 3)).count("\n"))
    assert sizes[1] < 2.1 * sizes[0]
