"""The operators. Importing this package registers them all; it does not load TVM.

To add one, write its paragraph in the file of its kind, as the ones there are written: relation (its type), pattern,
compute, gradient, and the NumPy reference with a docstring that says shapes and dtypes and has an example. The table
test over the registry, `tests/test_operators.py`, then covers it; give a `sampler` where random numbers in the default
shapes would not do.

    elementwise   arithmetic
    elementary    exp, log, sqrt, tanh, ..
    trigonometric tan, the hyperbolic functions, inverses, erf, ndtr
    rounding      floor, round, ..
    activation    silu, gelu, elu, .., composed of others
    comparison    comparisons, logic, bits, where, cast
    slicing       slices with constant bounds
    shape         reshaping, axes, broadcasting, joining
    reduction     sum, mean, prod, max, min, argmax, argmin, any, all
    statistics    variance, norms, logsumexp
    scan          running sums and products
    splitting     split, meshgrid: operators of several results
    rearrangement axes and elements elsewhere: flip, roll, tile, layouts, ..
    padding       pad
    triangles     eye, tri, tril, triu
    gathering     along an axis, by index vectors; dynamic_windows, at run-time places
    sequences     of different lengths: masks, reversal
    indexing      run-time indices: index, take, scatter_add, one_hot
    linalg        matmul, dense
    contraction   einsum, tensordot, dot, outer, batch_matmul
    diagonals     diagonal, diag, trace
    decompositions  triangular_solve, cholesky
    convolution   convolutions of one, two and three axes, transposed ones, and their weights' gradients
    windows       sliding windows and their adjoint
    pooling       maxima and means over windows; adaptive_pooling, over bins
    nn            softmax, log_softmax
    barriers      recomputed, unset
    random        keys, and numbers drawn with them; distributions, choices made of those
    normalisation  batch, layer, group, instance, rms and local response normalisation, prelu
    losses        squared, absolute, Huber, hinge, cross-entropies, Kullback-Leibler
    attention     embedding, scaled dot-product attention
    image         resizing, grid_sample, bilateral_slice
    sorting       argsort, sort, topk, searchsorted, unique
    quantised     quantize, dequantize, requantize, products of 8-bit numbers
    creation      zeros, ones, full, arange
    equations     what calls equal: the table that simplification uses; shape_equations has a part of it
    stable_forms  what calls equal with fewer digits lost: the table of `improve_accuracy`

and what they are written with: notation (names), samples (for the tests), scalar, transcendental, circular and powers
(TIR expressions), stages (te stages), reproducible (functions of floats with the same bits everywhere), lazy (TVM at
first use).
"""

from relay.ops import (
    activation,
    adaptive_pooling,
    attention,
    barriers,
    comparison,
    contraction,
    convolution,
    creation,
    decompositions,
    diagonals,
    distributions,
    dynamic_windows,
    elementary,
    elementwise,
    equations,
    gathering,
    image,
    indexing,
    linalg,
    losses,
    nn,
    normalisation,
    padding,
    pooling,
    quantised,
    random,
    rearrangement,
    reduction,
    rounding,
    scan,
    sequences,
    shape,
    slicing,
    sorting,
    splitting,
    stable_forms,
    statistics,
    triangles,
    trigonometric,
    windows,
)

__all__ = [
    "activation",
    "adaptive_pooling",
    "attention",
    "barriers",
    "comparison",
    "contraction",
    "convolution",
    "creation",
    "decompositions",
    "diagonals",
    "distributions",
    "dynamic_windows",
    "elementary",
    "elementwise",
    "equations",
    "gathering",
    "image",
    "indexing",
    "linalg",
    "losses",
    "nn",
    "normalisation",
    "padding",
    "pooling",
    "quantised",
    "random",
    "rearrangement",
    "reduction",
    "rounding",
    "scan",
    "sequences",
    "shape",
    "slicing",
    "sorting",
    "splitting",
    "stable_forms",
    "statistics",
    "triangles",
    "trigonometric",
    "windows",
]
