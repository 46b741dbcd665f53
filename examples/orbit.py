"""An orbit from observations: Newton's method in each of many observations, and the derivative through it.

    python examples/orbit.py [OBSERVATIONS]

Where a planet is at a time follows from Kepler's equation, M = E - e sin E, which Newton's method solves in a few
rounds, more for some times than for others. `relay.vmap` solves it for all observations: each has a lane of the vector
registers, and so has its derivative. Gradient descent then finds the orbit's eccentricity and its phase.
"""

import sys

import numpy as np

from relay import relay, vmap


@relay
def position(time, eccentricity, phase):
    """Where the planet is at a time: (x, y), in units of the semi-major axis."""
    mean = time + phase
    anomaly = mean + eccentricity * np.sin(mean)
    step = 1.0
    while abs(step) > 1e-5:
        step = (anomaly - eccentricity * np.sin(anomaly) - mean) / (1.0 - eccentricity * np.cos(anomaly))
        anomaly = anomaly - step
    return np.cos(anomaly) - eccentricity, np.sqrt(1.0 - eccentricity**2) * np.sin(anomaly)


positions = vmap(position, in_axes=(0, None, None))


@relay
def error(times, xs, ys, eccentricity, phase):
    """The mean squared distance between the observations and an orbit."""
    x, y = positions(times, eccentricity, phase)
    return ((x - xs) ** 2 + (y - ys) ** 2).mean()


def main(observations=20_000):
    random = np.random.default_rng(0)
    times = random.uniform(0, 2 * np.pi, int(observations))
    xs, ys = (np.asarray(axis) + random.normal(0, 0.01, len(times)) for axis in positions(times, 0.4, 0.3))
    eccentricity, phase = 0.1, 0.0
    slope = relay.value_and_grad(error, wrt=("eccentricity", "phase"))
    for step in range(60):
        value, (by_eccentricity, by_phase) = slope(times, xs, ys, eccentricity, phase)
        eccentricity -= 0.15 * float(by_eccentricity)
        phase -= 0.15 * float(by_phase)
        if step % 10 == 0 and step < 40:
            print(f"step {step:2}  error {float(value):.5f}")
    print(f"eccentricity {eccentricity:.2f}, phase {phase:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
