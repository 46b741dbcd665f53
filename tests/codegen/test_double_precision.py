"""Elementary functions of float64 against the machine's widest float, in units in the last place."""

from __future__ import annotations

import numpy as np
import pytest

import relay as R
from relay import RelayFunction

rng = np.random.default_rng(2)
EDGES = np.array([
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, -5e-324, 2.0**-1022, 1e-310, -1e-310, 1e-17, -1e-17, 0.5,
    709.78, 709.79, -708.4, -745.1, -745.2, 1e300, 1.7976931348623157e308, -1.7976931348623157e308, 0.4142, -0.2928,
])  # fmt: skip
TINY = 10.0 ** rng.uniform(-322, 0, 3000)
POSITIVE = np.concatenate([10.0 ** rng.uniform(-323, 308, 3000), rng.uniform(0.4, 2.5, 3000)])


def between(low: float, high: float) -> np.ndarray:
    return np.concatenate([rng.uniform(low, high, 3000), rng.uniform(-1, 1, 3000), TINY, -TINY])


# arguments, and how many units an answer may be off
CASES = {
    "exp": (between(-746, 710), 1.0),
    "exp2": (between(-1076, 1024), 1.0),
    "expm1": (between(-60, 710), 2.0),
    "log": (POSITIVE, 1.0),
    "log2": (POSITIVE, 2.0),
    "log10": (POSITIVE, 2.0),
    "log1p": (np.concatenate([between(-0.999999, 3), POSITIVE]), 1.2),
    "tanh": (between(-25, 25), 3.0),
    "sigmoid": (between(-750, 750), 2.0),
}


def all_of_them() -> RelayFunction:
    calls = ", ".join(f"relay.{name}({name})" for name in CASES)
    made = R.from_source(f"def f({', '.join(CASES)}):\n    return {calls}\n", {"relay": R})
    assert isinstance(made, RelayFunction)
    return made


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="there is no wider float to compare with")
def test_units_in_the_last_place() -> None:
    arguments = {name: np.concatenate([x, EDGES]) for name, (x, _) in CASES.items()}
    for (name, x), result in zip(arguments.items(), all_of_them()(*arguments.values()), strict=True):
        found, wide = result.numpy(), x.astype(np.longdouble)
        with np.errstate(all="ignore"):
            exact = 1 / (1 + np.exp(-wide)) if name == "sigmoid" else getattr(np, name)(wide)
            wanted = exact.astype(np.float64)
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(found[~finite], wanted[~finite], err_msg=name)
        np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]), err_msg=name)
        units = np.abs(found[finite] - exact[finite]) / np.spacing(np.abs(wanted[finite]))
        assert units.max() <= CASES[name][1], (name, x[finite][units.argmax()], float(units.max()))
