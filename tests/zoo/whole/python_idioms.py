"""Idioms of Python and NumPy: `map`, `filter`, `any`, `:=` in comprehensions, mapping patterns, masks that are changed.

`PYTHON` are functions of Python: running one gives the expected value of the decorated one.
"""

from __future__ import annotations

import numpy as np

from relay import relay
from zoo import Program

ROW = np.array([1.5, -2.0, 3.0, 0.5])
GRID = np.arange(6.0).reshape(2, 3) - 1.75


def mapped_and_filtered(row):
    doubled = list(map(lambda v: v * 2.0, row))
    products = map(lambda a, b: a * b, row, doubled)
    total = sum(products)
    for y in filter(lambda v: v > 1.1, doubled):
        total += y
    for i in map(lambda i: i * i, range(40)):
        total += row[0] * float(i)
    return total + sum(map(abs, row))


def map_in_a_loop_with_an_exit(row):
    total = row[0]
    for y in map(lambda v: v * v, row):
        if y > 5.0:
            break
        total += y
    else:
        total = total * 100.0
    return total


def first_that_holds(row):
    score = 0.0
    if any(x > 2.0 for x in row):
        score += row[0]
    if not all(x > 0.0 for x in row if x > -1.0) or any(x + y > 100.0 for x in row for y in row):
        score += row[1] * 10.0
    if all(i < 2 or row[i] > 0.0 for i in range(4)):
        score += row[2] * 100.0
    return score


def any_stops_early(row):
    found = any(v > 2.5 or row[i + 2] > 2.5 for i, v in enumerate(row))  # later ones would read past the end
    return row[0] * 2.0 if found else row[1]


def named_in_a_comprehension(row):
    squares = [y for x in row if (y := x * x) > 1.0]
    return sum(squares) + sum(z * w for w in row if (z := w + 1.0) > 0.0)


def fields_by_pattern(options):
    match options:
        case {"kind": "none"}:
            return 0.0
        case {"rate": rate, "decay": 0.0}:
            return rate
        case {"rate": rate, **rest}:
            return rate * rest["decay"]


def lists_by_length(x):
    total = 0.0
    for items in ([], [x], [x, x * 2.0], [x, x * 3.0, x * 4.0]):
        match items:
            case []:
                total += 1.0
            case [one]:
                total += one
            case [first, *rest]:
                total += first * float(len(rest)) + rest[-1]
    return total


def steps_of_the_run(x, step):
    total = x
    for i in range(10, -10, step):
        total = total * 0.9 + float(i)
    for i, j in zip(range(0, 9, -step), range(3)):
        total += x * float(i * j)
    return total


def changed_where_a_mask_holds(row, grid):
    row[row > 1.0] += 2.0
    row[row < 0.0] *= row[0]
    mask = grid > 0.5
    grid[mask] **= 2
    grid[mask] /= grid[0, 0]
    grid[~mask] = 0.25
    return (row * row).sum() + (grid * grid * grid).sum()


def changed_at_several_places(row, grid):
    row[[0, 2]] += 1.0
    row[[1, 0]] = row[[0, 1]]
    grid[[1, 0], 1:] *= 2.0
    grid[[0, 0]] += grid[[1, 0]]
    return (row * row).sum() * row[0] + (grid * grid).sum()


def nothing_yet(x):
    def later(v): ...

    later(x)
    if x > 0.0:
        ...
    return x * x


def parsed(values, tokens):
    """Recursive descent: 0 a number, 1 plus, 2 times, 3 and 4 brackets."""
    place, used = 0, 0

    def next_token():
        return tokens[place] if place < len(tokens) else -1

    def sums():
        nonlocal place
        total = products()
        while next_token() == 1:
            place += 1
            total = total + products()
        return total

    def products():
        nonlocal place
        product = factor()
        while next_token() == 2:
            place += 1
            product = product * factor()
        return product

    def factor():
        nonlocal place, used
        place += 1
        if tokens[place - 1] == 3:
            inside = sums()
            place += 1
            return inside
        used += 1
        return values[used - 1]

    return sums()


def squared_steps(row):
    """What is None before the first round."""
    previous, total = None, 0.0
    for value in row:
        if previous is not None:
            total = total + (value - previous) ** 2
        previous = value
    return previous * total


PYTHON = [
    (mapped_and_filtered, (ROW,)),
    (map_in_a_loop_with_an_exit, (ROW,)),
    (first_that_holds, (ROW,)),
    (any_stops_early, (ROW,)),
    (named_in_a_comprehension, (ROW,)),
    (fields_by_pattern, ({"rate": np.float64(2.0), "decay": np.float64(0.5)},)),
    (lists_by_length, (np.float64(1.5),)),
    (steps_of_the_run, (np.float64(1.5), np.int32(-3))),
    (changed_where_a_mask_holds, (ROW, GRID)),
    (changed_at_several_places, (ROW, GRID)),
    (nothing_yet, (np.float64(1.5),)),
    (parsed, (ROW, np.int32([3, 0, 1, 0, 4, 2, 0]))),
    (squared_steps, (ROW,)),
]

PROGRAMS = [
    Program(relay(function), arguments, expected=function(*(a.copy() for a in arguments)))
    for function, arguments in PYTHON
]
