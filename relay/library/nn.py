"""Functions of neural networks under JAX's and PyTorch's names: `relay.nn`, as `jax.nn` and `torch.nn.functional`.

Those that are operators are these operators; the others are written in the language. Where JAX and PyTorch name an
argument differently (`axis` and `dim`), the name is NumPy's.
"""

from __future__ import annotations

import numpy as np

import relay
from relay import (
    conv1d,
    conv2d,
    cross_entropy,
    dropout,
    elu,
    gelu,
    huber_loss,
    l1_loss,
    layer_norm,
    leaky_relu,
    log_softmax,
    logsumexp,
    mish,
    mse_loss,
    one_hot,
    relu,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)

__all__ = [
    "celu",
    "conv1d",
    "conv2d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "logsigmoid",
    "logsumexp",
    "mish",
    "mse_loss",
    "normalize",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_sign",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
    "tanhshrink",
]

# ---- activation functions


@relay
def log_sigmoid(x):
    """log(1 / (1 + exp(-x))), without overflow. x: (T float, s) -> (T, s)."""
    return -softplus(-x)


@relay
def relu6(x):
    """x between 0 and 6. x: (T number, s) -> (T, s). Its gradient at both ends is 0."""
    return np.where(x < 6, relu(x), np.full_like(x, 6))


@relay
def hard_sigmoid(x):
    """relu6(x + 3) / 6. x: (T float, s) -> (T, s)."""
    return relu6(x + 3.0) / 6.0


@relay
def hard_silu(x):
    """x hard_sigmoid(x). x: (T float, s) -> (T, s)."""
    return x * hard_sigmoid(x)


@relay
def hard_tanh(x):
    """x between -1 and 1. x: (T float, s) -> (T, s). Its gradient beyond both ends is 0, and at them 1, as in JAX."""
    return np.where(x > 1, np.ones_like(x), np.where(x < -1, -np.ones_like(x), x))


@relay
def celu(x, alpha=1.0):
    """x where it is positive, otherwise alpha (exp(x / alpha) - 1). x: (T float, s), alpha: (T, ()) -> (T, s)."""
    return np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, np.zeros_like(x), x) / alpha))


@relay
def soft_sign(x):
    """x / (1 + |x|). x: (T float, s) -> (T, s)."""
    return x / (1.0 + np.abs(x))


@relay
def squareplus(x, b=4.0):
    """(x + sqrt(x**2 + b)) / 2, a smooth relu. x: (T float, s), b: (T, ()) -> (T, s)."""
    return 0.5 * (x + np.sqrt(x * x + b))


@relay
def tanhshrink(x):
    """x - tanh(x). x: (T float, s) -> (T, s)."""
    return x - tanh(x)


@relay
def softshrink(x, lambd=0.5):
    """x moved towards 0 by lambd, and 0 where it is nearer. x: (T float, s), lambd: (T, ()) -> (T, s)."""
    return np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, np.zeros_like(x)))


@relay
def hardshrink(x, lambd=0.5):
    """x, and 0 where it is not farther than lambd from 0. x: (T float, s), lambd: (T, ()) -> (T, s)."""
    return np.where(np.abs(x) > lambd, x, np.zeros_like(x))


@relay
def glu(
    x,
    axis=-1,  # relay: static
):
    """The first half of x along an axis, times the sigmoid of the second. x: (T float, s) -> (T, s with half the axis).

    Raises ShapeError where the axis cannot be halved.
    """
    first, second = np.split(x, 2, axis=axis)
    return first * sigmoid(second)


@relay
def softmin(
    x,
    axis=-1,  # relay: static
):
    """softmax(-x) along an axis. x: (T float, s) -> (T, s)."""
    return softmax(-x, axis=axis)


hard_swish = hardswish = hard_silu
hardsigmoid = hard_sigmoid
hardtanh = hard_tanh
logsigmoid = log_sigmoid
softsign = soft_sign
swish = silu

# ---- layers, distances and losses


@relay
def linear(x, weight, bias=None):
    """x weight.T + bias, as in PyTorch. x: (T float, (.., n)), weight: (T, (m, n)), bias: (T, (m,)) -> (T, (.., m))."""
    y = x @ weight.T
    return y if bias is None else y + bias


@relay
def normalize(
    x,
    p=2.0,
    axis=1,  # relay: static
    eps=1e-12,
):
    """x divided by its p-norm along an axis, or by eps where that is larger, as in PyTorch.
    x: (T float, s), p, eps: (T, ()) -> (T, s)."""
    if p == 2.0:
        squares = np.sum(x * x, axis=axis, keepdims=True)
        norm = np.sqrt(np.where(squares > 0, squares, np.ones_like(squares))) * (squares > 0)
    else:
        norm = np.sum(np.abs(x) ** p, axis=axis, keepdims=True) ** (1.0 / p)
    return x / np.maximum(norm, eps)


@relay
def standardize(
    x,
    axis=-1,  # relay: static
    epsilon=1e-5,
):
    """(x - mean) / sqrt(variance + epsilon) along an axis, as in JAX. x: (T float, s) -> (T, s)."""
    mean = np.mean(x, axis=axis, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=axis, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


@relay
def cosine_similarity(
    x,
    y,
    axis=1,  # relay: static
    eps=1e-8,
):
    """The cosine of the angle between the vectors of x and of y along an axis, as in PyTorch: each norm is at least
    eps. x, y: (T float, s) -> (T, s without the axis)."""
    product = np.sum(x * y, axis=axis)
    one, other = np.sum(x * x, axis=axis), np.sum(y * y, axis=axis)
    least = eps * eps
    return product / np.sqrt(np.maximum(one, least) * np.maximum(other, least))


@relay
def smooth_l1_loss(
    prediction,
    target,
    reduction="mean",  # relay: static
    beta=1.0,
):
    """Half the square of the difference over beta where that is smaller than beta, otherwise its size minus beta / 2;
    as in PyTorch. prediction, target: (T float, s) -> (T, ()), or (T, s) with the reduction "none"."""
    distance = np.abs(prediction - target)
    loss = np.where(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta)
    if reduction == "none":
        return loss
    return np.mean(loss) if reduction == "mean" else np.sum(loss)
