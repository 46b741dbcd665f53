"""Dicts of lists, sets and dicts that `setdefault` makes where they are changed at once."""

from __future__ import annotations

import pytest
from agreement import modes

from relay import relay

pytestmark = pytest.mark.usefixtures("low_effort")


def neighbours(edges):
    found = {}
    for u, v, w in edges:
        found.setdefault(u, []).append((v, w))
        found.setdefault(v, []).append((u, w))
    return found


def index(texts):
    places = {}
    for i, text in enumerate(texts):
        for word in text.split():
            places.setdefault(word, set()).add(i)
    return {word: sorted(found) for word, found in places.items()}


def counts(pairs):
    table = {}
    for a, b in pairs:
        table.setdefault(a, {})[b] = table.get(a, {}).get(b, 0) + 1
    return table


class Graph:
    def __init__(self):
        self.edges = {}

    def add(self, u, v):
        self.edges.setdefault(u, []).append(v)


def edges_of_object(pairs):
    graph = Graph()
    for u, v in pairs:
        graph.add(u, v)
        graph.add(v, u)
    return graph.edges


CASES = [
    (neighbours, [(0, 1, 2.0), (1, 2, 3.0)]),
    (index, ["a b", "b c b"]),
    (counts, [(1, 2), (1, 2), (2, 3)]),
    (edges_of_object, [(0, 1), (1, 2)]),
]


@pytest.mark.parametrize("program, argument", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_groups_are_made_and_changed_in_one_statement(program, argument) -> None:
    for run in modes(relay(program)):
        assert run(argument) == program(argument)
