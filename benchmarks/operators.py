"""Single operators against other frameworks, on one core: each row an expression of arrays of float32.

    python benchmarks/operators.py [--python PYTHON] [--rounds N] [--avx2] [NAME ...]

Relay runs in one process and the others, each where it is installed, in one of PYTHON. They take turns on the same
core for several rounds. Each time is the least that a call has taken of the processor, so that what else runs on the
machine counts little; the ratio is the best other time over Relay's. With --avx2 all are told to use no wider vectors
than those of AVX2.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROWS: dict[str, tuple[tuple[tuple[int, ...], ...], str, dict[str, str]]] = {
    # name: (shapes of x, y, z; the expression of Relay; those of the others: torch, jax, numpy)
    "concatenate last, 1000x500": (
        ((1000, 500), (1000, 500)), "relay.concatenate((x, y), axis=1)",
        {"torch": "torch.cat((x, y), 1)", "jax": "jnp.concatenate((x, y), 1)", "numpy": "np.concatenate((x, y), 1)"}),
    "concatenate last, 1000x64+37": (
        ((1000, 64), (1000, 37)), "relay.concatenate((x, y), axis=1)",
        {"torch": "torch.cat((x, y), 1)", "jax": "jnp.concatenate((x, y), 1)", "numpy": "np.concatenate((x, y), 1)"}),
    "concatenate channels": (
        ((1, 64, 56, 56), (1, 32, 56, 56)), "relay.concatenate((x, y), axis=1)",
        {"torch": "torch.cat((x, y), 1)", "jax": "jnp.concatenate((x, y), 1)", "numpy": "np.concatenate((x, y), 1)"}),
    "concatenate first, 500x1000": (
        ((500, 1000), (500, 1000)), "relay.concatenate((x, y), axis=0)",
        {"torch": "torch.cat((x, y), 0)", "jax": "jnp.concatenate((x, y), 0)", "numpy": "np.concatenate((x, y), 0)"}),
    "stack last, 1000x500": (
        ((1000, 500), (1000, 500)), "relay.stack((x, y), axis=-1)",
        {"torch": "torch.stack((x, y), -1)", "jax": "jnp.stack((x, y), -1)", "numpy": "np.stack((x, y), -1)"}),
    "pad 1, 64x56x56": (
        ((1, 64, 56, 56),), "relay.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))",
        {"torch": "F.pad(x, (1, 1, 1, 1))", "jax": "jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))"}),
    "flip last": (((1000, 1000),), "relay.flip(x, axis=1)", {"torch": "x.flip(1)", "jax": "x[:, ::-1]"}),
    "roll last": (
        ((1000, 1000),), "relay.roll(x, 3, axis=1)", {"torch": "x.roll(3, 1)", "jax": "jnp.roll(x, 3, 1)"}),
    "sort 1000x1000": (
        ((1000, 1000),), "relay.sort(x)",
        {"torch": "torch.sort(x)[0]", "jax": "jnp.sort(x)", "numpy": "np.sort(x)"}),
    "sort 1e6": (
        ((1000000,),), "relay.sort(x)",
        {"torch": "torch.sort(x)[0]", "jax": "jnp.sort(x)", "numpy": "np.sort(x)"}),
    "sort 10000x10": (
        ((10000, 10),), "relay.sort(x)",
        {"torch": "torch.sort(x)[0]", "jax": "jnp.sort(x)", "numpy": "np.sort(x)"}),
    "argsort 1000x1000": (
        ((1000, 1000),), "relay.argsort(x)",
        {"torch": "torch.argsort(x, stable=True)", "jax": "jnp.argsort(x)", "numpy": "np.argsort(x, kind='stable')"}),
    "topk 10 of 1000x1000": (
        ((1000, 1000),), "relay.topk(x, 10)", {"torch": "torch.topk(x, 10)", "jax": "jax.lax.top_k(x, 10)"}),
    "softmax 10000x10": (((10000, 10),), "relay.softmax(x)", {"torch": "F.softmax(x, -1)", "jax": "jax.nn.softmax(x)"}),
    "softmax 5000x33": (((5000, 33),), "relay.softmax(x)", {"torch": "F.softmax(x, -1)", "jax": "jax.nn.softmax(x)"}),
    "softmax 2000x100": (((2000, 100),), "relay.softmax(x)", {"torch": "F.softmax(x, -1)", "jax": "jax.nn.softmax(x)"}),
    "softmax 1000x1000": (
        ((1000, 1000),), "relay.softmax(x)", {"torch": "F.softmax(x, -1)", "jax": "jax.nn.softmax(x)"}),
    "log_softmax 10000x10": (
        ((10000, 10),), "relay.log_softmax(x)", {"torch": "F.log_softmax(x, -1)", "jax": "jax.nn.log_softmax(x)"}),
    "layer_norm 1000x64": (
        ((1000, 64), (64,), (64,)), "relay.layer_norm(x, y, z)",
        {"torch": "F.layer_norm(x, (64,), y, z)",
         "jax": "(x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * y + z"}),
    "gelu 1e6": (((1000000,),), "relay.gelu(x)", {"torch": "F.gelu(x)", "jax": "jax.nn.gelu(x, approximate=False)"}),
    "erf 1e6": (((1000000,),), "relay.erf(x)", {"torch": "torch.erf(x)", "jax": "jax.scipy.special.erf(x)"}),
    "tanh 1e6": (((1000000,),), "relay.tanh(x)", {"torch": "torch.tanh(x)", "jax": "jnp.tanh(x)"}),
    "exp 1e6": (((1000000,),), "relay.exp(x)", {"torch": "torch.exp(x)", "jax": "jnp.exp(x)"}),
    "log 1e6": (((1000000,),), "relay.log(relay.abs(x))", {"torch": "torch.log(x.abs())", "jax": "jnp.log(abs(x))"}),
    "sigmoid 1e6": (((1000000,),), "relay.sigmoid(x)", {"torch": "torch.sigmoid(x)", "jax": "jax.nn.sigmoid(x)"}),
    "silu 1e6": (((1000000,),), "relay.silu(x)", {"torch": "F.silu(x)", "jax": "jax.nn.silu(x)"}),
    "softplus 1e6": (((1000000,),), "relay.softplus(x)", {"torch": "F.softplus(x)", "jax": "jax.nn.softplus(x)"}),
    "sin 1e6": (((1000000,),), "relay.sin(x)", {"torch": "torch.sin(x)", "jax": "jnp.sin(x)"}),
    "pow 1e6": (
        ((1000000,), (1000000,)), "relay.abs(x) ** y", {"torch": "x.abs() ** y", "jax": "abs(x) ** y"}),
    "mean 7x7": (
        ((64, 512, 7, 7),), "relay.mean(x, axis=(2, 3))", {"torch": "x.mean((2, 3))", "jax": "x.mean((2, 3))"}),
    "mean 4x4": (
        ((64, 512, 4, 4),), "relay.mean(x, axis=(2, 3))", {"torch": "x.mean((2, 3))", "jax": "x.mean((2, 3))"}),
    "sum 10000x10 last": (((10000, 10),), "relay.sum(x, axis=1)", {"torch": "x.sum(1)", "jax": "x.sum(1)"}),
    "sum 5000x33 last": (((5000, 33),), "relay.sum(x, axis=1)", {"torch": "x.sum(1)", "jax": "x.sum(1)"}),
    "sum 1000x1000 last": (((1000, 1000),), "relay.sum(x, axis=1)", {"torch": "x.sum(1)", "jax": "x.sum(1)"}),
    "sum 1000x1000 first": (((1000, 1000),), "relay.sum(x, axis=0)", {"torch": "x.sum(0)", "jax": "x.sum(0)"}),
    "max 1000x1000 last": (((1000, 1000),), "relay.max(x, axis=1)", {"torch": "x.amax(1)", "jax": "x.max(1)"}),
    "max 10000x10 last": (((10000, 10),), "relay.max(x, axis=1)", {"torch": "x.amax(1)", "jax": "x.max(1)"}),
    "argmax 10000x10": (
        ((10000, 10),), "relay.argmax(x, axis=1)",
        {"torch": "x.argmax(1)", "jax": "x.argmax(1)", "numpy": "x.argmax(1)"}),
    "argmax 1000x1000": (
        ((1000, 1000),), "relay.argmax(x, axis=1)",
        {"torch": "x.argmax(1)", "jax": "x.argmax(1)", "numpy": "x.argmax(1)"}),
    "argmax 1000x1000 first": (
        ((1000, 1000),), "relay.argmax(x, axis=0)",
        {"torch": "x.argmax(0)", "jax": "x.argmax(0)", "numpy": "x.argmax(0)"}),
    "cumsum 1000x1000": (
        ((1000, 1000),), "relay.cumsum(x, axis=1)", {"torch": "x.cumsum(1)", "jax": "jnp.cumsum(x, 1)"}),
    "transpose 1024x1024": (
        ((1024, 1024),), "relay.transpose(x)", {"torch": "x.T.contiguous()", "jax": "x.T", "numpy": "x.T.copy()"}),
    "transpose 1000x1000": (
        ((1000, 1000),), "relay.transpose(x)", {"torch": "x.T.contiguous()", "jax": "x.T", "numpy": "x.T.copy()"}),
    "transpose 8x128x12x64": (
        ((8, 128, 12, 64),), "relay.transpose(x, (0, 2, 1, 3))",
        {"torch": "x.permute(0, 2, 1, 3).contiguous()", "jax": "x.transpose(0, 2, 1, 3)"}),
    "gather rows": (
        ((10000, 64),), "relay.take(x, relay.arange(0, 5000) * 2, axis=0)",
        {"torch": "x[torch.arange(5000) * 2]", "jax": "x[jnp.arange(5000) * 2]"}),
    "max pool 3x3": (
        ((1, 64, 112, 112),), "relay.max_pool2d(x, (3, 3), 2, padding=1)",
        {"torch": "F.max_pool2d(x, 3, 2, 1)"}),
    "matmul 1000x1000x8": (
        ((1000, 1000), (1000, 8)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "matmul 1000x1000x1": (
        ((1000, 1000), (1000, 1)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "matmul 8x1000x1000": (((8, 1000), (1000, 1000)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "matmul 1000x1000x4": (
        ((1000, 1000), (1000, 4)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "matmul 1000x1000x20": (
        ((1000, 1000), (1000, 20)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "matmul 64x784x512": (
        ((64, 784), (784, 512)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "matmul x.T y 500": (
        ((500, 400), (500, 300)), "relay.transpose(x) @ y", {"torch": "x.T @ y", "jax": "x.T @ y", "numpy": "x.T @ y"}),
    "matmul x y.T 500": (
        ((500, 400), (300, 400)), "x @ relay.transpose(y)", {"torch": "x @ y.T", "jax": "x @ y.T", "numpy": "x @ y.T"}),
    "matmul 512": (((512, 512), (512, 512)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "matmul 1024": (((1024, 1024), (1024, 1024)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "matmul 2048": (((2048, 2048), (2048, 2048)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "matvec 2048": (((2048, 2048), (2048,)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "vecmat 2048": (((2048,), (2048, 2048)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "batch matmul 32x64": (((32, 64, 64), (32, 64, 64)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "outer 1000": (((1000, 1), (1, 1000)), "x @ y", {"torch": "x @ y", "jax": "x @ y", "numpy": "x @ y"}),
    "conv 7x7 stride 2": (
        ((1, 3, 224, 224), (64, 3, 7, 7)), "relay.conv2d(x, y, stride=2, padding=3)",
        {"torch": "F.conv2d(x, y, stride=2, padding=3)", "jax": "conv(x, y, (2, 2), ((3, 3), (3, 3)))"}),
    "conv 3x3 64": (
        ((1, 64, 56, 56), (64, 64, 3, 3)), "relay.conv2d(x, y, padding=1)",
        {"torch": "F.conv2d(x, y, padding=1)", "jax": "conv(x, y, (1, 1), ((1, 1), (1, 1)))"}),
    "conv 3x3 512": (
        ((1, 512, 7, 7), (512, 512, 3, 3)), "relay.conv2d(x, y, padding=1)",
        {"torch": "F.conv2d(x, y, padding=1)", "jax": "conv(x, y, (1, 1), ((1, 1), (1, 1)))"}),
    "conv 3x3 stride 2": (
        ((1, 64, 56, 56), (128, 64, 3, 3)), "relay.conv2d(x, y, stride=2, padding=1)",
        {"torch": "F.conv2d(x, y, stride=2, padding=1)", "jax": "conv(x, y, (2, 2), ((1, 1), (1, 1)))"}),
    "conv 1x1": (
        ((1, 256, 28, 28), (128, 256, 1, 1)), "relay.conv2d(x, y)",
        {"torch": "F.conv2d(x, y)", "jax": "conv(x, y, (1, 1), ((0, 0), (0, 0)))"}),
    "conv depthwise 3x3": (
        ((1, 128, 56, 56), (128, 1, 3, 3)), "relay.conv2d(x, y, padding=1, groups=128)",
        {"torch": "F.conv2d(x, y, padding=1, groups=128)",
         "jax": "conv(x, y, (1, 1), ((1, 1), (1, 1)), feature_group_count=128)"}),
    "conv 5x5, 16 of 3 channels": (
        ((8, 3, 32, 32), (16, 3, 5, 5)), "relay.conv2d(x, y, padding=2)",
        {"torch": "F.conv2d(x, y, padding=2)", "jax": "conv(x, y, (1, 1), ((2, 2), (2, 2)))"}),
    "x + row": (((1000, 1000), (1000,)), "x + y", {"torch": "x + y", "jax": "x + y", "numpy": "x + y"}),
    "x + column": (((1000, 1000), (1000, 1)), "x + y", {"torch": "x + y", "jax": "x + y", "numpy": "x + y"}),
    "where": (
        ((1000, 1000), (1000, 1000)), "relay.where(x > y, x, y * 2)",
        {"torch": "torch.where(x > y, x, y * 2)", "jax": "jnp.where(x > y, x, y * 2)"}),
    "x[::2, ::2]": (((2000, 2000),), "x[::2, ::2]", {"torch": "x[::2, ::2].contiguous()", "jax": "x[::2, ::2]"}),
    "x[:, 3:503]": (((1000, 1000),), "x[:, 3:503]", {"torch": "x[:, 3:503].contiguous()", "jax": "x[:, 3:503]"}),
    "one_hot": (
        ((10000, 64),), "relay.one_hot(relay.argmax(x, axis=1), 64)",
        {"torch": "F.one_hot(x.argmax(1), 64).float()", "jax": "jax.nn.one_hot(x.argmax(1), 64)"}),
    "repeat": (
        ((500, 500),), "relay.repeat(x, 2, axis=1)",
        {"torch": "x.repeat_interleave(2, 1)", "jax": "jnp.repeat(x, 2, 1)"}),
    "variance last": (((1000, 1000),), "relay.var(x, axis=1)", {"torch": "x.var(1, correction=0)", "jax": "x.var(1)"}),
    "norm": (((1000, 1000),), "relay.sqrt(relay.sum(x * x))", {"torch": "x.norm()", "jax": "jnp.sqrt((x * x).sum())"}),
    "logsumexp 1000x1000": (
        ((1000, 1000),), "relay.logsumexp(x, axis=1)",
        {"torch": "x.logsumexp(1)", "jax": "jax.nn.logsumexp(x, 1)"}),
}  # fmt: skip

GRADIENTS: dict[str, tuple[tuple[tuple[int, ...], ...], str, dict[str, str]]] = {
    # the same, with the gradients of all but the last array, which is the cotangent of the expression
    "d softmax 1000x1000": (
        ((1000, 1000), (1000, 1000)), "relay.softmax(x)", {"torch": "F.softmax(x, -1)", "jax": "jax.nn.softmax(x)"}),
    "d softmax 10000x10": (
        ((10000, 10), (10000, 10)), "relay.softmax(x)", {"torch": "F.softmax(x, -1)", "jax": "jax.nn.softmax(x)"}),
    "d layer_norm 1000x512": (
        ((1000, 512), (512,), (512,), (1000, 512)), "relay.layer_norm(x, y, z)",
        {"torch": "F.layer_norm(x, (512,), y, z)",
         "jax": "(x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * y + z"}),
    "d gelu 1e6": (
        ((1000000,), (1000000,)), "relay.gelu(x)", {"torch": "F.gelu(x)", "jax": "jax.nn.gelu(x, approximate=False)"}),
    "d silu 1e6": (((1000000,), (1000000,)), "relay.silu(x)", {"torch": "F.silu(x)", "jax": "jax.nn.silu(x)"}),
    "d tanh 1e6": (((1000000,), (1000000,)), "relay.tanh(x)", {"torch": "torch.tanh(x)", "jax": "jnp.tanh(x)"}),
    "d relu 1e6": (((1000000,), (1000000,)), "relay.relu(x)", {"torch": "F.relu(x)", "jax": "jax.nn.relu(x)"}),
    "d cross entropy 1000x1000": (
        ((1000, 1000), ()), "relay.cross_entropy(x, relay.arange(0, 1000))",
        {"torch": "F.cross_entropy(x, torch.arange(1000))",
         "jax": "-jnp.take_along_axis(jax.nn.log_softmax(x), jnp.arange(1000)[:, None], 1).mean()"}),
    "d conv 3x3 64": (
        ((1, 64, 56, 56), (64, 64, 3, 3), (1, 64, 56, 56)), "relay.conv2d(x, y, padding=1)",
        {"torch": "F.conv2d(x, y, padding=1)", "jax": "conv(x, y, (1, 1), ((1, 1), (1, 1)))"}),
    "d conv 3x3 stride 2": (
        ((8, 32, 28, 28), (64, 32, 3, 3), (8, 64, 14, 14)), "relay.conv2d(x, y, stride=2, padding=1)",
        {"torch": "F.conv2d(x, y, stride=2, padding=1)", "jax": "conv(x, y, (2, 2), ((1, 1), (1, 1)))"}),
    "d max pool 2x2": (
        ((8, 32, 28, 28), (8, 32, 14, 14)), "relay.max_pool2d(x, (2, 2), 2)",
        {"torch": "F.max_pool2d(x, 2)",
         "jax": "jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), 'VALID')"}),
    "d max pool 3x3": (
        ((1, 64, 112, 112), (1, 64, 56, 56)), "relay.max_pool2d(x, (3, 3), 2, padding=1)",
        {"torch": "F.max_pool2d(x, 3, 2, 1)"}),
    "d mean pool 2x2": (
        ((8, 32, 28, 28), (8, 32, 14, 14)), "relay.avg_pool2d(x, (2, 2), 2)", {"torch": "F.avg_pool2d(x, 2)"}),
    "d gather rows": (
        ((10000, 64), (5000, 64)), "relay.take(x, relay.arange(0, 5000) * 2, axis=0)",
        {"torch": "x[torch.arange(5000) * 2]", "jax": "x[jnp.arange(5000) * 2]"}),
    "d batch_norm 32x64x28x28": (
        ((32, 64, 28, 28), (64,), (64,), (32, 64, 28, 28)),
        "(x - relay.mean(x, axis=(0, 2, 3), keepdims=True))"
        " / relay.sqrt(relay.var(x, axis=(0, 2, 3), keepdims=True) + 1e-5)"
        " * relay.reshape(y, (1, 64, 1, 1)) + relay.reshape(z, (1, 64, 1, 1))",
        {"torch": "F.batch_norm(x, None, None, y, z, training=True)",
         "jax": "(x - x.mean((0, 2, 3), keepdims=True)) / jnp.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)"
                " * y[:, None, None] + z[:, None, None]"}),
    "d matmul 512": (
        ((512, 512), (512, 512), (512, 512)), "x @ y", {"torch": "x @ y", "jax": "x @ y"}),
    "d matmul 64x784x512": (
        ((64, 784), (784, 512), (64, 512)), "x @ y", {"torch": "x @ y", "jax": "x @ y"}),
    "d x + row": (((1000, 1000), (1000,), (1000, 1000)), "x * 2 + y", {"torch": "x * 2 + y", "jax": "x * 2 + y"}),
    "d cumsum 1000x1000": (
        ((1000, 1000), (1000, 1000)), "relay.cumsum(x, axis=1)", {"torch": "x.cumsum(1)", "jax": "jnp.cumsum(x, 1)"}),
    "d max 1000x1000 last": (
        ((1000, 1000), (1000,)), "relay.max(x, axis=1)", {"torch": "x.amax(1)", "jax": "x.max(1)"}),
    "d x[::2, ::2]": (((2000, 2000), (1000, 1000)), "x[::2, ::2]", {"torch": "x[::2, ::2]", "jax": "x[::2, ::2]"}),
}  # fmt: skip

ALL = {**ROWS, **GRADIENTS}

THREADS = ("RELAY_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
SETTINGS = {
    **dict.fromkeys(THREADS, "1"),
    "RELAY_CACHE_SIZE": "0",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
AVX2 = {
    "RELAY_BENCHMARK_PROCESSOR": "znver3",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512_SPR AVX512_ICL AVX512_CNL AVX512_CLX AVX512_SKX AVX512CD AVX512F",
    "XLA_FLAGS": f"{SETTINGS['XLA_FLAGS']} --xla_cpu_max_isa=AVX2",
}


def _inputs(name: str) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in ALL[name][0]]


# ---- the processes


def _relay(name: str, folder: Path) -> dict[str, Callable[[], object]]:
    shapes, expression, _ = ALL[name]
    names = ", ".join("xyz"[: len(shapes) - (name in GRADIENTS)])
    path = folder / f"row{len(list(folder.iterdir()))}.py"
    text = f"from relay import relay\n\n\n@relay\ndef f({names}):\n    return {expression}\n"
    if name in GRADIENTS:
        text += "\n\nf = relay.grad(f, seedable=True)\n"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    import relay

    if processor := os.environ.get("RELAY_BENCHMARK_PROCESSOR"):
        from relay.codegen.tvm import tir

        tir.tvm.target.codegen.llvm_get_system_cpu = lambda: processor
    arguments = [relay.Array(x) for x in _inputs(name)]
    return {"relay": lambda: module.f(*arguments)}


def _others(name: str, _: Path) -> dict[str, Callable[[], object]]:
    made: dict[str, Callable[[], object]] = {}
    inputs = _inputs(name)
    differentiated = name in GRADIENTS
    names = ", ".join("xyz"[: len(inputs) - differentiated])
    for framework, expression in ALL[name][2].items():
        if importlib.util.find_spec(framework) is None:
            continue
        text = f"lambda {names}: {expression}"
        if framework == "numpy":
            made[framework] = partial(eval(text, {"np": np}), *inputs)
        elif framework == "torch":
            import torch

            torch.set_num_threads(1)
            torch.set_grad_enabled(differentiated)
            tensors = [torch.from_numpy(x) for x in inputs]
            function = eval(text, {"torch": torch, "F": torch.nn.functional})
            if differentiated:
                *operands, cotangent = tensors
                for operand in operands:
                    operand.requires_grad_()
                made[framework] = partial(_torch_gradients, function, operands, cotangent)
            else:
                made[framework] = partial(function, *tensors)
        else:
            import jax

            def conv(x: Any, y: Any, strides: Any, padding: Any, **more: Any) -> Any:
                return jax.lax.conv_general_dilated(x, y, strides, padding, **more)

            function = eval(text, {"jax": jax, "jnp": jax.numpy, "conv": conv})
            arrays = [jax.numpy.asarray(x) for x in inputs]
            if differentiated:
                function = partial(_jax_gradients, function)
            made[framework] = _waiting(jax.jit(function), arrays)
    return made


def _torch_gradients(function: Any, operands: Any, cotangent: Any) -> Any:
    import torch

    return torch.autograd.grad(function(*operands), operands, cotangent)


def _jax_gradients(function: Any, *arrays: Any) -> Any:
    import jax

    *operands, cotangent = arrays
    return jax.vjp(function, *operands)[1](cotangent)


def _waiting(function: Any, arrays: Any) -> Callable[[], object]:
    import jax

    return lambda: jax.block_until_ready(function(*arrays))


def _least(call: Callable[[], object], seconds: float) -> float:
    """The least time of the processor that a call takes on average in a sample of about 0.2 ms, or one call."""

    def sample(number: int) -> float:
        started = time.process_time()
        for _ in range(number):
            call()
        return (time.process_time() - started) / number

    number = max(1, round(0.0002 / max(sample(1), 1e-6)))
    end = time.process_time() + seconds
    samples = [sample(number)]
    while len(samples) < 3 or time.process_time() < end:
        samples.append(sample(number))
    return min(samples)


def _serve(make: Callable[[str, Path], dict[str, Callable[[], object]]]) -> None:
    """Answer lines: a name prepares a row, an empty line measures it."""
    calls: dict[str, Callable[[], object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            if line.strip():
                calls = make(line.strip(), Path(folder))
                for call in calls.values():
                    call()
                answer: object = list(calls)
            else:
                answer = {who: _least(call, 0.04) for who, call in calls.items()}
            print(json.dumps(answer), flush=True)


def _ask(process: subprocess.Popen[str], line: str) -> Any:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows whose names contain one of these; without, all")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the other frameworks")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core that all run on")
    parser.add_argument("--avx2", action="store_true", help="no vectors of 64 bytes")
    parser.add_argument("--serve", choices=("relay", "others"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        _serve(_relay if given.serve == "relay" else _others)
        return
    os.sched_setaffinity(0, {given.core})
    processes = [
        subprocess.Popen([python, __file__, "--serve", which], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, **SETTINGS, **(AVX2 if given.avx2 else {})})
        for python, which in ((sys.executable, "relay"), (given.python, "others"))
    ]  # fmt: skip
    print(f"{'':28} {'Relay µs':>9} {'ratio':>6}  others, µs")
    for name in ALL:
        if given.names and not any(part in name for part in given.names):
            continue
        for process in processes:
            _ask(process, name)
        rounds = []
        for _ in range(given.rounds):
            (own,), others = _ask(processes[0], "").values(), _ask(processes[1], "")
            rounds.append((own, others))
        mine = min(time_ for time_, _ in rounds) * 1e6
        best = {who: min(others[who] for _, others in rounds) * 1e6 for who in rounds[0][1]}
        ratio = min(best.values()) / mine
        print(f"{name:28} {mine:9.1f} {ratio:6.2f}  {', '.join(f'{w} {t:.1f}' for w, t in best.items())}", flush=True)
    for process in processes:
        process.terminate()


if __name__ == "__main__":
    main()
