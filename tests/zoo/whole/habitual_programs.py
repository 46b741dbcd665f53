"""Programs as they are written by habit: fields that change, and errors that are raised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relay import relay as program
from zoo import Program


@dataclass
class Statistics:
    total: Any = 0.0
    largest: Any = 0.0
    values: list = field(default_factory=list)


def observe(statistics, value):
    statistics.total += value
    statistics.largest = max(statistics.largest, value)
    statistics.values.append(value * value)
    return statistics


@program
def observed(xs):
    statistics = Statistics()
    for x in xs:
        if x < -100.0:
            raise ValueError(f"{x} is too small")
        statistics = observe(statistics, x)
    return statistics.total * statistics.largest + np.stack(statistics.values).sum()


PROGRAMS = [
    Program(observed, (np.array([0.5, 2.0, -1.0, 1.5]),)),
]
