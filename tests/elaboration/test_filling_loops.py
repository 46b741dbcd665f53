"""Loops that fill lists: elaborated once if all rounds have one type, with all that is known of the lists' lengths."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from agreement import assert_close

import relay as R
from relay import relay
from relay.ir.traverse import count_bindings
from relay.ir.types import show

X = np.random.default_rng(7).standard_normal((40, 4))
W = np.random.default_rng(8).standard_normal((4, 4)) * 0.3

HEAD = """
    h, hs = np.zeros(4), []
    for x in xs:
        h = np.tanh(h @ w + x)
        hs.append(h)
"""

# the body of f(xs, w), and the shape of its result if that is a tensor
PROGRAMS = {
    "stack": (HEAD + "    return np.stack(hs)", "(40, 4)"),
    "array": (HEAD + "    return np.array(hs)[1:] - np.stack(hs)[:-1]", "(39, 4)"),
    "stack at another axis": (HEAD + "    return np.stack(hs, axis=1)", "(4, 40)"),
    "concatenate": (HEAD + "    return np.concatenate(hs)", "(160,)"),
    "sizes of what follows": (HEAD + "    return np.stack(hs) * xs + np.ones((len(hs), 4))", "(40, 4)"),
    "items": (HEAD + "    return hs[-1] + hs[3] * hs[len(hs) - 2]", "(4,)"),
    "items by a counter": (HEAD + "    for i in range(len(hs)):\n        h = h * 0.5 + hs[i]\n    return h", "(4,)"),
    "the list itself": (HEAD + "    return hs, h", None),
    "reversed": (HEAD + "    for k in reversed(hs):\n        h = np.tanh(h + k)\n    return h", "(4,)"),
    "reversed in place": (HEAD + "    hs.reverse()\n    return np.stack(hs)", "(40, 4)"),
    "zip": (
        HEAD + "    ys = [x * 2.0 for x in xs]\n    for a, b in zip(hs, ys):\n"
        "        h = h * 0.5 + a * b\n    return h",
        "(4,)",
    ),
    "slices": (HEAD + "    return np.stack(hs[1:]) - np.stack(hs[:-1]) + np.stack(hs[:39])", "(39, 4)"),
    "changes": (HEAD + "    hs.pop()\n    hs.insert(0, h)\n    hs[2] = np.ones(4)\n    return np.stack(hs)", "(40, 4)"),
    "joined lists": (HEAD + "    return np.stack(hs + hs)", "(80, 4)"),
    "two appends": (
        "    a = []\n    for x in xs:\n        a.append(x @ w)\n        a.append(x)\n    return np.stack(a)",
        "(80, 4)",
    ),
    "two lists": (
        "    a, b = [], []\n    for x in xs:\n        a.append(x @ w)\n        b.append(x.sum())\n"
        "    return np.stack(a) * np.array(b)[:, None]",
        "(40, 4)",
    ),
    "on both paths": (
        "    a = []\n    for x in xs:\n        if x.sum() > 0:\n            a.append(x @ w)\n        else:\n"
        "            a.append(x)\n    return np.stack(a) + xs",
        "(40, 4)",
    ),
    "on one path": (
        "    a = []\n    for x in xs:\n        if x.sum() > 0:\n            a.append(x @ w)\n    return np.stack(a)",
        "(Any, 4)",
    ),
    "rounds chosen by a number": (
        "    a = [np.tanh(xs[i % 40] @ w) for i in range(300) if i % 7 == 0 and i > 3]\n"
        "    return np.stack(a) + np.ones((42, 4))",
        "(42, 4)",
    ),
    "rounds that continue": (
        "    a, s = [], 0.0\n    for i in reversed(range(300)):\n        if i * i > 20000 or i == 3:\n"
        "            continue\n"
        "        a.append(np.tanh(xs[i % 40] @ w) * i)\n        s += a[-1].sum()\n    return np.stack(a) * s",
        "(141, 4)",
    ),
    "numbers that end a loop": (
        "    a = []\n    for i in range(300):\n        if i % 3 == 0:\n            a.append(np.tanh(xs[i % 40] @ w))\n"
        "            if i > 100 and a[-1].sum() > 0.0:\n                break\n    return np.stack(a)",
        "(Any, 4)",
    ),
    "break": (
        "    a = []\n    for x in xs:\n        a.append(x @ w)\n        if x.sum() > 2.0:\n            break\n"
        "    return np.stack(a)",
        "(Any, 4)",
    ),
    "filled in arms": (
        "    a = []\n    if xs.sum() > 0.0:\n        for x in xs:\n            a.append(x @ w)\n    else:\n"
        "        for x in xs:\n            a.append(x)\n    return np.stack(a)",
        "(40, 4)",
    ),
    "tuples": ("    return [(x @ w, x.sum()) for x in xs]", None),
    "tuples that are read": (
        "    s = 0.0\n    for a, b in [(x @ w, x.sum()) for x in xs]:\n        s += a.sum() * b\n    return s",
        "()",
    ),
    "scalars": ("    a = [x.sum() for x in xs]\n    return sum(a) + max(a) * min(a)", "()"),
    "rows of rows": ("    return np.array([[x.sum() * w[j, j] for j in range(4)] for x in xs])", "(40, 4)"),
    "long rows of rows": ("    return np.array([[x.sum() * y.sum() for y in xs] for x in xs])", "(40, 40)"),
    "nested lists": ("    return [[x * j for j in range(3)] for x in xs]", None),
    "nested loops": (
        "    a = []\n    for x in xs:\n        for j in range(4):\n            a.append(x[j])\n"
        "    return np.array(a).reshape(40, 4)",
        "(40, 4)",
    ),
    "lists of layers": (
        "    for _ in range(3):\n        a, h = [], np.zeros(4)\n        for x in xs:\n"
        "            h = np.tanh(x @ w + h)\n"
        "            a.append(h)\n        xs = np.stack(a)\n    return xs",
        "(40, 4)",
    ),
    "a list in a dict": (
        "    d = {'a': [], 'b': 0.0}\n    for x in xs:\n        d['a'].append(x @ w)\n        d['b'] += x.sum()\n"
        "    return np.stack(d['a']) * d['b']",
        "(40, 4)",
    ),
    "extend": ("    a = []\n    for x in xs:\n        a.extend([x.sum(), x[0]])\n    return np.array(a)", "(80,)"),
    "a = a + [x]": ("    a = []\n    for x in xs:\n        a = a + [x.sum()]\n    return np.array(a)", "(40,)"),
    "recurrences": (
        "    a = [1.0, 1.0]\n    for i in range(2, 40):\n        a.append(0.5 * a[i - 1] + 0.4 * a[-2] + xs[i, 0])\n"
        "    return np.array(a)",
        "(40,)",
    ),
    "functions": (
        "    fs, s = [], 0.1\n    for i in range(40):\n        fs.append(lambda z, i=i: np.tanh(z * i + xs[i].sum()))\n"
        "    for g in fs:\n        s = g(s)\n    return s",
        "()",
    ),
    "a local function": (
        "    def joined(parts):\n        return np.stack(parts)\n"
        "    return joined([x @ w for x in xs]) - joined([x for x in xs])",
        "(40, 4)",
    ),
    "unpacked": (
        "    a = [np.tanh(x @ w + np.sin(x)).sum() for x in xs]\n    p, q, *r = a\n"
        "    return p + q * len(r)",
        "()",
    ),
    "reversed rows": (
        "    h = np.zeros(4)\n    for x in reversed(xs):\n        h = np.tanh(h @ w + x)\n"
        "    return h",
        "(4,)",
    ),
    "reversed ranges": (
        "    s = 0.0\n    for i in reversed(range(1, 40, 3)):\n        s = np.tanh(s + xs[i, 0])\n"
        "    for i in reversed(range(0)):\n        s = s + 1.0\n    return s",
        "()",
    ),
}  # fmt: skip

# whose rounds have types of their own, and are copied
COPIED = {
    "slices of several sizes": (
        "    a = []\n    for i in range(20):\n        a.append(np.tanh(np.sin(xs[:i + 1]) + np.exp(xs[:i + 1])))\n"
        "    return [b.sum() for b in a], a[7]",
        None,
    ),
    "a value that grows": (
        "    h, a = xs[:1], []\n    for i in range(12):\n"
        "        h = np.concatenate([h, np.tanh(xs[i:i + 1] @ w) + np.sin(h[:1])])\n"
        "        a.append(h.sum())\n    return np.stack(a) * h.sum()",
        "(12,)",
    ),
    "a parameter each": (
        "    ps = (w, w[:3], w[:2, :3])\n    h, a = xs[0], []\n    for i in range(3):\n"
        "        h = ps[i] @ h\n        a.append(h)\n"
        "    return a",
        None,
    ),
    "backwards": (
        "    h = xs[:8]\n    for i in reversed(range(7)):\n        h = np.tanh(h[1:] - h[:-1]) + xs[:i + 1] @ w\n"
        "    return h",
        "(1, 4)",
    ),
    "texts": (
        "    a, s = [], 0.0\n    for i in range(40):\n        a.append('even' if i % 2 == 0 else 'odd')\n"
        "        s += 1.0 if a[i] == 'even' else np.sin(xs[i].sum() + np.cos(s))\n    return s",
        "()",
    ),
    "numbers": (
        ""
        "    return xs[[i // 2 for i in range(40)]] + np.ones([4 * (j + 9) for j in range(2)])[0, :1]",
        "(40, 4)",
    ),
    "list(range)": (
        "    s = np.zeros(4)\n    for i in list(range(40)):\n        s = np.tanh(s @ w + xs[i]) * i\n    return s",
        "(4,)",
    ),
    "list(enumerate)": (
        "    s = np.zeros(4)\n    for i, x in list(enumerate(xs)):\n        s = np.tanh(s @ w + x) * i\n    return s",
        "(4,)",
    ),
    "list(zip)": (
        "    s = np.zeros(4)\n    for a, b in list(zip(xs, xs * 2)):\n        s = np.tanh(s @ w + a) * b\n    return s",
        "(4,)",
    ),
    "list(tensor)": ("    return np.stack(list(xs)) + np.stack(sorted(list(xs), key=lambda x: x.sum()))", "(40, 4)"),
    "numbers that are no range": (
        "    s = np.zeros(4)\n    for i in [k * k % 40 for k in range(80)]:\n"
        "        s = np.tanh(s @ w + xs[i]) * i\n    return s",
        "(4,)",
    ),
    "numbers beside elements": (
        "    s = np.zeros(4)\n    for i, x in zip(list(range(40, 0, -1)), xs):\n"
        "        s = np.tanh(s @ w + x) * i\n    return s",
        "(4,)",
    ),
    "a list as an index": ("    return xs[[i // 4 for i in range(300) if i < 160]] + xs[[3, len(xs) - 1]].sum()", None),
    "a long list as an index": (
        "    return xs[[i // 8 for i in range(300)]] + xs[[i % 7 for i in range(300)]]",
        "(300, 4)",
    ),
    "the largest by a key": (
        "    i, j = max(range(40), key=lambda i: xs[i, 0]), min(range(len(xs)), key=lambda i: xs[i, 1])\n"
        "    k, x = max(enumerate(xs), key=lambda p: p[1][2])\n"
        "    return xs[i] + xs[j] * k + x + max(zip(xs[:, 0], range(40)))[1]",
        "(4,)",
    ),
    "sorted by a key": (
        "    order = sorted(range(40), key=lambda i: xs[i, 0])\n"
        "    values = sorted(zip(xs[:, 0], xs[:, 1]))\n"
        "    return xs[order] + np.array([a + b for a, b in values])[:, None]",
        "(40, 4)",
    ),
    "all of a range": (
        "    return (sum(range(40)) + max(range(len(xs))) + min(range(3, 90, 2))) * np.array(range(40)) * xs[:, 0]",
        "(40,)",
    ),
    "known conditions": ("    return np.stack([xs[i] for i in range(6) if i % 2 == 0])", "(3, 4)"),
}  # fmt: skip


def source(body: str) -> str:
    return "def f(xs, w):\n" + body.strip("\n") + "\n"


def in_relay_and_python(text: str) -> tuple[Any, Any]:
    """The function of this text in Relay, and in Python."""
    names: dict[str, Any] = {"np": np, "relay": relay}
    made = R.from_source(text, names)
    python = dict(names)
    exec(textwrap.dedent(text), python)
    return made, python["f"]


@pytest.mark.parametrize("name", [*PROGRAMS, *COPIED])
def test_lists_hold_what_python_has(name: str) -> None:
    body, shape = (PROGRAMS | COPIED)[name]
    made, python = in_relay_and_python(source(body))
    if shape is not None:
        assert show(made.typed(X, W).main.result).removeprefix("Tensor[float64, ").removesuffix("]") == shape
    assert_close(made.interpret(X, W), python(X, W), rtol=1e-9, atol=1e-12)


def test_compiled_programs_agree() -> None:
    """Many of them in one program, as compilation of each would take longer."""
    names = ["concatenate", "items by a counter", "reversed", "zip", "slices", "changes", "two appends", "on one path"]
    names += ["break", "filled in arms", "tuples that are read", "long rows of rows", "a list in a dict", "recurrences"]
    pairs = [in_relay_and_python(source(PROGRAMS[name][0])) for name in names]
    scope = {"np": np, "relay": relay}
    made = {f"f{i}": function for i, (function, _) in enumerate(pairs)}
    expected = [python(X, W) for _, python in pairs]
    calls = ", ".join(f"{name}(xs, w)" for name in made)
    whole = R.from_source(f"def f(xs, w):\n    return ({calls})\n", scope | made)
    assert_close(whole(X, W), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["stack", "items", "reversed", "two lists", "on both paths", "rows of rows"])
def test_derivatives_of_first_and_second_order(name: str) -> None:
    made, _ = in_relay_and_python(source(PROGRAMS[name][0]))
    scope = {"np": np, "relay": relay, "f": made}
    loss = R.from_source("def loss(xs, w):\n    return (f(xs, w) ** 2).sum()\n", scope)
    gradient = relay.grad(loss, wrt=1)
    few = X[:12]
    found, step = np.asarray(gradient(few, W)), 1e-6
    np.testing.assert_allclose(found, gradient.interpret(few, W), rtol=1e-9)
    direction = np.arange(16.0).reshape(4, 4) / 16
    slope = (loss.interpret(few, W + step * direction) - loss.interpret(few, W - step * direction)) / (2 * step)
    np.testing.assert_allclose((found * direction).sum(), slope, rtol=1e-5)
    along = R.from_source("def along(xs, w, d):\n    return (g(xs, w) * d).sum()\n", scope | {"g": gradient})
    second = relay.grad(along, wrt=1)
    curvature = (gradient.interpret(few, W + step * direction) - gradient.interpret(few, W - step * direction)) / (
        2 * step
    )
    np.testing.assert_allclose(second.interpret(few, W, direction), curvature, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["stack", "sizes of what follows", "reversed", "the list itself", "zip", "changes"])
def test_one_program_for_all_lengths(name: str) -> None:
    body = PROGRAMS[name][0]
    made, python = in_relay_and_python(source(body))
    for length in (3, 6, 20, 40, 7, 31):
        assert_close(made.interpret(X[:length], W), python(X[:length], W), rtol=1e-9, atol=1e-12)
    assert [bool(program.guards) for program in made.programs()] == [False, True]  # one for three rows, one for any


def test_lengths_are_symbolic() -> None:
    made, _ = in_relay_and_python(source(PROGRAMS["stack"][0]))
    made.interpret(X[:5], W)
    made.interpret(X[:6], W)
    lowered = made.lower(X[:7], W)
    assert show(lowered.typed.main.result) == "Tensor[float64, (xs_0, 4)]"


def test_rounds_do_not_make_programs_larger() -> None:
    """From some number of rounds on, a program has one size; before, it grows by what a small body costs."""
    body = (
        HEAD.replace("for x in xs", "for i in range({n})").replace("+ x)", "+ xs[i % 4])") + "    return np.stack(hs)"
    )

    def size(rounds: int) -> int:
        made = R.from_source(source(body.replace("{n}", str(rounds))), {"np": np, "relay": relay})
        return sum(count_bindings(f.body) for f in made.core(X, W).functions.values())

    sizes = {n: size(n) for n in (4, 8, 12, 16, 32, 64, 256, 1024)}
    assert len({sizes[n] for n in (32, 64, 256, 1024)}) == 1
    assert max(sizes.values()) <= 160


NESTED = """
    total = 0
    for i in range({n}):
        for j in range({n}):
            stack = [i * j]
            while stack:
                k = stack.pop()
                total += k
                if k > 3:
                    stack.append(k // 2)
    return total
"""

FLOOD_FILL = """
    h, w_ = xs.shape
    labels = np.zeros((h, w_), dtype=np.int32)
    count = 0
    for i in range(h):
        for j in range(w_):
            if xs[i, j] > 0.0 and labels[i, j] == 0:
                count += 1
                labels[i, j] = count
                stack = [(i, j)]
                while stack:
                    r, c = stack.pop()
                    for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                        y, x = r + dr, c + dc
                        if 0 <= y and y < h and 0 <= x and x < w_:
                            if xs[y, x] > 0.0 and labels[y, x] == 0:
                                labels[y, x] = count
                                stack.append((y, x))
    return labels, count
"""


def test_lists_of_a_round_are_no_reason_for_copies() -> None:
    """Neither of the loops around a list that begins in each round is copied."""
    sizes = set()
    for n in (4, 16, 40):
        made, python = in_relay_and_python(source(NESTED.replace("{n}", str(n))))
        sizes.add(sum(count_bindings(f.body) for f in made.core(X, W).functions.values()))
        if n < 40:
            assert_close(made.interpret(X, W), python(X, W), rtol=1e-9, atol=1e-12)
    assert len(sizes) == 1


def test_a_flood_fill() -> None:
    made, python = in_relay_and_python(source(FLOOD_FILL))
    sizes = set()
    for n in (3, 8):
        grid = np.random.default_rng(n).standard_normal((n, n))
        assert_close(made.interpret(grid, W), python(grid, W), rtol=1e-9, atol=1e-12)
        fixed = R.from_source(source(FLOOD_FILL), {"np": np, "relay": relay})
        sizes.add(sum(count_bindings(f.body) for f in fixed.core(grid, W).functions.values()))
    assert len(sizes) == 1
    grid = np.random.default_rng(5).standard_normal((9, 9))
    assert_close(made(grid, W), python(grid, W), rtol=1e-9, atol=1e-12)


def test_a_mistake_in_a_round_is_told_once() -> None:
    text = "    hs = []\n    for x in xs:\n        hs.append(x @ np.ones((7, 8)))\n    return np.stack(hs)"
    made, _ = in_relay_and_python(source(text))
    with pytest.raises(R.RelayError) as found:
        made.interpret(X, W)
    assert "inner extents 4 and 7 differ" in str(found.value) and len(found.value.diagnostics) == 1
