"""Variational inference: bounds of the evidence by guides, distributions of a simple form, which are fitted to the
posterior by the bounds' gradients."""

from __future__ import annotations

import relay
from relay.library.probability.inference import log_joint, log_normal, normal_like


@relay.relay
def reparametrized_bound(guide, model, key, data):
    """One draw of the evidence lower bound of a normal guide (mean, log_deviation). Its gradient with respect to the
    guide goes through the draw (Kingma and Welling, 2014)."""
    mean, log_deviation = guide
    noise = normal_like(key, mean)
    q = relay.tree.map(lambda m, s, e: m + relay.exp(s) * e, mean, log_deviation, noise)
    return log_joint(model, q, data) - log_normal(q, mean, log_deviation)


@relay.relay
def score_bound(guide, model, key, data):
    """A number whose gradient with respect to the guide estimates that of the bound without derivatives of the model:
    the score function times the bound (Ranganath and others, 2014), for two draws, each of which is the other's
    baseline. Its value is no bound."""
    first, second = relay.random.split(key)
    score, bound = _score_and_bound(guide, model, first, data)
    other_score, other_bound = _score_and_bound(guide, model, second, data)
    return 0.5 * (score - other_score) * relay.stop_gradient(bound - other_bound)


@relay.relay
def _score_and_bound(guide, model, key, data):
    mean, log_deviation = guide
    noise = normal_like(key, mean)
    q = relay.tree.map(lambda m, s, e: relay.stop_gradient(m + relay.exp(s) * e), mean, log_deviation, noise)
    score = log_normal(q, mean, log_deviation)
    return score, log_joint(model, q, data) - score


@relay.relay
def mixed_bound(guide, model, key, data):
    """A number whose gradient with respect to the guide estimates that of the bound where unknowns are discrete, too.

    The model's unknowns are (q, z). The guide is (mean, log_deviation, log_weights): a normal distribution for each
    number of q, and for z, a structure of integer arrays (...,), independent distributions with the logarithms of
    weights (..., k), which need not sum to 1. The gradient goes through the draws of q, and is the score function's
    for z, as in `score_bound`, with two draws, each of which is the other's baseline. Its value is the mean of the two
    draws' bounds.
    """
    mean, log_deviation, log_weights = guide
    first, second = relay.random.split(key)
    score, bound = _mixed_score_and_bound(mean, log_deviation, log_weights, model, first, data)
    other_score, other_bound = _mixed_score_and_bound(mean, log_deviation, log_weights, model, second, data)
    scores = score - other_score
    return 0.5 * (
        bound + other_bound + (scores - relay.stop_gradient(scores)) * relay.stop_gradient(bound - other_bound)
    )


@relay.relay
def _mixed_score_and_bound(mean, log_deviation, log_weights, model, key, data):
    normal_key, discrete_key = relay.random.split(key)
    noise = normal_like(normal_key, mean)
    q = relay.tree.map(lambda m, s, e: m + relay.exp(s) * e, mean, log_deviation, noise)
    keys = relay.ref(discrete_key)

    def draw(weights):
        mine, keys.value = relay.random.split(keys.value)
        return relay.random.categorical(mine, weights)

    z = relay.tree.map(draw, log_weights)
    parts = relay.tree.map(
        lambda w, i: relay.take_along_axis(relay.log_softmax(w), relay.expand_dims(i, -1), axis=-1).sum(),
        log_weights,
        z,
    )
    score = sum(relay.tree.leaves(parts))
    return score, log_joint(model, (q, z), data) - log_normal(q, mean, log_deviation) - score


@relay.relay
def fit_normal(bound, model, key, guide, data, count, rate, draws):
    """The guide (mean, log_deviation) after `count` steps of Adam (Kingma and Ba, 2015) up the `bound`, whose gradient
    is the mean over so many draws. The rate falls linearly to 0."""
    first = relay.tree.map(lambda x: relay.zeros_like(x), guide)
    second = first
    slope = relay.grad(bound, wrt="guide")
    for i in range(count):
        gradient = relay.tree.map(lambda x: relay.zeros_like(x), guide)
        for _ in range(draws):
            key, mine = relay.random.split(key)
            gradient = relay.tree.map(lambda a, b: a + b / draws, gradient, slope(guide, model, mine, data))
        first = relay.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = relay.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
        guide = relay.tree.map(
            lambda x, m, v, i=i: x + rate * (1.0 - i / count) * _adam_step(m, v, i + 1.0), guide, first, second
        )
    return guide


@relay.relay
def _adam_step(m, v, i):
    return m / (1.0 - 0.9**i) / (relay.sqrt(v / (1.0 - 0.999**i)) + 1e-8)
