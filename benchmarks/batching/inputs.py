"""The inputs of the batched workloads, the same for all frameworks."""

from __future__ import annotations

import numpy as np


def inputs() -> dict[str, tuple[np.ndarray, ...]]:
    """The arguments of each workload, float32."""
    random = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return random.normal(0, scale, shape).astype(np.float32)

    grid = np.meshgrid(np.linspace(-2, 1, 400), np.linspace(-1, 1, 250))
    x, y = (a.ravel().astype(np.float32) for a in grid)
    return {
        "mlp": (normal(64, 128, scale=0.1), normal(128, 10, scale=0.1), normal(64, 64), normal(64, 10)),
        "cnn": (normal(8, 3, 3, 3, scale=0.2), normal(8 * 14 * 14, 10, scale=0.05), normal(32, 3, 16, 16)),
        "newton": (random.uniform(0.01, 1e4, 100_000).astype(np.float32),),
        "mandelbrot": (x, y),
        "particle_filter": (normal(1000), normal(50, 1000), normal(50)),
    }
