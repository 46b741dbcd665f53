"""NumPy's subscripts with arrays of indices, masks and run-time slices, read and assigned; `x.at` of JAX."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as rl
from relay import ExecutionError, TypeCheckError, relay

X = np.arange(24.0).reshape(2, 3, 4)
ROWS, COLUMNS = np.array([1, 0, 1]), np.array([2, -1, 0])


def read(x, i, j):
    return x[i, j], x[:, i, j], x[i, :, j], x[i, 1], x[0, i[:, None], j], x[..., i, j], x[i, 1:, j], x[np.ix_(i, j)]


def rows_of_labels(x, i, j):
    m = x[0]
    m[np.arange(3), j] = -1.0
    return m, m[(1, 2)], np.stack(np.nonzero(m > 4.0))


def assigned(x, i, j):
    y = x * 1.0
    y[:, i, j] = np.array([10.0, 20.0, 30.0])
    y[i, 1:, j] += 1.0
    z = x[0] * 1.0
    z[:, [0, 2]] = z[:, [2, 0]]
    z[j[:2]] *= 2.0
    return y, z


def masked(x, i, j):
    y, z = x[0] * 1.0, x[1] * 1.0
    y[y > 5.0] = y[y > 5.0] * 2.0
    y[np.array([True, False, True])] = 0.5
    z[z[:, 0] > 13.0] += 1.0
    return y, z


def run_time_slices(x, i, j):
    n, y = i[0] + 1, np.zeros(5)
    y[:n] = 1.0
    y[n:] += 2.0
    y[j[0] : j[0] + n] = np.array([7.0, 8.0])
    return y


@pytest.mark.parametrize("program", [read, rows_of_labels, assigned, masked, run_time_slices])
def test_subscripts_are_numpys(program: Callable[..., object]) -> None:
    found, expected = assert_modes_agree(relay(program), X, ROWS, COLUMNS), program(X.copy(), ROWS, COLUMNS)
    for ours, theirs in zip(found, expected, strict=True):  # type: ignore[call-overload]
        np.testing.assert_array_equal(ours, theirs)


def test_places_are_those_of_jax() -> None:
    @relay
    def changed(x, i):
        y = x.at[i].set(5.0)
        return y, x.at[i].add(1.0), x.at[1:3].multiply(2.0), x.at[-1].max(9.0), x.at[0].get(), x

    x = np.arange(4.0)
    found = [np.asarray(v).tolist() for v in assert_modes_agree(changed, x, np.array([0, 2, 2]))]
    assert found[:2] == [[5, 1, 5, 3], [1, 1, 4, 3]]  # repeated places are added to twice
    assert found[2:] == [[0, 2, 4, 3], [0, 1, 2, 9], 0, [0, 1, 2, 3]]


UPDATES = {"multiply": np.multiply, "divide": np.divide, "power": np.power, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize("name", UPDATES)
def test_places_that_are_named_twice_are_updated_twice(name: str) -> None:
    text = f"""def f(x, i, j, v):
    a, b = x.at[i].{name}(v), x.at[i, j].{name}(2.0)
    return a, b, x.at[:, [1, 1, 0]].{name}(0.5), x.at[[-1, 2]].{name}(3.0), x.at[j, 1].{name}(v[:, 0])"""
    f = rl.from_source(text, {})
    rows, columns = np.array([2, 0, 2, 2]), np.array([1, 1, 1, 0])
    for count in (3, 5):
        x, v = np.arange(1.0, 2 * count + 1).reshape(count, 2), np.arange(2.0, 10.0).reshape(4, 2) / 3.0
        expected = []
        for items, value in [
            (rows, v),
            ((rows, columns), 2.0),
            ((slice(None), [1, 1, 0]), 0.5),
            ([-1, 2], 3.0),
            ((columns, 1), v[:, 0]),
        ]:
            expected.append(x.copy())
            UPDATES[name].at(expected[-1], items, value)
        assert_modes_agree(f, x, rows, columns, v, expected=tuple(expected))


def test_numpys_updates_in_place_take_places_twice() -> None:
    def changed(x, i, v):
        y = x.copy()
        np.multiply.at(x, i, v)
        np.maximum.at(y, i, v)
        return x, y

    x, i, v = np.arange(1.0, 5.0), np.array([3, 1, 1, 3]), np.array([5.0, 3.0, 2.0, 0.5])
    assert_modes_agree(relay(changed), x, i, v, expected=changed(x.copy(), i, v))
    rl.check_gradient(relay(lambda x, i, v: (x.at[i].multiply(v) * x).sum()), x, i, v)


def test_gradients_of_index_arrays() -> None:
    @relay
    def cross_entropy(logits, labels):
        return -(logits[np.arange(len(labels)), labels] ** 2).mean()

    @relay
    def scattered(x, i):
        return (x.at[i].add(x[:3] ** 2) * np.arange(1.0, 5.0)).sum()

    logits, labels = np.arange(6.0).reshape(3, 2), np.array([1, 0, 1])
    expected = np.zeros((3, 2))
    expected[np.arange(3), labels] = -2.0 * logits[np.arange(3), labels] / 3.0
    rl.check_gradient(scattered, np.array([0.5, 1.0, 2.0, 3.0]), np.array([3, 0, 3]))
    assert_modes_agree(rl.grad(cross_entropy, wrt="logits"), logits, labels, expected=expected)


def test_what_is_out_of_range_or_no_place() -> None:
    read_at = relay(lambda x, i, j: x[i, j])
    with pytest.raises(ExecutionError, match="index out of range"):
        read_at(X[0], np.array([0]), np.array([4]))
    with pytest.raises(TypeCheckError, match="no method 'sett'"):
        relay(lambda x: x.at[0].sett(1.0))(X)
    with pytest.raises(TypeCheckError, match="out of range is an error here"):
        relay(lambda x: x.at[0].set(1.0, mode="drop"))(X)
