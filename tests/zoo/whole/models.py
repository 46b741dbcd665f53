"""Small models of the kinds that are trained: convolution, attention, a variational autoencoder, recurrence, bags."""

import numpy as np

import relay
from relay import relay as program
from zoo import Program


@program
def convolutional_network(image, weight, scale, shift, output, labels):
    hidden = relay.conv2d(image, weight, padding="same")
    hidden = relay.relu(relay.batch_norm_training(hidden, scale, shift)[0])
    hidden = relay.max_pool2d(hidden, 2)
    features = hidden.mean(axis=(2, 3))
    return relay.cross_entropy(features @ output, labels)


@program
def attention_block(x, query, key, value, gain, offset):
    normal = relay.layer_norm(x, gain, offset)
    mixed = relay.scaled_dot_product_attention(normal @ query, normal @ key, normal @ value, causal=True)
    y = x + mixed
    return relay.mean(y * y)


@program
def cached_attention(tokens, query, key, value):
    """The keys and values of the tokens so far are kept; the state is None before the first token."""
    keys, values, state = [], [], None
    for token in tokens:
        keys.append(token @ key)
        values.append(token @ value)
        weights = relay.softmax(np.stack(keys) @ (token @ query))
        mixed = weights @ np.stack(values)
        state = mixed if state is None else 0.5 * state + mixed
    return relay.sum(state * state)


@program
def variational_autoencoder(x, encoder, decoder, key):
    parts = x @ encoder
    half = parts.shape[1] // 2
    mean, logarithm = parts[:, :half], parts[:, half:]
    first, second = relay.random.split(key)
    noise = relay.random.normal(first, mean.shape, dtype=relay.Float64)
    latent = mean + relay.exp(0.5 * logarithm) * noise
    latent = relay.dropout(latent, second, rate=0.25)
    divergence = 0.5 * (relay.exp(logarithm) + mean * mean - 1.0 - logarithm).sum()
    return relay.mse_loss(latent @ decoder, x, reduction="sum") + divergence


@program
def long_short_term_memory(inputs, weight, recurrent):
    hidden = relay.zeros((inputs.shape[1], recurrent.shape[1]), relay.Float64)
    cell = hidden
    size = hidden.shape[1]
    for x in inputs:
        gates = relay.dense(x, weight) + relay.dense(hidden, recurrent)
        forget, entry, exit_ = [relay.sigmoid(gates[:, k * size : (k + 1) * size]) for k in range(3)]
        cell = forget * cell + entry * relay.tanh(gates[:, 3 * size :])
        hidden = exit_ * relay.tanh(cell)
    return (hidden * hidden).sum()


@program
def embedding_bag(table, words, weights):
    rows = relay.embedding(words, table)
    bags = relay.einsum("bwk,bw->bk", rows, weights)
    return relay.log_softmax(bags)[:, 0].sum()


@program
def upsampled(image, weight, grid):
    larger = relay.upsampling(relay.conv2d_transpose(image, weight, stride=2), 2, method="bilinear")
    return (relay.grid_sample(larger, grid, padding="border") ** 2).sum()


def _random(*shape: int, scale: float = 0.5) -> np.ndarray:
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape) * scale


PROGRAMS = [
    Program(
        convolutional_network,
        (
            _random(2, 2, 4, 4),
            _random(3, 2, 3, 3),
            1.0 + _random(3),
            _random(3),
            _random(3, 4),
            np.array([1, 3], np.int32),
        ),
    ),
    Program(attention_block, (_random(3, 4), *(_random(4, 4) for _ in range(3)), 1.0 + _random(4), _random(4))),
    Program(cached_attention, (_random(3, 4), *(_random(4, 4) for _ in range(3)))),
    Program(variational_autoencoder, (_random(3, 4), _random(4, 6), _random(3, 4), relay.random.key(3))),
    Program(long_short_term_memory, (_random(3, 2, 3), _random(8, 3), _random(8, 2))),
    Program(embedding_bag, (_random(5, 3), np.array([[1, 4], [0, 1]], np.int32), _random(2, 2))),
    Program(upsampled, (_random(1, 2, 2, 2), _random(2, 1, 2, 2), _random(1, 2, 2, 2, scale=0.4))),
]
