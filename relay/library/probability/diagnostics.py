"""Diagnostics of samples: whether chains agree, and how many independent samples they are worth.

`chains` are samples of one number, (m, n): n in each of m chains that have begun at different places.
"""

from __future__ import annotations

import relay


@relay.relay
def split_r_hat(chains):
    """The spread of all samples, relative to that of each half of a chain: near 1 where the chains have come to
    the same distribution, more than 1.01 where they have not (Gelman and others, "Bayesian data analysis", 2013)."""
    half = chains.shape[1] // 2
    parts = relay.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]], axis=0)
    within, total = _variances(parts)
    return relay.sqrt(total / within)


@relay.relay
def effective_sample_size(chains):
    """The number of independent samples whose mean is as exact as that of the chains, from their autocorrelations up to
    the first pair of lags whose sum is negative (Geyer, 1992; Vehtari and others, 2021)."""
    m, n = chains.shape
    within, total = _variances(chains)
    centered = chains - chains.mean(axis=1, keepdims=True)
    padded = relay.concatenate([centered, relay.zeros_like(centered)], axis=1)
    lag, last, tau = 1, 2.0, -1.0
    while lag + 1 < n:
        pair = 0.0
        for t in range(2):
            shifted = padded[:, lag - 1 + t : lag - 1 + t + n]
            pair += 1.0 - (within - (centered * shifted).sum() / (m * n)) / total
        if pair < 0.0:
            break
        last = relay.minimum(last, pair)  # these sums fall: a larger one is noise
        tau += 2.0 * last
        lag += 2
    return m * n / relay.maximum(tau, 1.0 / relay.log(m * n * 1.0))


@relay.relay
def _variances(chains):
    """The mean variance in a chain, and an estimate of that of the distribution, which also has that of the means."""
    n = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    return within, within * ((n - 1) / n) + ((chains.mean(axis=1) - chains.mean()) ** 2).sum() / relay.maximum(
        chains.shape[0] - 1.0, 1.0
    )
