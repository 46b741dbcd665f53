"""Functions that change what they are given, which their callers see, as in Python."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from relay import relay
from zoo import Program


def swap(xs, i, j):
    xs[i], xs[j] = xs[j], xs[i]


def sort_between(xs, low, high):
    if low < high:
        pivot, place = xs[high], low
        for j in range(low, high):
            if xs[j] < pivot:
                swap(xs, place, j)
                place += 1
        swap(xs, place, j=high)
        sort_between(xs, low, place - 1)
        sort_between(xs, place + 1, high)


@relay
def quicksort_in_place(x, w):
    y = x.copy()
    sort_between(y, 0, len(y) - 1)
    return (y * w).sum()


def eliminate(a, b, k):
    for i in range(k + 1, len(b)):
        factor = a[i, k] / a[k, k]
        a[i] = a[i] - factor * a[k]
        b[i] = b[i] - factor * b[k]


@relay
def gauss(a, b):
    a, y = a.copy(), b.copy()
    for k in range(len(y) - 1):
        eliminate(a, y, k)
    for k in range(len(y) - 1, -1, -1):
        y[k] = y[k] / a[k, k]
        y[:k] = y[:k] - a[:k, k] * y[k]
    return (y * y).sum()


def place_queens(board, k, found):
    if k == len(board):
        found.append(board[0])
        return
    for p in range(len(board)):
        if all(board[j] != p and abs(board[j] - p) != k - j for j in range(k)):
            board[k] = p
            place_queens(board, k + 1, found)
            board[k] = 0


@relay
def queens(n):
    board, found = [0 for _ in range(n)], []
    place_queens(board, 0, found)
    return sum(found), len(found)


def search(path, rest, paths):
    if len(path) == len(rest):
        paths.append(path.copy())
    for v in rest:
        if v not in path:
            path.append(v)
            search(path, rest, paths)
            path.pop()


@relay
def permutations(x):
    paths = []
    search([], [x, 2.0 * x, x * x], paths)
    return sum(p[1] + 2.0 * p[2] * p[0] for p in paths) * x


def fibonacci(n, memo):
    if n in memo:
        return memo[n]
    memo[n] = fibonacci(n - 1, memo) + fibonacci(n - 2, memo)
    return memo[n]


@relay
def remembered(x, n):
    return fibonacci(n, {0: x, 1: x * x})


def reach(graph, node, visited):
    visited.add(node)
    for other in graph[node]:
        if other not in visited:
            reach(graph, other, visited)


@relay
def reached(start):
    graph = {1: [2, 4], 2: [3], 3: [1], 4: [4], 5: [1]}
    visited = set()
    reach(graph, start, visited)
    return sorted(visited)


def root(parent, x):
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


def compressed_root(parent, x):
    if parent[x] != x:
        parent[x] = compressed_root(parent, parent[x])
    return parent[x]


@relay
def components(edges, n):
    parent, count = [i for i in range(n)], n
    for a, b in edges:
        if root(parent, a) != compressed_root(parent, b):
            parent[root(parent, a)] = root(parent, b)
            count -= 1
    return count


def step(params, grads, rate):
    params["w"] = params["w"] - rate * grads["w"]
    params["steps"].append(rate)


@dataclass
class Network:
    head: Any
    layers: Any

    def train(self, grads, rate):
        step(self.head, grads, rate)
        for i in range(len(self.layers)):
            step(self.layers[i], grads=grads, rate=rate * self.head["w"].sum())

    def grow(self, x):
        self.layers.append({"w": x, "steps": []})
        return len(self.layers)


@relay
def updates(w, g):
    network = Network({"w": w, "steps": [0.5]}, [])
    count = network.grow(w * 2.0) + network.grow(w * w)
    network.train({"w": g}, 0.1)
    last = network.layers[1]
    return (network.head["w"] * last["w"]).sum() + sum(last["steps"]) * count


@relay
def local_functions(x, n):
    def halve(v, i):
        v[i] = v[i] / 2.0
        return v[i]

    def visit(k, stack):
        if k > 0:
            stack.append(halve(y, k % 3))
            visit(k - 1, stack)

    y, seen = x.copy(), [x[0]]
    visit(n, seen)
    return sum(seen) * y.sum()


def push(heap, v):
    heap.append(v)
    i = len(heap) - 1
    while i > 0 and heap[i] < heap[(i - 1) // 2]:
        swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2


def pop(heap):
    swap(heap, 0, len(heap) - 1)
    least, i = heap.pop(), 0
    while 2 * i + 1 < len(heap):
        child = 2 * i + 1
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if heap[i] <= heap[child]:
            break
        swap(heap, i, child)
        i = child
    return least


@relay
def heap_of_ones_own(x):
    heap, total = [], 0.0
    for v in x:
        push(heap, v)
    for i in range(len(x)):
        total += pop(heap) * (i + 1.0)
    return total


def even(n, seen):
    seen.append(n * 1.0)
    return n == 0 or odd(n - 1, seen)


def odd(n, seen):
    seen[0] = seen[0] + 1.0
    return n != 0 and even(n - 1, seen)


@relay
def in_turn(x, n):
    seen = [x]
    flag = even(n, seen)
    return sum(seen) * x if flag else sum(seen)


_X, _W = np.array([0.3, -0.5, 0.9, 0.1, 0.6]), np.array([1.0, 2.0, -1.0, 0.5, 3.0])
_A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.3, 0.1, 2.0]])

PROGRAMS = [
    Program(quicksort_in_place, (_X, _W), expected=float(np.sort(_X) @ _W)),
    Program(gauss, (_A, _X[:3]), expected=float(np.sum(np.linalg.solve(_A, _X[:3]) ** 2))),
    Program(queens, (5,), False, expected=(20, 10)),
    Program(permutations, (np.float64(1.5),), expected=(2 * 6.75 + 4 * (4.5 + 6.75 + 3.375)) * 1.5),
    Program(remembered, (np.float64(0.5), 7), expected=8 * 0.5 + 13 * 0.25),
    Program(reached, (2,), False, expected=[1, 2, 3, 4]),
    Program(components, (np.array([[0, 1], [2, 3], [1, 3], [0, 2]], np.int32), 6), False, expected=3),
    Program(updates, (_X[:2], _W[:2])),
    Program(local_functions, (_X[:3], 5)),
    Program(heap_of_ones_own, (_X,), expected=float(np.sort(_X) @ np.arange(1.0, 6.0))),
    Program(in_turn, (np.float64(0.5), np.int32(4))),
]
