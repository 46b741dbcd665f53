"""Composite operators: one body in the language is the type, the meaning, the derivative and the code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree
from operator_samples import OF, OPERATORS, Sample

import relay
from relay import Tensor
from relay.errors import ExecutionError, FrontendError, RegistrationError, TypeMismatch
from relay.eval import interpreter
from relay.ir.expr import Binding, Block, Exit, Function, LoopLabel, Module, OpCall, Var
from relay.ops.tir.tvm_modules import te, tirx
from relay.transform import expand_composites
from relay.typecheck.relations import same_shape

Array = np.ndarray[Any, np.dtype[Any]]
(n,) = relay.dims("n")
X = np.array([0.5, -1.0, 2.0])
COMPOSED = [name for name, operator in OPERATORS.items() if operator.composition is not None]


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before = relay.get_env().names()
    yield
    environment = relay.get_env()
    for name in set(environment.names()) - set(before):
        del environment._operators[name]


def swish() -> Any:
    @relay.composite
    def swish(x: Tensor, beta: float = 1.0) -> Tensor:
        """x sigmoid(beta x). x: (T float, s) -> (T, s)."""
        return x * relay.sigmoid(x * beta)

    return swish


def numpy_swish(x: Array, beta: float = 1.0) -> Array:
    return np.asarray(x / (1 + np.exp(-beta * x)))


def test_the_body_is_type_reference_code_and_derivatives() -> None:
    swish_ = swish()
    assert relay.swish is swish_ and str(swish_.infer([relay.ir.TensorType(relay.Float64, (3,))], {"beta": 2.0}))
    np.testing.assert_allclose(swish_(X, 2.0), numpy_swish(X, 2.0))

    @relay
    def total(x):  # type: ignore[no-untyped-def]
        return relay.sum(swish_(x, beta=2.0))

    @relay
    def slope(x):  # type: ignore[no-untyped-def]
        return relay.sum(relay.grad(total)(x) * x)

    assert_modes_agree(total, X, expected=numpy_swish(X, 2.0).sum())
    step = 1e-6
    difference = (numpy_swish(X + step, 2.0) - numpy_swish(X - step, 2.0)) / (2 * step)
    assert_modes_agree(relay.grad(total), X, expected=difference, rtol=1e-8)
    second = relay.grad(slope)
    np.testing.assert_allclose(second(X), second.interpret(X), rtol=1e-12)
    assert "swish(%x, beta=2.0)" in relay.to_text(total.typed(X))
    assert "swish" not in relay.to_text(total.core(X))
    text = relay.to_text(total.typed(X))
    assert relay.to_text(relay.parse(text)) == text


@pytest.mark.parametrize("level", range(4))
def test_every_level_expands(level: int) -> None:
    swish_ = swish()

    @relay(opt_level=level)
    def twice(x):  # type: ignore[no-untyped-def]
        y = swish_(x) if x[0] > 0.0 else x
        for _ in range(2):
            y = swish_(y, 0.5)
        return y

    wanted = numpy_swish(numpy_swish(numpy_swish(X), 0.5), 0.5)
    np.testing.assert_allclose(twice(X), wanted, rtol=1e-12)

    @relay(opt_level=level)
    def derivative(x):  # type: ignore[no-untyped-def]
        return relay.grad(lambda v: relay.sum(twice(v)))(x)

    np.testing.assert_allclose(derivative(X), derivative.interpret(X), rtol=1e-12)


def test_a_sequence_of_operands_and_control_flow_in_the_body() -> None:
    @relay.composite
    def weighted(xs: tuple[Tensor, ...], power: int = 2) -> Tensor:
        """sum_i (i + 1) x_i ** power, each once more for each unit of its first element."""
        total = xs[0] * 0.0
        for position, x in enumerate(xs):
            count = 0
            while float(count) < x[0]:
                total = total + x**power * float(position + 1)
                count += 1
        return total

    def numpy_weighted(xs: tuple[Array, ...], power: int = 2) -> Array:
        rounds = [max(int(np.ceil(x[0])), 0) for x in xs]
        return np.asarray(sum(n * (i + 1) * x**power for i, (n, x) in enumerate(zip(rounds, xs, strict=True))))

    @relay
    def total(x, y):  # type: ignore[no-untyped-def]
        return relay.sum(relay.weighted((x, y), power=3))

    x, y = np.array([2.0, -1.0]), np.array([0.5, 3.0])
    assert_modes_agree(total, x, y, expected=numpy_weighted((x, y), 3).sum())
    assert_modes_agree(relay.grad(total), x, y, expected=(2 * 3 * x**2, 2 * 3 * y**2))


def test_composites_of_composites_and_in_gradients() -> None:
    swish_ = swish()

    @relay.composite
    def shifted(x: Tensor, by: float) -> Tensor:
        """swish(x + by). x: (T float, s) -> (T, s)."""
        return swish_(x + by)

    @relay.register_op(
        relation=relay.Relation("T:float -> T", same_shape),
        compute=lambda x: te.compute(x.shape, lambda *i: x(*i) * tirx.const(3, x.dtype)),
        gradient=lambda x, out, dout: dout * relay.shifted(x, 1.0),  # not the truth, but seen
    )
    def tripled(x: Tensor) -> Tensor:
        """3 x. x: (T float, s) -> (T, s)."""
        return np.asarray(x * 3)

    @relay
    def total(x):  # type: ignore[no-untyped-def]
        return relay.sum(tripled(shifted(x, 1.0)))

    @relay
    def slope(x):  # type: ignore[no-untyped-def]
        return relay.sum(relay.grad(total)(x))

    for function in (total, relay.grad(total), relay.grad(slope)):
        np.testing.assert_allclose(function(X), function.interpret(X), rtol=1e-12)
    inner = numpy_swish(X + 1)
    step = 1e-6
    slope_of_inner = (numpy_swish(X + 1 + step) - numpy_swish(X + 1 - step)) / (2 * step)
    np.testing.assert_allclose(relay.grad(total)(X), numpy_swish(inner + 1) * slope_of_inner, rtol=1e-7)


def test_code_of_its_own_is_used_except_where_the_body_is_differentiated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_VERIFY", "0")  # which would find that the code is wrong

    @relay.composite(
        relation=relay.Relation("T:float -> T", same_shape),
        pattern=relay.Pattern.ELEMENTWISE,
        compute=lambda x: te.compute(x.shape, lambda *i: x(*i) * tirx.const(1000, x.dtype)),  # wrong, so that it shows
    )
    def doubled(x: Tensor) -> Tensor:
        """2 x. x: (T float, s) -> (T, s)."""
        return x + x

    @relay
    def total(x):  # type: ignore[no-untyped-def]
        return relay.sum(doubled(x))

    assert total(X) == 1000 * X.sum() and total.interpret(X) == 2 * X.sum()
    np.testing.assert_array_equal(relay.grad(total)(X), [2, 2, 2])


def test_mistakes_are_found_at_the_call() -> None:

    @relay.composite
    def third(x: Tensor, at: int) -> Tensor:
        """x[at] and a failure. x: (T, (n,)) -> (T, ())."""
        assert x[0] > 0.0, "x starts with a positive number"
        return x[at]

    @relay.composite
    def shifted(x: Tensor) -> Tensor:
        """x + 1. x: (float64, (2,)) -> (float64, (2,))."""
        return x + relay.ones((2,), dtype=relay.Float64)

    @relay
    def wrong_type(x):  # type: ignore[no-untyped-def]
        return shifted(x)

    @relay
    def wrong_value(x):  # type: ignore[no-untyped-def]
        return third(x, 1)

    with pytest.raises(TypeMismatch, match="needs operands of one dtype") as caught:
        wrong_type(np.float32([1, 2]))
    assert caught.value.span is not None and "return shifted(x)" in str(caught.value)
    assert any("in shifted, at" in note for note in caught.value.notes)
    for run in (wrong_value, wrong_value.interpret, relay.grad(wrong_value), relay.grad(wrong_value).interpret):
        with pytest.raises(ExecutionError, match="starts with a positive number") as failed:
            run(-X[::-1].copy())
        assert "return third(x, 1)" in str(failed.value)


def test_annotations_of_the_body_are_checked() -> None:
    @relay.composite
    def square_norm(x: Tensor[relay.Float32, (n, n)]) -> Tensor[relay.Float32, ()]:  # type: ignore[type-arg,valid-type]
        """The sum of squares of a square matrix. x: (float32, (n, n)) -> (float32, ())."""
        return relay.sum(x * x)  # type: ignore[no-any-return]

    assert square_norm(np.float32([[1, 2], [3, 4]])) == 30
    with pytest.raises(TypeMismatch):
        square_norm(np.float32([[1, 2]]))


def test_wrong_definitions_are_refused() -> None:
    def undocumented(x: Tensor) -> Tensor:
        return x

    def sigmoid(x: Tensor) -> Tensor:
        """x. x: (T, s) -> (T, s)."""
        return x

    def plain(x: Tensor) -> Tensor:
        """x. x: (T, s) -> (T, s)."""
        return x

    before = relay.get_env().names()
    with pytest.raises(RegistrationError, match="no documentation"):
        relay.composite(undocumented)
    with pytest.raises(RegistrationError, match="registered already"):
        relay.composite(sigmoid)
    with pytest.raises(RegistrationError, match="`pattern` needs `compute`"):
        relay.composite(pattern=relay.Pattern.ELEMENTWISE)(plain)
    with pytest.raises(RegistrationError, match="its relation has 2 operands"):
        relay.composite(relation=relay.Relation("T, T -> T", same_shape))(plain)
    assert relay.get_env().names() == before


def test_a_body_that_is_no_program_says_where() -> None:
    @relay.composite
    def reads_a_file(x: Tensor) -> Tensor:
        """x. x: (T, s) -> (T, s)."""
        with open("x"):
            return x

    with pytest.raises(FrontendError, match="with"):
        reads_a_file(X)


def test_a_body_with_several_results() -> None:
    @relay.composite
    def parts(x: Tensor, factor: float = 2.0) -> Any:
        """x and its multiple. x: (T float, s) -> ((T, s), (T, s))."""
        return x, x * factor

    @relay
    def total(x):  # type: ignore[no-untyped-def]
        first, second = parts(x, factor=3.0)
        return relay.sum(first * second)

    np.testing.assert_array_equal(parts(X)[1], 2 * X)
    assert_modes_agree(total, X, expected=3 * (X * X).sum())
    assert_modes_agree(relay.grad(total), X, expected=6 * X)


def test_several_results_have_no_gradient_beside_their_body() -> None:
    @relay.composite(no_gradient="it is said so")
    def parts(x: Tensor) -> Any:
        """x twice. x: (T, s) -> ((T, s), (T, s))."""
        return x, x

    @relay
    def first(x):  # type: ignore[no-untyped-def]
        return parts(x)[0]

    with pytest.raises(TypeMismatch, match="parts has several results, which only the body of a composite") as caught:
        first(X)
    assert "return parts(x)[0]" in str(caught.value)


# ---- in place of calls


def call_of(sample: Sample) -> Module:
    """A module that calls an operator."""
    parameters = tuple(Var(f"x{i}", type_) for i, type_ in enumerate(sample.types))
    result, label = Var("y", sample.operator.infer(sample.types, sample.attributes)), LoopLabel("f")
    call = Binding((result,), OpCall(sample.operator.name, parameters, sample.attributes))
    body = Block((call,), Exit(label, (result,)))
    return Module({"f": Function("f", parameters, body, label, result.type)}, "f")


@pytest.mark.parametrize("name", COMPOSED)
def test_a_body_gives_every_bit_of_the_operator(name: str) -> None:
    of_types = {tuple(map(str, s.types)): s for s in OF[name]}
    for sample in of_types.values():
        before = call_of(sample)
        try:
            expected = interpreter.run(before, list(sample.operands))
        except ExecutionError:
            continue
        found = interpreter.run(expand_composites(before), list(sample.operands))
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
            if np.asarray(other).dtype == relay.BFloat16.dtype:  # whose NaNs NumPy takes for unequal numbers
                one, other = np.asarray(one).astype(np.float32), np.asarray(other).astype(np.float32)
            np.testing.assert_array_equal(one, other)
            signs = np.asarray(one).dtype.kind == "f"
            assert not signs or np.array_equal(np.copysign(1.0, one)[one == one], np.copysign(1.0, other)[one == one])
