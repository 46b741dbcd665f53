"""What users read: derivatives as text, and the errors of those that do not exist."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_modes_raise

import relay
from relay import Float64, Tensor
from relay.errors import DifferentiationError, FrontendError, TypeCheckError, TypeMismatch

Vector = Tensor[Float64, (3,)]


@relay
def linear_loss(a: Vector, b: Vector, x: Vector, y: Vector):
    y_hat = a * x + b
    diff = y - y_hat
    return relay.sum(diff * diff)


def error_of(call):
    with pytest.raises(DifferentiationError) as caught:
        call()
    return caught.value


# ---- text


def test_names_come_from_the_primal_and_lines_from_the_source() -> None:
    text = relay.grad(linear_loss, wrt=("a", "b")).text()
    first = linear_loss._function.span.line
    for name in ("%y_hat", "%diff", "%d_diff", "%d_y_hat", "%d_a"):
        assert f"let {name}: " in text
    assert f"# {first + 1}: y_hat = a * x + b" in text
    assert f"# {first + 2}: diff = y - y_hat" in text
    forward, backward = text.index("let %y_hat"), text.index("let %d_y_hat")
    assert text.index("y_hat = a * x + b") < forward < backward < text.rindex("y_hat = a * x + b")
    relay.parse(text)  # comments and all


def test_the_text_of_a_derivative_at_the_types_of_arguments() -> None:
    @relay
    def loop(w, x):
        h = x
        for _ in range(3):
            z = w @ h
            h = relay.tanh(z)
        return relay.sum(h)

    derivative = relay.grad(loop, wrt="w")
    text = derivative.text(np.ones((2, 2)), np.ones(2))
    assert "let %d_z: Tensor[float64, (2,)]" in text
    assert "loop 'backward" in text
    assert "grad{wrt=(0,)} %loop" in derivative.text()  # whose types only a call decides
    assert "tanh" in loop.text(np.ones((2, 2)), np.ones(2))


# ---- errors


def test_the_gradient_of_an_integer_says_where_the_gradient_is_lost() -> None:
    @relay
    def best(x):
        y = x * x
        k = relay.argmax(y)
        return k + 1

    error = error_of(lambda: relay.grad(best)(np.ones(3)))
    first = best._function.span.line
    assert "the function returns Tensor[int32, ()]" in error.message
    assert [(label.span.line, label.text) for label in error.labels] == [
        (first + 2, "Tensor[int32, ()] has no gradient")
    ]
    assert error.notes == ("argmax reads x -> y",)


@relay.data
class Found:
    value: Vector
    place: Tensor[relay.Int32, ()]


@relay
def place(v):
    w = relay.sin(v)
    return relay.argmax(w)


@relay
def by_a_call(x):
    y = x * 2.0
    return place(y)


@relay
def by_a_closure(x):
    def f(v):
        z = v + x
        return relay.argmax(z)

    return f(x)


@relay
def by_data(x):
    y = x * 2.0
    found = Found(y, relay.argmax(y))
    return found.place


@relay
def by_a_reference(x):
    y = x * 2.0
    r = relay.ref(0)
    r.value = relay.argmax(y)
    return r.value


@relay
def by_a_list(x):
    y = x * 2.0
    found = [0]
    for _ in range(3):
        found.append(relay.argmax(y))
    return found[1]


@pytest.mark.parametrize(
    ("function", "line", "path"),
    [
        (by_a_call, place._function.span.line + 2, "x -> y -> v -> w"),
        (by_a_closure, by_a_closure._function.span.line + 3, "x -> z"),
        (by_data, by_data._function.span.line + 2, "x -> y"),
        (by_a_reference, by_a_reference._function.span.line + 3, "x -> y"),
        (by_a_list, by_a_list._function.span.line + 4, "x -> y"),
    ],
    ids=lambda c: getattr(c, "__name__", ""),
)
def test_the_place_is_found_through_calls_closures_data_and_references(function, line, path) -> None:
    @relay
    def outer(x):
        return relay.sum(relay.grad(function)(x))

    for call in (lambda: relay.grad(function)(np.ones(3)), lambda: outer(np.ones(3))):
        error = error_of(call)
        (label,) = error.labels
        assert (label.span.line, label.text) == (line, "Tensor[int32, ()] has no gradient")
        assert error.notes == (f"argmax reads {path}",)


def test_what_has_no_name_is_its_text_in_the_path() -> None:
    @relay
    def positive(x):
        return relay.sum(x[1:]) > 0.0

    error = error_of(lambda: relay.grad(positive)(np.ones(3)))
    assert error.notes == ("`relay.sum(x[1:]) > 0.0` reads x -> `x[1:]` -> `relay.sum(x[1:])`",)


def test_results_that_are_no_tensors() -> None:
    @relay
    def reference(x):
        return relay.ref(x)

    @relay
    def function(x):
        return lambda v: v * x

    @relay
    def nothing(x):
        print(x)

    @relay
    def record(x):
        return Found(x, 1)

    for wrong, message, help in (
        (reference, "returns Ref", "`r.value`"),
        (function, "returns a function", "a call of it"),
        (nothing, "returns nothing", None),
        (record, "returns Found", "one of its fields"),
    ):
        error = error_of(lambda wrong=wrong: relay.grad(wrong)(np.ones(3)))
        assert message in error.message
        assert help in error.help if help else error.help is None and not error.labels


def test_a_parameter_without_a_gradient_is_named() -> None:
    @relay
    def scaled(x, n):
        return relay.sum(x) * float(n)

    @relay
    def outer(x, n):
        return relay.grad(scaled, wrt=1)(x, n)

    for call in (lambda: relay.grad(scaled, wrt="n")(np.ones(3), 2), lambda: outer(np.ones(3), 2)):
        error = error_of(call)
        assert error.message == "there is no gradient with respect to n, which is Tensor[int32, ()]"
        assert error.labels[0].span.line == scaled._function.span.line
    with pytest.raises(FrontendError, match=r"use `gradient.w` of the gradient with respect to 'x'"):
        relay.grad(scaled, wrt="x.w")
    for wrong in (True, ("x", ("w",)), 1.0):
        with pytest.raises(FrontendError, match="wrt holds positions and names"):
            relay.grad(scaled, wrt=wrong)


def test_the_incoming_cotangent_has_the_type_of_the_result() -> None:
    @relay
    def doubled(x):
        return x * 2.0

    @relay
    def inside(x):
        return relay.grad(doubled, seedable=True)(x, 1.0)

    seeded = relay.grad(doubled, seedable=True)
    for call in (lambda: seeded(np.ones(3), np.float64(1.0)), lambda: inside(np.ones(3))):
        with pytest.raises(
            TypeMismatch, match=r"the incoming cotangent must be Tensor\[float64, \(3,\)\], found"
        ) as caught:
            call()
        assert "the type of the result" in caught.value.help
    with pytest.raises(TypeCheckError, match="needs a value for 'x'") as missing:
        seeded(np.ones(3))
    assert "last argument is the incoming cotangent" in missing.value.help


def test_parts_of_records_are_named_after_their_fields() -> None:
    @relay
    def layer(params, x):
        return relay.sum(relay.tanh(params["w"] @ x + params["b"]))

    text = relay.grad(layer, wrt="params").text({"w": np.ones((2, 2)), "b": np.ones(2)}, np.ones(2))
    assert "let %params_w: " in text and "let %d_params_w: " in text


def test_an_integer_from_a_branch_and_a_loop() -> None:
    @relay
    def counted(x):
        n = 0
        for i in range(3):
            y = x * float(i)
            if y > 1.0:
                n = n + int(y)
        return n

    error = error_of(lambda: relay.grad(counted)(np.float64(1.0)))
    first = counted._function.span.line
    assert error.labels[0].span.line == first + 5
    assert "x -> y" in error.notes[0]


def test_a_result_of_many_elements_proposes_a_sum_or_a_seed() -> None:
    @relay
    def doubled(x):
        y = x * 2.0
        return y

    error = error_of(lambda: relay.grad(doubled)(np.ones(3)))
    assert "a result with one element; the function returns Tensor[float64, (3,)]" in error.message
    assert "sum the result" in error.help
    assert "seedable=True" in error.help
    assert error.labels[0].span.line == doubled._function.span.line + 1


def test_inside_of_a_program_the_error_stands_at_grad() -> None:
    @relay
    def inner(x):
        return x * 2.0

    @relay
    def outer(x):
        return relay.sum(relay.grad(inner)(x))

    error = error_of(lambda: outer(np.ones(3)))
    assert error.span.line == outer._function.span.line + 1
    assert error.labels[0].span.line == inner._function.span.line + 1


def test_an_operator_without_a_gradient_names_the_path() -> None:
    name = "opaque_double"
    relay.register_op(relation=relay.Relation("T -> T", lambda s: s), no_gradient="it is a table", compute=lambda x: x)(
        named(name)
    )
    try:

        @relay
        def through(x):
            y = relay.sin(x)
            z = relay.opaque_double(y * y)
            return relay.sum(z)

        error = error_of(lambda: relay.grad(through)(np.ones(3)))
        assert error.message == "opaque_double has no gradient: it is a table"
        assert error.span.line == through._function.span.line + 2
        assert "x through y" in error.notes[0]
        assert "relay.stop_gradient(opaque_double(..))" in error.help

        @relay
        def in_rounds(x, n):
            for _ in range(n):
                x = relay.opaque_double(x)
            return relay.sum(x)

        error = error_of(lambda: relay.grad(in_rounds, wrt=0)(np.ones(3), 2))
        assert error.notes == ("the result depends on x, which opaque_double reads",)
        assert error.span.line == in_rounds._function.span.line + 2

        @relay
        def harmless(x):
            return relay.sum(x * relay.stop_gradient(relay.opaque_double(x)))

        np.testing.assert_allclose(relay.grad(harmless).interpret(np.ones(3)), 1.0)
        relay.grad(harmless).core(np.ones(3))  # it does not matter there
    finally:
        del relay.get_env()._operators[name]


def named(name: str):
    def function(x: relay.Tensor) -> relay.Tensor:
        """x. x: (T, s) -> (T, s)."""
        return x

    function.__name__ = function.__qualname__ = name
    return function


def test_a_run_time_order_of_differentiation_is_an_error() -> None:
    @relay
    def nth(x, n):
        f = relay.sin
        for _ in range(n):
            f = relay.grad(f)
        return f(x)

    error = error_of(lambda: nth(1.0, 3))
    assert error.message == "the order of differentiation depends on a run-time value"
    assert error.span.line == nth._function.span.line + 3


def test_wrong_parameters_are_named_at_the_function() -> None:
    with pytest.raises(FrontendError, match="there is no parameter 'c'") as caught:
        relay.grad(linear_loss, wrt="c")
    assert caught.value.span.line == linear_loss._function.span.line
    error = error_of(lambda: relay.grad(linear_loss, output=1)(*[np.ones(3)] * 4))
    assert "one result; there is no output 1" in error.message


def test_what_a_program_prints_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    @relay
    def noisy(x):
        y = x * x
        print("squared", y)
        return relay.sin(y) * x

    for run in (relay.grad(noisy), relay.grad(noisy).interpret, relay.grad(relay.grad(noisy))):
        run(np.float64(2.0))
        assert capsys.readouterr().out == "squared 4.0\n"


# ---- parts of gradients


def test_a_field_of_the_gradients_of_several_parameters() -> None:
    @relay
    def loss(p, x):
        return (p["w"] * x).sum()

    @relay
    def of_all(p, x):
        return relay.grad(loss)(p, x)["w"]

    @relay
    def by_name(p, x):
        value, g = relay.value_and_grad(loss)(p, x)
        return g["w"] * value

    @relay
    def as_attribute(p, x):
        g = relay.grad(loss)(p, x)
        return g.w

    @relay
    def of_chosen(p, x):
        g = relay.grad(lambda x, p: loss(p, x), wrt=(0, 1))(x, p)
        return g["w"]

    @relay
    def of_one(p, x):
        g = relay.grad(loss, wrt=0)(p, x)
        return g["w"]

    p, x = {"w": np.ones(3)}, np.ones(3)
    np.testing.assert_array_equal(of_one.interpret(p, x), x)
    for function, position, name in ((of_all, 0, "relay.grad(loss)(p, x)"), (by_name, 0, "g"), (of_chosen, 1, "g")):
        with pytest.raises(TypeCheckError, match="no key 'w': it is a tuple of 2, one for each parameter") as caught:
            function.interpret(p, x)
        assert caught.value.help == f"did you mean `wrt={position}`, or `{name}[{position}]`?"
    with pytest.raises(TypeCheckError, match="g has no attribute 'w': it is a tuple of 2, one for each") as caught:
        as_attribute.interpret(p, x)
    assert caught.value.help == "did you mean `wrt=0`, or `g[0]`?"


def test_a_field_of_a_tuple() -> None:
    @relay
    def of_tuple(x):
        t = x, x
        return t["w"]

    @relay
    def of_list(x):
        t = [x]
        return t["w"]

    @relay
    def of_pair(x):
        """The gradient with respect to one parameter, which is a tuple."""
        g = relay.grad(lambda t: t[0].sum() + t[1].sum())((x, x))
        return g["w"]

    for function, kind in ((of_tuple, "tuple of 2"), (of_list, "list of 1"), (of_pair, "tuple of 2")):
        with pytest.raises(TypeCheckError, match=f"no key 'w': it is a {kind}") as caught:
            function.interpret(np.ones(3))
        assert "parameter" not in caught.value.message


HELPERS = """
def two(x, y): return (x * y).sum()
def one(x): return (x * x).sum()
def double(x): return x * 2.0
def aux(x): return (x * x).sum(), {"n": x}
def loss(p, x): return (p["w"] * x).sum()
"""

WRONG_PARTS = (
    ("grad(two)(x, x)['w']", "relay.grad(two)(x, x) has no key 'w': it is a tuple of 2, one for each parameter"),
    ("grad(two)(x, x).sum()", "relay.grad(two)(x, x) has no attribute 'sum': it is a tuple of 2, one for each"),
    ("grad(two)(x, x)[2]", "index 2 is out of range for a tuple of length 2"),
    ("value_and_grad(two)(x, x)[1]['w']", "or `relay.value_and_grad(two)(x, x)[1][0]`?"),
    ("value_and_grad(one)([x][0])['w']", "relay.value_and_grad(one)([x][0]) has no key 'w': it is a tuple of 2"),
    ("grad(loss, wrt=0)(p, x)['v']", "the dict has no key 'v'"),
    ("grad(loss, wrt=0)(p, x).w", 'write ["w"]'),
    ("grad(loss, wrt='w')(p, x)", "wrt: there is no parameter 'w'"),
    ("grad(aux, has_aux=True)(x)['n']", "relay.grad(aux, has_aux=True)(x) has no key 'n': it is a tuple of 2"),
    ("grad(aux, has_aux=True)(x)[1]['m']", "the dict has no key 'm'"),
    ("jvp(double, (x,), (x,))['w']", "relay.jvp(double, (x,), (x,)) has no key 'w': it is a tuple of 2"),
    ("vjp(double, x)[1](x)['w']", "found the string 'w'"),
    ("vjp(double, x)(x)", "a tuple is not a function"),
    ("hessian(one)(x)['w']", "found the string 'w'"),
)


@pytest.mark.parametrize(("wrong", "text"), WRONG_PARTS)
def test_parts_that_results_of_derivatives_do_not_have(wrong: str, text: str) -> None:
    program = relay.from_source(f"{HELPERS}\ndef f(x, p):\n    return relay.{wrong}\n", {"relay": relay.relay})["f"]  # type: ignore[index]
    with pytest.raises(relay.errors.RelayError) as caught:
        program.typed(np.ones(3), {"w": np.ones(3)})
    assert text in str(caught.value) and "<relay>:9:" in str(caught.value)


def test_data_with_lists_of_floats_has_no_gradient() -> None:
    """Its gradient would lack them."""

    @relay.data
    class Rose:
        value: Tensor[Float64, ()]
        children: list[Rose]

    @relay.relay
    def total(p: Rose) -> Tensor[Float64, ()]:
        t = p.value
        for child in p.children:
            t = t + total(child)
        return t

    rose = Rose(2.0, [Rose(3.0, [])])
    assert_modes_raise(
        relay.grad(total),
        rose,
        error=DifferentiationError,
        match=r"Rose: the field children of Rose\n(.*\n)*.*relay.List",
    )
