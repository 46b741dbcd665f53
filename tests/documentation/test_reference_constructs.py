"""The table of unsupported constructs: each raises what its row says, and what stands in the last column works."""

# ruff: noqa: E501

from __future__ import annotations

import functools

import numpy as np
import pytest
from reference import Claim, Fails, check

import relay

X = np.array([1.0, 2.0, 4.0])
N = np.array([3, 1, 2], np.int32)


@relay.data
class Layer:
    weight: relay.Tensor[relay.Float64, ()]


@relay.relay
def doubled(x):
    return x * 2.0


NAMES = {"Layer": Layer, "functools": functools, "doubled": doubled, "Any": relay.Any}

TRY = "`raise` of what is no class, or of several values; `with` of anything but `np.errstate` and handlers"
GROUPS = "`except*`"
MODULES = "`class`, `global`, `import` of a module that is not imported yet in a function"
GENERATORS = "`yield` in what prints, has a `try`, assigns a `nonlocal`, or uses the value of `yield`; `await`, `async`"
SETS = "bytes, complex numbers, `!a` in f-strings"
KEYS = "run-time keys of a dict among the arguments"
METHODS = "`title`, `rsplit`, `translate` of run-time strings"
FORMATS = '`"%d" % x`, `"..".format(x)` of run-time values'
CARRIED = "`pop` in a comprehension; `:=` of a name that is assigned before it, or read after it"
PATHS = "a variable without a value on some path; one that only a loop assigns which may have no rounds"
ITEMS = "assignment to a tuple's item, a field of a data type"
VALUES = "`x.tolist()`, `.numpy()`"
PYTHON = "`type`, `input` and other Python functions"

REFUSED = [
    (
        GROUPS,
        "b = a\ntry:\n    b = a + 1\nexcept* ValueError:\n    b = a\nreturn b",
        (1.0,),
        r"`except\*` is not part of Relay",
    ),
    (TRY, "raise a", (1.0,), "a program raises a class of exceptions"),
    (TRY, "with a:\n    return a", (1.0,), "`with` is not part of Relay"),
    (MODULES, "class B:\n    pass\nreturn a", (1.0,), "a class in a function is not part of Relay"),
    (MODULES, "import not_there\nreturn a", (1.0,), "`import` of a module"),
    (MODULES, "global b\nb = 1\nreturn a", (1.0,), "`global` is not part of Relay"),
    (GENERATORS, "print(a)\nyield a", (1.0,), "`yield` is not part of Relay"),
    (GENERATORS, "async def g(v):\n    return v\nreturn a", (1.0,), "`async def` is not part of Relay"),
    ("a decorator on a local function", "@doubled\ndef g(v):\n    return v\nreturn g(a)", (1.0,), "decorator"),
    (SETS, "return b'x'", (), "bytes"),
    (SETS, "return a + 1j", (1.0,), "complex"),
    (SETS, "print(f'{a!a}')\nreturn a", (1.0,), "!a"),
    (METHODS, "return f'{a}'.title()", (1.0,), "`title` does not take a run-time string"),
    ("`is` of run-time values", "return a is b", (1.0, 2.0), "`is`"),
    ("`==` of structures that hold tensors", "return (a, a) == (a, a)", (X,), "tensor"),
    (KEYS, "a[b] = 1.0\nreturn a", ({1: 1.0}, N[0]), "the key of a dict must be known"),
    ("generator expression outside of a call", "return (v for v in a)", (X,), "generator expression"),
    (CARRIED, "xs = [a, a]\nreturn [xs.pop() for i in range(2)]", (1.0,), "comprehension"),
    (CARRIED, "v = a\nw = [(v := v + i) for i in range(2)]\nreturn v", (1.0,), "v"),
    (CARRIED, "w = [(v := a + i) for i in range(2)]\nreturn v", (1.0,), "v"),
    (FORMATS, "print('%d' % a)\nreturn a", (1,), "print or assert"),
    (FORMATS, "print('{}'.format(a))\nreturn a", (N[0],), "must be known at compile time"),
    ('`assert (condition, "text")`', "assert (a > 0.0, 'text')\nreturn a", (1.0,), "tuple"),
    (
        "`case int():` of a tensor",
        "match a:\n    case int():\n        return 1\n    case _:\n        return 2",
        (X,),
        "int",
    ),
    ("an expression without effect", "a + 1.0\nreturn a", (1.0,), "effect|lost|used"),
    ("code after `return` or an endless loop", "return a\nb = 2.0", (1.0,), "never"),
    ("code after `return` or an endless loop", "while True:\n    a = a + 1.0\nreturn a", (1.0,), "never"),
    (PATHS, "if a > 0.0:\n    b = a\nreturn b", (1.0,), "`b` may have no value here"),
    (PATHS, "for i in range(a):\n    pass\nreturn i", (N[0],), "`i` may have no value here"),
    ("two dtypes of floats in one operation", "return a + b", (X, np.float32(X)), "operands of one dtype"),
    (
        "a loop that changes a variable's shape or dtype",
        "while a.sum() < 99.0:\n    a = relay.concatenate((a, a))\nreturn a",
        (X,),
        "changes the type",
    ),
    (ITEMS, "b = (a, a)\nb[0] = 2.0\nreturn b", (1.0,), "a tuple's items cannot be assigned"),
    (ITEMS, "a.weight = 2.0\nreturn a", (Layer(np.float64(1.0)),), "assigned"),
    (VALUES, "return a.tolist()", (X,), "has no attribute 'tolist'"),
    (VALUES, "return a.numpy()", (X,), "has no attribute 'numpy'"),
    ("`np.random`", "return a + np.random.normal()", (1.0,), "random numbers"),
    (PYTHON, "return type(a)", (1.0,), "type"),
    (PYTHON, "return hash(a)", (1.0,), "hash"),
    (PYTHON, "return input()", (), "input"),
    (PYTHON, "return sorted((a,), key=open)", (1.0,), "open"),
]

INSTEAD = [
    (TRY, "assert a > 0.0, 'text'\nreturn 1.0 / a if a > 0.5 else 0.0", (0.25,), 0.0),
    (GROUPS, "b = a\ntry:\n    raise ValueError\nexcept ValueError:\n    b = 2.0 * a\nreturn b", (1.0,), 2.0),
    (MODULES, "calls = relay.ref(0)\ndef g(v):\n    calls.value += 1\n    return v\nreturn g(g(a)), calls.value", (1.0,), (1.0, 2)),
    (GENERATORS, "b = np.zeros(3)\nfor i in range(3):\n    b[i] = a * i\nreturn b", (2.0,), [0.0, 2.0, 4.0]),
    ("a decorator on a local function", "g = lambda v: v * 3.0\ng = relay.checkpoint(g)\nreturn g(a)", (1.0,), 3.0),
    (METHODS, "t = ''\nfor c in f'{a}':\n    t += '-' if c == '.' else c\nreturn t", (1.0,), "1-0"),
    ("`==` of structures that hold tensors", "return (a == a).all()", (X,), True),
    ("generator expression outside of a call", "return [v for v in (a, 2.0)], sum(v for v in (a, 2.0))", (1.0,), ([1.0, 2.0], 3.0)),
    (CARRIED, "xs, ys = [a, 2.0], []\nfor i in range(2):\n    ys.append(xs.pop())\nreturn ys", (1.0,), [2.0, 1.0]),
    (FORMATS, "assert a < 9, f'{a:d} is large'\nreturn a", (1,), 1),
    ("`case int():` of a tensor", "if a.dtype == relay.Int32:\n    return 1\nreturn 2", (N,), 1),
    ("two dtypes of floats in one operation", "return a + b.astype(a.dtype)", (X, np.float32(X)), [2.0, 4.0, 8.0]),
    ("a loop that changes a variable's shape or dtype", "b: relay.Tensor[relay.Float64, (Any,)] = a\nwhile b.sum() < 9.0:\n    b = relay.concatenate((b, b))\nreturn b.sum()", (X,), 14.0),
    (ITEMS, "b = relay.replace(a, weight=2.0)\nreturn b.weight + a.weight", (Layer(np.float64(1.0)),), 3.0),
    (VALUES, "return float(a) * 1.5, int(a) + 1", (3,), (4.5, 4)),
    ("`np.random`", "return relay.random.normal(relay.random.key(0), (2,)).shape == (2,)", (), True),
    (PYTHON, "return a.ndim, a.dtype == relay.Float64", (X,), (1, True)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:assertion is always true")
@pytest.mark.parametrize(
    ("row", "program", "arguments", "message"), REFUSED, ids=lambda part: part if isinstance(part, str) else ""
)
def test_unsupported_constructs(row: str, program: str, arguments: tuple[object, ...], message: str) -> None:
    check("language.md", Claim(f"| {row} |", program, arguments, Fails(message)), NAMES)


@pytest.mark.parametrize(
    ("row", "program", "arguments", "expected"), INSTEAD, ids=lambda part: part if isinstance(part, str) else ""
)
def test_replacements(row: str, program: str, arguments: tuple[object, ...], expected: object) -> None:
    check("language.md", Claim(f"| {row} |", program, arguments, expected), NAMES)


def test_every_row_has_its_error() -> None:
    """The rows of the page are these, so a new one needs a program."""
    from reference import DOCS

    page = (DOCS / "language.md").read_text(encoding="utf-8").partition("## Unsupported constructs")[2]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert rows and {*rows} == {row for row, *_ in REFUSED}
