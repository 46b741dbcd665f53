"""The workloads that ONNX has operators for, in ONNX Runtime."""

import os
from collections.abc import Callable

import numpy as np
from models.onnx import FUNCTIONS


def prepare(workload: str, inputs: tuple[np.ndarray, ...]) -> Callable[[], object]:
    """A call without arguments that runs the workload once."""
    if workload not in FUNCTIONS:
        raise NotImplementedError(workload)
    return FUNCTIONS[workload](*inputs, threads=int(os.environ.get("OMP_NUM_THREADS", "1")))
