"""Tensors on the GPU exchanged with PyTorch, CuPy and JAX by DLPack, without copies.

Streams: who takes a tensor names its own, which then waits for what has made the tensor (the protocol's `stream`: None
and 1 are the legacy default stream, 2 the default stream of the thread, -1 asks for no order; 0 is ambiguous). What is
imported was made by others; they let the arena's stream wait, which is what they are told here.

Lifetime: memory that is handed out goes back to the arena when its last user lets go of it, and is given to another
tensor only once the whole GPU has finished, since others use streams that the arena does not know. Memory that was
taken is let go of once the arena's stream has finished.
"""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from relay.codegen.cuda.driver import Gpu, open_gpu
from relay.codegen.cuda.memory import Memory
from relay.codegen.cuda.tensors import DeviceTensor
from relay.errors import TypeMismatch
from relay.ir.types import BFLOAT16, base_of_dtype
from relay.support.dl_tensor import CODE_OF_BFLOAT, DLTensor

CUDA = 2
"""kDLCUDA."""

CUDA_KINDS = (2, 3, 13)
"""Memory of GPUs: kDLCUDA, kDLCUDAHost, kDLCUDAManaged."""

LEGACY, NO_ORDER = 1, -1


ALIGNED = 16
"""Bytes that kernels may copy at once, at multiples of these."""


class _ManagedTensor(DLTensor):
    """A DLManagedTensor."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_KINDS = {0: "i", 1: "u", 2: "f"}

_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_raw_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
_NAME, _USED = ctypes.c_char_p(b"dltensor"), ctypes.c_char_p(b"used_dltensor")

_handed_out: dict[int, tuple[_ManagedTensor, object, DeviceTensor]] = {}
"""The structs that capsules refer to, by the address of the struct, until their users let go."""


def _let_go(address: int) -> None:
    """The last user of a tensor lets go of it."""
    _handed_out.pop(address, None)


def _drop_capsule(capsule: int) -> None:
    """A capsule is gone. One that was taken has another name, and its user lets go."""
    if _raw_is_valid(capsule, _NAME):
        _handed_out.pop(_raw_pointer(capsule, _NAME), None)


@functools.cache
def _callbacks() -> tuple[Any, Any]:
    """The functions for C that drop a tensor and a capsule. Made when one is handed out: they take a page of memory
    that is executable."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_let_go), ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop_capsule)


def capsule_of(tensor: DeviceTensor, stream: int | None) -> Any:
    """The result of `__dlpack__(stream=..)`. Raises ValueError for the stream 0, which the protocol forbids."""
    if stream == 0:
        raise ValueError("stream=0 is ambiguous; pass 1 for the legacy default stream, or 2 for that of the thread")
    if stream != NO_ORDER:
        let_follow(tensor, LEGACY if stream is None else stream)
    tensor.memory.exported[0] = True
    shape = (ctypes.c_int64 * max(tensor.ndim, 1))(*tensor.shape)
    strides = (ctypes.c_int64 * max(tensor.ndim, 1))(*_strides(tensor.shape))
    code = CODE_OF_BFLOAT if tensor.dtype == BFLOAT16.dtype else _CODES[tensor.dtype.kind]
    made = _ManagedTensor(
        tensor.memory.address, CUDA, tensor.gpu.index, tensor.ndim, code, 8 * tensor.dtype.itemsize, 1,
        ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)),
        0, None, ctypes.cast(_callbacks()[0], ctypes.c_void_p).value,
    )  # fmt: skip
    address = ctypes.addressof(made)
    _handed_out[address] = made, (shape, strides), tensor
    return _new(address, _NAME, ctypes.cast(_callbacks()[1], ctypes.c_void_p).value)


def let_follow(tensor: DeviceTensor, stream: int) -> None:
    """Let a stream of others wait for what has made a tensor."""
    with tensor.gpu.lock:
        tensor.gpu.enter()
        tensor.gpu.follow(stream)


def array_interface(tensor: DeviceTensor) -> dict[str, Any]:
    """The value of `__cuda_array_interface__`, version 3: the reader's stream is to wait for ours."""
    tensor.memory.exported[0] = True
    return {
        "shape": tensor.shape,
        "typestr": tensor.dtype.str,
        "data": (tensor.memory.address, True),
        "version": 3,
        "strides": None,
        "stream": int(tensor.gpu.stream),
    }


def _strides(shape: tuple[int, ...]) -> list[int]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return strides


def is_on_gpu(value: Any) -> bool:
    """True if an object speaks DLPack and says that it is in the memory of a GPU of NVIDIA."""
    where = getattr(value, "__dlpack_device__", None)
    if where is None or isinstance(value, np.ndarray):
        return False
    try:
        return int(where()[0]) in CUDA_KINDS
    except Exception:  # of someone else's method
        return False


class _ImportedTensor:
    """Memory of others. They get it back when nothing here refers to it, once the stream has finished."""

    def __init__(self, gpu: Gpu, capsule: Any) -> None:
        address = _pointer(capsule, _NAME)
        self.tensor = _ManagedTensor.from_address(address)
        _rename(capsule, _USED)
        weakref.finalize(self, _give_back, gpu, address, self.tensor.deleter).atexit = False


def _give_back(gpu: Gpu, address: int, deleter: int | None) -> None:
    if deleter:
        with gpu.lock:
            gpu.enter()
            gpu.call("cuStreamSynchronize", gpu.stream)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)


def tensor_of(value: Any) -> DeviceTensor:
    """An object of another library that is on the GPU, as a tensor there, without a copy if it is aligned. Raises
    TypeMismatch for one that is elsewhere, not row by row, or of a dtype that Relay does not have, CompileError where
    no GPU is found."""
    gpu = open_gpu()
    kind, index = (int(part) for part in value.__dlpack_device__())
    name = type(value).__name__
    if kind != CUDA or index != gpu.index:
        raise TypeMismatch(
            f"a {name} on device {index} of DLPack's kind {kind}; programs run on the first GPU",
            help="move it there, or to the processor",
        )
    try:
        with gpu.lock:
            gpu.enter()
            taken = _ImportedTensor(gpu, value.__dlpack__(stream=int(gpu.stream)))
    except Exception as error:  # of someone else's method, too
        help = "pass x.detach()" if "grad" in str(error) else None
        raise TypeMismatch(f"a {name} that cannot be read: {str(error) or type(error).__name__}", help=help) from None
    found = taken.tensor
    shape = tuple(found.shape[: found.ndim])
    if found.strides and _moves(tuple(found.strides[: found.ndim]), shape):
        raise TypeMismatch(f"a {name} whose elements are not row by row", help="pass x.contiguous()")
    dtype = _dtype(found, name)
    memory = Memory((found.data or 0) + found.byte_offset, math.prod(shape) * dtype.itemsize)
    if memory.address % ALIGNED:
        with gpu.lock:
            gpu.enter()
            copied = gpu.allocate(memory.size)
            gpu.copy(memory, copied, memory.size)
        return DeviceTensor(gpu, copied, dtype, shape)
    return DeviceTensor(gpu, memory, dtype, shape, taken)


def _moves(strides: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """True if elements lie elsewhere than row by row."""
    if 0 in shape:
        return False
    return any(d > 1 and s != own for s, own, d in zip(strides, _strides(shape), shape, strict=True))


def _dtype(found: _ManagedTensor, name: str) -> np.dtype[Any]:
    if found.lanes == 1 and (found.code, found.bits) == (CODE_OF_BFLOAT, 16):
        return BFLOAT16.dtype
    if found.lanes == 1 and (found.code, found.bits) == (6, 8):
        return np.dtype(bool)
    if found.lanes == 1 and found.code in _KINDS and found.bits in (8, 16, 32, 64):
        dtype = np.dtype(f"{_KINDS[found.code]}{found.bits // 8}") if (found.code, found.bits) != (2, 8) else None
        if dtype is not None and base_of_dtype(dtype) is not None:
            return dtype
    raise TypeMismatch(f"a {name} of a dtype that Relay does not have")


__all__ = ["array_interface", "capsule_of", "is_on_gpu", "let_follow", "tensor_of"]
