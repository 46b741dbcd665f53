"""A small language model: a transformer that learns to write Python's manual, letter by letter.

    python examples/language_model.py [STEPS [CONTEXT]]

The text comes with every Python, as `pydoc_data.topics`. The model has two blocks of causal attention and is trained by
Adam. `train`, with gradient and update, is one Relay function; `write`, which draws letter by letter, is another one.
"""

import sys
from pydoc_data.topics import topics

import numpy as np

from relay import relay

WIDTH, HEADS, BLOCKS = 64, 4, 2


@relay
def logits(params, letters):
    """What may follow at each place. letters: (n,) int32 -> (n, alphabet)."""
    n, ones = len(letters), np.ones(WIDTH)
    x = params["letters"][letters] + params["places"][:n]
    for qkv, out, up, down in zip(params["qkv"], params["out"], params["up"], params["down"]):
        q, k, v = (relay.rms_norm(x, ones) @ qkv).reshape(n, 3, HEADS, -1).transpose(1, 2, 0, 3)
        weights = relay.softmax(np.where(np.tri(n) > 0, q @ k.transpose(0, 2, 1) / np.sqrt(WIDTH / HEADS), -1e9))
        x = x + (weights @ v).transpose(1, 0, 2).reshape(n, WIDTH) @ out
        x = x + relay.relu(relay.rms_norm(x, ones) @ up) @ down
    return relay.rms_norm(x, ones) @ params["head"]


@relay
def loss(params, batch):
    """Bits for each letter. batch: (rows, n + 1) int32."""
    total = 0.0
    for row in batch:
        total += relay.cross_entropy(logits(params, row[:-1]), row[1:])
    return total / len(batch) / np.log(2)


@relay
def train(params, mean, square, batch):
    """A step of Adam: the loss, the new parameters, and the running means of gradients and their squares."""
    value, g = relay.value_and_grad(loss, wrt="params")(params, batch)
    mean = {name: 0.9 * mean[name] + 0.1 * g[name] for name in g}
    square = {name: 0.99 * square[name] + 0.01 * g[name] ** 2 for name in g}
    params = {name: params[name] - 2e-3 * mean[name] / (np.sqrt(square[name]) + 1e-8) for name in g}
    return value, params, mean, square


@relay
def write(params, letters, count, key):
    """`count` letters that go on after the given ones, drawn at random."""
    for _ in range(count):
        key, draw = relay.random.split(key)
        letter = relay.random.categorical(draw, logits(params, letters)[-1] / 0.7)
        letters = np.concatenate([letters[1:], letter[None]])
    return letters


def main(steps=3000, context=64):
    steps, n, random = int(steps), int(context), np.random.default_rng(0)
    text = "\n".join(topics.values())
    alphabet = sorted(set(text))
    letters = np.array([alphabet.index(c) for c in text], np.int32)
    shapes = {"letters": (len(alphabet), WIDTH), "places": (n, WIDTH), "head": (WIDTH, len(alphabet))}
    shapes |= {"qkv": (BLOCKS, WIDTH, 3 * WIDTH), "out": (BLOCKS, WIDTH, WIDTH)}
    shapes |= {"up": (BLOCKS, WIDTH, 4 * WIDTH), "down": (BLOCKS, 4 * WIDTH, WIDTH)}
    params = {name: np.float32(random.normal(0, shape[-2] ** -0.5, shape)) for name, shape in shapes.items()}
    mean = square = {name: np.zeros_like(array) for name, array in params.items()}
    for i in range(steps + 1):
        batch = np.stack([letters[s : s + n + 1] for s in random.integers(0, len(letters) - n - 1, 8)])
        value, params, mean, square = train(params, mean, square, batch)
        if i % max(1, steps // 5) == 0:
            print(f"step {i:5}  {float(value):.3f} bits for each letter")
    print("".join(alphabet[i] for i in write(params, letters[:n], n, relay.random.key(0)).numpy()))


if __name__ == "__main__":
    main(*sys.argv[1:])
