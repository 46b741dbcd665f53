"""Functions of NumPy and Python that are written in the language: one entry each, a function with NumPy's signature
under `@library_function(np.name)`.

They are translated when a program first calls them, and are elaborated, differentiated and compiled as the user's own.
What such a function does not take (another dtype, an argument that is not in its signature) is an error at the call.
"""

from relay.library import (
    arrays,
    dictionaries,
    distributions,
    elementwise,
    functional,
    integers,
    iteration,
    linear_algebra,
    missing_values,
    numeric,
    parts,
    sets,
    signals,
    statistics,
    texts,
)

__all__ = [
    "arrays",
    "dictionaries",
    "distributions",
    "elementwise",
    "functional",
    "integers",
    "iteration",
    "linear_algebra",
    "missing_values",
    "numeric",
    "parts",
    "sets",
    "signals",
    "statistics",
    "texts",
]
