"""DLPack's description of an array in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, ClassVar


class DLTensor(ctypes.Structure):
    """A DLTensor, of version 0 of the protocol."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


CODE_OF_BFLOAT = 4
"""kDLBfloat, which NumPy does not know."""
