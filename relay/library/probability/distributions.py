"""Distributions: data types with the density of values. Parameters are numbers or arrays, which broadcast."""

from __future__ import annotations

import relay

A, B, C = relay.type_var("A"), relay.type_var("B"), relay.type_var("C")

_HALF_LOG_2_PI = 0.9189385332046727


@relay.data
class Normal:
    """Normal distributions, by mean and standard deviation."""

    mean: A
    deviation: B

    def log_density(self, x):
        """The logarithm of the density at x."""
        z = (x - self.mean) / self.deviation
        return -0.5 * z * z - relay.log(self.deviation) - _HALF_LOG_2_PI


@relay.data
class Exponential:
    """Exponential distributions, by rate; of numbers from 0 on."""

    rate: A

    def log_density(self, x):
        """The logarithm of the density at x."""
        return relay.where(x >= 0.0, relay.log(self.rate) - self.rate * x, -1e30)


@relay.data
class Categorical:
    """Distributions of integers from 0 on, by logarithms of weights, (k,), which need not sum to 1."""

    log_weights: A

    def log_density(self, z):
        """The logarithm of the probability of z."""
        return relay.log_softmax(self.log_weights)[z]


@relay.data
class Factor:
    """A factor of the density: `observe(Factor(), y)` adds y to its logarithm."""

    def log_density(self, y):
        """y itself."""
        return y


@relay.data
class NormalMixture:
    """A mixture of normal distributions: logarithms of weights, which need not sum to 1, means and standard deviations.
    Each is (k,), for k components."""

    log_weights: A
    means: B
    deviations: C

    def log_density(self, x):
        """The logarithm of the density at x. x: (n,)."""
        z = (relay.expand_dims(x, 1) - self.means) / self.deviations
        parts = relay.log_softmax(self.log_weights) - 0.5 * z * z - relay.log(self.deviations) - _HALF_LOG_2_PI
        return relay.logsumexp(parts, axis=1)
