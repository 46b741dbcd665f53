"""Compiled programs on disk."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relay import relay
from relay.cli import main
from relay.codegen.runtime import cpu
from relay.compilation import disk_cache
from relay.errors import ExecutionError
from relay.operator import Operator
from relay.transform.passes import PASSES

X = np.arange(3, dtype=np.float32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("RELAY_CACHE_SIZE", str(1 << 20))
    return tmp_path / "kept"


@pytest.fixture
def compilations(monkeypatch):
    """The programs that were compiled, not found."""
    found = []
    original = cpu.compile_native
    monkeypatch.setattr(cpu, "compile_native", lambda *arguments: found.append(arguments) or original(*arguments))
    return found


def define(text, **names):
    return relay.from_source(text, {"relay": relay, **names})


TWICE = "def twice(x):\n    return x * 2.0 + x[0]\n"


def test_what_was_compiled_is_found_again(folder, compilations):
    for _ in range(2):
        np.testing.assert_array_equal(define(TWICE)(X), X * 2)
    assert len(compilations) == 1
    assert len(disk_cache.entries()) == 1


def test_code_on_disk_was_verified(folder, compilations, monkeypatch):
    """What was compiled without verification is not found with it."""
    text = "def f(x):\n    return x * 3.5 + 1.25\n"
    for asked, count in (("0", 1), ("1", 2), ("1", 2), ("0", 2)):
        monkeypatch.setenv("RELAY_VERIFY", asked)
        define(text)(X)
        assert len(compilations) == count


def test_another_constant_name_or_type_is_another_program(folder, compilations):
    define(TWICE)(X)
    np.testing.assert_array_equal(define(TWICE.replace("2.0", "3.0"))(X), X * 3)
    define(TWICE.replace("(x)", "(y)").replace("x *", "y *").replace("x[", "y["))(X)
    define(TWICE)(X.astype(np.float64))
    assert len(compilations) == 4


def test_the_values_of_captured_arrays_count(folder, compilations):
    text = "def scaled(x):\n    return x * factors\n"
    for factors in (X, X + 1):
        np.testing.assert_array_equal(define(text, factors=factors)(X), X * factors)
    assert len(compilations) == 2


def test_an_error_of_a_found_program_stands_at_the_line_of_today(folder, compilations):
    text = "def positive(x):\n    assert x > 0.0, 'not positive'\n    return relay.sqrt(x)\n"
    define(text)(np.float32(4))
    moved = define("# a line more\n" + text)
    with pytest.raises(ExecutionError, match="not positive") as caught:
        moved(np.float32(-1))
    assert caught.value.span.line == 3
    assert len(compilations) == 1


@relay.data
class Chain:
    class End:
        value: relay.Tensor[relay.Float, ()]

    class Link:
        rest: "Chain"


LONGER = "def longer(chain):\n    return Chain.Link(chain)\n"


def test_results_of_a_found_program_are_values_of_the_data_type(folder, compilations):
    for _ in range(2):
        made = define(LONGER, Chain=Chain)(Chain.End(np.float32(3)))
        assert isinstance(made, Chain.Link)
        assert float(made.rest.value) == 3
    assert len(compilations) == 1


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b[:99] + b"?" + b[100:], lambda b: b""])
def test_damaged_files_are_made_anew(folder, compilations, damage, caplog):
    define(TWICE)(X)
    (entry,) = disk_cache.entries()
    # Another file: the library of this one is loaded.
    content = entry.path.read_bytes()
    entry.path.unlink()
    entry.path.write_bytes(damage(content))
    np.testing.assert_array_equal(define(TWICE)(X), X * 2)
    assert len(compilations) == 2
    assert f"{entry.path} is damaged" in caplog.text
    define(TWICE)(X)
    assert len(compilations) == 2


def test_the_log_says_why_a_program_was_not_found(folder, monkeypatch, caplog):
    caplog.set_level("INFO", "relay.compile")

    def reason(text=TWICE):
        caplog.clear()
        define(text)(X)
        return next((r.getMessage() for r in caplog.records if "is not on disk" in r.getMessage()), None)

    assert reason() == "twice is not on disk: there is no program of this name"
    assert reason() is None
    assert "the program differs from those on disk" in reason(TWICE.replace("2.0", "3.0"))
    monkeypatch.setenv("RELAY_NUM_THREADS", "3")
    assert "other options" in reason()
    monkeypatch.setattr(disk_cache, "_environment_key", lambda: "another machine")
    assert "other versions" in reason()


def test_a_user_without_a_home(compilations, monkeypatch, caplog):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    monkeypatch.delenv("RELAY_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("RELAY_CACHE_SIZE", str(1 << 20))
    np.testing.assert_array_equal(define(TWICE)(X), X * 2)
    assert "RELAY_CACHE_DIR says where" in caplog.text
    assert main(["cache"]) == 0


def test_what_was_never_finished_is_removed(folder):
    define(TWICE)(X)
    old, new = folder / f"{disk_cache.UNFINISHED}1", folder / f"{disk_cache.UNFINISHED}2"
    for left_behind in (old, new):
        left_behind.mkdir()
    os.utime(old, (1e9, 1e9))
    define(TWICE.replace("2.0", "3.0"))(X)
    assert not old.exists()
    assert new.exists()  # another process may be writing there


def test_programs_that_call_python_are_not_kept(folder, compilations, capsys):
    for _ in range(2):
        define("def shown(x):\n    print(x)\n    return x\n")(np.float32(1))
    assert len(compilations) == 2
    assert disk_cache.entries() == []


def test_operators_defined_elsewhere_are_not_kept(folder, compilations, monkeypatch):
    monkeypatch.setattr(Operator, "is_builtin", property(lambda operator: operator.name != "add"))
    define(TWICE)(X)
    assert disk_cache.entries() == []


def test_what_other_passes_make_is_neither_found_nor_kept(folder, compilations, monkeypatch):
    define(TWICE)(X)
    right = PASSES["fold_constants"]
    with monkeypatch.context() as patched:
        patched.setitem(PASSES, "fold_constants", functools.wraps(right)(lambda module, **options: right(module)))
        define(TWICE)(X)
        define(TWICE.replace("2.0", "3.0"))(X)
    assert len(compilations) == 3
    assert len(disk_cache.entries()) == 1
    define(TWICE)(X)
    assert len(compilations) == 3


def test_the_programs_used_least_recently_go_first(folder, monkeypatch):
    for factor in (3, 5, 7):  # none that is folded: the files are as large
        define(TWICE.replace("2.0", f"{factor}.0"))(X)
        for age, entry in enumerate(disk_cache.entries()):
            os.utime(entry.path, (1e9 - age, 1e9 - age))
    newest, *_, oldest = disk_cache.entries()
    monkeypatch.setenv("RELAY_CACHE_SIZE", str(newest.size * 3 + 100))
    define(TWICE.replace("2.0", "9.0"))(X)
    left = {entry.path for entry in disk_cache.entries()}
    assert newest.path in left
    assert oldest.path not in left
    assert len(left) == 3


def test_no_size_no_cache(folder, monkeypatch):
    monkeypatch.setenv("RELAY_CACHE_SIZE", "0")
    define(TWICE)(X)
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_costs_time_only(folder, compilations, monkeypatch, caplog):
    folder.parent.joinpath("file").write_text("")
    monkeypatch.setenv("RELAY_CACHE_DIR", str(folder.parent / "file"))
    np.testing.assert_array_equal(define(TWICE)(X), X * 2)
    assert "not kept on disk" in caplog.text


PROGRAM = """
import sys
import numpy as np
from relay import relay

@relay
def total(x):
    s = 0.0
    for v in x:
        s = s + relay.tanh(v)
    return s

print(float(total(np.ones(5, np.float32))), "tvm" in sys.modules)
"""


def test_other_processes_find_it_and_load_no_compiler(folder, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def start():
        return subprocess.Popen([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True)

    at_once = [start(), start()]
    answers = [process.communicate()[0].split() for process in at_once]
    later = start().communicate()[0].split()
    assert {answer[0] for answer in (*answers, later)} == {later[0]}
    assert later[1] == "False"
    assert len(list(folder.iterdir())) == 1


def test_the_command_shows_and_clears(folder, capsys):
    define(TWICE)(X)
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert "1 program, " in shown
    assert str(folder) in shown
    assert main(["cache", "clear"]) == 0
    assert disk_cache.entries() == []
    assert "removed 1 program" in capsys.readouterr().out


def test_what_was_found_is_exported(folder, compilations, tmp_path):
    text = "def scaled(x):\n    return x * factors\n"
    for number in range(3):
        path = tmp_path / f"scaled{number}.so"
        define(text, factors=X).compile(X).export(path, header=tmp_path / "scaled.h")
        loaded = relay.load(path)
        np.testing.assert_array_equal(loaded(X), X * X)
        loaded.export(tmp_path / "again.so")
        np.testing.assert_array_equal(relay.load(tmp_path / "again.so")(X), X * X)
    assert len(compilations) == 1
