"""The operators. Importing this package registers them all; it does not load TVM.

To add one, write its paragraph in the file of its kind, as the ones there are written: relation (its type), pattern,
compute, gradient, and the NumPy reference with a docstring that says shapes and dtypes and has an example. The table
test over the registry, `tests/ops/test_table.py`, then covers it; give a `sampler` where random numbers in the default
shapes do not fit.

    elementwise   arithmetic; elementary (exp, log, sqrt, tanh, ..); trigonometric (circular and hyperbolic functions,
                  erf); rounding; comparison (also logic, bits, where, cast); activation (silu, gelu, .., composed)
    reduction     reductions (sum, mean, prod, max, argmax, any, ..); statistics (variance, norms, logsumexp);
                  scan (running sums and products); sorting (argsort, sort, topk, searchsorted, unique)
    shape         reshaping (also axes, broadcasting, joining); rearrangement (flip, roll, tile, layouts); slicing;
                  padding; splitting (split, meshgrid); creation (zeros, full, arange); windows (sliding windows)
    indexing      updates (index, take, scatter_add, one_hot); gathering (along an axis, by index vectors);
                  dynamic_windows (slices at run-time places)
    linalg        products (matmul, dense); contraction (einsum, tensordot); diagonals; triangles; decompositions
    nn            convolution (with stages and references), pooling, adaptive_pooling, softmax, normalization, losses,
                  attention, image, sequences, quantized (products of 8-bit numbers), polyphase (transposed convolutions
                  with strides)
    random        generation (keys, and numbers drawn with them); distributions (choices made of those)
    barriers      what only the compiler writes: optimization_barrier, undef
    collectives   what the examples along an axis of `relay.vmap` have together, as the compiler writes it
    texts         the text of numbers
    rewrites      equations and shape_equations (what calls equal: the table of `simplify`), stable_forms (the table of
                  `improve_accuracy`)
    tir           numerics in TIR: scalar, transcendental, circular, powers, double_precision, reproducible (the same
                  bits everywhere), sorting_networks, stages (te stages), tvm_modules (TVM at first use)

and what they are written with: notation (names), samples (for the tests).
"""

# ruff: noqa: F401  (importing them registers the operators)
from relay.ops import barriers, collectives, texts
from relay.ops.elementwise import activation, arithmetic, comparison, elementary, rounding, trigonometric
from relay.ops.indexing import dynamic_windows, gathering, updates
from relay.ops.linalg import contraction, decompositions, diagonals, products, triangles
from relay.ops.nn import (
    adaptive_pooling,
    attention,
    convolution,
    image,
    losses,
    normalization,
    pooling,
    quantized,
    sequences,
    softmax,
)
from relay.ops.random import distributions, generation
from relay.ops.reduction import reductions, scan, sorting, statistics
from relay.ops.rewrites import equations, stable_forms
from relay.ops.shape import creation, padding, rearrangement, reshaping, slicing, splitting, windows
