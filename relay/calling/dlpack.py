"""Arrays of other libraries, by DLPack, without a copy. NumPy does that for all dtypes but bfloat16, which is not its
own: that is exchanged as uint16, and the code of the dtype is read or written here."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from relay.errors import TypeMismatch
from relay.ir.types import BFLOAT16
from relay.support.dl_tensor import CODE_OF_BFLOAT, DLTensor

_CPU = 1


def array_from_dlpack(value: Any) -> np.ndarray:
    """An object with `__dlpack__` as an array. Raises TypeMismatch for what is not in the memory of this process, or of
    a dtype that neither NumPy nor Relay has."""
    try:
        return np.from_dlpack(value)
    except Exception as error:  # of someone else's method, too
        found = _bfloat16(value)
        if found is not None:
            return found
        help = "pass x.detach()" if "grad" in str(error) else None
        raise TypeMismatch(
            f"a {type(value).__name__} that cannot be read: {str(error) or type(error).__name__}", help=help
        ) from None


def _bfloat16(value: Any) -> np.ndarray | None:
    """An array of bfloat16 on this machine's memory; None for anything else."""
    try:
        capsule = value.__dlpack__()
        is_one = ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), ctypes.c_char_p(b"dltensor"))
    except Exception:  # which NumPy has met, too
        return None
    if not is_one:
        return None
    tensor = _tensor(capsule)
    if (tensor.device_type, tensor.code, tensor.bits, tensor.lanes) != (_CPU, CODE_OF_BFLOAT, 16, 1):
        return None
    shape = tuple(tensor.shape[: tensor.ndim])
    if not math.prod(shape):
        return np.empty(shape, BFLOAT16.dtype)
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    first = last = 0
    for size, step in zip(shape, strides or (), strict=False):
        first, last = first + min(0, (size - 1) * step), last + max(0, (size - 1) * step)
    count = math.prod(shape) if strides is None else last - first + 1
    memory = (ctypes.c_uint16 * count).from_address(tensor.data + tensor.byte_offset + 2 * first)
    memory.owner = capsule  # type: ignore[attr-defined]  # it lives as long as arrays over this memory
    flat = np.frombuffer(memory, np.uint16).view(BFLOAT16.dtype)  # type: ignore[call-overload]
    if strides is None:
        return flat.reshape(shape)  # type: ignore[no-any-return]
    return np.lib.stride_tricks.as_strided(flat[-first:], shape, tuple(2 * step for step in strides))


def dlpack_capsule(array: np.ndarray, **options: Any) -> Any:
    """The result of `__dlpack__` of an array."""
    if array.dtype != BFLOAT16.dtype:
        return array.__dlpack__(**options)
    options.pop("max_version", None)  # the newer form of a capsule has its fields elsewhere
    capsule = array.view(np.uint16).__dlpack__(**options)
    _tensor(capsule).code = CODE_OF_BFLOAT
    return capsule


def _tensor(capsule: Any) -> DLTensor:
    """The tensor in a capsule that nobody has taken."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return DLTensor.from_address(pointer(capsule, b"dltensor"))
