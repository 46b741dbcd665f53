"""Object code in memory: what a program keeps while it can be called, and what is not loaded."""

from __future__ import annotations

import gc
import logging
import platform
import re
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from relay.codegen.lowering.module_builder import assemble
from relay.codegen.runtime import loading
from relay.codegen.runtime.cpu import compile_module
from relay.codegen.runtime.loading import LoadedCode, UnloadableCodeError, load

ROOT = Path(__file__).parents[2]
X = np.linspace(-2.0, 2.0, 100, dtype=np.float32)
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64", reason="for x86-64 on Linux"
)


def function(text: str) -> Any:
    return relay.from_source(f"def f(x): return {text}", {"relay": relay})


@pytest.fixture(scope="module")
def code() -> bytes:
    native = assemble(function("relay.sum(relay.exp(x), axis=0)").core(X), 1, {})
    assert native.code is not None
    return native.code[0]


def executable() -> set[str]:
    """The ranges of memory of no file that are executable."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    return {line[0] for line in lines if "x" in line[1] and len(line) == 5}


def executable_and_writable() -> set[str]:
    """The ranges of memory that are both."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    return {line[0] for line in lines if "w" in line[1] and "x" in line[1]}


def test_nothing_is_executable_and_writable_in_a_process_that_compiles() -> None:
    program = """
        from pathlib import Path
        import numpy as np
        import relay
        f = relay.from_source("def f(x): return relay.tanh(x) * 3.0", {"relay": relay})
        f(np.ones(3, np.float32))
        modes = [line.split()[1] for line in Path("/proc/self/maps").read_text().splitlines()]
        print(any("w" in mode and "x" in mode for mode in modes))
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert (run.stdout, run.returncode) == ("False\n", 0), run.stderr


def test_code_is_not_writable_and_goes_with_the_program() -> None:
    gc.collect()  # what other tests have left might go in between
    before, writable = executable(), executable_and_writable()
    program = function("relay.tanh(x) * 3.0").compile(X)
    assert len(executable() - before) == 1
    assert executable_and_writable() == writable  # other tests hand callbacks to C, whose page ctypes makes so
    np.testing.assert_allclose(program(X), np.tanh(X) * 3, rtol=2e-6)
    del program
    gc.collect()
    assert not executable() - before


def test_a_function_keeps_its_code() -> None:
    program = compile_module(function("x + 1.0").core(X), threads=1)
    run = program.native.function
    del program
    gc.collect()
    assert "Function" in type(run).__name__ and len(executable()) >= 1


def test_programs_are_small() -> None:
    """Each has its code, about 50 KiB with what is said of it; the compiler's state would be a megabyte."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    kept = [function(f"relay.tanh(x) + {number}.0") for number in range(25)]
    for one in kept[:5]:
        one(X)
    gc.collect()
    before = resident()
    for one in kept[5:]:
        one(X)
    gc.collect()
    assert (resident() - before) / 20 < 400_000


def test_several_threads_and_functions_of_others() -> None:
    source = "relay.sum(relay.tanh(x) + relay.erf(x), axis=1), relay.atan2(x, x + 1.0)"
    x = np.random.default_rng(0).standard_normal((600, 700)).astype(np.float32)
    made = function(source)
    program = compile_module(made.core(x), threads=2)
    assert isinstance(program.native.module, LoadedCode)
    for found, expected in zip(program([x]), made.interpret(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def changed(code: bytes, at: int, content: bytes) -> bytes:
    return code[:at] + content + code[at + len(content) :]


def relocations(code: bytes) -> Iterator[int]:
    """Where the relocations of the code stand."""
    (section,) = (s for s in loading._sections(code) if s.name == ".rela.text")
    yield from range(section.start, section.start + section.size, 24)


def test_other_files_are_refused(code: bytes) -> None:
    kind = next(relocations(code)) + 8
    name = code.rindex(b"__tvm_ffi_main")
    for content, reason in (
        (b"", "not an object file"),
        (b"\x7fELF", "not an object file"),
        (changed(code, 4, b"\1"), "not an object file"),
        (changed(code, 18, struct.pack("<H", 183)), "not for x86-64"),
        (changed(code, kind, struct.pack("<I", 23)), "a relocation of kind 23"),
    ):
        with pytest.raises(UnloadableCodeError, match=reason):
            load(content)
    with pytest.raises(KeyError):
        load(changed(code, name, b"__tvm_ffi_mine"))["main"]


def test_a_function_that_there_is_not(code: bytes) -> None:
    found = re.search(rb"\0(TVMFFIErrorSetRaisedFromCStr)\0", code)
    assert found is not None
    with pytest.raises(UnloadableCodeError, match="there is no TVMFFIErrorSetRaisedFromNone"):
        load(changed(code, found.start(1), b"TVMFFIErrorSetRaisedFromNone"))


@pytest.mark.usefixtures("low_effort")
def test_a_start_that_does_nothing() -> None:
    """LLVM keeps TVM's empty function where it optimizes nothing; what runs another one at the start is refused."""
    native = assemble(function("relay.sum(relay.exp(x), axis=0)").core(X), 1, {})
    assert isinstance(native.module, LoadedCode) and native.code is not None
    (code,) = native.code
    at = code.rindex(b"__tvm_module_startup")
    with pytest.raises(UnloadableCodeError, match="something of it has to run first"):
        load(changed(code, at, b"__our_module_startup"))


def test_what_is_not_loaded_runs_nevertheless(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loading, "_X86_64", 0)
    with caplog.at_level(logging.INFO, "relay.compile"):
        program = function("relay.tanh(x) * 5.0").compile(X)
    assert "it is not for x86-64" in caplog.text
    np.testing.assert_allclose(program(X), np.tanh(X) * 5, rtol=2e-6)
    assert program._program.native.code is None and len(program._program.native.object_code[0]) > 1000
