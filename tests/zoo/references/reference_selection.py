"""References that branches and loops choose among cells of one function: they become numbers, and the cells values."""

import numpy as np

from relay import relay
from zoo import Program

FIVE = np.linspace(0.2, 1.1, 5)


@relay
def chosen_once(x, k):
    a, b = relay.ref(x), relay.ref(x * x)
    c = a if k > 0 else b
    c.value = c.value * 3.0
    return a.value * b.value


@relay
def made_in_an_arm(x, k):
    a = relay.ref(x)
    if k > 0:
        c = relay.ref(x * 2.0)
    elif k < -1:
        c = relay.ref(x * x * x)
    else:
        c = a
    c.value = c.value * x + a.value
    a.value = c.value * a.value
    return a.value + c.value


@relay
def exchanged(x, n):
    a, b = relay.ref(x), relay.ref(x * 2.0)
    for i in range(n):
        a.value = a.value * x + b.value
        if i % 2 == 0:
            a, b = b, a
    return a.value * b.value


@relay
def until_large(x):
    small, large = relay.ref(x), relay.ref(x * 3.0)
    at = small
    while at.value < 20.0:
        at.value = at.value * (1.0 + x)
        at = large if small.value > large.value else small
    return small.value - large.value * x


@relay
def rows_in_two_cells(x, n):
    a, b = relay.ref(x.copy()), relay.ref(x * 2.0)
    total = 0.0
    for i in range(n):
        c = a if x[i] * total < 0.5 else b
        row = c.value
        row[i] = row[i] * row[i + 1]
        c.value = row
        total = total + relay.sum(b.value) * row[0]
    return total + relay.sum(a.value * b.value)


@relay
def cell_of_cells(x, k):
    a = relay.ref(x)
    b = relay.ref(a)
    if k > 0:
        b.value = relay.ref(x * 3.0)
    b.value.value = b.value.value * x
    return a.value + b.value.value


@relay
def chosen_by_a_function(x, k):
    a, b = relay.ref(x), relay.ref(relay.sin(x))

    def pick(i):
        if i == 0:
            return a
        return b

    pick(k).value = pick(1 - k).value * x
    pick(0).value += pick(1).value
    return a.value * b.value


@relay
def anew_in_each_round(x, n):
    """The cell of one round is read in the next: it is not the one that this round makes."""
    last = relay.ref(x)
    for _ in range(n):
        new = relay.ref(last.value * x)
        last.value = 100.0
        last = new
    return last.value


@relay
def left_early(x, n):
    a, b = relay.ref(x), relay.ref(x + 1.0)
    for i in range(n):
        c = a if i % 3 == 0 else b
        if c.value > 4.0:
            return c.value * x
        if i == 4:
            continue
        c.value = c.value * 1.5 + a.value
    return a.value * b.value


PROGRAMS = [
    Program(chosen_once, (np.float64(0.7), np.int32(1)), expected=1.029, expected_gradient=(4.41, None)),
    Program(chosen_once, (np.float64(0.7), np.int32(0)), expected=1.029, expected_gradient=(4.41, None)),
    *(Program(made_in_an_arm, (np.float64(0.7), np.int32(k))) for k in (1, 0, -2)),
    *(Program(exchanged, (np.float64(0.7), np.int32(n))) for n in (0, 5)),
    Program(until_large, (np.float64(0.7),)),
    Program(rows_in_two_cells, (FIVE, np.int32(4))),
    *(Program(cell_of_cells, (np.float64(0.7), np.int32(k))) for k in (0, 1)),
    Program(chosen_by_a_function, (np.float64(0.7), np.int32(1))),
    Program(anew_in_each_round, (np.float64(1.5), np.int32(3)), expected=1.5**4, expected_gradient=(4 * 1.5**3, None)),
    *(Program(left_early, (np.float64(0.7), np.int32(n))) for n in (3, 9)),
]
