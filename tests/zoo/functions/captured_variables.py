"""Functions that see the variables around them as Python's do: as they are when the function is called.

Each program is also run as it is by Python, which gives the expected value.
"""

# ruff: noqa: B023, F811

import numpy as np

from relay import relay
from zoo import Program

X = np.float64(1.5)
ROW = np.array([1.0, -2.0, 3.0])


def functions_of_a_comprehension(x):
    functions = [lambda v: v * x + float(i) for i in range(3)]
    return sum([f(x) for f in functions])


def functions_of_nested_comprehensions(x):
    functions = [[lambda v: v * float(i * 10 + j) for j in range(3)] for i in range(2)]
    return functions[0][0](x) + functions[0][2](x) * functions[1][1](x)


def functions_of_a_filtered_comprehension(row):
    functions = [lambda v: v * y for y in row if y > 0.0]
    total = 0.0
    for f in functions:
        total += f(2.0)
    return total


def functions_of_a_loop(x, n):
    functions = []
    for i in range(n):
        y = x * float(i)
        functions.append(lambda v: v * y + float(i))
    total = 0.0
    for f in functions:
        total += f(x)
    return total


def function_of_the_last_round(row):
    f = lambda v: v
    total = 0.0
    for y in row:
        total += f(y)
        f = lambda v: v * y
    return total


def function_of_an_inner_loop(x, n):
    f = lambda v: v
    total = 0.0
    for i in range(n):
        for j in range(i):
            z = x * float(i + j)
            f = lambda v: v * z
        total += f(x)
    return total


def definition_in_a_loop(x, n):
    functions = []
    for i in range(n):

        def scaled(v):
            return v * float(i) + y

        y = x * x
        functions.append(scaled)
    total = 0.0
    for f in functions:
        total += f(2.0)
    return total


def list_of_a_later_round(x, n):
    last = lambda: 0.0
    total = 0.0
    for i in range(n):
        items = [x]
        total += last()
        last = lambda: items[-1] * float(len(items))
        for k in range(i):
            items.append(x * float(k))
    return total


def function_in_a_reference(x, n):
    cell = relay.ref(lambda v: v)
    total = 0.0
    for i in range(n):
        y = x * float(i)
        total += cell.value(x)
        cell.value = lambda v: v * y
    return total + cell.value(x)


def captured_before_its_value(x):
    f = lambda v: v * k
    k = x + 1.0
    first = f(x)
    k = x * x
    return first + f(x)


def captured_on_one_path(x):
    f = lambda v: v
    if x > 0.0:
        f = lambda v: v * k
    k = x * 3.0
    return f(x)


def distant_definitions(x, n):
    def even(k):
        return x if k == 0 else odd(k - 1)

    y = x * x

    def odd(k):
        return y if k == 0 else even(k - 1)

    return even(n) + odd(n) * 2.0


def definition_that_is_replaced(x):
    def f(v):
        return v * 2.0

    g = lambda v: f(v) + x
    first = g(x)

    def f(v):
        return v * v

    return first * g(x)


def assigned_before_its_value(x):
    def advance():
        nonlocal state
        state = state * x

    state = x + 1.0
    advance()
    advance()
    return state


PYTHON = [
    (functions_of_a_comprehension, (X,)),
    (functions_of_nested_comprehensions, (X,)),
    (functions_of_a_filtered_comprehension, (ROW,)),
    (functions_of_a_loop, (X, np.int32(4))),
    (function_of_the_last_round, (ROW,)),
    (function_of_an_inner_loop, (X, np.int32(4))),
    (definition_in_a_loop, (X, np.int32(4))),
    (list_of_a_later_round, (X, np.int32(4))),
    (function_in_a_reference, (X, np.int32(3))),
    (captured_before_its_value, (X,)),
    (captured_on_one_path, (X,)),
    (distant_definitions, (X, np.int32(5))),
    (definition_that_is_replaced, (X,)),
    (assigned_before_its_value, (X,)),
]


class _Cell:
    def __init__(self, value):
        self.value = value


def _expected(function, arguments):
    """What Python computes, with a cell of its own for `relay.ref`."""
    names = {"relay": type("names", (), {"ref": _Cell})}
    return type(function)(function.__code__, {**function.__globals__, **names})(*arguments)


PROGRAMS = [Program(relay(f), arguments, expected=_expected(f, arguments)) for f, arguments in PYTHON]
