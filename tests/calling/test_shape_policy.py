"""Which program a call runs: one for its very sizes first, then one for all sizes that occur."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as R
from relay import Tensor, relay
from relay.errors import TypeCheckError, TypeMismatch
from relay.ir.sizes.extents import symbolic_dims
from relay.typecheck.dims import constant_dim
from relay.typecheck.relations import same_shape


def sizes(function: Any, *arguments: Any) -> list[str]:
    """The symbolic sizes of the program that interprets a call."""
    lowered = function.lower(*arguments)
    return [str(dim) for dim in symbolic_dims(lowered.typed)]


def rows(n: int, m: int = 3) -> np.ndarray:
    return np.arange(n * m, dtype=np.float32).reshape(n, m)


def test_axes_that_varied_are_symbolic() -> None:
    @relay
    def f(x, w):
        return (x @ w).sum() / x.shape[0]

    w = np.ones(3, np.float32)
    assert sizes(f, rows(2), w) == []
    assert sizes(f, rows(5), w) == ["x_0"]
    program = f.lower(rows(5), w).typed
    for n in (3, 7, 100):
        assert f.lower(rows(n), w).typed is program
        assert f.interpret(rows(n), w) == pytest.approx(rows(n).sum() / n)
    assert sizes(f, rows(2), w) == []  # the exact program comes first
    assert sizes(f, rows(4, 2), np.ones(2, np.float32)) == ["x_0", "x_1"]


def test_static_sizes_are_compiled_for_each_size() -> None:
    @relay(dynamic=False)
    def f(x, rows):
        return x.sum() + sum(row.sum() for row in rows)

    for n in (2, 5, 3):
        arguments = rows(n), [rows(2)] * n
        assert sizes(f, *arguments) == []
        assert f.interpret(*arguments) == f(*arguments) == rows(n).sum() + 15 * n
    assert sizes(R.grad(f), *arguments) == []
    with pytest.raises(R.CompileError, match="dynamic is 'auto'"):
        relay(dynamic="auto")(lambda x: x)


def test_sizes_0_and_1_have_their_own_programs() -> None:
    @relay
    def f(x, y):
        return x + y

    y = np.ones(5, np.float32)
    for n in (5, 1, 0):
        if n:
            assert f.interpret(np.ones(n, np.float32), y).shape == (5,)
    with pytest.raises(R.ShapeError, match=r"\(3,\) and \(5,\) cannot be broadcast"):
        f.interpret(np.ones(3, np.float32), y)


def test_a_condition_on_a_size_is_assumed_and_said(caplog: pytest.LogCaptureFixture) -> None:
    @relay
    def f(x):
        if x.shape[0] > 3:
            return x[:3]
        return x

    f.interpret(rows(2))
    f.interpret(rows(5))
    assert f.interpret(rows(9)).shape == (3, 3)
    with caplog.at_level(logging.INFO, "relay.compile"):
        assert f.interpret(rows(3)).shape == (3, 3)
    (refused,) = [r.getMessage() for r in caplog.records if "does not apply" in r.getMessage()]
    assert "the program of f for sizes x_0 does not apply: the program assumes x_0 >= 4 (at " in refused
    assert sum(bool(p.guards) for p in f.programs()) == 2


def test_a_number_that_is_needed_is_said(caplog: pytest.LogCaptureFixture) -> None:
    @relay
    def f(x):
        return R.stack([row * 2.0 for row in (*x,)])

    f.interpret(rows(2))
    with caplog.at_level(logging.INFO, "relay.compile"):
        assert f.interpret(rows(4)).shape == (4, 3)
    assert "f: the size x_0 is 4: its value is needed, at " in caplog.text
    assert sizes(f, rows(6)) == []


def test_dynamic_from_the_first_call_on() -> None:
    @relay(dynamic=True)
    def f(x):
        return x.T @ x

    assert sizes(f, rows(4)) == ["x_0", "x_1"]
    assert sizes(f, rows(1)) == ["x_1"]


def test_annotated_sizes_keep_their_names_and_numbers_stay() -> None:
    (n,) = R.dims("n")

    @relay(dynamic=True)
    def f(x: R.Tensor[R.Float32, (n, 3)], k: R.Tensor[R.Float32, (n,)]):
        return x.sum(axis=1) + k

    assert sizes(f, rows(4), np.ones(4, np.float32)) == ["n"]


def test_statics_and_structures() -> None:
    @relay(static_argnames="k", dynamic=True)
    def f(params, k, x):
        return params["w"] @ x * k

    params = {"w": rows(4), "b": 2.0}
    assert sizes(f, params, 3, np.ones(3, np.float32)) == ["params_0_0", "params_0_1"]
    for n, m in ((4, 3), (5, 2), (2, 9)):
        found = f.interpret({"w": rows(n, m), "b": 2.0}, 3, np.ones(m, np.float32))
        np.testing.assert_allclose(found, rows(n, m).sum(1) * 3)


def test_derivatives_with_their_seeds() -> None:
    @relay
    def f(x):
        return x * x

    derivative = R.grad(f, seedable=True)
    for n in (2, 5):
        np.testing.assert_allclose(derivative.interpret(rows(n), rows(n)), 2 * rows(n) * rows(n))


def test_what_cannot_have_symbolic_sizes_is_compiled_for_each(
    caplog: pytest.LogCaptureFixture,
) -> None:

    @R.register_op(
        relation=R.Relation("T -> T", same_shape),
        gradient=lambda x, out, dout: dout * float(constant_dim(x.shape[0])),
        compute=lambda x: x,
    )
    def test_signatures_counted(x: Tensor) -> Tensor:
        """x times its length. x: (T, s) -> (T, s)."""
        return x * np.float32(len(x))

    @relay
    def f(x):
        return R.sum(test_signatures_counted(x))

    derivative = R.grad(f)
    with caplog.at_level(logging.WARNING, "relay.compile"):
        for n in (2, 3, 4):
            found = derivative.core(np.full(n, 2.0, np.float32))
            assert not symbolic_dims(found)
    (warning,) = [r.getMessage() for r in caplog.records]
    assert warning.startswith("recompiling ") and " for every new shape: " in warning
    assert R.grad(f).cost(np.ones(2, np.float32)).bytes == derivative.cost(np.ones(2, np.float32)).bytes == 0


def test_a_call_that_is_refused_leaves_no_trace() -> None:
    @relay
    def f(x, y):
        return x @ y

    f.interpret(rows(2), np.ones(3, np.float32))
    with pytest.raises(R.ShapeError, match="cannot be multiplied"):
        f.interpret(rows(2), np.ones(4, np.float32))
    assert sizes(f, rows(5), np.ones(3, np.float32)) == ["x_0"]


def test_a_pure_function_is_one_at_all_sizes() -> None:
    @relay(pure=True, dynamic=True)
    def f(x):
        print(x)
        return x

    with pytest.raises(R.TypeCheckError, match="f must be pure, but it prints"):
        f(rows(2))


# ---- lists


def test_lists_of_another_length_have_one_program_for_all_lengths(caplog: pytest.LogCaptureFixture) -> None:
    @relay.relay
    def summed(parts, y):
        total = y
        for x in parts["xs"]:
            total = total + x * 2.0
        return total, [x + 1.0 for x in parts["xs"]], len(parts["xs"])

    def checked(count: int, size: int) -> None:
        xs = [np.full(size, i, np.float32) for i in range(count)]
        total, more, length = assert_modes_agree(summed, {"xs": xs}, np.zeros(size, np.float32))
        np.testing.assert_array_equal(total, 2.0 * sum(xs))
        assert len(more) == int(length) == count and more[-1].shape == (size,)

    with caplog.at_level(logging.INFO, logger="relay.compile"):
        for count in (2, 3, 4, 5, 6, 2):
            checked(count, 3)
    compiled = [r for r in caplog.records if r.message.startswith("compiling")]
    assert len(compiled) == 2  # for two, and for any number
    checked(7, 4)  # of other sizes


def test_a_program_that_needs_the_length_of_a_list_says_so(caplog: pytest.LogCaptureFixture) -> None:
    @relay.relay
    def last(ws, x):
        for w, scale in zip(ws, (1.0, 2.0, 3.0, 4.0)):  # noqa: B905
            x = w * x * scale
        return x

    with caplog.at_level(logging.WARNING, logger="relay.compile"):
        for count in range(1, 5):
            found = last([np.full(2, 2.0, np.float32)] * count, np.ones(2, np.float32))
            np.testing.assert_array_equal(found, np.full(2, 2.0**count * (1, 2, 6, 24)[count - 1]))
    (warned,) = [r.message for r in caplog.records]
    assert warned.startswith("recompiling last for every new length of its lists: a zip with a tuple needs lengths")


def test_lists_of_unlike_elements_keep_their_lengths() -> None:
    @relay.relay
    def first(xs):
        return xs[0]

    for xs in ([1.0, np.ones(2)], [1.0, np.ones(2), 3], [np.ones(2), 1.0], []):
        if xs:
            np.testing.assert_array_equal(first(xs), np.float32(1.0) if isinstance(xs[0], float) else xs[0])
        else:
            with pytest.raises(TypeCheckError):
                first(xs)


def test_calls_with_lists_of_any_length_describe_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay.relay
    def scaled(xs: list[Tensor[R.Float, (2,)]], factors: list[float], flag: bool):
        total = relay.zeros((2,))
        for i, x in enumerate(xs):
            total = total + x * factors[i]
        return total, [x + 1.0 for x in xs] if flag else xs

    def arguments(count: int) -> tuple[Any, ...]:
        return [np.full(2, i, np.float32) for i in range(count)], [0.5 * i for i in range(count)], True

    def checked(*given: Any) -> None:
        total, more = scaled(*given)
        expected, others = scaled.interpret(*given)
        np.testing.assert_allclose(total, expected)
        assert len(more) == len(others) == len(given[0])
        np.testing.assert_array_equal(np.array(more), np.array(others))

    scaled(*arguments(3))
    with monkeypatch.context() as patched:
        patched.setattr("relay.api.function.describe", None)
        found = [scaled(*arguments(count)) for count in (1, 4, 100, 2)]
    for count, (total, more) in zip((1, 4, 100, 2), found, strict=True):
        np.testing.assert_allclose(total, np.full(2, 0.5 * sum(i * i for i in range(count))))
        np.testing.assert_array_equal(np.array(more), [[i + 1.0] * 2 for i in range(count)])
    checked([], [], True)
    checked([np.ones((2, 2), np.float32)[:, 1], np.zeros(2, ">f4")], [1.0, 2.0], False)
    checked([np.zeros(2, np.float32), np.zeros(2, np.float32)], [1, 2.0], True)
    with pytest.raises(TypeMismatch):
        scaled([np.zeros(2, np.float32), np.zeros(2)], [1.0, 2.0], True)
    with pytest.raises(TypeMismatch, match=r"1e\+300 is out of range for float32"):
        scaled([np.zeros(2, np.float32)], [1e300], True)
