"""The workloads' names, descriptions and inputs, the same for all contenders."""

from collections.abc import Callable
from enum import Enum

import attrs
import numpy as np
from models import inputs

Arrays = tuple[np.ndarray, ...]


class Kind(Enum):
    """What is timed: calls like earlier ones; a first result, tracing and compiling included, in a process that has
    imported everything; or that where the process before has left what it compiled on disk."""

    MANY = "many"
    FIRST = "first"
    FOUND = "found"


@attrs.frozen(eq=False)
class Workload:
    """What is computed, and on which NumPy arrays."""

    description: str
    inputs: Callable[[np.random.Generator], Arrays]
    tolerance: float = 1e-4  # of the results, relative to their largest element
    kind: Kind = Kind.MANY


def _scalars(*values: float) -> Callable[[np.random.Generator], Arrays]:
    return lambda random: tuple(np.array(value, np.float32) for value in values)


def _vectors(random: np.random.Generator) -> Arrays:
    return tuple(random.standard_normal(1_000_000).astype(np.float32) for _ in range(3))


def _training(random: np.random.Generator) -> Arrays:
    """Four parameters, their four velocities, x: (64, 64) float32, y: (64,) int32."""
    shapes = [(64, 128), (128,), (128, 10), (10,)]
    params = [0.1 * random.standard_normal(shape).astype(np.float32) for shape in shapes]
    velocities = [np.zeros(shape, np.float32) for shape in shapes]
    return (*params, *velocities, random.random((64, 64), np.float32), random.integers(0, 10, 64).astype(np.int32))


def _normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Arrays]:
    return lambda random: tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


def _lstm(random: np.random.Generator) -> Arrays:
    """x: (50, 1, 64), weights of the input and of the state: (64, 256), bias: (256,), float32."""
    weights = [0.1 * random.standard_normal((64, 256)).astype(np.float32) for _ in range(2)]
    return (random.standard_normal((50, 1, 64)).astype(np.float32), *weights, np.zeros(256, np.float32))


WORKLOADS = {
    "call": Workload("x + 1 on one element: the overhead of a call", lambda random: (np.ones(1, np.float32),)),
    "loss_gradient": Workload(
        "gradient of (y - (a x + b))^2 in a and b, scalars",
        _scalars(0.5, 0.25, 3.0, 2.0),
    ),
    "chain": Workload("relu(x y + z) x - y on 1e6 elements", _vectors),
    "chain_tanh": Workload("tanh(x y + z) x - y on 1e6 elements", _vectors),
    "mlp_step": Workload("training step of examples/digits.py, batch 64", _training),
    "matmul": Workload("product of matrices, 512 by 512", _normal((512, 512), (512, 512))),
    "matmul_odd": Workload("product of matrices, (500, 333) by (333, 257)", _normal((500, 333), (333, 257))),
    "softmax": Workload("softmax over rows of 1000 by 1000", _normal((1000, 1000))),
    "layer_norm": Workload("rows of 1000 by 999 less their mean, over their deviation", _normal((1000, 999))),
    "lstm": Workload("LSTM, 50 steps of 64 units, batch 1: the last state", _lstm),
    "lstm_gradient": Workload("derivative of its sum in the weights", _lstm, 1e-3),
    "newton": Workload("square root of 1e6 by Newton's method, a while loop", _scalars(1e6)),
    "newton_second": Workload("second derivative of that loop", _scalars(1e6)),
    "chain_ten": Workload("ten elementwise operators on 1e6 elements", _normal((1_000_000,), (1_000_000,))),
    "chain_ten_large": Workload("the same on 1e7", _normal((10_000_000,), (10_000_000,))),
    "matmul_256": Workload("product of matrices, 256 by 256", _normal((256, 256), (256, 256))),
    "matmul_1024": Workload("1024 by 1024", _normal((1024, 1024), (1024, 1024))),
    "matmul_2048": Workload("2048 by 2048", _normal((2048, 2048), (2048, 2048))),
    "matmul_batch": Workload("32 products, 64 by 64", _normal((32, 64, 64), (32, 64, 64))),
    "matvec": Workload("product of a matrix, 2048 by 2048, and a vector", _normal((2048, 2048), (2048,))),
    "perceptron_step": Workload("training step of 784-512-512-10, batch 64", inputs.perceptron(64)),
    "perceptron_step_one": Workload("batch 1", inputs.perceptron(1)),
    "lstm_long_gradient": Workload("LSTM, 200 steps of 128 units, batch 1: derivative", inputs.lstm(200, 128, 1), 1e-3),
    "lstm_batch_gradient": Workload("LSTM, 50 steps of 256 units, batch 16", inputs.lstm(50, 256, 16), 1e-3),
    "lstm_any_batch_gradient": Workload("the same, compiled for any steps and batch", inputs.lstm(50, 256, 16), 1e-3),
    "resnet18": Workload("ResNet-18, one image, 224 by 224", inputs.NETWORKS["resnet18"].arrays),
    "resnet20": Workload("ResNet-20, one image, 32 by 32", inputs.NETWORKS["resnet20"].arrays),
    "inception": Workload("GoogLeNet's block 3a, 192 channels of 28 by 28", inputs.inception),
    "treelstm": Workload("child-sum LSTM of 128 units on trees of 32 leaves, recursion", inputs.trees(32, 128)),
    "treelstm_gradient": Workload("derivative of its sum in the weights", inputs.trees(32, 128), 1e-3),
    "newton_gradient": Workload("derivative of that loop", _scalars(1e6)),
    "first_perceptron": Workload(
        "first result of the training step of 784-512-512-10", inputs.perceptron(64), kind=Kind.FIRST
    ),
    "found_perceptron": Workload(
        "the same in a process that finds it compiled on disk", inputs.perceptron(64), kind=Kind.FOUND
    ),
    **{
        f"first_chain_{count}": Workload(
            f"first derivative of a chain of {count} operators on 16 by 16",
            lambda random: (np.full((16, 16), 0.5, np.float32),),
            1e-2,
            Kind.FIRST,
        )
        for count in inputs.CHAINS
    },
}
