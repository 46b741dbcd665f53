"""Inputs of the larger workloads, and the structure of the convolutional networks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

Arrays = tuple[np.ndarray, ...]


@attrs.frozen
class ResidualNetwork:
    """He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition (2015), with batch normalization as the
    scale and shift that it is in inference. The first block of each further stage halves the image."""

    size: int  # of the image
    kernel: int  # of the first convolution: 7 with stride 2 and pooling, or 3
    depth: tuple[int, ...]  # blocks of each stage
    width: tuple[int, ...]  # channels
    classes: int

    def arrays(self, random: np.random.Generator) -> Arrays:
        """The image and the weights, in the order of `structure`."""
        weights = [self._weight(random, shape) for shape in self._shapes()]
        return (random.standard_normal((1, 3, self.size, self.size)).astype(np.float32), *weights)

    def structure(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The weights by name: blocks are dicts, whose `down` is None where the image keeps its size."""
        rest = iter(arrays)

        def convolution() -> tuple[Any, Any, Any]:
            return next(rest), next(rest), next(rest)

        first = convolution()
        blocks = []
        for narrows in self._blocks():
            one, two = convolution(), convolution()
            blocks.append({"one": one, "two": two, "down": convolution() if narrows else None})
        return {"first": first, "blocks": tuple(blocks), "last": (next(rest), next(rest))}

    def _blocks(self) -> Iterator[bool]:
        for stage, depth in enumerate(self.depth):
            for block in range(depth):
                yield stage > 0 and block == 0

    def _shapes(self) -> Iterator[tuple[int, ...]]:
        def convolution(outputs: int, inputs: int, kernel: int) -> Iterator[tuple[int, ...]]:
            yield from ((outputs, inputs, kernel, kernel), (outputs, 1, 1), (outputs, 1, 1))

        channels = self.width[0]
        yield from convolution(channels, 3, self.kernel)
        for stage, depth in enumerate(self.depth):
            for block in range(depth):
                outputs = self.width[stage]
                yield from convolution(outputs, channels, 3)
                yield from convolution(outputs, outputs, 3)
                if stage > 0 and block == 0:
                    yield from convolution(outputs, channels, 1)
                channels = outputs
        yield from ((channels, self.classes), (self.classes,))

    @staticmethod
    def _weight(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) == 3:  # scale and shift
            return (0.5 + 0.1 * random.standard_normal(shape)).astype(np.float32)
        inputs = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
        return (random.standard_normal(shape) / np.sqrt(inputs)).astype(np.float32)


NETWORKS = {
    "resnet18": ResidualNetwork(224, 7, (2, 2, 2, 2), (64, 128, 256, 512), 1000),
    "resnet20": ResidualNetwork(32, 3, (3, 3, 3), (16, 32, 64), 10),
}


INCEPTION = ("one", 192, 64, 1), ("narrow3", 192, 96, 1), ("three", 96, 128, 3), ("narrow5", 192, 16, 1), (
    "five", 16, 32, 5), ("pooled", 192, 32, 1)  # fmt: skip
"""The convolutions of GoogLeNet's block 3a (Szegedy and others, Going Deeper with Convolutions, 2014): the name, the
channels before and after it, and the width of its kernel."""


def inception(random: np.random.Generator) -> Arrays:
    """The image, (1, 192, 28, 28), and each convolution's weight and bias: (outputs, 1, 1), float32."""
    made = [random.standard_normal((1, 192, 28, 28)).astype(np.float32)]
    for _, inputs, outputs, kernel in INCEPTION:
        weight = random.standard_normal((outputs, inputs, kernel, kernel)) / np.sqrt(inputs * kernel**2)
        made += [weight.astype(np.float32), random.standard_normal((outputs, 1, 1)).astype(np.float32)]
    return tuple(made)


def inception_layers(arrays: Sequence[Any]) -> dict[str, tuple[Any, Any]]:
    """The weight and bias of each convolution, by its name."""
    return {name: (arrays[2 * n], arrays[2 * n + 1]) for n, (name, *_) in enumerate(INCEPTION)}


def perceptron(batch: int) -> Any:
    """What makes weights and biases of 784-512-512-10, images and labels."""

    def make(random: np.random.Generator) -> Arrays:
        sizes = (784, 512, 512, 10)
        params: list[np.ndarray] = []
        for inputs, outputs in pairwise(sizes):
            params.append((random.standard_normal((inputs, outputs)) / np.sqrt(inputs)).astype(np.float32))
            params.append(np.zeros(outputs, np.float32))
        return (*params, random.random((batch, 784), np.float32), random.integers(0, 10, batch).astype(np.int32))

    return make


def lstm(steps: int, units: int, batch: int) -> Any:
    """What makes x: (steps, batch, units), weights of the input and of the state: (units, 4 units), and biases."""

    def make(random: np.random.Generator) -> Arrays:
        weights = [(random.standard_normal((units, 4 * units)) / units).astype(np.float32) for _ in range(2)]
        x = random.standard_normal((steps, batch, units)).astype(np.float32)
        return (x, *weights, np.zeros(4 * units, np.float32))

    return make


CHAINS = 100, 1000, 5000
"""The lengths of chains of operators: what compiling costs."""

LINKS = "tanh(h)", "h * x", "h + x", "sin(h)", "h - 0.5 * x", "sigmoid(h)"
"""A chain's operators, which take turns."""


def chain_source(count: int, prefix: str) -> str:
    """The text of a function `chain(x)`; `prefix` is the name of the module that has the operators, with a dot."""
    lines = [re.sub(r"(\w+)\(", rf"{prefix}\1(", LINKS[n % len(LINKS)]) for n in range(count)]
    return "\n".join(
        ["def chain(x):", "    h = x", *(f"    h = {line}" for line in lines), f"    return {prefix}sum(h)", ""]
    )


TREES = 4
"""How many trees a workload on trees takes by turns, all of different forms."""


def trees(leaves: int, units: int) -> Any:
    """What makes trees and the weights of a child-sum LSTM on them (Tai, Socher and Manning, 2015).

    splits: (TREES, leaves - 1) int32, how many leaves are on the left of each inner node, from the root on, left to
    right; rows: (TREES, leaves, units), those of the leaves; w, u: (units, 3 units); v: (units, units); b: (3 units,);
    d: (units,).
    """

    def split(random: np.random.Generator, count: int) -> list[int]:
        if count == 1:
            return []
        left = int(random.integers(1, count))
        return [left, *split(random, left), *split(random, count - left)]

    def make(random: np.random.Generator) -> Arrays:
        splits = np.array([split(random, leaves) for _ in range(TREES)], np.int32)
        rows = random.standard_normal((TREES, leaves, units)).astype(np.float32)
        shapes = [(units, 3 * units), (units, 3 * units), (units, units), (3 * units,), (units,)]
        return (splits, rows, *(0.1 * random.standard_normal(shape).astype(np.float32) for shape in shapes))

    return make


def grown(splits: Sequence[int], rows: Sequence[Any], leaf: Callable[[Any], Any], node: Callable[..., Any]) -> Any:
    """One of these trees, made of `leaf(row)` and `node(left, right)`."""
    left_counts, values = iter(splits), iter(rows)

    def grow(count: int) -> Any:
        if count == 1:
            return leaf(next(values))
        left = int(next(left_counts))
        first = grow(left)
        return node(first, grow(count - left))

    return grow(len(rows))


def on_trees(function: Callable[..., Any], inputs: Sequence[Any], grow: Callable[..., Any]) -> Callable[[], Any]:
    """A call of `function(tree, *weights)` on one tree after the other, the first one first.

    `grow(splits, rows)` makes the trees. Each has been in a call before: what a framework does once for each form of a
    tree belongs to the first call.
    """
    splits, rows, *weights = inputs
    forest = [grow(s, r) for s, r in zip(splits, rows, strict=True)]
    for tree in forest:
        function(tree, *weights)
    turns = itertools.cycle(forest)
    return lambda: function(next(turns), *weights)
