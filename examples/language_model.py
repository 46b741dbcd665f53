"""A small language model: a transformer that learns to write Python's manual, letter by letter.

    python examples/language_model.py [STEPS [CONTEXT]]

The text is the reference manual of the language, which comes with every Python as `pydoc_data.topics` (about half a
million letters). The model has two blocks of causal attention and is trained by Adam. A training step, with its
gradient and the update of all parameters, is one Relay function. `write` is another one: it draws letter by letter.
"""

import sys
from pydoc_data.topics import topics

import numpy as np

from relay import relay

WIDTH, HEADS, BLOCKS = 64, 4, 2


@relay
def normalized(x):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


@relay
def attention(x, qkv, out):
    """Each place looks at itself and the places before it. x: (n, WIDTH) -> (n, WIDTH)."""
    n = len(x)
    q, k, v = (x @ qkv).reshape(n, 3, HEADS, -1).transpose(1, 2, 0, 3)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    weights = relay.softmax(np.where(np.tri(n) > 0, scores, -1e9))
    return (weights @ v).transpose(1, 0, 2).reshape(n, WIDTH) @ out


@relay
def logits(params, letters):
    """What may follow at each place. letters: (n,) int32 -> (n, alphabet)."""
    x = params["letters"][letters] + params["places"][: len(letters)]
    for block in params["blocks"]:
        x = x + attention(normalized(x), block["qkv"], block["out"])
        x = x + relay.relu(normalized(x) @ block["up"]) @ block["down"]
    return normalized(x) @ params["head"]


@relay
def loss(params, batch):
    """Bits for each letter. batch: (rows, n + 1) int32."""
    total = 0.0
    for row in batch:
        total -= np.take_along_axis(relay.log_softmax(logits(params, row[:-1])), row[1:, None], axis=1).mean()
    return total / len(batch) / np.log(2)


@relay
def map_tree(f, a, b, c):
    """f of the arrays at the same places of three structures, in a structure of this form."""
    if isinstance(a, dict):
        return {name: map_tree(f, a[name], b[name], c[name]) for name in a}
    if isinstance(a, list):
        return [map_tree(f, *items) for items in zip(a, b, c)]
    return f(a, b, c)


@relay
def zeros_like(params):
    return map_tree(lambda p, _, __: np.zeros_like(p), params, params, params)


@relay
def train(params, mean, square, batch, rate):
    """A step of Adam: the loss, the new parameters, and the running means of gradients and their squares."""
    value, g = relay.value_and_grad(loss, wrt="params")(params, batch)
    mean = map_tree(lambda m, g, _: 0.9 * m + 0.1 * g, mean, g, g)
    square = map_tree(lambda s, g, _: 0.99 * s + 0.01 * g**2, square, g, g)
    params = map_tree(lambda p, m, s: p - rate * m / (np.sqrt(s) + 1e-8), params, mean, square)
    return value, params, mean, square


@relay
def write(params, letters, count, key):
    """`count` letters that go on after the given ones, drawn at random."""
    text = []
    for _ in range(count):
        key, draw = relay.random.split(key)
        letter = relay.random.categorical(draw, logits(params, letters)[-1] / 0.7)
        text.append(letter)
        letters = np.concatenate([letters[1:], letter[None]])
    return np.stack(text)


def initial(random, alphabet, context):
    def normal(*shape):
        return np.float32(random.standard_normal(shape) / np.sqrt(shape[0]))

    def block():
        attention = {"qkv": normal(WIDTH, 3 * WIDTH), "out": normal(WIDTH, WIDTH)}
        return attention | {"up": normal(WIDTH, 4 * WIDTH), "down": normal(4 * WIDTH, WIDTH)}

    blocks = [block() for _ in range(BLOCKS)]
    head = 0.1 * normal(WIDTH, alphabet)
    return {"letters": normal(alphabet, WIDTH), "places": normal(context, WIDTH), "blocks": blocks, "head": head}


def main(steps=3000, context=64):
    steps, context = int(steps), int(context)
    text = "\n".join(topics.values())
    alphabet = sorted(set(text))
    letters = np.array([alphabet.index(c) for c in text], np.int32)
    print(f"{len(letters)} letters, {len(alphabet)} different ones")

    random = np.random.default_rng(0)
    params = initial(random, len(alphabet), context)
    mean = square = zeros_like(params)
    for i in range(steps + 1):
        starts = random.integers(0, len(letters) - context - 1, 8)
        batch = np.stack([letters[s : s + context + 1] for s in starts])
        value, params, mean, square = train(params, mean, square, batch, 2e-3)
        if i % max(1, steps // 10) == 0:
            print(f"step {i:5}  {float(value):.3f} bits for each letter")
    written = write(params, letters[:context], 500, relay.random.key(0))
    print("".join(alphabet[i] for i in written.numpy()))


if __name__ == "__main__":
    main(*sys.argv[1:])
