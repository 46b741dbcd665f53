"""Operators of the user's own in the debugger: references that fail, and reproductions that define the operators."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relay
from relay import debug
from relay.errors import ExecutionError

OPERATORS = '''import numpy as np
from tvm import te

from relay import Pattern, Relation, Tensor, register_op

FACTOR = 2
unused = te


def same(shape):
    return shape


def scaled(x, i):
    return x(*i) * 3


@register_op(
    relation=Relation("T:float -> T", same),
    pattern=Pattern.ELEMENTWISE,
    compute=lambda x: te.compute(x.shape, lambda *i: scaled(x, i)),
    gradient=lambda x, out, dout: dout * 2.0,
)
def tripled_for_debugging(x: Tensor) -> Tensor:
    """Twice x, and compiled three times. x: (T, s) -> (T, s)."""
    if x.max() > 100.0:
        raise ValueError("too large")
    return x * FACTOR


unused = tripled_for_debugging
'''


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("operators") / "own.py"
    file.write_text(OPERATORS)
    exec(compile(OPERATORS, str(file), "exec"), {})


@relay
def applied(x):
    y = x + 1.0
    return relay.tripled_for_debugging(y).sum()


def test_a_reproduction_defines_the_operators_in_it(operators: None, tmp_path: Path) -> None:
    found = debug.diff(applied, np.array([1.0, 2.0]), directory=tmp_path)
    assert found.differs and found.operator == "tripled_for_debugging" and found.reproduction is not None
    text = found.reproduction.read_text()
    assert all(part in text for part in ("FACTOR = 2\n", "def same(", "def scaled(", "import te\n", "@register_op("))
    assert "unused" not in text
    ran = subprocess.run([sys.executable, str(found.reproduction)], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (1, "") and "difference: " in ran.stdout


def test_a_reference_that_fails(operators: None) -> None:
    large = np.array([1.0, 200.0])
    session = debug.step(applied, large)
    assert session.resume().reason == "error" and "too large" in str(session.stop)
    assert session.variables["y"][1] == 201.0
    session.back()
    session.set("x", np.zeros(2))
    session.resume()
    assert float(session.result) == 4.0
    with pytest.raises(ExecutionError, match="too large") as caught:
        applied.interpret(large)
    assert caught.value.failed_operator == "tripled_for_debugging"
    assert "too large" in str(debug.trace(applied, large).error)
    found = debug.diff(applied, large)
    assert found.differs and found.operator == "tripled_for_debugging"
    assert found.cause is not None and found.cause.kind == "reference" and found.line is not None
    assert "gives another result when compiled\n" in str(found)
