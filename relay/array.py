"""What a call returns: an array that behaves as NumPy's where that is unambiguous and hands its memory on without a
copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from relay.dlpack import exported
from relay.errors import ExecutionError


class ArrayLike(Protocol):
    """What a call takes for a tensor: arrays of NumPy, Relay and all that speak DLPack."""

    @property
    def __dlpack__(self) -> Any: ...


class Array(NDArrayOperatorsMixin):
    """A tensor result. Read it with `.numpy()`, `np.asarray(x)`, DLPack, `float(x)`, indexing, or pass it to another
    call."""

    __slots__ = ("_donated_to", "_value")
    _donated_to: str
    _value: np.ndarray
    __relay_array__ = True
    __array_priority__ = 100

    def __init__(self, value: np.ndarray) -> None:
        self._value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._value.dtype

    @property
    def ndim(self) -> int:
        return self._value.ndim

    @property
    def size(self) -> int:
        return self._value.size

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array, without a copy."""
        return self._value

    def donate(self, function: str) -> None:
        """Give the memory away: a call of this function has used it for its results."""
        self._donated_to = function
        del self._value

    def is_deleted(self) -> bool:
        """Whether the array was donated to a call, and cannot be used any more."""
        return hasattr(self, "_donated_to")

    def __getattr__(self, name: str) -> Any:
        if name == "_value":
            raise ExecutionError(
                f"this array was donated to {self._donated_to}, which has used its memory for its results",
                help="use what the call returned, or donate a copy",
            )
        raise AttributeError(f"'Array' object has no attribute {name!r}", name=name, obj=self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self._value.dtype:
            return self._value.astype(dtype)
        return self._value.copy() if copy else self._value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions and Python's operators work as on the NumPy array, and give an Array again."""
        plain = [x._value if isinstance(x, Array) else x for x in inputs]
        result = getattr(ufunc, method)(*plain, **options)
        return tuple(Array(np.asarray(r)) for r in result) if isinstance(result, tuple) else Array(np.asarray(result))

    def __dlpack__(self, **options: Any) -> Any:
        return exported(self._value, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value.__dlpack_device__()

    def item(self) -> Any:
        """The only element as a Python number. Raises ValueError if there are more."""
        return self._value.item()

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        return self._value.tolist()

    def __float__(self) -> float:
        return float(self._value.item())

    def __int__(self) -> int:
        return int(self._value.item())

    def __index__(self) -> int:
        return self._value.__index__()

    def __bool__(self) -> bool:
        return bool(self._value.item())

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Array]:
        return (Array(np.asarray(row)) for row in self._value)

    def __getitem__(self, items: Any) -> Array:
        if isinstance(items, Array):
            items = items._value
        return Array(np.asarray(self._value[items]))

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(donated to {self._donated_to})"
        return f"Array({np.array2string(self._value, separator=', ', prefix='Array(')}, dtype={self.dtype})"

    def __str__(self) -> str:
        return str(self._value)
