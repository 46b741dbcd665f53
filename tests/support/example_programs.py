"""Random programs for one example, for tests of batches: branches, loops, reductions, indexing, tuples, closures."""

from __future__ import annotations

import random

DEPTH = 3


def example_program(seed: int) -> str:
    """The text of `f(w, x, k)`, w: (3, 3) and x: (3,) of float64, k an int32, which returns a vector and a number."""
    return _Writer(random.Random(seed)).program()


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.counters = 0

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def vector(self) -> str:
        """A vector, of bounded values and derivatives."""
        return self.rng.choice(
            (
                "np.tanh(x @ w)",
                "np.sin(w @ y)",
                "0.5 * (x + y)",
                "np.tanh(y) * s",
                "np.concatenate([y[1:], x[:1]])",
                "np.where(x > y, x, -y)",
                "g(y)",
                "t[0] - t[1] * 0.5",
                "np.outer(np.tanh(x), y)[k % 3]",
            )
        )

    def number(self) -> str:
        return self.rng.choice(("np.tanh(x.sum())", "y.max()", "x[k % 3]", "0.5 * s", "np.sqrt(s * s + 1.0)", "y[1]"))

    def condition(self) -> str:
        return self.rng.choice(("x[0] > 0.0", "k > 2", "s < y[1]", "k % 2 == 0", "y.sum() > x.sum()", "w[0, 0] > 0.0"))

    def statement(self, depth: int, left: int) -> None:
        kind = self.rng.randrange(7 if left else 4)
        if kind < 2:
            self.write(depth, f"{self.rng.choice('xy')} = {self.vector()}")
        elif kind == 2:
            self.write(depth, f"s = {self.number()}")
        elif kind == 3:
            self.write(depth, f"t = ({self.vector()}, {self.vector()})")
        elif kind == 4:
            self.write(depth, f"if {self.condition()}:")
            self.block(depth + 1, left - 1)
            if self.rng.random() < 0.6:
                self.write(depth, "else:")
                self.block(depth + 1, left - 1)
        elif kind == 5:
            self.write(depth, f"for i in range({self.rng.choice(('2', 'k', 'k % 3'))}):")
            self.block(depth + 1, left - 1)
            if self.rng.random() < 0.3:
                self.write(depth + 1, f"if {self.condition()}:")
                self.write(depth + 2, "break")
        else:
            self.counters += 1
            counter = f"n{self.counters}"
            self.write(depth, f"{counter} = 0")
            self.write(depth, f"while {counter} < {self.rng.choice(('3', 'k'))} and {self.condition()}:")
            self.block(depth + 1, left - 1)
            self.write(depth + 1, f"{counter} += 1")

    def block(self, depth: int, left: int) -> None:
        for _ in range(self.rng.randrange(1, 3)):
            self.statement(depth, left)

    def program(self) -> str:
        self.write(0, "def f(w, x, k):")
        self.write(1, "y, s = x * 0.5, x[2]")
        self.write(1, "t = (x, y)")
        self.write(1, "def g(a):")
        self.write(2, "return np.tanh(a @ w + x)")
        for _ in range(4):
            self.statement(1, DEPTH - 1)
        self.write(1, "return x + y + t[0] + t[1], s")
        return "\n".join(self.lines) + "\n"
