"""The prompt: functions typed in, mistakes that do not end it, its commands."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from relay.cli import main


def typed(text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What the prompt writes for these inputs: to the output, without the prompts, and to the error output."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(textwrap.dedent(text)))
    assert main(["repl"]) == 0
    found = capsys.readouterr()
    return found.out.replace(">>> ", "").replace("... ", ""), found.err


FUNCTION = """\
@relay
def f(x):
    return x * 2.0

"""


def test_functions_at_the_prompt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = typed(f"{FUNCTION}float(f(3.0))\n{FUNCTION.replace('2.0', '5.0')}float(f(3.0))\n", monkeypatch, capsys)
    assert out.split() == ["6.0", "15.0"] and err.strip() == ""


def test_functions_call_each_other(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{FUNCTION}g = relay(lambda x: f(x) + 1.0)\nfloat(relay.grad(g)(3.0))\n"
    assert typed(text, monkeypatch, capsys)[0].split() == ["2.0"]


def test_mistakes_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{FUNCTION}f(np.zeros(3)) @ y\n1 +\nrelay(lambda x: x + nothing)(1.0)\nfloat(f(1.0))\n"
    out, err = typed(text, monkeypatch, capsys)
    assert "NameError" in err and "SyntaxError" in err and out.split() == ["2.0"]
    assert "<input 4>:1:21: error: the name 'nothing' is not defined" in err and "^^^^^^^" in err
    assert "compiler.py" not in err


def test_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"""{FUNCTION}\
x = np.zeros((2, 3), np.float32)
:type x @ x.T
:type relay.sum(x, axis=0)
:type f(x)
:type f
:type x @ x
:type (x
:type 1 +
:text f
:text x
:help
:nonsense
"""
    out, err = typed(text, monkeypatch, capsys)
    assert out.split("\n")[:3] == ["Tensor[float32, (2, 2)]", "Tensor[float32, (3,)]", "Tensor[float32, (2, 3)]"]
    assert "-> Tensor[bt, s1]" in out and "multiply(%x" in out
    assert "cannot be multiplied" in err and "not valid Python" in err and "x is not a decorated function" in err
    assert ":type EXPRESSION" in out and "no command ':nonsense'" in out


def test_quit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(":quit\nprint('still here')\n", monkeypatch, capsys)[0].strip() == ""


def test_on_a_terminal(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "NO_COLOR": ""}
    process = subprocess.Popen(
        [sys.executable, "-m", "relay", "repl"], stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    os.write(leader, b"relay(lambda x: x + y)(1.0)\n:quit\n")
    said = b""
    try:
        while part := os.read(leader, 10_000):
            said += part
    except OSError:  # the prompt has closed its side
        pass
    assert process.wait(timeout=60) == 0
    os.close(leader)
    text = said.decode()
    assert ":help lists commands" in text and ">>> " in text
    assert "\x1b[1;31merror:\x1b[0m" in text and "the name 'y' is not defined" in text
    assert "relay(lambda x: x + y)(1.0)" in (tmp_path / "relay" / "history").read_text()
