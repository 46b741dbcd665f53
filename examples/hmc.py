"""Hamiltonian Monte Carlo: samples of a banana-shaped density.

    python examples/hmc.py [SAMPLES [PICTURE]]

Each sample starts at the one before, gets a random push, and moves like a ball that rolls over the landscape
-log_density. The motion is computed by leapfrog steps; their force is the gradient of the density, which `relay.grad`
takes inside of the program. Accepting or rejecting each move corrects the error of the steps.
"""

import sys

import numpy as np
from matplotlib import pyplot

from relay import relay


@relay
def log_density(q):
    """x is normal around 0, y is normal around x * x / 2. q: (2,), x and y."""
    x, y = q
    return -(x**2) / 2 - 2 * (y - x**2 / 2) ** 2


@relay
def leapfrog(q, p, step, count):
    """The position and the momentum after `count` steps. q, p: (2,)."""
    force = relay.grad(log_density, wrt="q")
    p = p + step / 2 * force(q)
    for _ in range(count):
        q = q + step * p
        p = p + step * force(q)
    return q, p - step / 2 * force(q)


@relay
def sample(key, q, count, step=0.2, steps=15):
    """`count` samples, (count, 2), and the part of the moves that were accepted."""
    samples, accepted = [], 0
    for _ in range(count):
        key, push, chance = relay.random.split(key, 3)
        p = relay.random.normal(push, (2,))
        new_q, new_p = leapfrog(q, p, step, steps)
        gain = log_density(new_q) - new_p @ new_p / 2 - log_density(q) + p @ p / 2
        if np.log(relay.random.uniform(chance)) < gain:
            q = new_q
            accepted += 1
        samples.append(q)
    return np.stack(samples), accepted / count


def main(count=5000, picture="hmc.png"):
    samples, accepted = sample(relay.random.key(0), np.zeros(2, np.float32), int(count))
    samples = samples.numpy()
    print(f"accepted {float(accepted):.1%}")
    print("mean      {:.3f} {:.3f}  (true 0 and 0.5)".format(*samples.mean(axis=0)))
    print("deviation {:.3f} {:.3f}  (true 1 and 0.866)".format(*samples.std(axis=0)))

    x, y = np.meshgrid(np.linspace(-3, 3, 200), np.linspace(-2, 6, 200))
    pyplot.figure(figsize=(5, 4))
    pyplot.contour(x, y, np.exp(-(x**2) / 2 - 2 * (y - x**2 / 2) ** 2), levels=5, cmap="Greys")
    pyplot.plot(*samples.T, "C0.", markersize=2, zorder=0)
    pyplot.savefig(picture, dpi=120, bbox_inches="tight")
    print("wrote", picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
