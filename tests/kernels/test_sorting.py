"""Orders of rows of all dtypes and lengths, by networks and by digits, against NumPy's stable ones."""

from __future__ import annotations

import attrs
import ml_dtypes
import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as R

SHAPES = ((1,), (1, 1), (9, 7), (2, 3, 33), (1, 300), (4, 1024), (17, 32), (33,), (2, 1025))
DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "bool",
)  # fmt: skip


def _elements(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Elements with equal ones, extreme ones, zeros of both signs and NaN."""
    random = np.random.default_rng(0)
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        x = random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        x[..., :1] = limits.max
        return np.where(random.random(shape) < 0.2, x.dtype.type(3), x)
    numbers = random.standard_normal(shape) * 3
    for special in (1.0, -0.0, 0.0, np.nan, np.inf, -np.inf):
        numbers = np.where(random.random(shape) < 0.1, special, numbers)
    return numbers.astype(getattr(ml_dtypes, dtype, dtype))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_orders(dtype: str, descending: bool) -> None:
    order = R.from_source(f"def f(x):\n    return relay.argsort(x, descending={descending})\n", {"relay": R})
    for shape in SHAPES if dtype == "float32" else SHAPES[2::6]:
        order.reload()  # for this size alone
        x = _elements(shape, dtype)
        np.testing.assert_array_equal(order(x), order.interpret(x))


def test_equal_elements_keep_their_order() -> None:
    order = R.from_source("def f(x):\n    return relay.argsort(x)\n", {"relay": R})
    for shape in ((3, 300), (2, 1500)):
        x = np.round(np.random.default_rng(0).standard_normal(shape)).astype(np.float32)
        np.testing.assert_array_equal(order(x), np.argsort(x, axis=-1, kind="stable"))


def test_orders_of_symbolic_sizes() -> None:
    sort = R.from_source("def f(x):\n    return relay.sort(x), relay.topk(x, 2, axis=0)\n", {"relay": R})
    for shape in ((7, 5), (9, 300), (33, 40), (2, 1200)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        ordered, (values, places) = sort(x)
        np.testing.assert_array_equal(ordered, np.sort(x))
        np.testing.assert_array_equal(values, -np.sort(-x, axis=0)[:2])
        np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places), 0), values)


@pytest.mark.parametrize("dynamic", [False, True])
def test_searches_in_rows_of_any_order(dynamic: bool) -> None:
    """The places by bisection, in each mode, also where rows are not ascending: no mode may look at other elements."""
    text = (
        "def f(x, v):\n    return R.searchsorted(x, v), R.searchsorted(x, v, side='right'), R.searchsorted(x[0], v)\n"
    )
    made = R.from_source(text, {"R": R})
    function = R.RelayFunction(made.__relay__, attrs.evolve(made._options, dynamic=dynamic))
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 8, 33):
        x, v = _elements((3, size), "float32"), random.choice(_elements((50,), "float32"), (3, 5))
        for rows in (x, np.sort(x)):
            found = [np.asarray(part) for part in function(rows, v)]
            for one, other in zip(found, function.interpret(rows, v), strict=True):
                np.testing.assert_array_equal(one, other)
        for side, part in (("left", 0), ("right", 1)):
            expected = [np.searchsorted(row, wanted, side) for row, wanted in zip(np.sort(x), v, strict=True)]
            np.testing.assert_array_equal(found[part], expected)


@pytest.mark.parametrize("called", ["sort", "argsort"])
def test_rows_that_turn_out_to_be_empty(called: str) -> None:
    """In the first call of a program, when its memory is new."""
    for dtype in (np.float64, np.int16):
        order = R.from_source(f"def f(x):\n    return np.{called}(x[x > 1])\n", {"np": np})
        for x in ([0, 0, 0], [2, 5, 1], [3], []):
            given = np.array(x, dtype)
            wanted = getattr(np, called)(given[given > 1])
            np.testing.assert_array_equal(assert_modes_agree(order, given), wanted)
