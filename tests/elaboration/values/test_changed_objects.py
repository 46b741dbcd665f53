"""Objects that functions, globals, defaults and iterators hold: a change of them is Python's, or refused."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from agreement import leaves

import relay as rl


def _module(path: Path, text: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    path.write_text("import numpy as np\n" + text)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _given() -> list[Any]:
    return [np.ones(3), [1.0, 2.0], [[3.0], [4.0]], 5.0]


CLASSES = """
class Box:
    shared = [1.0]
    def __init__(self, a):
        self.a = a
    def get(self):
        return self.a
    def put(self, v):
        self.a = v
    def add(self, v):
        self.a = self.a + v
        return self.a
    def into(self, xs, v):
        xs.append(self.a)
        return v

GLOBAL = [1.0, 2.0]
ROWS = np.zeros((2, 2))

def given():
    return GLOBAL

def row():
    return ROWS[0]

def pair():
    return 1, GLOBAL

def put_global(xs):
    xs.append(GLOBAL)

def with_default(v, seen=[]):
    seen.append(v)
    return len(seen)

def last(*values):
    values[-1].append(1.0)
    return len(values)

def named(**values):
    values["b"].append(1.0)
    return len(values)

def second(a, b):
    b.append(1.0)
    return len(b)

def total_of(v):
    return lambda: v.sum()

def failing(xs, n):
    xs.append(n)
    return xs[7]

def failing_array(x, n):
    x[0] = n
    assert n < 2.0, "large"
    return x[1]

def failing_inside(q, n):
    t = failing(q[0], n)
    q[1][0] = t
    return t

def filled(xs, n):
    for i in range(5):
        xs[i] = n
    return n

def guarded(xs, n):
    if n < 0.0:
        raise ValueError("negative")
    xs.append(n)
    return n

def swapped(xs, i, j):
    xs[i], xs[j] = xs[j], xs[i]

def doubled(x):
    for i in range(len(x)):
        x[i] = x[i] * 2.0
    return 1.0

def taken(xs):
    return xs.pop()

def last_with(xs, k):
    return xs[-1] + k

def put(xs, k):
    xs.append(k)
    return xs[0]

def pairs(xs):
    return map(lambda v: v + 1, xs)

def total(it):
    k = 0
    for _ in it:
        k += 1
    return k
"""

TRY = "try:\n    k = CALL\nexcept Exception:\n    k = -1.0\nreturn k, xs, g, x"

REFUSED = {
    "a = given(); a[1] = n; return given()": "changes the global `GLOBAL`",
    "k, a = pair(); a.append(n); return a": "changes the global `GLOBAL`",
    "a = row(); a[0] = n; return a": "changes the global `ROWS`",
    "put_global(g); g[2].append(n); return g": "changes the global `GLOBAL`",
    "a = Box.shared; a.append(n); return a": "changes the global `Box.shared`",
    "b = Box(n); b.shared.append(n); return b.a": "changes the global `Box.shared`",
    "return with_default(n)": "changes the default of `seen`",
    "h = total_of(x); x[0] = n; return h()": "`h` sees the change of `x`",
    "def h(v=x):\n    return v.sum()\nx[0] = n; return h()": "`h` sees the change of `x`",
    "h = x.sum; x[0] = n; return h()": "`h` sees the change of `x`",
    "h = xs.count; xs.append(n); return h(n)": "`h` sees the change of `xs`",
    "b = Box(1.0); hs = [b.get]; b.put(n); return hs[0]()": "`hs` sees the change of `b`",
    "b = Box(1.0); h = (b.get, 1.0); b.a = n; return h[0]()": "`h` sees the change of `b`",
    "b = Box(1.0); h = b.put; h(n); return b.a": "the change of `b` is seen under another name",
    "a = [1.0]; k = last(xs, a); return a, k": "`a` sees the change of `values`",
    "a = [1.0]; k = named(a=xs, b=a); return a, k": "`a` sees the change of `values`",
    "k = second(*(g, xs)); return xs, k": "`xs` sees the change",
    "t = (g, xs); k = second(*t); return xs, k": "in Python",
    "d = dict(a=g, b=xs); k = second(**d); return xs, k": "in Python",
    "a = zip(xs, xs); return list(a), list(a)": "`a` is an iterator, of which nothing is left",
    "a = map(lambda v: v + 1, xs); return sum(a), sum(a)": "`a` is an iterator, of which nothing is left",
    "a = filter(lambda v: v > 1, xs); b = a; return list(a), list(b)": "`b` is an iterator",
    "a = reversed(xs)\nfor i in range(2):\n    n += sum(a)\nreturn n": "`a` is an iterator",
    "a = enumerate(xs)\nfor i, v in a:\n    n += v\nfor i, v in a:\n    n += v\nreturn n": "`a` is an iterator",
    "a = pairs(xs); k = total(a); return k, total(a)": "`a` is an iterator",
    "a = (zip(xs, xs), n); k = list(a[0]); return k, list(a[0])": "is an iterator",
    "k = put(xs, (xs := [n])[0]); return xs, k": "changes `xs`, which its arguments assign",
    "def h():\n    nonlocal xs\n    xs = [n]\n    return n\nk = put(xs, h()); return xs": "which its arguments assign",
    TRY.replace("CALL", "failing(xs, n)"): "loses its changes of `xs`",
    TRY.replace("CALL", "failing(g[0], n)"): "loses its changes of `g`",
    TRY.replace("CALL", "failing_inside(g, n)"): "loses its changes of `g`",
    TRY.replace("CALL", "failing_array(x, n)"): "loses its changes of `x`",
    TRY.replace("CALL", "filled(xs, n)"): "loses its changes of `xs`",
    "def h(v):\n    v[0] = n\n    return v[9]\n" + TRY.replace("CALL", "h(xs)"): "loses its changes of `xs`",
    "xs.__setitem__(0, n); return xs": r"write `xs\[i\] = v`",
    "x.__setitem__(0, n); return x": r"write `x\[i\] = v`",
}

SAME = [
    TRY.replace("CALL", "guarded(xs, n) + guarded(xs, -n)"),
    TRY.replace("CALL", "failing(xs, n)").replace(", xs, g, x", ""),
    TRY.replace("CALL", "doubled(x) + x[9]"),
    TRY.replace("k = CALL", "k = 1.0\n    swapped(xs, 0, int(n))"),
    "def h(v):\n    xs.append(v)\n    return xs[9]\n" + TRY.replace("CALL", "h(n)"),
    "k = last_with(xs, taken(xs)); return xs, k",
    "k = put(xs, taken(xs)); return xs, k",
    "k = put(k=taken(xs), xs=xs); return xs, k",
    "k = put(xs, k=put(xs, put(xs, xs.pop()))); return xs, k",
    "b = Box(1.0); k = b.add(b.add(n)); return b.a, k",
    "b = Box(1.0); k = b.into(xs, b.add(n)); return b.a, xs, k",
    "k = sum(xs) + taken(xs) + sum(xs); return xs, k",
    "h = lambda: x.sum(); x[0] = n; return h()",
    "hs = [lambda: xs[0]]; xs[0] = n; return hs[0]()",
    "x[0] = n; h = total_of(x); return h()",
    "b = Box(1.0); b.put(n); h = b.get; return h()",
    "k = with_default(n, xs); return xs, k",
    "a = given().copy(); a[1] = n; return given(), a",
    "b = Box([n]); b.a.append(n); return b.a, Box.shared",
    "a = zip(xs, xs); return list(a)",
    "a = list(zip(xs, xs)); return a, a",
    "k = 0\nfor i in range(2):\n    for j, v in enumerate(xs):\n        k += j\nreturn k",
    "a = map(lambda v: v + 1, xs); xs.append(n); return xs, xs",
    "k = total(pairs(xs)) + total(pairs(xs)); return k",
    "def h(i):\n    np.add.at(x, i, n)\nh(0); h([1, 1]); return x",
    "def h(i):\n    def k():\n        np.maximum.at(x, i, n)\n    k()\nh([0]); return x",
    "rows = [x, x * 2.0]; np.add.at(rows[1], [0, 0], n); return rows",
    "b = Box(np.ones(3)); np.add.at(b.a, [0], n); return b.a",
]


def _function(tmp_path: Path, body: str) -> ModuleType:
    lines = body.replace("; ", "\n").split("\n")
    return _module(tmp_path / "program.py", CLASSES + "\ndef f(x, xs, g, n):\n" + "".join(f"    {x}\n" for x in lines))


@pytest.mark.parametrize("body", REFUSED)
def test_what_differs_from_python_is_refused(body: str, tmp_path: Path) -> None:
    module = _function(tmp_path, body)
    with pytest.raises(rl.RelayError, match=REFUSED[body]):
        rl.relay(module.f).interpret(*_given())


@pytest.mark.parametrize("body", SAME)
def test_what_python_gives_is_given(body: str, tmp_path: Path) -> None:
    module = _function(tmp_path, body)
    found = rl.relay(copy.copy(module.f)).interpret(*_given())
    ours, theirs = (list(map(np.asarray, leaves(v))) for v in (found, module.f(*_given())))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
