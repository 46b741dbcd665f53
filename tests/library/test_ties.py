"""Orders of equal elements, of NaN and of zeros with signs, and places between elements, as NumPy has them."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import relay

METHODS = (
    *("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "hazen"),
    *("closest_observation", "interpolated_inverted_cdf", "weibull", "median_unbiased", "normal_unbiased"),
)
ORDERS = (
    *("np.sort(x)[::-1]", "np.argsort(x, kind='stable')", "np.argsort(-x, stable=True)", "np.lexsort((x[::-1], x))"),
    *("np.argmax(x)", "np.argmin(x)", "np.nanargmax(x)", "np.nanargmin(x)", "np.max(x)", "np.nanmin(x)"),
    *("np.unique(x)", "np.unique(x, return_counts=True)", "np.unique(x, return_inverse=True)"),
    *("np.unique(x, return_index=True)", "np.unique(x, equal_nan=False)", "np.union1d(x, x[:2])"),
    *("np.searchsorted(np.sort(x), x)", "np.searchsorted(np.sort(x), x, side='right')", "np.digitize(x, np.sort(x))"),
    *("np.searchsorted(x, x, sorter=np.argsort(x, kind='stable'))", "np.argmax(np.stack([x, x[::-1]]), axis=0)"),
    *("np.argsort(np.stack([x, x[::-1]]), axis=0, kind='stable')", "np.sort(np.stack([x, x[::-1]]), axis=0)"),
    *("np.median(x)", "np.nanmedian(x)", "np.maximum(x, x[::-1])", "np.fmin(x, x[::-1])"),
)
BETWEEN = [f"np.quantile(x, [0.0, 0.3, 0.5, 1.0], method='{m}')" for m in METHODS]
FINITE = [f"np.nanquantile(x, [0.25, 0.6], method='{m}')" for m in METHODS]  # of infinities NumPy makes NaN

SPECIAL = np.array([2, np.nan, 1, -0.0, 0.0, 2, np.nan], np.float32)
ARRAYS = {
    "ties": np.array([2, 1, 2, 1, 3, 3, 0], np.float32),
    "special": SPECIAL,
    "infinite": np.array([2, np.nan, 1, -np.nan, np.inf, -np.inf, np.inf]),
    "zeros": np.array([0.0, -0.0, 1.0, -0.0, 0.0, -1.0, 0.0], np.float32),
    "half": SPECIAL.astype(np.float16),
    "integers": np.array([2**40, 1, 2**40, -(2**62), 0, 1, 1]),
}


def evaluated(expressions: list[str], x: np.ndarray, compiled: bool = True) -> list[object]:
    """What Python, the interpreter and native code give."""
    text = "def f(x):\n    return (\n" + "".join(f"        {e},\n" for e in expressions) + "    )\n"
    name = f"<{hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"np": np}
    exec(compile(text, name, "exec"), names)
    made = relay.relay(names["f"])  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        return [names["f"](x), made.interpret(x), *([made(x)] if compiled else [])]  # type: ignore[operator]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ARRAYS)
def test_as_numpy_has_them(name: str) -> None:
    x = ARRAYS[name]
    expressions = [*ORDERS, *BETWEEN, *(FINITE if name != "infinite" else ())]
    precise = 1e-3 if x.dtype == np.float16 else 1e-5
    results = evaluated(expressions, x, compiled=name == "special")
    for expression, wanted, *found in zip(expressions, *results, strict=True):  # type: ignore[call-overload]
        for result in found:
            parts = zip(wanted, result, strict=True) if isinstance(wanted, tuple) else [(wanted, result)]
            for one, other in parts:
                np.testing.assert_allclose(other, one, precise, err_msg=expression, strict=False)


def test_zeros_keep_their_order() -> None:
    """A sort is stable, so the signs of zeros come out in the order in which they are in the array."""
    x = ARRAYS["zeros"]
    for found in evaluated(["np.sort(x, kind='stable')", "np.unique(x)"], x)[1:]:
        ordered, unique = found  # type: ignore[misc]
        np.testing.assert_array_equal(np.signbit(ordered), np.signbit(np.sort(x, kind="stable")))
        assert not np.signbit(np.asarray(unique)[1])  # the first of equal ones


@pytest.mark.parametrize("largest", [True, False])
def test_the_first_or_the_last_of_equal_ones(largest: bool) -> None:
    x = ARRAYS["ties"]
    order = np.argsort(-x if largest else x, kind="stable")[:4]
    reverse = len(x) - 1 - np.argsort((-x if largest else x)[::-1], kind="stable")[:4]
    for ties, places in (("first", order), ("last", reverse)):
        values, found = relay.topk(x, 4, largest=largest, ties=ties)
        np.testing.assert_array_equal(found, places)
        np.testing.assert_array_equal(values, x[places])
