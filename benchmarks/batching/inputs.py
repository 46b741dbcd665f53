"""The inputs of the batched workloads, the same for all frameworks."""

from __future__ import annotations

from typing import Any

import numpy as np


def inputs() -> dict[str, tuple[Any, ...]]:
    """The arguments of each workload, float32."""
    random = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return random.normal(0, scale, shape).astype(np.float32)

    grid = np.meshgrid(np.linspace(-2, 1, 400), np.linspace(-1, 1, 250))
    x, y = (a.ravel().astype(np.float32) for a in grid)

    def split(leaves: int) -> Any:
        """The form of a tree: None for a leaf."""
        if leaves == 1:
            return None
        left = int(random.integers(1, leaves))
        return split(left), split(leaves - left)

    forms = [split(32) for _ in range(64)]
    weights = [normal(*shape, scale=0.1) for shape in ((128, 384), (128, 384), (128, 128), (384,), (128,))]
    trees = (forms, normal(64, 32, 128), *weights)
    sentences = [normal(int(n), 64) for n in random.integers(8, 64, 64)]
    return {
        **dict.fromkeys(("trees", "trees_gradient", "trees_one_by_one", "trees_gradient_one_by_one"), trees),
        "ragged_attention": (sentences, *(normal(64, 64, scale=0.1) for _ in range(3))),
        "mlp": (normal(64, 128, scale=0.1), normal(128, 10, scale=0.1), normal(64, 64), normal(64, 10)),
        "cnn": (normal(8, 3, 3, 3, scale=0.2), normal(8 * 14 * 14, 10, scale=0.05), normal(32, 3, 16, 16)),
        "newton": (random.uniform(0.01, 1e4, 100_000).astype(np.float32),),
        "mandelbrot": (x, y),
        "particle_filter": (normal(1000), normal(50, 1000), normal(50)),
        "settling": (
            normal(128, 128, scale=0.1),
            normal(256, 128),
            (2 ** random.uniform(0, 8, 256)).astype(np.int32),
        ),
        "experts": (normal(128, 512, scale=0.1), normal(512, 128, scale=0.1), normal(256, 128)),
    }


def grown(forms: list[Any], rows: Any, leaf: Any, node: Any) -> list[Any]:
    """The trees of these forms, made of `leaf(row)` and `node(left, right)`."""

    def grow(form: Any, values: Any) -> Any:
        if form is None:
            return leaf(next(values))
        left = grow(form[0], values)
        return node(left, grow(form[1], values))

    return [grow(form, iter(values)) for form, values in zip(forms, rows, strict=True)]
