"""Elements of lists that loops change in loops in them: the list has them changed, as in Python."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from agreement import assert_as_python, modes

from relay import relay
from relay.errors import RelayError

pytestmark = pytest.mark.usefixtures("low_effort")


class Particle:
    def __init__(self, x, v):
        self.x, self.v = x, v

    def kick(self, dv):
        self.v += dv


@dataclass
class Item:
    name: str
    count: int


class Cart:
    def __init__(self):
        self.items = []

    def add(self, name, count):
        for item in self.items:
            if item.name == name:
                item.count += count
                return
        self.items.append(Item(name, count))


def scaled(n):
    rows = [[1, 2], [3, 4]]
    for row in rows:
        for j in range(2):
            row[j] *= n
    return rows


def counted(n):
    rows = [[1, 2], [3, 4]]
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            row[j] = value * n + i
    return rows


def raised(n):
    rows = [[1, 2], [3, 4]]
    for row in rows:
        while row[0] < n:
            row[0] += 1
    return rows


def doubled(x):
    for row in x:
        for j in range(len(row)):
            row[j] *= 2.0
    return x


def moved(n):
    states = [{"x": 1, "v": 2}, {"x": 3, "v": 4}]
    for state in states:
        for _ in range(n):
            state["x"] += state["v"]
    return states


def in_planes(n):
    planes = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    for plane in planes:
        for row in plane:
            for j in range(len(row)):
                row[j] += n
    return planes


def exchanged(n):
    a, b = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
    for row, other in zip(a, b, strict=True):
        for j in range(2):
            row[j], other[j] = other[j], row[j] * n
    return a, b


def left_by_return(n):
    rows = [[1, 2], [3, 4]]
    for row in rows:
        for j in range(2):
            if row[j] == n:
                return rows, j
            row[j] = 0
    return rows, -1


def left_by_break(n):
    rows = [[1, 2], [3, 4]]
    for row in rows:
        for j in range(2):
            if row[j] == n:
                break
            row[j] = 0
        else:
            row.append(9)
    return rows


def attracted(n):
    particles = [Particle(1.0, 0.0), Particle(2.0, 0.5), Particle(4.0, 1.0)]
    for p in particles:
        for q in particles:
            p.v += n * q.v
    return [p.v for p in particles]


def attracted_by_others(n):
    particles = [Particle(1.0, 0.0), Particle(2.0, 0.5), Particle(4.0, 1.0)]
    for p in particles:
        for q in particles:
            if p is not q:
                p.v += n * (q.x - p.x)
    for p in particles:
        p.x += p.v
    return [p.x for p in particles]


def kicked(n):
    particles = [Particle(1.0, 0.0), Particle(2.0, 0.5)]
    for p in particles:
        for _ in range(3):
            p.kick(n)
    return [p.v for p in particles]


def under_another_name(n):
    rows = [[1, 2], [3, 4]]
    same = rows
    for row in rows:
        for j in range(2):
            row[j] += n
    return same


def in_rounds(n):
    rows = [[3, 1], [2, 0]]
    for _ in range(n):
        for row in rows:
            for j in range(2):
                row[j] += rows[0][j]
    return rows


def bought(orders):
    cart = Cart()
    for name, count in orders:
        cart.add(name, count)
    return [(item.name, item.count) for item in cart.items]


def in_a_dict(n):
    particles = {"a": Particle(1.0, 0.0), "b": Particle(2.0, 0.5)}
    for name in particles:
        particles[name].kick(n)
    for p in particles.values():
        p.kick(n)
    for _, p in particles.items():
        p.kick(n)
        p.v *= 2.0
    return [p.v for p in particles.values()]


def neighbours(n):
    graph = {}
    for i in range(n):
        for j in range(i):
            graph.setdefault(i, []).append(j)
    for near in graph.values():
        near.append(n)
    for k in graph:
        graph[k].sort(reverse=True)
    return [(k, graph[k]) for k in graph]


CASES = [
    (scaled, (3,)), (counted, (4,)), (raised, (4,)), (moved, (3,)), (in_planes, (3,)),
    (attracted_by_others, (0.1,)),
    (exchanged, (3,)), (left_by_return, (3,)), (left_by_break, (3,)), (attracted, (0.5,)), (kicked, (3.0,)),
    (in_a_dict, (3.0,)), (neighbours, (4,)),
    (under_another_name, (3,)), (in_rounds, (2,)), (bought, ([("tea", 2), ("milk", 1), ("tea", 1)],)),
]  # fmt: skip


@pytest.mark.parametrize(("program", "arguments"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_lists_have_their_changed_elements(program, arguments) -> None:  # type: ignore[no-untyped-def]
    assert_as_python(relay(program), program, arguments)


def test_rows_of_an_array_are_views() -> None:
    for run in modes(relay(doubled)):
        np.testing.assert_array_equal(run(np.ones((2, 3))), np.full((2, 3), 2.0))


def of_two_names(n):
    row = [1, 2]
    for each in [row, [3, 4]]:
        for j in range(2):
            each[j] += n
    return row


def in_another_variable(n):
    rows = [[3, 1], [2, 0]]
    for row in rows:
        same = row
        for j in range(2):
            same[j] += n
    return rows


def in_a_slice(n):
    rows = [[1, 2], [3, 4]]
    for row in rows[1:]:
        for j in range(2):
            row[j] += n
    return rows


def read_behind_the_loop(n):
    rows = [[1, 2], [3, 4]]
    for row in rows:
        for j in range(2):
            row[j] += n
    row[0] = 100
    return rows


@pytest.mark.parametrize("program", [of_two_names, in_another_variable, in_a_slice, read_behind_the_loop])
def test_what_cannot_be_followed_is_refused(program) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RelayError, match=r"sees the change of|changes in a loop"):
        relay(program)(3)
