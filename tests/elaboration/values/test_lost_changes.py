"""Changes that a function makes before it fails are lost: a handler around its call must not read them.

Everything may fail that is not known to be sure; the program then gives what Python gives, or is refused.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import relay as rl

HEAD = """
import enum
import functools
import heapq
import math
import operator

import numpy as np

class Color(enum.Enum):
    RED = 1
    BLUE = 2

class Numbers:
    def __init__(self, n):
        self.items = [q for q in range(n)]
        self.n = n

    def mean(self):
        return sum(self.items) // self.n

    @property
    def last(self):
        return self.items[-1]

    def __getitem__(self, i):
        return self.items[i]

def pick(n):
    return None if n > 2 else 1.0

def deeper(ys, n):
    return ys[n]
"""

NUMBERS, FLOATS, TABLE = "[q for q in range(n)]", "[float(q) for q in range(n)]", "{q: 1.0 for q in range(n)}"

FAILING = [
    ("v = max(ys)", NUMBERS, 0),
    ("v = max(q for q in ys if q > 9)", NUMBERS, 3),
    ("v = min(ys, key=lambda q: -q)", NUMBERS, 0),
    ("v = min(ys)", "set([q for q in range(n)])", 0),
    ("v = max(ys.values())", TABLE, 0),
    ("v = ys.pop()", NUMBERS, 0),
    ("v = ys.pop(5)", NUMBERS, 2),
    ("v = next(q for q in ys if q > 9)", NUMBERS, 2),
    ("v = next(iter(ys))", NUMBERS, 0),
    ("v = heapq.heappop(ys)", NUMBERS, 0),
    ("v = int(ys)", "'a' * n", 2),
    ("v = float(ys)", "'a' * n", 2),
    ("v = ord(ys)", "'a' * n", 2),
    ("v = 3 // ys", "n", 0),
    ("v = 3 % ys", "n", 0),
    ("v, w = divmod(3, ys)", "n", 0),
    ("v = operator.floordiv(3, ys)", "n", 0),
    ("v = (lambda a: a // ys)(3)", "n", 0),
    ("v = [a // ys for a in range(2)]", "n", 0),
    ("v = list(map(lambda a: a // ys, [1, 2]))", "n", 0),
    ("v = sorted([1, 2], key=lambda a: a // ys)", "n", 0),
    ("v = f'{3 // ys}'", "n", 0),
    ("while 3 // ys > 1: ys += 1", "n", 0),
    ("v = ys[5]", FLOATS, 4),
    ("ys[5] = 1.0", FLOATS, 4),
    ("del ys[5]", FLOATS, 4),
    ("v = ys[int(ys[0])]", "np.zeros(3) + n", 8),
    ("v = (1, 2, 3)[ys]", "n", 5),
    ("v = ys[3]", "'ab' * n", 1),
    ("v = ys[5]", TABLE, 4),
    ("ys[5] += 1.0", TABLE, 4),
    ("del ys[5]", TABLE, 4),
    ("v = ys.popitem()", TABLE, 0),
    ("ys.remove(5)", "set([q for q in range(n)])", 4),
    ("ys.remove(5)", NUMBERS, 4),
    ("v = ys.index(5)", NUMBERS, 4),
    ("v = (1, 2, 3).index(ys)", "n", 5),
    ("v = ys.index('b')", "'a' * n", 5),
    ("if ys > 1: raise ValueError('no')", "n", 5),
    ("assert ys < 3", "n", 5),
    ("a, b = ys", NUMBERS, 3),
    ("a, b, *c = ys", NUMBERS, 1),
    ("a, b = ys.split(',')", "'a' * n", 1),
    ("v = functools.reduce(lambda a, b: a + b, ys)", NUMBERS, 0),
    ("v = int(ys)", "np.float64(n) * np.nan", 5),
    ("v = math.floor(ys)", "np.float64(n) * np.inf", 5),
    ("v = np.max(ys[ys > 1.0])", "np.zeros(3) * n", 5),
    ("v = ys[ys > 0] + ys[ys < 2]", "np.arange(5.0) * n", 1),
    ("v = pick(ys) + 1.0", "n", 3),
    ("v = Color(ys)", "n", 8),
    ("v = deeper(ys, 5)", NUMBERS, 3),
    ("v = Numbers(ys).mean()", "n", 0),
    ("v = Numbers(ys).last", "n", 0),
    ("v = Numbers(ys)[3]", "n", 0),
]
"""Statements that fail, what `ys` is in them, and n."""

SURE = [
    "v = n + 1",
    "v = n * 2 - n % 3 + n // 2",
    "v = 1.5 * float(n) + max(n, 2)",
    "v = len(xs) + sum(xs) + abs(n)",
    "v = np.sin(0.5 * n) + math.cos(0.25 * n)",
    "v = n if n > 2 else 3",
    "v = f'{n} {n:>3}'",
    "xs.append(3.0); xs.insert(0, 2.0)",
    "for i in range(len(xs)): xs[i] = xs[i] * 2.0",
    "for i, q in enumerate(xs): n += i",
    "v = [q for q in xs if q > 0.0]",
    "v = (lambda a: a + n)(3)",
    "n = Numbers(n).n",
    "v = {n: 1.0}; v[n + 1] = 2.0",
    "k = n + 1; v = {n: 1.0}; v[k] = 2.0; v[k] += 1.0; del v[k]",
    "v = {n: 1.0}; w = v.pop(n + 1, 2.0)",
    "v = 'a' if n > 2 else 'bb'; v = v.upper() + v.strip()",
]
"""Statements that never fail: what is changed before them is not lost."""


def _module(tmp_path: Path, statement: str, made: str) -> ModuleType:
    lines = "".join(f"    {line}\n" for line in statement.split("; "))
    text = f"""{HEAD}
def g(xs, n, ys):
    if n < 0:
        raise ValueError("negative")
    xs.append(1.0)
{lines}
def program(n, m):
    xs = [1.0]
    try:
        g(xs, n, {made})
        g(xs, m, {made})
    except Exception:
        return len(xs) + 100
    return len(xs)

def unread(n):
    xs = [1.0]
    try:
        g(xs, n, {made})
    except Exception:
        return 100
    return len(xs)
"""
    return _imported(tmp_path, text)


def _imported(tmp_path: Path, text: str) -> ModuleType:
    path = tmp_path / "program.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("statement", "made", "n"), FAILING)
def test_changes_before_what_fails_are_not_read(statement: str, made: str, n: int, tmp_path: Path) -> None:
    module = _module(tmp_path, statement, made)
    assert module.program(n, n) == 102
    with pytest.raises(rl.RelayError, match="an error in `g` loses its changes of `xs`"):
        rl.relay(module.program).interpret(n, n)
    assert int(rl.relay(module.unread).interpret(n)) == 100


@pytest.mark.parametrize("statement", SURE)
def test_changes_before_what_is_sure_are_kept(statement: str, tmp_path: Path) -> None:
    module = _module(tmp_path, statement, "n")
    for m in (3, -1):
        assert int(rl.relay(module.program).interpret(3, m)) == module.program(3, m)


MAYBE = [
    ("ys", "v = ys[n]", [1.0, 2.0], IndexError),
    ("{n + 1: 1.0}", "ys[n] = 2.0", None, KeyError),
    ("{n + 1: 1.0, n + 2: 1.0}", "v = ys[n]", None, KeyError),
]


@pytest.mark.parametrize("where", ["if m > 0", "for i in range(m)", "while m > 0"])
@pytest.mark.parametrize(("made", "statement", "given", "error"), MAYBE)
def test_an_index_that_a_branch_has_used_may_fail_behind_it(  # type: ignore[no-untyped-def]
    made, statement, given, error, where, tmp_path: Path
) -> None:
    text = f"""
def g(xs, ys, n, m):
    {where}:
        {statement}
        m -= 1
    xs.append(1.0)
    return ys[n]

def program(ys, n, m):
    xs = [1.0]
    try:
        g(xs, {made}, n, m)
    except {error.__name__}:
        pass
    return len(xs)
"""
    module = _imported(tmp_path, text)
    assert module.program(given, 5, 0) == 2
    with pytest.raises(rl.RelayError, match="an error in `g` loses its changes of `xs`"):
        rl.relay(module.program).interpret(given, 5, 0)


SHORTER = [
    "for i in range(len(ys)):\n        xs.append(1.0)\n        v = ys[i]\n        ys.pop()",
    "m = len(ys)\n    ys.pop()\n    for i in range(m):\n        xs.append(1.0)\n        v = ys[i]",
    "for i in range(len(ys)):\n        v = ys[i]\n        xs.append(1.0)\n        ys = ys[1:]\n        v = ys[i]",
    "v = ys[1]\n    xs.append(1.0)\n    ys.clear()\n    v = ys[1]",
    "i = 1\n    v = ys[i]\n    xs.append(1.0)\n    i += 1\n    v = ys[i]",
]


@pytest.mark.parametrize("body", SHORTER)
def test_an_index_may_fail_in_a_list_that_is_shorter_by_then(body: str, tmp_path: Path) -> None:
    text = f"""
def g(xs, ys):
    {body}

def program(ys: list[int]):
    xs = [1.0]
    try:
        g(xs, ys)
    except IndexError:
        pass
    return len(xs)
"""
    module = _imported(tmp_path, text)
    assert module.program([1, 2]) > 1
    with pytest.raises(rl.RelayError, match="an error in `g` loses its changes of `xs`"):
        rl.relay(module.program).interpret([1, 2])
