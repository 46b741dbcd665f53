"""Programs that the compiler refuses: the error names the lines, and the interpreter runs them where it is asked to."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm.error import InternalError as ForeignError

import relay as R
from relay import relay
from relay.codegen.kernels import kernels
from relay.codegen.tvm import tir


def refuse(error: BaseException) -> Callable[..., Any]:
    def step(*_: Any, **__: Any) -> Any:
        raise error

    return step


STEPS = ((kernels, "emit"), (kernels, "with_registers"), (tir, "flat_kernel"), (tir.tvm, "compile"))
"""Where code generation may fail: in the loops of a kernel, in what TVM makes of it, and in the machine code."""

ERRORS = (ForeignError("conflict"), ValueError("conflict"), RuntimeError("conflict"), TypeError("conflict"))


def program(**options: Any) -> R.RelayFunction:
    @relay(**options)
    def scaled(x):  # type: ignore[no-untyped-def]
        y = relay.tanh(x) * 3.25
        return y.sum() + y

    return scaled  # type: ignore[no-any-return]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("step", STEPS, ids=lambda s: s[1])
def test_whatever_code_generation_raises_is_a_bug_with_a_line(
    step: tuple[Any, str], error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = program()
    kernels._made.clear()
    with monkeypatch.context() as broken:
        broken.setattr(*step, refuse(error))
        with pytest.raises(R.InternalError, match="conflict") as raised:
            function(np.arange(3.0))
        text = str(raised.value)
        assert "bug in Relay" in text and "report it" in text and "f.interpret(..)" in text
        assert "test_fallback.py" in text
        if step[0] is not tir.tvm:
            assert "relay.tanh(x) * 3.25" in text and "a kernel of tanh" in text
        with pytest.raises(R.InternalError, match="conflict"):  # at once, without compiling again
            function(np.arange(3.0))
    function.reload()
    np.testing.assert_allclose(function(np.arange(3.0)), function.interpret(np.arange(3.0)), rtol=1e-12)


def test_interrupts_and_exhausted_memory_are_no_bugs(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (KeyboardInterrupt(), MemoryError()):
        kernels._made.clear()
        monkeypatch.setattr(kernels, "emit", refuse(error))
        with pytest.raises(type(error)):
            program(fallback="interpret")(np.arange(3.0))


@pytest.mark.parametrize("by_variable", [False, True])
def test_the_interpreter_runs_what_cannot_be_compiled_and_says_so(
    by_variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_variable:
        monkeypatch.setenv("RELAY_FALLBACK", "interpret")
    function = program() if by_variable else program(fallback="interpret")
    kernels._made.clear()
    monkeypatch.setattr(kernels, "emit", refuse(ValueError("conflict")))
    x = np.arange(3.0)
    with pytest.warns(R.RelayWarning, match=r"(?s)scaled runs on the interpreter.*conflict") as said:
        result = function(x)
    assert said[0].filename == __file__
    np.testing.assert_array_equal(result, function.interpret(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(function(x), result)  # said once
    with pytest.warns(R.RelayWarning, match="interpreter"):  # a gradient is a program of its own
        found = R.grad(lambda_of(function))(x)
    np.testing.assert_allclose(found, (1 - np.tanh(x) ** 2) * 3.25 * 4, rtol=1e-12)
    with pytest.raises(R.InternalError, match="conflict"):
        function.compile(x)


def lambda_of(function: R.RelayFunction) -> R.RelayFunction:
    """The sum of the function's results, with its options."""

    @relay(fallback=function._options.fallback)
    def total(x):  # type: ignore[no-untyped-def]
        return function(x).sum()

    return total  # type: ignore[no-any-return]


def test_mistakes_are_errors_with_a_fallback_too(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay(fallback="interpret")
    def third(x):  # type: ignore[no-untyped-def]
        return x[3]

    with pytest.raises(R.RelayError, match="out of range"):
        third(np.arange(3.0))
    monkeypatch.setenv("RELAY_FALLBACK", "interpret")
    monkeypatch.setattr(kernels, "emit", refuse(ValueError("conflict")))
    kernels._made.clear()
    with pytest.raises(R.InternalError):
        program(fallback="error")(np.arange(3.0))


def test_words_that_are_no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(R.CompileError, match="no fallback 'python'"):
        program(fallback="python")
    monkeypatch.setenv("RELAY_FALLBACK", "yes")
    monkeypatch.setattr(kernels, "emit", refuse(ValueError("conflict")))
    kernels._made.clear()
    with pytest.raises(R.CompileError, match="RELAY_FALLBACK is 'yes'"):
        program()(np.arange(3.0))
