"""Random programs for one example, for tests of batches: branches, loops that end in any way, operators on operands
that differ between the examples and on others, tuples, closures, optional values; and whether batches stay loops."""

from __future__ import annotations

import random
from typing import Any

import relay
from relay.ir.expr import Function, Loop
from relay.ir.traverse import walk
from relay.transform.pipeline import Pipeline

DEPTH = 3


def example_program(seed: int) -> str:
    """The text of `f(w, x, k)`, w: (3, 3) and x: (3,) of float64, k an int32, which returns a vector and a number."""
    return _Writer(random.Random(seed)).program()


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.counters = 0
        self.loops = 0  # how many are around the statement

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
                "np.tanh(m @ x)",
                "m[k % 3] * 0.5",
                "(w @ w.T)[0] * 0.2",
                "np.sort(np.tanh(y))",
                "np.cumsum(np.sin(x)) * 0.3",
                "np.stack([x, w[1]]).max(axis=0)",
                "np.einsum('i,ij->j', np.tanh(y), m)",
                "(y if o is None else o)",
            )
        )

    def matrix(self) -> str:
        """A matrix, of bounded values and derivatives."""
        return self.rng.choice(
            (
                "np.tanh(m @ w)",
                "np.outer(np.tanh(x), np.sin(y))",
                "0.5 * (m.T - w)",
                "np.tanh(w * s)",
                "m[[2, 0, 1]] * 0.5",
                "np.where(w > 0.0, m, x)",
                "np.tanh(w @ w)",
            )
        )

    def number(self) -> str:
        return self.rng.choice(("np.tanh(x.sum())", "y.max()", "x[k % 3]", "0.5 * s", "np.sqrt(s * s + 1.0)", "y[1]"))

    def condition(self) -> str:
        return self.rng.choice(("x[0] > 0.0", "k > 2", "s < y[1]", "k % 2 == 0", "y.sum() > x.sum()", "w[0, 0] > 0.0"))

    def statement(self, depth: int, left: int) -> None:
        kind = self.rng.randrange(9 if left else 6)
        if kind < 2:
            self.write(depth, f"{self.rng.choice('xy')} = {self.vector()}")
        elif kind == 2:
            self.write(depth, f"s = {self.number()}")
        elif kind == 3:
            self.write(depth, f"t = ({self.vector()}, {self.vector()})")
        elif kind == 4:
            self.write(depth, f"m = {self.matrix()}" if self.rng.random() < 0.7 else f"o = {self.vector()}")
        elif kind == 5:
            self.leave(depth)
        elif kind == 6:
            self.write(depth, f"if {self.condition()}:")
            self.block(depth + 1, left - 1)
            if self.rng.random() < 0.6:
                self.write(depth, "else:")
                self.block(depth + 1, left - 1)
        elif kind == 7:
            self.write(depth, f"for i in range({self.rng.choice(('2', 'k', 'k % 3'))}):")
            self.loop_body(depth + 1, left - 1)
            if self.rng.random() < 0.3:
                self.write(depth, "else:")
                self.block(depth + 1, left - 1)
        else:
            self.counters += 1
            counter = f"n{self.counters}"
            self.write(depth, f"{counter} = 0")
            self.write(depth, f"while {counter} < {self.rng.choice(('3', 'k'))} and {self.condition()}:")
            self.write(depth + 1, f"{counter} += 1")
            self.loop_body(depth + 1, left - 1)

    def loop_body(self, depth: int, left: int) -> None:
        self.loops += 1
        self.block(depth, left)
        self.loops -= 1

    def leave(self, depth: int) -> None:
        """A branch that leaves the loop, its round or the program, where there is a loop."""
        if self.loops:
            self.write(depth, f"if {self.condition()}:")
            self.write(depth + 1, self.rng.choice(("break", "break", "continue", "return x - y, s")))
        else:
            self.write(depth, f"s = {self.number()}")

    def block(self, depth: int, left: int) -> None:
        for _ in range(self.rng.randrange(1, 3)):
            self.statement(depth, left)

    def program(self) -> str:
        self.write(0, "def f(w, x, k):")
        self.write(1, "y, s = x * 0.5, x[2]")
        self.write(1, "t, m, o = (x, y), w * 0.5, None")
        self.write(1, "def g(a):")
        self.write(2, "return np.tanh(a @ w + x)")
        for _ in range(4):
            self.statement(1, DEPTH - 1)
        self.write(1, "return x + y + t[0] + t[1], s")
        return "\n".join(self.lines) + "\n"


def loops_over_examples(f: relay.RelayFunction, *arguments: Any) -> int:
    """The number of loops that run one example of `vmap` after the other, before derivatives are made."""
    module = Pipeline.for_level(2, ("lower", "prepare"), checked=True)(f.typed(*arguments))
    functions = [g for g in module.functions.values() if isinstance(g, Function)]
    loops = [b.value for g in functions for b in walk(g.body) if isinstance(b.value, Loop)]
    return sum(loop.label.name.startswith("for_index") for loop in loops)
