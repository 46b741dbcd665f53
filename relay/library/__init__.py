"""Functions of NumPy and Python that are written in the language: one entry each, a function with NumPy's signature
under `@library_function(np.name)`.

They are translated when a program first calls them, and are elaborated, differentiated and compiled as the user's own.
What such a function does not take (another dtype, an argument that is not in its signature) is an error at the call.
"""

from relay.library import (
    arrays,
    decompositions,
    dictionaries,
    distributions,
    elementwise,
    floating_point,
    integers,
    linear_algebra,
    missing_values,
    padding,
    parts,
    polynomials,
    quantiles,
    ranges,
    reductions,
    sets,
    shapes,
    signals,
    statistics,
    texts,
)

__all__ = [
    "arrays",
    "decompositions",
    "dictionaries",
    "distributions",
    "elementwise",
    "floating_point",
    "integers",
    "linear_algebra",
    "missing_values",
    "padding",
    "parts",
    "polynomials",
    "quantiles",
    "ranges",
    "reductions",
    "sets",
    "shapes",
    "signals",
    "statistics",
    "texts",
]
