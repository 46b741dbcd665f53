"""Fit an ordinary differential equation to data: the gradient goes through an adaptive solver.

    python examples/ode.py [STEPS [PICTURE]]

The solver, Bogacki and Shampine's of order 3(2), chooses its own step size in a `while` loop: a step whose error is
too large is tried again. It is an ordinary function. The data are the Hudson Bay Company's counts of hare and lynx
pelts (thousands, 1900 to 1920); the model is Lotka's and Volterra's.
"""

import sys

import numpy as np
from matplotlib import pyplot

from relay import relay

YEARS = np.arange(1900.0, 1921.0)
HARES = "30 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22 25.4 27.1 40.3 57 76.6 52.3 19.5 11.2 7.6 14.6 16.2 24.7"
LYNXES = "4 6.1 9.8 35.2 59.4 41.7 19 13 8.3 9.1 7.4 8 12.3 19.5 45.7 51.1 29.7 15.8 9.7 10.1 8.6"
COUNTS = np.float64([HARES.split(), LYNXES.split()]).T  # (21, 2)


@relay
def solve(f, y, t, end, tolerance=1e-5):
    """The solution of dy/dt = f(y) at time `end`, from y at time t."""
    step = (end - t) / 4
    while t < end:
        step = min(step, end - t)
        k1 = f(y)
        k2 = f(y + step / 2 * k1)
        k3 = f(y + step * 3 / 4 * k2)
        new = y + step * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = f(new)
        error = relay.stop_gradient(np.abs(step * (-5 * k1 + 6 * k2 + 8 * k3 - 9 * k4) / 72).max())
        if error < tolerance:
            t, y = t + step, new
        step *= np.clip(0.9 * (tolerance / (error + 1e-12)) ** (1 / 3), 0.2, 5.0)
    return y


@relay
def trajectory(log_params, times):
    """The populations at each time. log_params: (6,), logarithms of the four rates and the two first populations."""
    birth, hunting, death, growth, hares, lynxes = np.exp(log_params)

    def change(y):
        return np.array([y[0] * (birth - hunting * y[1]), y[1] * (growth * y[0] - death)])

    result = [np.array([hares, lynxes])]
    for i in range(1, len(times)):
        result.append(solve(change, result[-1], times[i - 1], times[i]))
    return np.stack(result)


@relay
def loss(log_params, times, counts):
    return ((np.log(trajectory(log_params, times)) - np.log(counts)) ** 2).mean()


def main(steps=600, picture="ode.png"):
    steps = int(steps)
    params, velocity = np.log([0.6, 0.03, 0.6, 0.03, 30.0, 4.0]), 0
    for i in range(steps + 1):
        value, gradient = relay.value_and_grad(loss, wrt="log_params")(params, YEARS, COUNTS)
        if i % max(1, steps // 5) == 0:
            print(f"step {i:4}  loss {float(value):.4f}")
        velocity = 0.9 * velocity - 0.003 * np.clip(gradient, -1, 1)
        params = params + velocity
    print("birth {:.2f}  hunting {:.3f}  death {:.2f}  growth {:.3f}".format(*np.exp(params)[:4]))
    fine = np.linspace(1900.0, 1920.0, 201)
    pyplot.plot(YEARS, COUNTS, "o", label=["hares", "lynxes"])
    pyplot.gca().set_prop_cycle(None)
    pyplot.plot(fine, trajectory(params, fine).numpy())
    pyplot.legend()
    pyplot.savefig(picture, dpi=120)
    print("wrote", picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
