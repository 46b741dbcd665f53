"""Products that are large enough for cuBLASLt, and what it is told to compute of them: epilogue, scale and factor of
what is added, or the elements between the factors of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import relay
from relay.ir.types import BaseType

RANDOM = np.random.default_rng(0)

ROWS, TERMS, COLUMNS = 256, 300, 320


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 0.1).astype(BaseType(dtype).dtype)


X, W, B, C = normal(ROWS, TERMS), normal(TERMS, COLUMNS), normal(COLUMNS), normal(ROWS, COLUMNS)


def transposed(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array.T)


def weight_gradient(x: Any, d: Any) -> Any:
    return x.reshape(ROWS, TERMS).T @ d.reshape(ROWS, COLUMNS)


PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], tuple[str, float, float]]] = {
    "plain": (lambda x, w: x @ w, (X, W), ("", 1.0, 0.0)),
    "left": (lambda x, w: x.T @ w, (transposed(X), W), ("", 1.0, 0.0)),
    "right": (lambda x, w: x @ w.T, (X, transposed(W)), ("", 1.0, 0.0)),
    "both": (lambda x, w: x.T @ w.T, (transposed(X), transposed(W)), ("", 1.0, 0.0)),
    "bias": (lambda x, w, b: x @ w + b, (X, W, B), ("bias", 1.0, 0.0)),
    "layer": (lambda x, w, b: relay.relu(x @ w * 0.5 + b), (X, W, B), ("relu bias", 0.5, 0.0)),
    "addend": (lambda x, w, c: relay.relu(c + x @ w), (X, W, C), ("relu", 1.0, 1.0)),
    "rows": (
        lambda x, w, b, c: x @ w + c + b,
        (X.reshape(2, 4, 32, TERMS), W, B, C.reshape(2, 4, 32, COLUMNS)),
        ("bias", 1.0, 1.0),
    ),
    "reshaped": (weight_gradient, (X.reshape(8, 32, TERMS), C.reshape(8, 32, COLUMNS)), ("", 1.0, 0.0)),
    "update": (lambda x, w, c: c - 0.25 * (x @ w), (X, W, C), ("", -0.25, 1.0)),
    "residual": (lambda x, w, b, c: x @ w + c + b, (X, W, B, C), ("bias", 1.0, 1.0)),
}

STACK, ROWS_OF_STACK, SIDE = 8, 128, 128

Q, K, M = normal(2, 4, ROWS_OF_STACK, SIDE), normal(2, 4, SIDE, 192), normal(SIDE, 192)

BATCHES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], tuple[str, tuple[int, ...]]]] = {
    "both": (lambda q, k: q @ k, (Q, K), ("", (SIDE * 192, ROWS_OF_STACK * SIDE))),
    "scores": (
        lambda q, k: q @ k.transpose(0, 1, 3, 2) * 0.25,
        (Q, K.swapaxes(-1, -2).copy()),
        ("", (SIDE * 192, ROWS_OF_STACK * SIDE)),
    ),
    "left": (lambda m, k: m @ k, (Q[0, 0].copy(), K), ("", (SIDE * 192, 0))),
    "left of extent 1": (lambda m, k: m @ k, (Q[:1, :1].copy(), K), ("", (SIDE * 192, 0))),
    "turned": (lambda q, m: q.transpose(0, 1, 3, 2) @ m, (Q, M), ("", (0, ROWS_OF_STACK * SIDE))),
    "layer": (
        lambda q, k, b: relay.relu(q @ k + b),
        (Q, K, normal(192)),
        ("relu bias", (SIDE * 192, ROWS_OF_STACK * SIDE)),
    ),
    "addend": (
        lambda q, k, c: c + q @ k,
        (Q, K, normal(2, 4, ROWS_OF_STACK, 192)),
        ("", (SIDE * 192, ROWS_OF_STACK * SIDE)),
    ),
}
