"""The workloads in PyTorch, eager or with torch.compile."""

import os
from collections.abc import Callable

import numpy as np
import torch
from models import torch as models
from models.inputs import on_trees
from torch.nn import functional

COMPILED = False  # set by measure.py


def loss(a, b, x, y):
    return (y - (a * x + b)) ** 2


def chain(x, y, z):
    return torch.relu(x * y + z) * x - y


def chain_tanh(x, y, z):
    return torch.tanh(x * y + z) * x - y


def network_loss(params, x, y):
    w1, b1, w2, b2 = params
    return functional.cross_entropy(torch.relu(x @ w1 + b1) @ w2 + b2, y)


def layer_norm(x):
    centerd = x - x.mean(dim=1, keepdim=True)
    return centerd / torch.sqrt((centerd * centerd).mean(dim=1, keepdim=True) + 1e-5)


def lstm(x, w, u, b):
    h = c = torch.zeros_like(x[0])
    for row in x:
        i, f, g, o = torch.chunk(row @ w + h @ u + b, 4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h


def newton(x):
    guess = x
    while torch.abs(guess * guess - x) > 0.00001 * x:
        guess = (guess + x / guess) / 2
    return guess


def prepare(workload: str, inputs: tuple[np.ndarray, ...]) -> Callable[[], object]:
    """A call without arguments that runs the workload once."""
    accelerate: Callable = torch.compile if COMPILED else lambda function: function
    device = os.environ.get("TORCH_DEVICE", "cpu")
    arguments = tuple(torch.from_numpy(np.array(value)).to(device) for value in inputs)

    def without_gradient(function: Callable) -> Callable[[], object]:
        fast = accelerate(function)

        def call() -> object:
            with torch.no_grad():
                return fast(*arguments)

        return call

    match workload:
        case "call":
            return without_gradient(lambda x: x + 1)
        case "loss_gradient":
            fast_loss = accelerate(loss)
            wrt = tuple(value.requires_grad_() for value in arguments[:2])
            return lambda: torch.autograd.grad(fast_loss(*wrt, *arguments[2:]), wrt)
        case "chain":
            return without_gradient(chain)
        case "chain_tanh":
            return without_gradient(chain_tanh)
        case "mlp_step":
            return _training_step(accelerate, arguments)
        case "matmul" | "matmul_odd":
            return without_gradient(torch.matmul)
        case "softmax":
            return without_gradient(lambda x: torch.softmax(x, dim=1))
        case "layer_norm":
            return without_gradient(layer_norm)
        case "lstm":
            return without_gradient(lstm)
        case "lstm_gradient":
            fast_lstm = accelerate(lstm)
            weights = tuple(value.requires_grad_() for value in arguments[1:])
            return lambda: torch.autograd.grad(fast_lstm(arguments[0], *weights).sum(), weights)
        case "newton":
            return without_gradient(newton)
        case "newton_gradient":
            fast_newton = accelerate(newton)
            x = arguments[0].requires_grad_()
            return lambda: torch.autograd.grad(fast_newton(x), x)
        case "treelstm":
            fast_tree = accelerate(models.treelstm)
            call = on_trees(fast_tree, (inputs[0], *arguments[1:]), models.grow)

            def untracked() -> object:
                with torch.no_grad():
                    return call()

            return untracked
        case "treelstm_gradient":
            fast_tree = accelerate(models.treelstm)
            wrt = [value.requires_grad_() for value in arguments[2:]]

            def differentiate(tree, *weights):
                return torch.autograd.grad(fast_tree(tree, *weights), weights)

            return on_trees(differentiate, (inputs[0], arguments[1], *wrt), models.grow)
        case _ if workload in models.FUNCTIONS:
            return without_gradient(models.FUNCTIONS[workload])
        case _ if workload in models.DERIVATIVES:
            function, positions = models.DERIVATIVES[workload]
            fast, wrt = accelerate(function), [arguments[n].requires_grad_() for n in positions]
            return lambda: torch.autograd.grad(fast(*arguments).sum(), wrt)
        case _ if workload in models.STEPS:
            return _descent_step(accelerate(models.STEPS[workload]), accelerate, arguments)
        case _:
            raise NotImplementedError(workload)


def _descent_step(loss: Callable, accelerate: Callable, arguments: tuple[torch.Tensor, ...]) -> Callable[[], object]:
    params = [value.requires_grad_() for value in arguments[:-2]]
    x, y = arguments[-2], arguments[-1].long()
    update = accelerate(lambda params, gradients: [p - 0.1 * g for p, g in zip(params, gradients, strict=True)])

    def call() -> object:
        value = loss(*params, x, y)
        gradients = torch.autograd.grad(value, params)
        with torch.no_grad():
            return value.detach(), update(params, gradients)

    return call


def _training_step(accelerate: Callable, arguments: tuple[torch.Tensor, ...]) -> Callable[[], object]:
    params = tuple(value.requires_grad_() for value in arguments[:4])
    velocities, (x, y) = arguments[4:8], arguments[8:]
    y = y.long()
    fast_loss = accelerate(network_loss)

    def update(params, velocities, gradients):
        new = tuple(0.9 * v - 0.05 * g for v, g in zip(velocities, gradients, strict=True))
        return tuple(p + v for p, v in zip(params, new, strict=True)), new

    fast_update = accelerate(update)

    def call() -> object:
        value = fast_loss(params, x, y)
        gradients = torch.autograd.grad(value, params)
        with torch.no_grad():
            return value.detach(), *fast_update(params, velocities, gradients)

    return call
