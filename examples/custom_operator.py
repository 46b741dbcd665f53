"""An operator of your own: Kepler's equation, and the orbit of a moon.

    python examples/custom_operator.py [ROUNDS [PICTURE]]

A moon on an ellipse is where E - e sin E = M says: M grows evenly with time, e is the eccentricity. The operator
`kepler` finds E. It has a meaning, in NumPy; a type; code, Newton's method in TVM's tensor expressions; and a gradient
by the implicit function theorem. With it an orbit is fitted.
"""

import sys

import numpy as np
from matplotlib import pyplot
from tvm import te, tirx

from relay import Relation, Tensor, register_op, relay


def kepler_code(mean, e):
    """Ten Newton steps for each element; `Let` names a step's result, which the next step uses more than once."""

    def steps(x, m, e, count):
        if count == 0:
            return x
        new = tirx.Var("new", mean.dtype)
        return tirx.Let(new, x - (x - e * tirx.sin(x) - m) / (1 - e * tirx.cos(x)), steps(new, m, e, count - 1))

    return te.compute(mean.shape, lambda *i: steps(mean(*i), mean(*i), e(*i), 10))


def kepler_gradient(mean, e, out, dout):
    """The cotangents of both operands: x - e sin(x) = m implies (1 - e cos(x)) dx = dm + sin(x) de."""
    scaled = dout / (1 - e * relay.cos(out))
    return scaled, scaled * relay.sin(out)


def same_shape(mean, e):
    if mean != e:
        raise relay.ShapeError(f"kepler needs operands of one shape, found {mean} and {e}")
    return mean


@register_op(relation=Relation("T:float, T -> T", same_shape), compute=kepler_code, gradient=kepler_gradient)
def kepler(mean: Tensor, e: Tensor) -> Tensor:
    """The x with x - e sin(x) = mean. mean, e: (T float, s) -> (T, s)."""
    x = mean
    for _ in range(10):
        x = x - (x - e * np.sin(x) - mean) / (1 - e * np.cos(x))
    return x


@relay
def position(orbit, times):
    """Where the moon is along the longer axis of its orbit, at times in days. orbit: size, eccentricity, phase."""
    size, e, phase = orbit
    return size * (np.cos(relay.kepler(2 * np.pi * times / 11 - phase, np.full(times.shape, e))) - e)


@relay
def loss(orbit, times, positions):
    return ((position(orbit, times) - positions) ** 2).mean()


def main(rounds=1000, picture="custom_operator.png"):
    random = np.random.default_rng(0)
    times = np.sort(random.uniform(0, 40, 50))
    positions = position(np.array([2.0, 0.6, 1.0]), times).numpy() + random.normal(0, 0.1, 50)
    orbit = np.array([1.5, 0.3, 0.7])
    for i in range(int(rounds) + 1):
        value, gradient = relay.value_and_grad(loss, wrt="orbit")(orbit, times, positions)
        if i % max(1, int(rounds) // 5) == 0:
            print(f"round {i:4}  error {np.sqrt(value):.3f}")
        orbit = orbit - 0.02 * gradient.numpy()
    print("size {:.2f} (true 2.00), eccentricity {:.2f} (true 0.60), phase {:.2f} (true 1.00)".format(*orbit))
    pyplot.plot(times, positions, "ko", np.linspace(0, 40, 500), position(orbit, np.linspace(0, 40, 500)).numpy())
    pyplot.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
