"""A device that runs CUDA C on the processor: built with g++, one block after another, a fiber for each thread.

The threads run in both orders, and the results have to be the same, so that a missing barrier shows.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relay.codegen.cuda.kernels import Launch

COMPILER = shutil.which("g++")
HEADER = Path(__file__).with_name("cuda_emulation.h")

_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(([^)]*)\) \{')


class DeadlockError(AssertionError):
    """A barrier that not all threads of a block reach."""


class EmulatedDevice:
    """A device whose memory are arrays of bytes. `source`: its kernels. `folder` is for what g++ makes."""

    def __init__(self, source: str, folder: Path) -> None:
        self.launched: list[str] = []
        self._library = _build(source, folder)

    def allocate(self, count: int) -> Any:
        """Memory of so many bytes, filled with what is NaN in all floats."""
        return np.full(count, 0xFF, np.uint8)

    def upload(self, array: np.ndarray, memory: Any) -> None:
        memory[: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)

    def download(self, memory: Any, array: np.ndarray) -> None:
        array[...] = memory[: array.nbytes].view(array.dtype).reshape(array.shape)

    def launch(self, launch: Launch, pointers: Sequence[Any]) -> None:
        before = [memory.copy() for memory in pointers]
        self._run(launch, pointers, backwards=False)
        forwards = [memory.copy() for memory in pointers]
        for memory, old in zip(pointers, before, strict=True):
            memory[...] = old
        self._run(launch, pointers, backwards=True)
        for one, other in zip(forwards, pointers, strict=True):
            assert np.array_equal(one, other), f"{launch.name} depends on the order of threads"
        self.launched.append(launch.name)

    def _run(self, launch: Launch, pointers: Sequence[Any], backwards: bool) -> None:
        addresses = (ctypes.c_void_p * len(pointers))(*(memory.ctypes.data for memory in pointers))
        run = getattr(self._library, f"{launch.name}_launch")
        run.restype = ctypes.c_char_p
        problem = run(addresses, ctypes.c_long(launch.blocks), launch.threads, int(backwards))
        if problem:
            raise DeadlockError(f"{launch.name}: {problem.decode()}")


def _build(source: str, folder: Path) -> ctypes.CDLL:
    """The kernels as a library. They are not contracted, as NVRTC is told not to."""
    text = source[source.index('extern "C" __global__') :] if "__global__" in source else ""
    kernels = _KERNEL.findall(text)
    text = re.sub(r"__shared__ (alignas\(\d+\))", r"\1 static", text)
    whole = f'#include "{HEADER}"\n{text}' + "".join(_entry(name, parameters) for name, parameters in kernels)
    (folder / "kernels.cpp").write_text(whole)
    flags = ["-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing"]
    made = [str(COMPILER), *flags, "-U_FORTIFY_SOURCE", "-Wl,-Bsymbolic"]
    done = subprocess.run(
        [*made, str(folder / "kernels.cpp"), "-o", str(folder / "kernels.so")], capture_output=True, text=True
    )
    assert not done.returncode, done.stderr[:2000]
    return ctypes.CDLL(str(folder / "kernels.so"))


def _entry(name: str, parameters: str) -> str:
    """What is called to launch a kernel: with the addresses of its arguments, and the numbers of blocks and threads."""
    types = [re.sub(r"\s*__restrict__\s*\w+$|\s*\w+$", "", part.strip()) for part in parameters.split(",")]
    given = ", ".join(f"({type_})a[{n}]" for n, type_ in enumerate(types))
    return (
        f"static void {name}_body(void** a) {{ {name}({given}); }}\n"
        f'extern "C" const char* {name}_launch(void** a, long blocks, int threads, int backwards) {{\n'
        f"  return emulation::launch({name}_body, a, blocks, threads, backwards);\n}}\n"
    )
