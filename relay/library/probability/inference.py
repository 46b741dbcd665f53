"""Inference: the joint density of a model, importance sampling, Hamiltonian Monte Carlo.

A model is `model(sample, observe, q, data)`. An inference gives it two functions: `sample(x, distribution)` says that
the unknown x has this distribution beforehand and returns its value, `observe(distribution, y)` that y was seen.
"""

from __future__ import annotations

import relay
from relay.library.probability.distributions import Normal


@relay.relay
def log_joint(model, q, data):
    """The logarithm of the joint density of unknowns and data: a number of the dtype of the densities."""
    total = relay.ref(0.0)

    def sample(x, distribution):
        total.value += distribution.log_density(x).sum()
        return x

    def observe(distribution, y):
        total.value += distribution.log_density(y).sum()

    model(sample, observe, q, data)
    return total.value


@relay.relay
def normal_like(key, q):
    """Normal numbers in the structure and shapes of q, in float32."""
    keys = relay.ref(key)

    def draw(x):
        mine, keys.value = relay.random.split(keys.value)
        return relay.random.normal(mine, x.shape)

    return relay.tree.map(draw, q)


@relay.relay
def log_normal(q, mean, log_deviation):
    """The logarithm of the density of independent normal distributions at q."""
    parts = relay.tree.map(lambda x, m, s: Normal(m, relay.exp(s)).log_density(x).sum(), q, mean, log_deviation)
    return sum(relay.tree.leaves(parts))


@relay.relay
def importance(model, key, mean, log_deviation, data, count):
    """Draws of normal distributions with these means and logarithms of deviations, a list of `count`, and the
    logarithms of their weights, (count,): the model's density beside that of the draws."""
    draws, weights = [], []
    for _ in range(count):
        key, mine = relay.random.split(key)
        noise = normal_like(mine, mean)
        q = relay.tree.map(lambda m, s, e: m + relay.exp(s) * e, mean, log_deviation, noise)
        draws.append(q)
        weights.append(log_joint(model, q, data) - log_normal(q, mean, log_deviation))
    return draws, relay.stack(weights)


@relay.relay
def effective_size(log_weights):
    """The number of draws of equal weight that weighted ones are worth: 1 over the sum of squared weights."""
    weights = relay.softmax(log_weights)
    return 1.0 / (weights * weights).sum()


@relay.relay
def hmc(model, key, q, data, count, step, steps):
    """A list of `count` samples of the unknowns given the data, from q on, and the part of the moves that were
    accepted.

    Hamiltonian Monte Carlo (Neal, 2011): each move takes `steps` leapfrog steps of length `step` with a random
    momentum, and is accepted by the energy that the steps have lost.
    """
    force = relay.grad(log_joint, wrt="q")
    samples, accepted = [], 0
    here, slope = log_joint(model, q, data), force(model, q, data)
    for _ in range(count):
        key, push, chance = relay.random.split(key, 3)
        p = normal_like(push, q)
        new_q, new_p, new_slope = q, p, slope
        for _ in range(steps):
            new_p = relay.tree.map(lambda a, b: a + 0.5 * step * b, new_p, new_slope)
            new_q = relay.tree.map(lambda a, b: a + step * b, new_q, new_p)
            new_slope = force(model, new_q, data)
            new_p = relay.tree.map(lambda a, b: a + 0.5 * step * b, new_p, new_slope)
        there = log_joint(model, new_q, data)
        gain = there - _energy(new_p) - here + _energy(p)
        if relay.log(relay.random.uniform(chance)) < gain:
            q, here, slope = new_q, there, new_slope
            accepted += 1
        samples.append(q)
    return samples, accepted / count


@relay.relay
def _energy(p):
    return 0.5 * sum([(v * v).sum() for v in relay.tree.leaves(p)])
