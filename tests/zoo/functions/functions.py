"""Closures, recursion, functions as values, derivatives inside of programs."""

import numpy as np

from relay import relay
from zoo import Program


@relay
def closure(x, k):
    scale = k * 2.0

    def f(y):
        return relay.sin(y * scale) + x

    return f(x) + f(k)


@relay
def lambdas(x):
    double = lambda y: y + y
    return double(double(x))


@relay
def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


@relay
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@relay
def is_even(n):
    return True if n == 0 else is_odd(n - 1)


@relay
def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@relay
def local_recursion(x):
    def down(y, n):
        if n == 0:
            return y
        return down(y * x, n - 1)

    return down(x, 3)


@relay
def apply_twice(f, x):
    return f(f(x))


@relay
def functions_as_arguments(x, k):
    return apply_twice(lambda y: y * k + x, x) + apply_twice(relay.tanh, x)


@relay
def make_adder(n):
    return lambda x: x + n


@relay
def function_results(x, y):
    add = make_adder(y)
    return add(x) * add(y)


@relay
def compose(f, g):
    return lambda x: f(g(x))


@relay
def composition(x):
    return compose(relay.sin, compose(relay.exp, lambda t: t * 0.5))(x)


@relay
def polymorphic(x, y):
    def norm(t):
        return (t * t).sum()

    return norm(x) + norm(y)


@relay
def derivative_inside(x):
    return relay.grad(lambda y: x * y * y)(x * 2.0)


@relay
def perturbation(x):
    return x * relay.grad(lambda y: x * y)(2.0)


@relay
def newton_with_gradient(x):
    f = lambda t: t * t - 2.0
    for _ in range(6):
        x = x - f(x) / relay.grad(f)(x)
    return x


@relay
def square(x):
    return x * x


@relay
def calls_other(x):
    return square(square(x)) + square(x.sum())


@relay
def derivatives_of_rounds(x):
    f = lambda v: v**5.0
    total = 0.0
    for i in range(4):
        f = relay.grad(f)
        total = total + f(x) * i
    return total


@relay
def derivatives_until(x):
    f = lambda v: v**6.0
    for i in range(10):
        if i == 3:
            break
        f = relay.grad(f)
    return f(x)


@relay
def twice_of_twice(x):
    def twice(f):
        return lambda v: f(f(v))

    f = relay.negative
    for _ in range(3):
        f = twice(f)
    return f(x)


PROGRAMS = [
    Program(closure, (np.float64(0.4), np.float64(1.3))),
    Program(lambdas, (np.float64(1.5),), expected=6.0, expected_gradient=(4.0,)),
    Program(power, (np.float64(2.0), 5), expected=32.0, expected_gradient=(80.0, None)),
    Program(fibonacci, (12,), differentiable=False, expected=144),
    Program(is_even, (10,), differentiable=False, expected=True),
    Program(local_recursion, (np.float64(1.2),)),
    Program(functions_as_arguments, (np.float64(0.7), np.float64(0.2))),
    Program(function_results, (np.float64(0.7), np.float64(0.2))),
    Program(composition, (np.float64(0.3),)),
    Program(polymorphic, (np.array([1.0, 2.0]), np.array([[3.0, 1.0, 0.5]]))),
    Program(derivative_inside, (np.float64(1.5),), expected=9.0, expected_gradient=(12.0,)),
    Program(perturbation, (np.float64(3.0),), expected=9.0, expected_gradient=(6.0,)),
    Program(newton_with_gradient, (np.float64(1.0),), expected=np.sqrt(2.0)),
    Program(calls_other, (np.float64(1.1),)),
    Program(derivatives_of_rounds, (np.float64(0.7),), expected=20 * 0.7**3 + 2 * 60 * 0.7**2 + 3 * 120 * 0.7),
    Program(derivatives_until, (np.float64(0.7),), expected=120 * 0.7**3),
    Program(twice_of_twice, (np.float64(0.7),), expected=0.7),
]
