"""Arrays of programs that run as Python: NumPy's, with values that the language's rules of assignment suit.

`x[i] = v` changes this object alone: neither a caller's array nor a part of another one. So an array is copied before
it is written to, unless nothing else has seen its memory since it was copied last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relay.calling import array as results
from relay.calling.array import Array
from relay.ir import tree
from relay.ir.types import BaseType


class PythonArray(Array):
    """An `Array` in a program that runs as Python. It can be assigned to; NumPy's functions of it give such arrays."""

    __slots__ = ("_own",)
    _own: bool
    __hash__ = None

    def __init__(self, value: np.ndarray, own: bool = False) -> None:
        super().__init__(value)
        self._own = own

    def shared_memory(self) -> np.ndarray:
        """The memory, for someone else: it is not written to any more."""
        self._own = False
        return self._value

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array, without a copy."""
        return self.shared_memory()

    def __setitem__(self, items: Any, value: Any) -> None:
        if not self._own:
            self._value, self._own = self._value.copy(), True
        self._value[unwrap_arrays(items)] = unwrap_arrays(value)

    def __getitem__(self, items: Any) -> PythonArray:
        found = self._value[unwrap_arrays(items)]
        if isinstance(found, np.ndarray) and found.base is not None:
            self._own = False
        return PythonArray(np.asarray(found))

    def __iter__(self) -> Any:
        return (PythonArray(np.asarray(row)) for row in self.shared_memory())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._own = False
        return super().__array__(dtype, copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return wrap_arrays(super().__array_ufunc__(ufunc, method, *inputs, **options))

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return wrap_arrays(function(*unwrap_arrays(arguments), **unwrap_arrays(keywords)))

    def __copy__(self) -> PythonArray:
        return PythonArray(self._value.copy(), True)

    def __deepcopy__(self, memo: Any) -> PythonArray:
        return PythonArray(self._value.copy(), True)

    def __reduce__(self) -> tuple[Any, ...]:
        return PythonArray, (self._value,)

    def view(self, *shape: Any) -> PythonArray:
        """PyTorch's name of `reshape`; with a dtype, NumPy's view."""
        self._own = False
        is_dtype = len(shape) == 1 and isinstance(dtype_of(shape[0]), str | type | np.dtype)
        return PythonArray(self._value.view(dtype_of(*shape)) if is_dtype else self._value.reshape(*shape))

    def permute(self, *axes: Any) -> PythonArray:
        """PyTorch's name of `transpose`."""
        self._own = False
        return PythonArray(self._value.transpose(*axes))

    def clone(self) -> PythonArray:
        """PyTorch's name of `copy`."""
        return self.__copy__()

    def contiguous(self) -> PythonArray:
        """The same values: how they lie is not the program's concern."""
        return self

    def astype(self, dtype: Any, **options: Any) -> PythonArray:
        """A copy of another dtype."""
        return PythonArray(self._value.astype(dtype_of(dtype), **options))


def dtype_of(dtype: Any) -> Any:
    """NumPy's dtype for what programs call one."""
    return dtype.dtype if isinstance(dtype, BaseType) else dtype


def unwrap_arrays(value: Any) -> Any:
    """NumPy's arrays and dtypes in place of ours, also in structures."""
    leaves, structure = tree.flatten(value)
    arrays = [leaf.numpy() if isinstance(leaf, Array) else leaf for leaf in leaves]
    return tree.unflatten(structure, arrays, static=dtype_of)


def wrap_arrays(value: Any) -> Any:
    """The reverse, for what NumPy returns."""
    leaves, structure = tree.flatten(value)
    return tree.unflatten(structure, [_wrap(leaf) for leaf in leaves])


def _wrap(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray | np.generic):
        return PythonArray(np.asarray(leaf))
    return PythonArray(leaf.numpy()) if isinstance(leaf, Array) and not isinstance(leaf, PythonArray) else leaf


_DIVISIONS = ("__floordiv__", "__mod__", "__divmod__")


def _refuse_zero(divisor: Any) -> None:
    """Integers are not divided by zero, which NumPy only warns of."""
    array = np.asarray(unwrap_arrays(divisor))
    if array.dtype.kind in "iu" and not array.all():
        raise ZeroDivisionError("division of integers by zero")


def _of_array(name: str) -> Callable[..., Any]:
    divides = name.replace("__r", "__") in _DIVISIONS
    method, repeats = getattr(Array, name), name in ("__mul__", "__rmul__")

    def apply_method(self: PythonArray, *operands: Any, **options: Any) -> Any:
        if repeats and isinstance(operands[0], list | tuple) and self._value.dtype.kind in "iu" and not self.ndim:
            return NotImplemented  # `[0.0] * n`
        if divides and operands:
            _refuse_zero(operands[0] if name in _DIVISIONS else self)
        self._own = False  # the result may be a view
        return wrap_arrays(method(self, *unwrap_arrays(operands), **unwrap_arrays(options)))

    apply_method.__name__, apply_method.__doc__ = name, method.__doc__
    return apply_method


def _attribute(name: str) -> property:
    found = getattr(Array, name)

    def read(self: PythonArray) -> Any:
        self._own = False
        return wrap_arrays(found.__get__(self))

    return property(read, doc=found.__doc__)


for _name in set(results.OPERATIONS) - {"view"}:
    setattr(PythonArray, _name, _of_array(_name))
for _name in results.ATTRIBUTES:
    setattr(PythonArray, _name, _attribute(_name))
