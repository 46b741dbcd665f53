"""One table over all registered operators: type, reference, compiled code, gradient, requirements, algebra, documentation.

For every operator and every sampled call of it:

    inferred type        = type of what the reference returns
    compiled compute     = reference      exactly for integers and bools, within a bound for floats
    gradient expression  = central finite differences of the reference, in float64
"""

from __future__ import annotations

import doctest
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pytest

import relay.ops  # noqa: F401  registers the operators
from relay.ir import IntType
from relay.ir.expr import Atom, Constant, OpCall, Var
from relay.ir.types import BOOL, BaseClass, BaseType, TensorType
from relay.operator import Emitter, Operator, Pattern, Relation, Value, lookup, operators
from relay.operator.registry import get_env
from relay.ops.samples import ELEMENTWISE_SHAPES, case, cases, uniform
from relay.typecheck import relations

Array = np.ndarray[Any, np.dtype[Any]]

OPERATORS = {operator.name: operator for operator in operators() if operator.compute is not None}
DTYPES = ("float32", "float64", "int32", "uint8", "bool")

# The library and our polynomials are within 4e-7 of the true value, NumPy's float32 functions within 4e-7 as well; sums of
# a dozen terms, in another order, add a few roundings of 6e-8.
FLOAT32_RELATIVE = 2e-6
FLOAT64_RELATIVE = 1e-13
CANCELLATION = {"float32": 1e-6, "float64": 1e-14}  # absolute, where terms of size 1 cancel


# ---- the samples


@attrs.frozen(eq=False)
class Sample:
    """One call of an operator on arrays."""

    operator: Operator
    operands: tuple[Array, ...]
    attributes: Mapping[str, Any]
    extreme: bool = False  # operands at the ends of the dtype's range, where finite differences mean nothing

    @property
    def types(self) -> list[TensorType]:
        return [Constant(operand).type for operand in self.operands]

    @property
    def result(self) -> TensorType:
        result = self.operator.infer(self.types, self.attributes)
        assert isinstance(result, TensorType)
        return result

    def __str__(self) -> str:
        return f"{self.operator.name}({', '.join(map(str, self.types))}, {dict(self.attributes)})"


def admits(operator: Operator, sample: Sequence[Array], attributes: Mapping[str, Any]) -> bool:
    """Whether the operator's base signature takes these dtypes."""
    if isinstance(operator.relation, Relation):
        signature, bound = operator.relation.base, {}
        for position, array in enumerate(sample):
            token, base = signature.token(position), Constant(array).type.base
            assert isinstance(base, BaseType)
            if token.classes is not None and base.base_class not in token.classes:
                return False
            if base != bound.setdefault(token.text, base if token.is_variable else BaseType(token.text)):
                return False
    return True


def default_sampler(operator: Operator) -> Callable[..., Any]:
    return cases(*(case(*shapes) for shapes in ELEMENTWISE_SHAPES[len(operator.operands)]))


def samples(operator: Operator) -> Iterator[Sample]:
    """The operator's samples in every dtype that it admits, and the corners of each dtype for elementwise ones."""
    sampler = operator.sampler or default_sampler(operator)
    seen = set()
    for dtype in DTYPES:
        for operands, attributes in sampler(np.random.default_rng(0), np.dtype(dtype)):
            _, filled = operator.bind((operands,) if operator.variadic else tuple(operands), attributes)
            key = (tuple((a.dtype.name, a.shape, a.tobytes()) for a in operands), tuple(filled.items()))
            if key not in seen and admits(operator, operands, filled):
                seen.add(key)
                yield Sample(operator, tuple(operands), filled)
        if operator.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST) and not operator.attributes:
            corners = corner_operands(dtype, operator)
            if admits(operator, corners, {}):
                yield Sample(operator, tuple(corners), {}, extreme=True)


def corner_operands(dtype: str, operator: Operator) -> list[Array]:
    """All combinations of a dtype's special numbers."""
    if dtype == "bool":
        numbers = np.array([False, True])
    elif "float" in dtype:
        limits = np.finfo(dtype)
        one = [0.0, 1e-30, 1e-8, 0.3, 0.5, 1.0, 2.0, 7.3, 12.0, 88.0, 1e10, limits.tiny, limits.max, np.inf]
        numbers = np.array([*one, *(-x for x in one), np.nan, limits.tiny / 8], dtype)
    else:
        limits_ = np.iinfo(dtype)
        numbers = np.array([limits_.min, limits_.max, 0, 1, 2, 7, limits_.max // 2, *([-1, -5] if limits_.min else [])], dtype)
    if len(operator.operands) == 1:
        return [numbers]
    pair = [np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))]
    if operator.requirements:
        pair = [a[pair[1] > 0] for a in pair] if not dtype.startswith("float") else pair
    if len(operator.operands) == 2:
        return pair
    return [np.arange(len(pair[0])) % 2 == 0, *pair]


SAMPLES = [sample for operator in OPERATORS.values() for sample in samples(operator)]


def reference(sample: Sample) -> Array:
    return sample.operator.evaluate(sample.operands, sample.attributes)


# ---- types and reference


def test_every_operator_is_sampled() -> None:
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
        assert (str(output.dtype), tuple(map(int, output.shape))) == (str(sample.result.base), sample.result.dims), sample
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
            compiled[number](*(tvm.runtime.tensor(np.ascontiguousarray(a).reshape(a.shape)) for a in sample.operands), out)
            assert_close(out.numpy(), wanted, str(sample))


def assert_close(found: Array, wanted: Array, what: str) -> None:
    """Equal, or for floats as close as the dtype allows."""
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    name = "float32" if wanted.dtype.itemsize <= 4 else "float64"
    relative = FLOAT32_RELATIVE if name == "float32" else FLOAT64_RELATIVE
    # results that need no more than a rounding may not hide behind the absolute bound
    smallest = float(np.finfo(wanted.dtype).tiny)
    exact = what.split("(")[0] not in {"sum", "sum_to", "mean", "matmul", "dense", "log_softmax", "scatter_add", "sin", "cos"}
    np.testing.assert_allclose(
        found, wanted, rtol=relative, atol=smallest if exact else CANCELLATION[name], equal_nan=True, err_msg=what
    )


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "tanh", "sigmoid"])
def test_float32_functions_are_accurate_over_the_whole_range(name: str) -> None:
    """Against float64, on 400,000 bit patterns of all magnitudes."""
    import tvm
    from tvm import te

    x = np.arange(0, 2**32, 10_501, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([x, np.linspace(-110, 110, 100_000, dtype=np.float32), np.linspace(-1, 3, 100_000, dtype=np.float32)])
    placeholder = te.placeholder(x.shape, "float32")
    operator = OPERATORS[name]
    assert operator.compute is not None
    function = te.create_prim_func([placeholder, operator.compute(placeholder)]).with_attr("global_symbol", "main")
    out = tvm.runtime.tensor(np.zeros_like(x))
    tvm.compile(tvm.IRModule({"main": function}), target=tvm.target.Target({"kind": "llvm"}))["main"](tvm.runtime.tensor(x), out)
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


def differentiable(sample: Sample) -> bool:
    """Whether central differences in float64 say what the gradient must be."""
    floats = [operand for operand in sample.operands if operand.dtype == np.float64]
    finite = all(np.isfinite(operand).all() for operand in floats)
    return not sample.extreme and finite and bool(floats) and sample.result.dtype == np.float64


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
                        np.zeros(operand.shape) if cotangent is None else cotangent, wanted, rtol=1e-6, atol=1e-7, err_msg=str(sample)
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


def emit_gradient(emitter: Emitter, sample: Sample) -> tuple[list[Var], list[Value | None]]:
    """The gradient expression of a sample's operator: its variables (operands, result, seed) and the cotangents."""
    variables = [Var(f"x{i}", type_) for i, type_ in enumerate(sample.types)]
    variables += [Var("out", sample.result), Var("dout", sample.result)]
    *operands, out, dout = (emitter.value(variable) for variable in variables)
    assert sample.operator.gradient is not None
    first = (tuple(operands),) if sample.operator.variadic else operands
    cotangents = sample.operator.gradient(*first, out=out, dout=dout, **sample.attributes)
    found = list(cotangents) if isinstance(cotangents, tuple) else [cotangents]
    assert len(found) == len(operands), sample
    for position, cotangent in enumerate(found):
        if cotangent is not None and cotangent.shape != sample.operands[position].shape:
            # broadcast axes are summed by whoever asks for the gradient
            assert sample.operator.pattern is Pattern.BROADCAST and cotangent.shape == sample.result.dims, sample
            found[position] = cotangent.op("sum_to", shape=sample.operands[position].shape)
    return variables, found


def gradient(sample: Sample, seed: Array) -> list[Array | None]:
    emitter = Emitter()
    variables, cotangents = emit_gradient(emitter, sample)
    values = dict(zip(variables, (*sample.operands, reference(sample), seed), strict=True))
    evaluate(emitter, values)
    return [None if c is None else atom_value(c.atom, values) for c in cotangents]


def atom_value(atom: Atom, values: Mapping[Var, Array]) -> Array:
    if isinstance(atom, Constant):
        return atom.value
    assert isinstance(atom, Var)
    return values[atom]


def evaluate(emitter: Emitter, values: dict[Var, Array]) -> None:
    """Run what was emitted, adding each variable's value."""
    for binding in emitter.bindings:
        call = binding.value
        assert isinstance(call, OpCall)
        operands = [atom_value(argument, values) for argument in call.arguments]
        values[binding.targets[0]] = lookup(call.operator).evaluate(operands, call.attributes)


def finite_difference(sample: Sample, position: int, seed: Array, step: float = 1e-5) -> Array:
    """The derivative of sum(seed * result) with respect to one operand, element by element."""
    operand = sample.operands[position]
    derivative = np.zeros(operand.shape)
    for index in np.ndindex(*operand.shape):
        sides = []
        for signed in (step, -step):
            moved = operand.copy()
            moved[index] += signed
            operands = [*sample.operands[:position], moved, *sample.operands[position + 1 :]]
            sides.append(np.sum(seed * sample.operator.evaluate(operands, sample.attributes)))
        derivative[index] = (sides[0] - sides[1]) / (2 * step)
    return derivative


def gradient_of(name: str, *operands: Any, **attributes: Any) -> list[Array | None]:
    """The gradient of the sum of an operator's results."""
    operator = OPERATORS[name]
    arrays, filled = operator.bind([np.asarray(operand) for operand in operands], attributes)
    sample = Sample(operator, arrays, filled)
    return gradient(sample, np.ones(sample.result.dims, sample.result.dtype))


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
    x = emitter.value(Var("x", TensorType(BaseType("float32"), (3,))))
    out = x**2
    emitter.bindings.clear()
    power = OPERATORS["power"].gradient
    assert power is not None
    dx, _ = power(x, emitter.constant(2, BaseType("float32")), out=out, dout=out)
    used, needed = [], {dx.atom}
    for binding in reversed(emitter.bindings):
        if binding.targets[0] in needed:
            assert isinstance(binding.value, OpCall)
            used.append(binding.value.operator)
            needed |= set(binding.value.arguments)
    assert used == ["multiply", "multiply"]


# ---- requirements


def requirement_holds(name: str, *operands: Array, **attributes: Any) -> bool | None:
    """What the operator's one requirement says of these operands; None where it asks for nothing."""
    operator = OPERATORS[name]
    arrays, filled = operator.bind(operands, attributes)
    emitter = Emitter()
    variables = [Var("x", Constant(array).type) for array in arrays]
    (requirement,) = operator.requirements
    condition = requirement.holds(*map(emitter.value, variables), **filled)
    if condition is None:
        return None
    assert condition.type == TensorType(BOOL, ())
    values = dict(zip(variables, arrays, strict=True))
    evaluate(emitter, values)
    return bool(atom_value(condition.atom, values))


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
    x = emitter.value(Var("x", TensorType(IntType(32), (3,))))
    for name, number in (("index", -3), ("floor_divide", 2), ("power", 2)):
        (requirement,) = OPERATORS[name].requirements
        assert requirement.holds(x, emitter.constant(number, IntType(32))) is None
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
                    operator.evaluate([*sample.operands[:position], part, *sample.operands[position + 1 :]], sample.attributes)
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
    import subprocess
    import sys

    code = "import sys, relay.ops; sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_numbers_take_the_dtype_of_the_place_where_they_stand() -> None:
    x = np.float32([1, 2])
    assert lookup("index")(x, 1).dtype == np.float32
    assert lookup("where")(np.array([True, False]), x, 0).dtype == np.float32
    emitter = Emitter()
    value = emitter.value(Var("x", Constant(x).type))
    assert lookup("index")(value, 1).type == TensorType(BaseType("float32"), ())
    assert lookup("where")(value > 0, value, 0).type == value.type
    for number in (0.5, 2**40):
        with pytest.raises(Exception, match=f"the number {number} is not a int32"):
            lookup("add")(np.int32([1]), number)


def test_the_sampling_knows_every_base_class() -> None:
    classes = {BaseType(name).base_class for name in DTYPES}
    assert classes == set(BaseClass)
    assert uniform(0, 1)(np.random.default_rng(0), np.dtype("float64")) is not None
    assert relations.same((2,), (2,)) == (2,)
