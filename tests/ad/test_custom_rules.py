"""Functions that say themselves how they are differentiated: `def_gradient` and `checkpoint`."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close, assert_modes_agree, modes

import relay
from relay.errors import FrontendError, TypeCheckError
from relay.ir.expr import Function, OpCall
from relay.ir.traverse import walk
from relay.ir.validation.check import check

X = np.array([0.5, -1.0, 2.0])


def operations(module, name):
    bodies = [f.body for f in module.functions.values() if isinstance(f, Function)]
    return sum(isinstance(b.value, OpCall) and b.value.operator == name for body in bodies for b in walk(body))


def softplus():
    @relay
    def softplus(x):
        return relay.log(1.0 + relay.exp(x))

    @softplus.def_gradient
    def softplus_gradient(saved, seed):
        (x,) = saved
        return seed * relay.sigmoid(x)

    return softplus


def loss_of(f):
    @relay
    def loss(x):
        return relay.sum(f(x) * x)

    return loss


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- custom gradients


def test_the_rule_is_used_and_differentiated():
    loss = loss_of(softplus())
    expected = np.log1p(np.exp(X)) + X * sigmoid(X)
    assert_modes_agree(relay.grad(loss), X, expected=expected)
    assert operations(relay.grad(loss).core(X), "sigmoid") == 1
    s = sigmoid(X)
    second = np.diag(2 * s + X * s * (1 - s))
    assert_modes_agree(relay.hessian(loss), X, expected=second)
    assert_close(relay.jvp(loss, (X,), (np.ones(3),))[1], np.sum(expected))


def test_a_rule_that_lies_is_believed_on_both_executors():
    @relay
    def honest(x, n):
        return x * x * float(n), x

    @honest.def_gradient
    def seven(saved, seed):
        x, _ = saved
        first, second = seed
        return 7.0 * first + 5.0 * second * x, None

    @relay
    def loss(x):
        y, z = honest(x, 3)
        return relay.sum(y) + relay.sum(z)

    found = assert_modes_agree(relay.grad(loss), X)
    assert_close(found, 7 + 5 * X)
    assert_close(loss(X), np.sum(3 * X * X + X))


def test_the_gradient_of_the_function_itself():
    f = softplus()
    assert_close(relay.vjp(f, X)[1](np.ones(3)), sigmoid(X))
    assert_close(relay.grad(f)(np.float64(0.5)), sigmoid(0.5))
    assert_close(relay.grad(relay.grad(f))(np.float64(0.5)), sigmoid(0.5) * (1 - sigmoid(0.5)))


def saving():
    def forward(a, b):
        e = relay.exp(a)
        return e * b, (e, b)

    @relay
    def scaled(a, b):
        return relay.exp(a) * b

    @scaled.def_gradient(saving=forward)
    def scaled_gradient(saved, seed):
        e, b = saved
        return seed * e * b, seed * e

    return scaled


def test_what_is_saved_is_not_computed_again():
    scaled = saving()

    @relay
    def loss(a, b):
        return relay.sum(scaled(a, b))

    assert_modes_agree(relay.grad(loss), X, 2 * X, expected=(np.exp(X) * 2 * X, np.exp(X)))
    assert operations(relay.grad(loss).core(X, X), "exp") == 1
    (_, ab), (ba, bb) = relay.hessian(loss)(X, X)
    assert_close(ab, np.diag(np.exp(X)))
    assert_close(ba, ab)
    assert_close(bb, np.zeros((3, 3)))


def test_a_rule_in_a_loop_a_branch_and_a_closure():
    scaled = saving()

    @relay
    def program(x, n):
        f = (lambda v: scaled(v, x)) if n > 2 else (lambda v: scaled(x, v))
        y = x
        for _ in range(n):
            y = relay.tanh(f(y))
        return relay.sum(y)

    for n in (2, 3):
        assert relay.check_gradient(lambda_free(program, n), X) < 1e-7
        first = relay.grad(program, wrt=0)
        assert_modes_agree(first, X, n)
        assert_modes_agree(relay.jacobian(first, wrt=0), X, n)


def lambda_free(program, n):
    @relay
    def fixed(x):
        return program(x, n)

    return fixed


def test_a_recursive_function_with_a_rule():
    @relay
    def power(x, n: relay.Tensor[relay.Int32, ()]) -> relay.Tensor[relay.Float64, ()]:
        if n == 0:
            return 1.0
        return x * power(x, n - 1)

    @power.def_gradient
    def power_gradient(saved, seed):
        x, n = saved
        return seed * float(n) * power(x, n - 1), None

    found = relay.grad(power, wrt=0)
    assert_modes_agree(found, np.float64(2.0), 5, expected=80.0)
    assert_close(relay.grad(found, wrt=0)(np.float64(2.0), 5), 160.0)


def test_the_text_of_a_rule_is_read_back():
    typed = relay.grad(loss_of(saving_one())).typed(X)
    check(typed, "typed")
    text = relay.to_text(typed)
    assert " gradient @" in text
    assert " saving @" in text
    again = relay.parse(text)
    assert relay.to_text(again) == text
    assert again.alpha_hash() == typed.alpha_hash()
    assert typed.alpha_hash() != relay.parse(text.replace(" gradient @backward saving @forward", "")).alpha_hash()


def saving_one():
    def forward(a):
        e = relay.exp(a)
        return e, e

    @relay
    def exponential(a):
        return relay.exp(a)

    @exponential.def_gradient(saving=forward)
    def backward(saved, seed):
        return seed * saved

    return exponential


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        ("def g(saved, seed):\n    return seed", r"the result of g must be \(Tensor\[float64, \(3,\)\], None\)"),
        ("def g(saved, seed):\n    return relay.sum(seed), None", r"the result of g must be .* found"),
        ("def g(saved, seed):\n    return seed * saved, None", "multiply|`\\*`"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(gradient, message):
    made = relay.from_source(gradient, {"relay": relay}, "<rule>")

    @relay
    def f(x, n):
        return x * float(n)

    f.def_gradient(made)
    with pytest.raises(TypeCheckError, match=message) as caught:
        f(X, 2)  # also where nobody asks for the gradient
    assert caught.value.span.source.filename == "<rule>"


def test_rules_are_defined_before_the_first_call():
    @relay
    def f(x):
        return x * x

    @relay
    def g(x):
        return x * x

    f(X)
    relay.grad(g)
    for function in (f, g):
        with pytest.raises(FrontendError, match="before the first call or derivative"):
            function.def_gradient(lambda saved, seed: seed)


def test_a_rule_takes_saved_and_seed():
    @relay
    def f(x):
        return x * x

    with pytest.raises(FrontendError, match="g takes 1 argument, not 2"):

        @f.def_gradient
        def g(seed):
            return seed


# ---- checkpoints


def test_a_checkpoint_computes_again():
    @relay
    def block(x, w):
        return relay.tanh(relay.exp(x) * w)

    @relay
    def plain(x, w):
        return relay.sum(block(block(x, w), w))

    @relay
    def checkpointed(x, w):
        f = relay.checkpoint(block)
        return relay.sum(f(f(x, w), w))

    for found, expected in zip(relay.grad(checkpointed)(X, X), relay.grad(plain)(X, X), strict=True):
        assert_close(found, expected)
    assert_close(relay.hessian(checkpointed, wrt=0)(X, X), relay.hessian(plain, wrt=0)(X, X))
    assert operations(relay.grad(plain).core(X, X), "exp") == 2
    assert operations(relay.value_and_grad(plain).core(X, X), "exp") == 2
    assert operations(relay.value_and_grad(checkpointed).core(X, X), "exp") == 4


def test_a_checkpoint_outside_of_programs():
    f = relay.checkpoint(softplus())
    assert_close(f(X), np.log1p(np.exp(X)))
    assert_close(relay.vjp(f, X)[1](np.ones(3)), sigmoid(X))


@relay
def steps(x, w):
    for _ in range(8):
        x = relay.sin(relay.exp(relay.tanh(x * w)) + w)
    return relay.sum(x)


@relay
def checkpointed_steps(x, w):
    f = relay.checkpoint(lambda y: relay.sin(relay.exp(relay.tanh(y * w)) + w))
    for _ in range(8):
        x = f(x)
    return relay.sum(x)


def taped(function, *arguments):
    """The types of the buffers that take a program's tapes, in its entry."""
    body = function.core(*arguments).main.body
    return [str(b.targets[0].type) for b in walk(body) if isinstance(b.value, OpCall) and b.value.operator == "undef"]


def test_a_checkpoint_in_a_loop_tapes_its_argument_only():
    for found, expected in zip(relay.grad(checkpointed_steps)(X, X), relay.grad(steps)(X, X), strict=True):
        assert_close(found, expected)
    assert taped(relay.grad(checkpointed_steps), X, X) == ["Tensor[float64, (8, 3)]"]  # and not w, from outside
    assert len(taped(relay.grad(steps), X, X)) > 2


def test_a_checkpoint_of_a_recursion_that_prints(capsys):
    @relay
    def power(x, n):
        print(n)
        if n == 0:
            return 1.0
        return x * power(x, n - 1)

    @relay
    def f(x):
        return relay.checkpoint(lambda v: power(v, 2) * relay.sin(v))(x)

    expected = 2 * 0.5 * np.sin(0.5) + 0.25 * np.cos(0.5)
    for run in modes(relay.grad(f)):
        np.testing.assert_allclose(run(np.float64(0.5)), expected)
        assert capsys.readouterr().out == "2\n1\n0\n"


def test_what_a_checkpoint_prints_is_printed_once(capsys):
    @relay
    def noisy(x):
        def inner(y):
            print("sum", relay.sum(y))
            return relay.sin(y) * y

        return relay.sum(relay.checkpoint(inner)(x))

    relay.grad(noisy)(np.zeros(2))
    assert capsys.readouterr().out == "sum 0.0\n"


def test_a_checkpoint_may_use_references_from_outside():
    @relay
    def by_capture(x):
        r, total, calls = relay.ref(x), 0.0, 0

        def add(y):
            nonlocal total, calls
            r.value = r.value * y
            total = total + r.value
            calls = calls + 1
            return r.value + y * total

        add = relay.checkpoint(add)
        for _ in range(3):
            x = relay.sin(add(x) + r.value)
        return x * total * float(calls)

    @relay
    def by_arguments(x):
        r, s = relay.ref(x), relay.ref(x * x)
        swap = relay.checkpoint(swapped)
        return swap(r, s, x) * r.value + s.value

    @relay
    def read_only(x):
        r = relay.ref(x)
        f = relay.checkpoint(lambda y: relay.sin(r.value) * y)
        a = f(x)
        r.value = r.value * 2.0
        return a * f(x)

    for program in (by_capture, by_arguments, read_only):
        x = np.float64(0.7)
        np.testing.assert_allclose(relay.grad(program)(x), relay.grad(program).interpret(x))
        assert relay.check_gradient(program, x) < 1e-7
        assert relay.check_gradient(relay.grad(program), x) < 1e-7


@relay
def swapped(r, s, x):
    before = r.value
    r.value = s.value * x
    s.value = before * relay.sin(x)
    return r.value * s.value


def test_a_checkpoint_writes_a_counter_once():
    @relay
    def counted(x):
        calls = 0

        def f(v):
            nonlocal calls
            calls = calls + 1
            return relay.sin(v) * v

        slope = relay.grad(lambda v: relay.checkpoint(f)(v))(x)
        return slope, calls

    assert_modes_agree(counted, np.float64(0.5), expected=(np.sin(0.5) + 0.5 * np.cos(0.5), 1))


def test_a_checkpoint_whose_references_may_be_one_writes_once():
    @relay
    def aliased(x):
        r = relay.ref(x)
        s = relay.ref(x * x)
        t = r if x > 0.0 else s
        return relay.checkpoint(swapped)(r, t, x) + r.value

    @relay
    def of_lists(x):
        found = [x]

        def f(v):
            found.append(v * v)
            return found[-1] * v

        for _ in range(3):
            x = relay.checkpoint(f)(x)
        return x + found[1] * float(len(found))

    for program in (aliased, of_lists):
        x = np.float64(0.7)
        np.testing.assert_allclose(relay.grad(program)(x), relay.grad(program).interpret(x))
        assert relay.check_gradient(program, x) < 1e-7
        assert relay.check_gradient(relay.grad(program), x) < 1e-7


def test_the_text_of_a_checkpoint_is_read_back():
    typed = checkpointed_steps.typed(X, X)
    text = relay.to_text(typed)
    assert " recompute {" in text
    assert relay.to_text(relay.parse(text)) == text


# ---- arguments that specialize


def powers(x, n, *, scale=1.0):
    return x**n * scale


def of_powers(saved, seed):
    x, n, scale = saved
    return float(n) * x ** (n - 1) * scale * seed, None, None


def test_a_gradient_gets_the_numbers_that_specialize_the_function():
    f = relay(powers, static_argnames=("n",))
    f.def_gradient(of_powers)
    x = np.float64(2.0)
    gradient, *rest = assert_modes_agree(relay.grad(f), x, 3)
    assert_close(gradient, 12.0)
    assert rest == [None, None]
    assert_close(relay.grad(relay.grad(f, wrt=0), wrt=0)(x, 3), 12.0)
    with pytest.raises(TypeCheckError, match=r"the result of of_powers must be"):
        relay.grad(f, wrt=0)(x, 3, scale=np.float64(2.0))  # which has a gradient then

    wrong = relay(powers, static_argnames=("n",))
    wrong.def_gradient(lambda saved, seed: (seed, seed, None))
    with pytest.raises(Exception, match="n specializes the function here: it has no gradient"):
        relay.grad(wrong, wrt=0)(x, 3)


def in_rows(x, rows=2):
    return (x.reshape(rows, x.shape[0] // rows).sum(0) ** 2).sum()


def test_a_number_specializes_the_function_that_a_transformation_makes():
    f = relay(in_rows)
    g = relay(lambda x: relay.jacobian(f, wrt=0)(x, 2))
    x = np.arange(4.0)
    assert_close(g(x), [4.0, 8.0, 4.0, 8.0])


def chosen(x, mode):
    return x * x if mode == "square" else x * x * x


def kept(x, mode):
    return (x * x, 2.0 * x) if mode == "square" else (x * x * x, 3.0 * x * x)


def test_what_is_saved_may_depend_on_strings():
    f = relay(chosen, static_argnames=("mode",))
    f.def_gradient(lambda saved, seed: (saved * seed, None), saving=kept)
    x = np.float64(3.0)
    for mode, first, second in (("square", 6.0, 2.0), ("cube", 27.0, 18.0)):
        assert_close(relay.grad(f, wrt=0)(x, mode), first)
        assert_close(relay.grad(relay.grad(f, wrt=0), wrt=0)(x, mode), second)
    g = relay(chosen, static_argnames=("mode",))
    g.def_gradient(lambda saved, seed: (seed, None))
    with pytest.raises(TypeCheckError, match="mode is a compile-time value"):
        relay.grad(g, wrt=0)(x, "cube")
