"""Whether the modes agree: structures of results compared leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from relay.frontend.data.values import is_value
from relay.ir.structure import fields_of, form_of

# Compiled float64 code may reassociate sums and uses other transcendental functions than NumPy: a few units in the
# last place, # more where they accumulate.
RELATIVE = 1e-10


def parts_of(value: Any) -> list[Any] | None:
    """The parts of a Python structure or a value of a data type; None for anything else."""
    if is_value(value):
        return list(vars(value).values())
    form = form_of(value)
    if form is not None:
        return fields_of(value, form)
    return list(value) if isinstance(value, tuple) else None


def leaves(value: Any) -> Iterator[Any]:
    parts = parts_of(value)
    if parts is None:
        yield value
    else:
        for item in parts:
            yield from leaves(item)


def assert_close(found: Any, expected: Any, rtol: float = RELATIVE, atol: float = 1e-12) -> None:
    """Equal structure, dtypes and (nearly) values."""
    a, b = list(leaves(found)), list(leaves(expected))
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        if x is None or y is None:
            assert x is None and y is None
        else:
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=atol)
