"""The translation means what Python means: a small evaluator of the surface IR agrees with Python on random programs.

The programs are full of jumps out of nested loops and branches, names that only some paths assign, short circuits and
`:=`. Those that the front end refuses are counted, so that the test cannot pass by refusing everything.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from relay.errors import FrontendError
from relay.frontend.lower import lower_text
from relay.ir import expr, surface
from relay.ir.definition import Scope
from relay.ir.expr import Atom, Block, Expr, Function, LoopLabel, Var
from relay.ir.intrinsic import Intrinsic

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "mod": operator.mod,
    "negative": operator.neg,
    "logical_not": operator.not_,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}

Environment = dict[Var, Any]
Jump = tuple[type, LoopLabel | None, tuple[Any, ...]]
"""How a block ended: Yield, Next or Exit, where to, and with which values."""


PROGRAMS = 100


def _last_of_two(value: int) -> int:
    q, q = (1 - 2) % 7, value
    return q


REPEATED_TARGETS_WORK = _last_of_two(1) == 1
"""CPython 3.11.2 keeps the first of two values that one assignment gives to the same name."""


NO_VALUE = object()
"""What a variable is before a loop that assigns it first."""


class Evaluator:
    """Runs surface functions on Python numbers, tuples and functions. Binding twice is an error."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def call(self, function: Function, arguments: tuple[Any, ...], around: Environment) -> Any:
        environment = dict(around)
        given = list(arguments)
        for parameter, signature in zip(function.parameters, function.signature, strict=True):
            default = signature.default
            environment[parameter] = given.pop(0) if given else self.atom(default, around)  # type: ignore[arg-type]
        kind, label, values = self.block(function.body, environment)
        assert kind is expr.Exit and label is function.label and len(values) == 1
        return values[0]

    def atom(self, atom: Atom, environment: Environment) -> Any:
        match atom:
            case Var():
                return environment[atom]
            case expr.Static(value):
                return value
            case expr.Constant(value):
                return value.item()
            case expr.Global(name):
                return self.scope.resolve(name)

    def block(self, block: Block, environment: Environment) -> Jump:
        bound: set[Var] = set()
        for binding in block.bindings:
            assert not bound & set(binding.targets)
            bound |= set(binding.targets)
            if isinstance(binding.value, expr.If | expr.Loop | surface.ForEach):
                jump = self.construct(binding.value, environment)
                if jump[0] is not expr.Yield:
                    return jump
                results = jump[2]
            else:
                results = self.expression(binding.value, environment)
            environment.update(zip(binding.targets, results, strict=True))
        match block.terminator:
            case expr.Yield(values):
                return expr.Yield, None, tuple(self.atom(v, environment) for v in values)
            case expr.Next(label, values):
                return expr.Next, label, tuple(self.atom(v, environment) for v in values)
            case expr.Exit(label, values):
                return expr.Exit, label, tuple(self.atom(v, environment) for v in values)
            case _:
                raise AssertionError("a dead end was reached")

    def construct(self, value: expr.If | expr.Loop | surface.ForEach, environment: Environment) -> Jump:
        match value:
            case expr.If(arms, orelse):
                for arm in arms:
                    kind, _, (holds,) = self.block(arm.condition, dict(environment))
                    assert kind is expr.Yield
                    if holds:
                        return self.block(arm.body, dict(environment))
                return self.block(orelse, dict(environment))
            case expr.Loop(label, parameters, initial, body):
                state = tuple(self.atom(v, environment) for v in initial)
                while True:
                    inside = environment | dict(zip(parameters, state, strict=True))
                    kind, target, values = self.block(body, inside)
                    if target is not label:
                        return kind, target, values
                    if kind is expr.Exit:
                        return expr.Yield, None, values
                    state = values
            case surface.ForEach(label, element, iterable, parameters, initial, body):
                state = tuple(self.atom(v, environment) for v in initial)
                for item in self.atom(iterable, environment):
                    inside = environment | dict(zip(parameters, state, strict=True)) | {element: item}
                    kind, target, values = self.block(body, inside)
                    if target is not label:
                        return kind, target, values
                    if kind is expr.Exit:
                        return expr.Yield, None, values
                    state = values
                return expr.Yield, None, state

    def expression(self, value: Expr, environment: Environment) -> tuple[Any, ...]:
        """The values of the targets of a binding."""

        def at(atom: Atom) -> Any:
            return self.atom(atom, environment)

        match value:
            case expr.OpCall(name, arguments):
                return (OPERATORS[name](*map(at, arguments)),)
            case surface.Apply(expr.Static(Intrinsic("list")), arguments):
                return (tuple(map(at, arguments)),)
            case surface.Apply(expr.Static(Intrinsic("unassigned"))):
                return (NO_VALUE,)
            case surface.Apply(expr.Static(Intrinsic("assigned")), (atom,)):
                if at(atom) is NO_VALUE:
                    raise UnboundLocalError
                return (at(atom),)
            case surface.Apply(function, arguments, keywords):
                return (at(function)(*map(at, arguments), **{name: at(v) for name, v in keywords}),)
            case expr.MakeTuple(items):
                return (tuple(map(at, items)),)
            case surface.Unpack(whole, count):
                parts = tuple(at(whole))
                assert len(parts) == count
                return parts
            case surface.Index(whole, (item,)):
                return (at(whole)[at(item)],)  # type: ignore[arg-type]
            case surface.IndexUpdate(whole, (item,), new):
                copy = list(at(whole))
                copy[at(item)] = at(new)  # type: ignore[arg-type]
                return (tuple(copy),)
            case expr.RefNew(new):
                return ([at(new)],)
            case expr.RefRead(cell):
                return (at(cell)[0],)
            case expr.RefWrite(cell, new):
                at(cell)[0] = at(new)
                return ()
            case expr.Lambda(function):
                return (lambda *arguments: self.call(function, arguments, environment),)
            case Var() | expr.Static() | expr.Constant() | expr.Global():
                return (at(value),)
            case _:
                raise AssertionError(value)


class Program:
    """A random function of `p` and `q`. Loops end when `tick()` says so."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.with_functions = self.random.random() < 0.1
        self.loops = 0

    def text(self) -> str:
        self.lines = ["def f(p, q):"]
        self.lines.append("    b = [q, 1, p]")
        if self.random.random() < 0.7:
            self.lines.append("    a, c = p, 0")
        self.block(1, self.random.randint(2, 5), leave=False)
        self.lines.append(f"    return {self.choose('p, q', 'a', '(p, a)', 'a, b', 'q')}")
        return "\n".join(self.lines) + "\n"

    def choose(self, *options: str) -> str:
        return self.random.choice(options)

    def number(self, depth: int = 0) -> str:
        if depth > 1 or self.random.random() < 0.5:
            return self.choose("p", "q", "a", "p", "q", "1", "2", "-3", "b[0]")
        left = self.number(depth + 1)
        match self.random.randint(0, 12):
            case 0:
                return f"({left} if {self.condition(depth + 1)} else {self.number(depth + 1)})"
            case 1:
                return f"({self.choose('a', 'c')} := {left})"
            case 2 if self.with_functions:
                return f"(lambda v: v + {self.number(2)})({left})"
            case 3 | 4:
                return f"log({left})"
            case 5:
                return f"-({left})"
            case kind:
                operation = "+" if kind % 2 else "-"
                return f"({left} {operation} {self.number(depth + 1)}) % 7"

    def condition(self, depth: int = 0) -> str:
        compare = self.choose("<", ">", "==", "!=", "<=")
        simple = f"{self.number(depth + 1)} {compare} {self.number(depth + 1)}"
        if depth > 1 or self.random.random() < 0.5:
            return simple
        other = self.condition(depth + 1)
        match self.random.randint(0, 4):
            case 0:
                return f"not {other}"
            case 1:
                return f"{self.number(2)} < {self.number(2)} <= {self.number(1)}"
            case 2:
                word = self.choose("and", "or")
                return f"({simple} {word} {other} {word} {self.condition(2)})"
            case _:
                return f"({simple} {self.choose('and', 'or')} {other})"

    def block(self, level: int, count: int, leave: bool = True) -> None:
        for _ in range(count):
            self.statement(level)
        if leave and self.random.random() < 0.35:
            jumps = [f"return {self.choose('p, 1', 'a', 'q')}"] + ["break", "continue"] * (2 if self.loops else 0)
            self.line(level, self.random.choice(jumps))

    def line(self, level: int, text: str) -> None:
        self.lines.append("    " * level + text)

    def statement(self, level: int) -> None:
        kind = self.random.random() / (1 + 0.25 * level) if level < 5 else 0.0
        inner = self.random.randint(1, 2)
        if kind < 0.4:
            name = self.choose("p", "q", "a", "c")
            number = self.number()
            self.line(
                level,
                self.choose(
                    f"{name} = {number}",
                    f"{name} += {number}",
                    f"q, {name} = {number}, p",
                    f"b[{self.choose('0', '1', '2')}] = {number}",
                    "b[1] += 1",
                    f"log({number})",
                    "p, q = (q, p) if p < q else (p, q)",
                ),
            )
        elif kind < 0.65:
            self.line(level, f"if {self.condition()}:")
            self.block(level + 1, inner)
            while self.random.random() < 0.35:
                self.line(level, f"elif {self.condition()}:")
                self.block(level + 1, inner)
            if self.random.random() < 0.5:
                self.line(level, "else:")
                self.block(level + 1, inner)
        else:
            head = self.choose(
                f"while tick() and {self.condition()}:",
                "while tick():",
                "while True:",
                f"for {self.choose('a', 'i', 'p')} in range({self.choose('2', '3', '0')}):",
                f"for i, {self.choose('c', 'q')} in enumerate((p, q, 5)):",
                "for q in (b[0], b[1], p):",
            )
            self.line(level, head)
            self.loops += 1
            if "True" in head:
                self.line(level + 1, f"if not tick(): {self.choose('break', 'return p')}")
            self.block(level + 1, inner)
            self.loops -= 1
            if "True" not in head and self.random.random() < 0.4:
                self.line(level, "else:")
                self.block(level + 1, inner)


def without_lists(value: object) -> object:
    """Relay has tuples only."""
    return tuple(map(without_lists, value)) if isinstance(value, list | tuple) else value


def run(make: Callable[[dict[str, Any]], Callable[..., Any]]) -> object:
    """What a function returns for some arguments, and what it has logged; or that it reads a name without a value."""
    outcome: list[object] = []
    for arguments in ((1, 2), (5, -1), (0, 0)):
        log: list[int] = []
        steps = [0]

        def tick(steps: list[int] = steps) -> bool:
            steps[0] += 1
            if steps[0] > 60:
                raise OverflowError
            return steps[0] % 4 != 0

        def record(value: int, log: list[int] = log) -> int:
            if isinstance(value, int) and abs(value) > 10**9:
                raise OverflowError
            log.append(value)
            return value

        function = make({"log": record, "tick": tick, "a": 7, "c": 9})
        try:
            outcome.append((without_lists(function(*arguments)), log, steps))
        except UnboundLocalError:
            outcome.append("unbound")
        except OverflowError:
            outcome.append("overflow")
    return outcome


@pytest.mark.parametrize("start", range(4))
def test_random_programs(start: int) -> None:
    accepted = 0
    for seed in range(start * PROGRAMS, (start + 1) * PROGRAMS):
        text = Program(seed).text()
        if not REPEATED_TARGETS_WORK and re.search(r"\b(\w+), \1 = ", text):
            continue

        def in_python(names: dict[str, Any], text: str = text) -> Callable[..., Any]:
            exec(text, names)
            return names["f"]  # type: ignore[no-any-return]

        try:
            lower_text(text, "<random>", {})
        except FrontendError:
            continue

        def in_relay(names: dict[str, Any], text: str = text) -> Callable[..., Any]:
            definition = lower_text(text, "<random>", names)["f"]
            evaluator = Evaluator(definition.scope)
            return lambda *arguments: evaluator.call(definition.function, arguments, {})

        accepted += 1
        assert run(in_relay) == run(in_python), f"seed {seed}:\n{text}"
    assert accepted > PROGRAMS // 3, accepted
