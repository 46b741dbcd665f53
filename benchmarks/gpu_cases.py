"""Cases that `gpu_report.py` times beside the workloads of this folder: large tensors, as a part of a GPU's peaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np


@attrs.frozen(eq=False)
class Case:
    """What is computed, on arrays of which shapes, and what it takes: operations of arithmetic, or bytes of memory, of
    which a GPU has a peak; `small` is what a run without a GPU computes."""

    shapes: Callable[[int], tuple[tuple[int, ...], ...]]
    size: int
    small: int
    operations: Callable[[int], float] | None = None
    bytes: Callable[[int], float] | None = None
    dtype: str = "float32"

    def arrays(self, size: int) -> tuple[np.ndarray, ...]:
        """Random arrays, the same in every process."""
        random = np.random.default_rng(0)
        return tuple(random.standard_normal(shape, np.float32).astype(self._numpy) for shape in self.shapes(size))

    @property
    def _numpy(self) -> Any:
        if self.dtype != "bfloat16":
            return self.dtype
        import ml_dtypes

        return ml_dtypes.bfloat16


def _product(size: int, dtype: str = "float32") -> Case:
    return Case(lambda n: ((n, n), (n, n)), size, 16, operations=lambda n: 2.0 * n**3, dtype=dtype)


CASES = {
    **{f"product_{n}": _product(n) for n in (1024, 2048, 4096, 8192)},
    **{f"product_{n}_bfloat16": _product(n, "bfloat16") for n in (1024, 2048, 4096, 8192)},
    "elementwise": Case(lambda n: ((n,),) * 3, 1 << 26, 1000, bytes=lambda n: 16.0 * n),
    "sum": Case(lambda n: ((n,),), 1 << 26, 1000, bytes=lambda n: 4.0 * n),
    "sum_of_rows": Case(lambda n: ((n, n),), 8192, 40, bytes=lambda n: 4.0 * n * n),
    "sum_of_columns": Case(lambda n: ((n, n),), 8192, 40, bytes=lambda n: 4.0 * n * n),
    "transpose": Case(lambda n: ((n, n),), 8192, 40, bytes=lambda n: 8.0 * n * n),
    "softmax_rows": Case(lambda n: ((n, n),), 8192, 40, bytes=lambda n: 8.0 * n * n),
    "layer_norm_rows": Case(lambda n: ((n, n),), 8192, 40, bytes=lambda n: 8.0 * n * n),
    "attention": Case(lambda n: ((8, n, 64),) * 3, 1024, 8, operations=lambda n: 4.0 * 8 * n * n * 64),
}

WORKLOADS = (
    *("call", "loss_gradient", "mlp_step", "perceptron_step", "perceptron_step_one", "matmul_batch", "matvec"),
    *("newton", "newton_gradient", "lstm", "lstm_gradient", "lstm_batch_gradient", "treelstm", "treelstm_gradient"),
)
"""Those of `workloads.py`."""

LSTM_64 = "lstm_gradient_64"
"""The workload `lstm_batch_gradient`, on 64 sequences."""

SMALL_WORKLOADS = ("call", "newton")


def relay_call(name: str, arrays: tuple[Any, ...]) -> Callable[[], Any]:
    """A case in Relay."""
    import relay

    functions: dict[str, Callable[..., Any]] = {
        "elementwise": lambda x, y, z: x * y + z,
        "sum": lambda x: x.sum(),
        "sum_of_rows": lambda x: x.sum(axis=1),
        "sum_of_columns": lambda x: x.sum(axis=0),
        "transpose": lambda x: x.T * 2.0,
        "softmax_rows": lambda x: relay.softmax(x),
        "layer_norm_rows": lambda x: (x - x.mean(axis=1, keepdims=True)) / relay.sqrt(
            x.var(axis=1, keepdims=True) + 1e-5
        ),
        "attention": lambda q, k, v: relay.softmax(q @ relay.swapaxes(k, -1, -2) * 0.125) @ v,
    }  # fmt: skip
    function = relay.relay(functions.get(name) or (lambda x, y: x @ y))
    given = relay.device_put(arrays)
    return lambda: function(*given)


def torch_call(name: str, arrays: tuple[Any, ...], compiled: bool) -> Callable[[], Any]:
    """A case in PyTorch."""
    import torch

    functions: dict[str, Callable[..., Any]] = {
        "elementwise": lambda x, y, z: x * y + z,
        "sum": lambda x: x.sum(),
        "sum_of_rows": lambda x: x.sum(1),
        "sum_of_columns": lambda x: x.sum(0),
        "transpose": lambda x: (x.T * 2.0).contiguous(),
        "softmax_rows": lambda x: torch.softmax(x, 1),
        "layer_norm_rows": lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]),
        "attention": lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
    }
    function = functions.get(name, torch.matmul)
    fast = torch.compile(function) if compiled else function
    half = CASES[name].dtype == "bfloat16"  # which NumPy's arrays do not give to PyTorch
    given = [
        torch.from_numpy(a.astype(np.float32)).cuda().to(torch.bfloat16 if half else torch.float32) for a in arrays
    ]
    return lambda: fast(*given)


def jax_call(name: str, arrays: tuple[Any, ...]) -> Callable[[], Any]:
    """A case in JAX."""
    import jax
    import jax.numpy as jnp

    functions: dict[str, Callable[..., Any]] = {
        "elementwise": lambda x, y, z: x * y + z,
        "sum": lambda x: x.sum(),
        "sum_of_rows": lambda x: x.sum(1),
        "sum_of_columns": lambda x: x.sum(0),
        "transpose": lambda x: x.T * 2.0,
        "softmax_rows": lambda x: jax.nn.softmax(x, 1),
        "layer_norm_rows": lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5),
        "attention": lambda q, k, v: jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) * 0.125) @ v,
    }
    # float32, as the others: by default JAX lets products have TF32.
    function = jax.jit(functions.get(name, lambda x, y: jnp.matmul(x, y, precision="highest")))
    given = [jnp.asarray(array) for array in arrays]
    return lambda: function(*given)


__all__ = ["CASES", "LSTM_64", "SMALL_WORKLOADS", "WORKLOADS", "jax_call", "relay_call", "torch_call"]
