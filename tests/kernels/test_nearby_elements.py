"""Vectors of elements that lie near each other in memory, in another order or with others between them, and vectors of
consecutive numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from guarded import guarded

import relay as R
from relay.codegen.lowering.module_builder import listing

BODIES = (
    *(f"relay.repeat(x, {n}, axis=1)" for n in (2, 3, 4, 5, 8, 40)),
    *(f"x[:, {first}::{step}]" for first, step in ((0, 2), (1, 2), (1, 3), (2, 4), (0, 5), (3, 7))),
    *(f"x[:, ::{step}]" for step in (-1, -2, -3)),
    "x[1::2, ::2] + x[:2, 1::2][:, :1]",
    "relay.tile(x[:, :3], (1, 9))",
    "relay.stack((x, x + x), axis=-1)",
    "relay.sum(x[:, ::2], axis=1)",
    "relay.transpose(x)[::2]",
)


def _array(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(0)
    return np.round(rng.standard_normal(shape) * 9).astype({"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype))


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [(97, "float32"), (64, "float64"), (131, "int8"), (40, "int64"), (70, "bool"), (33, "bfloat16"), (70, "float16")],
)
def test_nothing_but_the_rows_is_read(columns: int, dtype: str) -> None:
    bodies = [body for body in BODIES if dtype != "bool" or ("+" not in body and "sum" not in body)]
    f = R.from_source(f"def f(x):\n    return ({', '.join(bodies)})\n", {"relay": R})
    x = _array((4, columns), dtype)
    expected = f.interpret(x)
    for end in (False, True):
        for body, found, wanted in zip(bodies, f(guarded(x, end=end)), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted), err_msg=body)


def test_rows_of_data_dependent_sizes() -> None:
    f = R.from_source(f"def f(x):\n    return ({', '.join(BODIES)})\n", {"relay": R})
    for columns in (9, 32, 67):
        x = _array((4, columns), "float32")
        for body, found, wanted in zip(BODIES, f(guarded(x, end=True)), f.interpret(x), strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted), err_msg=body)


def test_vectors_of_numbers() -> None:
    text = (
        "def f(x):\n    place = relay.arange(0, 200)\n"
        "    return x + relay.cast(place, relay.Float32), relay.where(place % 3 == 0, x, place * 0.5), place * 5 - 3,"
        " relay.argmax(relay.reshape(x, (2, 100)), axis=1)\n"
    )
    f = R.from_source(text, {"relay": R})
    x = _array((200,), "float32")
    for found, wanted in zip(f(x), f.interpret(x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_no_vector_is_made_element_by_element() -> None:
    text = "def f(x):\n    return relay.repeat(x, 2, axis=1), x[:, ::2], relay.argmax(x, axis=1)\n"
    f = R.from_source(text, {"relay": R})
    assembly = listing(f.core(_array((3, 128), "float32")), 1)
    assert "pinsrd" not in assembly and "insertps" not in assembly
