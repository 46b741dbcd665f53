"""Derivatives of functions that return several results: which one is meant has to be said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_close, assert_modes_agree, leaves

import relay as R
from relay import DifferentiationError, TypeCheckError, relay
from relay.ir.validation.check import check

W, X = np.array([1.0, 2.0]), np.array([3.0, 1.0])
SAID = "the function returns 2 results: say which one is differentiated, by output= or has_aux="


@relay
def loss(w, x, n):
    y = (w * x).sum() * float(n)
    return y * y, {"y": y, "n": n}


@relay
def pair(w):
    return (w * w).sum(), w * 3.0


@pytest.mark.parametrize(
    "text",
    [
        "relay.grad(pair)(w)",
        "relay.value_and_grad(pair)(w)",
        "relay.grad(lambda v: pair(v))(w)",
        "relay.grad(pair, keeping=1)(w)",
        "relay.grad(relay.value_and_grad(pair, output=0))(w)",
        "relay.hessian(pair)(w)",
        "relay.grad(lambda v: [v.sum(), v.sum()])(w)",
    ],
)
def test_in_programs(text: str) -> None:
    f = R.from_source(f"def f(w):\n    return {text}\n", {"relay": relay, "pair": pair})
    with pytest.raises(DifferentiationError, match=SAID):
        f.interpret(W)


@pytest.mark.parametrize("make", [R.grad, R.value_and_grad, R.hessian])
def test_from_python(make: Callable[..., Any]) -> None:
    with pytest.raises(DifferentiationError, match=SAID):
        make(pair)(W)


def test_in_text() -> None:
    text = R.to_text(R.grad(pair, output=0).typed(W))
    assert R.to_text(R.parse(text)) == text
    with pytest.raises(R.RelayError, match=SAID):
        R.parse(text.replace("grad{output=0}", "grad"))
    kept = R.to_text(R.grad(loss, has_aux=True).typed(W, X, 2))
    assert "has_aux" in kept
    assert R.to_text(R.parse(kept)) == kept


def test_one_result_in_a_tuple_is_meant() -> None:
    @relay
    def one(w):
        return ((w * w).sum(),)

    np.testing.assert_allclose(R.grad(one).interpret(W), 2 * W)


def test_structures_of_results_have_all_their_derivatives() -> None:
    first, second = R.jacobian(pair).interpret(W)
    np.testing.assert_allclose(first, 2 * W)
    np.testing.assert_allclose(second, 3 * np.eye(2))
    _, pullback = R.vjp(pair, W)
    np.testing.assert_allclose(pullback((1.0, np.ones(2))), 2 * W + 3.0)


def test_auxiliary_results_are_handed_on() -> None:
    assert_modes_agree(R.grad(pair, has_aux=True), W, expected=(2 * W, 3 * W))
    (value, rest), slope = assert_modes_agree(R.value_and_grad(pair, has_aux=True), W)
    assert float(value) == 5.0
    np.testing.assert_allclose(rest, 3 * W)
    np.testing.assert_allclose(slope, 2 * W)


def test_auxiliary_results_and_several_gradients() -> None:
    (dw, dx, dn), rest = assert_modes_agree(R.grad(loss, has_aux=True), W, X, 2)
    np.testing.assert_allclose(dw, 2 * 10.0 * 2 * X)
    np.testing.assert_allclose(dx, 2 * 10.0 * 2 * W)
    assert dn is None
    assert float(rest["y"]) == 10.0
    assert int(rest["n"]) == 2
    (value, rest), (dw, _) = assert_modes_agree(R.value_and_grad(loss, wrt=("w", "x"), has_aux=True), W, X, 2)
    assert float(value) == 100.0
    assert set(rest) == {"y", "n"}
    np.testing.assert_allclose(dw, 40.0 * X)


def test_auxiliary_results_are_known_before_the_dtype_of_a_number() -> None:
    @relay
    def scaled(w, n):
        y = w * w
        return y.sum() * float(n), {"y": y, "parts": (w[0], y)}

    @relay
    def handed_on(w):
        _, rest = relay.grad(scaled, has_aux=True)(w, 2)
        slope, *others = relay.grad(scaled, output=0, keeping=[-1, 0])(w, 2)
        (_, kept), _ = relay.value_and_grad(scaled, has_aux=True)(w, 2)
        return rest["y"][1], rest["parts"][1].sum(), slope, others[1]["parts"][0], kept["y"].shape[0]

    found = handed_on.interpret(W)
    assert [float(found[n]) for n in (0, 1, 3)] == [4.0, 5.0, 1.0]
    np.testing.assert_allclose(found[2], 4 * W)


def test_auxiliary_results_inside_of_programs() -> None:
    @relay
    def step(w, x, n):
        (dw, dx, _), rest = relay.grad(loss, has_aux=True)(w, x, n)
        (value, _), slope = relay.value_and_grad(lambda v: loss(v, x, n), has_aux=True)(w)
        second = relay.grad(lambda v: relay.grad(pair, has_aux=True)(v)[0].sum())(w)
        return dw - slope, dx, rest["y"], value, second

    zero, dx, y, value, second = assert_modes_agree(step, W, X, np.int32(2))
    np.testing.assert_allclose(zero, 0.0, atol=1e-12)
    np.testing.assert_allclose(dx, 40.0 * W)
    assert (float(y), float(value)) == (10.0, 100.0)
    np.testing.assert_allclose(second, 2.0)


def test_auxiliary_results_with_a_seed() -> None:
    @relay
    def parts(w):
        return w * w, w.sum()

    slope, rest = R.grad(parts, has_aux=True, seedable=True).interpret(W, X)
    np.testing.assert_allclose(slope, 2 * W * X)
    assert float(rest) == 3.0


@pytest.mark.parametrize("result", ["w.sum()", "(w.sum(), w, w)", "(w.sum(),)"])
def test_auxiliary_results_need_a_pair(result: str) -> None:
    f = R.from_source(f"def f(w):\n    return {result}\n", {})
    with pytest.raises(DifferentiationError, match="has_aux is for a function that returns a pair"):
        R.grad(f, has_aux=True).interpret(W)


def test_auxiliary_results_go_without_other_choices() -> None:
    for options in ({"output": 0}, {"keeping": (1,)}):
        with pytest.raises(TypeCheckError, match="has_aux differentiates the first of two results"):
            R.grad(pair, has_aux=True, **options)


@relay
def scaled(w, xs: list[R.Tensor[R.Float, ()]]):  # type: ignore[no-untyped-def]
    s = np.stack([x * w for x in xs])
    return (s * s).mean(), s


KINDS: list[dict[str, Any]] = [{"has_aux": True}, {"output": 0, "keeping": (1,)}, {"output": 1, "seedable": True}]


@pytest.mark.parametrize("options", KINDS)
def test_results_of_data_dependent_size_are_handed_on(options: dict[str, Any]) -> None:
    derivative = R.value_and_grad(scaled, wrt="w", **options)
    for length in (1, 6, 40):
        xs = [np.float32(i) for i in range(length)]
        seed = [np.ones(length, np.float32)] if "seedable" in options else []
        lowering = derivative.lower(np.float32(0.7), xs, *seed)
        check(lowering.typed, "typed")
        check(lowering.core, "structured")
        wanted = derivative.interpret(np.float32(0.7), xs, *seed)
        found = derivative(np.float32(0.7), xs, *seed)
        assert_close(found, wanted, rtol=1e-5)
        assert any(np.shape(leaf) == (length,) for leaf in leaves(found))
