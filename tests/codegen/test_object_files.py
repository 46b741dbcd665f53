"""Programs of several kernels are compiled on two threads, into two files, with the answers and errors of one."""

from __future__ import annotations

import platform
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from relay.codegen.lowering import module_builder
from relay.codegen.lowering.module_builder import assemble
from relay.codegen.runtime import native_stacks
from relay.codegen.runtime.cpu import Program, compile_module
from relay.codegen.runtime.loading import LoadedCode, UnloadableCodeError
from relay.codegen.runtime.native_stacks import run_both
from relay.codegen.tvm import llvm_objects, tir
from relay.errors import CompileError, ExecutionError, InternalError

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64", reason="for x86-64 on Linux"
)

X = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)


@relay.relay
def several(x):
    h = relay.tanh(x) + x
    g = relay.sin(h @ x)
    m = relay.softmax(g * 0.5)
    total = relay.sum(relay.cumsum(m, axis=0) * h, axis=1)
    order = relay.argsort(total)
    assert total[0] < 1e6, "too large"
    return relay.cos(g[order]), total, relay.sigmoid(m.T @ g)


@relay.relay
def looping(x):
    for _ in range(3):
        x = several(x)[2]
    return x


def test_there_are_two_files_and_the_same_each_time() -> None:
    core = several.core(X)
    made = [assemble(core, 2, {}).object_code for _ in range(3)]
    assert len(made[0]) == 2 and all(min(map(len, files)) > 1000 for files in made)
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_answers_are_those_of_one_file(threads: int) -> None:
    program = compile_module(several.core(X), threads=threads)
    assert isinstance(program.native.module, LoadedCode)
    assert len(program.native.object_code) == min(threads, 2)
    for found, expected in zip(program([X]), several.interpret(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_errors_of_a_program_in_two_files() -> None:
    program = compile_module(several.core(X), threads=2)
    with pytest.raises(ExecutionError, match="too large"):
        program([np.full((16, 16), 1e9, np.float32)])


def test_loops_and_few_kernels_are_one_file() -> None:
    small = relay.relay(lambda x: relay.tanh(x) @ x)
    for function in (looping, small):
        assert len(assemble(function.core(X), 2, {}).object_code) == 1


def test_what_calls_python_is_one_file() -> None:
    @relay.relay
    def printing(x):
        print(relay.sum(several(x)[1]))
        return several(x * 2.0)[2]

    assert assemble(printing.core(X), 2, {}).code is None


def test_two_files_become_one_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_NUM_THREADS", "2")
    compiled = several.compile(X)
    assert len(compiled._program.native.object_code) == 2
    first = tmp_path / "first.so"
    compiled.export(first)
    again = tmp_path / "again.so"
    relay.load(first).export(again)
    expected = several(X)
    for path in (first, again):
        loaded = relay.load(path)
        assert len(loaded._program.native.object_code) == 2
        for found, wanted in zip(loaded(X), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_two_files_are_found_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DIR": str(tmp_path), "SIZE": str(1 << 30)}.items():
        monkeypatch.setenv(f"RELAY_CACHE_{name}", value)
    monkeypatch.setenv("RELAY_NUM_THREADS", "2")
    text = "def f(x):\n    return " + " + ".join(f"relay.cumsum(relay.sin(x * {n}.5) @ x, axis=0)" for n in range(1, 4))
    made = [relay.from_source(text, {"relay": relay}).compile(X) for _ in range(2)]
    assert [len(one._program.native.object_code) for one in made] == [2, 2]
    assert not any(isinstance(one._program.native.module, LoadedCode) for one in made)
    np.testing.assert_array_equal(made[0](X), made[1](X))


def test_two_files_that_cannot_be_loaded_become_one(monkeypatch: pytest.MonkeyPatch) -> None:
    load = module_builder.load

    def refusing(*files: bytes) -> Any:
        if len(files) > 1:
            raise UnloadableCodeError("there are two")
        return load(*files)

    monkeypatch.setattr(module_builder, "load", refusing)
    native = assemble(several.core(X), 2, {})
    assert len(native.object_code) == 1
    found = Program(native, lambda *_: None)([X])
    np.testing.assert_allclose(found[1], several.interpret(X)[1], rtol=2e-5)


def test_what_tvm_refuses_on_either_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_ = tir.machine_code
    main = threading.current_thread()
    for here in (True, False):

        def refusing(module: Any, machine: Any, here: bool = here) -> bytes:
            if (threading.current_thread() is main) is here:
                raise InternalError("refused")
            return compile_(module, machine)

        monkeypatch.setattr(tir, "machine_code", refusing)
        with pytest.raises(InternalError, match="refused"):
            assemble(several.core(X), 2, {})


def test_programs_are_compiled_by_several_threads_at_once() -> None:
    found: list[Any] = []
    of_each_size = relay.relay(dynamic=False)(several.__wrapped__)
    cores = [of_each_size.core(X[:n, :n]) for n in (8, 12, 16)]

    def compile_one(core: Any) -> None:
        found.append(assemble(core, 2, {}).object_code)

    expected = [assemble(core, 2, {}).object_code for core in cores]
    running = [threading.Thread(target=compile_one, args=(core,)) for core in cores]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert sorted(found) == sorted(expected)


def test_half_of_the_work_is_apart() -> None:
    generated = module_builder._generate(several.core(X), 2, {})
    functions, kernels = generated.functions, generated.kernels
    module = tir.lower_functions(functions, tir.target(2, kernels.calls, repeats=False))
    names = {kernel.name_hint for kernel in kernels.functions}
    apart = llvm_objects._second_half(module, names, kernels.calls)
    assert apart and apart < names
    assert llvm_objects._second_half(module, names, 10**6) == names  # where calls are most of the work


# ---- two threads


def test_both_return() -> None:
    at = threading.Barrier(2, timeout=30)  # so they run at the same time

    def here() -> str:
        at.wait()
        return "here"

    def beside() -> tuple[str, bool]:
        at.wait()
        return "beside", threading.current_thread() is not threading.main_thread()

    assert run_both(here, beside) == ("here", ("beside", True))


def _raising(message: str) -> Any:
    raise CompileError(message)


def test_what_either_raises() -> None:
    ended: list[int] = []
    with pytest.raises(CompileError, match="here"):
        run_both(lambda: _raising("here"), lambda: ended.append(1))
    assert ended == [1]  # both have ended
    with pytest.raises(CompileError, match="beside"):
        run_both(lambda: ended.append(2), lambda: _raising("beside"))
    with pytest.raises(CompileError, match="here"):
        run_both(lambda: _raising("here"), lambda: _raising("beside"))
    assert ended == [1, 2]


def test_without_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_stacks, "_start_thread", lambda *_: None)
    assert run_both(lambda: 1, lambda: 2) == (1, 2)
    with pytest.raises(CompileError, match="beside"):
        run_both(lambda: 1, lambda: _raising("beside"))
