"""`relay debug`: commands from standard input, and at a terminal."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import numpy as np
import pexpect
import pytest

from relay.cli import main

PROGRAM = """import relay


@relay
def total(xs, scale):
    found = 0.0
    for x in xs:
        found += relay.log(x) * scale["by"]
    return found


@relay
def pair(p, xs):
    return p[0] * p[1] + xs[1]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    np.savez(tmp_path / "a.npz", xs=np.array([1.0, 2.0, 4.0]), **{"scale.by": np.float64(2.0)})
    return path


def debugged(
    text: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    code = main(["debug", *arguments])
    found = capsys.readouterr()
    return f"{code}\n{found.out}{found.err}"


def test_commands_from_standard_input(file: Path, monkeypatch, capsys) -> None:
    commands = [
        *("break 8", "break op log if x > 3.0", "breakpoints", "c", "vars", "= found + x", "type xs[0]", "stats xs"),
        *(
            "delete 1",
            "c",
            "print x",
            "p x + 0.5",
            "back now",
            "set x = 1.0",
            "b",
            "print x",
            "where",
            "list",
            "delete 2",
            "c",
            "reverse",
            "quit",
            "step",
        ),
    ]
    where = [f"{file}:total", "--args", str(file.parent / "a.npz")]
    said = debugged("\n".join(commands), where, monkeypatch, capsys)
    assert "total, before its first line; `help` lists the commands" in said
    assert f"breakpoint 1: line 8: {file}:8, in total: found += relay.log(x) * scale" in said
    assert "breakpoint 2: operator log, when x > 3.0" in said
    assert "x: Tensor[float64, ()] = 1\n" in said and "Tensor[float64, ()]\nfloat64 (3,): 1 to 4, mean 2.33333" in said
    assert "the call has returned: Array(4.15888" in said
    assert "\n4.5\nback takes nothing after it\n" in said
    assert said.count("->  8         found +=") >= 2
    assert not said.endswith("step")


def test_a_number_gets_the_dtype_of_the_variable(file: Path, monkeypatch, capsys) -> None:
    """The expression `1.0` is a float32, and x and found are of float64."""
    commands = ["break op log", "c", "set x = 10", "set x = -1.5", "set found = found + 2.5", "set x = 1.0 * 2.0"]
    said = debugged("\n".join(commands), [f"{file}:total", "--args", str(file.parent / "a.npz")], monkeypatch, capsys)
    assert "x: Tensor[float64, ()] = 10\n" in said and "x: Tensor[float64, ()] = -1.5\n" in said
    assert "found: Tensor[float64, ()] = 2.5\n" in said
    assert "x must be Tensor[float64, ()], found float32 ()" in said


def test_mistakes_are_said(file: Path, monkeypatch, capsys) -> None:
    where = [f"{file}:total", "--args", str(file.parent / "a.npz")]
    commands = [
        "stp",
        "print nothing",
        "set x",
        "to x",
        "break a b",
        "delete x",
        "delete 3",
        "break 99",
        "up",
        "set y = 1.0",
    ]
    said = debugged("\n".join(commands), where, monkeypatch, capsys)
    for message in (
        *("there is no command 'stp', did you mean 'step'?", "the name 'nothing' is not defined", "set NAME = EXPR"),
        *("to LINE: the number of a line", "break LINE, FUNCTION or `op` OPERATOR", "delete NUMBER", "no breakpoint 3"),
        *("computes nothing from line 99 on", "there is no call further out", "'y' is not defined here"),
    ):
        assert message in said


def test_arguments_by_name(file: Path, monkeypatch, capsys) -> None:
    parts = {"p.0": 2.0, "p.1": 3.0, "xs[0]": 1.0, "xs[1]": 5.0}
    np.savez(file.parent / "b.npz", **{name: np.float64(value) for name, value in parts.items()})
    said = debugged("c", [f"{file}:pair", "--args", str(file.parent / "b.npz")], monkeypatch, capsys)
    assert "the call has returned: Array(11." in said
    np.savez(file.parent / "c.npz", q=np.ones(2))
    said = debugged("c", [f"{file}:pair", "--args", str(file.parent / "c.npz")], monkeypatch, capsys)
    assert said.startswith("2\n") and "the function has no parameter 'q'; it has p, xs" in said
    np.savez(file.parent / "d.npz", **{"p.0": np.ones(2), "p.2": np.ones(2), "xs[0]": 1.0})
    said = debugged("c", [f"{file}:pair", "--args", str(file.parent / "d.npz")], monkeypatch, capsys)
    assert said.startswith("2\n") and "p has no part 1" in said


def test_where_a_nan_comes_from(file: Path, monkeypatch, capsys) -> None:
    np.savez(file.parent / "z.npz", xs=np.array([1.0, 0.0]), **{"scale.by": np.float64(2.0)})
    said = debugged("", [f"{file}:total", "--nan", "--args", str(file.parent / "z.npz")], monkeypatch, capsys)
    assert said.startswith("1\n") and "log in total makes the first infinity" in said
    said = debugged("", [f"{file}:total", "--nan", "--args", str(file.parent / "a.npz")], monkeypatch, capsys)
    assert said.startswith("0\n") and "there is no NaN" in said


def test_at_a_terminal(file: Path) -> None:
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    arguments = ["-m", "relay", "debug", f"{file}:total", "--args", str(file.parent / "a.npz")]
    terminal = pexpect.spawn(sys.executable, arguments, env=environment, encoding="utf-8", timeout=120)
    terminal.setwinsize(40, 200)
    # Ctrl-C and Ctrl-D are the prompt's only while it reads: what is sent before it stands there is the terminal's own.
    prompt = r"\(relay\)"
    terminal.expect(prompt)
    terminal.send("next\r")
    terminal.expect("found \\+= relay")
    terminal.expect(prompt)
    terminal.send("ne")
    terminal.sendintr()  # the line is dropped
    terminal.expect(prompt)
    terminal.send("print x\r")
    terminal.expect("1.0")
    terminal.expect(prompt)
    terminal.send("vars\r")
    terminal.expect("scale: dict")
    terminal.expect(prompt)
    terminal.sendeof()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_without_the_extra(file: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    monkeypatch.delitem(sys.modules, "relay.debug.terminal", raising=False)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["debug", f"{file}:total", "--args", str(file.parent / "a.npz")]) == 2
    assert capsys.readouterr().err == (
        "relay debug: the debugger's terminal needs prompt_toolkit: pip install 'relay-lang[debug]'\n"
    )
