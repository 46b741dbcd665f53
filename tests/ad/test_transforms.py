"""`vjp`, `jvp`, `jacobian`, `hessian` and `check_gradient`: values against closed forms, in Python and in programs."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close, assert_modes_agree, assert_modes_raise, modes

import relay
from relay.errors import DifferentiationError, RelayError, TypeCheckError, TypeMismatch
from relay.ir.expr import Loop, OpCall
from relay.ir.traverse import walk

X = np.array([0.5, -1.0, 2.0])
Y = np.array([1.5, 0.25, -0.75])


@relay
def gated(x):
    return relay.tanh(x) * x


@relay
def pair(x, y):
    return relay.sum(x * x * y), {"t": relay.tanh(x), "n": x.shape[0] + 0 * relay.argmax(x)}


@relay
def energy(x, y):
    return relay.sum(relay.exp(x) * y * y)


@relay
def iterated(x):
    for _ in range(5):
        x = relay.sin(x) + 0.25 * x
    return x


def slope(x):
    return np.tanh(x) + x / np.cosh(x) ** 2


def curvature(x):
    return 2 / np.cosh(x) ** 2 - 2 * x * np.tanh(x) / np.cosh(x) ** 2


def calls(function, name, *arguments):
    core = function.core(*arguments)
    bindings = [b for f in core.functions.values() for b in walk(f.body)]
    return sum(isinstance(b.value, OpCall) and b.value.operator == name for b in bindings)


# ---- in Python


def test_vjp_maps_cotangents_to_cotangents():
    value, pullback = relay.vjp(gated, X)
    assert_close(value, np.tanh(X) * X)
    assert_close(pullback(Y), Y * slope(X))
    assert_close(pullback(2 * Y), 2 * Y * slope(X))  # as often as one likes


def test_vjp_takes_cotangents_of_the_values_structure():
    (total, _parts), pullback = relay.vjp(pair, X, Y)
    assert_close(total, np.sum(X * X * Y))
    dx, dy = pullback((2.0, {"t": Y, "n": None}))
    assert_close(dx, 4 * X * Y + Y / np.cosh(X) ** 2)
    assert_close(dy, 2 * X * X)
    assert_close(pullback((2.0, None))[0], 4 * X * Y)


def test_jvp_is_the_derivative_along_tangents():
    value, tangent = relay.jvp(gated, (X,), (Y,))
    assert_close(value, np.tanh(X) * X)
    assert_close(tangent, Y * slope(X))
    (_, parts), (total, tangents) = relay.jvp(pair, (X, Y), (Y, None))
    assert_close(total, np.sum(2 * X * Y * Y))
    assert_close(tangents["t"], Y / np.cosh(X) ** 2)
    assert tangents["n"] is None
    assert int(parts["n"]) == 3


def test_jacobian_and_hessian():
    assert_close(relay.jacobian(gated)(X), np.diag(slope(X)))
    total, parts = relay.jacobian(pair, wrt="x")(X, y=Y)
    assert_close(total, 2 * X * Y)
    assert_close(parts["t"], np.diag(1 / np.cosh(X) ** 2))
    (xx, xy), (yx, yy) = relay.hessian(energy)(X, Y)
    assert_close(xx, np.diag(np.exp(X) * Y * Y))
    assert_close(xy, np.diag(2 * np.exp(X) * Y))
    assert_close(yx, xy)
    assert_close(yy, np.diag(2 * np.exp(X)))
    assert_close(relay.hessian(energy, wrt=1)(X, Y), yy)


def test_jacobian_shapes():
    @relay
    def product(a, b):
        return a @ b

    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    da, db = relay.jacobian(product)(a, b)
    assert da.shape == (2, 4, 2, 3)
    assert db.shape == (2, 4, 3, 4)
    assert_close(da, np.einsum("ik,jl->ijkl", np.eye(2), b.T))
    assert_close(db, np.einsum("ij,kl->ikjl", a, np.eye(4)))


def test_jacobian_of_a_function_with_static_and_keyword_parameters():
    @relay(static_argnames="axis")
    def reduced(x, axis, *, scale=2.0):
        return relay.sum(x * x, axis=axis) * scale

    x = np.arange(6.0).reshape(2, 3)
    found = np.asarray(relay.jacobian(reduced, wrt="x")(x, 1, scale=3.0))
    expected = np.zeros((2, 2, 3))
    expected[[0, 1], [0, 1]] = 6 * x
    assert_close(found, expected)


def test_all_of_them_on_the_interpreter():
    assert_close(relay.jacobian(gated).interpret(X), np.diag(slope(X)))
    assert_close(relay.hessian(energy, wrt=1).interpret(X, Y), np.diag(2 * np.exp(X)))


# ---- in programs


@relay
def everything(x, y):
    value, pullback = relay.vjp(lambda a: gated(a) * y, x)
    _, tangent = relay.jvp(iterated, (x,), (y,))
    second = relay.hessian(lambda a: relay.sum(a * a * a * y))(x)
    first = relay.jacobian(iterated)(x)
    return relay.sum(pullback(value)) + relay.sum(tangent) + relay.sum(second * first)


def test_inside_of_programs_and_differentiated_again():
    assert relay.check_gradient(everything, X, Y) < 1e-7
    assert_modes_agree(everything, X, Y)
    for found, expected in zip(relay.grad(everything)(X, Y), relay.grad(everything).interpret(X, Y), strict=True):
        assert_close(found, expected, 1e-9)


def test_they_compose_to_higher_order():
    assert_close(relay.jacobian(relay.grad(energy, wrt=0), wrt=1)(X, Y), np.diag(2 * np.exp(X) * Y))
    third = relay.jacobian(relay.hessian(energy, wrt=0), wrt=1)(X, Y)
    assert third.shape == (3, 3, 3)
    assert_close(np.einsum("iii->i", np.asarray(third)), 2 * np.exp(X) * Y)

    @relay
    def along(x, v):
        return relay.jvp(lambda a: relay.jvp(gated, (a,), (v,))[1], (x,), (v,))[1]

    assert_close(along(X, Y), curvature(X) * Y * Y)


def test_hessian_vector_product():
    @relay
    def product(x, y, v):
        return relay.jvp(lambda a: relay.grad(energy, wrt=0)(a, y), (x,), (v,))[1]

    assert_close(product(X, Y, X), np.exp(X) * Y * Y * X)


def test_of_a_function_chosen_by_a_branch():
    @relay
    def chosen(x, y):
        f = (lambda v: v * x) if x > y else (lambda v: relay.sin(v) * y)
        value, pullback = relay.vjp(f, y)
        return value + pullback(2.0) + relay.jvp(f, (x,), (y,))[1]

    for a, b in ((2.0, 1.0), (1.0, 2.0)):
        assert relay.check_gradient(chosen, np.float64(a), np.float64(b)) < 1e-7


def test_perturbations_are_kept_apart():
    @relay
    def outer(x):
        return x * relay.jvp(lambda y: x * y, (2.0,), (1.0,))[1]

    assert_close(relay.jvp(outer, (np.float64(1.0),), (np.float64(1.0),))[1], 2.0)
    assert_close(relay.grad(outer)(np.float64(1.0)), 2.0)


# ---- what it costs


def test_forward_mode_repeats_no_primal_arithmetic():
    @relay
    def along(x, t):
        return relay.jvp(gated, (x,), (t,))

    assert calls(along, "tanh", X, Y) == 1
    assert calls(along, "multiply", X, Y) <= 5

    @relay
    def through_loop(x, t):
        return relay.jvp(iterated, (x,), (t,))

    assert calls(through_loop, "sin", X, Y) == 1  # one loop computes the value and what the tangent needs
    core = through_loop.core(X, Y)
    assert sum(isinstance(b.value, Loop) for b in walk(core.main.body)) == 3


def test_reverse_mode_straight_line_repeats_no_primal_arithmetic():
    @relay
    def back(x, t):
        value, pullback = relay.vjp(gated, x)
        return value, pullback(t)

    assert calls(back, "tanh", X, Y) == 1


def test_print_happens_once_in_forward_mode(capsys):
    @relay
    def noisy(x):
        print("here")
        return x * x

    relay.jvp(noisy, (X,), (Y,))
    assert capsys.readouterr().out == "here\n"


# ---- mistakes


def test_a_cotangent_of_another_shape_is_refused():
    _, pullback = relay.vjp(gated, X)
    with pytest.raises(TypeCheckError, match=r"cotangent must be Tensor\[float64, \(3,\)\]"):
        pullback(np.ones(4))


def test_tangents_must_be_a_tuple():
    @relay
    def wrong(x):
        return relay.jvp(gated, x, x)[1]

    with pytest.raises(TypeCheckError, match="jvp") as caught:
        wrong(np.float64(1.0))
    assert caught.value.span is not None
    assert caught.value.span.source.filename == __file__


def test_an_unknown_parameter_is_named():
    with pytest.raises(TypeCheckError, match="there is no parameter 'z'; there are x, y"):
        relay.jacobian(energy, wrt="z")(X, Y)


def test_python_functions_are_read_and_other_values_refused():
    value, pullback = relay.vjp(lambda x: x * x, 3.0)
    assert float(value) == 9.0 and float(np.squeeze(pullback(1.0))) == 6.0
    assert [float(v) for v in relay.jvp(lambda x: x * x, (3.0,), (2.0,))] == [9.0, 12.0]
    assert float(relay.jacobian(lambda x: x * x)(3.0)) == 6.0 and float(relay.hessian(lambda x: x * x)(3.0)) == 2.0
    for of in (relay.vjp, relay.jvp, relay.jacobian, relay.hessian):
        with pytest.raises(RelayError, match="decorated with @relay"):
            of(1.0, (1.0,), (1.0,)) if of is relay.jvp else of(1.0)


def test_the_jacobian_of_what_has_no_floats_is_an_error():
    @relay
    def positive(x):
        return x > 0

    @relay
    def largest(x):
        return {"at": relay.argmax(x), "any": relay.any(x > 0), "none": None}

    @relay
    def three(x):
        return 3

    @relay
    def inside(x):
        return relay.jacobian(positive)(x)

    @relay
    def flags(x):
        found = []
        for i in range(x.shape[0]):
            if x[i] > 0:
                found.append(x[i] > 1.0)
        return found

    for function in (positive, largest, three, flags):
        for caught in assert_modes_raise(
            relay.jacobian(function), X, error=DifferentiationError, match="only float tensors can be differentiated"
        ):
            assert caught.value.span is not None and caught.value.span.source.filename == __file__
    with pytest.raises(DifferentiationError, match=r"Tensor\[bool, \(3,\)\] has no gradient"):
        inside(X)
    with pytest.raises(DifferentiationError, match="only a float tensor can be differentiated") as caught:
        relay.hessian(three)(X)
    assert not caught.value.further


def test_integers_from_python_have_no_jacobian_unless_they_meet_floats():
    @relay
    def ignores(x, k):
        return x * 1.0

    @relay
    def multiplies(x, k):
        return x * k

    for k in (2, np.int64(2)):
        first, second = relay.jacobian(ignores)(X, k)
        assert_close(first, np.eye(3))
        assert second is None
        with pytest.raises(DifferentiationError, match="no gradient with respect to k") as caught:
            relay.jacobian(ignores, wrt="k")(X, k)
        assert caught.value.span is not None and caught.value.span.source.filename == __file__
    assert_close(relay.jacobian(multiplies, wrt="k")(X, 2), X)


@relay(static_argnames=("count", "mode"))
def in_rows(x, w, count, mode="product"):
    y = x * w if mode == "product" else x + w
    return y.reshape(count, -1).sum(axis=0) ** 2


@relay
def pulled_in_rows(x, w):
    value, pull = relay.vjp(in_rows, x, w, 2)
    return value, pull(np.ones(3))


@relay(static_argnames="scale")
def scaled(x, scale):
    return (x * scale).sum()


def test_vjp_of_a_function_with_static_parameters():
    x, w = np.arange(6.0), np.arange(6.0) + 1.0
    value, pull = relay.vjp(in_rows, x, w, 2)
    dx, dw, none = pull(np.ones(3))
    total = (x * w).reshape(2, 3).sum(axis=0)
    assert_close(value, total**2)
    assert_close(dx, np.tile(2 * total, 2) * w)
    assert_close(dw, np.tile(2 * total, 2) * x)
    assert none is None
    found, cotangents = assert_modes_agree(pulled_in_rows, x, w)
    assert_close(found, value)
    assert_close(cotangents[:2], (dx, dw))
    assert cotangents[2] is None
    gradient, none = relay.vjp(scaled, x, 0.5)[1](1.0)
    assert none is None
    assert_close(gradient, np.full(6, 0.5))
    with pytest.raises(TypeMismatch, match="nested too deeply, or contains itself"):
        pull(_nested(3000))


def _nested(depth):
    value = (1.5,)
    for _ in range(depth):
        value = (value,)
    return value


def test_vjp_without_arguments_says_what_is_missing():
    with pytest.raises(RelayError, match="takes the function's arguments"):
        relay.vjp(gated)


# ---- checking gradients


def test_check_gradient_accepts_what_is_right():
    assert relay.check_gradient(energy, X, Y) < 1e-8
    assert relay.check_gradient(pair, X, Y) < 1e-8
    assert relay.check_gradient(energy, np.float32(X), np.float32(Y)) < 1e-8  # checked in float64


def test_check_gradient_of_a_function_with_static_parameters():
    x, w = np.arange(6.0), np.arange(6.0) + 1.0
    assert relay.check_gradient(in_rows, x, w, 2) < 1e-6
    assert relay.check_gradient(in_rows, x, w, 3, "sum", wrt="w") < 1e-6
    assert relay.check_gradient(scaled, x, 0.5) < 1e-8


def test_check_gradient_of_deep_arguments():
    @relay
    def first(p):
        return p[0] * 2.0 if isinstance(p, tuple) else p

    cycle = [1.0]
    cycle.append(cycle)
    with pytest.raises(TypeMismatch, match="a list contains itself"):
        relay.check_gradient(first, cycle)
    with pytest.raises(TypeMismatch, match="nested too deeply"):
        relay.check_gradient(first, _nested(3000))


def test_check_gradient_of_a_float32_program():
    @relay
    def narrow(x: relay.Tensor[relay.Float32, (3,)]):
        return relay.sum(x * x * x)

    assert 1e-8 < relay.check_gradient(narrow, np.float32(X)) < 2e-2


def test_check_gradient_names_the_worst_entry():
    @relay
    def wrong(p, n):
        w = p["w"]
        return (relay.sum(w * w * p["b"]) + 5.0 * relay.stop_gradient(w[0, 1])) * float(n)

    with pytest.raises(DifferentiationError, match=r"p\.w\[0, 1\] is 8, finite .* give 18.*error of 0.56, more"):
        relay.check_gradient(wrong, {"w": np.ones((1, 2)), "b": np.array([1.0, 2.0])}, np.int32(2))


def test_stop_gradient_holds_to_any_order():
    @relay
    def held(x):
        return relay.stop_gradient(x) * x

    x = np.float64(3.0)
    assert_close(relay.grad(held)(x), 3.0)
    assert_close(relay.hessian(held)(x), 0.0)
    assert_close(relay.jvp(held, (x,), (x,))[1], 9.0)


# ---- lists that grow


@relay
def powers(x, n):
    found = [x]
    for i in range(n):
        found.append(found[i] * x)
    return {"all": found, "sum": relay.sum(x)}


@relay
def powers_as_a_tensor(x, n):
    return relay.stack(powers(x, n)["all"])


@relay
def tangents_of_a_list(x, n):
    def inner(v):
        return powers(v, n)["all"]

    values, tangents = relay.jvp(inner, (x,), (1.0,))
    s = 0.0
    for value, tangent in zip(values, tangents, strict=False):
        s = s + value * tangent
    return s


def test_the_tangent_of_a_list_that_grows_is_one() -> None:
    x, v = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    for n in (0, 3):
        value, tangent = relay.jvp(powers, (x, n), (v, None))
        for k in range(n + 1):
            np.testing.assert_allclose(value["all"][k], x ** (k + 1))
            np.testing.assert_allclose(tangent["all"][k], (k + 1) * x**k * v)
        assert len(tangent["all"]) == n + 1
        np.testing.assert_allclose(tangent["sum"], 0.0)
        np.testing.assert_allclose(relay.jvp(powers_as_a_tensor, (x, n), (v, None))[1][n], (n + 1) * x**n * v)
    y = np.float64(1.5)
    expected = sum((k + 1) * y ** (2 * k + 1) for k in range(4))
    assert_modes_agree(tangents_of_a_list, y, 3, expected=expected)
    assert relay.check_gradient(tangents_of_a_list, y, 3) < 1e-7


def test_the_jacobian_of_a_list_that_grows_is_a_list_of_blocks() -> None:
    x, derivative = np.array([1.0, 2.0]), relay.jacobian(powers)
    found = assert_modes_agree(derivative, x, 2)
    for k, (block, missing) in enumerate(found["all"]):
        np.testing.assert_allclose(block, np.diag((k + 1) * x**k))
        assert missing is None
    np.testing.assert_allclose(found["sum"][0], np.ones(2))
    only = relay.jacobian(powers, wrt="x")(x, 2)
    np.testing.assert_allclose(only["all"][2], np.diag(3 * x**2))


# ---- effects


@relay
def noisy_power(x, n):
    print("power", n)
    if n == 0:
        return 1.0
    return x * noisy_power(x, n - 1)


@relay
def noisy(x):
    f = (lambda v: noisy_power(v, 1) * x) if x > 0.0 else relay.sin
    print("noisy")
    return f(x) * x


NOISE = "noisy\npower 1\npower 0\n"


@relay
def noisy_transforms(x):
    value, pullback = relay.vjp(noisy, x)
    _, tangent = relay.jvp(noisy, (x,), (1.0,))
    return value, pullback(1.0), pullback(2.0), tangent, relay.jacobian(noisy)(x), relay.hessian(noisy)(x)


def test_what_a_function_prints_is_printed_once_by_each_transform(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.float64(2.0)
    for run in modes(noisy_transforms):
        found = [float(part) for part in run(x)]
        np.testing.assert_allclose(found, [8.0, 12.0, 24.0, 12.0, 12.0, 12.0])
        assert capsys.readouterr().out == 4 * NOISE
    _, pullback = relay.vjp(noisy, x)
    pullback(x), pullback(x)
    relay.jvp(noisy, (x,), (x,))
    assert capsys.readouterr().out == 2 * NOISE
    vector = np.array([1.0, 2.0, 3.0])

    @relay
    def each(v):
        print("each")
        return v * v * v

    relay.jacobian(each)(vector), relay.hessian(lambda_sum(each))(vector)
    assert capsys.readouterr().out == "each\neach\n"


def lambda_sum(f):
    @relay
    def total(v):
        return relay.sum(f(v))

    return total


def test_a_quiet_function_has_its_rule_in_the_text() -> None:
    typed = relay.jacobian(noisy).typed(np.float64(2.0))
    text = relay.to_text(typed)
    assert " quiet {" in text
    assert relay.to_text(relay.parse(text)) == text
