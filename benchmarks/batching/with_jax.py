"""The batched workloads in JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def mlp_loss(w1, w2, x, y):
    return ((jnp.tanh(x @ w1) @ w2 - y) ** 2).sum()


def cnn_loss(kernel, weight, image):
    h = jax.nn.relu(lax.conv(image[None], kernel, (1, 1), "VALID"))
    return (jnp.tanh(h.reshape(-1) @ weight) ** 2).sum()


def newton(a):
    return lax.while_loop(lambda x: abs(x * x - a) > 1e-4 * a, lambda x: 0.5 * (x + a / x), a)


def mandelbrot(x, y):
    def go(s):
        return (s[0] * s[0] + s[1] * s[1] < 4.0) & (s[2] < 50)

    def step(s):
        u, v, n = s
        return u * u - v * v + x, 2.0 * u * v + y, n + 1

    return lax.while_loop(go, step, (jnp.zeros_like(x), jnp.zeros_like(y), 0))[2]


def particle_filter(places, noise, seen):
    def step(places, now):
        e, z = now
        places = jax.vmap(lambda p, e: 0.9 * p + jnp.sin(p) + 0.5 * e)(places, e)
        weights = jax.nn.softmax(-((places - z) ** 2))
        return places, (weights * places).sum()

    return lax.scan(step, places, (noise, seen))[1].sum()


@jax.jit
def _padded_attention(sentences, lengths, q, k, v):
    def attend(x, length):
        inside = jnp.arange(x.shape[0]) < length
        scores = jnp.where(inside, (x @ q) @ (x @ k).T, -jnp.inf)
        return ((jax.nn.softmax(scores) @ (x @ v)) * inside[:, None]).sum(0) / length

    return jax.vmap(attend)(sentences, lengths)


def ragged_attention(sentences, q, k, v):
    """Padded to the longest."""
    longest = max(map(len, sentences))
    padded = np.stack([np.pad(x, ((0, longest - len(x)), (0, 0))) for x in sentences])
    return _padded_attention(padded, np.array([len(x) for x in sentences]), q, k, v)


def _children(form: Any) -> np.ndarray:
    """The places of the parts of each inner node, in an order in which parts are before their node; leaves come
    first."""
    leaves, nodes = iter(range(LEAVES)), []

    def visit(form: Any) -> int:
        if form is None:
            return next(leaves)
        nodes.append((visit(form[0]), visit(form[1])))
        return LEAVES + len(nodes) - 1

    visit(form)
    return np.array(nodes, np.int32)


LEAVES = 32
"""The leaves of each tree."""


def _tree_sum(children, rows, w, u, v, b, d):
    """The sum of a tree's state: its nodes are computed one after the other, in an array of all states."""
    gates = rows @ w + b
    m = jax.nn.sigmoid(gates[:, :128]) * jnp.tanh(gates[:, 256:])
    h = jax.nn.sigmoid(gates[:, 128:256]) * jnp.tanh(m)
    blank = jnp.zeros((LEAVES - 1, 128), h.dtype)

    def step(states, now):
        hs, ms = states
        place, parts = now
        h, m = hs[parts], ms[parts]
        gates = h.sum(axis=0) @ u + b
        memory = jax.nn.sigmoid(gates[:128]) * jnp.tanh(gates[256:])
        memory = memory + (jax.nn.sigmoid(h @ v + d) * m).sum(axis=0)
        state = jax.nn.sigmoid(gates[128:256]) * jnp.tanh(memory)
        return (hs.at[place].set(state), ms.at[place].set(memory)), state

    places = jnp.arange(LEAVES, 2 * LEAVES - 1)
    start = jnp.concatenate([h, blank]), jnp.concatenate([m, blank])
    return lax.scan(step, start, (places, children))[1][-1].sum()


def _forest_sum(children, rows, *weights):
    return jax.vmap(_tree_sum, (0, 0, *(None for _ in weights)))(children, rows, *weights).sum()


def _of_forms(function: Any) -> Any:
    """A call on trees whose places are found before."""
    made: list[np.ndarray] = []

    def call(forms, *arrays):
        if not made:
            made.append(np.stack([_children(form) for form in forms]))
        return function(made[0], *arrays)

    return call


def settling(w, x, rounds):
    return lax.while_loop(lambda s: s[1] < rounds, lambda s: (jnp.tanh(w @ s[0]), s[1] + 1), (x, 0))[0]


def experts(w1, w2, x):
    one, other = lambda x: jnp.tanh(x @ w1) @ w2, lambda x: jnp.exp(-jnp.abs(x @ w1)) @ w2
    return lax.cond(x[0] > 0.0, one, other, x)


def programs() -> dict[str, Any]:
    """The workloads: functions of their inputs."""
    return {
        "mlp": jax.jit(jax.vmap(jax.grad(mlp_loss, (0, 1)), (None, None, 0, 0))),
        "cnn": jax.jit(jax.vmap(jax.grad(cnn_loss, (0, 1)), (None, None, 0))),
        "newton": jax.jit(jax.vmap(newton)),
        "mandelbrot": jax.jit(jax.vmap(mandelbrot)),
        "particle_filter": jax.jit(particle_filter),
        "trees": _of_forms(jax.jit(_forest_sum)),
        "trees_gradient": _of_forms(jax.jit(jax.grad(_forest_sum, (2, 3, 4, 5, 6)))),
        "ragged_attention": ragged_attention,
        "settling": jax.jit(jax.vmap(settling, (None, 0, 0))),
        "experts": jax.jit(jax.vmap(experts, (None, None, 0))),
    }


def wait(result: Any) -> Any:
    """The result, when it is there."""
    return jax.block_until_ready(result)
