"""Probabilistic programs: models that sample and observe, and what infers their unknowns from data.

    def model(sample, observe, q, data):
        mean = sample(q["mean"], prob.Normal(0.0, 10.0))
        observe(prob.Normal(mean, 1.0), data)

    samples, accepted = prob.hmc(model, key, {"mean": 0.0}, data, 1000, 0.2, 10)

`sample` and `observe` are handlers, functions that an inference passes to the model; `q` are the unknowns, any
structure of arrays. All of it is written in the language, so models are compiled, and may have branches, loops and data
types.
"""

from relay.library.probability.diagnostics import effective_sample_size, split_r_hat
from relay.library.probability.distributions import Categorical, Exponential, Factor, Normal, NormalMixture
from relay.library.probability.enumeration import enumerated, log_marginal, log_posterior
from relay.library.probability.inference import (
    effective_size,
    hmc,
    importance,
    log_joint,
)
from relay.library.probability.nuts import nuts
from relay.library.probability.variational import fit_normal, mixed_bound, reparametrized_bound, score_bound

__all__ = [
    "Categorical",
    "Exponential",
    "Factor",
    "Normal",
    "NormalMixture",
    "effective_sample_size",
    "effective_size",
    "enumerated",
    "fit_normal",
    "hmc",
    "importance",
    "log_joint",
    "log_marginal",
    "log_posterior",
    "mixed_bound",
    "nuts",
    "reparametrized_bound",
    "score_bound",
    "split_r_hat",
]
