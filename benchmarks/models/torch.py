"""The larger workloads in PyTorch. `DERIVATIVES` differentiate by the arguments at these positions, after a sum."""

import torch
from torch.nn import functional

from models.inputs import NETWORKS, grown, inception_layers


def chain_ten(x, y):
    z = torch.tanh(x * y + 1.0) * x
    z = torch.exp(-torch.abs(z)) + y
    return torch.sqrt(z * z + 1.0) - x


def perceptron(w1, b1, w2, b2, w3, b3, x, y):
    x = torch.relu(x @ w1 + b1)
    x = torch.relu(x @ w2 + b2)
    return functional.cross_entropy(x @ w3 + b3, y)


def lstm(x, w, u, b):
    """The library's own LSTM, whose gates have the same order."""
    units = u.shape[0]
    zero = torch.zeros(1, x.shape[1], units)
    weights = [w.T.contiguous(), u.T.contiguous(), b, torch.zeros_like(b)]
    output, _, _ = torch.lstm(x, (zero, zero), weights, True, 1, 0.0, False, False, False)
    return output[-1]


def convolution(x, layer, stride=1):
    weight, scale, shift = layer
    return functional.conv2d(x, weight, stride=stride, padding=weight.shape[2] // 2) * scale + shift


def residual(x, params):
    large = params["first"][0].shape[2] == 7
    x = torch.relu(convolution(x, params["first"], 2 if large else 1))
    if large:
        x = functional.max_pool2d(x, 3, 2, 1)
    for block in params["blocks"]:
        stride = 1 if block["down"] is None else 2
        y = convolution(torch.relu(convolution(x, block["one"], stride)), block["two"])
        if block["down"] is not None:
            x = convolution(x, block["down"], 2)
        x = torch.relu(x + y)
    weight, bias = params["last"]
    return x.mean(dim=(2, 3)) @ weight + bias


def inception(x, *weights):
    layers = inception_layers(weights)

    def biased(y, name):
        weight, bias = layers[name]
        return torch.relu(functional.conv2d(y, weight, bias.flatten(), padding=weight.shape[2] // 2))

    three, five = biased(biased(x, "narrow3"), "three"), biased(biased(x, "narrow5"), "five")
    pooled = biased(functional.max_pool2d(x, 3, 1, 1), "pooled")
    return torch.cat((biased(x, "one"), three, five, pooled), dim=1)


def treelstm_state(tree, w, u, v, b, d):
    """A tree is a row or a pair of trees."""
    if not isinstance(tree, tuple):
        gates = tree @ w + b
        memory = torch.sigmoid(gates[:128]) * torch.tanh(gates[256:])
    else:
        left_state, left_memory = treelstm_state(tree[0], w, u, v, b, d)
        right_state, right_memory = treelstm_state(tree[1], w, u, v, b, d)
        gates = (left_state + right_state) @ u + b
        memory = torch.sigmoid(gates[:128]) * torch.tanh(gates[256:])
        memory = memory + torch.sigmoid(left_state @ v + d) * left_memory
        memory = memory + torch.sigmoid(right_state @ v + d) * right_memory
    return torch.sigmoid(gates[128:256]) * torch.tanh(memory), memory


def treelstm(tree, w, u, v, b, d):
    return treelstm_state(tree, w, u, v, b, d)[0].sum()


def grow(splits, rows):
    return grown(splits, rows, leaf=lambda row: row, node=lambda left, right: (left, right))


FUNCTIONS = {
    "chain_ten": chain_ten,
    "inception": inception,
    "chain_ten_large": chain_ten,
    "matmul_256": torch.matmul,
    "matmul_1024": torch.matmul,
    "matmul_2048": torch.matmul,
    "matmul_batch": torch.matmul,
    "matvec": torch.matmul,
    **{name: lambda x, *weights, n=network: residual(x, n.structure(weights)) for name, network in NETWORKS.items()},
}

DERIVATIVES = {
    "lstm_long_gradient": (lstm, (1, 2, 3)),
    "lstm_batch_gradient": (lstm, (1, 2, 3)),
    "lstm_any_batch_gradient": (lstm, (1, 2, 3)),
}

STEPS = {"perceptron_step": perceptron, "perceptron_step_one": perceptron}
"""Losses of training steps: all arguments but the last two are parameters."""
