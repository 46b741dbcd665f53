"""Arrays on a GPU: results that stay there until they are read.

A `DeviceArray` is an `Array`: what NumPy does with it copies it to the host, once, and waits for what computes it.
Passed to another call it stays where it is.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from relay.calling.array import Array
from relay.calling.dlpack import array_from_dlpack
from relay.codegen.cuda.exchange import array_interface, capsule_of, is_on_gpu, tensor_of
from relay.codegen.cuda.tensors import DeviceTensor

_CPU = 1
"""DLPack's kDLCPU."""


class DeviceArray(Array):
    """A tensor on a GPU. `x.device` says which; `x.numpy()` is a copy on the host, which cannot be written to."""

    __slots__ = ("_tensor",)
    _tensor: DeviceTensor

    def __init__(self, tensor: DeviceTensor) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        if name == "_value" and not self.is_deleted():
            value = self.tensor.numpy()
            value.flags.writeable = False
            self._value = value
            return value
        return super().__getattr__("_value" if name == "_tensor" else name)

    @property
    def tensor(self) -> DeviceTensor:
        """The tensor behind it. Raises ExecutionError if it was donated."""
        return self._tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.tensor.dtype

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    @property
    def size(self) -> int:
        return self.tensor.size

    @property
    def nbytes(self) -> int:
        return self.tensor.nbytes

    @property
    def itemsize(self) -> int:
        return self.tensor.dtype.itemsize

    @property
    def device(self) -> str:
        """The name of its device: "cuda:0"."""
        return f"cuda:{self.tensor.gpu.index}"

    def block_until_ready(self) -> DeviceArray:
        """Wait until it is computed, as in JAX."""
        gpu = self.tensor.gpu
        with gpu.lock:
            gpu.enter()
            gpu.call("cuStreamSynchronize", gpu.stream)
        return self

    def donate(self, function: str) -> None:
        self._donated_to = function
        del self._tensor
        with contextlib.suppress(AttributeError):  # it was never read
            del self._value

    def __dlpack__(
        self, *, stream: int | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        if dl_device is not None and int(dl_device[0]) == _CPU:
            return Array(self._value.copy()).__dlpack__(**options)
        if copy:
            raise BufferError("a DeviceArray is exchanged without a copy")
        return capsule_of(self.tensor, stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.tensor.gpu.index

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return array_interface(self.tensor)

    def __copy__(self) -> DeviceArray:
        return DeviceArray(self.tensor)

    def __deepcopy__(self, memo: Any) -> DeviceArray:
        return DeviceArray(self.tensor)


def array_content(array: Array) -> Any:
    """The content of an `Array`: an array of NumPy, or a tensor on a GPU."""
    return array.tensor if isinstance(array, DeviceArray) else array.numpy()


def from_dlpack(value: Any) -> Any:
    """An object of another library as an array of NumPy, or as a tensor on the GPU where it is. Raises TypeMismatch."""
    return tensor_of(value) if is_on_gpu(value) else array_from_dlpack(value)


__all__ = ["DeviceArray", "array_content", "from_dlpack"]
