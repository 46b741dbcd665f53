"""Objects with several names: a program gives what Python gives, or is refused; it never gives anything else."""

from __future__ import annotations

import copy
import signal
from types import FrameType
from typing import Any

import numpy as np
import pytest
from generators.alias_programs import PARAMETERS, AliasProgram, Box, arguments
from matrix import quick

import relay as rl
from relay.typecheck.elaboration.aliasing import walk

REFUSED = "in Python"


class Adder:
    """An object that is called."""

    def __init__(self, a: float) -> None:
        self.a = a

    def __call__(self, v: list[float]) -> int:
        v.append(self.a)
        return len(v)

    def put(self, v: list[float]) -> int:
        """The same by its name."""
        v.append(self.a)
        return len(v)


NAMES = {"np": np, "Box": Box, "adder": Adder(1.0)}


def _plain(value: Any) -> Any:
    """A value in which lists, arrays and boxes are Python's lists of floats."""
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(value.a), _plain(value.b)] if isinstance(value, Box) else np.asarray(value, float).tolist()


def _too_long(_: int, __: FrameType | None) -> None:
    raise TimeoutError


def _python(text: str, given: list[Any]) -> Any:
    """What Python gives; None where it raises, or goes on without end."""
    names: dict[str, Any] = {**NAMES, "ref": rl.ref}
    exec(text, names)
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        return _plain(names["f"](*copy.deepcopy(given)))
    except (IndexError, ValueError, TimeoutError, MemoryError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _of_program(text: str) -> Any:
    return rl.from_source(text, {**NAMES, "ref": rl.ref})["f"]


@pytest.mark.parametrize("subject", PARAMETERS)
@pytest.mark.parametrize("block", range(2 if quick() else 6))
def test_random_programs_give_what_python_gives_or_are_refused(subject: str, block: int) -> None:
    for seed in range(block * 5, block * 5 + 5):
        text = AliasProgram(seed, subject).text
        for condition in (True, False):
            given = [np.bool_(condition), 2, *arguments(subject)]
            expected = _python(text, given)
            if expected is None:
                break
            try:
                found = _of_program(text).interpret(*copy.deepcopy(given))
            except rl.TypeCheckError as error:
                assert REFUSED in str(error) or "out of range" in str(error), text
                break
            assert _plain(found) == expected, text


def _text(body: str) -> str:
    lines = body.replace("; ", "\n").split("\n")
    return f"{HELPERS}\ndef f(x, y, xs, g, d, p, n):\n" + "\n".join("    " + line for line in lines) + "\n"


HELPERS = """
def cleared(v):
    v[0] = 0.0
    return v

def same(v):
    return v

def both(a, b):
    a.append(1.0)
    return a, b

def push(a, v):
    a.append(v)

def taken(a):
    return a.pop()

def deeper(a, n):
    if n > 0:
        deeper(a, n - 1)
        push(a, n * 1.0)
    return n

def returned(a, v):
    a[0] = v
    return a, v

def moved(a, b):
    b.append(a.pop())

def behind(a):
    b = [a]
    b[0].append(1.0)

def recursive(a, n):
    if n == 0:
        return 0
    b = [a]
    recursive(a, n - 1)
    k = len(b[0])
    a.append(1.0)
    return k

"""


def _given() -> list[Any]:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    return [x, y, [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]], {"k": [1.0, 2.0]}, Box([1.0], [2.0]), 2]


DIFFERENT = [
    "j = 0\nm = g[j]\nj = 1\nm.append(5.0)\nreturn g",
    "z = y if n > 1 else y; z[0] = 5.0; return y.sum()",
    "z = y[1:3]; z[0] = 9.0; return y",
    "z = x.T; z[0, 1] = 9.0; return x",
    "z = x.reshape(-1); x[0, 0] = 9.0; return z",
    "row = x[0]; x[0] = x[1]; x[1] = row; return x",
    "x[0], x[1] = x[1], x[0]; return x",
    "z = y; np.add.at(z, [0], 1.0); return y",
    "ps = [p, p]; ps[0].a = [1.0]; return ps",
    "grid = [[0.0] * 2] * 2; grid[0][0] = 1.0; return grid",
    "rows = []\nfor i in range(2):\n    rows.append(xs)\nrows[0][0] = 5.0\nreturn rows",
    "q = Box(xs, xs); xs[0] = 9.0; return q",
    "first, rest = g; first.append(9.0); return g",
    "z = y if n > 1 else x[0]; z[0] = 9.0; return y",
    "z = same(xs); z[0] = 9.0; return xs",
    "return both(xs, xs)",
    "z = xs\ndef push(v):\n    z.append(v)\npush(1.0)\nreturn xs",
    "r = ref(xs); xs.append(1.0); return r.value",
    "for v in xs:\n    xs.append(v)\n    if len(xs) > 4:\n        break\nreturn xs",
    "ys = xs.copy(); gs = g.copy(); gs[0][0] = 9.0; return g",
    "zs = xs; zs += [1.0]; return xs",
    "n = adder(xs); return n + len(xs)",
    "n = adder.put(xs); return n + len(xs)",
    "for m in g:\n    n += adder(m)\nreturn n, g",
    "c = x[1:, 0]; e = c[0:1]; x[1:] -= 1.0; return c",
    "zs = xs; push(xs, 1.0); return len(zs)",
    "m = g[0]; push(g[0], 1.0); return m",
    "push(xs if n > 1 else g[0], 1.0); return xs",
    "behind(xs); return xs",
    "moved(xs, xs); return xs",
    "return recursive(xs, n)",
    "fs = [push]; fs[0](xs, 1.0); return xs",
    "q = Box(xs, 0.0); q.put(1.0); return xs",
    "a, k = returned(xs, 2.0); a.append(1.0); return len(xs), k",
    "c = x[1:, 0]; e = [c[0:1]]; x[0:] -= 1.0; return e",
]


@pytest.mark.parametrize("body", DIFFERENT)
def test_what_differs_from_python_is_refused(body: str) -> None:
    with pytest.raises(rl.TypeCheckError, match=REFUSED):
        _of_program(_text(body)).interpret(*_given())


SAME = [
    "z = y; z[0] = 5.0; return y.sum()",
    "zs = xs; zs.append(1.0); return len(xs)",
    "m = g[0]; m.append(5.0); return g",
    "e = d; e['k'] = [9.0]; return d",
    "row = d['k']; row[0] = 9.0; return d",
    "best = y\nfor i in range(2):\n    y[i] = 7.0\nreturn best",
    "q = p; q.a = [5.0]; return p",
    "a = p.a; a.append(5.0); return p",
    "for i in range(2):\n    row = x[i]\n    row[0] = 7.0\nreturn x",
    "for i in range(2):\n    m = g[i]\n    m.append(1.0)\n    push(m, 2.0)\nreturn g",
    "z = y\nif n > 5:\n    z[0] = 1.0\nreturn y",
    "z = y\ny = y * 2.0\nz[0] = 5.0\nreturn y, z",
    "z = y; return [z[0] for z in x], z",
    "prev = y\nfor i in range(2):\n    y = y * 2.0\n    prev = y\nprev[0] = 9.0\nreturn prev",
    "z = y; z[0] = 5.0; return z.sum()",
    "z = y.copy(); z[0] = 5.0; return y, z",
    "z = y * 1.0; y[0] = 5.0; return y, z",
    "z = y[np.array([0, 1])]; z[0] = 9.0; return y, z",
    "row = x[0].copy(); x[0] = x[1]; x[1] = row; return x",
    "y[0], y[1] = y[1], y[0]; return y",
    "g[0], g[1] = g[1], g[0]; g[0][0] = 9.0; return g",
    "m = g[0]; m.append(5.0); g[0] = m; return g",
    "i = n; i += 1; return i, n",
    "for m in g:\n    m.append(1.0)\nreturn g",
    "for i, v in enumerate(xs):\n    xs[i] = v * 2.0\nreturn xs",
    "rows = []\nfor v in xs:\n    row = []\n    for w in xs:\n        row.append(w)\n    rows.append(row)\nreturn rows",
    "todo = [[1.0]]\nout = []\nwhile todo:\n    cur = todo.pop()\n    cur.append(2.0)\n    out.append(cur)\nreturn out",
    "g[0][1] += 1.0; g[n - 1].append(3.0); return g",
    "y = cleared(y); return y",
    "a, b = x[0].sum(), y; a, b = b, a; return a, b",
    "z = cleared(y); return y + z",
    "push(xs, 3.0); push(g[0], 4.0); push(d['k'], v=5.0); push(p.a, 6.0); return xs, g, d, p",
    "n = taken(g[n - 1]); return n, g",
    "both(xs, g[0]); return xs, g",
    "deeper(xs, n); return xs",
    "p.put(7.0); p.put(8.0); return p",
    "pair = [p, Box(xs, xs.copy())]; pair[1].put(1.0); return pair",
    "def fill(v, i):\n    v[i] = 9.0\n    return i\nk = fill(y, 1) + fill(x[0], 0)\nreturn k, y, x",
    "def visit(k):\n    if k > 0:\n        push(xs, 1.0)\n        visit(k - 1)\nvisit(n)\nreturn xs",
    "if taken(xs) > 1.0 and taken(xs) > 0.5:\n    push(xs, 4.0)\nreturn xs",
    "while len(xs) > 0 and taken(xs) > 0.5:\n    push(g[0], 1.0)\nreturn xs, g",
    "for i in range(n):\n    push(g[i], taken(xs))\nreturn xs, g",
    "a, k = returned(xs, 2.0); push(xs, 1.0); return len(xs), k",
    "n = xs[0] + taken(xs) + (xs[0] if len(xs) > 0 else 0.0); return n, xs",
    "return deeper(xs, n), xs",
    "previous = y\nfor i in range(2):\n    previous, y = y, y + previous\nreturn previous, y",
    "p.a[0] = 3.0; p.b.append(1.0); return p",
    "for k in range(2):\n    c = x[k:, k]\n    s = 1.0 if c[0] > 1.0 else -1.0\n    x[k:] -= s\nreturn x",
]


@pytest.mark.parametrize("body", SAME)
def test_what_python_gives_is_given(body: str) -> None:
    text = _text(body)
    assert _plain(_of_program(text).interpret(*_given())) == _python(text, _given())


def test_sums_in_place_are_warned_of() -> None:
    text = _text("z = y; z += 1.0; return y, z")
    with pytest.warns(rl.RelayWarning, match="write `z = z \\+ ..`"):
        found = _of_program(text).interpret(*_given())
    assert _plain(found) == [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]


def test_the_error_names_both_places() -> None:
    with pytest.raises(rl.TypeCheckError) as caught:
        _of_program(_text("z = y[1:]; z[0] = 5.0; return y")).interpret(*_given())
    assert "`y` sees the change of `z`" in str(caught.value) and "z = z.copy()" in str(caught.value)


def test_a_function_that_is_too_long_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MOST_STEPS", 3)
    with pytest.warns(rl.RelayWarning, match="f is too long to look for changes under other names in it"):
        _of_program(_text("z = y.copy(); z[0] = 5.0; return y, z")).interpret(*_given())
