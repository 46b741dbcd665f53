"""Numbers that a call writes are known in the called function where it needs them at compile time."""

import numpy as np

from relay import relay
from zoo import Program


def _rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


@relay
def total(x, axis=0):
    return x.sum(axis=axis)


@relay
def totals(x):
    return total(x) ** 2 @ relay.ones_like(total(x)) + (total(x, 1) * total(x, axis=-1)).sum()


@relay
def along(x, axis):
    return total(relay.sin(x), axis)


@relay
def along_both(x):
    return along(x, 0).max() + along(x, 1).max()


@relay
def convolved(x, weight, stride=1, padding=None):
    around = weight.shape[2] // 2 if padding is None else padding
    return relay.tanh(relay.conv2d(x, weight, stride=stride, padding=around))


@relay
def two_convolutions(x, weight):
    return convolved(convolved(x, weight, 2), weight, stride=1, padding=0).sum()


@relay
def heads(x, count):
    rows, width = x.shape
    return x.reshape(rows, count, width // count).transpose(1, 0, 2)


@relay
def attended(x):
    def scores(heads_, scale):
        return relay.softmax(heads_ @ heads_.transpose(0, 2, 1) * scale, axis=-1)

    split = heads(x, 3)
    return (scores(split, 0.5) @ split).sum()


@relay
def part(parts, which):
    return parts[which]


@relay
def parts_of_different_types(x):
    pair = (x, x.sum(axis=1))
    return part(pair, 0).sum() * part(pair, 1).max()


@relay
def summed_until(x, axis, limit):
    if total(x, axis).sum() > limit:
        return x
    return summed_until(x * 2.0 + 1.0, axis, limit)


@relay
def recursive_with_axis(x):
    return summed_until(relay.abs(x), 1, 100.0).sum()


@relay
def attention_of_heads(q, k, v, heads):
    n, t, d = q.shape
    split = lambda z: z.reshape((n, t, heads, d // heads)).transpose((0, 2, 1, 3))
    scores = split(q) @ split(k).transpose((0, 1, 3, 2))
    return (relay.softmax(scores) @ split(v)).transpose((0, 2, 1, 3)).reshape((n, t, d))


@relay
def two_heads(q, k, v):
    return (attention_of_heads(q, k, v, 2) * v).sum()


PROGRAMS = [
    Program(totals, (_rows(3, 4),)),
    Program(along_both, (_rows(3, 4),)),
    Program(two_convolutions, (_rows(1, 2, 6, 6), _rows(2, 2, 3, 3))),
    Program(attended, (_rows(4, 6),)),
    Program(parts_of_different_types, (_rows(2, 3),)),
    Program(recursive_with_axis, (_rows(2, 3),)),
    Program(two_heads, (_rows(2, 3, 4), _rows(2, 3, 4) * 0.5, _rows(2, 3, 4) + 0.25)),
]
