"""Random programs of the language, as text: everything that is differentiated, in all kinds of nestings.

`random_program(seed)` is the same text in every process: functions `power` and `total` (recursion over numbers and
trees) and `program(x, y, n)`, which returns a float. Programs have records, trees, lists that grow, dicts, closures,
closures chosen by branches and kept in lists, references and aliases of them, captured variables that are assigned,
derivatives and checkpoints, slices and updates of a vector in place, loops of all kinds with `break`, `continue` and
early return. All functions in them are smooth, and of about the size of their operands.
"""

from __future__ import annotations

import functools
import random
from typing import Any

import relay
from relay import Float64, List, Tensor

NAMES = ["x", "y", "r.value", "p.a", "p.b", "v[0]", "v[1]"]
CONDITIONS = ["x > y", "y * x > 0.1", "r.value < 0.3", "v[0] > v[1]", "x < 0.9"]
SMOOTH = [
    *("relay.sin({a})", "relay.tanh({a})", "0.5 * {a} * {b}", "({a} + {b})", "({a} - 0.3 * {b})", "{a} * 0.7"),
    *("relay.exp(-{a} * {a})", "relay.sqrt(1.0 + {a} * {a})", "relay.cos({a} * {b})"),
]
BEFORE = """
def power(x, n):
    if n == 0:
        return 1.0
    return x * power(x, n - 1)

def total(t):
    match t:
        case Tree.Leaf(v):
            return v * v
        case Tree.Node(a, b):
            return total(a) * 0.5 + total(b)
"""


@relay.data
class Tree:
    class Leaf:
        value: Tensor[Float64, ()]

    class Node:
        left: Tree
        right: Tree


@relay.data
class Pair:
    a: Tensor[Float64, ()]
    b: Tensor[Float64, ()]


def random_program(seed: int) -> str:
    """The text of a seed."""
    return _Writer(seed).program()


def function_of(text: str, name: str = "program") -> Any:
    """A function of a text."""
    return relay.from_source(text, {"relay": relay, "Tree": Tree, "Pair": Pair, "List": List})[name]


OF_A_VECTOR = """
def of_a_vector(w, n):
    place, least = relay.argmax(w), relay.argmin(w)
    value = program(relay.mean(w), w[place], n)
    turned = relay.eye(3) @ relay.stack([value, w[least], relay.sum(w * w)])
    order = relay.argsort(w)
    return value, place, turned, relay.cumsum(w * value), order[relay.argmax(w[order])], least, relay.sort(w)[::-1]
"""


def random_program_of_a_vector(seed: int) -> str:
    """The text of a seed, with a function `of_a_vector(w, n)`: reductions of a vector of any size, places in it, the
    random program, and kernels behind it."""
    return random_program(seed) + "\n" + OF_A_VECTOR


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.budget = 14
        self.count = 0

    def program(self) -> str:
        body = [
            *("r = relay.ref(x * y)", "v = relay.stack([x, y, x + y])", "p = Pair(x, y)"),
            *self.statements(2, False, []),
            "return x + 0.5 * y * r.value + p.a * p.b + 0.2 * relay.sum(v * v)",
        ]
        return "\n".join([BEFORE, "def program(x, y, n):", *indented(body)])

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def expression(self, *more: str, depth: int = 2) -> str:
        a, b = (
            self.expression(*more, depth=depth - 1)
            if depth and self.random.random() < 0.3
            else self.random.choice([*NAMES, *more])
            for _ in range(2)
        )
        return self.random.choice(SMOOTH).format(a=a, b=b)

    def condition(self) -> str:
        return self.random.choice(CONDITIONS)

    def statements(self, depth: int, in_loop: bool, functions: list[str]) -> list[str]:
        """Some statements, and one that changes x."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            self.budget -= 1
            if in_loop and self.random.random() < 0.35:
                lines += self.leave()
                continue
            kinds = [self.assign, self.assign, self.write, self.element, self.field, self.both]
            if depth and self.budget > 0:
                kinds += [
                    self.growing,
                    self.recursive,
                    self.tree,
                    self.match,
                    self.fold,
                    self.comprehension,
                    self.table,
                    self.alias,
                    self.derivative,
                    self.checkpoint,
                    self.functions_in_a_list,
                    self.slices,
                    self.captured_and_assigned,
                ]
            if functions:
                kinds += [functools.partial(self.call, functions)] * 2
            nested = [self.branch, self.counted, self.search, self.square] if depth and self.budget > 0 else []
            made = [self.closure, self.chosen] if depth and self.budget > 0 else []
            position = self.random.randrange(len(kinds) + len(nested) + len(made))
            if position < len(kinds):
                lines += kinds[position]()
            elif position < len(kinds) + len(nested):
                lines += nested[position - len(kinds)](depth - 1, in_loop, functions)
            else:
                name, text = made[position - len(kinds) - len(nested)]()
                lines += text
                functions = [*functions, name]
        return [*lines, f"x = {self.expression()}"]

    # ---- plain statements

    def assign(self) -> list[str]:
        return [f"{self.random.choice('xy')} = {self.expression()}"]

    def write(self) -> list[str]:
        return [f"r.value = {self.expression()}"]

    def element(self) -> list[str]:
        return [f"v[{self.random.choice(['0', '1', '2', '-1'])}] = {self.expression()}"]

    def field(self) -> list[str]:
        if self.random.random() < 0.5:
            return [f"p = Pair({self.expression()}, {self.expression()})"]
        return [f"p = relay.replace(p, a={self.expression()})"]

    def both(self) -> list[str]:
        return [f"x, y = {self.expression()}, {self.expression()}"]

    def call(self, functions: list[str]) -> list[str]:
        return [f"{self.random.choice('xy')} = {self.random.choice(functions)}({self.random.choice(NAMES)}) * 0.7"]

    def leave(self) -> list[str]:
        end = self.random.choice(["break", "continue", f"return {self.expression()}"])
        return [f"if {self.condition()}:", *indented([end])]

    # ---- data

    def table(self) -> list[str]:
        name = self.name("d")
        return [f"{name} = {{'a': {self.expression()}, 'b': v}}", f"x = {name}['a'] * {name}['b'][1] + x * 0.1"]

    def growing(self) -> list[str]:
        xs, i, item = self.name("xs"), self.name("i"), self.name("item")
        grow = [f"{xs}.append({xs}[{i}] * 0.5 + {self.expression()})"]
        if self.random.random() < 0.5:
            grow = [f"if {self.condition()}:", *indented([f"{xs}.append({self.expression()})"])]
        lines = [f"{xs} = [x, {self.expression()}]", f"for {i} in range(n):", *indented(grow)]
        if self.random.random() < 0.4:
            lines.append(f"{xs}[0] = {self.expression()}")
        if self.random.random() < 0.3:
            lines.append(f"y = {xs}.pop() + y * 0.1")
        return [*lines, f"for {item} in {xs}:", *indented([f"x = x * 0.5 + {item} * 0.3"])]

    def recursive(self) -> list[str]:
        return [f"y = power({self.expression()}, n) * 0.3 + y * 0.1"]

    def tree(self) -> list[str]:
        inner = f"Tree.Node(Tree.Leaf(x), Tree.Leaf({self.expression()}))"
        return [f"x = total(Tree.Node(Tree.Leaf({self.expression()}), {inner})) * 0.3"]

    def match(self) -> list[str]:
        name = self.name("t")
        return [
            *(f"{name} = Tree.Leaf({self.expression()})", f"if {self.condition()}:"),
            *(f"    {name} = Tree.Node({name}, Tree.Leaf(y))", f"match {name}:", "    case Tree.Leaf(q):"),
            *("        x = q * 0.5", "    case Tree.Node(q, _):", "        x = total(q) * y"),
        ]

    def fold(self) -> list[str]:
        step = f"lambda t, q: t * 0.5 + q * {self.random.choice(NAMES)}"
        return [f"y = List.Cons(x, List.Cons(y, List.Nil())).fold({step}, 0.1)"]

    def comprehension(self) -> list[str]:
        return [f"x = sum([q * y for q in [x, {self.expression()}, v[0]]]) * 0.3"]

    def slices(self) -> list[str]:
        update = [f"v[n % 3] = v[n % 2] * 0.5 + {self.expression()}"] if self.random.random() < 0.5 else []
        return [*update, f"x = relay.sum(v[0:2] * v[1:3]) * 0.3 + {self.expression()}"]

    # ---- references and derivatives

    def alias(self) -> list[str]:
        name = self.name("q")
        return [
            f"{name} = r if {self.condition()} else relay.ref({self.expression()})",
            f"{name}.value = {name}.value * 0.5 + {self.expression()}",
            f"y = r.value * 0.5 + {name}.value * 0.3",
        ]

    def derivative(self) -> list[str]:
        return [f"y = relay.grad(lambda t: {self.expression('t')} * t)({self.random.choice('xy')}) * 0.3"]

    def checkpoint(self) -> list[str]:
        return [f"x = relay.checkpoint(lambda t: {self.expression('t')} * t)({self.random.choice('xy')}) * 0.7"]

    def captured_and_assigned(self) -> list[str]:
        name = self.name("bump")
        body = ["nonlocal y", f"y = y * 0.5 + {self.expression('t')}", "return y * t"]
        return [f"def {name}(t):", *indented(body), f"x = {name}(x) * 0.5 + {name}(y) * 0.3"]

    # ---- functions

    def functions_in_a_list(self) -> list[str]:
        name = self.name("fs")
        one, other = (f"lambda t: {self.expression('t')}" for _ in range(2))
        return [f"{name} = [{one}, {other}]", f"x = {name}[n % 2]({self.random.choice('xy')}) * 0.7"]

    def closure(self) -> tuple[str, list[str]]:
        name = self.name("f")
        lines = [f"{name} = lambda t: {self.expression('t')}"]
        if self.random.random() < 0.5:
            body = [
                f"s = {self.expression('t')}",
                "if s > 0.2:",
                "    return s * t",
                f"return {self.expression('t', 's')}",
            ]
            lines = [f"def {name}(t):", *indented(body)]
        return name, [*lines, f"y = {name}(y) * 0.7"]  # the call gives it a type

    def chosen(self) -> tuple[str, list[str]]:
        name = self.name("g")
        one, other = (f"(lambda t: {self.expression('t')})" for _ in range(2))
        return name, [f"{name} = {one} if {self.condition()} else {other}", f"y = {name}(y) * 0.7"]

    # ---- branches and loops

    def branch(self, depth: int, in_loop: bool, functions: list[str]) -> list[str]:
        lines = [f"if {self.condition()}:", *indented(self.statements(depth, in_loop, functions))]
        if self.random.random() < 0.3:
            lines += [f"elif {self.condition()}:", *indented(self.statements(depth, in_loop, functions))]
        if self.random.random() < 0.7:
            lines += ["else:", *indented(self.statements(depth, in_loop, functions))]
        return lines

    def counted(self, depth: int, in_loop: bool, functions: list[str]) -> list[str]:
        i, length = self.name("i"), self.random.choice([str(self.random.randint(0, 4)), "n", "1, n"])
        body = self.statements(depth, True, functions)
        if self.random.random() < 0.5:
            body.insert(0, f"x = x * 0.5 + v[{i} % 3] * 0.3")
        if self.random.random() < 0.3:
            body.append(f"v[{i} % 3] = x * 0.5")
        lines = [f"for {i} in range({length}):", *indented(body)]
        return [*lines, "else:", f"    y = {self.expression()}"] if self.random.random() < 0.2 else lines

    def search(self, depth: int, in_loop: bool, functions: list[str]) -> list[str]:
        c = self.name("c")
        body = [f"{c} = {c} + 1", *self.statements(depth, True, functions)]
        return [f"{c} = 0", f"while {c} < {self.random.randint(1, 4)} and x < 5.0:", *indented(body)]

    def square(self, depth: int, in_loop: bool, functions: list[str]) -> list[str]:
        i, j = self.name("i"), self.name("j")
        body = [f"for {j} in range({i} + 1):", *indented(self.statements(depth, True, functions))]
        return [f"for {i} in range(3):", *indented(body)]
