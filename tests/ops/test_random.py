"""Random numbers: the published vectors of the generator, the same bits everywhere, and the shapes of distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agreement import assert_modes_raise
from scipy import special, stats

import relay
from relay import Float16, Float64
from relay.errors import ExecutionError, ShapeError, TypeMismatch
from relay.ops.random.generation import numpy_threefry
from relay.ops.tir import reproducible

KEY = relay.random.key(7)


@pytest.mark.parametrize(
    ("counter", "key", "wanted"),
    [  # the known answers that come with the authors' library, Random123
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_the_generator_gives_the_published_answers(
    counter: tuple[int, int], key: tuple[int, int], wanted: tuple[int, int]
) -> None:
    high, low = (np.array([word], np.uint32) for word in counter)
    first, second = numpy_threefry(np.array(key, np.uint32), high, low)
    assert (int(first[0]), int(second[0])) == wanted


def test_compiled_and_interpreted_numbers_have_the_same_bits() -> None:
    @relay
    def draw(key):  # type: ignore[no-untyped-def]
        first, second = relay.random.split(key)
        return (
            relay.random.normal(first, (3000,)),
            relay.random.normal(first, (3000,), dtype=Float64),
            relay.random.uniform(second, (3000,), minval=-0.1, maxval=1.7),
            relay.random.uniform(second, (3000,), minval=-0.1, maxval=1.7, dtype=Float64),
            relay.random.gumbel(first, (3000,)),
            relay.random.exponential(first, (3000,), dtype=Float64),
            relay.random.normal(first, (300,), dtype=Float16),
            relay.random.randint(second, -5, 100, (3000,)),
            relay.random.bits(second, (30, 100), width=64),
        )

    for compiled, interpreted in zip(draw(KEY), draw.interpret(KEY), strict=True):
        assert np.asarray(compiled).tobytes() == np.asarray(interpreted).tobytes()
    again = draw(KEY)
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(again, draw(KEY), strict=True))


def test_keys_are_independent() -> None:
    keys = relay.random.split(KEY, 4)
    assert len({np.asarray(key).tobytes() for key in keys} | {np.asarray(KEY).tobytes()}) == 5
    draws = np.stack([relay.random.normal(key, (20_000,)) for key in keys])
    assert np.abs(np.corrcoef(draws) - np.eye(4)).max() < 0.03  # four standard deviations
    np.testing.assert_array_equal(relay.random.key(-1), [0, 2**32 - 1])
    np.testing.assert_array_equal(relay.random.key(np.int64(-1)), [2**32 - 1, 2**32 - 1])


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (relay.random.uniform, stats.uniform()),
        (relay.random.normal, stats.norm()),
        (relay.random.exponential, stats.expon()),
        (relay.random.gumbel, stats.gumbel_r()),
    ],
)
def test_numbers_have_their_distribution(draw: object, distribution: stats.rv_continuous) -> None:
    count = 50_000
    for dtype in (relay.Float32, Float64):
        x = np.asarray(draw(KEY, (count,), dtype=dtype), np.float64)  # type: ignore[operator]
        mean, variance, skew, excess = (float(v) for v in distribution.stats(moments="mvsk"))
        assert abs(x.mean() - mean) < 4 * math.sqrt(variance / count)
        assert abs(x.var() / variance - 1) < 4 * math.sqrt((excess + 2) / count)
        assert abs(stats.skew(x) - skew) < 0.2
        assert stats.kstest(x, distribution.cdf).pvalue > 0.01  # the key is fixed, and so is the answer


def test_the_quantile_of_the_normal_distribution_is_right_far_out() -> None:
    steps = np.concatenate([np.arange(1, 2000), 2 ** np.arange(11, 52)]).astype(np.float64)
    p = np.concatenate([steps * 2.0**-53, 1 - steps * 2.0**-53])
    np.testing.assert_allclose(reproducible.normal_quantile(reproducible.NUMPY, p), special.ndtri(p), rtol=4e-15)
    np.testing.assert_allclose(reproducible.log(reproducible.NUMPY, p), np.log(p), rtol=4e-16, atol=1e-32)


def test_uniform_numbers_stay_within_their_bounds() -> None:
    for dtype in (Float16, relay.Float32, Float64):
        for low, high in ((0.0, 1.0), (1000.0, 1001.0), (-3.0, -2.875)):
            x = np.asarray(relay.random.uniform(KEY, (5000,), minval=low, maxval=high, dtype=dtype))
            assert x.min() >= low and x.max() < high


def test_integers_are_equally_likely() -> None:
    counts = np.bincount(relay.random.randint(KEY, 0, 7, (70_000,)), minlength=7)
    assert len(counts) == 7 and stats.chisquare(counts).pvalue > 0.01
    extreme = relay.random.randint(KEY, np.int64(-(2**63)), np.int64(2**63 - 1), (1000,))
    assert extreme.min() < -(2**62) and extreme.max() > 2**62


def test_mistakes() -> None:
    with pytest.raises(ShapeError, match=r"a key has the shape \(2,\), found \(3,\)"):
        relay.random.normal(np.zeros(3, np.uint32))
    with pytest.raises(TypeMismatch, match="draws floats, found int32"):
        relay.random.uniform(KEY, (2,), dtype=relay.Int32)
    with pytest.raises(TypeMismatch, match="minval < maxval, found 1 and 1"):
        relay.random.uniform(KEY, (2,), minval=1, maxval=1)

    @relay
    def empty(key, n):  # type: ignore[no-untyped-def]
        return relay.random.randint(key, 3, n)

    assert_modes_raise(empty, KEY, 3, error=ExecutionError, match="no integer from minval up to maxval")
