"""What is wrong in Relay itself: an InternalError at the user's line that says so, never a bare exception of Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay as rl
from relay import InternalError, relay
from relay.errors import TypeMismatch


def broken(*_: object, **__: object) -> Any:
    return {}["missing"]


def fresh() -> Any:
    """A program of which nothing is made yet."""
    return rl.from_source("def program(x):\n    y = x + 1.0\n    return relay.tanh(y) * 2.0\n", {"relay": relay})


PHASES: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "types": ("relay.typecheck.elaboration.expressions.blocks.apply_named", lambda f: f.typed(np.ones(3)), ":2:"),
    "the general type": ("relay.typecheck.elaboration.expressions.blocks.apply_named", lambda f: f.type, ":2:"),
    "passes": ("relay.transform.passes.ConfiguredPass.__call__", lambda f: f.core(np.ones(3)), ":1:"),
    "derivatives": ("relay.ad.reverse.differentiate", lambda f: rl.grad(f).core(np.ones(())), ":1:"),
    "the interpreter": ("relay.eval.operation.Operations.prepared_call", lambda f: f.interpret(np.ones(3)), ":1:"),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_bug_in_a_phase_names_the_line(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, run, line = PHASES[phase]
    monkeypatch.setattr(target, broken)
    with pytest.raises(
        InternalError, match="this is a bug in Relay, not in your program: KeyError: 'missing'"
    ) as caught:
        run(fresh())
    assert line in str(caught.value).splitlines()[0] and "please report it" in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_bug_in_the_front_end_names_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.frontend.lower.lower_body", broken)
    with pytest.raises(InternalError, match=r":1:1: error: this is a bug in Relay.*KeyError"):
        fresh()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError, TypeMismatch])
def test_what_is_no_bug_is_left_alone(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> Any:
        raise error("as it was")

    for target, run, _ in PHASES.values():
        with monkeypatch.context() as patched:
            patched.setattr(target, raises)
            with pytest.raises(error, match="as it was"):
                run(fresh())


TEMPLATES = {
    "vjp": ("y, back = relay.vjp(g, x)\n    return back(y)", 2),
    "jvp": ("return relay.jvp(g, (x,), (x,))[1]", 2),
    "jacobian": ("return relay.jacobian(g)(x)", 2),
    "checkpoint": ("return relay.grad(lambda v: relay.checkpoint(g)(v).sum())(x)", 2),
    "sorted": ("return sorted([x[0], x[1]])", 4),
}


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_bug_inside_of_a_template_names_the_line_of_the_program(
    template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what Relay has written itself users know the call."""
    from relay.typecheck.elaboration.expressions import operators

    body, own = TEMPLATES[template]
    text = f"def f(x):\n    {body}\n\ndef g(v):\n    return relay.tanh(v) * 2.0\n"
    applied = operators.apply
    for number in range(own + 1, own + 6):
        calls = itertools.count(1)

        def failing(*given: Any, calls: Any = calls, number: int = number) -> Any:
            return broken() if next(calls) == number else applied(*given)

        with monkeypatch.context() as patched:
            patched.setattr(operators, "apply", failing)
            try:
                rl.from_source(text, {"relay": relay})["f"].typed(np.ones(3))  # type: ignore[index]
            except InternalError as error:
                assert str(error).startswith("<relay>:"), str(error)
                continue
        break
    assert number > own + 1  # some are the template's own


def test_a_mistake_in_what_a_template_returns_has_a_place() -> None:
    text = "def f(x):\n    y, back = relay.vjp(g, x)\n    return back(x[:2])\n\ndef g(v):\n    return v * 2.0\n"
    with pytest.raises(rl.TypeMismatch, match=r"<relay>:3:12: error: the tangent or cotangent must be"):
        rl.from_source(text, {"relay": relay})["f"].typed(np.ones(3))  # type: ignore[index]
