"""Sums of products in compiled code, over extents that fill tiles, panels and vectors and that do not."""

import numpy as np
import pytest

from relay import relay
from relay.eval import interpreter
from relay.ir.expr import Block, Constant, Exit, Function, LoopLabel, Module, OpCall, Var
from relay.ir.types import FLOAT64, TensorType
from relay.operator import Emitter, lookup
from relay.transform.pipeline import Pipeline

ACTIVATIONS = {"relu": lambda x: x.op("relu"), "abs": lambda x: x.op("abs")}


@relay
def products(a, b, bias):
    transposed = a.T
    return (
        a @ b,
        transposed.T @ b + bias,
        relay.maximum(a @ b.T.T, 0.0) * bias,
        relay.stack([a, a + a]) @ b,
        (a @ b).sum(axis=0),
        a[0] @ b,
    )


def expected(a, b, bias):
    return (a @ b, a @ b + bias, np.maximum(a @ b, 0) * bias, np.stack([a, a + a]) @ b, (a @ b).sum(axis=0), a[0] @ b)


@relay
def transposed_products(a, b):
    return a.T @ b, b.T @ a, relay.dense(a.T, b.T)


EXTENTS = [
    (1, 1, 4),
    (1, 7, 300),
    (3, 5, 7),
    (9, 2, 33),
    (17, 3, 64),
    (64, 10, 33),
    (65, 4, 5),
    (130, 20, 71),
]


@pytest.mark.parametrize("extents", EXTENTS)
@pytest.mark.parametrize(("dtype", "threads"), [("float32", 1), ("float32", 3), ("float64", 1)])
def test_products(extents, dtype, threads, monkeypatch):
    from relay.codegen.kernels.gemm import product

    monkeypatch.setattr(product, "PARALLEL_PRODUCTS", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    products.reload()
    transposed_products.reload()
    rows, inner, columns = extents
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((rows, inner)).astype(dtype), rng.standard_normal((inner, columns)).astype(dtype)
    bias = rng.standard_normal(columns).astype(dtype)
    # The sums of `inner` terms are added in another order than NumPy's.
    tolerance = np.finfo(dtype).eps * (inner + rows) * 8
    for found, wanted in zip(products(a, b, bias), expected(a, b, bias), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    c = rng.standard_normal((rows, columns)).astype(dtype)
    for found, wanted in zip(transposed_products(a, c), (a.T @ c, c.T @ a, a.T @ c), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "threads"), [("float32", 3), ("float64", 1)])
def test_products_of_symbolic_sizes(dtype, threads, monkeypatch):
    """Fewer rows than a tile has, rows and columns that tiles and panels leave over, and panels with and without a
    copy."""
    from relay.codegen.kernels.gemm import product

    monkeypatch.setattr(product, "PARALLEL_PRODUCTS", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))

    @relay(dynamic=True)
    def dense(a, b, bias):
        return relay.tanh(a @ b + bias), relay.stack([a, a + a]) @ b

    @relay
    def of_many_rows(a, b, c):
        return a @ b, relay.maximum(a @ c, 0.0)

    rng = np.random.default_rng(0)
    sizes = [(rows, 5, 33) for rows in (*range(2, 18), 63, 64, 71)]
    sizes += [(rows, 2, columns) for rows in (3, 9, 70) for columns in (2, 3, 16, 32, 70)]
    b, c = rng.standard_normal((5, 64)).astype(dtype), rng.standard_normal((5, 10)).astype(dtype)
    for rows, inner, columns in sizes:
        a, other = (rng.standard_normal(shape).astype(dtype) for shape in ((rows, inner), (inner, columns)))
        bias = rng.standard_normal(columns).astype(dtype)
        tolerance = np.finfo(dtype).eps * inner * 8  # NumPy adds in another order
        found = [*dense(a, other, bias), *(of_many_rows(a, b, c) if inner == 5 else ())]
        wanted = [np.tanh(a @ other + bias), np.stack([a, a + a]) @ other]
        wanted += [a @ b, np.maximum(a @ c, 0)] if inner == 5 else []
        for one, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, expected, rtol=tolerance, atol=tolerance)


@relay
def rows_by_rows(a, b, batches):
    """Products whose right operand runs along the inner axes, of which there may be several."""
    return relay.dense(a, b), relay.dense(a, b) * a[0, 0], batches @ b.T, relay.einsum("bik,bjk->bij", batches, batches)


@pytest.mark.parametrize(
    ("extents", "dtype", "threads"),
    [
        ((5, 16, 40), "float64", 1),
        ((17, 37, 33), "float32", 1),
        ((64, 8, 70), "int32", 1),
        ((4, 100, 4), "float32", 1),
        ((70, 33, 129), "float32", 3),
    ],
)
def test_right_operands_along_the_inner_axis(extents, dtype, threads, monkeypatch):
    from relay.codegen.kernels.gemm import product

    monkeypatch.setattr(product, "PARALLEL_PRODUCTS", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    rows_by_rows.reload()
    rows, inner, columns = extents
    rng = np.random.default_rng(0)
    a, b, batches = (
        (rng.standard_normal(shape) * 9).astype(dtype) for shape in ((rows, inner), (columns, inner), (2, rows, inner))
    )
    wanted = a @ b.T, a @ b.T * a[0, 0], batches @ b.T, batches @ batches.transpose(0, 2, 1)
    tolerance = 0 if dtype == "int32" else np.finfo(dtype).eps * inner * 8 * 400  # NumPy adds in another order
    for found, expected in zip(rows_by_rows(a, b, batches), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_right_operands_along_an_inner_axis_of_symbolic_size():
    dynamic = relay.from_source("def f(x, y):\n    return relay.dense(x, y)\n", {"relay": relay})
    for rows, inner, columns in ((5, 7, 9), (6, 40, 33), (70, 64, 65), (3, 15, 4)):
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((rows, inner)), rng.standard_normal((columns, inner))
        np.testing.assert_allclose(dynamic(x, y), x @ y.T, rtol=1e-12, atol=1e-12)


@relay
def convolutions(x, weight, narrow):
    return (
        relay.conv2d(x, weight, padding=1),
        relay.relu(relay.conv2d(x, weight, stride=2)),
        relay.conv2d(narrow, weight, padding=1),
    )


@pytest.mark.parametrize("channels", [3, 66])
def test_convolutions_in_tiles_are_those_of_the_interpreter(channels):
    rng = np.random.default_rng(1)
    x, narrow = rng.standard_normal((2, 3, 9, 40)), rng.standard_normal((2, 3, 5, 6))
    weight = rng.standard_normal((channels, 3, 3, 3))
    pairs = zip(convolutions(x, weight, narrow), convolutions.interpret(x, weight, narrow), strict=True)
    for compiled, interpreted in pairs:
        np.testing.assert_allclose(compiled, interpreted, rtol=1e-12, atol=1e-12)


def with_constants(b, bias):
    """`products` of a constant right operand."""
    turned = np.ascontiguousarray(b.T)

    @relay
    def of(a):
        return (
            a @ b,
            a @ b.T.T + bias,
            relay.stack([a, a + a]) @ b,
            relay.dense(a, turned),
            a[0] @ b,
            relay.maximum(a @ b, 0.0) * relay.sum(b, axis=0),
        )

    return of


@pytest.mark.parametrize("extents", EXTENTS)
@pytest.mark.parametrize(("dtype", "threads"), [("float32", 3), ("float64", 1)])
def test_constant_factors_are_packed_ahead(extents, dtype, threads, monkeypatch):
    from relay.codegen.kernels.gemm import product

    monkeypatch.setattr(product, "PARALLEL_PRODUCTS", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    rows, inner, columns = extents
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((rows, inner)).astype(dtype), rng.standard_normal((inner, columns)).astype(dtype)
    bias = rng.standard_normal(columns).astype(dtype)
    wanted = (a @ b, a @ b + bias, np.stack([a, a + a]) @ b, a @ b, a[0] @ b, np.maximum(a @ b, 0) * b.sum(axis=0))
    tolerance = np.finfo(dtype).eps * (inner + rows) * 8  # the sums are added in another order than NumPy's
    for found, right in zip(with_constants(b, bias)(a), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)


def test_a_packed_constant_is_there_once_and_only_as_the_kernel_reads_it():
    b = np.random.default_rng(0).standard_normal((7, 300)).astype(np.float32)

    @relay
    def product(a):
        return a @ b

    @relay
    def sum_of_it_too(a):
        return a @ b, relay.sum(b)

    a = np.ones((20, 7), np.float32)
    (packed,) = product.compile(a)._program.native.constants.values()
    assert packed.size > b.size and np.isin(b, packed).all() and packed.ctypes.data % 64 == 0
    assert np.count_nonzero(packed) == b.size  # what is beyond the last column is 0
    np.testing.assert_allclose(product(a), a @ b, rtol=1e-5)
    found, total = sum_of_it_too(a)
    np.testing.assert_allclose(found, a @ b, rtol=1e-5)
    np.testing.assert_allclose(total, b.sum(), rtol=1e-5, atol=1e-4)


def test_constant_factors_of_a_batch_of_products():
    rng = np.random.default_rng(0)
    b, a = rng.standard_normal((3, 5, 37)), rng.standard_normal((3, 9, 5))

    @relay
    def products(a):
        return a @ b, relay.einsum("bij,bkj->bik", relay.transpose(b, (0, 2, 1)), a)

    for found, wanted in zip(products(a), products.interpret(a), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("channels", [3, 5, 34])
@pytest.mark.parametrize(
    "attributes", [{"padding": 1}, {"stride": 2}, {"dilation": 2, "padding": 2}, {"groups": 3}, {"groups": 2}]
)
def test_constant_weights_of_convolutions(channels, attributes):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 6, 9, 12))
    weight = rng.standard_normal((6 * channels, 6 // attributes.get("groups", 1), 3, 3))
    last = np.ascontiguousarray(weight.transpose(2, 3, 1, 0))

    @relay
    def convolution(x):
        y = relay.relu(relay.conv2d(x, weight, **attributes))
        z = relay.conv2d(relay.transpose(x, (0, 2, 3, 1)), last, layout="NHWC", **attributes)
        back = relay.conv2d_transpose(y, weight, **attributes)
        return y, z, back

    for compiled, interpreted in zip(convolution(x), convolution.interpret(x), strict=True):
        np.testing.assert_allclose(compiled, interpreted, rtol=1e-10, atol=1e-10)


def test_weights_and_scales_that_are_constants_are_multiplied_at_once():
    rng = np.random.default_rng(2)
    weight, scale, shift = (rng.standard_normal(s) for s in ((4, 3, 3, 3), (4, 1, 1), (4, 1, 1)))

    @relay
    def scaled(x):
        return (relay.conv2d(x, weight) + shift) * scale

    x = rng.standard_normal((1, 3, 4, 4))
    folded = Pipeline("inline, fold-scales, dce", checked=True)(scaled.core(x))
    assert [b.value.operator for b in folded.main.body.bindings] == ["conv2d", "add"]
    np.testing.assert_allclose(interpreter.run(folded, [x]), scaled.interpret(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("factor", "folds"), [(2.0, True), (0.0, False), (-1.0, False), (np.inf, False), (np.nan, False)]
)
def test_positive_constants_pass_activations(factor, folds):
    rng = np.random.default_rng(2)
    weight, shift, scale = rng.standard_normal((4, 3, 3, 3)), rng.standard_normal((4, 1, 1)), np.full((4, 1, 1), 0.5)
    scale[2] = factor

    @relay
    def scaled(x):
        return relay.maximum(relay.relu(relay.conv2d(x, weight) + shift), 0.25) * scale + 1.0

    @relay
    def argument(x, s):
        return relay.relu(relay.conv2d(x, weight)) * s

    x = rng.standard_normal((1, 3, 4, 4))
    folded = Pipeline("inline, fold-scales, fold-constants, dce", checked=True)(scaled.core(x))
    names = ["conv2d", "add", "relu", "maximum", *(() if folds else ("multiply",)), "add"]
    assert [b.value.operator for b in folded.main.body.bindings] == names
    np.testing.assert_allclose(interpreter.run(folded, [x]), scaled.interpret(x), rtol=1e-10, atol=1e-10)
    core = argument.core(x, scale)  # who knows what the run gives
    assert "multiply" in [b.value.operator for b in Pipeline("fold-scales")(core).main.body.bindings][-1]


@pytest.mark.parametrize(
    ("widths", "terms", "products"),
    [
        ((40, 24), 64, 1),  # 5 vectors of 16 columns become 4
        ((100, 28), 64, 1),
        ((100, 28), 8, 2),  # too few terms for what is moved
        ((64, 96, 16), 64, 3),  # they fill their vectors
        ((64, 96, 16, 20), 64, 3),  # those of few columns
        ((8, 8), 64, 1),
    ],
)
@pytest.mark.parametrize("operator", ["matmul", "conv2d"])
def test_siblings_of_any_width_that_fill_vectors_better(widths, terms, products, operator):
    rng = np.random.default_rng(3)
    convolves = operator == "conv2d"
    weights = [rng.standard_normal((n, terms, 1, 1) if convolves else (terms, n)).astype(np.float32) for n in widths]
    x = rng.standard_normal((1, terms, 3, 3) if convolves else (4, terms)).astype(np.float32)

    @relay
    def siblings(x):
        return tuple(relay.conv2d(x, w) if convolves else x @ w for w in weights)

    core = siblings.core(x)
    joined = Pipeline("join_products", checked=True)(core)
    assert sum(getattr(b.value, "operator", "") == operator for b in joined.main.body.bindings) == products
    for found, wanted in zip(interpreter.run(joined, [x]), interpreter.run(core, [x]), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(5, 64, 8), (64, 8), (1, 64, 8), (2, 5, 64, 8), (8,)])
def test_products_of_a_batch_that_share_an_operand(shape):
    rng = np.random.default_rng(3)
    x, v, w, s = (rng.standard_normal(shape) for shape in (shape, (5, 8, 4), (5, 8, 2), (2,)))

    @relay
    def several(x, v, w, s):
        return x @ v, (x @ w) * s

    core = several.core(x, v, w, s)
    joined = Pipeline("join_products, fold_scales", checked=True)(core)
    assert relay.to_text(joined).count("matmul") == (1 if len(shape) > 1 else 2)
    for found, wanted in zip(interpreter.run(joined, [x, v, w, s]), (x @ v, (x @ w) * s), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("before", "product", "shape", "weights", "scale"),
    [
        ("x * s", "matmul", (2, 5), (5, 3), (5,)),
        ("s * x", "matmul", (2, 5), (5, 3), ()),
        ("x / s", "matmul", (4, 2, 5), (5, 3), (1, 1, 5)),
        ("x * s", "matmul", (5,), (5, 3), (5,)),
        ("x * s", "matmul", (4, 2, 5), (4, 5, 3), (5,)),
        ("x * s", "dense", (2, 5), (3, 5), (5,)),
        ("relu(x * s)", "dense", (2, 5), (3, 5), (5,)),
        ("abs(x / s)", "matmul", (2, 5), (5, 3), (1, 5)),
        ("relu((x * s) * s)", "matmul", (2, 5), (5, 3), (5,)),
        ("x * s", "conv2d", (1, 3, 6, 6), (4, 3, 3, 3), (3, 1, 1)),
        ("relu(x * s)", "conv2d", (1, 3, 6, 6), (4, 3, 3, 3), (1, 3, 1, 1)),
    ],
)
def test_constant_factors_of_an_operand_go_into_constant_weights(before, product, shape, weights, scale):
    rng = np.random.default_rng(4)
    w, s, x = rng.standard_normal(weights), rng.uniform(0.5, 2, scale), rng.standard_normal(shape)
    emitter = Emitter()
    variable, factor = Var("x", TensorType(FLOAT64, shape)), emitter.value(Constant(s))
    operand = eval(before, {"x": emitter.value(variable), "s": factor, **ACTIVATIONS})
    options = {**lookup(product).attributes, **({"padding": 1} if product == "conv2d" else {})}
    result = emitter.call(lookup(product), [operand, emitter.value(Constant(w))], options)
    label = LoopLabel("f")
    body = Block(tuple(emitter.bindings), Exit(label, (result.atom,)))
    core = Module({"f": Function("f", (variable,), body, label, result.type)}, "f")
    folded = Pipeline("fold-scales, dce", checked=True)(core)
    names = [b.value.operator for b in folded.main.body.bindings]
    assert names == [*(name for name in ACTIVATIONS if name in before), product]
    np.testing.assert_allclose(interpreter.run(folded, [x]), interpreter.run(core, [x]), rtol=1e-12, atol=1e-12)
    assert relay.to_text(Pipeline("fold-scales, dce")(folded)) == relay.to_text(folded)


@pytest.mark.parametrize(
    ("before", "scale", "groups"),
    [
        ("relu(x * s)", [[[-1.0]], [[1.0]], [[2.0]], [[1.0]]], 1),  # relu(-x) is not -relu(x)
        ("relu(x * s)", [[[np.inf]], [[1.0]], [[2.0]], [[1.0]]], 1),
        ("x * s", np.arange(1.0, 7.0), 1),  # along a row of the image
        ("x * s", np.arange(1.0, 5.0).reshape(4, 1, 1), 2),  # weights are those of one group
        ("s / x", [[[1.0]], [[3.0]], [[2.0]], [[1.0]]], 1),
        ("(x * s) + x", [[[1.0]], [[3.0]], [[2.0]], [[1.0]]], 1),
    ],
)
def test_other_factors_of_operands_stay(before, scale, groups):
    rng = np.random.default_rng(4)
    emitter = Emitter()
    variable = Var("x", TensorType(FLOAT64, (1, 4, 6, 6)))
    factor = emitter.value(Constant(np.asarray(scale)))
    operand = eval(before, {"x": emitter.value(variable), "s": factor, **ACTIVATIONS})
    weights = emitter.value(Constant(rng.standard_normal((4, 4 // groups, 3, 3))))
    result = emitter.call(lookup("conv2d"), [operand, weights], {**lookup("conv2d").attributes, "groups": groups})
    label = LoopLabel("f")
    body = Block(tuple(emitter.bindings), Exit(label, (result.atom,)))
    core = Module({"f": Function("f", (variable,), body, label, result.type)}, "f")
    assert relay.to_text(Pipeline("fold-scales, dce", checked=True)(core)) == relay.to_text(core)


def test_a_factor_is_multiplied_once_for_all_rounds():
    @relay
    def steps(h, w, s):
        for _ in range(5):
            h = relay.tanh((h * s) @ w)
        return h

    rng = np.random.default_rng(5)
    given = [rng.standard_normal(shape) for shape in ((6,), (6, 6), (6,))]
    core = steps.core(*given)
    folded = Pipeline("fold-scales, hoist-invariants", checked=True)(core)
    (before,) = (b for b in folded.main.body.bindings if isinstance(b.value, OpCall) and b.value.operator == "multiply")
    assert before.targets[0].type.dims == (6, 6)
    np.testing.assert_allclose(interpreter.run(folded, given), interpreter.run(core, given), rtol=1e-12, atol=1e-12)
