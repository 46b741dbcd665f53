"""Loops that add up numbers are sums of all terms at once, and products of vectors and matrices."""

from __future__ import annotations

import linecache
from collections.abc import Callable

import numpy as np
import pytest

import relay
from relay.errors import ExecutionError
from relay.ir.expr import Loop, OpCall
from relay.ir.traverse import walk

RANDOM = np.random.default_rng(0)
V = RANDOM.normal(size=40)
M = RANDOM.normal(size=(36, 40))
P = RANDOM.integers(0, 40, 50).astype(np.int32)

LOOPS = {
    "for j in range(v.shape[0]): s += np.exp(v[j])": "sum",
    "for j in range(v.shape[0]): s = s + v[j] + 1.0": "sum",
    "for j in range(v.shape[0]): s = v[j] * 2.0 + (v[j] + s)": "sum",
    "for j in range(v.shape[0]): s += v[j] * v[j]": "matmul",
    "for i in p: s += v[i]": "sum",
    "for j in range(v.shape[0]): s -= v[j] if v[j] > 0.0 else 2.0 * v[j]": None,
    "for j in range(v.shape[0]):\n  s += v[j]\n  q += v[j] * v[j]": "sum",
    "for row in m:\n  for x in row: s += np.tanh(x)": "sum",
    "for i in range(m.shape[0]):\n  for j in range(m.shape[1]): s += m[i, j] * v[j]": "matmul",
    "for i in range(v.shape[0]):\n  for j in range(v.shape[0]): s += np.exp(-((v[i] - v[j]) ** 2))": "sum",
}
ROWS = {
    "t = 0.0\n  for j in range(m.shape[1]): t += np.exp(m[i, j])": "sum",
    "t = v[i]\n  for j in range(m.shape[1]): t += m[i, j] * v[j]": "matmul",
    "t = 0.0\n  for j in range(m.shape[1]): t += m[i, j] * m[i, j]": "sum",
}


def program(body: str, result: str) -> Callable[..., object]:
    lines = "\n".join("    " + line for line in body.splitlines())
    text = f"def f(v, m, p):\n    s, q = 0.0, 0.0\n{lines}\n    return {result}\n"
    name = f"<{hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"np": np}
    exec(compile(text, name, "exec"), names)
    return names["f"]  # type: ignore[no-any-return]


def vectorized(function: relay.RelayFunction) -> relay.ir.Module:
    passes = relay.transform
    return passes.vectorize_loops(passes.structure(passes.specialize(function.lower(V, M, P).typed)))


def of_rows(body: str) -> str:
    return f"out = np.zeros(m.shape[0])\nfor i in range(m.shape[0]):\n  {body}\n  out[i] = t"


CASES = [(body, "s + q", wanted) for body, wanted in LOOPS.items()]
CASES += [(of_rows(body), "out", wanted) for body, wanted in ROWS.items()]


@pytest.mark.parametrize(("body", "result", "wanted"), CASES)
def test_sums_of_all_rounds(body: str, result: str, wanted: str | None) -> None:
    python = program(body, result)
    f = relay.relay(python)
    expected = python(V, M, P)
    np.testing.assert_allclose(f.interpret(V, M, P), expected, rtol=1e-12)
    np.testing.assert_allclose(f(V, M, P), expected, rtol=1e-12)
    made = relay.transform.vectorize_loops(
        relay.transform.structure(relay.transform.specialize(f.lower(V, M, P).typed))
    )
    bindings = list(walk(made.main.body))
    operators = {b.value.operator for b in bindings if isinstance(b.value, OpCall)}
    if wanted is not None:
        assert not any(isinstance(b.value, Loop) for b in bindings) and wanted in operators


def test_loops_of_loops_are_products_of_matrices() -> None:
    body = "out = np.zeros((m.shape[0], m.shape[0]))\nfor i in range(m.shape[0]):\n  for j in range(m.shape[0]):\n"
    body += "    t = 0.0\n    for k in range(m.shape[1]): t += m[i, k] * m[j, k]\n    out[i, j] = t"
    f = relay.relay(program(body, "out"))
    np.testing.assert_allclose(f(V, M, P), M @ M.T, rtol=1e-12)
    made = relay.transform.vectorize_loops(
        relay.transform.structure(relay.transform.specialize(f.lower(V, M, P).typed))
    )
    operators = [b.value.operator for b in walk(made.main.body) if isinstance(b.value, OpCall)]
    assert "dense" in operators and not any(isinstance(b.value, Loop) for b in walk(made.main.body))
    slope = relay.grad(relay.relay(lambda m: f(V, m, P).sum()))(M)
    np.testing.assert_allclose(slope, 2 * np.broadcast_to(M.sum(axis=0), M.shape), rtol=1e-10)


def test_what_stays_a_loop() -> None:
    """A sum that a round reads, or one that may end early."""
    for body in (
        "for j in range(v.shape[0]):\n  s += v[j]\n  q += s * s",
        "for j in range(v.shape[0]):\n  s += v[j]\n  if s > 1.0: break",
        "for j in range(v.shape[0]): s += v[j] * s",
    ):
        python = program(body, "s + q")
        f = relay.relay(python)
        np.testing.assert_allclose(f(V, M, P), python(V, M, P), rtol=1e-12)
        np.testing.assert_allclose(f.interpret(V, M, P), python(V, M, P), rtol=1e-12)


def test_an_index_out_of_range_in_a_sum() -> None:
    f = relay.relay(program("for j in range(v.shape[0]): s += v[j + 1]", "s"))
    for call in (f.interpret, f):
        with pytest.raises(ExecutionError, match=r"out of range|out of bounds"):
            call(V, M, P)
