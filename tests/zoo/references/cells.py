"""Variables that functions capture and that change afterwards: they are references."""

import numpy as np

from relay import relay
from zoo import Program


@relay
def reassigned(x):
    y = x
    g = lambda v: v * y
    y = y * 2.0
    return g(x)


@relay
def accumulator(x):
    total = 0.0 * x

    def add(v):
        nonlocal total
        total += v
        return total

    for i in range(4):
        add(x * float(i))
        if add(x) > 100.0:
            break
    return total * total


@relay
def moving_parameter(x):
    step = lambda v: v + x
    while x < 10.0:
        x = step(x)
    return x


@relay
def last_round(x, ys):
    y = ys[0]
    g = lambda v: v
    for y in ys:
        x = g(x)
        g = lambda v: v + y  # noqa: B023
    return x


@relay
def cell_by_branch(x):
    if x > 0.0:
        y = x
    else:
        y = x * 2.0
    read = lambda: y
    y = y + 1.0
    return read() * x


@relay
def item_after_capture(x):
    total = lambda: x.sum()
    x[0] = 5.0
    return total() * x[1]


@relay
def two_levels(x):
    k = x

    def outer(v):
        def inner(w):
            nonlocal k
            k = k + w
            return k

        return inner(v) * k

    return outer(x) + outer(1.0)


@relay
def read_by_conditions(x):
    r = relay.ref(x)
    other = r if x > 0.0 else relay.ref(1.0)
    for _ in range(3):
        if x > 5.0:
            x = x * 0.5
        elif r.value * 2.0 > 3.0 and other.value > 0.1:
            x = x + r.value
        else:
            r.value = r.value + x
            other.value = other.value * x
    return x * r.value


@relay
def written_by_conditions(x):
    r = relay.ref(x)

    def doubled():
        r.value = r.value * x
        return r.value

    for i in range(4):
        if i == 2:
            x = x * 0.5
        elif doubled() > 2.0:
            x = x + r.value
        elif doubled() > 1.9:
            x = x * r.value
        else:
            r.value = r.value + x
    return x * r.value


PROGRAMS = [
    Program(reassigned, (np.float64(3.0),), expected=18.0, expected_gradient=(12.0,)),
    Program(accumulator, (np.float64(1.5),), expected=225.0, expected_gradient=(300.0,)),
    Program(moving_parameter, (np.float64(1.5),), expected=12.0, expected_gradient=(8.0,)),
    Program(last_round, (np.float64(1.5), np.arange(3.0)), expected=4.5),
    Program(cell_by_branch, (np.float64(1.5),), expected=3.75, expected_gradient=(4.0,)),
    Program(item_after_capture, (np.arange(3.0),), expected=8.0),
    Program(two_levels, (np.float64(1.5),), expected=25.0, expected_gradient=(28.0,)),
    Program(read_by_conditions, (np.float64(1.2),)),
    Program(written_by_conditions, (np.float64(1.2),)),
]
