"""Programs that grow: the work of a compilation grows as their text does, whatever the calls hand down."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_agree, assert_close

import relay

BODIES = {
    "integers": ("x * n + 1.0", "{f}(x, 2) + {f}(x, 3) * n", "1"),
    "floats": ("x * n + 1.0", "{f}(x, 0.5) + {f}(x, 1.5) * n", "2.0"),
    "both": ("x * n + 1.0", "{f}(x, 2) + {f}(x, 1.5) * n", "2"),
    "sums": ("x * n", "{f}(x, n + 1) + {f}(x, n * 2 % 7)", "1"),
    "functions": ("n(x)", "{f}(x, lambda v: n(v) + 1.0) + {f}(x, lambda v: n(v) * 0.5)", "lambda v: v"),
}


def chain(kind: str, depth: int) -> str:
    """Functions, each of which calls the one before twice with other numbers, or functions."""
    first, then, last = BODIES[kind]
    lines = [f"def f0(x, n):\n    return {first}\n"]
    lines += [f"def f{k}(x, n):\n    return {then.format(f=f'f{k - 1}')}\n" for k in range(1, depth + 1)]
    return "\n".join([*lines, f"def f(x):\n    return f{depth}(x, {last})\n"])


@pytest.mark.parametrize("kind", BODIES)
def test_chains_have_as_many_functions_as_their_texts(kind: str) -> None:
    for argument in (np.arange(4.0), 1.5):
        counts = [len(relay.from_source(chain(kind, n))["f"].typed(argument).functions) for n in (9, 11, 13)]  # type: ignore[index]
        assert counts[1] - counts[0] == counts[2] - counts[1] <= 2 * 10
    if kind != "functions":  # whose types nothing decides in a scheme
        assert str(relay.from_source(chain(kind, 12))["f"].type)  # type: ignore[index]


@pytest.mark.parametrize("kind", BODIES)
def test_chains_have_their_values(kind: str) -> None:
    text = chain(kind, 5)
    python: dict[str, object] = {}
    exec(text, python)
    function = relay.from_source(text)["f"]  # type: ignore[index]
    for argument in (np.arange(4.0), np.float32(1.5), np.float64(1.5)):
        assert_agree(function.interpret(argument), python["f"](argument), rtol=1e-5)  # type: ignore[operator]
    assert_agree(function(np.arange(4.0)), python["f"](np.arange(4.0)), rtol=1e-12)  # type: ignore[operator]


USES = """
def same(n):
    return n

def scaled(x, n):
    return x * n

def uses(x, small, i):
    counts = [same(1), same(2), same(3), same(4), same(5), same(6), same(7), same(8), same(9), same(10)]
    a = small + same(11)
    b = i + same(12)
    c = x * same(13)
    d = same(1 << 40)
    e = x * same(0.5), same(0.25)
    g = [scaled(x, 1), scaled(x, 2.5), scaled(small, 3), scaled(i, 1 << 33), scaled(x, 1 << 33)]
    return sum(counts), a, b, c, d, e, g, same(14)
"""


def test_calls_that_share_an_instance_keep_their_dtypes() -> None:
    """The ninth call of `same` with an integer is the first that shares one."""
    function = relay.from_source(USES)["uses"]  # type: ignore[index]
    given = np.arange(3.0), np.arange(3, dtype=np.uint8), np.arange(3)
    found = function.interpret(*given)
    total, a, b, c, d, (e, quarter), g, last = found
    assert [np.asarray(v).dtype.name for v in (total, a, b, c, d, e, quarter, last)] == [
        "int32", "uint8", "int64", "float64", "int64", "float64", "float32", "int32"
    ]  # fmt: skip
    assert [np.asarray(v).dtype.name for v in g] == ["float64", "float64", "uint8", "int64", "float64"]
    assert_agree(function(*given), found)
    python: dict[str, object] = {}
    exec(USES, python)
    assert_close(found, python["uses"](*given))  # type: ignore[operator]


def test_functions_of_one_parameter_that_give_other_types() -> None:
    text = """
def applied(x, g):
    return g(x).sum()

def f(x):
    y = applied(x, lambda v: v * 2.0) + applied(x, lambda v: v[None] * x[:, None]) + applied(x, lambda v: v[1:])
    return y + applied(x, lambda v: v.sum()) + applied(x, lambda v: v * 3.0)
"""
    python: dict[str, object] = {}
    exec(text, python)
    function = relay.from_source(text)["f"]  # type: ignore[index]
    x = np.arange(4.0)
    for run in (function, function.interpret):
        np.testing.assert_allclose(run(x), python["f"](x))  # type: ignore[operator]
