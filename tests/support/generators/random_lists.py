"""Random programs on lists, as text: they mean the same in Python, since they copy, `list(xs)`, where lists would be
shared."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

HELPERS = """
def push(xs, v):
    xs.append(v)
    return xs


def take(xs):
    if len(xs) == 0:
        return 1.0, xs
    v = xs.pop()
    return v, xs


def rotate(xs):
    if len(xs) > 1:
        xs[0], xs[len(xs) - 1] = xs[len(xs) - 1], xs[0]
    return xs


def down(xs, k):
    if k <= 0:
        return xs
    xs.append(float(k))
    if len(xs) > 2:
        xs[1] = xs[1] + 1.0
    return down(xs, k - 1)


def both(xs, ys):
    ys.append(2.0)
    if len(xs) > 0:
        xs[0] = 3.0
    return xs, ys

"""


class Source:
    """Writes one function of `n: int` and `x: float`, which returns numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.counter = 0

    def function(self, name: str) -> str:
        self.lines = [
            f"def {name}(n, x):",
            "    a = [1.0]",
            "    b = [2.0]",
            "    c = [x]",
            "    g = [[1.0]]",
            "    s = x * 2.0",
            "    for i0 in range(n):",
            "        a.append(s + float(i0))",
            "        b.append(3.0)",
            "        c.append(s)",
            "        g.append([4.0, x])",
        ]
        for _ in range(self.random.randint(4, 8)):
            self.statement(1, 0)
        self.lines += [
            "    t = 0.0",
            "    for v in a:",
            "        t = t * 0.5 + v",
            "    for v in b:",
            "        t = t * 0.5 + v",
            "    for v in c:",
            "        t = t * 0.5 + v",
            "    for r in g:",
            "        for v in r:",
            "            t = t * 0.5 + v",
            "    return t + s * 0.25 + float(len(a)) + float(len(b)) + float(len(c)) + float(len(g))",
        ]
        return "\n".join(self.lines) + "\n"

    def put(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def statement(self, depth: int, inside: int) -> None:
        choose, xs, ys = self.random.choice, *self.random.sample("abc", 2)
        number = choose(["s", "1.0", "s * 0.5", "float(n)", "x"])
        simple: list[Callable[[], None]] = [
            lambda: self.put(depth, f"{xs}.append({number})"),
            lambda: self.put(depth, f"if len({xs}) > 1:", f"    s = s * 0.5 + {xs}.pop()"),
            lambda: self.put(
                depth, f"if len({xs}) > 2:", f"    {xs}[{choose(['1', '-1', 'len(' + xs + ') // 2'])}] = {number}"
            ),
            lambda: self.put(depth, f"if len({xs}) > 0:", f"    s = s * 0.5 + {xs}[{choose(['0', '-1'])}]"),
            lambda: self.put(depth, f"{xs} = list({ys})"),
            lambda: self.put(depth, f"{xs}, {ys} = {ys}, {xs}"),
            lambda: self.put(depth, f"{xs} = push({xs}, {number})"),
            lambda: self.put(depth, f"{xs} = push(list({ys}), {number})"),
            lambda: self.put(depth, f"v{depth}, {xs} = take({xs})", f"s = s * 0.5 + v{depth}"),
            lambda: self.put(depth, f"{xs} = rotate({xs})"),
            lambda: self.put(depth, f"{xs}, {ys} = both(list({ys}), {ys})"),
            lambda: self.put(depth, f"{xs} = down({xs}, 3)"),
            lambda: self.put(
                depth, f"pair{depth} = (list({xs}), list({ys}))", f"{ys}.append(5.0)", f"{xs} = pair{depth}[1]"
            ),
            lambda: self.put(depth, f"g.append(list({xs}))"),
            lambda: self.put(depth, "if len(g) > 1:", f"    {xs} = list(g[1])", f"    {xs}.append(6.0)"),
            lambda: self.put(depth, "if len(g) > 1:", f"    g[1] = list({xs})", "    g[0] = list(g[1])"),
            lambda: self.put(
                depth,
                "if len(g) > 0:",
                f"    r{depth} = list(g[-1])",
                f"    r{depth}.append(s)",
                f"    g[-1] = r{depth}",
            ),
            lambda: self.put(depth, "if len(g) > 2:", f"    {xs} = g.pop()", f"    {xs}.append(s)"),
            lambda: self.put(depth, "if len(g) > 1:", "    if len(g[1]) > 0:", f"        g[1][0] = {number}"),
            lambda: self.put(
                depth, "if len(g) > 1:", "    if len(g[0]) > 0 and len(g[-1]) > 0:", "        g[-1][0] = g[0][-1] + 1.0"
            ),
            lambda: self.put(
                depth,
                f"for k{depth} in range(len(g)):",
                f"    if len(g[k{depth}]) > 1:",
                f"        g[k{depth}][1] = s + {number}",
            ),
            lambda: self.put(depth, "if len(g) > 2:", "    g[0], g[1] = g[1], g[0]"),
            lambda: self.put(depth, "g = [list(r) for r in g]", f"g.append(list({xs}))"),
            lambda: self.put(depth, f"{xs} = [v * 0.5 for v in {ys}]"),
            lambda: self.put(depth, f"{xs} = {xs}[1:]", f"{xs}.append(7.0)"),
            lambda: self.put(depth, f"while len({xs}) > 3:", f"    s = s * 0.5 + {xs}.pop()"),
            lambda: self.put(depth, f"{xs}.insert(0, {number})"),
            lambda: self.put(
                depth,
                f"old{depth} = list({xs})",
                f"{xs}.append(8.0)",
                f"if len(old{depth}) > 0:",
                f"    s = s * 0.5 + old{depth}[-1] + {xs}[0]",
            ),
        ]
        nested: list[Callable[[], None]] = [lambda: self.loop(depth, inside), lambda: self.branch(depth, inside)]
        choose([*simple, *nested * 3] if inside < 2 else simple)()

    def loop(self, depth: int, inside: int) -> None:
        self.counter += 1
        i = f"i{self.counter}"
        self.put(depth, f"for {i} in range({self.random.choice(['n', '3', 'n + 1'])}):")
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth + 1, inside + 1)
        if self.random.random() < 0.3:
            self.put(depth + 1, "if len(a) > 40 or s > 100.0:", "    break")

    def branch(self, depth: int, inside: int) -> None:
        self.put(depth, self.random.choice(["if s > 3.0:", "if len(a) > len(b):", "if n % 2 == 0:"]))
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth + 1, inside + 1)
        if self.random.random() < 0.6:
            self.put(depth, "else:")
            self.statement(depth + 1, inside + 1)


def program(seeds: Iterable[int]) -> str:
    """The helpers, a function for each seed, and `every`, which calls them all."""
    functions = {f"f{seed}": Source(seed) for seed in seeds}
    texts = [source.function(name) for name, source in functions.items()]
    calls = ", ".join(f"{name}(n, x)" for name in functions)
    return "\n\n".join([HELPERS, *texts, f"def every(n, x):\n    return ({calls},)\n"])
