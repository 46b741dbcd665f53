"""Rows shorter than a few vectors, several at once: kernels with squares transposed in registers."""

from __future__ import annotations

import numpy as np
import pytest

import relay as R
from relay import relay


@relay
def of_rows(x, w):  # type: ignore[no-untyped-def]
    centerd = x - R.mean(x, axis=-1, keepdims=True)
    places = R.arange(0, x.shape[-1])
    return (
        R.softmax(x * 3),
        R.log_softmax(x),
        centerd / R.sqrt(R.mean(centerd * centerd, axis=-1, keepdims=True) + 1e-5) * w + w,
        R.argmax(x, axis=-1),
        R.max(x, axis=-1) + R.sum(x * x, axis=-1),
        R.sum(R.where(places > 2, x, 0.0), axis=-1),
        R.any(x > 1, axis=-1),
    )


@pytest.mark.parametrize(
    ("rows", "size", "dtype", "threads"),
    [
        ((100,), 10, "float32", 1), ((16,), 2, "float32", 1), ((35,), 16, "float32", 2), ((33,), 17, "float64", 1),
        ((4, 5, 3), 3, "float32", 3), ((70,), 33, "float32", 1), ((17,), 5, "float64", 1), ((31,), 40, "float32", 1),
        ((2, 40), 32, "float64", 2), ((19,), 48, "float32", 1), ((50,), 1, "float32", 1), ((15,), 4, "float32", 1),
    ],
)  # fmt: skip
def test_rows_of_all_sizes(
    rows: tuple[int, ...], size: int, dtype: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from relay.codegen.kernels import loops

    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
    of_rows.reload()
    random = np.random.default_rng(0)
    x = random.standard_normal((*rows, size)).astype(dtype)
    x.reshape(-1)[[3, -1]] = np.nan, np.inf
    w = random.standard_normal(size).astype(dtype)
    error = 3e-6 if dtype == "float32" else 1e-12
    with np.errstate(invalid="ignore"):
        expected = of_rows.interpret(x, w)
    for found, wanted in zip(of_rows(x, w), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=error, atol=error)


def test_images_and_integers() -> None:
    @relay
    def of_images(x, n):  # type: ignore[no-untyped-def]
        return (
            R.mean(x, axis=(2, 3)),
            R.max(x, axis=(2, 3)),
            R.sum(n // 3, axis=1),
            n // R.max(n, axis=1, keepdims=True),
        )

    random = np.random.default_rng(0)
    for shape in ((3, 11, 7, 7), (5, 5, 3, 2), (2, 9, 5, 5)):
        x = random.standard_normal(shape).astype(np.float32)
        n = random.integers(1, 9, (shape[0] * 9, shape[3]), dtype=np.int32)  # no divisor is 0
        for found, wanted in zip(of_images(x, n), of_images.interpret(x, n), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)


def test_a_result_in_the_memory_of_an_operand() -> None:
    """The rest of a row that is shorter than a vector is the next one's beginning, and must stay."""

    @relay
    def repeated(x):  # type: ignore[no-untyped-def]
        for _ in range(3):
            x = R.softmax(x * 2.0)
        return x

    for rows, size in ((50, 10), (33, 3), (20, 20), (16, 5), (37, 16)):
        x = np.random.default_rng(0).standard_normal((rows, size)).astype(np.float32)
        np.testing.assert_allclose(repeated(x), repeated.interpret(x), rtol=2e-6)


def test_symbolic_numbers_of_rows() -> None:
    @relay
    def rows(x):  # type: ignore[no-untyped-def]
        return R.softmax(x), R.argmax(x, axis=1)

    for count in (1, 2, 15, 16, 17, 40, 333):
        x = np.random.default_rng(0).standard_normal((count, 10)).astype(np.float32)
        for found, wanted in zip(rows(x), rows.interpret(x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-6)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((2, 3, 5), None), ((30,), None), ((2, 3, 5), (0, 2)), ((20, 4), 0), ((4, 20), 0), ((3, 1, 9), None), ((6, 2), 1)],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kept_axes_of_one_element_are_no_rows(
    shape: tuple[int, ...], axis: int | tuple[int, ...] | None, dtype: type
) -> None:
    """What is made of each element beside what is made of many, whose axes have as many extents."""

    @relay
    def both(x, y):  # type: ignore[no-untyped-def]
        return x * y, R.sum(x, axis=axis, keepdims=True)

    x, y = np.random.default_rng(0).standard_normal((2, *shape)).astype(dtype)
    for found, wanted in zip(both(x, y), both.interpret(x, y), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)
