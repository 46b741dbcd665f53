"""Files that are checked are data: whatever stands in them, nothing of it is run, and reading it takes little."""

from __future__ import annotations

import ast
import builtins
import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from generators.hostile_forms import EVIL, HEAD, HEADS, IN_CLASSES, LARGE, RUNNING, TOPS, USES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import relay
from relay.api.static_check import Check, check_text
from relay.cli import main
from relay.errors.diagnostic import Diagnostic
from relay.frontend.static.evaluation import Budget, Evaluator, NotEvaluated

_RUNS = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
    "subprocess.Popen",
    "shutil.rmtree",
)
_CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.putenv", "socket.connect", "code.__new__")

_watched: list[list[str]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what code of a file could do. Python has no way to take a hook away."""
    if not _watched:
        return
    if event in _RUNS or event in _CHANGES:
        _watched[-1].append(f"{event} {arguments!r}")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        _watched[-1].append(f"open {arguments!r}")
    if event == "exec":
        name = getattr(arguments[0], "co_filename", "")
        if not os.path.isabs(name) and not name.startswith("<attrs generated"):  # modules have the name of a file
            _watched[-1].append(f"exec {arguments!r}")


@pytest.fixture(scope="module", autouse=True)
def _with_hook() -> Iterator[None]:
    sys.addaudithook(_hook)
    check_text("import relay\n@relay\ndef f(x):\n    return x\n", "first.py")  # which loads what loads late
    yield


def checked(text: str, filename: str = "hostile.py") -> list[Diagnostic]:
    """The diagnostics of a text, of which nothing may be run: its names for that are `canary` and modules."""
    called: list[str] = []
    builtins.canary = lambda *a, **k: called.append("canary")  # type: ignore[attr-defined]
    _watched.append([])
    try:
        found = Check().text(text, filename)
    finally:
        seen = _watched.pop()
        del builtins.canary  # type: ignore[attr-defined]
    assert called == [] and seen == [], text
    return found


def _filled(template: str, first: str, second: str) -> str:
    return template.replace("{0}", first).replace("{1}", second).replace("{2}", "evil_module")


@st.composite
def hostile_files(draw: Any) -> str:
    """A file of statements that would run code of theirs, or take much, and functions that use what these bind."""
    expression = st.sampled_from(RUNNING + LARGE) | st.sampled_from(RUNNING)
    parts = [HEAD, EVIL, "@relay\ndef f(x):\n    return x * 2.0"]
    for _ in range(draw(st.integers(1, 3))):
        first, second = draw(expression), draw(expression)
        if draw(st.booleans()):
            part = _filled(draw(st.sampled_from(TOPS)), first, second)
        else:
            inside = draw(st.lists(st.sampled_from(IN_CLASSES), min_size=1, max_size=3))
            body = "\n".join(_filled(line, draw(expression), draw(expression)) for line in inside)
            part = _filled(draw(st.sampled_from(HEADS)), first, second) + "\n" + textwrap.indent(body, "    ")
        parts.append(part)
        parts.append(_filled(draw(st.sampled_from(USES)), draw(expression), ""))
    return "\n".join(parts) + "\n"


@given(text=hostile_files())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_of_a_hostile_file_is_run(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "hostile"
    folder.mkdir(exist_ok=True)
    module = folder / "evil_module.py"
    if not module.exists():
        module.write_text(
            "canary()\nX = canary()\ndef __getattr__(name):\n    return canary()\nclass X:\n    x: canary()\n"
        )
    for diagnostic in checked(text, str(folder / "hostile.py")):
        diagnostic.render()


@pytest.mark.parametrize("template", [*TOPS, *(f"class X:\n{textwrap.indent(t, '    ')}" for t in IN_CLASSES)])
def test_each_form_is_not_run(template: str) -> None:
    use = "@relay\ndef used(a: X):\n    return X(a)\n"
    for head in ("", "@dataclasses.dataclass\n", "@relay.data\n") if template.startswith("class") else ("",):
        checked(
            f"{HEAD}{EVIL}@relay\ndef f(x):\n    return x\n{head}{_filled(template, 'canary()', 'canary()')}\n{use}"
        )


@pytest.mark.parametrize("expression", [*RUNNING, *LARGE])
def test_each_expression_is_not_run(expression: str) -> None:
    checked(f"{HEAD}{EVIL}@relay\ndef f(x):\n    return x\nX = {expression}\n@relay\ndef g(x):\n    return x + X\n")


def test_no_reader_of_files_evaluates_text() -> None:
    """Python's own evaluators are not used where files are read."""
    folder = Path(relay.__file__).parent
    allowed = {("source.py", "compile")}  # of a function that Python has made of the same text, to compare; not run
    files = [*folder.glob("frontend/**/*.py"), *folder.glob("mypy/*.py"), *folder.glob("typecheck/**/*.py")]
    files += [*folder.glob("text/*.py"), *folder.glob("ir/**/*.py"), folder / "api" / "static_check.py"]
    files.append(folder / "cli" / "inputs.py")
    assert len(files) > 100
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                used = (file.name, node.func.id)
                assert node.func.id not in ("eval", "exec", "compile", "__import__") or used in allowed, used


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(1 + 2) * 3 - -4 // 3 % 5 ** 2", 10 - 1 + 24 - 24 + 2),
        ("'a' * 3 + 'b'", "aaab"),
        ("[*range(3), len('ab')]", [0, 1, 2, 2]),
        ("{'a': (1, 2)}['a'][1:]", (2,)),
        ("1 < 2 <= 2 and not 3 in (1, 2) or 5", True),
        ("1 if 'a' == 'b' else math.floor(2.5)", 2),
        ("sum(zip(range(3), range(3)), ())", (0, 0, 1, 1, 2, 2)),
        ("np.arange(6).reshape", NotEvaluated),
        ("np.reshape(np.arange(6), (2, 3))[1].shape", (3,)),
        ("float(np.float32(0.5) + np.exp(0.0))", 1.5),
        ("np.finfo(np.float32).bits", 32),
        ("min(3, 2) + max([4, 5]) + abs(-1) + round(2.6)", 11),
        ("1 << 4096", NotEvaluated),
        ("[0] * 10 ** 8", NotEvaluated),
        ("[i for i in range(3)]", NotEvaluated),
        ("(lambda: 1)()", NotEvaluated),
    ],
)
def test_values_that_are_known_without_a_run(expression: str, value: object) -> None:
    import math

    import numpy as np

    evaluator = Evaluator({"np": np, "math": math})
    node = ast.parse(expression, mode="eval").body
    if value is NotEvaluated:
        with pytest.raises(NotEvaluated):
            evaluator.value(node)
    elif isinstance(value, int) and expression.startswith("(1 + 2)"):
        assert evaluator.value(node) == eval(expression)
    else:
        assert evaluator.value(node) == value


def test_what_files_make_together_is_bounded() -> None:
    text = HEAD + "".join(f"X{i} = np.zeros((1000, 1000))\n" for i in range(60))
    files = Check()
    files.text(text, "large.py")
    with pytest.raises(NotEvaluated):
        files._files.budget.take(10**6)
    assert Budget().take(10**6) is None


def test_shared_parts_are_counted_as_often_as_they_occur() -> None:
    lines = "".join(f"X{i + 1} = [X{i}, X{i}]\n" for i in range(24))
    found = checked(f"{HEAD}X0 = [1.0]\n{lines}@relay\ndef f(x):\n    return x + X24[0]\n")
    assert ["was not checked" in d.message for d in found] == [True]


# ---- files and folders


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


PROGRAM = "from relay import relay\n@relay\ndef f(x):\n    return x[()] + y\n"


def test_folders_that_lead_into_themselves_are_searched_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inner = folder / "a"
    inner.mkdir()
    (inner / "program.py").write_text(PROGRAM)
    for name in ("up", "again", "here"):
        (inner / name).symlink_to(folder if name == "up" else inner, target_is_directory=True)
    assert main(["check", str(folder)]) == 1
    assert "1 error in 1 file" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
@pytest.mark.parametrize("suffix", ["py", "relay"])
def test_pipes_devices_and_broken_links_are_refused(
    folder: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, make in enumerate([os.mkfifo, lambda p: os.symlink("/dev/zero", p), lambda p: os.symlink(p, p)]):
        inner = folder / str(number)
        inner.mkdir()
        make(str(inner / f"program.{suffix}"))
        assert main(["check", str(inner)]) != 0
        said = capsys.readouterr()
        assert "cannot read" in said.err + said.out and "Traceback" not in said.err


@pytest.mark.parametrize(
    "text", [b"# coding: zlib\n", b"# coding: idna\nx = '\xff'", b"# coding: nothing\n", b"\xff\xfe", b"x = 1\0"]
)
def test_encodings(folder: Path, text: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "program.py").write_bytes(text)
    assert main(["check", "program.py"]) != 0
    assert "Traceback" not in capsys.readouterr().err


def test_imported_modules_that_cannot_be_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    (folder / "late.py").write_text("canary()\nSIZE = 3\n")
    text = "from pipe import *\nimport numpy.none, relay.none\nfrom late import SIZE\nfrom relay import relay\n"
    text += "@relay\ndef f(x):\n    return x + SIZE\n"
    assert [d.severity for d in checked(text, str(folder / "program.py"))] == []
