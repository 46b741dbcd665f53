"""Types of functions whose calls choose among arms and results at compile time: by ranks, structures, None, lengths."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as R
from relay import relay
from relay.text.type_parser import parse_type


@relay
def total(x):
    if x.ndim == 0:
        return x
    return total(x.sum(axis=0))


@relay
def halved(x):
    if x.shape[0] <= 1:
        return x.sum()
    return halved(x[: x.shape[0] // 2]) + halved(x[x.shape[0] // 2 :])


@relay
def rotated(x):
    if len(x) < 2:
        return x
    return R.concatenate((rotated(x[1:]), x[:1]))


@relay
def last(x):
    return x if len(x) == 1 else last(x[1:])


@relay
def folded(xs):
    if len(xs) == 0:
        return 0.0
    return xs[0] + folded(xs[1:])


@relay
def leaf(t):
    if isinstance(t, tuple):
        first, *_ = t
        return leaf(first)
    return t


@relay
def scaled(x, scale=None):
    return x if scale is None else x * scale


@relay
def reduced(x, mode="none"):
    if mode == "sum":
        return x.sum()
    if mode == "rows":
        return x.sum(axis=0)
    return x


@relay
def in_single(x):
    if x.dtype == R.Float64:
        return x.astype(R.Float32)
    return x


@relay
def paired(t):
    match t:
        case (a, b):
            return a * b
        case (a, b, c):
            return a + b + c
        case {"x": a}:
            return a
        case 0:
            return -1.0
        case _:
            return t


@relay
def advanced(x, step, rounds):
    return x if rounds == 0 else advanced(x + step, step, rounds - 1)


@relay
def dropped(x, rounds):
    return x if rounds == 0 else dropped(x[1:], rounds - 1)


TYPES = [
    (total, "-> either(Tensor[bt, s1], total(Tensor[bt, reduce(s1, axis=0)]))"),
    (halved, "-> Tensor[bt, ()] where"),
    (rotated, "-> either(Tensor[bt, s1], Tensor[bt3, concatenate(s3, s2)]) where"),
    (last, '-> either(Tensor[bt, s1], last(index(Tensor[bt, s1], at="1:"))) where'),
    (leaf, "-> either(leaf("),
    (scaled, "-> either(Tensor[bt, s1], Tensor[bt, broadcast(s1, s2)])"),
    (reduced, "-> either(Tensor[bt, ()], Tensor[bt, reduce(s1, axis=0)], Tensor[bt, s1])"),
    (in_single, "-> either(Tensor[float32, s1], Tensor[bt, s1])"),
    (paired, "forall (A: Type). fn(A) -> match(A, 0)"),
    (advanced, "-> Tensor[bt, s1] where broadcast(s1, s2) == s1"),
    (dropped, '-> A where index(A, at="1:") == A'),
]


@pytest.mark.parametrize(("function", "text"), TYPES, ids=lambda v: getattr(v, "__name__", ""))
def test_a_type_says_no_more_than_what_every_call_finds(function, text):  # type: ignore[no-untyped-def]
    assert text in str(function.type)
    assert str(parse_type(str(function.type))) == str(function.type)


def test_calls_choose() -> None:
    x = np.arange(6.0).reshape(3, 2)
    assert total.interpret(x) == 15.0
    assert halved.interpret(x[:, 0]) == 6.0
    assert np.array_equal(rotated.interpret(x[:, 0]), [4.0, 2.0, 0.0])
    assert np.array_equal(last.interpret(x), x[2:])
    assert folded.interpret((1.0, 2.0, 3.5)) == 6.5
    assert leaf.interpret(((np.float64(3.0), 1.0), 2.0)) == 3.0
    assert np.array_equal(scaled.interpret(x), x)
    assert np.array_equal(scaled.interpret(x, 2.0), 2.0 * x)
    assert reduced.interpret(x, "sum") == 15.0
    assert np.array_equal(reduced.interpret(x, "rows"), [6.0, 9.0])
    assert np.array_equal(reduced.interpret(x), x)
    assert in_single.interpret(x).dtype == "float32"


def test_a_match_takes_the_case_for_the_structure_of_a_call() -> None:
    assert paired.interpret((2.0, 3.0)) == 6.0
    assert paired.interpret((2.0, 3.0, 4.0)) == 9.0
    assert paired.interpret({"x": 5.0, "y": 1.0}) == 5.0
    assert paired.interpret(0.0) == -1.0
    assert paired.interpret(7.0) == 7.0
    assert len(paired.interpret((1.0, 2.0, 3.0, 4.0))) == 4


def test_one_mistake_is_found_whichever_arm_a_call_takes() -> None:
    @relay
    def wrong(x):  # type: ignore[no-untyped-def]
        if x.ndim == 1:
            return x
        return R.zeros((2, 3)) @ R.zeros((4,)) + x

    with pytest.raises(R.ShapeError, match="cannot be multiplied"):
        _ = wrong.type


def test_many_functions_in_one_reference() -> None:
    lines = "".join(f"    r.value = lambda v: v * {k}.0 + r0\n" for k in range(400))
    f = R.from_source(f"def f(x, r0):\n    r = relay.ref(lambda v: v)\n{lines}    return r.value(x)\n", {"relay": R})
    assert f.interpret(2.0, 1.0) == 2.0 * 399.0 + 1.0  # type: ignore[union-attr]


@relay
def applied(x, function=None):
    chosen = function if function is not None else (lambda v: v)
    return chosen(x)


@relay
def by_option(x, options=None):
    options = {"scale": 1.0} if options is None else options
    return x * options["scale"]


def test_functions_and_options_that_are_left_out() -> None:
    assert "either(A2, fn(A4) -> A4) == fn(A) -> A3" in str(applied.type)
    assert "broadcast(s1, s3)" in str(by_option.type)
    assert "== Tensor[bt, s3]" in str(by_option.type)
    for function in (applied, by_option):
        assert str(parse_type(str(function.type))) == str(function.type)
    assert applied.interpret(2.0) == 2.0
    assert applied.interpret(0.0, R.cos) == 1.0
    assert by_option.interpret(3.0, {"scale": 2.0}) == 6.0


@relay
def leaving_in_the_first_round(x):
    found = None
    while True:
        if x > 0.0:
            if found is None:
                return x * 2.0
            found = found + 1.0
        else:
            if found is None:
                return x
            found = found - 1.0


def test_a_round_that_leaves_on_all_paths_has_no_end() -> None:
    assert assert_modes_agree(leaving_in_the_first_round, 3.0) == 6.0
    assert assert_modes_agree(leaving_in_the_first_round, -3.0) == -3.0
