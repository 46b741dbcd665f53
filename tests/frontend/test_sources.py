"""Functions from notebooks, prompts, texts given to `exec`, files that change, and behind other decorators."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import linecache
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import relay as relay_module
from relay import Float, Tensor, relay
from relay.errors import FrontendError

# ---- notebooks


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An IPython shell without history and colors."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    made = InteractiveShell(config=config)
    made.run_cell("import relay\nfrom relay import Tensor, Float, relay", store_history=True)
    yield made
    made.restore_sys_module_state()
    for name in ("ps1", "ps2", "ps3"):
        vars(sys).pop(name, None)  # or the prompts of later tests are IPython's


def run_cell(shell: Any, text: str) -> Any:
    """Run a cell and return its value. Raises what it raised."""
    result = shell.run_cell(textwrap.dedent(text), store_history=True)
    result.raise_error()
    return result.result


def test_functions_of_cells(shell: Any) -> None:
    run_cell(shell, "@relay\ndef double(x):\n    return x * 2.0\n")
    assert float(run_cell(shell, "@relay\ndef f(x):\n    return double(x) + 1.0\n\nf(3.0)")) == 7.0


def test_a_cell_that_is_run_again(shell: Any) -> None:
    cell = "@relay\ndef f(x):\n    return x + 1.0\n\nf(1.0)"
    assert [float(run_cell(shell, cell)) for _ in range(2)] == [2.0, 2.0]
    assert float(run_cell(shell, cell.replace("1.0\n", "5.0\n"))) == 6.0
    assert float(run_cell(shell, cell)) == 2.0


def test_magic_and_await_in_a_cell(shell: Any) -> None:
    text = "import asyncio\nawait asyncio.sleep(0)\n\n@relay\ndef f(x):\n    return x + 1.0\n\nf(1.0)"
    assert float(run_cell(shell, text)) == 2.0
    assert float(run_cell(shell, "names = !echo a\n@relay\ndef g(x):\n    return x * 3.0\n\ng(2.0)")) == 6.0


def test_data_classes_of_cells(shell: Any) -> None:
    run_cell(shell, "@relay.data\nclass Pair:\n    a: Tensor[Float, ()]\n    b: Tensor[Float, ()]\n")
    assert float(run_cell(shell, "@relay\ndef f(p):\n    return p.a - p.b\n\nf(Pair(5.0, 3.0))")) == 2.0


def test_errors_of_cells(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("@relay\ndef f(x):\n    return x + y\n\nf(1.0)", store_history=True)
    out = capsys.readouterr().out
    assert "the name 'y' is not defined" in out and "3 |     return x + y" in out and "^" in out
    assert "compiler.py" not in out and "interactiveshell.py" not in out
    assert out.count("Traceback") == 1


# ---- texts given to exec, prompts


def execute(text: str, filename: str, **names: object) -> dict[str, Any]:
    """Run a text that `linecache` knows."""
    text = textwrap.dedent(text)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    found: dict[str, Any] = {"relay": relay, **names}
    exec(compile(text, filename, "exec"), found)
    return found


def test_a_text_given_to_exec() -> None:
    assert float(execute("@relay\ndef f(x):\n    return x - 1.0\n", "<exec 1>")["f"](3.0)) == 2.0


def test_functions_without_a_module_are_read() -> None:
    text = "def double(x):\n    return x * 2.0\n\n@relay\ndef f(x):\n    return double(x) - 1.0\n"
    found = execute(text, "<exec 4>")
    assert found["double"].__module__ is None
    assert float(found["f"](3.0)) == 5.0


def test_a_name_of_a_text_that_is_used_again() -> None:
    old = execute("def f(x):\n    return x - 1.0\n", "<exec 2>")["f"]
    new = execute("def f(x):\n    return x - 2.0\n", "<exec 2>")["f"]
    assert float(relay(new)(3.0)) == 1.0
    with pytest.raises(FrontendError, match="the text of `f` has changed since Python read it") as caught:
        relay(old)
    assert "run the cell again" in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after"),
    [("x + 1", "x + 2"), ("x + 0.0", "x + -0.0"), ("x + y", "x + z"), ("x + 1", "x - 1"), ("x in {'a'}", "x in {'b'}")],
)
def test_every_change_is_noticed(before: str, after: str) -> None:
    old = execute(f"def f(x, y=1, z=2):\n    return {before}\n", "<exec 3>")["f"]
    execute(f"def f(x, y=1, z=2):\n    return {after}\n", "<exec 3>")
    with pytest.raises(FrontendError, match="has changed"):
        relay(old)
    execute(f"def f(x, y=1, z=2):\n    return ({before})\n", "<exec 3>")
    assert relay_module.frontend.source.find_function(old)


def test_no_source(tmp_path: Path) -> None:
    program = "from relay import relay\n@relay\ndef f(x):\n    return x\n"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(
        [sys.executable, "-"], input=program, env=environment, capture_output=True, text=True, check=False
    )
    assert "the source of `f` is not available (<stdin>)" in done.stderr
    assert "relay.from_source(text)" in done.stderr and "relay repl" in done.stderr
    assert done.stderr.count('File "') == 1


def test_functions_of_other_languages() -> None:
    with pytest.raises(FrontendError, match="found builtin_function_or_method"):
        relay(len)
    with pytest.raises(FrontendError, match="found int"):
        relay(3)


# ---- files that change


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_file_that_is_edited_after_its_import(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    path.write_text("def f(x):\n    return x + 1.0\n\n\ndef g(x):\n    return x\n")
    module = imported(path)
    assert float(relay(module.f)(1.0)) == 2.0
    path.write_text("def f(x):\n    return x + 9.0\n\n\ndef g(x):\n    return x\n")
    os.utime(path, (time.time() + 5, time.time() + 5))
    with pytest.raises(FrontendError, match="the text of `f` has changed") as caught:
        relay(module.f)
    assert "import the file or run the cell again" in str(caught.value) and caught.value.span is not None
    assert float(relay(module.g)(1.0)) == 1.0  # its own text is the same
    path.write_text("# a line more\ndef f(x):\n    return x + 1.0\n")
    os.utime(path, (time.time() + 9, time.time() + 9))
    with pytest.raises(FrontendError, match="the file has changed since it was imported"):
        relay(module.f)


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes("# coding: latin-1\ndef f(größe):\n    return größe + 'ä'\n".encode("latin-1"))
    with pytest.raises(relay_module.TypeMismatch) as caught:
        relay(imported(path).f)(1.0)
    assert "latin.py:3:12: error" in str(caught.value)
    assert "3 |     return größe + 'ä'\n  |            ^^^^^^^^^^^" in str(caught.value)


# ---- decorators, classes, lambdas


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        wrapper.calls += 1  # type: ignore[attr-defined]
        return function(*arguments, **keywords)

    wrapper.calls = 0  # type: ignore[attr-defined]
    return wrapper


def registered(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def test_other_decorators_above() -> None:
    @counted
    @registered
    @relay
    @registered
    def f(x):  # type: ignore[no-untyped-def]
        return x + 1.0

    assert float(f(1.0)) == 2.0 and f.calls == 1  # type: ignore[attr-defined]


def test_other_decorators_below() -> None:
    with pytest.raises(FrontendError) as caught:

        @relay
        @counted
        def f(x):  # type: ignore[no-untyped-def]
            return x

    assert "put @relay directly above `def`" in str(caught.value)
    assert "the result of another decorator on f" in str(caught.value)
    with pytest.raises(FrontendError, match="put @relay directly above"):
        relay(functools.lru_cache(lambda x: x))
    with pytest.raises(FrontendError, match="put @relay directly above"):
        relay(staticmethod(lambda x: x))


def test_decorated_lambdas() -> None:
    double, triple = relay(lambda x: x * 2.0), relay(lambda x: x * 3.0)
    pair = (relay(lambda x: x + 1.0), relay(lambda x: x + 1.0))
    assert [float(f(1.0)) for f in (double, triple, *pair)] == [2.0, 3.0, 2.0, 2.0]


def test_functions_in_class_bodies() -> None:
    class Layer:
        scale = 3.0

        @staticmethod
        @relay
        def twice(x: Tensor[Float, ()]):  # type: ignore[no-untyped-def]
            return x * 2.0

        square = staticmethod(relay(lambda x: x * x))

        class Inner:
            @staticmethod
            @relay
            def half(x):  # type: ignore[no-untyped-def]
                return x / 2.0

    functions = (Layer.twice, Layer().twice, Layer.square, Layer.Inner.half)
    assert [float(f(4.0)) for f in functions] == [8.0, 8.0, 16.0, 2.0]


@dataclasses.dataclass
class Affine:
    weight: np.ndarray
    bias: float

    @relay
    def __call__(self, x):  # type: ignore[no-untyped-def]
        return self.weight * x + self.bias

    @relay
    def doubled(self, x, *, times=2.0):  # type: ignore[no-untyped-def]
        return (self.weight * x + self.bias) * times


def test_methods_of_records() -> None:
    affine = Affine(np.arange(3.0), 1.0)
    assert np.array(affine(2.0)).tolist() == [1.0, 3.0, 5.0]
    assert np.array(affine.doubled(2.0)).tolist() == [2.0, 6.0, 10.0]
    assert np.array(affine.doubled(2.0, times=1.0)).tolist() == [1.0, 3.0, 5.0]
    assert np.array(Affine.doubled(affine, 2.0)).tolist() == [2.0, 6.0, 10.0]
