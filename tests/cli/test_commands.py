"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

import relay
from relay.cli import main

PROGRAM = """
from relay import relay, Tensor, Float
import numpy as np
from somewhere import thing

n, m = relay.dims("n m")
SCALE = 2.5
raise SystemExit("the file was run")


@relay
def good(x: Tensor[Float, (n, m)], w: Tensor[Float, (m, 3)]):
    return np.tanh(x @ w) * SCALE


@relay
def bad(x: Tensor[Float, (4, 3)], w: Tensor[Float, (4, 3)]):
    return x @ w  # wrong


@relay
def outside(x):
    return good(x, thing(x))


@relay(opt_level=3)
def unsupported(x):
    import missing_module  # wrong
    return x


@relay
def later(x: Tensor[Float, (2,)]):
    return helper(x) + helpr(x)  # wrong


@relay
def helper(x):
    return x * 2


def plain(x):
    return x + undefined  # no concern of Relay's
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A file with three mistakes, which ends the process when it is run."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def wrong_lines() -> list[int]:
    return [i for i, line in enumerate(PROGRAM.splitlines(), start=1) if "# wrong" in line]


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"relay {relay.__version__}\n"


def test_check_reads_without_running(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(program)]) == 1
    out = capsys.readouterr().out
    for line in wrong_lines():
        assert f"{program}:{line}:" in out
    assert "did you mean 'helper'?" in out
    assert "outside was not checked" in out and "'thing'" in out
    assert out.rstrip().endswith("3 errors in 1 file")


def test_check_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json", str(program)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [d["line"] for d in found if d["severity"] == "error"] == wrong_lines()
    first = next(d for d in found if d["severity"] == "error")
    assert first["file"] == str(program) and first["column"] < first["end_column"]
    assert "(4, 3)" in first["message"]


def test_check_imports_when_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "imported.py"
    path.write_text(
        textwrap.dedent("""
        from relay import relay, Float, Tensor
        def make():
            return 3
        SIZE = make()

        @relay
        def f(x: Tensor[Float, (2,)]):
            return x.sum() * SIZE + x[SIZE]
    """)
    )
    assert main(["check", str(path)]) == 0
    assert "'SIZE'" in capsys.readouterr().out
    assert main(["check", "--import", str(path)]) == 1
    assert "index 3 is out of range" in capsys.readouterr().out


def test_clean_file_and_bad_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "clean.py"
    path.write_text("from relay import relay\n\n@relay\ndef f(x):\n    return x * 2\n")
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == "no errors in 1 file\n"
    assert main(["check", str(tmp_path / "missing.py")]) == 2
    assert "cannot read" in capsys.readouterr().err
    path.write_text("def f(:\n")
    assert main(["check", str(path)]) == 1
    with pytest.raises(SystemExit) as caught:
        main(["chek"])
    assert caught.value.code == 2


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "clean.py"
    path.write_text("from relay import relay\n\n@relay\ndef f(x):\n    return x * 2\n")
    assert main(["show", f"{path}:f"]) == 0
    assert "multiply(%x" in capsys.readouterr().out
    assert main(["show", f"{path}:g"]) == 2
    assert "no decorated function 'g'" in capsys.readouterr().err
