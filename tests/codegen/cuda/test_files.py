"""Files of programs for GPUs: `Executable.export` and `relay.load`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from agreement import assert_agree
from gpu.emulation import COMPILER, EmulatedDriver, emulation

import relay
from relay import Float32, Tensor
from relay.codegen.cuda import program_file
from relay.codegen.cuda.driver import use_toolchain
from relay.errors import CompileError, ExecutionError, TypeMismatch

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module", autouse=True)
def driver() -> Iterator[EmulatedDriver]:
    made = EmulatedDriver()
    with use_toolchain(emulation(made)):
        yield made


@relay.data
class Chain:
    class Link:
        row: Tensor[Float32, (3,)]
        rest: Chain

    class End:
        pass


@relay.relay
def length(chain: Chain):
    match chain:
        case Chain.Link(_, rest):
            return 1 + length(rest)
        case Chain.End():
            return 0


@relay.relay
def everything(x, rounds, state):
    """Captured arrays, loops of both kinds, data types, references, lists, prints and assertions."""
    h = relay.tanh(x @ W)
    chain, seen = Chain.End(), []
    for n in range(rounds):
        chain = Chain.Link(x[0] * n, chain)
        seen.append(h.sum() + n)
    while (h * h).sum() > 0.1:
        h = h * 0.5
    state.value = state.value + length(chain)
    assert h[0, 0] < 1.0, "too large"
    return {"h": h, "seen": seen[-1], "sizes": (len(seen), x.shape[0])}


def test_a_program_with_everything(tmp_path: Path) -> None:
    @relay.relay(target="cuda", dynamic=True)
    def entry(x, rounds, state):
        return everything(x, rounds, state)

    made = entry.compile(X, np.int32(3), relay.ref(np.int32(0)))
    digest = made.export(tmp_path / "everything.gpu")
    loaded = relay.load(tmp_path / "everything.gpu", sha256=digest)
    for rows, rounds in ((2, 3), (5, 1)):
        x = np.resize(X, (rows, 3))
        states = relay.ref(np.int32(1)), relay.ref(np.int32(1))
        found = loaded(x, np.int32(rounds), states[0])
        assert_agree(found, everything.interpret(x, np.int32(rounds), states[1]), rtol=1e-5)
        assert int(states[0].value) == int(states[1].value) == 1 + rounds
    with pytest.raises(TypeMismatch, match="argument x must be"):
        loaded(X[0], np.int32(3), relay.ref(np.int32(0)))


def test_errors_tell_the_line(tmp_path: Path) -> None:
    @relay.relay(target="cuda")
    def checked(x):
        assert x[0] > 0.0, "the first element must be positive"
        return x * 2.0

    checked.compile(X[0]).export(tmp_path / "checked.gpu")
    loaded = relay.load(tmp_path / "checked.gpu")
    with pytest.raises(ExecutionError, match="the first element must be positive") as caught:
        loaded(X[0])
    line = checked.__relay__.function.span.line + 1
    assert f"test_files.py:{line}:" in str(caught.value)
    assert "assert x[0]" not in str(caught.value)  # the file has no source


STEP = """
import sys
import attrs
import numpy as np
import relay
from gpu.emulation import emulation
from relay.codegen.cuda.driver import use_toolchain

with use_toolchain(emulation()):
    step = relay.load(sys.argv[1])
    w = np.ones((3, 4), np.float32)
    for _ in range(3):
        w, error = step(w, np.ones((2, 3), np.float32))
    print(float(error), float(np.asarray(w).sum()))
assert "tvm" not in sys.modules
"""


def test_a_training_step_without_tvm(tmp_path: Path) -> None:
    def loss(w: Any, x: Any) -> Any:
        return relay.mean(relay.tanh(x @ w + W[0]) ** 2)

    @relay.relay(target="cuda", donate_argnames="w")
    def step(w, x):
        error, gradient = relay.value_and_grad(loss, wrt=0)(w, x)
        return w - 0.5 * gradient, error

    step.compile(np.ones((3, 4), np.float32), np.ones((2, 3), np.float32)).export(tmp_path / "step.gpu")
    command = [sys.executable, "-c", STEP, str(tmp_path / "step.gpu")]
    paths = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=paths)
    assert done.returncode == 0, done.stderr
    w = np.ones((3, 4), np.float32)
    for _ in range(3):
        w, error = map(np.asarray, step.interpret(w, np.ones((2, 3), np.float32)))
    np.testing.assert_allclose(list(map(float, done.stdout.split())), [float(error), float(w.sum())], rtol=1e-5)


def test_programs_are_exported_where_no_gpu_is(tmp_path: Path) -> None:
    class NoDevice(EmulatedDriver):
        def _cuDeviceGetCount(self) -> int:
            return 0

    with use_toolchain(emulation(NoDevice())):
        made = relay.relay(target="cuda, arch=sm_80")(lambda x: 2 * x).compile(X)
        made.export(tmp_path / "twice.gpu")
        loaded = relay.load(tmp_path / "twice.gpu")
        with pytest.raises(CompileError, match="finds no GPU"):
            loaded(X)
    with pytest.raises(CompileError, match="the GPU is an sm_90, the program is for sm_80"):
        loaded(X)
    with use_toolchain(emulation(EmulatedDriver(8, 0))):
        assert_agree(relay.load(tmp_path / "twice.gpu")(X), 2 * X, rtol=0)


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "twice.gpu"
    made = relay.relay(target="cuda")(lambda x: 2 * x).compile(X)
    made.export(path)
    whole = path.read_bytes()
    for damaged in (whole[:100] + b"?" + whole[101:], whole[50:]):
        path.write_bytes(damaged)
        with pytest.raises(CompileError, match="the file is damaged"):
            relay.load(path)
    monkeypatch.setattr(program_file, "_NOTATION", "of another time")
    path.write_bytes(whole)
    with pytest.raises(CompileError, match="another version of Relay"):
        relay.load(path)
    with pytest.raises(CompileError, match="its SHA-256 differs"):
        relay.load(path, sha256="0")


KEPT = """
def checked(x):
    if x.sum() > 100.0:
        return Chain.End()
    assert x[0] > 0.0, "the first element must be positive"
    return Chain.Link(x * 2.0, Chain.Link(x + W[0, :3], Chain.End()))
"""


def test_programs_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process, or the same program anew, compiles nothing; what it returns and where it fails is the same."""
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("RELAY_CACHE_SIZE", str(1 << 20))
    compilations = []
    toolchain = emulation()

    def counted(source: str, architecture: Any) -> Any:
        compilations.append(source)
        return toolchain.compile(source, architecture)

    def run(x: Any, version: str = "1") -> Any:
        checked = relay.from_source(KEPT, {"Chain": Chain, "W": W})
        with use_toolchain(attrs.evolve(toolchain, compile=counted, version=lambda: version)):
            return checked.compile(x, target="cuda")(x)

    for _ in range(2):
        found = run(X[1])
        assert type(found) is Chain.Link
        assert_agree(found.row, 2 * X[1], rtol=0)
        assert_agree(found.rest.row, X[1] + W[0, :3], rtol=0)
        with pytest.raises(ExecutionError, match="must be positive") as caught:
            run(X[0])
        assert 'assert x[0] > 0.0, "the first' in str(caught.value)  # the line stands in the program
    assert len(compilations) == 1
    (file,) = (tmp_path / "kept").glob("*.relay.so")
    file.write_bytes(file.read_bytes()[:-50])
    run(X[1])
    assert len(compilations) == 2
    run(X[1], version="2")
    assert len(compilations) == 3
    assert run(200 * X[1], version="2").__class__ is Chain.End and len(compilations) == 3
