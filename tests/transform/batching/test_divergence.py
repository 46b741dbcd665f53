"""Examples that take different ways: branches are partitioned, and loops are run by those that are still in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, leaves
from example_programs import loops_over_examples

import relay
from relay.transform.loops.vectorization import choices_of
from relay.transform.pipeline import Pipeline

pytestmark = pytest.mark.usefixtures("low_effort")

RNG = np.random.default_rng(5)
W, X, K = RNG.normal(size=(4, 4)), RNG.normal(size=(7, 4)), np.arange(7, dtype=np.int32)


@relay
def one_arm(w, x, k):  # type: ignore[no-untyped-def]
    return np.tanh(x @ w) if x.sum() > 0.0 else x


@relay
def three_arms(w, x, k):  # type: ignore[no-untyped-def]
    if k == 0:
        y = x @ w
    elif k < 4:
        y = np.exp(-(x @ w)) + k
    else:
        y = x
    return y


@relay
def nested_arms(w, x, k):  # type: ignore[no-untyped-def]
    if k > 1:
        y = x @ w
        y = y @ w if y.sum() > 0.0 else (x + y) @ w.T
    else:
        y = x
    return y


@relay
def loop_in_an_arm(w, x, k):  # type: ignore[no-untyped-def]
    y = x
    if x[0] > 0.0:
        for i in range(3):
            y = np.tanh(y @ w) * (i + 1)
    else:
        while y.sum() < 3.0:
            y = abs(y @ w) + 1.0
    return y


@relay
def several_results(w, x, k):  # type: ignore[no-untyped-def]
    if x[1] > 0.0:
        y, n, found, pair = x @ w, k, True, (x, x[0])
    else:
        y, n, found, pair = -x, k * 2, False, (x @ w, 0.0)
    return y, n, found, pair


@relay
def closures(w, x, k):  # type: ignore[no-untyped-def]
    def f(a):  # type: ignore[no-untyped-def]
        return np.tanh(a @ w + x)

    return f(f(x)) if k > 3 else f(-x)


@relay
def a_gap(w, x, k):  # type: ignore[no-untyped-def]
    """The arm that is not taken would fail, and has no finite derivative."""
    return np.sqrt(x @ w @ w * 0.0 + k - 2.0) if k > 2 else x * 0.0


@relay
def early_end(w, x, k):  # type: ignore[no-untyped-def]
    n = 0
    while x.sum() > 0.1 and n < 20:
        x = np.tanh(x @ w)
        n += 1
    return x, n


@relay
def own_count(w, x, k):  # type: ignore[no-untyped-def]
    for i in range(k):
        x = np.tanh(x @ w) + i
        if x.sum() > 6.0:
            break
    return x


@relay
def skipped_rounds(w, x, k):  # type: ignore[no-untyped-def]
    total = x
    for i in range(k):
        if i == 2:
            continue
        total = total + np.sin(total @ w)
    return total


@relay
def all_alike(w, x, k):  # type: ignore[no-untyped-def]
    i = 0
    while i < 3:
        x = np.tanh(x @ w)
        i += 1
    return x


@relay
def loop_in_a_loop(w, x, k):  # type: ignore[no-untyped-def]
    n = 0
    while n < k:
        y = x @ w
        while abs(y).sum() > 2.0:
            y = 0.5 * np.tanh(y @ w)
        x = x + 0.1 * y
        n += 2
    return x


PROGRAMS = [
    one_arm,
    three_arms,
    nested_arms,
    loop_in_an_arm,
    several_results,
    closures,
    a_gap,
    early_end,
    own_count,
    skipped_rounds,
    all_alike,
    loop_in_a_loop,
]


def _batched(f: relay.RelayFunction, **options: Any) -> relay.RelayFunction:
    return relay.vmap(f, (None, 0, 0), **options)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values(f: relay.RelayFunction) -> None:
    batch = _batched(f)
    assert loops_over_examples(batch, W, X, K) == 0
    assert_agree(batch(W, X, K), batch.interpret(W, X, K), rtol=1e-9)


def test_functions_that_a_branch_chooses() -> None:
    @relay
    def chosen(w, x, k):  # type: ignore[no-untyped-def]
        f = (lambda a: np.tanh(a @ w)) if k > 3 else (lambda a: a @ w @ w)
        return f(x)

    assert_agree(_batched(chosen)(W, X, K), _batched(chosen).interpret(W, X, K), rtol=1e-9)


def test_arms_without_examples() -> None:
    batch = _batched(three_arms)
    for few in ([0], [1, 1], [6, 5, 6]):
        assert_agree(batch(W, X[few], K[few]), batch.interpret(W, X[few], K[few]), rtol=1e-9)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(f: relay.RelayFunction) -> None:
    batch = _batched(f)

    @relay
    def loss(w, x, k):  # type: ignore[no-untyped-def]
        return sum([(np.asarray(leaf) ** 2).sum() for leaf in relay.tree.leaves(batch(w, x, k))])

    gradient = relay.grad(loss, wrt=("w", "x"))
    for found, expected in zip(leaves(gradient(W, X, K)), leaves(gradient.interpret(W, X, K)), strict=True):
        assert_agree(found, expected, rtol=1e-7, atol=1e-9)


def test_second_derivatives() -> None:
    @relay
    def loss(x):  # type: ignore[no-untyped-def]
        return (relay.vmap(one_arm, (None, 0, None))(W, x, 0) ** 4).sum()

    found, expected = relay.hessian(loss)(X[:2]), relay.hessian(loss).interpret(X[:2])
    assert_agree(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", [one_arm, early_end], ids=lambda f: f.__name__)
def test_two_axes(f: relay.RelayFunction) -> None:
    twice = relay.vmap(_batched(f), (None, 0, None))
    for count in (2, 9):  # fewer and more than the inner axis has
        x = RNG.normal(size=(count, 7, 4))
        assert_agree(twice(W, x, K), twice.interpret(W, x, K), rtol=1e-9)
    assert loops_over_examples(twice, W, x, K) == 1


def test_negative_zeros_stay() -> None:
    @relay
    def scaled(x, w):  # type: ignore[no-untyped-def]
        return (x @ w) * -0.0 if x[0] > 0.0 else x

    x = np.array([[1.0, 2.0], [-1.0, -0.0]])
    assert np.signbit(relay.vmap(scaled, (0, None))(x, np.eye(2))).all()


def test_rows_of_arrays_that_only_some_examples_have() -> None:
    @relay
    def smoothed(x, w):  # type: ignore[no-untyped-def]
        out = np.zeros(x.shape)
        for i in range(x.shape[0]):
            if i > 0:
                out[i] = (x[i - 1] + x[i]) @ w
            elif x[i].sum() > 100.0:
                out[i] = x[i] @ w
        return out

    assert relay.check_gradient(smoothed, X, W) < 1e-6
    assert_agree(smoothed(X, W), smoothed.interpret(X, W), rtol=1e-9)


def test_assertions_of_an_arm_are_of_the_examples_that_take_it() -> None:
    @relay
    def checked(w, x, k):  # type: ignore[no-untyped-def]
        if k > 2:
            assert k < 6, "too many"
            return x @ w
        return x

    batch = _batched(checked)
    assert loops_over_examples(batch, W, X, K) == 0
    assert_agree(batch(W, X[:6], K[:6]), batch.interpret(W, X[:6], K[:6]))
    with pytest.raises(relay.ExecutionError, match="too many"):
        batch(W, X, K)


def test_effects_come_in_the_order_of_examples(capsys: pytest.CaptureFixture[str]) -> None:
    @relay
    def printed(w, x, k):  # type: ignore[no-untyped-def]
        if k % 2 == 0:
            print("even", k)
            return x @ w
        print("odd", k)
        return x

    for run in (_batched(printed), _batched(printed).interpret):
        run(W, X[:4], K[:4])
        assert capsys.readouterr().out == "even 0\nodd 1\neven 2\nodd 3\n"


def test_draws_have_a_loop_of_their_own() -> None:
    @relay
    def noisy(w, x, key):  # type: ignore[no-untyped-def]
        return np.tanh(x @ w) * relay.random.uniform(key, (4,), dtype=relay.Float64)

    batch, keys = _batched(noisy), np.asarray(relay.random.split(relay.random.key(1), 7))
    assert loops_over_examples(batch, W, X, keys) == 0
    assert_agree(batch(W, X, keys), batch.interpret(W, X, keys), rtol=1e-9)


# ---- what is chosen


def _texts(f: relay.RelayFunction, *arguments: Any) -> list[str]:
    pipeline = Pipeline.for_level(2, ("lower", "prepare"))
    pipeline(f.typed(*arguments))
    given = next(record.given for record in pipeline.records if record.name.startswith("vectorize_loops"))
    return [choice.text for choice in choices_of(given)]


@relay
def cheap(w, x, k):  # type: ignore[no-untyped-def]
    return x * 2.0 if k > 2 else -x


@relay
def elementwise(w, x, k):  # type: ignore[no-untyped-def]
    while np.outer(x, x).sum() > 1.0:
        x = 0.5 * np.tanh(x)
    return x


PARTITION = "each arm of a branch runs on the rounds that take it"
SELECT = "both arms of a branch are computed in all rounds, and one is selected"
ACTIVE = "the loop while runs for the rounds that are still in it"
CHOICES: list[tuple[relay.RelayFunction, Any, str]] = [
    (cheap, None, SELECT),
    (cheap, "partition", PARTITION),
    (cheap, "loop", 'the loop for_index__ stays: divergence="loop" asks for it'),
    (one_arm, None, PARTITION),
    (one_arm, "select", SELECT),
    (early_end, None, ACTIVE),
    (elementwise, "partition", ACTIVE),
    (elementwise, "loop", 'the loop for_index__ stays: divergence="loop" asks for it'),
]


@pytest.mark.parametrize(("f", "divergence", "text"), CHOICES)
def test_choices(f: relay.RelayFunction, divergence: Any, text: str) -> None:
    batch = _batched(f, divergence=divergence)
    assert text in _texts(batch, W, X, K)
    assert_agree(batch(W, X, K), batch.interpret(W, X, K), rtol=1e-9)


def test_what_is_asked_for_holds_where_examples_have_captured_variables() -> None:
    @relay
    def captured(w, x, k):  # type: ignore[no-untyped-def]
        def now():  # type: ignore[no-untyped-def]
            return x

        while abs(x).sum() > 1.0:
            x = 0.5 * np.tanh(x)
        return now()

    assert loops_over_examples(_batched(captured), W, X, K) == 1
    assert loops_over_examples(_batched(captured, divergence="partition"), W, X, K) == 0


def test_loops_of_elementwise_operators_stay() -> None:
    (text,) = [t for t in _texts(_batched(elementwise), W, X, K) if "for_index__" in t]
    assert text.endswith("a loop inside runs a number of rounds that differs, and shares no operand of a product")


def test_what_cannot_be_done() -> None:
    @relay
    def printed(w, x, k):  # type: ignore[no-untyped-def]
        print(k)
        return x

    with pytest.raises(relay.CompileError, match="there is no select for that") as caught:
        _batched(early_end, divergence="select")(W, X, K)
    assert "while x.sum() > 0.1 and n < 20:" in str(caught.value)
    with pytest.raises(relay.CompileError, match="cannot batch the examples: an example has an effect") as caught:
        _batched(printed, divergence="partition")(W, X, K)
    assert "print(k)" in str(caught.value)
    with pytest.raises(relay.TypeCheckError, match="divergence is None or one of 'select', 'partition', 'loop'"):
        _batched(cheap, divergence="mask")
