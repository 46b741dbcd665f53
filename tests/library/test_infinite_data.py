"""Infinities and NaN among the data of quantiles, medians and histograms are what they are in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from relay import relay

INF, NAN = float("inf"), float("nan")
DATA = [
    *([1.0, INF, 3.0, -INF], [INF, INF, 1.0, 2.0], [INF, INF, INF], [-INF, 1.0, INF], [-INF, -INF, 0.0, 1.0, INF]),
    *([1.0, NAN, 2.0], [NAN], [INF], [3.0, 1.0, 2.0, 2.0]),
]
METHODS = ("linear", "hazen", "weibull", "midpoint", "median_unbiased", "interpolated_inverted_cdf", "nearest")


def quantiles(x):
    return [np.quantile(x, [0.0, 0.1, 0.25, 0.5, 0.9, 1.0], method=m) for m in METHODS]


def middles(x):
    pair = np.stack([x, -x])
    numbers = np.nanquantile(x, [0.0, 0.3, 1.0]), np.nanpercentile(x, 77), np.nanmedian(pair, axis=1, keepdims=True)
    return np.median(x), np.nanmedian(x), np.percentile(x, 30), *numbers


@pytest.mark.parametrize("data", DATA, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_quantiles_are_numpys(data: list[float]) -> None:
    x = np.array(data)
    for f in (quantiles, middles):
        for found, expected in zip(relay(f).interpret(x), f(x), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected)


def test_bins_have_a_finite_range() -> None:
    @relay
    def counts(x):
        try:
            return np.histogram(x, bins=3)[0]
        except ValueError:
            return np.zeros(3, np.int32) - 1

    for data in ([1.0, NAN], [1.0, INF]):
        x = np.array(data)
        with pytest.raises(ValueError, match="not finite"):
            np.histogram(x)
        with pytest.raises(ValueError, match="the range of the bins is not finite"):
            relay(lambda x: np.histogram(x)).interpret(x)
        assert np.asarray(counts(x)).tolist() == np.asarray(counts.interpret(x)).tolist() == [-1, -1, -1]
    for data in ([], [2.0, 3.0, 3.0], [2.0]):
        x = np.array(data)
        found, edges = relay(lambda x: np.histogram(x, 3)).interpret(x)
        np.testing.assert_array_equal(found, np.histogram(x, 3)[0])
        np.testing.assert_allclose(edges, np.histogram(x, 3)[1])
