"""Warnings of `relay check` for bindings that are never used, and for statements without an effect."""

from __future__ import annotations

import textwrap

import pytest

from relay.api.static_check import check_text


def unused(body: str, **further: str) -> list[str]:
    """The warnings for a function's body, each with its line in the body."""
    text = "from relay import relay, Tensor, Float\nimport numpy as np\n"
    text += "".join(f"{definition}\n" for definition in further.values())
    head = text + "@relay\ndef f(x: Tensor[Float, (2,)], y, c: bool):\n"
    lines = head.count("\n")
    found = check_text(head + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n", "unused.py")
    assert not [d for d in found if d.severity == "error"], found
    return [f"{d.span.line - lines}:{d.span.column - 4} {d.message}" for d in found if d.code == "unused" and d.span]


NEVER = "is never used and has no effect"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = x + 1.0\nreturn x", [f"1:1 `a` {NEVER}"]),
        ("a = relay.tanh(x)\nb = np.exp(x)\nreturn x", [f"1:1 `a` {NEVER}", f"2:1 `b` {NEVER}"]),
        ("a = x\na = x * 2.0\nreturn a", [f"1:1 this value of `a` {NEVER}"]),
        ("relay.tanh(x)\nreturn x", [f"1:1 this value {NEVER}"]),
        ("x.sum()\nlen((x, x))\nreturn x", [f"1:1 this value {NEVER}", f"2:1 this value {NEVER}"]),
        ("def g(v):\n    return v\nreturn x", [f"1:1 `g` {NEVER}"]),
        ("g = lambda v: v\nreturn x", [f"1:1 `g` {NEVER}"]),
        ("def g(v):\n    w = v\n    return v\nreturn g(x)", [f"2:5 `w` {NEVER}"]),
        ("if c:\n    a = x\nelse:\n    a = x * 2.0\nreturn x", [f"2:5 `a` {NEVER}", f"4:5 `a` {NEVER}"]),
        ("for i in range(3):\n    a = x[0]\nreturn x", [f"2:5 `a` {NEVER}"]),
        ("a: Tensor[Float, (2,)] = x\nreturn x", [f"1:1 `a` {NEVER}"]),
        ("r = relay.ref(x)\nreturn x", [f"1:1 `r` {NEVER}"]),
        # what has an effect, or may have one, or is not a mistake
        ("_a = x + 1.0\na, b = x\nreturn a", []),
        ("for i in range(3):\n    x = x * 2.0\nreturn x", []),
        ("r = relay.ref(x)\nr.value = x\nrelay.write(r, x)\nreturn x", []),
        ("print(x)\nassert c, 'text'\nreturn x", []),
        ("if (a := x.sum()) > 0.0:\n    return x\nreturn x", []),
        ("n = 0\nwhile c:\n    n = n + 1\nreturn x", []),
        ("xs = []\nfor i in range(3):\n    xs.append(x)\nreturn x", []),
    ],
)
def test_unused_bindings(body: str, expected: list[str]) -> None:
    assert unused(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("xs = [x]\nxs.append(x)\nreturn x", [f"2:1 this change of `xs` {NEVER}"]),
        ("x[0] = 1.0\nreturn 1.0", [f"1:1 this change of `x` {NEVER}"]),
        ("xs = [x]\nfor i in range(3):\n    xs.append(x)\nreturn xs", []),
        ("if c:\n    pass\nreturn x", ["1:1 this `if` has no effect"]),
        ("for _ in range(3):\n    ...\nreturn x", ["1:1 this loop has no effect"]),
        ("for i in range(3):\n    print(i)\nif c:\n    assert x[0] < 5.0\nreturn x", []),
        ("sorted((x[0], x[1]))\nreturn x", [f"1:1 this value {NEVER}"]),
    ],
)
def test_statements_that_change_nothing(body: str, expected: list[str]) -> None:
    assert unused(body) == expected


def test_calls_of_functions_with_effects() -> None:
    pure = "@relay\ndef g(x):\n    return x * 2.0"
    shows = "@relay\ndef h(x):\n    print(x)\n    return x"
    calls = "@relay\ndef k(x):\n    return h(x)"
    body = "a = g(x)\nb = h(x)\nd = k(x)\nh(x)\ng(x)\nreturn x"
    assert unused(body, pure=pure, shows=shows, calls=calls) == [f"1:1 `a` {NEVER}", f"5:1 this value {NEVER}"]
    recursive = "@relay\ndef g(x):\n    return x if x.sum() > 0.0 else g(x)"
    assert unused("a = g(x)\nreturn x", recursive=recursive) == [f"1:1 `a` {NEVER}"]
    assert unused("a = g(x)\nreturn x", outside="from other import g") == []
