"""Differentiable physics with contact: find the shot that sends a ball to its target.

    python examples/physics.py [ROUNDS [PICTURE]]

A cue ball hits a second ball, which hits a third one; they roll, bounce off the cushions, and slow down. Balls are
stiff springs: where two overlap, they push each other apart. The simulation is a plain loop of 8,000 time steps. The
Levenberg-Marquardt method finds the shot that stops the last ball at the target, by a Jacobian through all contacts.
"""

import sys

import numpy as np
from matplotlib import pyplot

from relay import relay

RADIUS = 0.06
STIFFNESS = 1e4
FRICTION = 1.3
TIME_STEP = 0.0005
TABLE = np.array([2.0, 1.0])
TARGET = np.array([1.5, 0.55])
START = np.array([[0.3, 0.3], [0.8, 0.55], [1.25, 0.7]])


@relay
def acceleration(p, v):
    """p, v: (balls, 2), positions and velocities of balls of mass 1."""
    apart = p[:, None] - p[None, :]
    distance = np.sqrt((apart**2).sum(axis=-1) + np.eye(len(p)))
    overlap = relay.relu(2 * RADIUS - distance)
    contacts = ((overlap / distance)[:, :, None] * apart).sum(axis=1)
    cushions = relay.relu(RADIUS - p) - relay.relu(p - (TABLE - RADIUS))
    return STIFFNESS * (contacts + cushions) - FRICTION * v


@relay
def simulate(shot, steps):
    """The paths of the balls, (steps, balls, 2), when the cue ball starts with velocity `shot`."""
    p, v = START, np.zeros_like(START)
    v[0] = shot
    path = []
    for _ in range(steps):
        v = v + TIME_STEP * acceleration(p, v)
        p = p + TIME_STEP * v
        path.append(p)
    return np.stack(path)


@relay
def miss(shot, steps):
    """Where the last ball is at the end, from the target: (2,)."""
    return simulate(shot, steps)[-1, -1] - TARGET


def main(rounds=10, picture="physics.png"):
    steps, damping, shot = 8000, 10.0, np.array([2.5, 1.3])
    missed = miss(shot, steps).numpy()
    for i in range(int(rounds)):
        jacobian = relay.jacobian(miss, wrt="shot")(shot, steps).numpy()
        new_shot = shot - np.linalg.solve(jacobian.T @ jacobian + damping * np.eye(2), jacobian.T @ missed)
        new_missed = miss(new_shot, steps).numpy()
        if np.linalg.norm(new_missed) < np.linalg.norm(missed):
            shot, missed, damping = new_shot, new_missed, damping / 3
        else:
            damping *= 3
        print(f"round {i + 1:2}  shot ({shot[0]:.4f}, {shot[1]:.4f})  misses by {np.linalg.norm(missed):.5f}")

    path = simulate(shot, steps).numpy()
    axis = pyplot.axes(aspect="equal", xlim=(0, TABLE[0]), ylim=(0, TABLE[1]))
    for ball, color in enumerate(("0.6", "C1", "C3")):
        axis.plot(*path[:, ball].T, color=color, linewidth=1)
        axis.add_patch(pyplot.Circle(path[0, ball], RADIUS, color=color, fill=False))
        axis.add_patch(pyplot.Circle(path[-1, ball], RADIUS, color=color))
    axis.plot(*TARGET, "kx", markersize=10)
    pyplot.savefig(picture, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
