"""Tracebacks of mistakes: the user's frames, colors on a terminal, everything when asked for."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import numpy as np
import pytest

import relay as relay_module
from relay import relay
from relay.support.tracebacks import _notebook_lines


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@relay
def inner(x):
    return 1 // x


@relay
def outer(x):
    return inner(x) + 1


@relay
def clash(x, y):
    return x + y


def callback(call: Callable[[], object]) -> object:
    return call()


MISTAKES: dict[str, Callable[[], object]] = {
    "types": lambda: clash(np.zeros(3), np.zeros(4)),
    "run": lambda: outer(0),
    "interpreter": lambda: outer.interpret(0),
    "option": lambda: relay(target="abacus"),
    "decoration": lambda: relay(len),
    "gradient": lambda: relay_module.grad(len),
    "inspection": lambda: relay_module.grad(clash, wrt="z"),
    "types of a type": lambda: relay_module.Tensor[3, 3],
    "text": lambda: relay_module.from_source("def f(x:\n"),
}


def caught(mistake: str) -> relay_module.RelayError:
    try:
        callback(MISTAKES[mistake])
    except relay_module.RelayError as error:
        return error
    raise AssertionError("no error")


def printed(error: relay_module.RelayError, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None = None) -> str:
    stream = stream if stream is not None else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    sys.excepthook(type(error), error, error.__traceback__)
    return stream.getvalue()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_only_the_users_frames(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELAY_FULL_TRACEBACK", raising=False)
    text = printed(caught(mistake), monkeypatch)
    frames = [line for line in text.splitlines() if line.startswith('  File "')]
    assert len(frames) == 3 and all(__file__ in frame for frame in frames), text
    assert "\x1b" not in text


def test_all_frames_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_FULL_TRACEBACK", "1")
    error = caught("option")
    text = printed(error, monkeypatch)
    assert "options.py" in text and "attrs generated" in text
    assert "options.py" in "\n".join(_notebook_lines(error))


def test_colors_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    error = caught("types")
    assert "\x1b[1;31m^^^^^\x1b[0m" in printed(error, monkeypatch, Terminal())
    assert "\x1b" not in str(error)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m^" not in printed(error, monkeypatch, Terminal())


def test_the_interpreter_says_by_which_calls() -> None:
    error = caught("interpreter")
    assert [label.text for label in error.labels] == ["in this call of inner"]
    assert error.labels[0].span.source.line(error.labels[0].span.line).strip() == "return inner(x) + 1"


def test_notebooks_show_the_users_frames() -> None:
    text = "\n".join(_notebook_lines(caught("types")))
    assert text.startswith("Traceback") and "compiler.py" not in text and "return x + y" in text


def test_a_frame_of_the_user_below_ours_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def user_frame() -> None:
        raise relay_module.TypeMismatch("mine")

    try:
        relay_module.errors.combine_errors(error() for error in [user_frame])  # type: ignore[misc]
    except relay_module.RelayError as error:
        text = printed(error, monkeypatch)
    assert "user_frame" in text and "relay/errors" not in text
