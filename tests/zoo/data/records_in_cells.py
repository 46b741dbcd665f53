"""Records in lists of any length and in references, which programs take and return."""

import numpy as np

import relay as rl
from relay import Float64, Ref, Tensor, data, relay
from zoo import Program

F = Tensor[Float64, ()]


@data
class Point:
    x: F
    y: F


@data
class Path:
    points: list[Point]
    last: Ref[Point]


@relay
def grown(x, n):
    points = []
    for i in range(n):
        points.append(Point(x, x * i.astype(Float64)))
    return points


@relay
def length(x, n):
    total = x * 0.0
    for p in grown(x, n):
        total = total + p.x * p.y
    return total


@relay
def kept(x, n):
    cell = rl.ref(Point(x, 2.0 * x))
    for _ in range(n):
        cell.value = Point(cell.value.y, cell.value.x * x)
    return cell.value.x + cell.value.y


@relay
def path(x, n):
    found = Path([Point(x, x)], rl.ref(Point(x, 2.0 * x)))
    for _ in range(n):
        found = Path([*found.points, found.last.value], found.last)
        found.last.value = Point(found.last.value.y * x, found.last.value.x)
    return found


@relay
def along(x, n):
    total = x
    for p in path(x, n).points:
        total = total + p.x * p.y
    return total


X = np.float64(0.7)
PROGRAMS = [
    Program(grown, (X, 3), differentiable=False),
    Program(length, (X, 4), expected=0.7 * 0.7 * 6, expected_gradient=(2 * 0.7 * 6, None)),
    Program(kept, (X, 3)),
    Program(along, (X, 3)),
]
