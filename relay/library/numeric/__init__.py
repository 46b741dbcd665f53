"""NumPy's functions on shapes, ranges, ranks, polynomials and matrices, and the parts of floats, in the language."""

from relay.library.numeric import (
    decompositions,
    floating_point,
    padding,
    polynomials,
    quantiles,
    ranges,
    reductions,
    shapes,
)

__all__ = [
    "decompositions",
    "floating_point",
    "padding",
    "polynomials",
    "quantiles",
    "ranges",
    "reductions",
    "shapes",
]
