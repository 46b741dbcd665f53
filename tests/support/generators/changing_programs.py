"""Random programs whose functions change what they are given: lists, dicts, arrays and objects, through branches,
loops, errors that are caught, and calls of each other. Python runs the same texts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

PARAMETERS = {"xs": "list", "ys": "list", "x": "array", "q": "grid", "b": "box", "d": "dict"}
"""The parameters of a program after its condition and its number, with the kinds of their values."""

CLASS = """
class Box:
    def __init__(self, a, v):
        self.a = a
        self.v = v

    def put(self, v):
        self.a.append(v)
        self.v += v
        return len(self.a)

    def swap(self, xs, i):
        xs[i], self.v = self.v, xs[i]

    def items(self):
        return self.a
"""


def arguments(box: Callable[[list[float], float], Any], size: int) -> list[Any]:
    """New arguments of a program, for its condition, its number and its objects."""
    numbers = [float(i + 1) for i in range(size)]
    grid = [[number, number + 0.5] for number in numbers]
    return [numbers[::-1], list(numbers), np.array(numbers) * 2.0, grid, box([9.0, 8.0], 7.0), {"p": 1.0, "r": 2.0}]


class ChangingProgram:
    """A random program `f(c, n, ..)` and its functions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines: list[str] = []
        self._functions: list[tuple[str, list[str], str]] = []  # with the kinds of parameters, and of the result
        self._count = 0
        for number in range(self._random.randrange(2, 5)):
            self._define(f"h{number}")
        self._main()
        self.text = CLASS + "\n".join(self._lines) + "\n"

    def _emit(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _define(self, name: str) -> None:
        kinds = self._random.choices(["list", "list", "array", "grid", "box", "dict", "number"], k=2)
        kinds[0] = kinds[0] if kinds[0] != "number" else "list"
        names = {f"{kind[0]}{i}": kind for i, kind in enumerate(kinds)}
        self._emit(0, f"def {name}({', '.join(names)}):")
        self._emit(1, "t = 1.0")
        self._variables, self._inside = {**names, "t": "number"}, name
        self._block(1, self._random.randrange(1, 4))
        result = self._random.choice(["number", "number", "none", *[k for k in kinds if k in ("list", "array")]])
        value = {"number": "t", "none": ""}.get(result) or (
            self._random.choice(self._of(result)) if result != "none" else ""
        )
        self._emit(1, f"return {value}" if value else "pass")
        self._emit(0, "")
        self._functions.append((name, kinds, result))

    def _main(self) -> None:
        self._emit(0, f"def f(c, n, {', '.join(PARAMETERS)}):")
        self._emit(1, "t = 0.0")
        self._variables, self._inside = {**PARAMETERS, "t": "number"}, "f"
        if self._random.random() < 0.3:
            self._emit(1, "def inner(v):")
            self._emit(
                2, self._random.choice(["xs.append(v)", "x[0] = v", "b.v = b.v + v", "q[0][0] = v", "b.a.append(v)"])
            )
            self._emit(2, "return v + 1.0")
            self._functions.append(("inner", ["number"], "number"))
        self._block(1, self._random.randrange(4, 8))
        self._emit(1, f"return t, {', '.join(PARAMETERS)}")

    def _of(self, kind: str) -> list[str]:
        return [v for v, k in self._variables.items() if k == kind]

    # ---- expressions

    def _index(self) -> str:
        return self._random.choice(["0", "0", "1", "-1"])

    def _number(self) -> str:
        places = {
            "number": "{0}",
            "list": f"{{0}}[{self._index()}]",
            "array": f"{{0}}[{self._index()}]",
            "grid": f"{{0}}[{self._index()}][{self._random.choice('01')}]",
            "box": self._random.choice(["{0}.v", "{0}.a[0]"]),
            "dict": "{0}['p']",
        }
        forms = [places[kind].format(v) for v, kind in self._variables.items()]
        return self._random.choice([*forms, "2.0", "0.5"])

    def _place(self, kind: str) -> str | None:
        """An expression that is an object of a kind."""
        found = self._of(kind)
        if kind == "list":
            found = (
                found * 2 + [f"{v}[{self._index()}]" for v in self._of("grid")] + [f"{v}.a" for v in self._of("box")]
            )
            found += [f"{v}.items()" for v in self._of("box") if self._random.random() < 0.2]
        if kind == "number":
            return self._number()
        return self._random.choice(found) if found else None

    def _call(self, wanted: str | None = None, depth: int = 1) -> str | None:
        """A call of a function, with another one among its arguments at times."""
        known = [f for f in self._functions if wanted is None or f[2] == wanted]
        if not known:
            return None
        name, kinds, _ = self._random.choice(known)
        given = []
        for kind in kinds:
            inner = self._call(kind, depth - 1) if depth and self._random.random() < 0.3 else None
            place = inner or self._place(kind)
            if place in given and self._random.random() < 0.9:  # one object for two parameters is mostly refused
                place = next((v for v in self._of(kind) if v not in given), None)
            if place is None:
                return None
            given.append(place)
        return f"{name}({', '.join(given)})"

    # ---- statements

    def _change(self, depth: int) -> None:
        choose, number, i = self._random.choice, self._number, self._index()
        v = choose([name for name, kind in self._variables.items()])
        match self._variables[v]:
            case "list":
                forms = [
                    f"{v}[{i}] = {number()}",
                    f"{v}[{i}] += {number()}",
                    f"{v}.append({number()})",
                    f"{v}.reverse()",
                ]
                forms += [f"{v}.insert(0, {number()})", f"t = t + {v}.pop()", f"{v}[0], {v}[1] = {v}[1], {v}[0]"]
            case "array":
                forms = [f"{v}[{i}] = {number()}", f"{v}[{i}] += {number()}", f"{v}[:2] = {number()}"]
                forms += [f"{v}[0], {v}[1] = {v}[1], {v}[0]", f"np.add.at({v}, [0, 0], {number()})"]
            case "grid":
                forms = [f"{v}[{i}][0] = {number()}", f"{v}[{i}].append({number()})", f"{v}[{i}] = [{number()}, 1.0]"]
                forms += [f"{v}[0], {v}[1] = {v}[1], {v}[0]", f"{v}.append([1.0, {number()}])"]
                forms += [f"{v}[0] = {self._place('list')}"]
            case "box":
                forms = [f"{v}.v = {number()}", f"{v}.a[0] = {number()}", f"{v}.a.append({number()})"]
                forms += [f"t = t + {v}.put({number()})", f"{v}.put({v}.put(1.0))", f"{v}.a = [{number()}, 2.0]"]
                forms += [f"{v}.swap({w}, {i})" for w in self._of("list")]
            case "dict":
                forms = [f"{v}['p'] = {number()}", f"{v}['r'] += {number()}"]
            case _:
                forms = [f"{v} = {number()}", f"t = t + {number()}"]
        self._emit(depth, choose(forms))

    def _called(self, depth: int) -> None:
        forms = [self._call()]
        if (call := self._call("number")) is not None:
            forms += [f"t = t + {call}", f"t = {call} + {self._number()}", f"t = {self._number()} - {call}"]
        for kind in ("list", "array"):
            if (call := self._call(kind)) is not None:
                name = f"w{self._count}"
                forms += [f"{name} = {call}", f"{self._random.choice(self._of(kind) or [name])} = {call}"]
        chosen = self._random.choice(forms)
        if chosen is None:
            self._change(depth)
            return
        self._emit(depth, chosen)
        if chosen.startswith("w"):
            self._count += 1
            self._variables[chosen.split(" ")[0]] = self._result_kind(chosen)

    def _result_kind(self, statement: str) -> str:
        name = statement.split(" = ")[1].split("(")[0]
        return next(result for function, _, result in self._functions if function == name)

    def _try(self, depth: int) -> None:
        self._emit(depth, "try:")
        self._block_inside(depth + 1)
        failing = [f"t = t + {v}[9]" for v in (*self._of("list"), *self._of("array"))]
        failing.append(f"if {self._number()} > 1.5: raise ValueError('large')")
        self._emit(depth + 1, self._random.choice(failing))
        if self._random.random() < 0.5:
            self._block_inside(depth + 1)
        self._emit(depth, f"except {self._random.choice(['IndexError', '(IndexError, ValueError)', 'ValueError'])}:")
        self._block_inside(depth + 1)
        if self._random.random() < 0.2:
            self._emit(depth, "finally:")
            self._block_inside(depth + 1)

    def _block_inside(self, depth: int) -> None:
        before = dict(self._variables)
        self._block(depth, self._random.randrange(1, 3))
        self._variables = before

    def _block(self, depth: int, count: int) -> None:
        for _ in range(count):
            draw = self._random.random()
            if depth > 3 or draw < 0.45:
                self._change(depth)
            elif draw < 0.72:
                self._called(depth)
            elif draw < 0.8:
                self._emit(depth, f"if {self._number()} > {self._number()}:")
                self._block_inside(depth + 1)
                if self._random.random() < 0.5:
                    self._emit(depth, "else:")
                    self._block_inside(depth + 1)
            elif draw < 0.88:
                lists = self._of("grid")
                header = "for k in range(2):" if not lists or self._random.random() < 0.5 else f"for e in {lists[0]}:"
                before = dict(self._variables)
                if header.startswith("for e"):
                    self._variables["e"] = "list"
                self._emit(depth, header)
                self._block_inside(depth + 1)
                self._variables = before
            else:
                self._try(depth)
