"""float16 and bfloat16: what is combined of many numbers is combined in float32."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from agreement import assert_modes_agree

import relay


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_means_of_short_floats_whose_sum_or_number_has_no_short_float(dtype: np.dtype[Any]) -> None:
    @relay.relay
    def means(x, high):
        row = high.reshape((1, 1, high.shape[0]))
        average = relay.avg_pool1d(row, 200), relay.adaptive_avg_pool1d(row, 1), relay.mean(row, axis=2)
        return relay.mean(x), relay.var(x), average

    ones, high = np.ones(70000, dtype), np.full(200, 1000.0, dtype)
    mean, variance, average = assert_modes_agree(means, ones, high)
    assert float(mean) == 1.0 and float(variance) == 0.0
    assert all(np.asarray(a, np.float64).ravel().tolist() == [1000.0] for a in average)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_gradients_of_means_of_many_short_floats(dtype: np.dtype[Any]) -> None:
    @relay.relay
    def mean(x, weight):
        return relay.mean(x) * weight

    @relay.relay
    def pooled(x, weight):
        row = x.reshape((1, 1, 70000))
        return (relay.avg_pool1d(row, 70000).sum() + relay.adaptive_avg_pool1d(row, 1).sum()) * weight

    ones, weight = np.ones(70000, dtype), dtype.type(1000.0)
    for run, times in (
        (relay.grad(mean), 1),
        (relay.grad(mean).interpret, 1),
        (relay.grad(pooled).interpret, 2),
    ):
        np.testing.assert_allclose(np.asarray(run(ones, weight)[0], np.float64), times * 1000 / 70000, rtol=1e-2)
