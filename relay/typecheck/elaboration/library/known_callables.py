"""Replacements for functions of Python and NumPy that have no meaning here."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from relay.errors import FrontendError, Span
from relay.operator import Operator, resolve_name


def refusal(function: object, span: Span | None) -> FrontendError | None:
    """The error for a function of Python or NumPy that users try, with what to write instead; None for others."""
    module = (getattr(function, "__module__", None) or "").split(".")
    name = getattr(function, "__name__", "")
    if "random" in module or hasattr(getattr(function, "__self__", None), "get_state"):
        return FrontendError(
            f"{name} of Python's or NumPy's random numbers is not part of a program",
            span,
            help="draw them with a key: relay.random.normal(key, (3,)); or make the numbers outside and pass them",
        )
    if isinstance(function, type) and function.__module__ == "itertools":
        return FrontendError(f"`{name}` is not part of Relay", span, help="write loops inside of each other")
    help = _INSTEAD.get(function) if callable(function) and _hashable(function) else None
    if help is None and (module[0] == "numpy" or isinstance(function, np.ufunc)):
        help = _NUMPY.get(name)
    return None if help is None else FrontendError(f"`{name}` is not part of Relay", span, help=help)


def library_operator(function: object) -> Operator | None:
    """The operator that a function of NumPy or `math` without an overload is, by its name: `np.add`, `math.tanh`."""
    name = getattr(function, "__name__", None)
    module = (getattr(function, "__module__", None) or "").split(".")[0]
    # A ufunc has no module in older versions of NumPy.
    known = isinstance(name, str) and (module in ("numpy", "math") or isinstance(function, np.ufunc))
    return resolve_name(name) if known else None  # type: ignore[arg-type]


def library_operators() -> Iterator[tuple[Callable[..., object], Operator]]:
    """The functions of NumPy and `math` that are operators, under each of their names."""
    for module in (math, np, np.linalg):
        for name in dir(module):
            function = getattr(module, name)
            operator = None if name.startswith("_") or not callable(function) else library_operator(function)
            if operator is not None and refusal(function, None) is None:
                yield function, operator


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


_INSTEAD: dict[object, str] = {
    builtins.map: "call it with a function and an iterable, or write a comprehension: [f(x) for x in xs]",
    builtins.filter: "call it with a function and an iterable, or write a comprehension with `if`",
    builtins.input: "pass the input as an argument",
    builtins.open: "pass the input as an argument",
    builtins.complex: "use real numbers",
    builtins.eval: "write the expression",
    builtins.exec: "write the statements",
    builtins.id: "values have no identity; compare them with `==`",
    builtins.hasattr: "attributes are known at compile time",
    builtins.getattr: "write the attribute: x.name",
    np.partition: "sort: np.sort(x) has each element in its place",
    np.argpartition: "sort: np.argsort(x); relay.topk(x, k) finds the largest ones",
    np.fill_diagonal: "values never change: x = np.where(np.eye(n, dtype=bool), value, x)",
    np.put: "values never change: x[indices] = values makes a new one of that name",
    np.place: "values never change: x = np.where(mask, values, x)",
    np.copyto: "values never change: assign the new one",
    np.put_along_axis: "assign by indices of all axes: `x[np.arange(n)[:, None], i] = v` writes along the last of two",
    np.piecewise: "choose: np.select([x < 0.0, x > 1.0], [a, b], c)",
    np.roots: "the number of real roots is data-dependent: find one by Newton's method, in a loop",
    np.vectorize: "operators are elementwise; of rows, relay.vmap(f)(x)",
    np.einsum_path: "relay.einsum chooses the order itself",
    math.remainder: "the sign of `x % y` is that of y; IEEE's is x - y * relay.round(x / y)",
    builtins.setattr: "build a new value with relay.replace",
}


def _by_name(groups: Mapping[str, str]) -> dict[str, str]:
    """Groups of names as a table of the single ones."""
    return {name: help for names, help in groups.items() for name in names.split()}


_NUMPY = _by_name(
    {
        "load loadtxt genfromtxt fromfile fromregex fromstring frombuffer fromiter from_dlpack memmap": (
            "read the array outside, and pass it as an argument"
        ),
        "save savez savez_compressed savetxt": "return the array, and save it outside",
        "array2string array_repr array_str base_repr format_float_positional format_float_scientific typename info": (
            'write an f-string: f"{x:.3f}"'
        ),
        "binary_repr": 'write an f-string: f"{n:b}"',
        "set_printoptions get_printoptions printoptions": 'give a format where it is printed: f"{x:.3f}"',
        "can_cast common_type min_scalar_type mintypecode promote_types result_type isdtype": (
            "dtypes are known: compare them, x.dtype == relay.Float32, or ask np.issubdtype(x.dtype, np.floating)"
        ),
        "busday_count busday_offset is_busday datetime_as_string datetime_data isnat": (
            "there are no dates: pass days as integers"
        ),
        "may_share_memory shares_memory isfortran require": "values have no place in memory: leave it out",
        "geterr seterr geterrcall seterrcall getbufsize setbufsize": (
            "floats follow IEEE 754, and nothing warns: leave it out, or test np.isfinite(x)"
        ),
        "frompyfunc": "operators are elementwise; of rows, relay.vmap(f)(x)",
        "nditer nested_iters": "loop over indices: for i in range(n), or for i, j in np.ndindex(x.shape)",
        "asmatrix bmat matrix": "write arrays of two axes, whose product is A @ B",
        "real_if_close sort_complex iscomplexobj isrealobj": "numbers are real: leave it out",
        "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn": (
            "there are no complex numbers: the real part of a transform is np.cos(2 * np.pi * np.outer(k, k) / n) @ x, "
            "with k = np.arange(n), the imaginary part -np.sin(..) @ x"
        ),
        "packbits unpackbits": "shift: x[:, None] >> np.arange(7, -1, -1) & 1 has the bits of bytes",
        "eig eigvals": "the eigenvalues of most matrices are complex: np.linalg.eigh takes symmetric ones",
        "putmask": "values never change: x = np.where(mask, values, x)",
        "apply_over_axes": "name several axes: np.sum(x, axis=(0, 1), keepdims=True)",
        "mask_indices": "np.nonzero(mask) has the indices where a mask holds",
        "histogramdd": "np.histogram2d is for two variables",
        "isscalar": "test x.ndim == 0",
        "iterable": "test x.ndim > 0",
        "row_stack": "write np.vstack",
        "unique_values": "write np.unique(x)",
        "get_include show_config show_runtime test": "ask NumPy outside of programs",
    }
)
"""Names of NumPy that have no meaning in programs, in groups with one reason, and what to write instead; by the names
that functions have in NumPy and its modules."""
