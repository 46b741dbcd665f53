"""Kernels that read along another axis than they write along: transposes, alone and with what is computed from them."""

from __future__ import annotations

import numpy as np
import pytest
from guarded import guarded

import relay as R
from relay import relay


@relay
def turned(x, y, z):  # type: ignore[no-untyped-def]
    return (
        R.transpose(x),
        R.tanh(R.transpose(x) * y) - y,
        R.transpose(z, axes=(0, 2, 1)) + R.transpose(x),
        R.transpose(z, axes=(2, 0, 1)),
    )


@pytest.mark.parametrize(
    ("shape", "dtype", "threads"),
    [((16, 16), "float32", 1), ((37, 50), "float64", 1), ((70, 69), "float32", 3), ((5, 40), "float32", 1)],
)
def test_transposes(shape: tuple[int, int], dtype: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.codegen.kernels import loops

    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    turned.reload()
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(s).astype(dtype) for s in (shape, shape[::-1], (3, *shape))]
    for found, wanted in zip(turned(*arguments), turned.interpret(*arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-6 if dtype == "float32" else 1e-12, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int64", "bool"])
def test_transposes_of_other_dtypes(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((70, 67)) * 9).astype(dtype)
    f = R.from_source("def f(x):\n    return relay.transpose(x)\n", {"relay": R})
    np.testing.assert_array_equal(np.asarray(f(x)), x.T)


def test_transposes_of_symbolic_sizes() -> None:
    f = R.from_source("def f(x, y):\n    return relay.transpose(x) + y\n", {"relay": R})
    for rows, columns in ((3, 4), (64, 70), (133, 65), (16, 80), (1, 50)):
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((rows, columns)), rng.standard_normal((columns, rows))
        np.testing.assert_array_equal(np.asarray(f(x, y)), x.T + y)


def test_a_result_in_the_memory_of_an_operand() -> None:
    """What is left over beside squares is computed once only, since an operand may be overwritten."""

    @relay
    def repeated(x, y):  # type: ignore[no-untyped-def]
        for _ in range(3):
            y = y * 2.0 + R.transpose(x)
        return y

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((37, 69)), rng.standard_normal((69, 37))
    np.testing.assert_allclose(repeated(x, y), y * 8 + 7 * x.T, rtol=1e-12)


@pytest.mark.parametrize("end", [False, True])
def test_what_lies_around_a_padded_input_is_not_read(end: bool) -> None:
    bodies = (
        "relay.pad(x.T, ((2, 1), (1, 2)))",
        "relay.tanh(relay.pad(relay.exp(x), ((2, 1), (1, 2))).T)",
        "relay.concatenate((x, relay.sin(x)), axis=0).T",
        "relay.concatenate((x.T, relay.sin(x.T)), axis=1)",
        "relay.triu(x.T)",
        "relay.roll(x, 3, axis=0).T",
    )
    f = R.from_source(f"def f(x):\n    return ({', '.join(bodies)})\n", {"relay": R})
    for shape in ((37, 50), (64, 65)):
        x = np.random.default_rng(0).standard_normal(shape)
        for found, wanted in zip(f(guarded(x, end=end)), f.interpret(x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
