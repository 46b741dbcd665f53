"""Discrete unknowns by enumeration: they are summed out, so that what is left has a gradient."""

from __future__ import annotations

import relay
from relay.library.probability.distributions import Factor
from relay.library.probability.inference import log_joint


@relay.relay
def log_marginal(model, q, values, data):
    """The logarithm of the density of the unknowns q and the data, summed over `values` (k,) of a discrete unknown z;
    the model's unknowns are (q, z)."""
    return relay.logsumexp(relay.vmap(lambda z: log_joint(model, (q, z), data))(values), axis=0)


@relay.relay
def enumerated(model, values):
    """The model of q alone, for hmc, nuts and guides, where the unknowns of `model` are (q, z) and z is one of
    `values`, (k,) integers."""

    def marginal(sample, observe, q, data):
        observe(Factor(), log_marginal(model, q, values, data))

    return marginal


@relay.relay
def log_posterior(model, q, values, data):
    """The logarithms of the probabilities of a discrete unknown's values, (k,), given q and the data."""
    return relay.log_softmax(relay.vmap(lambda z: log_joint(model, (q, z), data))(values))
