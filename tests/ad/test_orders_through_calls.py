"""Third derivatives through calls in loops, whose tapes hold those of the calls and have cotangents of their own."""

from __future__ import annotations

import numpy as np

import relay


@relay
def cube(x):
    return x * x * x


@relay
def cubes(x):
    out = np.zeros(3)
    for i in range(3):
        out[i] = cube(x[i])
    return out


def test_sums_of_the_cotangents_of_tapes_keep_their_order() -> None:
    """Without optimization the calls are still there."""

    def gradient(x):
        return relay.grad(lambda y: cubes(y).sum())(x)

    def along_both(x, first, second):
        return relay.jvp(lambda z: relay.jvp(gradient, (z,), (first,))[1], (x,), (second,))[1]

    x, first, second = np.array([0.3, 1.1, -0.7]), np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 4.0])
    found = relay.relay(along_both, opt_level=0)(x, first, second)
    np.testing.assert_allclose(found, 6 * first * second, rtol=1e-12)
