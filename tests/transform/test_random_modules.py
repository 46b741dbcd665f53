"""Random programs with escapes out of any depth: the structured form and the passes on it keep their meaning."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from transform_programs import (
    Build,
    Program,
    Writer,
    Z,
    assert_bound_once,
    assert_modules_agree,
    assert_structured,
    function,
    module,
    straight,
    whole,
)

from relay.ir.expr import Atom, Constant, Dead, Exit, LoopLabel, Module, Next, Terminator, Var, Yield
from relay.ir.validation.check import check
from relay.transform.core.structuring import structure
from relay.transform.passes import LOSSY, PASSES
from relay.transform.pipeline import optimize, prepare


@attrs.frozen
class _Target:
    """A construct around the place that is being written: its exit takes `results` integers, its next `rounds`."""

    label: LoopLabel
    results: int
    rounds: int | None  # None: it is not a loop, or must not repeat here
    fuel: Atom | None = None


class _Writer:
    """Writes a random program of integer arithmetic, ifs, and loops of all three kinds."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.budget = 60

    def operation(self, b: Build, known: Sequence[Atom]) -> Atom:
        name = self.random.choice(("add", "subtract", "multiply", "maximum"))
        return b.op(name, self.value(known), self.value(known))

    def value(self, known: Sequence[Atom]) -> Atom:
        return whole(self.random.randint(-2, 3)) if self.random.random() < 0.2 else self.random.choice(known)

    def condition(self, b: Build, known: Sequence[Atom]) -> Atom:
        if self.random.random() < 0.1:
            return Constant(np.asarray(self.random.random() < 0.5))
        return b.op(self.random.choice(("less", "equal", "greater")), self.value(known), self.value(known))

    def leave(self, known: Sequence[Atom], around: Sequence[_Target], b: Build) -> Terminator:
        target = self.random.choice(around)
        if target.rounds is not None and self.random.random() < 0.5:
            values = [self.value(known) for _ in range(target.rounds)]
            if target.fuel is not None:
                values[0] = b.op("subtract", target.fuel, whole(1))
            return Next(target.label, tuple(values))
        return Exit(target.label, tuple(self.value(known) for _ in range(target.results)))

    def arm(self, known: Sequence[Atom], around: Sequence[_Target], count: int, depth: int, leaves: bool) -> Writer:
        def write(b: Build) -> Terminator:
            inner = self.statements(b, list(known), around, depth)
            if inner is None:
                return Dead()
            if leaves:
                return self.leave(inner, around, b)
            return Yield(tuple(self.value(inner) for _ in range(count)))

        return write

    def statements(self, b: Build, known: list[Atom], around: Sequence[_Target], depth: int) -> list[Atom] | None:
        """Append statements; returns what is known after them, or None if they never end."""
        for _ in range(self.random.randint(1, 4)):
            self.budget -= 1
            kind = self.random.random()
            if depth == 0 or self.budget < 0 or kind < 0.3:
                known.append(self.operation(b, known))
            elif kind < 0.7:
                count = self.random.randint(0, 2)
                leaves = [self.random.random() < 0.4 for _ in range(self.random.randint(2, 4))]
                arms = [self.arm(known, around, count, depth - 1, way) for way in leaves]
                pairs = [(self.condition_block(b, known, around, depth), arm) for arm in arms[:-1]]
                if all(leaves):
                    b.branch([], *pairs, orelse=arms[-1])
                    return None
                known += b.branch([Z] * count, *pairs, orelse=arms[-1])
            else:
                known += self.loop(b, known, around, depth - 1)
        return known

    def condition_block(self, b: Build, known: Sequence[Atom], around: Sequence[_Target], depth: int) -> Writer | Atom:
        if self.random.random() < 0.6:
            return self.condition(b, known)

        def write(c: Build) -> Terminator:
            inner = list(known)
            if self.random.random() < 0.3 and depth > 1:
                found = self.statements(c, inner, around, 1)
                if found is None:
                    return Dead()
                inner = found
            return Yield((self.condition(c, inner),))

        return write

    def loop(self, b: Build, known: list[Atom], around: Sequence[_Target], depth: int) -> tuple[Var, ...]:
        kind = self.random.choice(("counted", "while", "once"))
        carried = self.random.randint(1, 2)
        initial = [self.value(known) for _ in range(carried)]
        results = carried if kind == "counted" else self.random.randint(1, 2)

        def body(c: Build, label: LoopLabel, *variables: Var) -> Terminator:
            inner = [*known, *variables]
            target = _Target(label, results, carried if kind == "counted" else None)
            if kind == "while":
                fuel = variables[0]
                out = tuple(self.value(inner) for _ in range(results))
                c.branch([], (c.op("less_equal", fuel, whole(0)), lambda d: Exit(label, out)))
                target = _Target(label, results, carried, fuel)
            # An outer loop must not be repeated from here without its fuel being counted: its own target sees to that.
            found = self.statements(c, inner, [*around, target], depth)
            if found is None:
                return Dead()
            if kind == "once":
                return Exit(label, tuple(self.value(found) for _ in range(results)))
            return self.leave(found, [target], c)

        if kind == "while":
            initial[0] = whole(self.random.randint(0, 3))
        count = whole(self.random.randint(0, 3)) if kind == "counted" else None
        return b.loop(initial, [Z] * results, body, count=count)

    def program(self) -> Module:
        def f(b: Build, label: LoopLabel, x: Var, y: Var) -> Terminator:
            around = [_Target(label, 1, None)]
            known = self.statements(b, [x, y], around, 4)
            return Dead() if known is None else Exit(label, (self.value(known),))

        return module(function("f", [Z, Z], Z, f))


CASES = Program(straight, ((0, 0), (1, -1), (3, 2), (-5, 7)))


@given(st.integers(0, 2**32))
def test_structured_form_of_random_programs(seed: int) -> None:
    before = _Writer(seed).program()
    check(before, "core")
    after = structure(before)
    check(after, "structured")
    assert_structured(after)
    assert_bound_once(after)
    assert_modules_agree(before, after, CASES)


@given(st.integers(0, 2**32))
def test_passes_on_random_programs(seed: int) -> None:
    before = _Writer(seed).program()
    after = structure(PASSES["specialize"](before))
    order = random.Random(seed)
    for _ in range(4):
        name = order.choice(sorted(set(PASSES) - LOSSY - {"specialize", "differentiate"}))
        after = PASSES[name](after)
        check(after, "structured")
    assert_modules_agree(before, after, CASES)
    prepared = prepare(structure(before), 2, checked=True)
    assert_modules_agree(before, optimize(prepared, 3, checked=True), CASES)
