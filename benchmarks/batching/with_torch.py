"""The batched workloads in PyTorch, eager: `torch.func.vmap` has no loops that end by values."""

from __future__ import annotations

from typing import Any

import torch
from inputs import grown
from torch.func import grad, vmap

torch.set_num_threads(1)


def mlp_loss(w1, w2, x, y):
    return ((torch.tanh(x @ w1) @ w2 - y) ** 2).sum()


def cnn_loss(kernel, weight, image):
    h = torch.relu(torch.nn.functional.conv2d(image[None], kernel))
    return (torch.tanh(h.reshape(-1) @ weight) ** 2).sum()


def newton(a):
    x = a.clone()
    while True:
        active = (x * x - a).abs() > 1e-4 * a
        if not active.any():
            return x
        x = torch.where(active, 0.5 * (x + a / x), x)


def mandelbrot(x, y):
    u, v, n = torch.zeros_like(x), torch.zeros_like(y), torch.zeros_like(x, dtype=torch.int32)
    for _ in range(50):
        active = u * u + v * v < 4.0
        u, v = torch.where(active, u * u - v * v + x, u), torch.where(active, 2.0 * u * v + y, v)
        n = n + active
    return n


def particle_filter(places, noise, seen):
    mean = torch.zeros(())
    for t in range(50):
        places = vmap(lambda p, e: 0.9 * p + torch.sin(p) + 0.5 * e)(places, noise[t])
        weights = torch.softmax(-((places - seen[t]) ** 2), 0)
        mean = mean + (weights * places).sum()
    return mean


def state(tree, w, u, v, b, d):
    if not isinstance(tree, tuple):
        gates = tree @ w + b
        memory = torch.sigmoid(gates[:128]) * torch.tanh(gates[256:])
        return torch.sigmoid(gates[128:256]) * torch.tanh(memory), memory
    (h, m), (g, n) = state(tree[0], w, u, v, b, d), state(tree[1], w, u, v, b, d)
    gates = (h + g) @ u + b
    memory = torch.sigmoid(gates[:128]) * torch.tanh(gates[256:])
    memory = memory + torch.sigmoid(h @ v + d) * m + torch.sigmoid(g @ v + d) * n
    return torch.sigmoid(gates[128:256]) * torch.tanh(memory), memory


def trees(forms, rows, *weights):
    forest = grown(forms, torch.from_numpy(rows), lambda row: row, lambda *two: two)
    with torch.no_grad():
        return sum(state(tree, *map(torch.from_numpy, weights))[0].sum() for tree in forest)


def trees_gradient(forms, rows, *weights):
    forest = grown(forms, torch.from_numpy(rows), lambda row: row, lambda *two: two)
    leaves = [torch.from_numpy(w).requires_grad_() for w in weights]
    return torch.autograd.grad(sum(state(tree, *leaves)[0].sum() for tree in forest), leaves)


def ragged_attention(sentences, *weights):
    q, k, v = map(torch.from_numpy, weights)
    found = []
    for x in map(torch.from_numpy, sentences):
        found.append((torch.softmax((x @ q) @ (x @ k).T, -1) @ (x @ v)).mean(0))
    return torch.stack(found)


def settling(w, x, rounds):
    n = 0
    while True:
        active = (n < rounds)[:, None]
        if not active.any():
            return x
        x = torch.where(active, torch.tanh(x @ w.T), x)
        n += 1


def experts(w1, w2, x):
    y = x @ w1
    return torch.where(x[0] > 0.0, torch.tanh(y) @ w2, torch.exp(-y.abs()) @ w2)


def _of_arrays(function: Any) -> Any:
    return lambda *arrays: function(*map(torch.from_numpy, arrays))


def programs() -> dict[str, Any]:
    """The workloads: functions of their inputs."""
    made = {
        "mlp": vmap(grad(mlp_loss, (0, 1)), (None, None, 0, 0)),
        "cnn": vmap(grad(cnn_loss, (0, 1)), (None, None, 0)),
        "newton": newton,
        "mandelbrot": mandelbrot,
        "particle_filter": particle_filter,
        "settling": settling,
        "experts": vmap(experts, (None, None, 0)),
    }
    one_by_one = {"trees_one_by_one": trees, "trees_gradient_one_by_one": trees_gradient}
    return {
        **{name: _of_arrays(function) for name, function in made.items()},
        **one_by_one,
        "ragged_attention": ragged_attention,
    }


def wait(result: Any) -> Any:
    """The result, when it is there."""
    return result
