"""Small things that programs of every day have: defaults of returned functions, imports in functions, and so on."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from functools import reduce
from itertools import product

import numpy as np
import pytest
from agreement import assert_as_python, modes

from relay import relay
from relay.errors import TypeCheckError

pytestmark = pytest.mark.usefixtures("low_effort")


def counter(start=0):
    count = start

    def increment(by=1):
        nonlocal count
        count += by
        return count

    return increment


def counted(start):
    increment = counter(start)
    return increment(3), increment(), increment(by=2)


def power(exponent=2):
    def raised(x, offset=1):
        return x**exponent + offset

    return raised


def raised_twice(x):
    square = power()
    return square(x), square(x, 5), square(x, offset=2)


def quicksort(xs, low=0, high=None):
    if high is None:
        high = len(xs) - 1
    if low < high:
        pivot, i = xs[high], low
        for j in range(low, high):
            if xs[j] <= pivot:
                xs[i], xs[j] = xs[j], xs[i]
                i += 1
        xs[i], xs[high] = xs[high], xs[i]
        quicksort(xs, low, i - 1)
        quicksort(xs, i + 1, high)
    return xs


def place(xs, wanted):
    import math
    from bisect import bisect_left

    return bisect_left(xs, wanted), math.sqrt(wanted)


class Point:
    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return f"Point({self.x})"


def described(x, text):
    return repr(Point(x)), repr(text), repr(x)


def recently_used(keys, capacity):
    cache = OrderedDict()
    for key in keys:
        if key in cache:
            cache.move_to_end(key)
        cache[key] = key * 2
        if len(cache) > capacity:
            cache.popitem(last=False)
    return list(cache.items())


class Board:
    def __init__(self, rows):
        self.rows, self.score = rows, 0

    def merged(self, row):
        self.score += sum(row)
        return [2 * x for x in row]

    def move(self):
        self.rows = [self.merged(row) for row in self.rows]


def moved(x):
    board = Board([[1, x], [3, 4]])
    board.move()
    return board.rows, board.score


def pairs(n):
    return [a * b for a, b in product(range(n), range(3))] + [a - b for a, b in product(range(2), repeat=2)]


def longest_rising(xs):
    ends = []
    for x in xs:
        i = bisect_left(ends, x)
        if i == len(ends):
            ends.append(x)
        else:
            ends[i] = x
    return len(ends)


def summed(n):
    return reduce(lambda a, b: a + b, range(n), 0)


CASES = [
    (pairs, (2,)),
    (summed, (4,)),
    (longest_rising, ([3, 1, 4, 1, 5, 9, 2, 6],)),
    (counted, (10,)),
    (raised_twice, (3,)),
    (quicksort, ([5, 2, 8, 1, 9, 3],)),
    (place, ([1, 4, 9], 4)),
    (described, (3, "it's")),
    (moved, (2,)),
]


@pytest.mark.parametrize("program, arguments", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_programs_run_as_they_stand(program, arguments) -> None:
    assert_as_python(relay(program), program, arguments)


def test_a_cache_forgets_what_was_not_used_for_longest() -> None:
    for run in modes(relay(recently_used)):
        assert run([1, 2, 1, 3], 2) == recently_used([1, 2, 1, 3], 2)


# ---- round to digits


def cents(x):
    return round(x, 2)


def rounded(n, total):
    return round(n, 2), round(total / 3, 3)


NUMBERS = [2.675, 1.005, 0.125, 0.375, -2.675, 1e300, 123456789.125, 0.285, 1.115, 0.0, -0.004, float("inf")]


@pytest.mark.parametrize("number", NUMBERS)
def test_round_is_exact_as_pythons(number) -> None:
    for run in modes(relay(cents)):
        assert float(run(np.float64(number))) == round(number, 2)


def test_round_of_integers_and_quotients() -> None:
    assert_as_python(relay(rounded), rounded, (7, 10))


@relay
def rounded_to(x, digits):
    return round(x, digits)


def test_the_digits_have_to_be_known() -> None:
    with pytest.raises(TypeCheckError, match="must be a number from 0 to 10"):
        rounded_to(np.float32(1.0), np.int32(2))
