"""The array type of results: NumPy semantics, zero-copy export, immutable.

Operators, methods and attributes are those of the NumPy array behind it (of NumPy's scalar, where an array of rank 0
has none), and give an `Array` again; PyTorch's `dim` and `keepdim` are taken, as in programs. `a += 1` makes a new
one. What would write into an array is not there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from relay.calling.dlpack import dlpack_capsule
from relay.codegen.runtime.result_memory import aligned
from relay.errors import ExecutionError
from relay.support.foreign_names import SYNONYMS
from relay.support.html import fragment
from relay.text.display.arrays import array_html

if TYPE_CHECKING:  # that has the types of the operators that the end of this file defines
    from numpy.lib.mixins import NDArrayOperatorsMixin as _Operators
else:
    _Operators = object


class ArrayLike(Protocol):
    """Arguments that a call takes for a tensor: arrays of NumPy, Relay and all that speak DLPack."""

    @property
    def __dlpack__(self) -> Any: ...


_OPERATORS = (
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "floordiv",
    "mod",
    "divmod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "xor",
    "or",
)
_COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")
_UNARY = ("neg", "pos", "abs", "invert")
_METHODS = (
    *("all", "any", "argmax", "argmin", "argsort", "astype", "choose", "clip", "compress", "conj", "conjugate", "copy"),
    *("cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat"),
    *("reshape", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "tobytes", "tofile", "trace"),
    *("transpose", "var", "view"),
)
ATTRIBUTES = ("T", "mT", "real", "imag", "nbytes", "itemsize", "strides", "flags", "device")
_CHANGES = {
    "sort": "np.sort(a) is a sorted copy",
    "partition": "np.partition(a, k) is a copy",
    "fill": "np.full_like(a, value) is a new array",
    "resize": "np.resize(a, shape) is a copy",
    "put": "change a.numpy().copy()",
    "setflags": "change a.numpy().copy()",
    "byteswap": "a.numpy().byteswap() is a copy",
}


class Array(_Operators):
    """A tensor result. Read it with `.numpy()`, `np.asarray(x)`, DLPack, `float(x)`, indexing, or pass it to another
    call."""

    __slots__ = ("_donated_to", "_value")
    _donated_to: str
    _value: np.ndarray
    __relay_array__ = True
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]  # as NumPy's: == compares elements

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
        """True if the array was donated to a call, and cannot be used any more."""
        return hasattr(self, "_donated_to")

    def __getattr__(self, name: str) -> Any:
        if name == "_value":
            raise ExecutionError(
                f"this array was donated to {self._donated_to}, which has used its memory for its results",
                help="use what the call returned, or donate a copy",
            )
        reason = f", since it never changes: {_CHANGES[name]}" if name in _CHANGES else ""
        raise AttributeError(f"'Array' object has no attribute {name!r}{reason}", name=name, obj=self)

    # ---- NumPy's functions, and other libraries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is None or np.dtype(dtype) == self._value.dtype:
            return self._value.copy() if copy else self._value
        if copy is False:
            raise ValueError(f"an array of {self.dtype} as {np.dtype(dtype)} is a copy, and copy=False was asked for")
        return self._value.astype(dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions on the underlying NumPy array; the result is an Array, or the `out` that was given."""
        outputs = options.get("out", ())
        if (method == "at" and isinstance(inputs[0], Array)) or any(isinstance(x, Array) for x in outputs):
            raise TypeError(f"np.{ufunc.__name__} cannot write into an Array, which never changes")
        plain = [_unwrap(x) for x in inputs]
        result = getattr(ufunc, method)(*plain, **{k: _unwrap(v) for k, v in options.items()})
        if not outputs:
            return _wrap(result)
        if not isinstance(result, tuple):
            return result
        return tuple(_wrap(r) if out is None else r for r, out in zip(result, outputs, strict=True))

    def __dlpack__(self, **options: Any) -> Any:
        return dlpack_capsule(self._value, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value.__dlpack_device__()

    def __jax_array__(self) -> Any:
        """The array as JAX's, for `jnp.asarray`: without a copy, unless JAX computes with 32 bits and this has 64."""
        jax = sys.modules["jax"]
        if self.dtype.kind in "fiuc" and self.dtype.itemsize > 4 and not jax.config.jax_enable_x64:
            return jax.numpy.asarray(self._value)
        return jax.dlpack.from_dlpack(self)

    # ---- Python's numbers

    def item(self, *place: Any) -> Any:
        """The only element, or the one at a place, as a Python number. Raises ValueError if there are more."""
        return self._value.item(*place)

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        return self._value.tolist()

    def _single_element(self) -> np.ndarray:
        """The array, or its only element, as rank 0."""
        return self._value.reshape(()) if self._value.size == 1 else self._value

    def __float__(self) -> float:
        return float(self._single_element())

    def __int__(self) -> int:
        return int(self._single_element())

    def __complex__(self) -> complex:
        return complex(self._single_element())

    def __index__(self) -> int:
        return self._value.__index__()

    def __bool__(self) -> bool:
        return bool(self._value)

    def __format__(self, form: str) -> str:
        if form and self.ndim == 0 and self.dtype.kind == "V":  # bfloat16, which knows no forms
            return format(float(self), form)
        return format(self._value, form)

    def _number(self, use: str) -> float:
        """The Python number that this is. Raises TypeError for an array that is none, as NumPy does."""
        if self.ndim:
            raise TypeError(f"{use} of an array of shape {self.shape} is not defined; use np.{use}")
        number: float = self._value.item()  # an int, too
        return number

    def __round__(self, digits: int | None = None) -> Any:
        number = self._number("round")
        return round(number) if digits is None else Array(np.asarray(round(number, digits), self.dtype))

    def __trunc__(self) -> int:
        return math.trunc(self._number("trunc"))

    def __floor__(self) -> int:
        return math.floor(self._number("floor"))

    def __ceil__(self) -> int:
        return math.ceil(self._number("ceil"))

    # ---- Python's sequences

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Array]:
        return (Array(np.asarray(row)) for row in self._value)

    def __contains__(self, element: Any) -> bool:
        return _unwrap(element) in self._value

    def __getitem__(self, items: Any) -> Array:
        items = tuple(map(_unwrap, items)) if isinstance(items, tuple) else _unwrap(items)
        return Array(np.asarray(self._value[items]))

    def __setitem__(self, items: Any, value: Any) -> None:
        raise TypeError("an Array never changes; change a copy, a.numpy().copy()")

    # ---- copies and texts

    def __copy__(self) -> Array:
        return Array(self._value.copy())

    def __deepcopy__(self, memo: Any) -> Array:
        return Array(self._value.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self._value,)

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(donated to {self._donated_to})"
        return f"Array({np.array2string(self._value, separator=', ', prefix='Array(')}, dtype={self.dtype})"

    def __str__(self) -> str:
        return str(self._value)

    def _repr_html_(self) -> str:
        """The array as HTML for notebooks: dtype, shape and values."""
        return fragment(f"<pre>{escape(repr(self))}</pre>") if self.is_deleted() else array_html(self._value)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def _unwrap(value: Any) -> Any:
    return value._value if isinstance(value, Array) else value


def _wrap(value: Any) -> Any:
    """NumPy's result as ours; what another library has made stays as it is."""
    if isinstance(value, (np.ndarray, np.generic)):
        return Array(np.asarray(value))
    if isinstance(value, tuple):
        return tuple(map(_wrap, value))
    return value


def _of_numpy(name: str) -> Callable[..., Any]:
    """A method that does what NumPy's of the same name does, or leaves it to the other operand where NumPy's does."""
    method = getattr(np.ndarray, name)

    def apply_method(self: Array, *operands: Any, **options: Any) -> Any:
        if isinstance(options.get("out"), Array):
            raise TypeError(f"{name} cannot write into an Array, which never changes")
        plain = [_unwrap(x) for x in operands]
        result = method(self._value, *plain, **{SYNONYMS.get(k, k): _unwrap(v) for k, v in options.items()})
        return result if "out" in options else _wrap(result)

    apply_method.__name__, apply_method.__qualname__, apply_method.__doc__ = name, f"Array.{name}", method.__doc__
    return apply_method


def _attribute(name: str) -> property:
    return property(lambda self: _wrap(getattr(self._value, name)), doc=getattr(np.ndarray, name).__doc__)


OPERATIONS = (
    *(f"__{name}__" for name in (*_COMPARISONS, *_UNARY, *_OPERATORS, *(f"r{name}" for name in _OPERATORS))),
    *_METHODS,
)
"""The methods that are NumPy's."""

for _name in OPERATIONS:
    setattr(Array, _name, _of_numpy(_name))
for _name in ATTRIBUTES:
    setattr(Array, _name, _attribute(_name))


def aligned_array(elements: np.ndarray) -> Array:
    """An `Array` whose memory begins at a line of the cache, as those of programs' results do; it may be that of the
    elements."""
    return Array(aligned(elements))
