"""One table over all registered operators: type, reference, compiled code, gradient, requirements, documentation. What
definitions say beside that is in test_operator_facts.

For every operator and sampled calls of it (in every dtype that it admits, with edge shapes, with other dims):

    inferred type      = type of what the reference returns
    compiled           = reference      exactly for integers and bools, within a bound for floats
    gradient           = central finite differences of the reference, in float64
    second derivative  is symmetric
    vectorized code    = scalar code    at sizes that are and are not multiples of a vector's lanes

Which samples are compiled changes daily: `RELAY_TEST_SEED` repeats a day, `RELAY_TEST_ALL` takes them all.
"""

from __future__ import annotations

import doctest
import functools
import itertools
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from agreement import Tolerances, assert_agree, assert_modes_agree, assert_modes_raise
from matrix import SEED
from operator_samples import (
    DTYPES,
    OF,
    OPERATORS,
    Array,
    Sample,
    as_list,
    chosen,
    compiled,
    differentiable,
    finite_difference,
    floats,
    gradient_of,
    is_elementwise,
    program,
    reference,
    requirement_holds,
)

import relay
from relay.api.function import RelayFunction
from relay.errors import ShapeError, TypeMismatch
from relay.eval import interpreter
from relay.ir.expr import Constant, OpCall, Var
from relay.ir.types import FLOAT32, INT32, BaseClass, BaseType, TensorType
from relay.operator import Emitter, Operator, Pattern, lookup
from relay.operator.registry import get_env

# The library and our polynomials are within 4e-7 of the true value, NumPy's float32 functions within 4e-7 as well;
# sums of a dozen terms, in another order, add a few roundings of 6e-8. Half floats may be rounded after each of a few
# steps, in one of the two only.
RELATIVE = {"float64": 1e-13, "float32": 2e-6, "float16": 4 * 2.0**-10, "bfloat16": 4 * 2.0**-7}
COMPOSED = 8  # the roundings that one step of a composition multiplies
# absolute, of terms of size 1
CANCELLATION = {"float32": 1e-6, "float64": 1e-14, "float16": 2.0**-8, "bfloat16": 2.0**-5}
PRODUCTS = 4  # the size of the terms in a sum of products
# beside reductions and products, which their pattern tells
SUMS = {
    "add_along_axis", "cholesky", "cumsum", "log_softmax", "scatter_add", "scatter_nd",
    "triangular_solve",
}  # fmt: skip

# ---- types and reference


def test_every_operator_is_sampled() -> None:
    assert {BaseType(name).base_class for name in DTYPES} == set(BaseClass)
    for name, operator in OPERATORS.items():
        assert len(OF[name]) >= 2, name
        takes_floats = any(o.dtype == np.float64 and o.size for s in OF[name] for o in s.operands)
        if takes_floats and (operator.gradient is not None or operator.composition is not None):
            gives_floats = any(t.dtype == np.float64 for s in OF[name] for t in s.results)
            assert not gives_floats or any(map(differentiable, OF[name])), name


@pytest.mark.parametrize("name", OPERATORS)
def test_inferred_type_is_the_type_of_the_reference(name: str) -> None:
    operator = OPERATORS[name]
    for sample in OF[name]:
        operands = (sample.operands,) if operator.variadic else sample.operands
        with np.errstate(all="ignore"):
            made = operator.reference(*operands, **sample.attributes)
        for raw, type_ in zip(made if isinstance(made, tuple) else (made,), sample.results, strict=True):
            assert isinstance(raw, np.ndarray | np.generic), sample
            # NumPy's products of bfloat16 are float32; the interpreter rounds them.
            assert raw.dtype == type_.dtype or type_.dtype == ml_dtypes.bfloat16, sample
            assert raw.shape == type_.dims, sample
            assert not any(np.shares_memory(raw, operand) for operand in sample.operands), sample


# ---- compiled code

CHOSEN = chosen()


@functools.cache
def results(start: int) -> list[list[Array]]:
    """What 20 compiled samples give. One program each: larger ones take longer for each call."""
    return compiled(CHOSEN[start : start + 20])


@pytest.mark.parametrize("name", OPERATORS)
def test_compiled_is_the_reference(name: str) -> None:
    for position, sample in enumerate(CHOSEN):
        if sample.operator is OPERATORS[name]:
            found = results(position - position % 20)[position % 20]
            for one, wanted in zip(found, reference(sample), strict=True):
                if sample.operator.memory.uninitialized:  # nobody reads the elements
                    assert (one.dtype, one.shape) == (wanted.dtype, wanted.shape), sample
                else:
                    what = f"{sample} with seed {SEED}"
                    assert_agree(one, wanted, tolerances=tolerances(sample.operator), what=what)


def tolerances(operator: Operator) -> Tolerances:
    """Results that need no more than a rounding may not hide behind the absolute bound."""
    found = {}
    for name, relative in RELATIVE.items():
        absolute = float(ml_dtypes.finfo(name).tiny)
        if operator.composition is not None:
            relative, absolute = COMPOSED * relative, CANCELLATION[name]
        if operator.pattern is Pattern.OUTPUT_FUSABLE:
            absolute = PRODUCTS * CANCELLATION[name]
        elif operator.pattern is Pattern.REDUCTION or operator.name in SUMS:
            absolute = CANCELLATION[name]
        found[name] = relative, absolute
    return found


def test_vectorized_and_scalar_code_agree() -> None:
    """At 64 elements, a multiple of all vectors, and at 67, where the last ones are computed one by one."""
    made: list[Sample] = []
    for name, operator in OPERATORS.items():
        own = [s for s in OF[name] if not s.extreme and s.results[0].dtype == np.float32 and s.operands]
        if is_elementwise(operator) and own:
            rng = np.random.default_rng(SEED)
            pool = next(s for s in own if all(o.size for o in s.operands))
            whole = [rng.choice(o.reshape(-1), 67).astype(o.dtype) for o in pool.operands]
            for size in (64, 67):
                made.append(Sample(operator, tuple(o[:size] for o in whole), {}))
    assert len(made) > 80
    found = [r for start in range(0, len(made), 20) for (r,) in compiled(made[start : start + 20])]
    for first, vector, rest in zip(made[::2], found[::2], found[1::2], strict=True):
        # contractions of products and sums may differ by a rounding
        np.testing.assert_allclose(vector, rest[:64], rtol=2.0**-22, err_msg=str(first))


def fused(first: str, swap: bool, number: int, second: str, operand: int | None, x: Array) -> tuple[Any, Array]:
    """second(first(x, number), operand), or with the operands of the first swapped, in one loop; and what it must
    give."""
    import tvm
    from tvm import te, tirx

    def literal(value: int) -> Any:
        return te.compute((), lambda: tirx.const(value, x.dtype.name))

    placeholder = te.placeholder(x.shape, x.dtype.name)
    pair, arrays = [placeholder, literal(number)], [x, np.array(number, x.dtype)]
    stage = OPERATORS[first].compute(*pair[:: -1 if swap else 1])  # type: ignore[misc]
    stage = OPERATORS[second].compute(*([stage] if operand is None else [stage, literal(operand)]))  # type: ignore[misc]
    schedule = tvm.s_tir.Schedule(te.create_prim_func([placeholder, stage]))
    for block in schedule.get_child_blocks(schedule.get_sblock("root"))[:-1]:
        schedule.compute_inline(block)
    with np.errstate(all="ignore"):
        wanted = OPERATORS[first].reference(*arrays[:: -1 if swap else 1])
        wanted = OPERATORS[second].reference(*([wanted] if operand is None else [wanted, np.array(operand, x.dtype)]))
    return schedule.mod["main"], wanted


def test_fused_with_constants_it_is_still_the_reference() -> None:
    """TVM simplifies what it fuses, with rules that hold neither for overflow nor for NaN."""
    import tvm

    functions, calls = {}, {}
    firsts = (("add", False, 5), ("subtract", True, 5), ("subtract", False, 100), ("multiply", False, 3))
    seconds = (
        ("less", 5),
        ("greater", 5),
        ("not_equal", 5),
        ("maximum", 5),
        ("relu", None),
        ("abs", None),
        ("floor_divide", 3),
    )
    for dtype in ("int8", "uint8", "int32", "int64", "float32"):
        x = np.array([0, 1, 2, 5, 6, 27, 100], dtype)
        if dtype == "float32":
            x = np.concatenate([x, -x, np.array([np.nan, np.inf, -np.inf, 3e38], dtype)])
        else:
            limits = np.iinfo(dtype)
            x = np.concatenate([x, np.array([limits.min, limits.max, limits.max // 2, limits.max // 2 + 1], dtype)])
        for first, second in itertools.product(firsts, seconds):
            name = f"{dtype}_{'_'.join(map(str, (*first, *second)))}"
            function, wanted = fused(*first, *second, x)
            functions[name] = function.with_attr("global_symbol", name)
            calls[name] = (x, wanted)
    library = tvm.compile(tvm.IRModule(functions), target=tvm.target.Target({"kind": "llvm"}))
    for name, (x, wanted) in calls.items():
        out = tvm.runtime.tensor(np.zeros(wanted.shape, wanted.dtype))
        library[name](tvm.runtime.tensor(x), out)
        np.testing.assert_array_equal(out.numpy(), wanted, err_msg=name)


ACCURATE = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "erfc", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "ndtr",
)  # fmt: skip
"""Those that are polynomials in float32; float16 and bfloat16 go through it, or through the C library."""


def test_every_polynomial_is_swept() -> None:
    elementary = {n for n, o in OPERATORS.items() if o.numerics.expensive_to_recompute and o.composition is None}
    assert elementary == {*ACCURATE, "atan2", "power"}


def sweep(dtype: str) -> Array:
    """All numbers of 16 bits; 300,000 of float32, of all magnitudes: subnormals, infinities and NaNs as well."""
    if dtype != "float32":
        return np.arange(2**16, dtype=np.uint16).view(BaseType(dtype).dtype)
    x = np.arange(0, 2**32, 21_001, dtype=np.uint64).astype(np.uint32).view(np.float32)
    multiples = (np.arange(-20_000, 20_000) * (np.pi / 2)).astype(np.float32)  # where sines nearly vanish
    edges = np.float32([0, -0.0, 1, -1, 0.5, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 88.8, -88.8, 89.5])
    dense = [np.linspace(low, high, 40_000, dtype=np.float32) for low, high in ((-110, 110), (-1, 3))]
    return np.concatenate([x, *dense, multiples, edges])


@functools.cache
def swept(dtype: str) -> dict[str, Array]:
    """What the compiled functions give for those numbers."""
    x = sweep(dtype)
    made = compiled([Sample(OPERATORS[name], (x,), {}) for name in ACCURATE])
    return {name: result for name, (result,) in zip(ACCURATE, made, strict=True)}


def assert_accurate(found: Array, wanted: Array, bound: float, at: Array) -> None:
    """Results against float64 ones: the error relative to them, or half the distance of subnormal numbers."""
    limits = ml_dtypes.finfo(found.dtype)
    rounded = wanted.astype(found.dtype).astype(np.float64)
    found = found.astype(np.float64)
    normal = np.isfinite(rounded) & (np.abs(wanted) >= float(limits.tiny))
    error = np.abs(found[normal] / wanted[normal] - 1)
    assert error.max() < bound, (at[normal][error.argmax()], error.max())
    smallest = float(limits.smallest_subnormal)
    np.testing.assert_allclose(found[~normal], rounded[~normal], atol=2.1 * smallest, rtol=0, equal_nan=True)
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


# Results of 16 bits are rounded once more: half a unit.
BOUNDS = {"float32": 5e-7, "float16": 1.01 * 2.0**-11, "bfloat16": 1.01 * 2.0**-8}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", ACCURATE)
def test_functions_are_accurate_over_the_whole_range(name: str, dtype: str) -> None:
    x, found = sweep(dtype), swept(dtype)[name]
    with np.errstate(all="ignore"):
        wanted = OPERATORS[name].reference(x.astype(np.float64))
        assert_accurate(found, wanted, BOUNDS[dtype], x)
    if name in ("tanh", "sigmoid", "sin", "cos"):
        assert np.nanmax(np.abs(found.astype(np.float64))) <= 1


def test_powers_are_accurate_over_the_whole_range() -> None:
    """Pairs of numbers of all magnitudes, numbers near 1 to large powers, and all pairs of special ones."""
    numbers = np.arange(0, 2**32, 2_097_143, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = np.float32(
        [0, 1, 2, 3, 0.5, 1.5, 7, 127, 128, 149, 150, np.inf, np.nan, 1e-45, 1e-38, 3.4e38, 1 + 1e-7, 2**24, 2**24 + 1,
         2**31, 1e10]
    )  # fmt: skip
    special = np.concatenate([special, -special])
    rng = np.random.default_rng(SEED)
    x = [
        np.repeat(special, len(special)),
        np.repeat(numbers, 20),
        rng.uniform(0, 3, 50_000),
        1 + rng.normal(0, 1e-4, 50_000),
    ]
    y = [
        np.tile(special, len(special)),
        rng.uniform(-12, 12, 20 * len(numbers)),
        rng.uniform(-150, 150, 50_000),
        rng.uniform(-1e6, 1e6, 50_000),
    ]
    with np.errstate(all="ignore"):
        pairs = [
            tuple(
                np.concatenate([part.astype(np.float32) for part in parts]).astype(BaseType(d).dtype)
                for parts in (x, y)
            )
            for d in BOUNDS
        ]
        made = compiled([Sample(OPERATORS["power"], pair, {}) for pair in pairs])
        for dtype, (a, b), (found,) in zip(BOUNDS, pairs, made, strict=True):
            assert_accurate(found, np.power(a.astype(np.float64), b.astype(np.float64)), BOUNDS[dtype], a)


def test_angles_of_points_are_accurate_over_the_whole_plane() -> None:
    """atan2 on pairs of numbers of all magnitudes, and in all octants."""
    numbers = np.arange(0, 2**32, 4_194_301, dtype=np.uint64).astype(np.uint32).view(np.float32)
    numbers = np.concatenate([numbers, np.float32([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 2.4142, 0.4142])])
    angles = np.linspace(-3.2, 3.2, 20_000)
    with np.errstate(all="ignore"):
        y = np.concatenate([np.repeat(numbers, len(numbers)), np.sin(angles).astype(np.float32)])
        x = np.concatenate([np.tile(numbers, len(numbers)), np.cos(angles).astype(np.float32)])
        pairs = [(y.astype(BaseType(d).dtype), x.astype(BaseType(d).dtype)) for d in BOUNDS]
        made = compiled([Sample(OPERATORS["atan2"], pair, {}) for pair in pairs])
        for dtype, (a, b), (found,) in zip(BOUNDS, pairs, made, strict=True):
            assert_accurate(found, np.arctan2(a.astype(np.float64), b.astype(np.float64)), BOUNDS[dtype], a)


# ---- gradients

DIFFERENTIATED = 3  # samples of an operator
PLACES = 24  # elements of an operand: other ones each day


def differentiated(name: str) -> list[Sample]:
    """Some of an operator's samples that have a gradient: others each day."""
    own = [sample for sample in OF[name] if differentiable(sample)]
    return [own[i] for i in np.random.default_rng(SEED).permutation(len(own))[:DIFFERENTIATED]]


DIFFERENTIABLE = [name for name in OPERATORS if any(map(differentiable, OF[name]))]


def interpreted(function: Any, arguments: list[Array], point: list[Array]) -> list[Array]:
    """The transformed program of a derivative, run by the interpreter."""
    return as_list(interpreter.run(function.core(*arguments), point))


def chosen_places(operand: Array) -> Array:
    return np.random.default_rng(SEED).permutation(operand.size)[:PLACES]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_is_the_finite_difference(name: str) -> None:
    for sample in differentiated(name):
        function, arguments = program(sample, 1)
        for position, cotangent in zip(floats(sample), interpreted(function, arguments, arguments), strict=True):
            places = chosen_places(sample.operands[position])
            moved = 1 - position if name == "straight_through" else position  # its derivative is the other operand's
            wanted = finite_difference(sample, moved, arguments[len(sample.operands) :], places)
            if name == "stop_gradient":
                wanted = np.zeros_like(wanted)
            assert cotangent.shape == sample.operands[position].shape
            found = np.asarray(cotangent).reshape(-1)[places]
            # the difference's own error is the step's square times a third derivative, and 1e-16 over the step
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7, err_msg=f"{sample} with seed {SEED}")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_second_derivative_is_symmetric(name: str) -> None:
    """u . H v = v . H u for random directions u and v, where H v is the derivative of the gradient's product with v."""
    for sample in differentiated(name)[:2]:
        function, arguments = program(sample, 2)
        where = floats(sample)
        point, one = arguments[: -len(where)], arguments[-len(where) :]
        rng = np.random.default_rng(SEED + 1)
        other = [np.asarray(rng.uniform(-1, 1, u.shape)) for u in one]
        left = interpreted(function, arguments, [*point, *one])
        right = interpreted(function, arguments, [*point, *other])
        products = [
            sum(float(np.sum(a * b)) for a, b in zip(h, directions, strict=True))
            for h, directions in ((left, other), (right, one))
        ]
        # sums of some hundred terms of size 1 to 100, with cancellation
        np.testing.assert_allclose(*products, rtol=1e-8, atol=1e-9, err_msg=f"{sample} with seed {SEED}")


def test_gradients_where_the_derivative_jumps() -> None:
    zero = np.float64([0.0])
    np.testing.assert_array_equal(gradient_of("relu", np.float64([-1, 0, 2]))[0], [0, 0, 1])
    np.testing.assert_array_equal(gradient_of("abs", zero)[0], [0])
    np.testing.assert_array_equal(gradient_of("max", np.float64([3, 1, 3]))[0], [0.5, 0, 0.5])
    np.testing.assert_array_equal(gradient_of("min", np.float64([[1, 1], [0, 2]]), axis=1)[0], [[0.5, 0.5], [1, 0]])
    np.testing.assert_array_equal(gradient_of("maximum", zero, zero), [[0.5], [0.5]])
    np.testing.assert_array_equal(gradient_of("prod", np.float64([2, 0, 3]))[0], [0, 6, 0])
    scale = 1.0507009873554805 * 1.6732632423543772  # elu's own rule for 0, also within selu
    np.testing.assert_allclose(gradient_of("selu", zero)[0], [scale])


def test_the_gradient_of_power_is_finite_at_zero() -> None:
    x, y = np.float64([0, 0, 0, -2, 2]), np.float64([0, 1, 2, 3, 0])
    dx, dy = gradient_of("power", x, y)
    np.testing.assert_array_equal(dx, [0, 1, 0, 12, 0])
    np.testing.assert_allclose(dy, [0, 0, 0, 0, np.log(2)])


def test_a_constant_exponent_costs_no_power() -> None:
    emitter = Emitter()
    x = emitter.value(Var("x", TensorType(FLOAT32, (3,))))
    out = x**2
    emitter.bindings.clear()
    power = OPERATORS["power"].gradient
    assert power is not None
    dx, _ = power(x, emitter.constant(2, FLOAT32), out=out, dout=out)
    used, needed = [], {dx.atom}
    for binding in reversed(emitter.bindings):
        if binding.targets[0] in needed:
            assert isinstance(binding.value, OpCall)
            used.append(binding.value.operator)
            needed |= set(binding.value.arguments)
    assert used == ["multiply", "multiply"]


# ---- requirements


@pytest.mark.parametrize("name", [name for name, operator in OPERATORS.items() if operator.requirements])
def test_samples_meet_the_requirements(name: str) -> None:
    for sample in OF[name]:
        assert requirement_holds(name, *sample.operands, **sample.attributes) in (True, None), sample


def test_take_has_three_modes() -> None:
    function = relay.from_source("def f(x, i):\n    return relay.take(x, i, mode='nearest')\n", {"relay": relay})
    with pytest.raises(relay.TypeCheckError, match="mode must be 'raise', 'clip' or 'wrap', found 'nearest'"):
        function.interpret(np.zeros(3), np.array([0]))


def test_requirements_find_what_would_go_wrong() -> None:
    x, row = np.zeros((3, 2), np.float32), np.zeros(2, np.float32)
    for i in (3, -4, 2**31 - 1):
        assert requirement_holds("index", x, np.array(i, np.int32)) is False
        assert requirement_holds("index_update", x, np.array(i, np.int32), row) is False
        assert requirement_holds("index_add", x, np.array(i, np.int32), row) is False
        assert requirement_holds("take", x, np.array([0, i], np.int32)) is False
        assert requirement_holds("take", x, np.array([0, i], np.int32), mode="clip") is None
        assert requirement_holds("take", x, np.array([0, i], np.int32), mode="wrap") is None
    assert requirement_holds("take", np.zeros(200), np.array([-128, 127], np.int8)) is True
    assert requirement_holds("take", np.zeros(100), np.array([-128, 0], np.int8)) is False
    assert requirement_holds("scatter_add", x, np.array([2, 3]), np.zeros((2, 2), np.float32)) is False
    assert requirement_holds("floor_divide", np.int32([1, 2]), np.int32([1, 0])) is False
    assert requirement_holds("mod", np.int32([1, 2]), np.int32([0, 3])) is False
    assert requirement_holds("mod", np.float32([1, 2]), np.float32([0, 3])) is None
    assert requirement_holds("power", np.int32([1, 2]), np.int32([0, -3])) is False


def test_indices_beyond_int64_are_out_of_range() -> None:
    """As unsigned numbers; they do not count from the end, also where they have to be narrowed first."""
    x, last = np.arange(6, dtype=np.float32), np.uint64(2**64 - 1)

    @relay.relay
    def element(x, i):  # type: ignore[no-untyped-def]
        return x[i]

    @relay.relay
    def window(x, i):  # type: ignore[no-untyped-def]
        return relay.dynamic_slice(x, i, (1,))

    @relay.relay
    def along(x, i):  # type: ignore[no-untyped-def]
        return relay.take_along_axis(x, i)

    @relay.relay
    def vectors(x, i):  # type: ignore[no-untyped-def]
        return relay.gather_nd(x, i)

    whole = np.array([last])
    for f, index in ((element, last), (element, whole), (window, whole), (along, whole), (vectors, whole[:, None])):
        assert_modes_raise(f, x, index, error=relay.errors.ExecutionError, match="out of range")
        assert float(np.asarray(assert_modes_agree(f, x, index - last + np.uint64(3))).reshape(())) == 3.0


def test_requirements_vanish_for_constants_that_meet_them() -> None:
    emitter = Emitter()
    x = emitter.value(Var("x", TensorType(INT32, (3,))))
    for name, number in (("index", -3), ("floor_divide", 2), ("power", 2)):
        (requirement,) = OPERATORS[name].requirements
        assert requirement.holds(x, emitter.constant(number, INT32)) is None
    assert not emitter.bindings


# ---- documentation, laziness


@pytest.mark.parametrize("name", OPERATORS)
def test_documentation_says_shapes_and_its_examples_run(name: str) -> None:
    operator = OPERATORS[name]
    text = operator.documentation
    assert "->" in text and ">>>" in text
    example = doctest.DocTestParser().get_doctest(text, {"relay": relay, "np": np}, name, None, None)
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_missing_gradient_has_a_reason(name: str) -> None:
    operator = OPERATORS[name]
    if operator.composition is None:
        assert (operator.gradient is None) == bool(operator.no_gradient)


def test_aliases_mean_operators() -> None:
    for name, meant in (("broadcast_add", "add"), ("broadcast_mul", "multiply"), ("pow", "power"), ("absolute", "abs")):
        assert lookup(name) is lookup(meant)
        assert name in get_env().names()


def test_importing_operators_does_not_import_tvm() -> None:
    code = "import sys, relay.ops; sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_numbers_take_the_dtype_of_the_place_where_they_stand() -> None:
    x = np.float32([1, 2])
    assert lookup("index")(x, 1).dtype == np.float32
    assert lookup("where")(np.array([True, False]), x, 0).dtype == np.float32
    emitter = Emitter()
    value = emitter.value(Var("x", Constant(x).type))
    assert lookup("index")(value, 1).type == TensorType(FLOAT32, ())
    assert lookup("where")(value > 0, value, 0).type == value.type
    misfits = {
        0.5: r"0\.5 is not an integer \(int32 expected\)",
        2**40: r"1099511627776 is out of range for int32 \(-2147483648 to 2147483647\)",
    }
    for number, message in misfits.items():
        with pytest.raises(TypeMismatch, match=message):
            lookup("add")(np.int32([1]), number)


def test_several_results_are_a_tuple_everywhere() -> None:
    @relay.relay
    def parts(x):  # type: ignore[no-untyped-def]
        low, middle, high = relay.split(x, 3, axis=1)
        values, places = relay.topk(low * middle + high, 1)
        across, down = relay.meshgrid(x[0], x[1])
        return relay.sum(values * values) + relay.sum(across * down), places

    x = np.arange(12.0).reshape(2, 6)
    total, places = assert_modes_agree(parts, x)
    assert total == 8.0**2 + (7 * 9 + 11) ** 2 + x[0].sum() * x[1].sum()
    np.testing.assert_array_equal(places, [[1], [1]])
    gradient = relay.grad(parts, output=0)
    np.testing.assert_allclose(gradient(x), gradient.interpret(x))
    module = parts.core(x)
    assert relay.parse(relay.to_text(module)).alpha_hash() == module.alpha_hash()

    @relay.relay
    def halves(x):  # type: ignore[no-untyped-def]
        first, second = relay.split(x, 2)
        return first * second

    for size in (4, 6, 8):  # the last two by the program for all sizes
        np.testing.assert_array_equal(halves(np.arange(size)), np.arange(size // 2) * np.arange(size // 2, size))
    with pytest.raises(ShapeError, match=r"axis 0 of \(5,\) cannot be split into 2 equal parts"):
        halves(np.arange(5))


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
def test_many_short_floats_are_combined_in_longer_ones(dtype):
    """In bfloat16 itself a sum of numbers near 2 stays at 512, where adding one is less than half a unit."""

    @relay
    def combined(x):
        return relay.sum(x, axis=1), relay.mean(x, axis=1), relay.prod(x / 2.0, axis=1)

    x = np.random.default_rng(0).uniform(1.9, 2.1, (3, 1000)).astype(dtype)
    wide = x.astype(np.float64)
    expected = wide.sum(1), wide.mean(1), (wide / 2).prod(1)
    half_a_unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype.name]
    found = assert_modes_agree(combined, x)
    for result, value in zip(found[:2], expected, strict=False):
        np.testing.assert_allclose(np.asarray(result).astype(np.float64), value, rtol=2.1 * half_a_unit)
    np.testing.assert_array_equal(np.asarray(combined(x)[2]), np.asarray(combined.interpret(x)[2]))


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_results_of_short_floats_are_rounded_once(name: str, dtype: np.dtype[Any]) -> None:
    """1 + 2**-7 and 0.3 are no numbers of whose sums and products bfloat16 holds many."""
    x = np.full(500, 0.3 if name == "cumsum" else 1 + 2**-7, dtype)
    function = relay.from_source(f"def f(x):\n    return relay.{name}(x, reverse=True)\n", {"relay": relay})
    assert isinstance(function, RelayFunction)
    expected = getattr(np, name)(x[::-1].astype(np.float32))[::-1].astype(dtype)
    assert_modes_agree(function, x, expected=expected, rtol=0.0)
