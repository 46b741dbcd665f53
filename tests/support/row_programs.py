"""Random programs whose loops write rows: with branches, loops inside, reads of neighbours, and carried values."""

from __future__ import annotations

import random


def row_program(seed: int) -> str:
    """The text of `f(x, v)`, x: (n, m), v: (3,), all float64, which returns an (n, m) and an (n,)."""
    return _Writer(random.Random(seed)).program()


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.scalars = ["v[0]", "x[0, 0]", "float(i)"]

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def scalar(self, depth: int, *indices: str) -> str:
        """An expression in a loop over i, or i and j."""
        kind = self.rng.randrange(9 if depth else 4)
        if kind == 0:
            return f"{self.rng.uniform(-2, 2):.2f}"
        if kind == 1:
            return self.rng.choice(self.scalars)
        if kind == 2:
            return f"x[{', '.join(indices)}]" + ".sum()" * (len(indices) == 1)
        if kind == 3:
            return f"v[{indices[-1]} % v.shape[0]]"
        left, right = self.scalar(depth - 1, *indices), self.scalar(depth - 1, *indices)
        return (
            f"({left} + {right})",
            f"({left} * {right})",
            f"np.tanh({left})",
            f"np.where({left} > {right}, {left}, {right})",
            f"x[min(i + {self.rng.randrange(3)}, n - 1)].max() * {left}",
        )[kind - 4]

    def program(self) -> str:
        self.write(0, "def f(x, v):")
        self.write(1, "n, m = x.shape")
        self.write(1, "out = " + self.rng.choice(["np.zeros((n, m))", "x.copy()", "np.ones((n, m)) * v[0]"]))
        self.write(1, "column = np.zeros((n,))")
        self.write(1, f"for i in range({self.rng.choice(['n', 'n', '1, n', '0, n - 1', '1, n - 1'])}):")
        if self.chance(0.6):
            self.write(2, f"s = {self.scalar(2, 'i')}")
            self.scalars.append("s")
        if self.chance(0.4):
            self.branch()
        if self.chance(0.4):
            self.write(2, "total = 0.0")
            self.write(2, f"for k in range({self.rng.choice(['3', 'm', 'n'])}):")
            self.write(3, f"total += {self.scalar(1, 'i')} * x[i, k % m] + k")
            self.scalars.append("total")
        if self.chance(0.3):
            self.write(2, "before = x[i - 1].sum() if i > 0 else 0.5")
            self.scalars.append("before")
        if self.chance(0.6):
            self.inner()
        else:
            self.write(2, f"out[i] {self.rng.choice(['=', '+=', '*='])} x[i] * {self.scalar(2, 'i')}")
            self.write(2, f"column[i] = {self.scalar(1, 'i')}")
        self.write(1, "return out, column")
        return "\n".join(self.lines) + "\n"

    def branch(self) -> None:
        self.write(2, f"if {self.scalar(1, 'i')} > {self.scalar(1, 'i')}:")
        self.write(3, f"t = {self.scalar(2, 'i')}")
        if self.chance(0.3):
            self.write(3, "column[i] = t * 2.0")
        self.write(2, "else:")
        self.write(3, f"t = {self.scalar(2, 'i')}")
        self.scalars.append("t")

    def inner(self) -> None:
        self.write(2, f"for j in range({self.rng.choice(['m', 'm', '1, m'])}):")
        self.scalars.append("float(j)")
        depth = 3
        if self.chance(0.3):
            self.write(3, f"if {self.scalar(1, 'i', 'j')} > 0.0:")
            depth = 4
        self.write(depth, f"out[i, j] {self.rng.choice(['=', '+='])} {self.scalar(2, 'i', 'j')}")
        self.scalars.pop()
        if self.chance(0.4):
            self.write(2, "column[i] += out[i].sum()")
