"""Programs whose axes have names, which decide reductions, transpositions and layouts."""

from __future__ import annotations

import numpy as np

from relay import HWIO, NCHW, NHWC, Float64, Tensor, data, dims, grad, relay, where
from zoo import Program

n, d, m, c, h, w, k = dims("n d m c h w k")


@data
class Affine:
    weight: Tensor[Float64, dict(feature=3, hidden=4)]
    bias: Tensor[Float64, dict(hidden=4)]


@relay
def affine(layer: Affine, x: Tensor[Float64, dict(batch=n, feature=3)]) -> Tensor[Float64, dict(batch=n, hidden=4)]:
    return x @ layer.weight + layer.bias


@relay
def named_layers(layer: Affine, x: Tensor[Float64, dict(batch=n, feature=3)]):
    hidden = relay.tanh(affine(layer, x))
    centerd = hidden - hidden.mean(axis="batch", keepdims=True)
    return (relay.softmax(centerd, axis="hidden") * hidden).sum(axis=("batch", "hidden"))


@relay
def channels_last(x: Tensor[Float64, (n, h, w, c), NHWC], weight: Tensor[Float64, (k, k, c, m), HWIO]):
    y = relay.relu(relay.conv2d(x, weight, padding=1))
    back: Tensor[Float64, (n, m, h, w), NCHW] = relay.transpose(y, "NCHW")
    pooled = relay.avg_pool2d(back, 2)
    return (pooled.max(axis="C") * 0.5).sum(axis="HW").mean()


@relay
def energy(x: Tensor[Float64, dict(row=n, column=m)]):
    return (relay.einsum("ij->ji", x) ** 2).sum(axis="row").max()


@relay
def named_loop(x: Tensor[Float64, dict(row=n, column=m)], rounds: int):
    for i in range(rounds):
        slope = grad(energy)(x)
        x = where(x > 0.0, x - 0.1 * slope, x[:, ::-1])
        if i > 1:
            x = x.T.transpose(("row", "column"))
    return (x[0] * x[-1]).sum(axis="column") + x.sum(axis="row")[0]


_RANDOM = np.random.default_rng(0)

PROGRAMS = [
    Program(named_layers, (Affine(_RANDOM.normal(size=(3, 4)), _RANDOM.normal(size=4)), _RANDOM.normal(size=(5, 3)))),
    Program(channels_last, (_RANDOM.normal(size=(2, 4, 4, 3)), _RANDOM.normal(size=(3, 3, 3, 2)))),
    Program(named_loop, (_RANDOM.normal(size=(3, 3)), 3)),
]
