"""What the interpreter reaches: every stage of a program, without a compiler in the process."""

from __future__ import annotations

import subprocess
import sys

import pytest
from agreement import assert_agree
from matrix import sample
from zoo import Program, programs

from relay.calling.results import wrap
from relay.eval import interpreter
from relay.transform.pipeline import Pipeline

PROGRAM = """
import sys, importlib.abc

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("tvm", "tvm_ffi", "scipy", "torch", "jax"):
            raise ImportError(f"{name} must not be needed")

sys.meta_path.insert(0, Absent())
import numpy as np
import relay

f = relay.from_source('''
def f(x, w):
    h = relay.gelu(x @ w)
    total = 0.0
    for row in h:
        total += relay.logsumexp(row) + relay.erf(row[0])
    image, kernel = relay.ones((1, 1, 4, 4)), relay.ones((1, 1, 3, 3))
    return total + relay.conv2d(image, kernel).sum() * relay.cholesky(w[:, :3])[0, 0]
''', {"relay": relay})
x, w = np.ones((2, 3)), np.eye(3, 4)
f.interpret(x, w)
relay.grad(f).interpret(x, w)
session = relay.debug.step(relay.grad(f), x, w)
session.resume()
assert session.finished and relay.debug.find_nan(f, x, w) is None

assert not any(name.partition(".")[0] in ("tvm", "scipy") for name in sys.modules)
"""


def test_it_needs_numpy_alone() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("program", sample(programs(), 6), ids=lambda p: p.name)
def test_it_runs_a_program_after_every_pass(program: Program) -> None:
    """Typed, specialized, structured, after each pass before and after differentiation, with derivatives, fused."""
    signature, values = program.function.prepare_call(program.arguments, {})
    expected = wrap(interpreter.run(signature.typed, values), signature.result)

    pipeline = Pipeline.for_level(2)
    pipeline(signature.typed)
    assert len(pipeline.records) > 20
    seen = signature.typed
    for record in pipeline.records:
        if record.module is seen:
            continue
        seen = record.module
        _, values = program.function.prepare_call(program.arguments, {})
        found = wrap(interpreter.run(record.module, values), signature.result)
        assert_agree(found, expected, rtol=1e-9, atol=1e-12)
