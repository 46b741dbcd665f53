"""The batched workloads in Relay."""

from __future__ import annotations

from typing import Any

import numpy as np

import relay


@relay.relay
def mlp_loss(w1, w2, x, y):
    return ((np.tanh(x @ w1) @ w2 - y) ** 2).sum()


@relay.relay
def cnn_loss(kernel, weight, image):
    h = relay.relu(relay.conv2d(image[None], kernel))
    return (np.tanh(h.reshape(-1) @ weight) ** 2).sum()


@relay.relay
def newton(a):
    x = a
    while abs(x * x - a) > 1e-4 * a:
        x = 0.5 * (x + a / x)
    return x


@relay.relay
def mandelbrot(x, y):
    u, v, n = 0.0, 0.0, 0
    while u * u + v * v < 4.0 and n < 50:
        u, v = u * u - v * v + x, 2.0 * u * v + y
        n += 1
    return n


@relay.relay
def particle_filter(places, noise, seen):
    mean = 0.0
    for t in range(50):
        places = relay.vmap(lambda p, e: 0.9 * p + np.sin(p) + 0.5 * e)(places, noise[t])
        weights = relay.softmax(-((places - seen[t]) ** 2))
        mean = mean + (weights * places).sum()
    return mean


def programs() -> dict[str, Any]:
    """The workloads: functions of their inputs."""
    return {
        "mlp": relay.vmap(relay.grad(mlp_loss, wrt=(0, 1)), in_axes=(None, None, 0, 0)),
        "cnn": relay.vmap(relay.grad(cnn_loss, wrt=(0, 1)), in_axes=(None, None, 0)),
        "newton": relay.vmap(newton),
        "mandelbrot": relay.vmap(mandelbrot),
        "particle_filter": particle_filter,
    }


def wait(result: Any) -> Any:
    """The result, when it is there."""
    return result
