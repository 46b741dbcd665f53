"""Derivatives by dynamic lists: cotangents are lists of the same length."""

import numpy as np

import relay as rl
from relay import Float64, Tensor, relay
from zoo import Program

F = Tensor[Float64, ()]
V = Tensor[Float64, (3,)]


@relay
def product(xs: list[F], scale: F) -> F:
    total = scale
    for x in xs:
        total = total * x
    return total


@relay
def powers(x, n):
    xs = []
    for i in range(n):
        xs.append(x + i.astype(Float64))
    return xs


@relay
def slopes_of_product(x, n):
    slopes, slope = rl.grad(product)(powers(x, n), x)
    total = slope
    for i, s in enumerate(slopes):
        total = total + s * i.astype(Float64)
    return total


@relay
def energy(layers: list[tuple[Tensor[Float64, (3, 3)], V]], x: V) -> F:
    for w, b in layers:
        x = rl.tanh(w @ x + b)
    return (x * x).sum()


@relay
def trained(x, n):
    layers = []
    for i in range(n):
        layers.append((rl.eye(3, dtype=Float64) * 0.7, x * 0.1 * i.astype(Float64)))
    for _ in range(2):
        value, (steps, _) = rl.value_and_grad(energy)(layers, x)
        layers = [(w - 0.3 * dw, b - value * db) for (w, b), (dw, db) in zip(layers, steps)]
    return energy(layers, x)


@relay
def of_a_structure(x, n):
    def loss(parameters, y):
        total = parameters["head"] * y
        for row in parameters["rows"]:
            total = total + (row * row).sum() * total
        return total

    rows = [x * 0.1]
    for i in range(n):
        rows.append(x * 0.1 * i.astype(Float64))
    found = rl.grad(loss, wrt=0)({"rows": rows, "head": x[0]}, x[1])
    total = found["head"]
    for row in found["rows"]:
        total = total + row.sum()
    return total


@relay
def pulled_back(x, n):
    value, pullback = rl.vjp(product, powers(x, n), x)
    slopes, slope = pullback(value)
    for s in slopes:
        slope = slope + s * s
    return slope


X, V3 = np.float64(0.7), np.array([0.3, -0.6, 1.1])
PROGRAMS = [
    Program(slopes_of_product, (X, 3)),
    Program(slopes_of_product, (X, 0)),
    Program(trained, (V3, 2)),
    Program(of_a_structure, (V3, 2)),
    Program(pulled_back, (X, 3)),
]
