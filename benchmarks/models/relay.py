"""The larger workloads in Relay."""

from __future__ import annotations

from functools import partial

import relay
from models.inputs import CHAINS, NETWORKS, chain_source, grown, inception_layers, on_trees
from relay import relay as function


@function
def chain_ten(x, y):
    z = relay.tanh(x * y + 1.0) * x
    z = relay.exp(-relay.abs(z)) + y
    return relay.sqrt(z * z + 1.0) - x


@function
def perceptron(params, x, y):
    for weight, bias in params[:-1]:
        x = relay.relu(x @ weight + bias)
    weight, bias = params[-1]
    return relay.cross_entropy(x @ weight + bias, y).mean()


@function
def perceptron_step(w1, b1, w2, b2, w3, b3, x, y):
    params = (w1, b1), (w2, b2), (w3, b3)
    value, gradients = relay.value_and_grad(perceptron, wrt=0)(params, x, y)
    new = [(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, gradients)]  # noqa: B905
    return value, new


@function
def lstm(x, w, u, b):
    units = u.shape[0]
    h = relay.zeros_like(x[0])
    c = h
    for row in x:
        gates = row @ w + h @ u + b
        i, f = relay.sigmoid(gates[:, :units]), relay.sigmoid(gates[:, units : 2 * units])
        g, o = relay.tanh(gates[:, 2 * units : 3 * units]), relay.sigmoid(gates[:, 3 * units :])
        c = f * c + i * g
        h = o * relay.tanh(c)
    return h


@function(dynamic=False)  # like jax.jit: each row's sizes are compiled by themselves
def lstm_sum(x, w, u, b):
    return relay.sum(lstm(x, w, u, b))


@function
def lstm_sum_of_any_batch(x, w, u, b):
    return relay.sum(lstm(x, w, u, b))


def lstm_any_batch(inputs):
    """The derivative's program for symbolic numbers of steps and examples, made by calls with two others."""
    x, *weights = inputs
    gradient = relay.grad(lstm_sum_of_any_batch, wrt=(1, 2, 3))
    for steps, batch in ((2, 3), (3, 4)):
        gradient(x[:steps, :batch].copy(), *weights)
    return lambda: gradient(*inputs)


@function
def newton(x):
    guess = x
    while relay.abs(guess * guess - x) > 0.00001 * x:
        guess = (guess + x / guess) / 2.0
    return guess


@function
def convolution(x, layer, stride=1):
    weight, scale, shift = layer
    return relay.conv2d(x, weight, stride=stride, padding=weight.shape[2] // 2) * scale + shift


@function
def residual(x, params):
    large = params["first"][0].shape[2] == 7
    x = relay.relu(convolution(x, params["first"], 2 if large else 1))
    if large:
        x = relay.max_pool2d(x, 3, stride=2, padding=1)
    for block in params["blocks"]:
        stride = 1 if block["down"] is None else 2
        y = convolution(relay.relu(convolution(x, block["one"], stride)), block["two"])
        if block["down"] is not None:
            x = convolution(x, block["down"], 2)
        x = relay.relu(x + y)
    weight, bias = params["last"]
    return x.mean(axis=(2, 3)) @ weight + bias


@function
def biased(x, layer):
    weight, bias = layer
    return relay.relu(relay.conv2d(x, weight, padding=weight.shape[2] // 2) + bias)


@function
def inception(x, layers):
    three = biased(biased(x, layers["narrow3"]), layers["three"])
    five = biased(biased(x, layers["narrow5"]), layers["five"])
    pooled = biased(relay.max_pool2d(x, 3, stride=1, padding=1), layers["pooled"])
    return relay.concatenate((biased(x, layers["one"]), three, five, pooled), axis=1)


@function
def matmul(x, y):
    return x @ y


@relay.data
class Tree:
    class Leaf:
        row: relay.Tensor[relay.Float, (128,)]

    class Node:
        left: Tree
        right: Tree


@function
def treelstm_state(tree, w, u, v, b, d):
    match tree:
        case Tree.Leaf(row):
            gates = row @ w + b
            memory = relay.sigmoid(gates[:128]) * relay.tanh(gates[256:])
            return relay.sigmoid(gates[128:256]) * relay.tanh(memory), memory
        case Tree.Node(left, right):
            left_state, left_memory = treelstm_state(left, w, u, v, b, d)
            right_state, right_memory = treelstm_state(right, w, u, v, b, d)
            gates = (left_state + right_state) @ u + b
            memory = relay.sigmoid(gates[:128]) * relay.tanh(gates[256:])
            memory = memory + relay.sigmoid(left_state @ v + d) * left_memory
            memory = memory + relay.sigmoid(right_state @ v + d) * right_memory
            return relay.sigmoid(gates[128:256]) * relay.tanh(memory), memory


@function
def treelstm(tree, w, u, v, b, d):
    state, _ = treelstm_state(tree, w, u, v, b, d)
    return relay.sum(state)


grow = partial(grown, leaf=Tree.Leaf, node=Tree.Node)

ON_TREES = {
    "treelstm": lambda inputs: on_trees(treelstm, inputs, grow),
    "treelstm_gradient": lambda inputs: on_trees(relay.grad(treelstm, wrt=(1, 2, 3, 4, 5)), inputs, grow),
}


def chain(count):
    return relay.grad(relay.from_source(chain_source(count, "relay."), {"relay": relay}))


FIRST = {
    "first_perceptron": lambda: perceptron_step,
    "found_perceptron": lambda: perceptron_step,
    **{f"first_chain_{count}": partial(chain, count) for count in CHAINS},
}
"""What makes functions whose first result is timed."""

FUNCTIONS = {
    "chain_ten": chain_ten,
    "chain_ten_large": chain_ten,
    "perceptron_step": perceptron_step,
    "perceptron_step_one": perceptron_step,
    "lstm_long_gradient": relay.grad(lstm_sum, wrt=(1, 2, 3)),
    "lstm_batch_gradient": relay.grad(lstm_sum, wrt=(1, 2, 3)),
    "newton_second": relay.grad(relay.grad(newton)),
    "matmul_256": matmul,
    "matmul_1024": matmul,
    "matmul_2048": matmul,
    "matmul_batch": matmul,
    "matvec": matmul,
}


def deployed(network, inputs):
    """A call of a network whose weights are constants, which are scaled and packed when it is compiled."""
    x, *weights = inputs
    params = network.structure(weights)

    @function(opt_level=3)
    def of_image(x):
        return residual(x, params)

    return lambda: of_image(x)


def deployed_inception(inputs):
    """A call of the block with constant weights."""
    x, *weights = inputs
    layers = inception_layers(weights)

    @function(opt_level=3)
    def of_image(x):
        return inception(x, layers)

    return lambda: of_image(x)


PREPARED = {
    "inception": deployed_inception,
    "lstm_any_batch_gradient": lstm_any_batch,
    **{name: partial(deployed, network) for name, network in NETWORKS.items()},
}
"""What makes a call without arguments, given the arrays."""
