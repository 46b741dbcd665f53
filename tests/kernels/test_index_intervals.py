"""Loops that are cut where conditions on their index change: concatenations, paddings and rolls along the last axis."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import relay as R
from relay import relay
from relay.codegen.kernels import intervals


@relay
def joined(x, y):  # type: ignore[no-untyped-def]
    both = R.concatenate((R.exp(x), y * 2, x), axis=1)
    return (
        both,
        R.pad(x, ((1, 2), (3, 0))) + 1,
        R.roll(y, 5, axis=1),
        R.roll(both, (1, -2), axis=(0, 1)),
        R.sum(R.concatenate((x, y), axis=1), axis=0),
        R.where(both > 0, both, R.log(1 - both)),
        R.concatenate((x, y), axis=1)[:, 7:60:3],
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize(("left", "right", "threads"), [(33, 70, 1), (16, 48, 3), (1, 64, 1), (64, 5, 2)])
def test_joined_rows(left: int, right: int, threads: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.codegen.kernels import loops

    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    joined.reload()
    rng = np.random.default_rng(0)
    types = {"bfloat16": ml_dtypes.bfloat16}
    arguments = [rng.standard_normal((7, n)).astype(types.get(dtype, dtype)) for n in (left, right)]
    for found, wanted in zip(joined(*arguments), joined.interpret(*arguments), strict=True):
        error = {"float32": 2e-6, "float64": 1e-12, "bfloat16": 2e-2, "float16": 2e-3}[dtype]
        both = (np.asarray(x).astype(np.float64) for x in (found, wanted))
        np.testing.assert_allclose(*both, rtol=error, atol=error)


@pytest.mark.parametrize("threads", [1, 3])
def test_joined_rows_of_symbolic_sizes(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.codegen.kernels import loops

    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    rng = np.random.default_rng(0)
    of_any_length, of_any_sizes = relay(joined.__wrapped__), relay(dynamic=True)(joined.__wrapped__)
    for rows, left, right in ((7, 33, 70), (2, 33, 70), (3, 2, 62), (2, 64, 2), (40, 17, 48)):
        arguments = [rng.standard_normal((rows, n)) for n in (left, right)]
        wanted = joined.interpret(*arguments)
        for function in (of_any_sizes, of_any_length) if (left, right) == (33, 70) else (of_any_sizes,):
            for found, expected in zip(function(*arguments), wanted, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_parts_of_symbolic_length_have_no_choice_left() -> None:
    from relay.codegen.tvm import tir

    first, second = tir.tirx.Var("n", "int64"), tir.tirx.Var("m", "int64")
    source = tir.buffer("source", (100,), "float32"), tir.buffer("other", (100,), "float32")
    target = tir.buffer("target", (100,), "float32")

    def body(*ends):  # type: ignore[no-untyped-def]
        def statements(i):  # type: ignore[no-untyped-def]
            value = tir.tirx.BufferLoad(source[0], [i])
            for end in ends:
                value = tir.tirx.if_then_else(tir.tirx.LT(i, end), tir.tirx.BufferLoad(source[1], [i]), value)
            return [tir.tirx.BufferStore(target, value, [i])]

        return statements

    for ends in ((first,), (first, first + second), (first, first + 1)):
        made = intervals.split_loop(first + second + 3, 16, "int64", body(*ends))
        assert made is not None and "if_then_else" not in str(tir.sequence(made))
    # Which of two comes first is not known.
    assert intervals.split_loop(first + second, 16, "int64", body(first, second)) is None


def test_parts_have_no_choice_left() -> None:
    from relay.codegen.tvm import tir

    source = tir.buffer("source", (100,), "float32"), tir.buffer("other", (100,), "float32")
    target = tir.buffer("target", (100,), "float32")

    def body(i):  # type: ignore[no-untyped-def]
        loads = (tir.tirx.BufferLoad(b, [i]) for b in source)
        return [tir.tirx.BufferStore(target, tir.tirx.if_then_else(tir.tirx.LT(i, 41), *loads), [i])]

    made = intervals.split_loop(100, 16, "int32", body)
    assert made is not None and "if_then_else" not in str(tir.sequence(made))
    assert intervals.split_loop(10, 16, "int32", body) is None  # the condition is the same everywhere
