"""Queues, heaps and tables by name, as programs for Python have them."""

from __future__ import annotations

import heapq
import runpy
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from agreement import assert_modes_agree, modes

import relay


@relay.relay
def distances(adjacent, source):
    n = adjacent.shape[0]
    found = [float("inf")] * n
    found[source] = 0.0
    heap = [(0.0, source)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > found[u]:
            continue
        for v in range(n):
            w = adjacent[u, v]
            if w > 0 and d + w < found[v]:
                found[v] = d + w
                heapq.heappush(heap, (found[v], v))
    return np.array(found)


@relay.relay
def steps(grid, start, goal):
    rows, columns = grid.shape
    count = -np.ones((rows, columns), dtype=int)
    queue = deque([start])
    count[start] = 0
    while queue:
        r, c = queue.popleft()
        for dr, dc in [(0, 1), (1, 0), (0, -1), (-1, 0)]:
            y, x = r + dr, c + dc
            if 0 <= y < rows and 0 <= x < columns and grid[y, x] == 0 and count[y, x] < 0:
                count[y, x] = count[r, c] + 1
                queue.append((y, x))
    return count[goal]


def test_programs_with_queues() -> None:
    adjacent = np.array([[0.0, 4, 1, 0], [0, 0, 0, 1], [0, 2, 0, 5], [0, 0, 0, 0]])
    assert_modes_agree(distances, adjacent, 0, expected=np.array([0.0, 3.0, 1.0, 4.0]))
    grid = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    for run in modes(steps):
        assert int(run(grid, (0, 0), (2, 0))) == 6


def test_queues_are_pythons() -> None:
    @relay.relay
    def orders(xs):
        heap = [x * 3 % 7 for x in xs]
        heapq.heapify(heap)
        queue = deque()
        for x in xs:
            heapq.heappush(heap, x)
            queue.appendleft(x)
        taken = []
        while heap:
            taken.append(heapq.heappop(heap))
        return taken, [queue.popleft(), queue.pop()], len(queue)

    xs = [5, 3, 6, 1]
    with relay.as_python():
        expected = orders(xs)
    assert expected == ([1, 1, 2, 3, 3, 4, 5, 6], [1, 5], 2)
    assert orders(xs) == orders.interpret(xs) == expected


PRECEDENCE = {"+": 1, "-": 1, "*": 2}


@relay.relay
def weighed(text, i, x):
    operators = []
    total = 0
    for c in text:
        while operators and PRECEDENCE[operators[-1]] >= PRECEDENCE[c]:
            operators.pop()
            total += 1
        operators.append(c)
    return total, {3: x, 7: x * x}[i]


OTHER_NAMES = """
import heapq as queues
from collections import deque as Line
from heapq import heappop, heappush as push
from relay import relay

@relay
def smallest(xs):
    heap = [xs[0]]
    for x in xs[1:]:
        push(heap, x)
    line = Line(heap)
    return heappop(heap) * 10 + queues.heappop(heap), line.popleft()
"""

OWN_NAMES = """
from relay import relay

def deque(xs):
    return xs * 2.0

@relay
def doubled(x):
    y = deque(x)
    return y + 1.0
"""


@pytest.mark.parametrize(
    ("text", "name", "argument", "expected"),
    [(OTHER_NAMES, "smallest", [5, 3, 4], (34, 3)), (OWN_NAMES, "doubled", 1.5, 4.0)],
)
def test_queues_are_known_by_what_names_mean(
    text: str, name: str, argument: object, expected: object, tmp_path: Path
) -> None:
    file = tmp_path / "queues.py"
    file.write_text(text)
    assert_modes_agree(runpy.run_path(str(file))[name], argument, expected=expected)


def test_dicts_that_are_read_by_run_time_keys() -> None:
    for run in modes(weighed):
        total, chosen = run("+*-+", np.int32(7), 3.0)
        assert int(total) == 3 and float(chosen) == 9.0
        with pytest.raises(relay.ExecutionError, match="the dict has no such key; its keys are 3, 7"):
            run("+", np.int32(4), 3.0)
    assert relay.grad(weighed, wrt="x", output=1)("+", np.int32(7), 3.0) == 6.0
