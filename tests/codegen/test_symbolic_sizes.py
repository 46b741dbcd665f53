"""Compiled programs with symbolic sizes: the same as interpreted ones, at every size that their guards allow."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import numpy as np
import pytest
from agreement import assert_close, assert_modes_agree
from guarded import guarded
from matrix import sample
from symbolic_sizes import ALL, all_axes, elaborated, outcome, resized, values
from zoo import Program

import relay as relay_
from relay import RelayFunction, Tensor, from_source, relay
from relay.calling.results import wrap
from relay.codegen.lowering.module_builder import text
from relay.codegen.runtime.cpu import compile_module
from relay.compilation.stages import to_core
from relay.errors import ExecutionError
from relay.eval import interpreter
from relay.eval.sizes import sizes_of
from relay.eval.values import Data
from relay.ir.sizes.extents import symbolic_dims
from relay.operator import Relation, register_op
from relay.typecheck.relations import same_shape as same_shape

OPTIMIZED = sample(ALL, 150)  # which LLVM optimizes: others each day


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_the_zoo_compiled_once_for_all_sizes(program: Program, request: pytest.FixtureRequest) -> None:
    if program not in OPTIMIZED:
        request.getfixturevalue("low_effort")
    axes = all_axes(program.arguments)
    module = elaborated(program.function, program.arguments, axes) if axes else None
    if module is None or not symbolic_dims(module):
        return
    compiled = compile_module(to_core(module, 2), make=Data)
    for change, ends in ((0, (False,)), (1, (True,)), (4, (False,)), (33, (True, False)), (3, (True,))):
        arguments = resized(program.arguments, module, program.function, change)
        given = values(program.function, arguments, module)
        try:
            sizes_of(module, module.main, given)
        except ExecutionError:
            continue
        expected = outcome(lambda given=given: interpreter.run(module, given))  # type: ignore[misc]
        for end in ends:
            beside_nothing = [guarded(value, end=end) for value in given]
            found = outcome(lambda given=beside_nothing: compiled(given))  # type: ignore[misc]
            if isinstance(expected, str) or isinstance(found, str):
                assert expected == found
            else:
                result = module.main.type.result
                assert_close(wrap(found, result), wrap(expected, result), rtol=2e-5, atol=1e-12)


@relay
def step(x, slope):
    return relay.where(x > 0.0, x - 0.1 * slope, x[::-1])


@pytest.mark.parametrize("effort", ["low", "usual"])
def test_equal_elements_have_equal_results(effort: str, request: pytest.FixtureRequest) -> None:
    """Those that are computed in vectors, and those behind them, are rounded alike: programs may compare them."""
    if effort == "low":
        request.getfixturevalue("low_effort")
    arguments = np.ones(7), np.ones(7)
    compiled = compile_module(to_core(elaborated(step, arguments, all_axes(arguments)), 2), make=Data)
    for number in np.random.default_rng(0).standard_normal(300):
        found = compiled([np.full(7, number), np.full(7, number / 3)])
        np.testing.assert_array_equal(found, np.full(7, found[0]))


random = np.random.default_rng(3)


def array(*shape: int) -> np.ndarray:
    return random.standard_normal(shape)


@relay
def layer(x, w, b):
    return relay.tanh(x @ w + b)


@relay
def network(x, w, b):
    h = layer(x, w, b)
    return relay.sum(relay.softmax(h @ w.T) * x) / float(x.shape[0])


@relay
def normalized(x):
    centerd = x - relay.mean(x, axis=1, keepdims=True)
    return centerd / relay.sqrt(relay.mean(centerd * centerd, axis=1, keepdims=True) + 1e-5)


@relay
def recurrent(xs, w):
    h = xs[0]
    for x in xs:
        h = relay.tanh(h @ w + x)
    return relay.sum(h * h)


def same(function: Any, reference: Any, *arguments: Any) -> None:
    """Called with these arguments, a function gives what the interpreted program of `reference`, for exactly their
    sizes, gives."""
    module = elaborated(reference, arguments, [])
    expected = interpreter.run(module, values(reference, arguments, module))
    found = function(*arguments)
    for _ in range(2):
        found = function(*arguments)
    assert_close(found, expected, rtol=1e-9, atol=1e-12)


SIZES = [(3, 5, 4), (4, 5, 4), (2, 17, 9), (33, 64, 48), (70, 31, 100), (5, 5, 5), (129, 16, 2), (3, 5, 4)]


@pytest.mark.parametrize("function", [layer, network], ids=lambda f: f.__name__)
def test_products_of_any_extents(function: Any) -> None:
    dynamic = relay(dynamic=True)(function.__wrapped__)
    for rows, inner, columns in SIZES:
        same(dynamic, function, array(rows, inner), array(inner, columns), array(columns))


def test_derivatives() -> None:
    gradient = relay.grad(relay(dynamic=True)(network.__wrapped__))
    steps = relay.grad(relay(dynamic=True)(recurrent.__wrapped__))
    for rows, inner, columns in SIZES:
        same(gradient, relay.grad(network), array(rows, inner), array(inner, columns), array(columns))
        same(steps, relay.grad(recurrent), array(rows, 3, inner), 0.05 * array(inner, inner))


def test_rows_of_any_length() -> None:
    dynamic = relay(dynamic=True)(normalized.__wrapped__)
    for shape in ((2, 3), (3, 2), (7, 33), (5, 62), (4, 23), (1000, 130), (2, 5000), (64, 64)):
        same(dynamic, normalized, array(*shape))


def test_one_program_for_sizes_that_vary(caplog: pytest.LogCaptureFixture) -> None:
    function = relay(normalized.__wrapped__)
    same(function, normalized, array(2, 6))
    with caplog.at_level(logging.INFO, "relay.compile"):
        for rows in (2, 3, 4, 9, 70, 2, 3):
            same(function, normalized, array(rows, 6))
    compilations = [r for r in caplog.records if "with sizes" in r.getMessage()]
    assert len(compilations) == 1


EQUAL = [  # expressions of two arrays with dims that are known to be equal, or 1, and are written differently
    ("x[::2] - y", [((7,), (4,)), ((9,), (5,)), ((8,), (4,))]),
    ("y > x[::2]", [((2,), (7,)), ((2,), (9,)), ((2,), (3,))]),
    ("x[1::3] != y", [((10,), (3,)), ((4,), (3,))]),
    ("y >= relay.diagonal(x)", [((11, 1), (23, 11)), ((5, 1), (3, 8)), ((2, 1), (2, 2))]),
    ("relay.where(y > 0, relay.diagonal(x), y)", [((11, 1), (23, 11)), ((5, 1), (3, 8))]),
    ("relay.maximum(relay.reshape(x, (-1,)), y)", [((2, 3), (6,)), ((3, 3), (9,))]),
    ("relay.reshape(x, (-1,)) @ y", [((2, 3), (6,)), ((3, 5), (15,))]),
    ("(x.shape[0] ** 2) + y", [((7,), (7,)), ((9,), (2,))]),
    ("relay.abs(x) ** relay.abs(y)", [((7,), (3, 7)), ((9,), (4, 9))]),
]


@pytest.mark.parametrize(("text", "shapes"), EQUAL)
def test_dims_that_are_known_to_be_equal(text: str, shapes: Any, caplog: pytest.LogCaptureFixture) -> None:
    made = from_source(f"def f(x, y):\n    return {text}\n", {"relay": relay_})
    assert isinstance(made, RelayFunction)
    function = RelayFunction(made.__relay__, attrs.evolve(made._options, dynamic=True))
    rng = np.random.default_rng(0)
    for given in shapes:
        arguments = [rng.integers(-4, 5, shape).astype(np.int32) for shape in given]
        np.testing.assert_array_equal(function(*arguments), function.interpret(*arguments))
    assert not caplog.records  # one program does for all sizes


def test_a_compute_function_that_needs_numbers_is_compiled_for_each_size(caplog: pytest.LogCaptureFixture) -> None:
    from tvm import te

    @register_op(
        relation=Relation("T -> T", same_shape),
        compute=lambda x: te.compute(x.shape, lambda *i: x(*i[:-1], int(x.shape[-1]) - 1 - i[-1])),
        no_gradient="none is asked for",
    )
    def test_symbolic_compiled_turned(x: Tensor) -> Tensor:
        """x from its end. x: (T, s) -> (T, s)."""
        return x[..., ::-1].copy()

    turned = relay(dynamic=True)(lambda x: test_symbolic_compiled_turned(x) * 2.0)
    with caplog.at_level(logging.WARNING, "relay.compile"):
        for length in (3, 4):
            x = array(length)
            np.testing.assert_array_equal(turned(x).numpy(), 2 * x[::-1])
    (warning,) = [r.getMessage() for r in caplog.records]
    assert "for every new shape: the compute function of test_symbolic_compiled_turned does not take" in warning


def test_native_functions_of_operators_are_made_for_each_size(caplog: pytest.LogCaptureFixture) -> None:
    def negated(type_):
        shape = type_.result.dims

        def function(x, out):
            assert x.shape == out.shape == shape
            np.negative(x, out)

        return function

    @register_op(relation=Relation("T -> T", same_shape), external=negated, no_gradient="none is asked for")
    def test_symbolic_compiled_negated(x: Tensor) -> Tensor:
        """-x. x: (T, s) -> (T, s)."""
        return -x

    function = relay(dynamic=True)(lambda x: test_symbolic_compiled_negated(x) + 1.0)
    with caplog.at_level(logging.INFO, "relay.compile"):
        for length in (3, 4, 3):
            x = array(length, 2)
            np.testing.assert_array_equal(function(x).numpy(), 1 - x)
    messages = [r.getMessage() for r in caplog.records]
    assert sum("with sizes" in m for m in messages) == 1
    assert sum("the compiler of test_symbolic_compiled_negated makes a function" in m for m in messages) == 2


def test_sizes_zero_and_one_have_programs_of_their_own() -> None:
    dynamic = relay(dynamic=True)(layer.__wrapped__)
    for rows in (0, 1, 2, 1, 0, 5):
        same(dynamic, layer, array(rows, 4), array(4, 3), array(3))


def test_arguments_that_disagree() -> None:
    dynamic = relay(dynamic=True)(layer.__wrapped__)
    same(dynamic, layer, array(3, 4), array(4, 5), array(5))
    with pytest.raises(relay.TypeCheckError):
        dynamic(array(3, 4), array(6, 5), array(5))
    same(dynamic, layer, array(3, 6), array(6, 5), array(5))


def test_kernels_with_symbolic_sizes_read_neighbors() -> None:
    """Indices do not go through a shorter dtype, in which a vector of them would be gathered one by one."""

    @relay
    def rows(xs, w, h):
        for t in range(xs.shape[0]):
            h = relay.tanh(xs[t] + h @ w)
        return h

    for length in (3, 4):
        core = rows.core(array(length, 32), array(32, 32), array(32))
    assert symbolic_dims(core)
    assert 'T.Cast("int32", i' not in text(core, 1)


def test_reshaping_axes_of_symbolic_sizes_divides_nothing() -> None:
    """An element is found by its place in memory, which reshaping leaves as it is."""

    @relay(dynamic=True)
    def reshaped(x, w):
        steps, batch, units = x.shape
        rows = x.reshape(steps * batch, units) @ w
        split = relay.tanh(x).reshape(steps, batch * units).reshape(steps, batch, units) + 1.0
        return rows.reshape(steps, batch, w.shape[1]), split, relay.exp(x).reshape(-1), x.reshape(steps, 1, -1, units)

    for shape in ((2, 3, 4), (3, 2, 5), (7, 9, 33), (40, 17, 16)):
        same(reshaped, reshaped, array(*shape), array(shape[-1], 6))
    assert "%" not in text(reshaped.core(array(2, 3, 4), array(4, 6)), 1)


def test_running_and_moved_elements_need_no_numbers(caplog: pytest.LogCaptureFixture) -> None:
    @relay(dynamic=True)
    def moved(x):
        running = relay.cumsum(x, axis=1) + relay.roll(x, 2, axis=0) - relay.cumprod(x, reverse=True)
        framed = relay.pad(running, ((1, 0), (0, 2)), mode="edge") + relay.pad(x, ((0, 1), (1, 1)), value=1.0)
        spread = relay.pad(relay.tril(x, k=1), ((1, 1), (0, 0)), mode="reflect")
        drawn = relay.dropout(x, relay.random.key(1)) + relay.random.normal(relay.random.key(2), (x.shape[1],))
        return relay.tile(framed, (2, 1)), relay.repeat(spread, 3, axis=1), relay.flatten(framed), drawn

    with caplog.at_level(logging.WARNING, "relay.compile"):
        for rows, columns in ((3, 5), (7, 4), (16, 33)):
            x = array(rows, columns)
            for found, wanted in zip(moved(x), moved.interpret(x), strict=True):
                assert_close(found.numpy(), wanted.numpy(), rtol=1e-9)
    assert not caplog.records


def test_windows_and_diagonals_need_no_numbers(caplog: pytest.LogCaptureFixture) -> None:
    @relay
    def seen(x, w):
        y = relay.conv1d(x, w, stride=2, padding=1)
        most = relay.max_pool1d(y, 2, stride=1)
        even = relay.avg_pool1d(relay.pad(x, 1, mode="reflect"), 3, padding=1, stride=2, count_include_pad=False)
        square = relay.outer(even[0, 0], even[0, 1])
        ends = relay.diag(relay.diagonal(square, offset=-1)) * 2.0
        return relay.sum(most * most) + relay.trace(square, offset=1) + relay.sum(relay.pad(ends, 2, mode="edge"))

    gradient = relay.value_and_grad(seen, wrt=(0, 1))
    w = array(3, 2, 3)
    with caplog.at_level(logging.INFO, "relay.compile"):
        for batch, width in ((2, 5), (3, 8), (5, 13), (4, 6)):
            x = array(batch, 2, width)
            value, slopes = gradient(x, w)
            wanted, wanted_slopes = gradient.interpret(x, w)
            assert_close(np.asarray(value), np.asarray(wanted), rtol=1e-9)
            for one, other in zip(slopes, wanted_slopes, strict=True):
                assert_close(one.numpy(), other.numpy(), rtol=1e-9)
    compiled = [r.getMessage() for r in caplog.records if r.getMessage().startswith("compiling")]
    assert len(compiled) == 2 and compiled[1].endswith("with sizes x_0, x_2")


def test_a_start_that_is_a_remainder_of_the_size(caplog: pytest.LogCaptureFixture) -> None:
    """Where sizes are divided, the program guards against the divisor 0, which is no other size."""

    @relay(dynamic=True)
    def later(x):
        n = len(x)
        x[3 % n :] *= 2.0
        x[: 7 // n] += 1.0
        return x

    with caplog.at_level(logging.WARNING, "relay.compile"):
        for size in (5, 2, 1, 9, 3):
            assert_modes_agree(later, np.arange(float(size)))
    assert not caplog.records


def test_extents_that_are_written_in_two_ways_meet() -> None:
    """`min(n, m)` is n where m is not smaller: in a loop, a branch, a call, a list and a reference."""

    @relay
    def diagonal(v, y):
        return np.diag(np.outer(y, v))

    @relay(dynamic=True)
    def met(x, y, k):
        v, kept, cell = x, [x], relay.ref(x)
        for _ in range(k):
            v = diagonal(v, y)
            kept.append(v)
        if k > 1:
            v = diagonal(v, y)
            cell.value = v
        return v, relay.stack(kept), cell.value

    for size in (3, 5):
        x, y = np.linspace(-1, 1, size), np.linspace(0.5, 2, size)
        for k in (0, 2):
            found, wanted = met(x, y, np.int32(k)), met.interpret(x, y, np.int32(k))
            for one, other in zip(found, wanted, strict=True):
                assert_close(one.numpy(), other.numpy(), rtol=1e-12)
