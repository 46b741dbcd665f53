"""Arrays put on a GPU, or back into the processor's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from relay.calling.array import Array
from relay.calling.devices.device_array import DeviceArray, from_dlpack
from relay.codegen.cuda.driver import open_gpu
from relay.codegen.cuda.tensors import DeviceTensor
from relay.errors import CompileError, TypeMismatch
from relay.ir import tree
from relay.ir.types import base_of_dtype

CPU, GPUS = "cpu", ("cuda", "cuda:0")
"""Names of devices."""


def device_put(x: Any, device: str = "cuda") -> Any:
    """The same arrays on a device, "cuda" (or "cuda:0") or "cpu": an array, a number, or a tree of them (`relay.tree`).

    What is there already is not copied. A call with arrays on the GPU runs there, and its results stay there. Raises
    CompileError for another device and where there is no GPU, TypeMismatch for what is not an array.
    """
    if device != CPU and device not in GPUS:
        raise CompileError(f"there is no device {device!r}", help='the devices are "cpu" and "cuda", the first GPU')
    leaves, structure = tree.flatten(x)
    put = _to_host if device == CPU else _to_gpu
    return tree.unflatten(structure, [put(leaf) for leaf in leaves])


def _array(leaf: Any) -> Any:
    """A leaf as an array of NumPy, or a tensor on the GPU."""
    if isinstance(leaf, DeviceArray):
        return leaf.tensor
    if hasattr(leaf, "__dlpack__") and not isinstance(leaf, np.ndarray):
        return from_dlpack(leaf)
    array = np.asarray(leaf)
    if array.dtype == np.float64 and isinstance(leaf, float):
        array = array.astype(np.float32)  # as numbers in programs
    if array.dtype == np.int64 and isinstance(leaf, int) and -(2**31) <= leaf < 2**31:
        array = array.astype(np.int32)
    if base_of_dtype(array.dtype) is None:
        raise TypeMismatch(f"a {type(leaf).__name__} of dtype {array.dtype} cannot be put on a device")
    return array


def _to_host(leaf: Any) -> Array:
    array = _array(leaf)
    return Array(array.numpy() if isinstance(array, DeviceTensor) else array)


def _to_gpu(leaf: Any) -> DeviceArray:
    if isinstance(leaf, DeviceArray):
        return leaf
    array = _array(leaf)
    if isinstance(array, DeviceTensor):
        return DeviceArray(array)
    gpu = open_gpu()
    native = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False).reshape(array.shape)
    with gpu.lock:
        gpu.enter()
        tensor = DeviceTensor(gpu, gpu.allocate(native.nbytes), native.dtype, native.shape)
        gpu.upload(native, tensor.memory)
    return DeviceArray(tensor)


__all__ = ["device_put"]
