"""An operator of your own: Kepler's equation, and the orbit of a star's companion.

    python examples/custom_operator.py [ROUNDS [PICTURE]]

A planet on an ellipse is where E - e sin E = M says: M grows evenly with time, e is the eccentricity, and E has to be
found. The operator `kepler` does that. Its definition has four parts: what it means, a NumPy function; its type; its
code, a few Newton steps in TVM's tensor expressions; and its gradient, which the implicit function theorem gives in one
line, without a look at the steps. With it, an orbit is fitted to a star's measured speed by gradient descent.
"""

import sys

import numpy as np
from matplotlib import pyplot
from tvm import te, tirx

from relay import Pattern, Relation, Tensor, register_op, relay


def kepler_code(mean, eccentricity):
    """Ten Newton steps for each element; `Let` gives a step's result a name, so that the next one can use it often."""

    def steps(x, m, e, count):
        if count == 0:
            return x
        new = tirx.Var("new", mean.dtype)
        return tirx.Let(new, x - (x - e * tirx.sin(x) - m) / (1 - e * tirx.cos(x)), steps(new, m, e, count - 1))

    return te.compute(mean.shape, lambda *i: steps(mean(*i), mean(*i), eccentricity(*i), 10))


def kepler_gradient(mean, eccentricity, out, dout):
    """The cotangents of both operands: x - e sin(x) = m implies (1 - e cos(x)) dx = dm + sin(x) de."""
    scaled = dout / (1 - eccentricity * relay.cos(out))
    return scaled, scaled * relay.sin(out)


def same_shape(mean, eccentricity):
    if mean != eccentricity:
        raise relay.ShapeError(f"kepler needs operands of one shape, found {mean} and {eccentricity}")
    return mean


@register_op(
    relation=Relation("T:float, T -> T", same_shape),
    pattern=Pattern.ELEMENTWISE,
    compute=kepler_code,
    gradient=kepler_gradient,
)
def kepler(mean: Tensor, eccentricity: Tensor) -> Tensor:
    """The x with x - eccentricity sin(x) = mean. mean, eccentricity: (T float, s) -> (T, s)."""
    x = mean
    for _ in range(10):
        x = x - (x - eccentricity * np.sin(x) - mean) / (1 - eccentricity * np.cos(x))
    return x


@relay
def speed(orbit, times):
    """A star's speed along the line of sight, m/s, at times in days; orbit: its parameters."""
    e = relay.sigmoid(orbit["eccentricity"])
    mean = 2 * np.pi * times / np.exp(orbit["log_period"]) - orbit["phase"]
    anomaly = relay.kepler(mean, np.full(times.shape, e))
    true = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(anomaly / 2), np.sqrt(1 - e) * np.cos(anomaly / 2))
    return orbit["height"] * (np.cos(true + orbit["angle"]) + e * np.cos(orbit["angle"])) + orbit["offset"]


@relay
def loss(orbit, times, speeds):
    return ((speed(orbit, times) - speeds) ** 2).mean() / 1000


def main(rounds=3000, picture="custom_operator.png"):
    random = np.random.default_rng(0)
    names = ("height", "eccentricity", "log_period", "phase", "angle", "offset")
    true = dict(zip(names, np.array([60.0, 0.4, np.log(11.0), 1.0, 0.7, 5.0])))
    times = np.sort(random.uniform(0, 40, 50))
    speeds = speed(true, times) + random.normal(0, 4, 50)

    orbit = first = dict(zip(names, np.array([50.0, -1.0, np.log(10.7), 0.7, 0.0, 0.0])))
    rates = dict(zip(names, [20.0, 0.02, 1e-4, 0.01, 0.01, 20.0]))
    for i in range(int(rounds) + 1):
        value, gradient = relay.value_and_grad(loss, wrt="orbit")(orbit, times, speeds)
        if i % max(1, int(rounds) // 5) == 0:
            print(f"round {i:4}  error {np.sqrt(1000 * value):.2f} m/s")
        orbit = {name: orbit[name] - rates[name] * gradient[name] for name in names}
    for title, found in (("true", true), ("found", orbit)):
        period, e = np.exp(found["log_period"]), 1 / (1 + np.exp(-found["eccentricity"]))
        print(f"{title:6} period {period:.2f} days, eccentricity {e:.3f}, height {found['height']:.1f} m/s")

    fine = np.linspace(0, 40, 500)
    figure, axis = pyplot.subplots(figsize=(8, 3.2))
    axis.plot(times, speeds, "ko", markersize=4, label="measured")
    axis.plot(fine, speed(first, fine), "C0:", label="first guess")
    axis.plot(fine, speed(orbit, fine), "C1", label="fitted")
    axis.set(xlabel="days", ylabel="speed, m/s")
    axis.legend(loc="upper right")
    figure.tight_layout()
    figure.savefig(picture, dpi=120)
    print("wrote", picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
