"""Random programs in which objects have several names, are in each other, and change: texts that Python runs, too."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

PARAMETERS = {
    "lists": {"x": "list", "y": "list", "q": "grid", "z": "box"},
    "arrays": {"x": "array", "y": "array", "q": "matrix"},
    "mixed": {"x": "list", "y": "array", "q": "matrix", "z": "box"},
}
"""The parameters of the programs by their subject, with the kinds of their values."""

KINDS = {
    "lists": ("list", "list", "grid", "box", "dict"),
    "arrays": ("array", "array", "matrix"),
    "mixed": ("list", "list", "grid", "box", "dict", "array", "array", "matrix"),
}

FUNCTIONS = """
def grown(v):
    v.append(3.0)
    return v

def same(v):
    return v

def longer(v):
    return v + [1.0]

def first(v):
    return v[0]

def put(v, i, w=4.0):
    v[i] = w

def moved(v, w):
    w.append(v.pop())
    return w[0]

def deep(v, k):
    if k > 0:
        put(v, 0, v[0] + 1.0)
        deep(v, k - 1)
    v.append(1.0)

def rowed(m, k):
    put(m[0], k, w=2.0)
    return m

"""


@dataclass
class Box:
    a: Any
    b: Any

    def put(self, v: Any) -> None:
        self.a.append(v)
        self.b = [v]


def arguments(subject: str) -> list[Any]:
    """New arguments for a program, after its condition and its number."""
    values = {
        "list": [[1.0, 2.0], [3.0, 4.0]],
        "array": [np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])],
        "grid": [[[5.0, 6.0], [7.0, 8.0]]],
        "matrix": [np.arange(6.0).reshape(2, 3)],
        "box": [Box([9.0, 10.0], [11.0, 12.0])],
    }
    return [values[kind].pop(0) for kind in PARAMETERS[subject].values()]


class AliasProgram:
    """A random program `f(c, n, ..)`."""

    def __init__(self, seed: int, subject: str) -> None:
        self._random = random.Random(f"{subject}{seed}")
        self._subject = subject
        self._lines: list[str] = []
        self._variables = dict(PARAMETERS[subject])
        self._count = 0
        self._emit(0, f"def f(c, n, {', '.join(self._variables)}):")
        self._emit(1, "k = 1")
        self._emit(1, "total = 0.0")
        if subject != "arrays":
            self._emit(1, "def push(w):")
            self._emit(2, "x.append(w[0])")
        self._block(1, self._random.randrange(4, 9))
        names = self._random.sample(list(self._variables), min(3, len(self._variables)))
        if "z" in self._variables and "z" not in names:
            names.append("z")
        self._emit(1, f"return total, {', '.join(names)}")
        self.text = FUNCTIONS + "\n".join(self._lines) + "\n"

    def _emit(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _fresh(self) -> str:
        self._count += 1
        return f"w{self._count}"

    def _of(self, kind: str) -> list[str]:
        return [v for v, k in self._variables.items() if k == kind]

    # ---- expressions

    def _number(self) -> str:
        choose = self._random.choice
        places = {
            "number": lambda v: v,
            "list": lambda v: f"{v}[{choose('01')}]",
            "array": lambda v: f"{v}[{choose('012')}]",
            "matrix": lambda v: f"{v}[{choose('01')}, {choose('012')}]",
            "grid": lambda v: f"{v}[{choose('01')}][{choose('01')}]",
            "box": lambda v: f"{v}.{choose('ab')}[{choose('01')}]",
            "dict": lambda v: f"{v}['{choose('pq')}'][{choose('01')}]",
        }
        return choose([places[kind](v) for v, kind in self._variables.items()] + [f"{choose('123456789')}.0"] * 2)

    def _list(self) -> str:
        choose, own = self._random.choice, self._of("list")
        found = own * 2 + [f"[{self._number()}, {self._number()}]"]
        found += [f"{v}[{choose('01k')}]" for v in self._of("grid")]
        found += [f"{v}.{choose('ab')}" for v in self._of("box")]
        found += [f"{v}['{choose('pq')}']" for v in self._of("dict")]
        found += [f"{v}.pop({choose(['', '0'])})" for v in self._of("grid")[:1]] if self._random.random() < 0.2 else []
        if own:
            found += [f"{choose(own)}.copy()", f"({choose(own)} if c else {choose(own)})"]
        return choose(found)

    def _new(self, kind: str) -> str:
        choose, own = self._random.choice, self._of(kind)
        if kind == "list":
            return self._list()
        if own and self._random.random() < 0.6:
            return choose(own) if kind == "box" or self._random.random() < 0.7 else f"{choose(own)}.copy()"
        match kind:
            case "grid":
                of_grid = [f"[list(r) for r in {v}]" for v in own]
                shared = [f"[{self._list()}, {self._list()}]", f"[{self._list()}] * 2"]
                return choose([*shared, f"[[{self._number()}] * 2 for _ in range(2)]", *of_grid])
            case "box":
                return f"Box({self._list()}, {self._list()})"
            case "dict":
                return f"dict(p={self._list()}, q={self._list()})"
            case "array":
                of_rows = [e for v in self._of("matrix") for e in (f"{v}[0]", f"{v}[1]", f"{v}[k]", f"{v}.T[0:3, 1]")]
                of_own = [
                    e for v in own for e in (f"{v} * 2.0", f"{v}[::-1]", f"{v}[0:3]", f"{v}[np.array([0, 1, 2])]")
                ]
                return choose(["np.ones(3)", *of_rows, *of_own])
            case _:
                return choose([e for v in own for e in (f"{v} + 1.0", f"{v}[0:2]", f"{v}.reshape(2, 3)", f"{v}.T.T")])

    # ---- statements

    def _change(self, depth: int) -> None:
        choose, number = self._random.choice, self._number
        v = choose(list(self._variables))
        i = choose(["0", "1", "k", "-1"])
        swap = f"{v}[0], {v}[1] = {v}[1], {v}[0]"
        match self._variables[v]:
            case "list":
                forms = [
                    f"{v}[{i}] = {number()}",
                    f"{v}[{i}] += 1.0",
                    f"{v}.append({number()})",
                    f"{v} += [{number()}]",
                ]
                forms += [f"{v}.reverse()", f"{v}.insert(0, {number()})", f"{v} = {v} + [{number()}]"]
            case "grid":
                forms = [
                    f"{v}[{i}] = {self._list()}",
                    f"{v}[{i}][0] = {number()}",
                    f"{v}[{i}].append({number()})",
                    swap,
                ]
                forms += [f"{v}.append({self._list()})", f"{v}.insert(0, {self._list()})", f"{v}[{i}] += [1.0]"]
            case "box":
                field = f"{v}.{choose('ab')}"
                forms = [f"{field} = {self._list()}", f"{field}[0] = {number()}", f"{field}.append({number()})"]
                forms += [f"{v}.a, {v}.b = {v}.b, {v}.a"]
            case "dict":
                item = f"{v}['{choose('pq')}']"
                forms = [f"{item} = {self._list()}", f"{item}[0] = {number()}", f"{item}.append({number()})"]
            case "array":
                forms = [f"{v}[{i}] = {number()}", f"{v}[0:2] *= 2.0", f"{v}[:] = {choose(self._of('array'))}", swap]
                forms += [f"{v} = {v} + 1.0", f"np.add.at({v}, [0, 1], 1.0)", f"{v}[{v} > 3.0] = 0.5"]
            case "matrix":
                forms = [f"{v}[{i}] = {number()}", f"{v}[{i}, 0] = {number()}", swap, f"{v}[{i}][1] = {number()}"]
                forms += [f"{v}[:, 1] += 1.0", f"{v}[{i}] += 1.0"]
            case _:
                forms = [f"{v} += {number()}", f"{v} = {number()}"]
        self._emit(depth, choose(forms))

    def _call(self, depth: int) -> None:
        choose, own = self._random.choice, self._of("list")
        a, b = choose(own), choose(own)
        forms = [f"push({a})", f"{a} = grown({b})", f"{a} = same({b})", f"{a} = longer({a})", f"total += first({a})"]
        place = choose([a, *(f"{v}[{choose('01k')}]" for v in self._of("grid")), *(f"{v}.a" for v in self._of("box"))])
        forms += [f"put({place}, 0)", f"total += moved({place}, {b})", f"deep({place}, 2)", f"grown({place})"]
        forms += [f"{v}.put(7.0)" for v in self._of("box")] + [f"rowed({v}, 1)" for v in self._of("grid")]
        self._emit(depth, choose(forms))

    def _assign(self, depth: int) -> None:
        kind = self._random.choice(KINDS[self._subject])
        is_old = self._of(kind) and self._random.random() < 0.35
        target = self._random.choice(self._of(kind)) if is_old else self._fresh()
        self._emit(depth, f"{target} = {self._new(kind)}")
        self._variables[target] = kind

    def _inside(self, depth: int) -> None:
        """A block, whose new variables are its own."""
        before = dict(self._variables)
        self._block(depth, self._random.randrange(1, 4))
        self._variables = before

    def _loop(self, depth: int) -> None:
        before, choose = dict(self._variables), self._random.choice
        element, grids, lists = self._fresh(), self._of("grid"), self._of("list")
        forms = [(f"for k in range({choose('2n')}):", "")]
        if grids:
            grid = choose(grids)
            forms += [(f"for {element} in {grid}:", "list"), (f"for k, {element} in enumerate({grid}):", "list")]
        if lists:
            forms.append((f"for {element} in {choose(lists)}:", "number"))
        header, kind = choose(forms)
        self._emit(depth, header)
        if kind:
            self._variables[element] = kind
        self._inside(depth + 1)
        self._variables = before

    def _block(self, depth: int, count: int) -> None:
        for _ in range(count):
            draw = self._random.random()
            if draw < 0.4:
                self._assign(depth)
            elif draw < 0.78 or depth > 2:
                self._change(depth)
            elif draw < 0.87 and self._of("list"):
                self._call(depth)
            elif draw < 0.92:
                self._emit(depth, "if c:")
                self._inside(depth + 1)
                if self._random.random() < 0.5:
                    self._emit(depth, "else:")
                    self._inside(depth + 1)
            else:
                self._loop(depth)
