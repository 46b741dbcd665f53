"""Fit an ordinary differential equation to data: the gradient goes through an adaptive solver.

    python examples/ode.py [STEPS [PICTURE]]

The solver is Bogacki and Shampine's method of order 3(2). It chooses its own step size: a `while` loop runs until the
time is over, and a step whose estimated error is too large is tried again. Nothing about it is special. It is an
ordinary function, and `relay.grad` differentiates the steps that were taken. The data are the Hudson Bay Company's
counts of lynx and hare pelts (thousands, 1900 to 1920); the model is Lotka's and Volterra's.
"""

import sys

import numpy as np
from matplotlib import pyplot

from relay import relay

YEARS = np.arange(1900.0, 1921.0)
HARES = np.array([30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6,
                  14.6, 16.2, 24.7])  # fmt: skip
LYNXES = np.array([4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7,
                   10.1, 8.6])  # fmt: skip


@relay
def solve(f, y, t, end, tolerance=1e-5):
    """The solution of dy/dt = f(y) at time `end`, from y at time t, and the number of steps that were tried."""
    step, tried = (end - t) / 4, 0
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
        tried += 1
    return y, tried


@relay
def trajectory(log_params, times):
    """The populations at each time. log_params: (6,), logarithms of the four rates and the two first populations."""
    birth, hunting, death, growth, hares, lynxes = np.exp(log_params)

    def change(y):
        return np.array([y[0] * (birth - hunting * y[1]), y[1] * (growth * y[0] - death)])

    y = np.array([hares, lynxes])
    result, tried = [y], 0
    for i in range(1, len(times)):
        y, steps = solve(change, y, times[i - 1], times[i])
        result.append(y)
        tried += steps
    return np.stack(result), tried


@relay
def loss(log_params, times, counts):
    """The mean squared error of the logarithms; the number of steps is handed on."""
    populations, tried = trajectory(log_params, times)
    return ((np.log(populations) - np.log(counts)) ** 2).mean(), tried


def main(steps=600, picture="ode.png"):
    counts = np.stack([HARES, LYNXES], axis=1)
    params = start = np.log([0.6, 0.03, 0.6, 0.03, 30.0, 4.0])
    velocity = np.zeros(6)
    for i in range(int(steps) + 1):
        (value, tried), gradient = relay.value_and_grad(loss, wrt="log_params", has_aux=True)(params, YEARS, counts)
        if i % max(1, int(steps) // 5) == 0:
            print(f"step {i:4}  loss {float(value):.4f}  the solver tried {int(tried)} steps")
        velocity = 0.9 * velocity - 0.003 * np.clip(gradient, -1, 1)
        params = params + velocity
    print("birth {:.2f}  hunting {:.3f}  death {:.2f}  growth {:.3f}".format(*np.exp(params)[:4]))

    fine = np.linspace(YEARS[0], YEARS[-1], 201)
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for axis, values, title in zip(axes, (start, params), ("before", "after"), strict=True):
        for column, name in enumerate(("hares", "lynxes")):
            axis.plot(fine, np.asarray(trajectory(values, fine)[0])[:, column], color=f"C{column}")
            axis.plot(YEARS, counts[:, column], "o", color=f"C{column}", label=name)
        axis.set_title(title)
        axis.legend()
    figure.tight_layout()
    figure.savefig(picture, dpi=120)
    print("wrote", picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
