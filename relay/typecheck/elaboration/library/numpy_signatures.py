"""The signatures of NumPy's functions and methods, and the operators that they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

import attrs

from relay.operator import Operator
from relay.operator import resolve_name as resolve_operator


def _pad(
    array: object,
    pad_width: object,
    mode: object = "constant",
    *,
    constant_values: object = 0,
    end_values: object = None,
    reflect_type: object = None,
    stat_length: object = None,
) -> None:
    """`np.pad`, whose signature is too long for a lambda."""


SIGNATURES: dict[str, Callable[..., None]] = {
    "all": lambda a, axis=None, out=None, keepdims=False, *, where=True: None,
    "any": lambda a, axis=None, out=None, keepdims=False, *, where=True: None,
    "argmax": lambda a, axis=None, out=None, *, keepdims=False: None,
    "argmin": lambda a, axis=None, out=None, *, keepdims=False: None,
    "argsort": lambda a, axis=-1, kind=None, order=None, *, stable=None: None,
    "broadcast_to": lambda array, shape, subok=False: None,
    "concatenate": lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "copy": lambda a, order="K", subok=False: None,
    "cumprod": lambda a, axis=None, dtype=None, out=None: None,
    "cumsum": lambda a, axis=None, dtype=None, out=None: None,
    "diag": lambda v, k=0: None,
    "diagonal": lambda a, offset=0, axis1=0, axis2=1: None,
    "dot": lambda a, b, out=None: None,
    "einsum": lambda *operands, out=None, optimize=False, dtype=None, order="K", casting="safe": None,
    "expand_dims": lambda a, axis: None,
    "eye": lambda N, M=None, k=0, dtype=None, order="C", *, device=None, like=None: None,
    "fix": lambda x, out=None: None,
    "flip": lambda m, axis=None: None,
    "empty": lambda shape, dtype=None, order="C", *, device=None, like=None: None,
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "full": lambda shape, fill_value, dtype=None, order="C", *, device=None, like=None: None,
    "full_like": lambda a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "linspace": lambda start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None: None,
    "max": lambda a, axis=None, out=None, keepdims=False, initial=None, where=True: None,
    "mean": lambda a, axis=None, dtype=None, out=None, keepdims=False, *, where=True: None,
    "meshgrid": lambda *xi, copy=True, sparse=False, indexing="xy": None,
    "min": lambda a, axis=None, out=None, keepdims=False, initial=None, where=True: None,
    "moveaxis": lambda a, source, destination: None,
    "ones": lambda shape, dtype=None, order="C", *, device=None, like=None: None,
    "ones_like": lambda a, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "outer": lambda a, b, out=None: None,
    "pad": _pad,
    "prod": lambda a, axis=None, dtype=None, out=None, keepdims=False, initial=1, where=True: None,
    "ravel": lambda a, order="C": None,
    "repeat": lambda a, repeats, axis=None: None,
    "reshape": lambda a, /, shape, order="C", *, copy=None: None,
    "roll": lambda a, shift, axis=None: None,
    "round": lambda a, decimals=0, out=None: None,
    "searchsorted": lambda a, v, side="left", sorter=None: None,
    "sort": lambda a, axis=-1, kind=None, order=None, *, stable=None: None,
    "split": lambda ary, indices_or_sections, axis=0: None,
    "squeeze": lambda a, axis=None: None,
    "stack": lambda arrays, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "std": lambda a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None, correction=0: (
        None
    ),
    "sum": lambda a, axis=None, dtype=None, out=None, keepdims=False, initial=0, where=True: None,
    "swapaxes": lambda a, axis1, axis2: None,
    "take": lambda a, indices, axis=None, out=None, mode="raise": None,
    "take_along_axis": lambda arr, indices, axis=-1: None,
    "tensordot": lambda a, b, axes=2: None,
    "tile": lambda A, reps: None,
    "trace": lambda a, offset=0, axis1=0, axis2=1, dtype=None, out=None: None,
    "transpose": lambda a, axes=None: None,
    "tri": lambda N, M=None, k=0, dtype=None, *, like=None: None,
    "tril": lambda m, k=0: None,
    "triu": lambda m, k=0: None,
    "var": lambda a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None, correction=0: (
        None
    ),
    "where": lambda condition, x=None, y=None, /: None,
    "zeros": lambda shape, dtype=None, order="C", *, device=None, like=None: None,
    "zeros_like": lambda a, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "linalg.cholesky": lambda a, /, *, upper=False: None,
    "linalg.diagonal": lambda x, /, *, offset=0: None,
    "linalg.matmul": lambda x1, x2, /: None,
    "linalg.norm": lambda x, ord=None, axis=None, keepdims=False: None,
    "linalg.outer": lambda x1, x2, /: None,
    "linalg.tensordot": lambda x1, x2, /, *, axes=2: None,
    "linalg.trace": lambda x, /, *, offset=0, dtype=None: None,
}
"""NumPy's signatures; a default of an argument that an operator has no meaning for changes nothing."""


_OPERATORS = {"ravel": "flatten", "fix": "trunc", "dot": "matmul", "empty": "zeros", "empty_like": "zeros_like"}
"""The operators' names, where they differ. Nothing here has undefined elements."""


METHODS = (
    "all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean",
    "min", "prod", "ravel", "repeat", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take",
    "trace", "var",
)  # fmt: skip
"""The methods of arrays that are these functions, with the array as their first argument."""


@attrs.frozen
class NumpyFunction:
    """An operator under NumPy's name. `key` is the name, with `linalg.` before those that NumPy has there."""

    key: str
    operator: Operator

    @property
    def name(self) -> str:
        """As programs write it."""
        return f"np.{self.key}"


def numpy_function(key: str) -> NumpyFunction:
    """A function by its key."""
    name = key.removeprefix("linalg.")
    operator = resolve_operator(_OPERATORS.get(name, name))
    assert operator is not None, key
    return NumpyFunction(key, operator)


def required_count(key: str) -> int:
    """The number of arguments that a call needs."""
    parameters = inspect.signature(SIGNATURES[key]).parameters.values()
    return sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)


def signatures() -> Mapping[str, inspect.Signature]:
    """NumPy's signatures as this file has them, by key."""
    return {key: inspect.signature(function) for key, function in SIGNATURES.items()}
