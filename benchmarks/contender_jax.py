"""The workloads in JAX, compiled with jit."""

from collections.abc import Callable

import jax
import numpy as np
from jax import numpy as jnp
from models.jax import FIRST, FUNCTIONS, ON_TREES


def loss(a, b, x, y):
    return (y - (a * x + b)) ** 2


def chain(x, y, z):
    return jax.nn.relu(x * y + z) * x - y


def chain_tanh(x, y, z):
    return jnp.tanh(x * y + z) * x - y


def network_loss(params, x, y):
    w1, b1, w2, b2 = params
    log_probabilities = jax.nn.log_softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)
    return -jnp.mean(jnp.sum(jax.nn.one_hot(y, 10) * log_probabilities, axis=1))


def mlp_step(params, velocities, x, y):
    value, gradients = jax.value_and_grad(network_loss)(params, x, y)
    velocities = tuple(0.9 * v - 0.05 * g for v, g in zip(velocities, gradients, strict=True))
    return value, tuple(p + v for p, v in zip(params, velocities, strict=True)), velocities


def layer_norm(x):
    centerd = x - jnp.mean(x, axis=1, keepdims=True)
    return centerd / jnp.sqrt(jnp.mean(centerd * centerd, axis=1, keepdims=True) + 1e-5)


def lstm(x, w, u, b):
    def step(state, row):
        h, c = state
        i, f, g, o = jnp.split(row @ w + h @ u + b, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zero = jnp.zeros_like(x[0])
    return jax.lax.scan(step, (zero, zero), x)[0][0]


def lstm_sum(x, w, u, b):
    return jnp.sum(lstm(x, w, u, b))


def newton(x):
    def unfinished(guess):
        return jnp.abs(guess * guess - x) > 0.00001 * x

    return jax.lax.while_loop(unfinished, lambda guess: (guess + x / guess) / 2, x)


def newton_unrolled(x):
    """Python's own loop: jit cannot trace it, but its reverse derivative exists."""
    guess = x
    while jnp.abs(guess * guess - x) > 0.00001 * x:
        guess = (guess + x / guess) / 2
    return guess


def import_compiler() -> None:
    """Start the backend; programs compiled by an earlier process are in JAX_COMPILATION_CACHE_DIR."""
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.block_until_ready(jnp.zeros(1))


def prepare(workload: str, inputs: tuple[np.ndarray, ...]) -> Callable[[], object]:
    """A call without arguments that runs the workload once and waits for its result."""
    arguments = tuple(jnp.asarray(value) for value in inputs)
    match workload:
        case "call":
            function = jax.jit(lambda x: x + 1)
        case "loss_gradient":
            function = jax.jit(jax.grad(loss, argnums=(0, 1)))
        case "chain":
            function = jax.jit(chain)
        case "chain_tanh":
            function = jax.jit(chain_tanh)
        case "mlp_step":
            function = jax.jit(mlp_step)
            arguments = (arguments[:4], arguments[4:8], *arguments[8:])
        case "matmul" | "matmul_odd":
            function = jax.jit(jnp.matmul)
        case "softmax":
            function = jax.jit(jax.nn.softmax)
        case "layer_norm":
            function = jax.jit(layer_norm)
        case "lstm":
            function = jax.jit(lstm)
        case "lstm_gradient":
            function = jax.jit(jax.grad(lstm_sum, argnums=(1, 2, 3)))
        case "newton":
            function = jax.jit(newton)
        case "newton_gradient":
            function = jax.grad(newton_unrolled)  # a lax.while_loop has no reverse derivative
        case _ if workload in FIRST:
            function = FIRST[workload]()
        case _ if workload in ON_TREES:
            call = ON_TREES[workload]((inputs[0], *arguments[1:]))
            return lambda: jax.block_until_ready(call())
        case _ if workload in FUNCTIONS:
            function = FUNCTIONS[workload]
        case _:
            raise NotImplementedError(workload)
    return lambda: jax.block_until_ready(function(*arguments))
