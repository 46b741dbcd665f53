"""The prompt: functions typed in, types and errors, its commands; piped, at a terminal, and without prompt_toolkit."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from pathlib import Path

import numpy as np
import pexpect
import pytest

import relay
from relay.cli import main
from relay.cli.repl.completion import completions
from relay.cli.repl.inputs import Inputs, indentation, is_complete


def typed(text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What the prompt writes for these inputs: to the output and to the error output."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(textwrap.dedent(text)))
    assert main(["repl"]) == 0
    found = capsys.readouterr()
    return found.out, found.err


FUNCTION = """\
@relay
def f(x):
    return x * 2.0

"""


def test_functions_at_the_prompt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = typed(f"{FUNCTION}float(f(3.0))\n{FUNCTION.replace('2.0', '5.0')}float(f(3.0))\n", monkeypatch, capsys)
    said = out.split("\n")
    assert said[0].startswith("f : forall ") and said[1] == "6.0" and said[3] == "15.0" and err == ""


def test_functions_call_each_other(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{FUNCTION}g = relay(lambda x: f(x) + 1.0)\nfloat(relay.grad(g)(3.0))\n"
    assert typed(text, monkeypatch, capsys)[0].split("\n")[-2] == "2.0"


def test_types_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
    x = np.ones((2, 3), np.float32)
    x
    a, b = (x, {"k": x[0]}), 3
    relay.sum(x)
    @relay
    def later(y):
        return unknown(y)

    x += 1
    """
    out, err = typed(text, monkeypatch, capsys)
    said = out.split("\n")
    assert said[0] == "x : Tensor[float32, (2, 3)]" and said[3] == ": Tensor[float32, (2, 3)]"
    assert said[4] == "a : (Tensor[float32, (2, 3)], (Tensor[float32, (3,)],))"
    assert said[5:8] == [
        "Array(6., dtype=float32)",
        ": Tensor[float32, ()]",
        "later : not known: the name 'unknown' is not defined",
    ]
    assert said[8] == "x : Tensor[float32, (2, 3)]" and err == ""


def test_mistakes_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{FUNCTION}f(np.zeros(3)) @ y\n1 +\nrelay(lambda x: x + nothing)(1.0)\n1 / 0\nfloat(f(1.0))\n"
    out, err = typed(text, monkeypatch, capsys)
    assert "NameError" in err and "SyntaxError" in err and "ZeroDivisionError" in err
    assert out.split("\n")[-2] == "2.0"
    assert "<input 4>:1:21: error: the name 'nothing' is not defined" in err and "^^^^^^^" in err
    assert "inputs.py" not in err and "function.py" not in err


ANNOTATED = """\
@relay
def f(x: Tensor[Float, (3,)]):
    y = relay.sin(x) + relay.sin(x)
    return y.sum()

@relay
def g(x):
    return x @ x.T

x = np.ones(3, np.float32)
"""


def test_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"""{ANNOTATED}\
:type relay.sum(x, axis=0)
:type f
:ir f
:ir g(np.ones((2, 5)))
:core f
:core g(np.ones((2, 5)))
:grad f
:passes f
:time f(x) + 1.0
:help
"""
    out, err = typed(text, monkeypatch, capsys)
    assert err == ""
    said = out[out.index("x : Tensor[float32, (3,)]\n") :].split("\n")
    assert said[1:3] == ["Tensor[float32, ()]", "fn(Tensor[float32, (3,)]) -> Tensor[float32, ()]"]
    assert out.count("entry fn f(%x: Tensor[float32, (3,)]) -> Tensor[float32, ()]") == 2
    assert out.count("entry fn g(%x: Tensor[float64, (2, 5)]) -> Tensor[float64, (2, 2)]") == 2
    assert "entry fn grad_f" in out and "cos(%x)" in out
    rows = [line.split() for line in said if " -> " in line and line.endswith(" ms") and "compiled" not in line]
    assert rows and all(int(row[1]) > 0 and int(row[3]) >= 0 for row in rows)
    assert "4 bindings" in out and "other passes changed nothing" in out
    assert "compiled in " in out and "of 5 rounds of" in out
    assert ":type EXPR" in out and ":debug F(x)" in out


def test_wrong_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"""{ANNOTATED}\
:type x @ (x
:type np.ones((2, 3)) @ x.T.T.nothing
:ir x
:ir 1 +
:ir
:core g
:cor f
:nonsense
:time nothing(x)
:debug f(np.ones(4))
:grad g(np.ones((2, 3)))
:ir f(1, 2, 3)
print("still here")
"""
    out, err = typed(text, monkeypatch, capsys)
    for message in (
        *("not valid Python", "x is not a decorated function, nor a call of one", "'1 +' is not an expression"),
        *("the parameters of g have no annotated types", "help: give arguments: g(..)", "the name 'nothing'"),
        *("argument x of f must be Tensor[float32, (3,)], found Tensor[float64, (4,)]", "^"),
    ):
        assert message in err, message
    assert "no command ':cor', did you mean :core?" in out and "no command ':nonsense'\n:type" in out
    assert "what of? :ir F" in out and out.endswith("still here\n")
    assert "Traceback" not in err


def test_the_debugger(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = typed(f"{ANNOTATED}:debug f(x)\nnext\nprint y\nquit\nlen(x)\n", monkeypatch, capsys)
    assert "f, before its first line; `help` lists the commands" in out and "->  4     return y.sum()" in out.replace(
        "-> 4", "->  4"
    )
    assert "[1.682942 1.682942 1.682942]" in out and out.endswith("3\n") and err == ""


def test_quit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(":quit\nprint('still here')\n", monkeypatch, capsys)[0].strip() == ""
    monkeypatch.setattr(sys, "stdin", io.StringIO("raise SystemExit(3)\n"))
    assert main(["repl"]) == 3


def test_an_interrupted_input(capsys: pytest.CaptureFixture[str]) -> None:
    inputs = Inputs({})
    inputs.run("a = 1\nraise KeyboardInterrupt\n")
    inputs.run("a + 1")
    assert capsys.readouterr().out == "interrupted\n2\n"


def test_when_an_input_is_complete() -> None:
    for text in (
        "",
        "x = 1",
        "f(",
        "f(1,\n2)",
        ":type f(",
        "@relay\ndef f(x):\n    return x\n",
        "1 +",
        "if a:\n    b\n",
        "class A:\n    b: int = 1\n    ",
    ):
        assert is_complete(text) == (text != "f("), text
    for text in ("@relay", "@relay\ndef f(x):", "@relay\ndef f(x):\n    return x", "for i in range(3):", '"""a'):
        assert not is_complete(text), text
    assert indentation("def f(x):") == "    " and indentation("    if x:  # why") == "        "
    assert indentation("    return x") == "" and indentation("    y = x") == "    "


def test_completion() -> None:
    f = relay(lambda x: x * 2.0)
    names = {"relay": relay, "np": np, "scale": f}
    found = {word: said for word, said, _ in completions("y = relay.softm", names)}
    assert found == {"softmax": "softmax(x, axis=-1): T:float -> T"}
    assert next(completions("scal", names)) == ("scale", relay.ir.types.show(f.type), 4)
    assert [w for w, _, _ in completions(":t", names)] == [":type", ":time"]
    assert "linspace" in [w for w, _, _ in completions(":type np.lin", names)]
    assert list(completions("nothing.", names)) == [] and list(completions("1 + ", names)) == []
    assert "return" in [w for w, _, _ in completions("    ret", names)]


def terminal_of(tmp_path: Path, **variables: str) -> pexpect.spawn:
    root = str(Path(__file__).resolve().parents[2])
    environment = {
        **os.environ,
        "PYTHONPATH": root,
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        **variables,
    }
    child = pexpect.spawn(sys.executable, ["-m", "relay", "repl"], env=environment, encoding="utf-8", timeout=120)
    child.setwinsize(40, 160)
    return child


def test_at_a_terminal(tmp_path: Path) -> None:
    """Keys for the prompt are sent when it stands there: before, they are the terminal's own."""
    child = terminal_of(tmp_path, NO_COLOR="1")
    child.expect(":help lists commands")
    child.expect(">>>")
    for line in (
        "@relay",
        "def f(x: Tensor[Float, (3,)]):",
        "for _ in range(1):",
        "y = relay.exp(x)",
        "\x7freturn y.sum()",
        "",
    ):
        child.send(line + "\r")  # the indentation comes by itself, and goes by backspace
    child.expect(r"f : fn\(Tensor\[float32, \(3,\)\]\) -> Tensor\[float32, \(\)\]")
    child.expect(">>>")
    child.send("nonsense(")
    child.sendintr()  # the input is dropped
    child.expect(">>>")
    child.send("f(np.zeros(3))\r")
    child.expect("argument x of f must be")
    child.expect(">>>")
    child.send("import time; print('be' + 'gin'); time.sleep(60)\r")
    child.expect("begin")
    child.sendintr()  # the run is stopped
    child.expect("interrupted")
    child.expect(">>>")
    child.send(":debug f(np.zeros(3, np.float32))\r")
    child.expect("before its first line")
    child.expect(r"\(relay\)")
    child.send("continue\r")
    child.expect("the call has returned: Array\\(3")
    child.expect(r"\(relay\)")
    child.send("quit\r")
    child.expect(">>>")
    child.send("relay.softm\t")
    child.expect("ax")
    child.sendintr()
    child.expect(">>>")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "+def f(x: Tensor[Float, (3,)]):" in (tmp_path / "relay" / "history").read_text()


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    monkeypatch.delitem(sys.modules, "relay.cli.repl.terminal", raising=False)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    answers = iter(["def double(a):", "    return 2 * a", "", KeyboardInterrupt(), "double(21)", EOFError()])

    def answer(prompt: str) -> str:
        found = next(answers)
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr("builtins.input", answer)
    assert main(["repl"]) == 0
    out = capsys.readouterr().out
    assert "pip install 'relay-lang[debug]'" in out and "KeyboardInterrupt" in out and "42\n" in out
