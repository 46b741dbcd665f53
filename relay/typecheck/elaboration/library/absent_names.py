"""Names of NumPy that have no meaning in programs, in groups with one reason, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping


def _by_name(groups: Mapping[str, str]) -> dict[str, str]:
    """Groups of names as a table of the single ones."""
    return {name: help for names, help in groups.items() for name in names.split()}


NUMPY = _by_name(
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
"""By the names that functions have in NumPy and its modules."""
