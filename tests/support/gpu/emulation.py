"""A driver without a GPU: it keeps the GPU's memory in the host's, and runs kernels on the processor.

Kernels are CUDA C, built with g++; blocks run one after another, with a fiber for each thread. The threads run in both
orders, and the results have to be the same, so that a missing barrier shows. Around each allocation is a guarded zone,
so that a kernel that writes beyond it shows, too. As the real driver does, calls refuse threads without a context, and
what may not be captured in a graph.
"""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from relay.calling.results import wrap
from relay.codegen.cuda.compiler import MachineCode, Resources
from relay.codegen.cuda.driver import Toolchain, use_toolchain
from relay.codegen.cuda.prelude import HALF_OPERATIONS
from relay.codegen.cuda.program import compile_for_gpu
from relay.codegen.cuda.program_file import export, load
from relay.codegen.cuda.target import DEFAULT, Architecture
from relay.eval.values import Data, Reference

COMPILER = shutil.which("g++")
HEADER = Path(__file__).with_name("emulation.h")

_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(([^)]*)\) \{')

_BOUNDS = re.compile(r"__launch_bounds__\((\d+)\) (\w+)\([^)]*\) \{")

_SHARED = re.compile(r"__shared__ (?:alignas\((\d+)\) )?([\w ]+?) \w+\[(\d+)\];")

_BYTES = {"bool": 1, "signed char": 1, "uchar": 1, "half": 2, "nv_bfloat16": 2, "ushort": 2, "short": 2, "float": 4}

MOST_PARAMETERS = 32_764 // 8
"""The words that a kernel takes at most."""

GUARD = 256
"""Bytes of the zones around an allocation."""

_FILLED = 0xFF
"""What new memory holds, and guarded zones: NaN in all floats."""


class DeadlockError(AssertionError):
    """A barrier that not all threads of a block reach."""


class _Kernel:
    """A kernel, how many arguments it has, and the threads that it may have."""

    def __init__(self, library: ctypes.CDLL, name: str, count: int, threads: int) -> None:
        self.name, self.count, self.threads = name, count, threads
        self.run = getattr(library, f"{name}_launch")
        self.run.restype = ctypes.c_char_p


class EmulatedDriver:
    """What programs call of NVIDIA's driver. `calls` counts them by name, `launched` has the names of kernels."""

    def __init__(self, major: int = 9, minor: int = 0, memory: int = 1 << 40) -> None:
        from cuda.bindings import driver

        self._codes = driver.CUresult
        self.CUdevice_attribute = driver.CUdevice_attribute
        self.CUstream_flags = driver.CUstream_flags
        self.CUstreamCaptureMode = driver.CUstreamCaptureMode
        self.CUstream = int
        self.architecture = major, minor
        self.left = memory
        self.calls: Counter[str] = Counter()
        self.launched: list[str] = []
        self._buffers: dict[int, np.ndarray] = {}
        self._starts: list[int] = []
        self._local = threading.local()
        self._handles = 100
        self._captured: dict[int, list[Callable[[], None]]] = {}
        self._streams: set[int] = set()
        self._flags: dict[int, ctypes.c_uint] = {}
        self.rounds = 0
        """The rounds of loops in graphs."""
        self.CUgraphConditionalNodeType = driver.CUgraphConditionalNodeType
        self.CUgraphNodeType = driver.CUgraphNodeType
        self.CUgraphConditionalHandle = int
        self.CUgraphNodeParams = lambda: SimpleNamespace(type=None, conditional=SimpleNamespace())

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        do = getattr(type(self), f"_{name}")
        needs_context = not name.startswith(("cuInit", "cuDevice", "cuCtxSetCurrent"))

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls[name] += 1
            if needs_context and not hasattr(self._local, "context"):
                return (self._codes.CUDA_ERROR_INVALID_CONTEXT, None)
            made = do(self, *arguments)
            if isinstance(made, tuple) and made and isinstance(made[0], self._codes):
                return made
            return (self._codes.CUDA_SUCCESS,) if made is None else (self._codes.CUDA_SUCCESS, made)

        return call

    # ---- devices, contexts, streams

    def _cuInit(self, flags: int) -> None:
        assert flags == 0

    def _cuDeviceGetCount(self) -> int:
        return 1

    def _cuDeviceGet(self, index: int) -> int:
        assert index == 0
        return 0

    def _cuDeviceGetName(self, length: int, device: int) -> bytes:
        return b"emulated GPU".ljust(length, b"\0")

    def _cuDeviceGetAttribute(self, attribute: Any, device: int) -> Any:
        kinds = self.CUdevice_attribute
        if attribute == kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            return self.architecture[0]
        if attribute == kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            return self.architecture[1]
        return 132

    def _cuDevicePrimaryCtxRetain(self, device: int) -> int:
        return 1

    def _cuCtxSetCurrent(self, context: int) -> None:
        self._local.context = context

    def _cuCtxSynchronize(self) -> Any:
        return self._refusal_in_capture() if self._captured else None

    def _cuStreamCreate(self, flags: int) -> int:
        self._handles += 1
        self._streams.add(self._handles)
        return self._handles

    def _cuStreamSynchronize(self, stream: int) -> Any:
        return self._refusal_in_capture() if stream in self._captured else None

    def _cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        pass

    def _cuEventCreate(self, flags: int) -> int:
        self._handles += 1
        return self._handles

    def _cuEventRecord(self, event: int, stream: int) -> None:
        pass

    def _cuEventSynchronize(self, event: int) -> None:
        pass

    def _cuEventElapsedTime(self, start: int, end: int) -> float:
        return 0.001

    def _cuEventDestroy(self, event: int) -> None:
        pass

    def _refusal_in_capture(self) -> tuple[Any]:
        return (self._codes.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)

    # ---- memory

    def _cuMemAlloc(self, count: int) -> Any:
        if count > self.left:
            return self._codes.CUDA_ERROR_OUT_OF_MEMORY, 0
        self.left -= count
        buffer = np.full(count + 2 * GUARD + 256, _FILLED, np.uint8)
        address = -(-(buffer.ctypes.data + GUARD) // 256) * 256
        start = address - buffer.ctypes.data
        self._buffers[address] = buffer[start - GUARD : start + count + GUARD]
        self._starts = sorted(self._buffers)
        return address

    def _cuMemGetInfo(self) -> Any:
        return self._codes.CUDA_SUCCESS, self.left, self.left

    def _memory(self, address: int, count: int) -> np.ndarray:
        """Bytes on the GPU. Raises AssertionError for what is not allocated."""
        place = bisect_right(self._starts, address) - 1
        assert place >= 0, f"{address:#x} is not on the GPU"
        buffer, offset = self._buffers[self._starts[place]], address - self._starts[place] + GUARD
        assert offset + count <= len(buffer) - GUARD, f"{count} bytes at {address:#x} are not allocated"
        return buffer[offset : offset + count]

    def _start(self, word: int) -> int | None:
        """Where the allocation starts that a kernel's argument points into; None for a number."""
        place = bisect_right(self._starts, word) - 1
        if place < 0 or word >= self._starts[place] + len(self._buffers[self._starts[place]]):
            return None
        return self._starts[place]

    def _cuMemcpyHtoDAsync(self, target: int, source: int, count: int, stream: int) -> Any:
        if stream in self._captured:
            return self._refusal_in_capture()
        ctypes.memmove(self._memory(int(target), count).ctypes.data, source, count)
        return None

    def _cuMemcpyDtoHAsync(self, target: int, source: int, count: int, stream: int) -> Any:
        if stream in self._captured:
            return self._refusal_in_capture()
        ctypes.memmove(target, self._memory(int(source), count).ctypes.data, count)
        return None

    def _cuMemcpyDtoDAsync(self, target: int, source: int, count: int, stream: int) -> None:
        def copy() -> None:
            self._memory(int(target), count)[...] = self._memory(int(source), count)

        self._do(stream, copy)

    # ---- kernels and graphs

    def _cuModuleLoadData(self, code: bytes) -> Any:
        return library(code.decode())

    def _cuModuleGetFunction(self, module: Any, name: bytes) -> Any:
        loaded, kernels, bounds = module
        return _Kernel(loaded, name.decode(), kernels[name.decode()], bounds.get(name.decode(), 1))

    def _cuLaunchKernel(
        self, kernel: _Kernel, x: int, y: int, z: int, threads: int, y1: int, z1: int, shared: int, stream: int,
        parameters: int, extra: int,
    ) -> None:  # fmt: skip
        assert (y, z, y1, z1, shared, extra) == (1, 1, 1, 1, 0, 0) and 0 < x < 1 << 31 and 0 < threads <= 1024
        assert threads <= kernel.threads and kernel.count <= MOST_PARAMETERS
        places = (ctypes.c_void_p * kernel.count).from_address(parameters)
        words = [ctypes.c_int64.from_address(place).value for place in places]
        self._do(stream, lambda: self._run(kernel, x, threads, words))

    def _do(self, stream: int, work: Callable[[], None]) -> None:
        assert stream in self._streams
        if stream in self._captured:
            self._captured[stream].append(work)
        else:
            work()

    def _run(self, kernel: _Kernel, blocks: int, threads: int, words: list[int]) -> None:
        starts = {start for word in words if (start := self._start(word)) is not None}
        used = [self._buffers[start] for start in sorted(starts)]
        before = [memory.copy() for memory in used]
        self._call(kernel, blocks, threads, words, backwards=False)
        forwards = [memory.copy() for memory in used]
        for memory, old in zip(used, before, strict=True):
            memory[...] = old
        self._call(kernel, blocks, threads, words, backwards=True)
        for one, other in zip(forwards, used, strict=True):
            assert np.array_equal(one, other), f"{kernel.name} depends on the order of threads"
            assert (other[:GUARD] == _FILLED).all() and (other[-GUARD:] == _FILLED).all(), (
                f"{kernel.name} writes beyond"
            )
        self.launched.append(kernel.name)

    def _call(self, kernel: _Kernel, blocks: int, threads: int, words: list[int], backwards: bool) -> None:
        given = (ctypes.c_int64 * len(words))(*words)
        problem = kernel.run(given, ctypes.c_long(blocks), threads, int(backwards))
        if problem:
            raise DeadlockError(f"{kernel.name}: {problem.decode()}")

    def _cuStreamBeginCapture(self, stream: int, mode: Any) -> None:
        self._captured[stream] = []

    def _cuStreamEndCapture(self, stream: int) -> Any:
        return (self._codes.CUDA_SUCCESS, self._captured.pop(stream))

    # ---- conditional nodes: a flag's handle is the address of its value

    def _cuStreamGetCaptureInfo(self, stream: int) -> Any:
        return self._codes.CUDA_SUCCESS, 1, 1, self._captured[stream], [], [], 0

    def _cuGraphConditionalHandleCreate(self, graph: Any, context: int, default: int, flags: int) -> int:
        assert (context, default, flags) == (1, 0, 0)
        made = ctypes.c_uint(default)
        self._flags[ctypes.addressof(made)] = made
        return ctypes.addressof(made)

    def _cuGraphAddNode(self, graph: list[Any], before: Any, edges: Any, count: int, parameters: Any) -> Any:
        given = parameters.conditional
        assert parameters.type == self.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        assert (given.size, given.ctx, count) == (1, 1, 0)
        flag, loops = self._flags[given.handle], given.type == self.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
        body: list[Callable[[], None]] = []
        given.phGraph_out = [body]

        def run() -> None:
            rounds = 0
            while flag.value and (loops or not rounds):
                for work in body:
                    work()
                rounds += 1
                assert rounds < 1000, "a loop that does not end"
            self.rounds += loops * rounds

        graph.append(run)
        return self._codes.CUDA_SUCCESS, run

    def _cuStreamBeginCaptureToGraph(
        self, stream: int, graph: list[Any], before: Any, edges: Any, count: int, mode: Any
    ) -> None:
        assert stream not in self._captured and not count
        self._captured[stream] = graph

    def _cuStreamUpdateCaptureDependencies(self, stream: int, nodes: Any, edges: Any, count: int, flags: int) -> None:
        assert nodes == self._captured[stream][-1:] and (count, flags) == (1, 1)

    def _cuGraphInstantiate(self, graph: list[Any], flags: int) -> Any:
        return (self._codes.CUDA_SUCCESS, graph)

    def _cuGraphLaunch(self, graph: list[Callable[[], None]], stream: int) -> None:
        for work in graph:
            self._do(stream, work)

    def _cuGraphDestroy(self, graph: Any) -> None:
        pass

    def _cuGraphExecDestroy(self, graph: Any) -> None:
        pass


def emulation(
    driver: EmulatedDriver | None = None,
    change: Callable[[str], str] = str,
    cublas: Callable[[], Any] | None = None,
    cudnn: Callable[[], Any] | None = None,
) -> Toolchain:
    """A toolchain without a GPU. `change`: what is done to the text of kernels; `cublas` and `cudnn` give what stands
    for them."""
    made = EmulatedDriver() if driver is None else driver

    def compile_(source: str, architecture: Architecture) -> MachineCode:
        text = change(source)
        return MachineCode(text.encode(), {name: Resources(32, 0) for name, _ in _KERNEL.findall(text)})

    return Toolchain(lambda: made, compile_, 1, cublas=cublas, cudnn=cudnn)


@functools.lru_cache(maxsize=64)
def library(source: str) -> tuple[ctypes.CDLL, dict[str, int], dict[str, int]]:
    """The kernels as a library, how many arguments each has, and how many threads. They are not contracted, as NVRTC
    is told not to. Raises AssertionError for more shared memory than a block has."""
    with tempfile.TemporaryDirectory(prefix="relay-emulation-") as folder:  # each process its own
        built = build_library(source, Path(folder))
        bounds = {name: int(threads) for threads, name in _BOUNDS.findall(source)}
        return ctypes.CDLL(str(built)), {name: _count(given) for name, given in _kernels_of(source)[1]}, bounds


def _kernels_of(source: str) -> tuple[str, list[tuple[str, str]]]:
    """The text of the kernels, and their names and parameters."""
    text = source[source.index('extern "C" __global__') :] if "__global__" in source else ""
    return text, _KERNEL.findall(text)


def build_library(source: str, folder: Path) -> Path:
    """The library of kernels in a folder, which has a function `NAME_launch` for each. Raises AssertionError for more
    shared memory than a block has."""
    for part in source.split('extern "C" __global__'):
        declared = [(int(a or 8), int(n) * _BYTES.get(kind, 8)) for a, kind, n in _SHARED.findall(part)]
        assert sum(-(-count // alignment) * alignment for alignment, count in declared) <= DEFAULT.shared_bytes
    text, kernels = _kernels_of(source)
    text = re.sub(r"__shared__ (alignas\(\d+\))", r"\1 static", text)
    entries = "".join(_entry(name, parameters) for name, parameters in kernels)
    whole = f'#include "{HEADER}"\n{HALF_OPERATIONS}{text}{entries}'
    flags = ["-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing"]
    made = [str(COMPILER), *flags, "-U_FORTIFY_SOURCE", "-Wl,-Bsymbolic"]
    code, built = folder / "kernels.cpp", folder / "kernels.so"
    code.write_text(whole)
    done = subprocess.run([*made, str(code), "-o", str(built)], capture_output=True, text=True)
    assert not done.returncode, done.stderr[:2000]
    return built


def _count(parameters: str) -> int:
    return len(parameters.split(",")) if parameters.strip() else 0


def _entry(name: str, parameters: str) -> str:
    """What is called to launch a kernel: with its arguments as words, and the numbers of blocks and threads."""
    types = [re.sub(r"\s*__restrict__\s*\w+$|\s*\w+$", "", part.strip()) for part in parameters.split(",")]
    given = ", ".join(f"({type_})a[{n}]" for n, type_ in enumerate(types))
    return (
        f"static void {name}_body(int64_t* a) {{ {name}({given}); }}\n"
        f'extern "C" const char* {name}_launch(int64_t* a, long blocks, int threads, int backwards) {{\n'
        f"  return emulation::launch({name}_body, a, blocks, threads, backwards);\n}}\n"
    )


def run_emulated(
    function: Any,
    arguments: tuple[Any, ...],
    change: Callable[[str], str] = str,
    symbolic: bool = False,
    file: Path | None = None,
) -> tuple[Any, Any]:
    """What a function's program for a GPU gives, and the program; once it was written to a file, and read again, if one
    is given."""
    lowered, values = function._lower(arguments, {}, symbolic=symbolic)
    with use_toolchain(emulation(change=change)):
        program = compile_for_gpu(lowered.core, DEFAULT, Data, Reference)
        if file is not None:
            export(program, None, file)
            program, _ = load(file.read_bytes(), Data, Reference)
        try:
            found = program(values)
        finally:
            values.give_back(lowered.parameters)
        return wrap(found, lowered.result), program
