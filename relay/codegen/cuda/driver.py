"""A GPU through NVIDIA's driver: memory, and kernels in one stream."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from relay.codegen.cuda.compiler import INSTALL, exceeded, machine_code
from relay.codegen.cuda.kernels import Launch
from relay.codegen.cuda.target import Architecture
from relay.errors import CompileError, ExecutionError, InternalError


def _driver() -> Any:
    """The driver's interface, with a device. Raises CompileError where there is none."""
    try:
        from cuda.bindings import driver
    except ImportError:
        raise CompileError(
            "the target 'cuda' needs the package cuda-bindings, which is missing", help=INSTALL
        ) from None
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError:
        raise CompileError(
            "the target 'cuda' needs NVIDIA's driver, whose library libcuda.so.1 is missing",
            help="install the driver of the GPU; on a machine without one leave target= out",
        ) from None
    if int(status):
        raise CompileError(
            f"the target 'cuda' finds no GPU: the driver says {status.name}",
            help="look at what nvidia-smi prints; on a machine without a GPU leave target= out",
        )
    return driver


class Memory:
    """Memory of a GPU, which another call takes when nothing refers to this."""

    def __init__(self, address: int) -> None:
        self.address = address


class DriverDevice:
    """The first GPU, with the kernels of a program. All is done in the order in which it is asked for."""

    def __init__(self, source: str, launches: Sequence[Launch], architecture: Architecture) -> None:
        """Raises CompileError where there is no GPU, no driver or no compiler, or a GPU of another architecture."""
        self._driver = _driver()
        device = self._call("cuDeviceGet", 0)
        self._context = self._call("cuDevicePrimaryCtxRetain", device)
        self._call("cuCtxSetCurrent", self._context)
        kinds = self._driver.CUdevice_attribute
        major = self._call("cuDeviceGetAttribute", kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
        minor = self._call("cuDeviceGetAttribute", kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
        if f"sm_{major}{minor}" != architecture.name:
            raise CompileError(
                f"the GPU is an sm_{major}{minor}, the program is for {architecture.name}",
                help='write target="cuda, arch=.." for the GPU\'s own architecture',
            )
        made = machine_code(source, architecture)
        for launch in launches:
            problem = exceeded(made.resources[launch.name], launch.threads, architecture)
            if problem is not None:
                raise InternalError(f"{launch.name} takes {problem}")
        module = self._call("cuModuleLoadData", made.code)
        self._functions = {
            launch.name: self._call("cuModuleGetFunction", module, launch.name.encode()) for launch in launches
        }
        self._free: dict[int, list[int]] = {}

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *results = getattr(self._driver, name)(*arguments)
        if int(status):
            raise ExecutionError(f"the GPU's driver says {status.name} to {name}")
        return results[0] if results else None

    def allocate(self, count: int) -> Memory:
        """Memory that is free again, or new: sizes are rounded up to powers of two, so that others fit it."""
        self._call("cuCtxSetCurrent", self._context)
        size = max(256, 1 << (count - 1).bit_length())
        free = self._free.setdefault(size, [])
        memory = Memory(free.pop() if free else int(self._call("cuMemAlloc", size)))
        weakref.finalize(memory, free.append, memory.address)
        return memory

    def upload(self, array: np.ndarray, memory: Memory) -> None:
        """Copy an array to the GPU."""
        if array.nbytes:
            given = np.ascontiguousarray(array)
            self._call("cuMemcpyHtoD", memory.address, given.ctypes.data, given.nbytes)

    def download(self, memory: Memory, array: np.ndarray) -> None:
        """Wait for the kernels so far, and copy to an array."""
        if array.nbytes:
            self._call("cuMemcpyDtoH", array.ctypes.data, memory.address, array.nbytes)

    def launch(self, launch: Launch, pointers: Sequence[Memory]) -> None:
        """Start a kernel behind those before."""
        arguments = np.array([memory.address for memory in pointers], np.uint64)
        places = arguments.ctypes.data + 8 * np.arange(len(pointers), dtype=np.uint64)
        function, blocks, threads = self._functions[launch.name], launch.blocks, launch.threads
        self._call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, 0, places.ctypes.data, 0)


__all__ = ["DriverDevice"]
