"""Python functions that compiled code calls by names, and among these what a device computes.

Operands are copied into arrays of their own, aligned as TVM's functions expect, so that nothing that such a function
keeps can dangle; results are copied back. Nothing here needs TVM's compiler: libraries that were exported load without.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence

import attrs
import numpy as np
import tvm_ffi

from relay.ir.types import TensorType

ALIGNMENT = 64
_raised = threading.local()
_registered: Counter[str] = Counter()


@attrs.frozen(eq=False)
class Device:
    """A function of a device: its registered name, the function, the types of its operands and then of its results,
    and the number of results."""

    name: str
    function: Callable[..., None]
    types: tuple[TensorType, ...]
    results: int


class Callbacks:
    """The Python functions of one program. `raised` holds, for each thread, what one of them raised last."""

    def __init__(self) -> None:
        self.raised = _raised
        self.used = False
        self.calls_python = False  # beside devices
        self.devices: list[Device] = []

    def add_device(self, device: Device) -> None:
        """Let compiled code find what a device computes by a name."""
        self.devices.append(device)
        self.register(device.name, _DeviceCall(device, self.raised))

    def register(self, name: str, callback: Callable[..., int]) -> None:
        """Let compiled code find a function by a name."""
        self.used = True
        _registered[name] += 1
        tvm_ffi.register_global_func(name, callback, override=True)
        weakref.finalize(self, _forget, name)


def _forget(name: str) -> None:
    """Remove a function that no program has any more: one that was exported and loaded may have two."""
    _registered[name] -= 1
    if not _registered[name]:
        del _registered[name]
        tvm_ffi.registry.remove_global_func(name)


@attrs.frozen(eq=False)
class _DeviceCall:
    """The function that compiled code calls to let a device compute: addresses in, status out. It never raises. It
    never raises."""

    device: Device
    raised: threading.local

    def __call__(self, *given: int) -> int:
        try:
            arrays = [aligned_array(t) for t in self.device.types]
            copy_in(arrays[: -self.device.results], given)
            self.device.function(*arrays)
            results = zip(arrays, given, strict=True)
            for array, address in list(results)[-self.device.results :]:
                ctypes.memmove(address, array.ctypes.data, array.nbytes)
        except BaseException as error:
            self.raised.error = error
            return 1
        return 0


def copy_in(arrays: Sequence[np.ndarray], addresses: Sequence[int]) -> None:
    """Fill arrays from addresses, of which there may be more."""
    for array, address in zip(arrays, addresses, strict=False):
        ctypes.memmove(array.ctypes.data, address, array.nbytes)


def aligned_array(type_: TensorType) -> np.ndarray:
    """A new aligned array."""
    size = int(np.prod(type_.dims, dtype=np.int64)) * type_.dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(type_.dtype).reshape(type_.dims)
