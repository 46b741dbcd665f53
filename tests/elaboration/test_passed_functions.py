"""Functions that are passed to others: operators, builtins, constructors and derivatives have all the types that a
lambda around them has."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, assert_modes_agree

import relay as R
from relay import relay
from relay.errors import RelayError

A = R.type_var("A")


@R.data
class Box:
    content: A


@relay
def tree_map(f, p):
    if isinstance(p, dict):
        return {name: tree_map(f, part) for name, part in p.items()}
    return f(p)


@relay
def both(f, a, b):
    return f(a), f(b)


@relay
def square(v):
    return v * v


NAMES = {"np": np, "math": math, "relay": relay, "both": both, "tree_map": tree_map, "Box": Box, "square": square}
TREE = {"w": np.array([[1.0, -2.0], [0.5, 3.0]]), "b": np.array([-0.5, 0.25, 2.0], np.float32)}
FUNCTIONS = (
    "np.tanh", "relay.tanh", "relay.relu", "abs", "max", "np.sum", "np.cumsum", "np.std", "np.zeros_like",
    "np.transpose", "np.float32", "len", "tuple", "square", "np.linalg.norm", "np.argmax",
    "relay.grad(lambda v: (v * v).sum())",
    "relay.grad(lambda v: square(v).sum())", "relay.grad(relay.sum)", "relay.stop_gradient",
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_several_types(function: str) -> None:
    text = f"""
def f(p, w, b):
    return both({function}, w, b), tree_map({function}, p)

def around(p, w, b):
    g = lambda v: ({function})(v)
    return both(lambda v: g(v), w, b), tree_map(lambda v: ({function})(v), p)
"""
    made = R.from_source(text, NAMES)
    f, around = made["f"], made["around"]
    given = (TREE, TREE["w"], TREE["b"])
    assert_agree(f.interpret(*given), around.interpret(*given), rtol=1e-6)


def test_numbers_of_several_types() -> None:
    @relay
    def f(n, x):
        return both(float, 1, 2.5), both(int, x, 2.75), both(math.sqrt, 4.0, x), both(bool, n, x), both(round, 2.5, x)

    found = assert_modes_agree(f, np.int32(3), np.float64(2.25))
    assert [float(v) for pair in found for v in pair] == [1.0, 2.5, 2.0, 2.0, 2.0, 1.5, 1.0, 1.0, 2.0, 2.0]


def test_constructors() -> None:
    @relay
    def f(a, b):
        one, two = both(Box, a, b)
        return one.content, two.content

    assert_agree(f.interpret(TREE["w"], TREE["b"]), (TREE["w"], TREE["b"]), rtol=1e-6)


def test_compiled_programs() -> None:
    @relay
    def f(p, w, b):
        maps = tree_map(np.tanh, p), tree_map(np.cumsum, p)
        return maps, both(relay.grad(lambda v: (v * v).sum()), w, b), [g(w) for g in (np.exp, abs, np.sum)]

    given = (TREE, TREE["w"], TREE["b"])
    assert_modes_agree(f, *given, rtol=1e-6)


def test_run_time_choices_and_recursion() -> None:
    @relay
    def applied(f, x, n):
        return x if n == 0 else applied(f, f(x), n - 1)

    @relay
    def f(x, n):
        g = np.sin if n > 2 else np.cos
        for i in range(n):
            g = np.tanh if i % 2 == 0 else g
            x = g(x)
        return x, applied(np.tanh, x, n), applied(relay.sin, x, n), (np.sum if n > 2 else np.max)(x)

    given = (TREE["w"], 3)
    assert_modes_agree(f, *given, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(f.interpret(*given)[3]), np.tanh(np.tanh(np.tanh(TREE["w"]))).sum())


def test_functions_of_numpy_from_python() -> None:
    for function in (np.tanh, np.cumsum, abs, relay.tanh, square):
        first, second = both.interpret(function, TREE["w"], TREE["b"])
        expected = both.interpret(R.from_source("def f(v):\n    return g(v)\n", {"g": function}), TREE["w"], TREE["b"])
        assert_agree((first, second), expected, rtol=1e-6)
        assert second.dtype == np.float32
    with pytest.raises(R.TypeMismatch, match="argument f of both is a Python"):
        both.interpret(np.char.upper, TREE["w"], TREE["b"])


def test_returned_functions_have_all_types() -> None:
    @relay
    def chosen():
        return np.sum, np.cumsum

    total, running = chosen()
    assert float(total(TREE["w"])) == 2.5
    np.testing.assert_allclose(running(TREE["b"]), np.cumsum(TREE["b"]))
    np.testing.assert_allclose(running(TREE["w"]), np.cumsum(TREE["w"]))


# ---- methods of a value


@relay.data
class Scale:
    factor: relay.Tensor[relay.Float64, ()]

    def by(self, x, offset=0.0, *, shift=0.0):
        return x * self.factor + offset + shift

    def own(self, x):
        return x * self.factor

    @staticmethod
    def plain(x):
        return x + 1.0


@relay.data
class Layers:
    first: Scale
    second: Scale


@dataclasses.dataclass
class Shift:
    amount: Any

    @relay.relay
    def by(self, x):
        return x + self.amount


@relay.relay
def applied(f, x):
    return f(x)


@relay.relay
def repeated(f, x):
    return f(f(x))


@relay.relay
def given_method(s):
    return s.own


@relay.relay
def passed_methods(layers, xs, n):
    f = layers.first.by
    chosen = layers.first.own if n > 2 else layers.second.own
    vectors = [applied(layers.first.own, xs[0]), repeated(layers.second.own, xs[0]), chosen(xs[1])]
    numbers = [applied(layers.first.own, n), applied(given_method(layers.second), xs[0][1])]
    vectors = [*vectors, repeated(Shift(1.0).by, xs[0]), applied(layers.first.plain, xs[0])]
    return vectors, numbers, list(map(layers.second.own, xs)), f(xs[0], shift=2.0), applied(f, xs[1])


@relay.relay
def gradient_through_a_method(factor, x):
    s = Scale(factor)
    return applied(s.own, x) + relay.grad(s.own)(x) * applied(s.plain, x)


def test_methods_of_a_value_are_passed() -> None:
    layers, xs = Layers(Scale(2.0), Scale(3.0)), [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    vectors, numbers, mapped, shifted, again = assert_modes_agree(passed_methods, layers, xs, 5)
    assert [v.tolist() for v in vectors] == [[2.0, 4.0], [9.0, 18.0], [6.0, 8.0], [3.0, 4.0], [2.0, 3.0]]
    assert [float(n) for n in numbers] == [10.0, 6.0]
    assert [v.tolist() for v in mapped] == [[3.0, 6.0], [9.0, 12.0]]
    assert (shifted.tolist(), again.tolist()) == ([4.0, 6.0], [6.0, 8.0])
    gradient = relay.grad(gradient_through_a_method)
    assert_modes_agree(gradient, 2.0, np.float64(3.0), expected=[3.0 + 4.0, 2.0 + 2.0])


# ---- partial calls and methods from Python


@dataclasses.dataclass
class Layer:
    w: R.Tensor[R.Float, (3,)]

    @relay
    def forward(self, x):
        return self.w * x

    def plain(self, x):
        return self.w * x


@R.data
class Multiple:
    by: float

    def forward(self, x):
        return self.by * x


@relay
def scaled(a, x, *, b=1.0):
    return a * x + b


@relay
def applied_thrice(f, x):
    def twice(g, y):
        return g(g(y))

    return f(twice(f, x)).sum()


def test_partial_calls_and_methods_are_functions_that_python_passes() -> None:
    x, w = np.float32([1, 2, 3]), np.float32([0.5, -1, 2])
    layer = Layer(w)
    cases = [
        (layer.forward, np.sum(w**3 * x), w**3),
        (Multiple(3.0).forward, 27 * np.sum(x), np.full(3, 27)),
        (functools.partial(layer.forward), np.sum(w**3 * x), w**3),
        (functools.partial(scaled, 2.0), np.sum(8 * x + 7), np.full(3, 8)),
        (functools.partial(functools.partial(scaled, w), b=0.5), np.sum(w**3 * x + (w * w + w + 1) / 2), w**3),
    ]
    for function, value, slope in cases:
        assert_modes_agree(applied_thrice, function, x, expected=value, rtol=1e-5)
        np.testing.assert_allclose(R.grad(applied_thrice, wrt="x")(function, x), slope, rtol=1e-5)
    programs = len(applied_thrice._programs.exact)
    np.testing.assert_allclose(float(applied_thrice(Layer(w + 1).forward, x)), np.sum((w + 1) ** 3 * x), rtol=1e-5)
    np.testing.assert_allclose(float(applied_thrice(functools.partial(scaled, 3.0), x)), np.sum(27 * x + 13))
    assert len(applied_thrice._programs.exact) == programs  # what they hold are arguments

    @relay
    def apply(f, x):
        return f(x)

    np.testing.assert_array_equal(apply(functools.partial(lambda a, b: a * b, 2.0), x), 2 * x)
    total = functools.partial(R.sum, axis=0)  # whose attributes are static
    np.testing.assert_array_equal(apply(total, np.ones((2, 3))), np.full(3, 2.0))
    for wrong, words in (
        (functools.partial(scaled, 1.0, 2.0, 3.0), "has 2 parameters by position, but the partial call passes more"),
        (functools.partial(scaled, c=1.0), "no parameter 'c' left"),
        (functools.partial(scaled, a=1.0), "expected 0, found 1"),  # as in Python
        (layer.plain, "a Python method"),
    ):
        with pytest.raises(RelayError, match=words):
            apply(wrong, x)


@relay
def called_with(f, argument):
    return f(argument)


@relay
def called_later(f, n):
    return f((n, 3)) if n == 2 else called_later(f, n - 1)


@relay
def tensor_methods(x):
    def apply(f, argument):
        return f(argument)

    shaped = called_with(x.reshape, (2, 3)), called_later(x.reshape, 4), apply(x.astype, np.float32)
    return shaped, called_with(x.sum, 0), list(map(x.take, [1, 2]))


def test_methods_of_tensors_are_passed() -> None:
    x = np.arange(6.0)
    rows = x.reshape(2, 3)
    found = assert_modes_agree(tensor_methods, x)
    assert_agree(found, ((rows, rows, x.astype(np.float32)), x.sum(), [x[1], x[2]]))
