"""Which part of a large matrix of tests runs: a sample by the day's seed, or all of it.

`RELAY_TEST_SEED` chooses the sample, `RELAY_TEST_ALL=1` (`make test-all`) everything, `RELAY_TEST_QUICK=1`
(`make quick`) less of the zoo. The seed is printed at the start.
"""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Iterable
from typing import TypeVar

_T = TypeVar("_T")

SEED = int(os.environ.get("RELAY_TEST_SEED") or datetime.datetime.now(datetime.UTC).strftime("%Y%m%d"))
"""The seed of this run."""


def everything() -> bool:
    """Whether nothing is left out."""
    return os.environ.get("RELAY_TEST_ALL", "") not in ("", "0")


def quick() -> bool:
    """Whether only a sample of the zoo is wanted, where otherwise all of it runs."""
    return os.environ.get("RELAY_TEST_QUICK", "") not in ("", "0")


def sample(items: Iterable[_T], count: int) -> list[_T]:
    """So many of the items, in their order; all of them if nothing is left out."""
    found = list(items)
    if everything() or len(found) <= count:
        return found
    chosen = set(random.Random(SEED).sample(range(len(found)), count))
    return [item for position, item in enumerate(found) if position in chosen]
