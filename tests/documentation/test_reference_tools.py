"""Sentences of the pages of errors, of custom operators and of running programs that no block of the pages runs."""

# ruff: noqa: E501

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reference import Claim, Fails, check, says

import relay
from relay import Relation, Tensor
from relay.codegen.runtime import cpu

X = np.array([1.0, 2.0, 4.0])

FRONT = "| `FrontendError` | an unsupported construct, or an undefined name; at the decoration where possible |"
TYPES = "| `TypeCheckError`, `TypeMismatch`, `ShapeError` | dtypes, shapes and other types; at the first call with new types |"
RUN = "| `ExecutionError` | run-time errors: an assertion, an index, an integer division by zero |"

ERRORS = [
    (FRONT, relay.errors.FrontendError, "b = yield a\nreturn b", (1.0,)),
    (FRONT, relay.errors.FrontendError, "return undefined", (1.0,)),
    (TYPES, relay.TypeMismatch, "return a + b", (X, np.float32(X))),
    (TYPES, relay.ShapeError, "return a @ b", (X, X[:2])),
    (TYPES, relay.TypeCheckError, "return a.nonsense", (X,)),
    (
        "| `DifferentiationError` | a derivative that does not exist |",
        relay.DifferentiationError,
        "return relay.grad(lambda x: relay.argmax(x))(a)",
        (X,),
    ),
    (RUN, relay.ExecutionError, "assert a > 1.0\nreturn a", (0.0,)),
    (RUN, relay.ExecutionError, "return a[b]", (X, 5)),
    (RUN, relay.ExecutionError, "return b // a", (0, 1)),
]


@pytest.mark.parametrize(
    ("row", "kind", "program", "arguments"), ERRORS, ids=lambda part: part if isinstance(part, str) else ""
)
def test_classes_of_errors(row: str, kind: type[Exception], program: str, arguments: tuple[object, ...]) -> None:
    says("language.md", "All errors are subclasses of `relay.RelayError`")
    with pytest.raises(kind):
        check("checking.md", Claim(row, program, arguments, None))
    check("checking.md", Claim(row, program, arguments, Fails("")))


def test_classes_of_errors_outside_of_programs() -> None:
    says("checking.md", "| `CompileError` | an unknown target or option |")
    says("checking.md", "| `RegistrationError` | an operator's definition |")
    with pytest.raises(relay.errors.CompileError):
        relay.relay(target="abacus")
    with pytest.raises(relay.errors.RegistrationError):
        relay.register_op(relation=3)(X)


def test_equal_calls_of_an_operator_are_merged() -> None:
    says(
        "custom-operators.md",
        "They are the only effect of an operator: equal calls are merged, and unused ones are removed.",
    )
    says(
        "custom-operators.md",
        "Compiled programs call it back with arrays, so it is slow; it must be pure, since calls may be merged or dropped.",
    )
    calls = []

    @relay.pure_callback(relation=Relation("float64 -> float64", lambda shape: shape))
    def counted(x: Tensor) -> Tensor:
        """2 x. x: (float64, s) -> (float64, s)."""
        calls.append(x.shape)
        return 2.0 * x

    @relay.relay
    def thrice(x):
        relay.counted(x + 1.0)
        return relay.counted(x) + relay.counted(x)

    try:
        assert thrice(X).tolist() == [4.0, 8.0, 16.0]
        assert calls == [(3,)]
    finally:
        del relay.get_env()._operators["counted"]


def test_the_log_and_the_number_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says("running.md", "`RELAY_LOG=compile` logs what is compiled, when and why.")
    says(
        "running.md",
        "| `RELAY_LOG` | `compile`: log to standard error what is compiled, for which types, and why it was not found on disk | |",
    )
    says(
        "running.md",
        "| `RELAY_NUM_THREADS` | how many threads a program may use | the processors that the process may use |",
    )
    program = tmp_path / "program.py"
    program.write_text("import relay\n\n@relay.relay\ndef doubled(x):\n    return x * 2.0\n\ndoubled.interpret(1.0)\n")
    environment = {**os.environ, "RELAY_LOG": "compile", "RELAY_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True)
    assert "compiling doubled for " in ran.stderr and "float" in ran.stderr and not ran.stdout
    monkeypatch.delenv("RELAY_NUM_THREADS", raising=False)
    assert cpu.default_threads() == len(os.sched_getaffinity(0))


def test_kernels_of_data_dependent_sizes_are_not_tuned() -> None:
    says("running.md", "Kernels of symbolic or data-dependent sizes are not tuned.")

    @relay.relay
    def products(x):
        y = x[x[:, 0] > 0.0]
        return y @ y.T

    assert not list(relay.tune(products, np.ones((4, 4)), seconds=1.0).kernels)
