"""A GPU through NVIDIA's driver: its memory, and one stream in which everything runs in order.

The driver's interface is the package cuda-bindings, or an object with the same calls (`Toolchain`): tests give one that
keeps the GPU's memory in the host's and runs kernels on the processor, so that all of the host's code runs there, too.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from relay.codegen.cuda.compiler import INSTALL, MachineCode, compiler_version, machine_code
from relay.codegen.cuda.libraries import cublaslt, cudnn
from relay.codegen.cuda.memory import CHUNK, Arena, Memory
from relay.codegen.cuda.target import Architecture
from relay.errors import CompileError, ExecutionError, InternalError, RelayWarning, Span

OUT_OF_MEMORY = 2
"""CUDA_ERROR_OUT_OF_MEMORY."""

SET_DEPENDENCIES = 1
"""CU_STREAM_SET_CAPTURE_DEPENDENCIES."""


@attrs.frozen(eq=False)
class Toolchain:
    """The way to GPUs: `driver()` gives the driver's interface, and raises CompileError where there is none;
    `compile(source, architecture)` makes machine code. `chunk`: the least bytes that the arena takes at once.
    `version()`: the compiler's, by which programs on disk are told apart; without it none are kept. `cublas()` and
    `cudnn()`: the libraries cuBLASLt and cuDNN, None where they are not installed; without them all products and
    convolutions have kernels of their own."""

    driver: Callable[[], Any]
    compile: Callable[[str, Architecture], MachineCode]
    chunk: int = CHUNK
    version: Callable[[], str] | None = None
    cublas: Callable[[], Any] | None = None
    cudnn: Callable[[], Any] | None = None


def _installed_driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        raise CompileError(
            "the target 'cuda' needs the package cuda-bindings, which is missing", help=INSTALL
        ) from None
    return driver


NVIDIA = Toolchain(
    _installed_driver,
    lambda source, architecture: machine_code(source, architecture),
    version=compiler_version,
    cublas=cublaslt.installed_library,
    cudnn=cudnn.installed_library,
)
"""The installed driver, NVRTC, and libraries."""

_chosen = [NVIDIA]
_gpus: dict[Toolchain, Gpu] = {}
_opening = threading.Lock()


@contextlib.contextmanager
def use_toolchain(toolchain: Toolchain) -> Iterator[None]:
    """Let programs reach GPUs by another toolchain, in all threads."""
    before, _chosen[0] = _chosen[0], toolchain
    try:
        yield
    finally:
        _chosen[0] = before


def compile_cuda(source: str, architecture: Architecture) -> MachineCode:
    """Machine code by the toolchain, which needs no GPU. Raises CompileError where there is no compiler."""
    return _chosen[0].compile(source, architecture)


def cuda_version() -> str | None:
    """The version of the toolchain's compiler; None if its programs are not kept on disk."""
    version = _chosen[0].version
    return None if version is None else version()


def open_gpu() -> Gpu:
    """The first GPU of the toolchain. Raises CompileError where there is none: no package, driver or device."""
    toolchain = _chosen[0]
    with _opening:
        if toolchain not in _gpus:
            _gpus[toolchain] = Gpu(toolchain)
        return _gpus[toolchain]


def _initialize(driver: Any) -> None:
    """Start the driver. Raises CompileError, in one line, for a machine without one, or without a GPU."""
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError:
        raise CompileError(
            "the target 'cuda' needs NVIDIA's driver, whose library libcuda.so.1 is missing",
            help="install the driver of the GPU; on a machine without one leave target= out",
        ) from None
    count = 0
    if not int(status):
        status, count = driver.cuDeviceGetCount()
    if int(status) or not count:
        says = status.name if int(status) else "there are 0 devices"
        raise CompileError(
            f"the target 'cuda' finds no GPU: the driver says {says}",
            help="check the output of nvidia-smi; on a machine without a GPU leave target= out",
        )


class Gpu:
    """The first GPU. Whoever uses it holds `lock`, and has called `enter` in this thread."""

    index = 0

    def __init__(self, toolchain: Toolchain) -> None:
        self.driver = toolchain.driver()
        _initialize(self.driver)
        self.lock = threading.RLock()
        device = self.call("cuDeviceGet", self.index)
        kinds = self.driver.CUdevice_attribute
        major = self.call("cuDeviceGetAttribute", kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
        minor = self.call("cuDeviceGetAttribute", kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
        self.architecture = f"sm_{major}{minor}"
        self.name = bytes(self.call("cuDeviceGetName", 256, device)).split(b"\0")[0].decode()
        self._context = self.call("cuDevicePrimaryCtxRetain", device)
        self.enter()
        self.stream = self.call("cuStreamCreate", int(self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self._uploads = self.call("cuStreamCreate", int(self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.arena = Arena(self.take, self.wait, toolchain.chunk)
        self._bodies: list[Any] = []  # streams that bodies of conditional nodes are captured in
        self._toolchain = toolchain
        self.capturing = False
        """True if what is started becomes part of a graph, and does not run yet."""
        self.launches = 0
        """The number of kernels that were started."""
        self.timer: Callable[[str, Sequence[Span]], Callable[[], None]] | None = None
        """The timer of a profile: called with each kernel's name and lines before it starts; what it returns, after."""

    def enter(self) -> None:
        """Let this thread use the GPU."""
        self.call("cuCtxSetCurrent", self._context)

    def call(self, name: str, *arguments: Any) -> Any:
        """The result of a call of the driver. Raises ExecutionError where memory does not suffice, InternalError for
        anything else that goes wrong: then a kernel of ours did."""
        results = self.call_all(name, *arguments)
        return results[0] if results else None

    def call_all(self, name: str, *arguments: Any) -> list[Any]:
        """As `call`, with all results."""
        results: list[Any]
        status, *results = getattr(self.driver, name)(*arguments)
        if int(status) == OUT_OF_MEMORY:
            raise ExecutionError(f"the memory of the GPU does not suffice, the driver says {status.name} to {name}")
        if int(status):
            raise InternalError(f"the GPU's driver says {status.name} to {name}")
        return results

    # ---- memory

    def take(self, count: int) -> int:
        """Memory of the driver's own. Raises MemoryError."""
        status, address = self.driver.cuMemAlloc(count)
        if int(status) == OUT_OF_MEMORY:
            raise MemoryError(f"{count} bytes")
        if int(status):
            raise InternalError(f"the GPU's driver says {status.name} to cuMemAlloc")
        return int(address)

    def allocate(self, count: int) -> Memory:
        """Memory of this many bytes. Raises ExecutionError where there is not enough."""
        try:
            return self.arena.allocate(count)
        except MemoryError:
            raise ExecutionError(
                f"the memory of the GPU does not suffice: {count} bytes more than the {self.arena.used} in use",
                help="let go of arrays, donate arguments, or use smaller batches",
            ) from None

    def upload(self, array: np.ndarray, memory: Memory) -> None:
        """Copy an array to the GPU; what was started before has not read the memory's new content. What becomes part of
        a graph is copied now: a graph would read the array whenever it runs."""
        if not array.nbytes:
            return
        given = np.ascontiguousarray(array)
        stream = self._uploads if self.capturing else self.stream
        self.call("cuMemcpyHtoDAsync", memory.address, given.ctypes.data, given.nbytes, stream)
        if self.capturing:
            self.call("cuStreamSynchronize", stream)

    def download(self, memory: Memory, array: np.ndarray) -> None:
        """Wait for what was started, and copy to an array."""
        if self.capturing:
            raise InternalError("a graph would wait for itself")
        if array.nbytes:
            self.call("cuMemcpyDtoHAsync", array.ctypes.data, memory.address, array.nbytes, self.stream)
            self.call("cuStreamSynchronize", self.stream)

    def copy(self, source: Memory, target: Memory, count: int) -> None:
        """Copy memory on the GPU."""
        if count:
            self.call("cuMemcpyDtoDAsync", target.address, source.address, count, self.stream)

    def wait(self) -> None:
        """Wait for all that runs on the GPU, also of others in this process."""
        self.call("cuCtxSynchronize")

    # ---- kernels

    def load(self, code: bytes, names: Sequence[str]) -> LoadedKernels:
        """Kernels of machine code."""
        module = self.call("cuModuleLoadData", code)
        return LoadedKernels(module, {name: self.call("cuModuleGetFunction", module, name.encode()) for name in names})

    def launch(
        self, name: str, function: Any, blocks: int, threads: int, words: Sequence[int], lines: Sequence[Span] = ()
    ) -> None:
        """Enqueue a kernel after those started before, with these pointers and sizes. `lines`: its operators'."""
        given = np.array(words, np.int64)
        places = given.ctypes.data + 8 * np.arange(len(words), dtype=np.uint64)
        with self.launching(name, lines):
            self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, self.stream, places.ctypes.data, 0)

    @contextlib.contextmanager
    def launching(self, name: str, lines: Sequence[Span]) -> Iterator[None]:
        """Count, and time where a profile is made, what is started in the context."""
        self.launches += 1
        done = self.timer(name, lines) if self.timer is not None else None
        yield
        if done is not None:
            done()

    @functools.cached_property
    def cublas(self) -> cublaslt.CublasLt | None:
        """The library for large products. Warns if it is not installed, once."""
        found = _found_library(self._toolchain.cublas, cublaslt.MISSING)
        return None if found is None else cublaslt.CublasLt(found)

    @functools.cached_property
    def cudnn(self) -> cudnn.Cudnn | None:
        """The library for large convolutions. Warns if it is not installed, once."""
        found = _found_library(self._toolchain.cudnn, cudnn.MISSING)
        return None if found is None else cudnn.Cudnn(found)

    def timing_event(self) -> Any:
        """An event of the driver at this place in the stream, which tells when it was reached."""
        event = self.call("cuEventCreate", 0)
        self.call("cuEventRecord", event, self.stream)
        return event

    def seconds(self, start: Any, end: Any) -> float:
        """The seconds between two events, which are gone then."""
        self.call("cuEventSynchronize", end)
        passed = float(self.call("cuEventElapsedTime", start, end)) / 1e3
        for event in (start, end):
            self.call("cuEventDestroy", event)
        return passed

    # ---- conditional nodes of graphs

    def new_condition(self) -> int | None:
        """The handle of a flag for a conditional node of the graph that is being captured; None if the driver is older
        than these."""
        _, _, graph, *_ = self.call_all("cuStreamGetCaptureInfo", self.stream)
        status, *made = self.driver.cuGraphConditionalHandleCreate(graph, self._context, 0, 0)
        return None if int(status) else int(made[0])

    @contextlib.contextmanager
    def conditional_node(self, flag: int, loops: bool) -> Iterator[None]:
        """A node that runs what is started in the context if a flag is set, or while it is, if it `loops`."""
        kinds = self.driver.CUgraphConditionalNodeType
        parameters = self.driver.CUgraphNodeParams()
        parameters.type = self.driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        parameters.conditional.handle = self.driver.CUgraphConditionalHandle(flag)
        parameters.conditional.type = kinds.CU_GRAPH_COND_TYPE_WHILE if loops else kinds.CU_GRAPH_COND_TYPE_IF
        parameters.conditional.size = 1
        parameters.conditional.ctx = self._context
        _, _, graph, *before, count = self.call_all("cuStreamGetCaptureInfo", self.stream)
        node = self.call("cuGraphAddNode", graph, *before, count, parameters)
        after = [[node], *(None for _ in before[1:])]
        self.call("cuStreamUpdateCaptureDependencies", self.stream, *after, 1, SET_DEPENDENCIES)
        body = parameters.conditional.phGraph_out[0]
        outside, self.stream = self.stream, self._body_stream()
        mode = self.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        try:
            self.call("cuStreamBeginCaptureToGraph", self.stream, body, None, None, 0, mode)
            try:
                yield
            finally:
                self.call("cuStreamEndCapture", self.stream)
        finally:
            self._bodies.append(self.stream)
            self.stream = outside

    def _body_stream(self) -> Any:
        """A stream for the body of a node, one for each that is being captured."""
        if self._bodies:
            return self._bodies.pop()
        return self.call("cuStreamCreate", int(self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING))

    # ---- other streams

    def follow(self, stream: int) -> None:
        """Let what another stream is given from now on run after what was started here."""
        event = self.call("cuEventCreate", 2)  # CU_EVENT_DISABLE_TIMING
        self.call("cuEventRecord", event, self.stream)
        self.call("cuStreamWaitEvent", self.driver.CUstream(stream), event, 0)
        self.call("cuEventDestroy", event)


def _found_library(find: Callable[[], Any] | None, missing: str) -> Any:
    """A library of the toolchain; None, with a warning, if it is not installed."""
    if find is None:
        return None
    library = find()
    if library is None:
        warnings.warn(missing, RelayWarning, stacklevel=4)
    return library


@attrs.frozen(eq=False)
class LoadedKernels:
    """A module that the driver has loaded, and its kernels by name. The driver keeps it until the process ends."""

    module: Any
    functions: dict[str, Any]


__all__ = ["NVIDIA", "Gpu", "LoadedKernels", "Toolchain", "compile_cuda", "cuda_version", "open_gpu", "use_toolchain"]
