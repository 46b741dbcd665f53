"""`relay profile`: the tables, and the files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relay.cli import main
from relay.codegen.runtime.machine_peak import MachinePeak
from relay.debug.profiling import machine

PROGRAM = """import relay


@relay
def total(xs, scale):
    found = 0.0
    for x in xs:
        found += relay.log(x) * scale["by"]
    return found
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAY_NUM_THREADS", "1")
    monkeypatch.setitem(machine._known, 1, MachinePeak(1, {"float32": 2e10}, ((1 << 13, 5e10),)))
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    np.savez(tmp_path / "a.npz", xs=np.array([1.0, 2.0, 4.0]), **{"scale.by": np.float64(2.0)})
    return path


def test_tables_and_files(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = file.parent / "out" / "deep"
    arguments = ["profile", f"{file}:total", "--args", str(file.with_name("a.npz")), "--runs", "2"]
    assert main([*arguments, "--output", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "total: " in said and "the median of 2" in said and "program.py:8" in said
    assert sorted(path.name for path in folder.iterdir()) == ["flame.html", "flame.svg", "memory.svg", "trace.json"]
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]
    (file.parent / "taken").write_text("")
    assert main([*arguments, "--output", str(file.parent / "taken")]) == 2
    assert "cannot write to" in capsys.readouterr().err


def test_wrong_calls(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", f"{file}:total", "--runs", "0"]) == 2
    assert "--runs is a number from 1 on, found 0" in capsys.readouterr().err
    assert main(["profile", f"{file}:totall"]) == 2
    assert "did you mean 'total'" in capsys.readouterr().err
    assert main(["profile", f"{file}:total"]) == 1
    assert "total needs a value for 'xs'" in capsys.readouterr().out
