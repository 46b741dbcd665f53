"""What is wrong in Relay itself: an InternalError at the user's line that says so, never a bare exception of Python."""

from __future__ import annotations

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
    "types": ("relay.typecheck.elaboration.blocks.apply_named", lambda f: f.typed(np.ones(3)), ":2:"),
    "the general type": ("relay.typecheck.elaboration.blocks.apply_named", lambda f: f.type, ":2:"),
    "passes": ("relay.transform.passes.Step.__call__", lambda f: f.core(np.ones(3)), ":1:"),
    "derivatives": ("relay.ad.reverse.differentiate", lambda f: rl.grad(f).core(np.ones(())), ":1:"),
    "the interpreter": ("relay.eval.operation.Operations.prepared", lambda f: f.interpret(np.ones(3)), ":1:"),
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
