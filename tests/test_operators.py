"""One table over all registered operators: type, reference, compiled code, gradient, requirements, algebra,
documentation.

For every operator and every sampled call of it:

    inferred type        = type of what the reference returns
    compiled compute     = reference      exactly for integers and bools, within a bound for floats
    gradient expression  = central finite differences of the reference, in float64
"""

from __future__ import annotations

import doctest
import itertools
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operator_samples import (
    DTYPES,
    OPERATORS,
    SAMPLES,
    Array,
    Sample,
    differentiable,
    emit_gradient,
    finite_difference,
    gradient,
    gradient_of,
    reference,
    requirement_holds,
)

from relay.errors import TypeMismatch
from relay.ir import IntType
from relay.ir.expr import Constant, OpCall, Var
from relay.ir.types import FLOAT32, INT32, BaseClass, BaseType, TensorType
from relay.operator import Emitter, Pattern, lookup
from relay.operator.registry import get_env

# The library and our polynomials are within 4e-7 of the true value, NumPy's float32 functions within 4e-7 as well;
# sums of a dozen terms, in another order, add a few roundings of 6e-8.
FLOAT32_RELATIVE = 2e-6
FLOAT64_RELATIVE = 1e-13
CANCELLATION = {"float32": 1e-6, "float64": 1e-14}  # absolute, where terms of size 1 cancel
PRODUCTS = 4  # the size of the terms in a sum of products
# beside reductions and products, which their pattern tells
SUMS = {"log_softmax", "scatter_add", "sin", "cos", "triangular_solve", "cholesky"}

# ---- types and reference


def test_every_operator_is_sampled() -> None:
    assert {BaseType(name).base_class for name in DTYPES} == set(BaseClass)
    floats_without_gradient = set()
    for name, operator in OPERATORS.items():
        own = [sample for sample in SAMPLES if sample.operator is operator]
        assert len(own) >= 2, name
        if operator.gradient is not None and not any(differentiable(sample) for sample in own):
            floats_without_gradient.add(name)
    assert not floats_without_gradient


@pytest.mark.parametrize("name", OPERATORS)
def test_inferred_type_is_the_type_of_the_reference(name: str) -> None:
    operator = OPERATORS[name]
    for sample in SAMPLES:
        if sample.operator is operator:
            operands = (sample.operands,) if operator.variadic else sample.operands
            with np.errstate(all="ignore"):
                raw = operator.reference(*operands, **sample.attributes)
            assert isinstance(raw, np.ndarray | np.generic), sample
            assert raw.dtype == sample.result.dtype and raw.shape == sample.result.dims, sample
            assert not any(np.shares_memory(raw, operand) for operand in sample.operands), sample


# ---- compiled code


@pytest.fixture(scope="module")
def compiled() -> list[Callable[..., None]]:
    """Every sample's compute, in one library."""
    import tvm
    from tvm import te

    functions = {}
    for number, sample in enumerate(SAMPLES):
        placeholders = [
            te.placeholder(type_.dims, str(type_.base), name=f"x{i}") for i, type_ in enumerate(sample.types)
        ]
        assert sample.operator.compute is not None
        operands = (tuple(placeholders),) if sample.operator.variadic else placeholders
        output = sample.operator.compute(*operands, **sample.attributes)
        assert (str(output.dtype), tuple(map(int, output.shape))) == (str(sample.result.base), sample.result.dims), (
            sample
        )
        function = te.create_prim_func([*placeholders, output])
        functions[f"f{number}"] = function.with_attr("global_symbol", f"f{number}")
    target = tvm.target.Target({"kind": "llvm", "opt-level": 1})
    library = tvm.compile(tvm.IRModule(functions), target=target)
    return [library[f"f{number}"] for number in range(len(SAMPLES))]


@pytest.mark.parametrize("name", OPERATORS)
def test_compiled_is_the_reference(name: str, compiled: list[Callable[..., None]]) -> None:
    import tvm

    for number, sample in enumerate(SAMPLES):
        if sample.operator is OPERATORS[name]:
            wanted = reference(sample)
            out = tvm.runtime.tensor(np.full(wanted.shape, 77).astype(wanted.dtype))
            compiled[number](
                *(tvm.runtime.tensor(np.ascontiguousarray(a).reshape(a.shape)) for a in sample.operands), out
            )
            assert_close(out.numpy(), wanted, str(sample), sample.operator.pattern)


def assert_close(found: Array, wanted: Array, what: str, pattern: Pattern) -> None:
    """Equal, or for floats as close as the dtype allows."""
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    name = "float32" if wanted.dtype.itemsize <= 4 else "float64"
    relative = FLOAT32_RELATIVE if name == "float32" else FLOAT64_RELATIVE
    # results that need no more than a rounding may not hide behind the absolute bound
    absolute = float(np.finfo(wanted.dtype).tiny)
    if pattern is Pattern.OUTPUT_FUSABLE:
        absolute = PRODUCTS * CANCELLATION[name]
    elif pattern is Pattern.REDUCTION or what.split("(")[0] in SUMS:
        absolute = CANCELLATION[name]
    np.testing.assert_allclose(found, wanted, rtol=relative, atol=absolute, equal_nan=True, err_msg=what)


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


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "tanh", "sigmoid"])
def test_float32_functions_are_accurate_over_the_whole_range(name: str) -> None:
    """Against float64, on 400,000 bit patterns of all magnitudes."""
    import tvm
    from tvm import te

    x = np.arange(0, 2**32, 10_501, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate(
        [x, np.linspace(-110, 110, 100_000, dtype=np.float32), np.linspace(-1, 3, 100_000, dtype=np.float32)]
    )
    placeholder = te.placeholder(x.shape, "float32")
    operator = OPERATORS[name]
    assert operator.compute is not None
    function = te.create_prim_func([placeholder, operator.compute(placeholder)]).with_attr("global_symbol", "main")
    out = tvm.runtime.tensor(np.zeros_like(x))
    tvm.compile(tvm.IRModule({"main": function}), target=tvm.target.Target({"kind": "llvm"}))["main"](
        tvm.runtime.tensor(x), out
    )
    with np.errstate(all="ignore"):
        wanted = operator.reference(x.astype(np.float64))
        rounded = wanted.astype(np.float32)
        found = out.numpy()
        normal = np.isfinite(rounded) & (np.abs(wanted) >= np.finfo(np.float32).tiny)
        error = np.abs(found[normal].astype(np.float64) / wanted[normal] - 1)
        assert error.max() < 5e-7, (x[normal][error.argmax()], error.max())
        np.testing.assert_allclose(found[~normal], rounded[~normal], atol=3e-45, rtol=0, equal_nan=True)
    if name in ("tanh", "sigmoid"):
        assert np.nanmax(np.abs(found)) <= 1


# ---- gradients


@pytest.mark.parametrize("name", [name for name, operator in OPERATORS.items() if operator.gradient is not None])
def test_gradient_is_the_finite_difference(name: str) -> None:
    for sample in SAMPLES:
        if sample.operator is OPERATORS[name] and differentiable(sample):
            seed = np.asarray(np.random.default_rng(1).uniform(0.5, 1.5, sample.result.dims))
            found = gradient(sample, seed)
            for position, cotangent in enumerate(found):
                operand = sample.operands[position]
                if operand.dtype != np.float64:
                    assert cotangent is None, sample
                elif name != "stop_gradient":
                    wanted = finite_difference(sample, position, seed)
                    np.testing.assert_allclose(
                        np.zeros(operand.shape) if cotangent is None else cotangent,
                        wanted,
                        rtol=1e-6,
                        atol=1e-7,
                        err_msg=str(sample),
                    )
                else:
                    assert cotangent is None


def test_gradients_are_differentiable_again() -> None:
    """Every operator that a gradient is made of has a gradient itself, or one that is known not to be needed."""
    for sample in SAMPLES:
        if differentiable(sample) and sample.operator.gradient is not None:
            emitter = Emitter()
            emit_gradient(emitter, sample)
            for binding in emitter.bindings:
                assert isinstance(binding.value, OpCall)
                used = lookup(binding.value.operator)
                result = binding.targets[0].type
                assert isinstance(result, TensorType) and isinstance(result.base, BaseType)
                assert used.gradient is not None or not result.base.is_float, (sample, used)


def test_gradients_where_the_derivative_jumps() -> None:
    zero = np.float64([0.0])
    np.testing.assert_array_equal(gradient_of("relu", np.float64([-1, 0, 2]))[0], [0, 0, 1])
    np.testing.assert_array_equal(gradient_of("abs", zero)[0], [0])
    np.testing.assert_array_equal(gradient_of("max", np.float64([3, 1, 3]))[0], [0.5, 0, 0.5])
    np.testing.assert_array_equal(gradient_of("min", np.float64([[1, 1], [0, 2]]), axis=1)[0], [[0.5, 0.5], [1, 0]])
    np.testing.assert_array_equal(gradient_of("maximum", zero, zero), [[0.5], [0.5]])
    np.testing.assert_array_equal(gradient_of("prod", np.float64([2, 0, 3]))[0], [0, 6, 0])


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
    for sample in SAMPLES:
        if sample.operator is OPERATORS[name]:
            assert requirement_holds(name, *sample.operands, **sample.attributes) in (True, None), sample


def test_requirements_find_what_would_go_wrong() -> None:
    x, row = np.zeros((3, 2), np.float32), np.zeros(2, np.float32)
    for i in (3, -4, 2**31 - 1):
        assert requirement_holds("index", x, np.array(i, np.int32)) is False
        assert requirement_holds("index_update", x, np.array(i, np.int32), row) is False
        assert requirement_holds("index_add", x, np.array(i, np.int32), row) is False
        assert requirement_holds("take", x, np.array([0, i], np.int32)) is False
        assert requirement_holds("take", x, np.array([0, i], np.int32), mode="clip") is None
    assert requirement_holds("take", np.zeros(200), np.array([-128, 127], np.int8)) is True
    assert requirement_holds("take", np.zeros(100), np.array([-128, 0], np.int8)) is False
    assert requirement_holds("scatter_add", x, np.array([2, 3]), np.zeros((2, 2), np.float32)) is False
    assert requirement_holds("floor_divide", np.int32([1, 2]), np.int32([1, 0])) is False
    assert requirement_holds("mod", np.int32([1, 2]), np.int32([0, 3])) is False
    assert requirement_holds("mod", np.float32([1, 2]), np.float32([0, 3])) is None
    assert requirement_holds("power", np.int32([1, 2]), np.int32([0, -3])) is False


def test_requirements_vanish_for_constants_that_meet_them() -> None:
    emitter = Emitter()
    x = emitter.value(Var("x", TensorType(INT32, (3,))))
    for name, number in (("index", -3), ("floor_divide", 2), ("power", 2)):
        (requirement,) = OPERATORS[name].requirements
        assert requirement.holds(x, emitter.constant(number, INT32)) is None
    assert not emitter.bindings


# ---- algebra


@pytest.mark.parametrize("name", OPERATORS)
def test_algebraic_facts_hold(name: str) -> None:
    operator = OPERATORS[name]
    for sample in SAMPLES:
        if sample.operator is not operator or sample.extreme or sample.result.dtype == np.float32:
            continue
        if operator.commutative:
            same(reference(sample), operator.evaluate(sample.operands[::-1], sample.attributes), sample)
        x = sample.operands[0] if sample.operands else None
        if operator.associative and x is not None:
            a, b = x, sample.operands[1]
            left = operator.evaluate([operator.evaluate([a, b], {}), b], {})
            same(left, operator.evaluate([a, operator.evaluate([b, b], {})], {}), sample)
        if operator.idempotent and x is not None:
            twice = operator.evaluate([x, x] if len(sample.operands) == 2 else [operator.evaluate([x], {})], {})
            same(twice, x if len(sample.operands) == 2 else operator.evaluate([x], {}), sample)
        if operator.identity is not None and x is not None:
            same(operator.evaluate([x, np.asarray(operator.identity, x.dtype)], {}), x, sample)
        for position in operator.linear:
            operand = sample.operands[position]
            if operand.dtype.kind == "f":
                other = operand[::-1].copy() if operand.ndim else operand * 3
                parts = [
                    operator.evaluate(
                        [*sample.operands[:position], part, *sample.operands[position + 1 :]], sample.attributes
                    )
                    for part in (operand * 2 + other, operand, other, np.zeros_like(operand))
                ]
                same(parts[0], parts[1] * 2 + parts[2], sample)
                assert not np.any(np.nan_to_num(parts[3])), sample


def same(left: Array, right: Array, sample: Sample) -> None:
    np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12, err_msg=str(sample))


# ---- documentation, laziness


@pytest.mark.parametrize("name", OPERATORS)
def test_documentation_says_shapes_and_its_examples_run(name: str) -> None:
    operator = OPERATORS[name]
    text = operator.documentation
    assert "->" in text and ">>>" in text
    face = types.SimpleNamespace(IntType=IntType, **OPERATORS)
    example = doctest.DocTestParser().get_doctest(text, {"relay": face, "np": np}, name, None, None)
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_missing_gradient_has_a_reason(name: str) -> None:
    operator = OPERATORS[name]
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
    for number in (0.5, 2**40):
        with pytest.raises(TypeMismatch, match=f"the number {number} is no int32"):
            lookup("add")(np.int32([1]), number)
