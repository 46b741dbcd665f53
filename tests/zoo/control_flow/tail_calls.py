"""Tail recursion of one function and of several: loops, whatever the arms they stand in and the results they return."""

import numpy as np

from relay import Float64, List, Tensor, relay
from zoo import Program

Real = Tensor[Float64, ()]


@relay
def two_results(x, n):
    def go(a, b, m) -> tuple[Real, Real]:
        if m == 0:
            return a, b
        return go(a * 0.5 + b * x, relay.sin(b), m - 1)

    a, b = go(x, x * 2.0, n)
    return a * b


@relay
def tuple_along(x, n):
    def go(pair, m) -> tuple[Real, tuple[Real, Real]]:
        a, (b, c) = pair
        if m == 0:
            return pair
        if b > 1.0:
            return go((a * 0.5, (c, b * 0.5)), m - 1)
        return go((a + b * c, (b * 1.5, c)), m - 1)

    a, (b, c) = go((x, (x * 0.5, x)), n)
    return a * b * c


@relay
def by_match(x, n):
    def go(v, k) -> Real:
        match k % 3:
            case 0:
                if k <= 0:
                    return v
                return go(v * x, k - 1)
            case 1:
                return go(v + x, k - 1)
            case _:
                w = relay.sin(v)
                return go(v - w * x, k - 1)

    return go(x, n)


@relay
def even_and_odd(x, n):
    def even(v, m) -> Real:
        if m == 0:
            return v
        return odd(v * x, m - 1)

    def odd(v, m) -> Real:
        if m == 0:
            return relay.sin(v)
        return even(v + x, m - 1)

    return even(x, n) * odd(x, n)


@relay
def three_with_other_parameters(x, xs, n):
    def first(v, m) -> Real:
        if m == 0:
            return v
        if m % 2 == 0:
            return second(m - 1, v * x)
        return third(v, m - 1, xs * v)

    def second(m, v) -> Real:
        if m == 0:
            return v * 2.0
        return third(v + 0.5, m - 1, xs)

    def third(v, m, ys) -> Real:
        if m == 0:
            return v * ys[0]
        return first(v - ys[1] * 0.1, m - 1)

    return first(x, n)


@relay
def one_call_is_none_in_tail_position(x, n):
    def down(v, m) -> Real:
        if m <= 0:
            return v
        return up(v * x, m - 1)

    def up(v, m) -> Real:
        if m <= 0:
            return v + x
        inner = down(v, m - 3)
        return down(v * 0.5 + inner, m - 1)

    return down(x, n)


@relay
def along_a_list(xs, x):
    def add(rest, total) -> Real:
        match rest:
            case List.Nil():
                return total
            case List.Cons(head, tail):
                return multiply(tail, total + head * x)

    def multiply(rest, total) -> Real:
        match rest:
            case List.Nil():
                return total * x
            case List.Cons(head, tail):
                return add(tail, total * head)

    return add(xs, x)


def _list(*numbers):
    xs = List.Nil()
    for number in reversed(numbers):
        xs = List.Cons(np.float64(number), xs)
    return xs


X, N = np.float64(0.7), np.int32(4)

PROGRAMS = [
    Program(two_results, (X, N)),
    Program(tuple_along, (X, N)),
    Program(by_match, (X, np.int32(7))),
    *(Program(even_and_odd, (X, np.int32(n))) for n in (0, 3, 4)),
    Program(three_with_other_parameters, (X, np.array([1.5, -0.5]), np.int32(7))),
    Program(one_call_is_none_in_tail_position, (X, np.int32(6))),
    Program(along_a_list, (_list(1.5, -2.0, 0.5), X)),
]
