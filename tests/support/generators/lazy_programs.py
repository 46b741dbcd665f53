"""Programs with generators, for tests of what Python gives of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

FUNCTIONS = """
class Counter:
    def __init__(self):
        self.n = 0
    def items(self, k):
        for i in range(k):
            self.n += 1
            yield i

class Bag:
    def __init__(self, xs):
        self.xs = xs
        self.seen = 0
    def __iter__(self):
        for x in self.xs:
            self.seen += 1
            yield x

class Group:
    def __init__(self, xs):
        self.xs = xs
    def __iter__(self):
        for x in self.xs:
            yield x

class Count:
    def __init__(self, n):
        self.i = 0
        self.n = n
    def __iter__(self):
        return self
    def __next__(self):
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i

def each(xs):
    for x in xs:
        yield x

def squares(n):
    for i in range(n):
        yield i * i

def risky(n):
    for i in range(10):
        if i > n:
            raise ValueError("late")
        yield i

def checked(n):
    if n < 0:
        raise ValueError("negative")
    for i in range(n):
        yield i

def naturals(n):
    k = 0
    while k < 1000000:
        yield k
        k += n

def below(n):
    k = 0
    while k < n:
        yield k
        k += 1

def growing(xs):
    xs.append(1)
    yield 5

def descend(c, depth):
    if depth == 0:
        yield depth + 1
    else:
        c.n += 1
        yield from descend(c, depth - 1)
        yield from descend(c, depth - 1)

def reachable(graph, start):
    seen = [start]
    queue = [start]
    while queue:
        node = queue.pop(0)
        yield node
        for other in graph[node]:
            if other not in seen:
                seen.append(other)
                queue.append(other)

def both(g):
    return sum(g) * 10 + sum(g)

def once(g):
    return sum(g)

def show(n):
    print(n)
    return n

def printing(n):
    for i in range(n):
        yield show(i)

def rows(n):
    row = [0]
    for i in range(n):
        row[0] = i
        yield row

def fill(xs, ys):
    for v in xs:
        ys.append(v)
    return ys

def first(g):
    for v in g:
        return v
    return 0

def twice(xs):
    return each(xs)

def spoil(xs):
    xs.append(7)
    return xs

def spoiling(xs):
    spoil(xs)
    yield 1

class Held:
    def __init__(self, g):
        self.g = g
    def take(self):
        return next(self.g)

class Cell:
    def __init__(self, v):
        self.v = v

def cells(xs):
    for c in xs:
        yield c

def values(xs):
    for c in xs:
        yield c.v

def total_and_change(g, xs):
    t = 0
    for v in g:
        t += v
        xs[2] = 100
    return t

def pair(n):
    return squares(n), n

def chained(xs):
    yield from each(xs)
    yield 9

def swap(xs):
    for i in range(len(xs)):
        xs[0] = i
        yield xs[0] + xs[1]

def reader(xs, ys):
    for x in xs:
        yield x + ys[0]

def sized(xs):
    for i in range(len(xs)):
        yield xs[i]

def with_default(n, seen=[0]):
    for i in range(n):
        seen[0] += 1
        yield seen[0]

def asserting(n):
    for i in range(n):
        assert i < 3
        yield i

def collatz(n):
    while n != 1:
        yield n
        n = n // 2 if n % 2 == 0 else 3 * n + 1

def fib(limit):
    a, b = 0, 1
    while a < limit:
        yield a
        a, b = b, a + b

def interleave(a, b):
    for x, y in zip(a, b):
        yield x
        yield y

def evens(g):
    for v in g:
        if v % 2 == 0:
            yield v

def consume_some(g):
    t = 0
    for v in g:
        t += v
        if v > 1:
            break
    return t
"""


def programs(text: str) -> list[str]:
    """The bodies of functions in a text, between empty lines."""
    return text.strip().split("\n\n")


def module_of(folder: Path, body: str) -> ModuleType:
    """A module with the functions above and `f(xs, n)`, which has this body."""
    path = folder / "program.py"
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    path.write_text(f"{FUNCTIONS}\ndef f(xs, n):\n{lines}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
