"""Lists whose length is computed, where NumPy takes arrays, and booleans that Python's `sum` counts."""

import numpy as np

from relay import relay
from zoo import Program

_X = np.array([0.5, 3.0, 2.0, -1.0])


@relay
def waiting_times(gaps, served):
    """A queue with one desk."""
    now, free, waits = 0.0, 0.0, []
    for gap, time in zip(gaps, served):
        now += gap
        free = max(now, free)
        if free < 20.0:
            waits.append(free - now)
        free += time
    return np.mean(waits) + np.median(waits) * np.std(waits) + np.max(waits)


@relay
def joined_with_numbers(x):
    kept = []
    for v in x:
        if v > 0.0:
            kept.append(v * v)
    edges = np.concatenate([[0.0], np.cumsum(kept), (x[0], 7.0)])
    return np.sum(np.diff(edges) ** 3) + np.dot(kept, kept) + np.sum(np.maximum(kept, 1.0) * x[0])


@relay
def truths_counted(x, y):
    same = sum(a == b for a, b in zip(x, y))
    positive = []
    for v in x:
        if v < 2.5:
            positive.append(v > 0.0)
    return same, sum(positive), sum([v > 0.0 for v in y]), np.mean(positive) > 0.6, sum([x[0] > 0.0])


@relay
def filled(x):
    like, kept = np.full_like(x, x[1]), np.empty(4)
    for i in range(4):
        kept[i] = x[i] * like[i]
    (places,) = np.where(kept > 0.0)
    return kept[places].sum() + np.empty_like(x).size


PROGRAMS = [
    Program(waiting_times, (np.array([1.0, 0.5, 0.25, 4.0]), np.array([2.0, 1.5, 0.75, 1.0]))),
    Program(joined_with_numbers, (_X,)),
    Program(truths_counted, (_X, np.array([0.5, 3.0, 2.5, 0.0])), differentiable=False, expected=(2, 2, 3, True, 1)),
    Program(filled, (_X,), expected=20.5),
]
