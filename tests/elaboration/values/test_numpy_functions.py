"""NumPy's functions that the language is written in: compiled, for any size, and their gradients."""

from __future__ import annotations

import re

import numpy as np
import pytest
from agreement import leaves
from numpy_calls import ARRAYS

import relay as R

pytestmark = pytest.mark.usefixtures("low_effort")

TEXTS = tuple(
    """np.unique(n2, return_index=True, return_inverse=True, return_counts=True); np.unique(special); np.isin(n2, i1);
np.intersect1d(n1, n2); np.setdiff1d(n2, n1); np.union1d(n1, i1); np.convolve(x1, sorted1); np.convolve(x1, y1, 'same');
np.correlate(sorted1, x1, 'full'); np.polyval(x1, y2); np.unwrap(x2 * 4.0); np.gradient(x2, 0.5); np.hamming(5);
np.gradient(x1, y1 * 0.0 + sorted1[2:]); np.quantile(x2, [0.2, 0.7], axis=1); np.percentile(x1, 40, method='lower');
np.histogram(x3, 4); np.histogram(x1, [-1.0, 0.0, 2.0], weights=y1); np.cov(x2); np.corrcoef(x1, y1);
np.lexsort((n2[0], n2[1])); np.delete(x2, 1, axis=1); np.delete(x1, [0, -1]); np.insert(x1, -1, [5.0, 6.0]);
np.compress(m1, x2, axis=1); np.extract(m2, x2); np.array_split(sorted1, 3); np.dstack((x2, y2)); np.kron(q2, x2);
np.apply_along_axis(np.cumsum, 0, x2); np.vdot(x2, y2); np.nanmax(special); np.nanvar(special[:4], ddof=1);
np.nanargmin(special); np.nancumsum(special); np.divmod(x1, 0.7); np.modf(x2); np.bincount(abs(n1)); x2.nonzero();
np.diagflat(x1, 1)""".replace("\n", " ").split("; ")
)


def test_compiled_functions_mean_the_same() -> None:
    names = sorted({name for text in TEXTS for name in re.findall(r"\b[a-z]+\d?\b", text) if name in ARRAYS})
    f = R.from_source(f"def f({', '.join(names)}):\n    return {', '.join(TEXTS)}\n", {"np": np})
    found = f(*(ARRAYS[name] for name in names))
    with np.errstate(all="ignore"):
        for text, ours in zip(TEXTS, found, strict=True):
            theirs = eval(text, {**ARRAYS, "np": np})
            for a, b in zip(leaves(ours), leaves(theirs), strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6, atol=1e-9, err_msg=text)


def test_one_program_serves_all_sizes() -> None:
    @R.relay(dynamic=True)
    def f(x, y):
        counts = np.unique(np.round(x), return_counts=True)
        smooth = np.convolve(x, y, mode="same")
        return counts, smooth, np.quantile(x, 0.3), np.cov(x), np.delete(x, -1), np.insert(x, 1, 7.0), np.kron(y, x)

    rng = np.random.default_rng(1)
    for n, m in ((5, 3), (4, 7), (9, 2)):
        x, y = rng.normal(size=n) * 3, rng.normal(size=m)
        expected = (np.unique(np.round(x), return_counts=True), np.convolve(x, y, mode="same"), np.quantile(x, 0.3))
        expected = (*expected, np.cov(x), np.delete(x, -1), np.insert(x, 1, 7.0), np.kron(y, x))
        for a, b in zip(leaves(f(x, y)), leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "np.unique(x)[1:].sum() + np.nanstd(x) + np.nanmax(x)",
        "(np.convolve(x, x) * 0.3).sum() + np.correlate(x, x, 'full')[1] + np.polyval(x, 0.7)",
        "np.quantile(x, [0.2, 0.9]).sum() + np.cov(x, x * x)[0, 1] + np.corrcoef(x, x * x)[0, 1]",
        "(np.gradient(x, 0.5) ** 2).sum() + np.unwrap(x * 3.0).sum() + np.histogram(x, [-9.0, 9.0], weights=x)[0][0]",
        "(np.delete(x, 1) ** 2).sum() + (np.insert(x, 1, x[0] * 2.0) ** 2).sum() + (np.kron(x, x) ** 2).sum()",
        "(np.apply_along_axis(lambda v: v * v.sum(), 0, x) ** 2).sum() + np.vdot(x, x) + np.compress(x > 0.0, x).sum()",
    ],
)
def test_gradients(text: str) -> None:
    f = R.from_source(f"def f(x):\n    return {text}\n", {"np": np})
    x = np.array([0.5, -1.5, 2.0, 0.25])
    R.check_gradient(f, x)
    np.testing.assert_allclose(R.grad(f)(x), R.grad(f).interpret(x), rtol=1e-9)
