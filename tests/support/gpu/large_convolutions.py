"""Convolutions that are large enough for cuDNN, and what it computes of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import relay
from gpu.large_products import normal

X, W, B = normal(2, 32, 32, 32), normal(64, 32, 3, 3), normal(64)

Z = normal(2, 64, 32, 32)

LAST_X, LAST_W, LAST_Z = normal(2, 32, 32, 32), normal(3, 3, 32, 64), normal(2, 32, 32, 64)

BIAS = B.reshape(64, 1, 1)


def two_layers(x: Any, w: Any, b: Any, v: Any) -> Any:
    hidden = relay.relu(relay.conv2d(x, w, padding=1) + b)
    return relay.conv2d(hidden, v, padding=1)


CONVOLUTIONS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], str]] = {
    "plain": (lambda x, w: relay.conv2d(x, w, padding=1), (X, W), ""),
    "last, bias": (lambda x, w, b: relay.conv2d(x, w, layout="NHWC") + b, (LAST_X, LAST_W, B), "bias"),
    "last, relu": (lambda x, w: relay.relu(relay.conv2d(x, w, layout="NHWC")), (LAST_X, LAST_W), "bias relu"),
    "channels last": (lambda x, w: relay.conv2d(x, w, padding=1, layout="NHWC"), (LAST_X, LAST_W), ""),
    "last, layer": (
        lambda x, w, b: relay.relu(relay.conv2d(x, w, padding=1, layout="NHWC") + b),
        (LAST_X, LAST_W, B),
        "bias relu",
    ),
    "last, residual": (
        lambda x, w, b, z: relay.relu(relay.conv2d(x, w, padding=1, layout="NHWC") + b + z),
        (LAST_X, LAST_W, B, LAST_Z),
        "addend bias relu",
    ),
    "last, sum": (
        lambda x, w, z: z + relay.conv2d(x, w, padding=1, layout="NHWC"),
        (LAST_X, LAST_W, LAST_Z),
        "addend bias",
    ),
    "strided": (lambda x, w: relay.conv2d(x, w, stride=2, padding=(1, 1)), (normal(4, 32, 64, 64), W), ""),
    "dilated": (lambda x, w: relay.conv2d(x, w, padding="same", dilation=2), (X, W), ""),
    "groups": (lambda x, w: relay.conv2d(x, w, groups=2), (normal(2, 64, 32, 32), normal(96, 32, 3, 3)), ""),
    "one axis": (lambda x, w: relay.conv1d(x, w, padding=2), (normal(8, 32, 512), normal(64, 32, 5)), ""),
    "three axes": (lambda x, w: relay.conv3d(x, w, padding=1), (normal(1, 32, 8, 16, 16), normal(32, 32, 3, 3, 3)), ""),
}


LOSSES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "plain": (lambda x, w: (relay.conv2d(x, w, padding=1) ** 2).sum(), (X, W)),
    "channels last": (lambda x, w: (relay.conv2d(x, w, padding=1, layout="NHWC") ** 2).sum(), (LAST_X, LAST_W)),
    "strided": (lambda x, w: (relay.conv2d(x, w, stride=2, padding=1) ** 2).sum(), (normal(4, 32, 64, 64), W)),
    "groups": (
        lambda x, w: (relay.conv2d(x, w, groups=2, dilation=2) ** 2).sum(),
        (normal(2, 64, 32, 32), normal(96, 32, 3, 3)),
    ),
}
