"""Random programs with derivatives through references from outside: aliases, references in references and in data."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

HEADER = """
import relay
from relay import Float64, Ref, Tensor

Real = Tensor[Float64, ()]

@relay.data
class Pair:
    one: Ref[Real]
    two: Ref[Real]

@relay.relay
def down(v, a: Ref[Real], b: Ref[Real], n):
    if n <= 0:
        return a.value * v
    a.value = relay.sin(b.value + v)
    return down(v * 0.9, b, a, n - 1) + b.value
"""

FUNCTION = """
@relay.relay
def {name}(x, a: Ref[Real], b: Ref[Real], q: Ref[Ref[Real]], p: Pair):
{body}
    return relay.sin({result}) * x + {cell}.value
"""

MAIN = """
@relay.relay
def main(x):
    a, b = relay.ref(x * 0.5), relay.ref(relay.sin(x))
    q, p = relay.ref(a), Pair(a, {other})
    slope = relay.grad(outer, wrt=0)(relay.sin(x), {first}, {second}, q, p)
    return relay.sin(slope) + relay.sin(a.value + b.value)
"""


class Writer:
    """Writes a program. `names` are the floats, the references to them, and the references to those, in scope."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.callees: list[str] = []

    def program(self) -> str:
        """A module with a function `main` of one number."""
        text = HEADER
        for name in ("inner", "outer"):
            names = {"float": ["x"], "cell": ["a", "b", "p.one", "p.two"], "outer": ["q"]}
            body, names = self.statements(names, 1, 7)
            text += FUNCTION.format(name=name, body=body, result=self.value(names), cell=self.cell(names))
            self.callees.append(name)
        other, first, second = (self.random.choice("ab") for _ in range(3))
        return text + MAIN.format(other=other, first=first, second=second)

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def cell(self, names: Mapping[str, Sequence[str]]) -> str:
        return self.random.choice([*names["cell"], *(f"{outer}.value" for outer in names["outer"])])

    def value(self, names: Mapping[str, Sequence[str]]) -> str:
        match self.random.choice(("name", "cell", "cell", "sin", "both", "scaled")):
            case "name":
                return self.random.choice(names["float"])
            case "cell":
                return f"{self.cell(names)}.value"
            case "sin":
                return f"relay.sin({self.value(names)})"
            case "both":
                return f"({self.value(names)} {self.random.choice('+-*')} {self.value(names)})"
            case _:
                return f"({self.value(names)} * {self.random.choice(('0.5', '1.5', '-0.7'))})"

    def statements(
        self, outside: Mapping[str, Sequence[str]], depth: int, most: int
    ) -> tuple[str, dict[str, list[str]]]:
        """Some statements, and the names in scope after them."""
        names = {kind: list(found) for kind, found in outside.items()}
        lines = [line for _ in range(self.random.randint(2, most)) for line in self.statement(names, depth)]
        return "\n".join(f"    {line}" for line in lines), names

    def statement(self, names: dict[str, list[str]], depth: int) -> list[str]:
        new = self.fresh()
        kinds = ["write", "write", "write", "bind", "ref", "alias", "swap", "outer", "down"]
        if depth < 3:
            kinds += ["if", "for"]
        if depth == 1 and self.callees:
            kinds += ["grad", "grad", "checkpoint"]
        kind = self.random.choice(kinds)
        cells = f"{self.cell(names)}, {self.cell(names)}"
        match kind:
            case "write":
                return [f"{self.cell(names)}.value = {self.value(names)}"]
            case "swap":
                return [f"{self.random.choice(names['outer'])}.value = {self.cell(names)}"]
            case "if" | "for":
                inside, _ = self.statements(names, depth + 1, 3)
                rounds = self.random.randint(2, 3)
                head = f"if {self.value(names)} > 0.3:" if kind == "if" else f"for _ in range({rounds}):"
                return [head, *inside.split("\n")]
            case "bind":
                line, scope = f"{new} = {self.value(names)}", "float"
            case "ref":
                line, scope = f"{new} = relay.ref({self.value(names)})", "cell"
            case "alias":
                line, scope = f"{new} = {self.cell(names)}", "cell"
            case "outer":
                line, scope = f"{new} = relay.ref({self.cell(names)})", "outer"
            case "down":
                line, scope = f"{new} = down({self.value(names)}, {cells}, {self.random.randint(0, 3)})", "float"
            case _:
                callee = self.random.choice(self.callees)
                function = f"relay.grad({callee}, wrt=0)" if kind == "grad" else f"relay.checkpoint({callee})"
                line, scope = f"{new} = {function}({self.value(names)}, {cells}, q, p)", "float"
        names[scope].append(new)
        return [line]
