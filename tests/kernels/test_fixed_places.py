"""A kernel that reads a tensor row by row, and also at one place for all rows."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import relay
from relay import RelayFunction

FORMS = (
    "relay.stack((y, x)).max(axis=0) * y[-1]",
    "relay.stack((y, x), axis=1).sum(axis=1) - x[0]",
    "relay.stack((y, x)).min(axis=0) + y[y.shape[0] // 2]",
    "(relay.stack((y, x, y)).sum(axis=0) * y[-1]).sum() + relay.stack((x, y)).max()",
    "relay.softmax(relay.stack((y, x), axis=1), axis=1)[:, 0] * y[1]",
    "relay.stack((y, x)).max(axis=0)[::-1] * relay.stack((x, y)).sum(axis=0) + x[1]",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_a_place_that_is_the_same_for_all_rows(form: str, dtype: str) -> None:
    if dtype == "int32" and "softmax" in form:
        return
    made = relay.from_source(f"def f(x, y):\n    return {form}\n", {"relay": relay})
    assert isinstance(made, RelayFunction)
    for dynamic in (True, False):
        f = RelayFunction(made.__relay__, attrs.evolve(made._options, dynamic=dynamic))
        for size in (17, 9, 33) if dynamic else (17,):
            x, y = (np.random.default_rng(size + n).uniform(-9, 9, size).astype(dtype) for n in range(2))
            np.testing.assert_allclose(f(x, y), f.interpret(x, y), rtol=1e-5, atol=1e-5)
