"""Programs without control flow."""

import numpy as np

from relay import Float64, Tensor, relay
from zoo import Program


@relay
def sharing(x):
    y = x + x
    return y + y


@relay
def loss(a, b, x, y):
    y_hat = a * x + b
    return ((y - y_hat) ** 2).sum()


@relay
def broadcasting(x, b):
    return relay.tanh(x * 0.5 + b).sum()


@relay
def dense_layer(x, w, b):
    h = relay.relu(x @ w + b)
    return relay.mean(h * h)


@relay
def tuples(pair):
    a, b = pair
    swapped = (b, a)
    return (swapped[0] * a).sum() + swapped[1].sum()


@relay
def softmax_cross_entropy(logits, labels: Tensor[relay.Int32, (3,)]):
    picked = relay.one_hot(labels, 4, dtype=Float64) * relay.log_softmax(logits)
    return -picked.sum() / logits.shape[0]


@relay
def slices(x):
    return (x[1:, ::2] * x[:-1, 1::2]).sum() + x[0, -1] * x[-1, 0]


@relay
def updates(x):
    y = x.copy()
    y[0] = x[1] * 2.0
    y[1:3] += x[:2]
    return (y * y).sum()


@relay
def shapes(x):
    flat = x.reshape(-1)
    again = flat.reshape(x.shape[1], x.shape[0]).T
    both = relay.concatenate((again, x), axis=0)
    return (both * both.sum(axis=0)).sum() / both.size


@relay
def guarded(x):
    return relay.where(x > 0.0, relay.sqrt(relay.where(x > 0.0, x, 1.0)), 0.0 * x).sum()


@relay
def integers(n, m):
    return n // m + n % m - (n * 2) ** 2


@relay
def chained_comparison(x):
    return 1.0 if 0.0 < x < 2.0 and not x == 1.0 else 0.0


@relay
def keyword_arguments(x, *, scale=2.0, axis=0):
    return (x.sum(axis=axis) * scale).max()


@relay
def zeros_in_arithmetic(x):
    return x * 0.0, x / 0.0, x // 0.0, x + 0.0, 1.0 / (x * 0.0), x - 0.0


@relay
def bits(n, flag):
    return ~n & 6 | 1, ~flag, ~7


@relay
def by_dtype(x):
    if x.dtype == np.float64 and x.dtype == "float64":
        return x * 2.0
    return x


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape)


PROGRAMS = [
    Program(sharing, (1.0,), expected=4.0, expected_gradient=(4.0,)),
    Program(loss, (_random(1, 1), _random(1, 1), _random(5, 1), _random(5, 1) + 1)),
    Program(broadcasting, (_random(3, 4), _random(4))),
    Program(dense_layer, (_random(5, 3), _random(3, 4), _random(4))),
    Program(tuples, ((_random(3), _random(3)),)),
    Program(softmax_cross_entropy, (_random(3, 4), np.array([1, 0, 3], np.int32))),
    Program(slices, (_random(4, 6),)),
    Program(updates, (_random(4),)),
    Program(shapes, (_random(3, 4),)),
    Program(guarded, (_random(7),)),
    Program(integers, (7, -3), differentiable=False, expected=-3 + -2 - 196),
    Program(chained_comparison, (np.float64(0.5),), differentiable=False, expected=1.0),
    Program(keyword_arguments, (_random(3, 4),)),
    Program(zeros_in_arithmetic, (np.array([1.0, -2.0, 0.0, -0.0, np.inf, np.nan]),), differentiable=False),
    Program(bits, (np.int32(5), True), differentiable=False, expected=(3, False, -8)),
    Program(by_dtype, (np.float64(2.0),), expected=4.0, expected_gradient=(2.0,)),
]
