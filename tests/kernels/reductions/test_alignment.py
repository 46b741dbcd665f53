"""Reductions along rows read memory from wherever an array begins: at each place within a cache line."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from agreement import leaves

import relay
from relay import relay as decorated

DTYPES = ["bool", "int8", "uint8", "int16", "float16", "bfloat16", "int32", "float32", "int64", "float64"]
ROWS, LONG = 5, 203  # several rows at once, each of several vectors and a rest
LINE = 64  # bytes


WIDER = {"bool": "int32", "int8": "int32", "uint8": "int32", "int16": "int32", "int32": "int64", "int64": "float64"}
WIDER |= {"float16": "float32", "bfloat16": "float32", "float32": "float64", "float64": "float64"}


def functions(dtype: str) -> list[relay.RelayFunction]:
    """A reduction alone, one of converted elements, a product with a vector, and several reductions at once."""
    texts = [
        f"relay.sum(x.astype('{WIDER[dtype]}'), axis=1)",
        f"x.astype('{WIDER[dtype]}') @ w[0].astype('{WIDER[dtype]}')",
        "relay.argmax(x, axis=1), relay.max(x, axis=1)",
        "relay.any(x, axis=1)" if dtype == "bool" else "relay.sum(x, axis=1)",
        f"relay.sum(x.astype('{WIDER[dtype]}')), relay.sum(x.astype('{WIDER[dtype]}') * w.astype('{WIDER[dtype]}'))",
    ]
    made = [relay.from_source(f"def f(x, w):\n    return {text}\n", {"relay": relay}) for text in texts]
    return [f for f in made if isinstance(f, relay.RelayFunction)]


@decorated
def product(x, w):
    return relay.quantized_dense(x, w)


def placed(values: np.ndarray[Any, Any], offset: int) -> np.ndarray[Any, Any]:
    """The values in an array that begins so many bytes behind the beginning of a cache line."""
    memory = np.zeros(values.nbytes + 2 * LINE, np.uint8)
    start = -memory.ctypes.data % LINE + offset
    array = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


@pytest.mark.parametrize("long", [LONG, 128])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_rows_at_each_place(dtype: str, long: int) -> None:
    dtype_ = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    # small integers, whose sums are exact in each dtype
    values = np.random.default_rng(0).integers(0, 2, (ROWS, long)).astype(dtype_)
    for function in functions(dtype):
        expected = list(leaves(function.interpret(values, values)))
        for offset in range(0, LINE, dtype_.itemsize if dtype_.itemsize > 1 else 3):
            found = leaves(function(placed(values, offset), placed(values, offset)))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(
                    one, other, err_msg=f"{function}, {offset} bytes behind the line's beginning"
                )


@pytest.mark.parametrize("offset", [0, 1, 16, 32, 63])
def test_products_of_quantized_rows_at_each_place(offset: int) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-100, 100, shape).astype(np.int8) for shape in ((1, 128), (10, 128)))
    found = product(placed(x, offset), placed(w, offset))
    np.testing.assert_array_equal(found, x.astype(np.int32) @ w.T.astype(np.int32))
