"""Zeros of both signs, infinities, NaN: compiled code, the interpreter and NumPy agree in which of them results are."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from matrix import sample
from operator_samples import OPERATORS, Sample, compiled, is_elementwise, reference

from relay.operator import Operator
from relay.operator.relation import Relation

DTYPES = {
    "float64": np.dtype(np.float64),
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}

NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.5, np.inf, -np.inf, np.nan, 0.5, 1e-3]

ALWAYS = ("mod", "floor_divide", "maximum", "minimum", "sign", "relu", "negative", "abs", "multiply", "divide")
"""What has treated zeros in a way of its own; the others are a sample."""


def takes_floats(operator: Operator) -> bool:
    relation = operator.relation
    return isinstance(relation, Relation) and is_elementwise(operator) and _accepts(operator)


def _accepts(operator: Operator) -> bool:
    try:
        Sample(operator, tuple(np.ones(1) for _ in operator.operands), {}).results  # noqa: B018
    except Exception:
        return False
    return True


FLOAT_OPERATORS = [name for name, operator in OPERATORS.items() if takes_floats(operator)]


def classes(array: np.ndarray) -> np.ndarray:
    """0: a number, 1: zero, -1: minus zero, 2: NaN, 3 and -3: infinities."""
    wide = array.astype(np.float64)
    found = np.where(wide == 0, np.where(np.signbit(wide), -1, 1), 0)
    found = np.where(np.isnan(wide), 2, found)
    return np.where(np.isinf(wide), np.where(wide > 0, 3, -3), found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_results_agree(dtype: str) -> None:
    others = [name for name in FLOAT_OPERATORS if name not in ALWAYS]
    names = [*ALWAYS, *sample(others, 10)]
    left, right = (part.reshape(-1) for part in np.meshgrid(NUMBERS, NUMBERS))
    operands = [part.astype(DTYPES[dtype]) for part in (left, right, np.roll(left, 5))]
    samples = [Sample(OPERATORS[n], tuple(operands[: len(OPERATORS[n].operands)]), {}) for n in names]
    with np.errstate(all="ignore"):
        for name, made, (found,) in zip(names, samples, compiled(samples), strict=True):
            (wanted,) = reference(made)
            if wanted.dtype != DTYPES[dtype]:
                np.testing.assert_array_equal(found, wanted, err_msg=name)
                continue
            where = np.flatnonzero(classes(found) != classes(wanted))
            assert not where.size, (name, [o[where[0]] for o in made.operands], found[where[0]], wanted[where[0]])
            function = getattr(np, name, None)
            if isinstance(function, np.ufunc) and dtype in ("float32", "float64"):
                np.testing.assert_array_equal(classes(wanted), classes(function(*made.operands)), err_msg=name)
