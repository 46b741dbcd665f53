"""The larger workloads in JAX, compiled with jit."""

from functools import partial

import jax
from jax import lax
from jax import numpy as jnp

from models.inputs import CHAINS, NETWORKS, chain_source, grown, on_trees


def chain_ten(x, y):
    z = jnp.tanh(x * y + 1.0) * x
    z = jnp.exp(-jnp.abs(z)) + y
    return jnp.sqrt(z * z + 1.0) - x


def perceptron(params, x, y):
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = params[-1]
    rows = jnp.arange(len(y))
    return -jnp.mean(jax.nn.log_softmax(x @ weight + bias)[rows, y])


def perceptron_step(w1, b1, w2, b2, w3, b3, x, y):
    params = (w1, b1), (w2, b2), (w3, b3)
    value, gradients = jax.value_and_grad(perceptron)(params, x, y)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def lstm_sum(x, w, u, b):
    def step(state, row):
        h, c = state
        i, f, g, o = jnp.split(row @ w + h @ u + b, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zero = jnp.zeros_like(x[0])
    return jnp.sum(lax.scan(step, (zero, zero), x)[0][0])


def convolution(x, layer, stride=1):
    weight, scale, shift = layer
    pad = weight.shape[2] // 2
    return lax.conv_general_dilated(x, weight, (stride, stride), [(pad, pad)] * 2) * scale + shift


def residual(x, params):
    large = params["first"][0].shape[2] == 7
    x = jax.nn.relu(convolution(x, params["first"], 2 if large else 1))
    if large:
        pad = ((0, 0), (0, 0), (1, 1), (1, 1))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), pad)
    for block in params["blocks"]:
        stride = 1 if block["down"] is None else 2
        y = convolution(jax.nn.relu(convolution(x, block["one"], stride)), block["two"])
        if block["down"] is not None:
            x = convolution(x, block["down"], 2)
        x = jax.nn.relu(x + y)
    weight, bias = params["last"]
    return x.mean(axis=(2, 3)) @ weight + bias


lstm_gradient = jax.jit(jax.grad(lstm_sum, argnums=(1, 2, 3)))


def treelstm_state(tree, w, u, v, b, d):
    """A tree is a row or a pair of trees."""
    if not isinstance(tree, tuple):
        gates = tree @ w + b
        memory = jax.nn.sigmoid(gates[:128]) * jnp.tanh(gates[256:])
    else:
        left_state, left_memory = treelstm_state(tree[0], w, u, v, b, d)
        right_state, right_memory = treelstm_state(tree[1], w, u, v, b, d)
        gates = (left_state + right_state) @ u + b
        memory = jax.nn.sigmoid(gates[:128]) * jnp.tanh(gates[256:])
        memory = memory + jax.nn.sigmoid(left_state @ v + d) * left_memory
        memory = memory + jax.nn.sigmoid(right_state @ v + d) * right_memory
    return jax.nn.sigmoid(gates[128:256]) * jnp.tanh(memory), memory


def treelstm(tree, w, u, v, b, d):
    return treelstm_state(tree, w, u, v, b, d)[0].sum()


def grow(splits, rows):
    return grown(splits, rows, leaf=lambda row: row, node=lambda left, right: (left, right))


ON_TREES = {
    "treelstm": lambda inputs: on_trees(jax.jit(treelstm), inputs, grow),
    "treelstm_gradient": lambda inputs: on_trees(jax.jit(jax.grad(treelstm, argnums=(1, 2, 3, 4, 5))), inputs, grow),
}
"""Each form of a tree is traced and compiled."""


def chain(count):
    names = {"tanh": jnp.tanh, "sin": jnp.sin, "sigmoid": jax.nn.sigmoid, "sum": jnp.sum}
    exec(chain_source(count, ""), names)
    return jax.jit(jax.grad(names["chain"]))


FIRST = {
    "first_perceptron": lambda: jax.jit(perceptron_step),
    "found_perceptron": lambda: jax.jit(perceptron_step),
    **{f"first_chain_{count}": partial(chain, count) for count in CHAINS},
}
"""What makes functions whose first result is timed."""

FUNCTIONS = {
    "chain_ten": jax.jit(chain_ten),
    "chain_ten_large": jax.jit(chain_ten),
    "perceptron_step": jax.jit(perceptron_step),
    "perceptron_step_one": jax.jit(perceptron_step),
    "lstm_long_gradient": lstm_gradient,
    "lstm_batch_gradient": lstm_gradient,
    "lstm_any_batch_gradient": lstm_gradient,
    "matmul_256": jax.jit(jnp.matmul),
    "matmul_1024": jax.jit(jnp.matmul),
    "matmul_2048": jax.jit(jnp.matmul),
    "matmul_batch": jax.jit(jnp.matmul),
    "matvec": jax.jit(jnp.matmul),
    **{
        name: jax.jit(lambda x, *weights, n=network: residual(x, n.structure(weights)))
        for name, network in NETWORKS.items()
    },
}
"""Without `newton_second`: a lax.while_loop has no reverse derivative."""
