"""Counts and sums over conditions, of arrays longer than a few vectors."""

import numpy as np

from relay import relay
from zoo import Program

_LONG = np.random.default_rng(0).standard_normal((3, 150))


@relay
def counts(x):
    positive = (x > 0.0).sum()
    small = (relay.abs(x) < 0.5).astype("float64").sum(axis=1)
    largest = (x > 1.0).astype("int32").max(axis=0)
    return x.sum() * float(positive) + (small * small).mean() + float(largest.sum())


@relay
def masked_means(x):
    kept = x > -0.25
    weights = kept.astype(x.dtype)
    return (x * weights).sum(axis=1) @ (1.0 / (1.0 + weights.sum(axis=1)))


PROGRAMS = [
    Program(counts, (_LONG,)),
    Program(masked_means, (_LONG,)),
]
