"""Integers are int64 where a number meets them that an int32 does not hold."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from agreement import assert_as_python

from relay import relay
from relay.errors import TypeMismatch

pytestmark = pytest.mark.usefixtures("low_effort")


class Random:
    def __init__(self, seed):
        self.state = seed

    def next(self, bound):
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return self.state % bound


def dice(seed, count):
    source = Random(seed)
    return [source.next(6) + 1 for _ in range(count)]


def cheapest(costs):
    best = [[0] * len(costs) for _ in costs]
    for i in range(len(costs)):
        best[i][i] = sys.maxsize
        for cost in costs:
            if cost * i < best[i][i]:
                best[i][i] = cost * i
    return best


def above(x):
    return x + 2**40


@pytest.mark.parametrize("count", [0, 1, 6])
def test_a_generator_of_random_numbers(count) -> None:
    assert_as_python(relay(dice), dice, (7, count))


def test_the_largest_integer_is_a_bound() -> None:
    assert_as_python(relay(cheapest), cheapest, ([40, 20, 30],))


def test_dtypes_that_callers_choose_stay() -> None:
    with pytest.raises(TypeMismatch, match="1099511627776 is out of range for int32"):
        relay(above)(np.arange(3, dtype=np.int32))
