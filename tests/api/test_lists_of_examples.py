"""`relay.vmap` over the elements of lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as Anything

import numpy as np
import pytest
from agreement import assert_close, assert_modes_agree, at_level

import relay
from relay import Any, Float32, Float64, Tensor
from relay.codegen.runtime.marshalling import ArgumentMarshaller


@relay
def attention(x, scale, w):
    return relay.softmax(x @ w @ x.T) @ x * scale


RAGGED = [np.random.default_rng(n).normal(size=(n, 3)) for n in (2, 4, 1)]
SCALES, WEIGHTS = np.array([1.0, 2.0, 0.5]), np.random.default_rng(9).normal(size=(3, 3))


def test_elements_of_a_list_may_differ_in_shape() -> None:
    """Their results are a list, or are stacked where they are alike."""
    whole = relay.vmap(attention, in_axes=("each", 0, None), out_axes="each")
    expected = [attention.interpret(x, s, WEIGHTS) for x, s in zip(RAGGED, SCALES, strict=True)]
    assert_modes_agree(whole, RAGGED, SCALES, WEIGHTS, expected=expected)
    sums = relay.vmap(relay(lambda x, y: (x.sum(axis=0), x * y)), in_axes="each", out_axes=(1, "each"))
    found, products = sums(RAGGED, RAGGED)
    assert_close(found, np.stack([x.sum(axis=0) for x in RAGGED], axis=1))
    for x, product in zip(RAGGED, products, strict=True):
        assert_close(product, x * x)


def test_gradients_of_elements_of_a_list() -> None:
    each = relay.vmap(relay.grad(relay(lambda x, s, w: attention(x, s, w).sum()), wrt=2), in_axes=("each", 0, None))
    gradients = relay.grad(relay(lambda x, s, w: attention(x, s, w).sum()), wrt=2)
    expected = np.stack([gradients.interpret(x, s, WEIGHTS) for x, s in zip(RAGGED, SCALES, strict=True)])
    assert_modes_agree(each, RAGGED, SCALES, WEIGHTS, expected=expected)


@relay
def lengths(xs: list[Tensor[Float64, (Any, 3)]]):
    return np.stack([x.sum() + len(x) for x in xs])


def test_the_first_list_may_be_empty() -> None:
    """The annotation says what its elements would be; it does not count as a program of its own."""
    for xs in ([], RAGGED):
        assert_modes_agree(lengths, xs, expected=np.array([x.sum() + len(x) for x in xs]))
    assert len(lengths.programs()) == 1


@relay
def statistics(x, w):
    return {"sums": (x @ w).sum(axis=0), "all": (x.sum(), (x * x).sum())}


@relay
def statistics_of(xs: list[Tensor[Float64, (Any, 3)]], w):
    return relay.vmap(statistics, in_axes=("each", None))(xs, w)


@relay
def both_gradients(xs: list[Tensor[Float64, (Any, 3)]], v, w):
    gradients = relay.grad(lambda x, v, w: (x @ w @ v).sum(), wrt=(1, 2))
    return relay.vmap(gradients, in_axes=("each", None, None))(xs, v, w)


def test_structures_of_results_are_stacked_by_their_parts() -> None:
    """As for examples along an axis; a list of any length may have no elements."""
    for xs in (RAGGED, RAGGED[:1], []):
        expected = np.array([(x @ WEIGHTS).sum(axis=0) for x in xs]).reshape(-1, 3)
        for whole in (statistics_of, relay.vmap(statistics, in_axes=("each", None))):
            if xs or whole is statistics_of:
                found = assert_modes_agree(whole, xs, WEIGHTS)
                assert_close(found["sums"], expected)
                assert_close(found["all"][0], np.array([x.sum() for x in xs]))
                assert_close(found["all"][1], np.array([(x * x).sum() for x in xs]))
    by_vector, by_matrix = assert_modes_agree(both_gradients, RAGGED, SCALES, WEIGHTS)
    assert_close(by_vector, np.stack([(x @ WEIGHTS).sum(axis=0) for x in RAGGED]))
    assert_close(by_matrix, np.stack([np.outer(x.sum(axis=0), SCALES) for x in RAGGED]))


def test_one_program_for_lists_of_arrays_of_any_size() -> None:
    assert_close(sums_of(RAGGED), np.stack([x.sum(axis=0) for x in RAGGED]))
    assert_close(sums_of(RAGGED[1:]), np.stack([x.sum(axis=0) for x in RAGGED[1:]]))
    assert len(sums_of.programs()) == 1


@relay
def sums_of(xs: list[Tensor[Float64, (Any, 3)]]):
    return relay.vmap(lambda x: x.sum(axis=0), in_axes="each")(xs)


@relay
def scores(xs: list[Tensor[Float64, (Any, 3)]], ys: list[Tensor[Float32, (Any, Any)]], w):
    rows = relay.vmap(lambda x: relay.softmax(x @ w).sum(axis=0), in_axes="each")(xs)
    return rows, relay.vmap(lambda y: y.sum(), in_axes="each")(ys)


@relay
def derivatives(xs: list[Tensor[Float64, (Any, 3)]], w):
    return relay.vmap(relay.grad(lambda w, x: np.tanh(x @ w).sum(), wrt=0), in_axes=(None, "each"))(w, xs)


@pytest.mark.parametrize("level", [0, 2])
def test_arrays_of_any_size_are_packed(monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    """They go into one block of memory, in a call that is like an earlier one, also where there are none."""
    random = np.random.default_rng(3)

    def given(sizes: Sequence[int]) -> tuple[Anything, ...]:
        ys = [random.normal(size=(k, n + 1)).astype(np.float32) for k, n in enumerate(sizes)]
        return [random.normal(size=(n, 3)) for n in sizes], ys, WEIGHTS

    whole, each = at_level(scores, level), at_level(derivatives, level)
    for _ in range(3):
        for run in (whole, lambda xs, ys, w: each(xs, w)):
            run(*given([2, 5]))

    def slow(*_: object) -> None:
        raise AssertionError

    for sizes in ([3, 1, 4], [8] * 9, [0, 2], [7]):
        xs, ys, w = given(sizes)
        expected, gradients = scores.interpret(xs, ys, w), derivatives.interpret(xs, w)
        with monkeypatch.context() as patch:
            patch.setattr(ArgumentMarshaller, "add", slow)
            found = whole(xs, ys, w)
            for one, other in zip(found, expected, strict=True):
                assert_close(one, other, rtol=1e-6)
            assert_close(each([x[::-1] for x in xs], w), gradients)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((RAGGED, SCALES[:2], WEIGHTS), {"in_axes": ("each", 0, None)}, "different numbers of examples"),
        ((RAGGED, SCALES, WEIGHTS), {"in_axes": ("each", 0, None)}, "cannot be stacked"),
        ((RAGGED, SCALES, WEIGHTS), {"in_axes": ("each", 0, None), "axis_size": 3}, "axis_size is for examples"),
        ((RAGGED, SCALES, WEIGHTS), {"in_axes": ("each", "split", None)}, "a number or None"),
        ((RAGGED[0][None], 1.0, WEIGHTS), {"in_axes": (0, None, None), "out_axes": "each"}, "out_axes"),
    ],
)
def test_lists_of_examples_that_are_refused(arguments: Anything, options: Anything, text: str) -> None:
    with pytest.raises((relay.RelayError, ValueError), match=text):
        relay.vmap(attention, **options)(*arguments)


LENGTHS = ((3, 5, 2), (4, 4, 1, 7), (2,), (6, 6), (9, 3))


def ragged(sizes: Sequence[int]) -> list[np.ndarray]:
    return [np.random.default_rng(n).normal(size=(n, 3)) for n in sizes]


@relay
def energy(x, w):
    return (attention(x, 1.0, w) ** 2).sum()


@relay
def mean_energy(xs, w):
    return relay.vmap(energy, in_axes=("each", None))(xs, w).mean()


def test_one_program_takes_all_lists_of_examples() -> None:
    """Of any length, and of arrays of any size along axes in which they have differed; without annotations."""
    whole = relay.vmap(energy, in_axes=("each", None))
    gradients = relay.vmap(relay.grad(energy, wrt=(0, 1)), in_axes=("each", None), out_axes=("each", 0))
    for sizes in LENGTHS:
        xs = ragged(sizes)
        assert_modes_agree(whole, xs, WEIGHTS, expected=np.array([energy(x, WEIGHTS) for x in xs]))
        of_examples, of_weights = gradients(xs, WEIGHTS)
        for x, a, b in zip(xs, of_examples, of_weights, strict=True):
            found = relay.grad(energy, wrt=(0, 1))(x, WEIGHTS)
            assert_close(a, found[0])
            assert_close(b, found[1])
    for function in (whole, gradients):
        assert [p.signature for p in function.programs()] == [
            "x: list[Tensor[float64, (Any, 3)]], w: Tensor[float64, (3, 3)]"
        ]
    assert whole.explain(ragged((5, 6)), WEIGHTS).program is not None


def test_functions_of_ragged_lists_have_one_program_from_the_second_length_on() -> None:
    derivative = relay.grad(mean_energy, wrt=1)
    for sizes in LENGTHS:
        xs = ragged(sizes)
        assert_close(mean_energy(xs, WEIGHTS), np.mean([energy(x, WEIGHTS) for x in xs]))
        expected = np.mean([relay.grad(energy, wrt=1)(x, WEIGHTS) for x in xs], axis=0)
        assert_close(derivative(xs, WEIGHTS), expected)
    for function in (mean_energy, derivative):
        assert len(function.programs()) == 2
        assert "xs: list[Tensor[float64, (Any, 3)]]" in function.programs()[1].signature


def test_arrays_of_one_size_keep_it_until_another_call_has_others() -> None:
    whole = relay.vmap(relay(lambda x: x.sum(axis=0)), in_axes="each")
    for sizes, program in (((4, 4), "(4, 3)"), ((5, 5, 5), "(Any, 3)"), ((4, 4, 4), "(Any, 3)")):
        assert_close(whole(ragged(sizes)), np.stack([x.sum(axis=0) for x in ragged(sizes)]))
        assert f"x: list[Tensor[float64, {program}]]" in whole.programs()[-1].signature
    assert len(whole.programs()) == 2


def test_a_program_that_needs_sizes_is_made_for_each(caplog: pytest.LogCaptureFixture) -> None:
    whole = relay.vmap(relay(lambda x: sum(tuple(x)).sum()), in_axes="each")
    for sizes in ((2, 3), (4,)):
        assert_close(whole(ragged(sizes)), np.array([x.sum() for x in ragged(sizes)]))
    assert len(whole.programs()) == 2
    assert "recompiling vmapped for every new length of its lists" in caplog.text
