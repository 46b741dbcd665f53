"""`relay check`: what is counted, the form for editors, encodings, and files that are imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relay.cli import main


def test_warnings_and_errors_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text("from relay import relay\n@relay\ndef f(x):\n    a = x\n    return x\n")
    assert main(["check", str(path)]) == 0
    out = capsys.readouterr().out
    assert "program.py:4:5: warning: `a` is never used" in out and out.endswith("no errors and 1 warning in 1 file\n")


def test_the_form_for_editors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "from relay import relay, Tensor, Float\n@relay\ndef f(x: Tensor[Float, (2,)], c: bool):\n"
        "    if c:\n        y = x\n    else:\n        y = x[0]\n    return y\n"
    )
    assert main(["check", "--json", str(path)]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {
            "file": str(path), "line": 7, "column": 9, "end_line": 7, "end_column": 10,
            "severity": "error", "code": "TypeMismatch",
            "message": "y is Tensor[float32, (2,)] on one path and Tensor[float32, ()] on another",
            "labels": [
                {
                    "file": str(path), "line": 5, "column": 9, "end_line": 5, "end_column": 10,
                    "message": "here it is Tensor[float32, (2,)]",
                }
            ],
            "notes": ["the rank is 0, not 1"], "help": None,
        }
    ]  # fmt: skip


def test_encodings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_bytes("# coding: latin-1\nfrom relay import relay\n@relay\ndef f(ä):\n    return ö\n".encode("latin-1"))
    assert main(["check", str(path)]) == 1
    assert "5 |     return ö" in capsys.readouterr().out
    path.write_bytes("from relay import relay\nx = 'ä'\n".encode("latin-1"))
    assert main(["check", str(path)]) == 2
    assert "cannot read" in capsys.readouterr().err
    path.write_bytes(b"# coding: nonsense\n")
    assert main(["check", str(path)]) == 2
    path.write_bytes(b"\xef\xbb\xbffrom relay import relay\r\n@relay\r\ndef f(x):\r\n    return y\r\n")
    capsys.readouterr()
    assert main(["check", str(path)]) == 1
    assert "4 |     return y\n  |            ^" in capsys.readouterr().out


def test_importing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    text = "from relay import relay\nSIZE = [3 for _ in 'a'][0]\nclass A:\n    @relay\n    def f(self, x):\n"
    path.write_text(text + "        a = x\n        return x + nothing\n")
    assert main(["check", "--import", str(path)]) == 1
    out = capsys.readouterr().out
    assert "'nothing' is not defined" in out and "`a` is never used" in out
    path.write_text(text + "        with x:\n            import y\n\n1 / 0\n")
    assert main(["check", "--import", str(path)]) == 1
    assert capsys.readouterr().out.count("error:") == 1
    path.write_text("from relay import relay\n@relay\ndef f(x):\n    return nothing\nraise KeyError('here')\n")
    assert main(["check", "--import", str(path)]) == 1
    out = capsys.readouterr().out
    assert "cannot be imported: KeyError: 'here'" in out and "'nothing' is not defined" in out


def test_errors_that_a_program_catches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "from relay import relay\nclass TooLarge(Exception):\n    pass\n@relay\ndef f(x):\n    try:\n"
        "        if x > 1.0:\n            raise TooLarge('x')\n        return x\n"
        "    except (TooLarge, ValueError):\n        return 1.0\n"
    )
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.endswith("no errors in 1 file\n")
