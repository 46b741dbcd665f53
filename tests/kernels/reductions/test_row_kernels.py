"""Kernels that compute several reductions row by row: their answers are the interpreter's."""

from __future__ import annotations

import numpy as np
import pytest
from guarded import guarded

import relay as R
from relay import relay
from relay.codegen.lowering.module_builder import text
from relay.compilation.stages import lowering
from relay.transform.fusion.outlining import fuse


@relay
def softmax(x):  # type: ignore[no-untyped-def]
    e = R.exp(x - R.max(x, axis=-1, keepdims=True))
    return e / R.sum(e, axis=-1, keepdims=True)


@relay
def layer_norm(x):  # type: ignore[no-untyped-def]
    centerd = x - R.expand_dims(R.mean(x, axis=-1), axis=-1)
    return centerd / R.sqrt(R.mean(centerd * centerd, axis=-1, keepdims=True) + 1e-5) * 2.0 + 1.0


@relay
def logsumexp(x):  # type: ignore[no-untyped-def]
    m = R.max(x, axis=-1, keepdims=True)
    return R.log(R.sum(R.exp(x - m), axis=-1)) + R.squeeze(m, axis=-1)


@relay
def of_planes(x):  # type: ignore[no-untyped-def]
    """Rows of two axes."""
    m = R.mean(x, axis=(-2, -1), keepdims=True)
    return R.sum(R.abs(x - m), axis=(-2, -1))


@relay
def sums_of_squares(x):  # type: ignore[no-untyped-def]
    centerd = x - R.sum(x, axis=-1, keepdims=True)
    return R.sum(centerd * centerd, axis=-1)


FUNCTIONS = (softmax, layer_norm, logsumexp, of_planes)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(4, 8), (3, 1), (1, 7), (5, 3, 33), (40, 70), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows(function: R.RelayFunction, shape: tuple[int, ...], dtype: type) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    tolerance = 2e-6 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(function(x), function.interpret(x), rtol=tolerance, atol=tolerance)


def test_an_empty_row_and_no_rows() -> None:
    for function, shape in ((softmax, (0, 3)), (sums_of_squares, (0, 3)), (sums_of_squares, (3, 0))):
        x = np.zeros(shape)
        np.testing.assert_array_equal(np.asarray(function(x)), np.asarray(function.interpret(x)))
    with pytest.raises(R.TypeCheckError, match="no largest or smallest element"):  # as in NumPy
        softmax(np.zeros((3, 0)))


@pytest.mark.parametrize("function", FUNCTIONS[:3], ids=lambda f: f.__name__)
def test_they_are_one_kernel(function: R.RelayFunction) -> None:
    module = fuse(lowering(2)(function.typed(np.ones((4, 8)))))
    assert sum(name.startswith("fused") for name in module.functions) == 1
    assert R.ir.alpha_equal(fuse(module), module)


def test_rows_of_symbolic_sizes() -> None:
    dynamic = R.from_source(
        "def f(x):\n    e = relay.exp(x - relay.max(x, axis=-1, keepdims=True))\n"
        "    return e / relay.sum(e, axis=-1, keepdims=True)\n",
        {"relay": R},
    )
    for shape in ((4, 8), (5, 9), (1, 3), (33, 17)):
        x = np.random.default_rng(0).normal(size=shape)
        np.testing.assert_allclose(dynamic(x), dynamic.interpret(x), rtol=1e-12)


def test_a_derivative_computes_in_rows() -> None:
    @relay
    def loss(x):  # type: ignore[no-untyped-def]
        return R.sum(layer_norm(x) ** 2 * softmax(x))

    x = np.random.default_rng(0).normal(size=(6, 10))
    gradient = R.grad(loss)
    np.testing.assert_allclose(gradient(x), gradient.interpret(x), rtol=1e-10, atol=1e-12)


def test_a_part_of_a_row_in_a_loop() -> None:
    @relay
    def f(x, n):  # type: ignore[no-untyped-def]
        for _ in range(n):
            e = R.exp(x - R.max(x, axis=-1, keepdims=True))
            x = e / R.sum(e, axis=-1, keepdims=True) + x * 0.5
        return x

    x = np.random.default_rng(0).normal(size=(4, 6))
    np.testing.assert_allclose(f(x, 3), f.interpret(x, 3), rtol=1e-12)


@relay
def with_vectors(matrix, vector, several):  # type: ignore[no-untyped-def]
    """Rows that are combined with the same vector, also with what is computed from the results, and of batches."""
    return matrix @ vector, R.tanh(matrix @ vector) + 1.0, several @ vector, R.sum(matrix * vector, axis=-1)


def displaced(array: np.ndarray, elements: int) -> np.ndarray:
    """The array so many elements behind the start of a cache line."""
    memory = np.empty(array.size + 64 // array.itemsize * 2, array.dtype)
    start = -memory.ctypes.data % 64 // array.itemsize + elements
    placed = memory[start : start + array.size].reshape(array.shape)
    placed[...] = array
    return placed


@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "elements", "threads"),
    [
        (1, 300, "float32", 5, 1),
        (6, 256, "float32", 0, 1),
        (9, 257, "float64", 3, 1),
        (12, 1000, "float32", 5, 2),
        (5, 40, "float32", 1, 1),
    ],
)
def test_rows_that_share_a_vector(
    rows: int, columns: int, dtype: str, elements: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from relay.codegen.kernels import loops

    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    with_vectors.reload()
    rng = np.random.default_rng(0)
    shapes = (rows, columns), (columns,), (3, rows, columns)
    arguments = [displaced(rng.normal(size=shape).astype(dtype), elements) for shape in shapes]
    tolerance = np.finfo(dtype).eps * columns * 4  # sums in another order
    for found, expected in zip(with_vectors(*arguments), with_vectors.interpret(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_rows_that_share_a_vector_of_symbolic_size() -> None:
    dynamic = R.from_source("def f(x, y):\n    return x @ y\n", {"relay": R})
    for rows, columns in ((3, 300), (5, 259), (9, 17), (8, 512)):
        rng = np.random.default_rng(0)
        x, y = displaced(rng.normal(size=(rows, columns)), 5), rng.normal(size=columns)
        np.testing.assert_allclose(dynamic(x, y), x @ y, rtol=1e-12, atol=1e-12)


@relay
def extrema(x):  # type: ignore[no-untyped-def]
    return R.argmax(x, axis=1), R.argmin(x, axis=0), R.argmax(x), R.max(x, axis=1), R.argmax(x, axis=1) + 1


@pytest.mark.parametrize(("shape", "dtype"), [((3, 100), "float32"), ((70, 37), "float64"), ((5, 300), "int32")])
def test_indices_of_extrema_in_vectors(shape: tuple[int, int], dtype: str) -> None:
    """Of ties the first one, of NaNs too, whatever lane they are in."""
    x = np.round(np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    if dtype != "int32":
        x[1, [20, 33]] = np.nan
    for found, expected in zip(extrema(x), extrema.interpret(x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_rows_that_end_within_a_vector() -> None:
    """What is left over of a row is some lanes of its last vector; the others count once only."""

    @relay
    def reductions(x):  # type: ignore[no-untyped-def]
        return R.sum(x, axis=1), R.prod(x, axis=1), R.all(x > 0.5, axis=1), R.sum(R.cast(x, dtype=R.Int32), axis=1)

    for columns in (33, 65, 100, 257):
        x = np.random.default_rng(0).uniform(0.6, 1.5, size=(3, columns))
        for found, expected in zip(reductions(x), reductions.interpret(x), strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)


PLANES = (
    "relay.mean(x, axis=(0, 2, 3))",
    "relay.sum(x * y, axis=(2, 3))",
    "relay.max(x + z, axis=(1, 2, 3))",
    "relay.sum(relay.exp(x) * relay.mean(x, axis=(2, 3), keepdims=True), axis=(0, 2, 3))",
    "relay.argmax(relay.reshape(x, (-1, 13 * 9)), axis=1)",
    "relay.sum(x[:, :, 1:12, :], axis=(2, 3))",
    "relay.sum(x[:, :, :, 1:], axis=(2, 3))",
    "relay.sum(relay.transpose(x, (0, 1, 3, 2)), axis=(2, 3))",
    "relay.sum(x * relay.cast(relay.arange(0, 9), relay.Float32), axis=(1, 2, 3))",
    "relay.all(x < 9, axis=(2, 3))",
    "relay.sum(x)",
    "x * relay.reshape(relay.mean(x, axis=(0, 2, 3)), (5, 1, 1)) + y",
    "x - z",
)


@pytest.mark.parametrize("threads", [1, 3])
def test_axes_behind_each_other_are_one_loop(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions and elementwise stages over planes of images, alone and with what goes along some axes only."""
    from relay.codegen.kernels import loops

    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    f = R.from_source(f"def f(x, y, z):\n    return ({', '.join(PLANES)})\n", {"relay": R})
    random = np.random.default_rng(0)
    arguments = [random.normal(size=shape).astype(np.float32) for shape in ((4, 5, 13, 9), (5, 1, 1), (13, 1))]
    wanted = f.interpret(*arguments)
    for end in (False, True):
        found = f(*(guarded(argument, end=end) for argument in arguments))
        for body, one, other in zip(PLANES, found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=3e-6, atol=3e-5, err_msg=body)


def test_planes_are_one_loop() -> None:
    """The sum of a channel over images of 14 by 10 has two loops, the inner one over 140 places."""
    f = R.from_source("def f(x):\n    return relay.sum(x, axis=(0, 2, 3))\n", {"relay": R})
    loops = text(f.core(np.ones((4, 3, 14, 10), np.float32)), 1)
    assert "T.vectorized(64)" in loops and "T.grid(4, 14" not in loops  # two of four vectors each, and what is left


def test_vectors_have_as_many_lanes_as_what_is_compared() -> None:
    """`any` of comparisons of float64 reads vectors of eight, four at once: as bools they would be 256 floats."""
    f = R.from_source("def f(x, i):\n    return relay.any(relay.maximum(x[i], relay.sum(x)) > 1.0)\n", {"relay": R})
    loops = text(f.core(np.ones(4096), np.arange(4096)), 1)
    assert "T.vectorized(32)" in loops or "T.vectorized(T.int64(32))" in loops
    assert "vectorized(256)" not in loops and "vectorized(T.int64(256))" not in loops


@pytest.mark.parametrize(
    "body", ["relay.maximum(relay.atan(x - m), 0.0)", "relay.sum(relay.acos(x - m), axis=-1)", "relay.exp(x - m) * 2"]
)
@pytest.mark.parametrize("shape", [(4, 8), (5, 1)])
def test_names_in_the_values_of_names(body: str, shape: tuple[int, int]) -> None:
    """What an element less the largest one is, the compiler may simplify: twice, where a name's value holds it."""
    f = R.from_source(f"def f(x):\n    m = relay.max(x, axis=-1, keepdims=True)\n    return {body}\n", {"relay": R})
    for rows in (shape[0], shape[0] + 1):  # the second time a size is symbolic
        x = np.random.default_rng(0).uniform(0, 1, (rows, shape[1])).astype(np.float32)
        np.testing.assert_allclose(np.asarray(f(x)), np.asarray(f.interpret(x)), rtol=3e-6, atol=3e-6)
