"""What is reached by a name of NumPy's, or of `math`, means what it means there, or is refused."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from agreement import assert_modes_agree, leaves
from matrix import sample
from numpy_calls import ARRAYS, METHODS, accepted_names, calls, method_calls, number_expressions

import relay as R
from relay.errors import RelayError
from relay.typecheck.elaboration.library.numpy_signatures import signatures

FUNCTIONS = dict(accepted_names())
OF_NO_NUMPY = ("descending", "reverse")
"""Arguments that methods take beside NumPy's."""


def in_numpy(text: str) -> object:
    names = {name: array.copy() for name, array in ARRAYS.items()}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, {**names, "np": np, "math": math})


def program(texts: Sequence[str]) -> tuple[R.RelayFunction, list[np.ndarray]]:
    """A function that returns what the texts say, and its arguments."""
    names = sorted({name for text in texts for name in re.findall(r"\b[a-z]+\d?\b", text) if name in ARRAYS})
    results = ", ".join(texts) + "," * (len(texts) > 1)
    f = R.from_source(f"def f({', '.join(names) or 'unused'}):\n    return {results}\n", {"np": np, "math": math})
    return f, [ARRAYS[name] for name in names] or [np.ones(())]


def difference(found: object, expected: object) -> str | None:
    """How two results differ: in shapes, kinds of numbers, or values. Floats may be float32, and integers int32."""
    ours, theirs = (list(map(np.asarray, leaves(value))) for value in (found, expected))
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for a, b in zip(ours, theirs, strict=True):
        kinds = [x.dtype.kind.replace("u", "i") for x in (a, b)]
        if a.shape != b.shape or kinds[0] != kinds[1]:
            return f"{a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        tolerance = 1e-5 if a.dtype == np.float32 else 1e-10
        if b.dtype == np.float16:  # NumPy's floats of booleans and small integers; ours are float32
            with np.errstate(over="ignore"):
                tolerance, a = 1e-3, a.astype(np.float16)
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{a.tolist()}, not {b.tolist()}"
    return None


def outcome(text: str) -> tuple[bool, str | None]:
    """Whether a call is accepted, and what is wrong with that."""
    f, arguments = program([text])
    try:
        found = f.interpret(*arguments)
    except RelayError:
        return False, None
    try:
        expected = in_numpy(text)
    except Exception as error:
        return True, f"{[np.asarray(x).tolist() for x in leaves(found)]}, where NumPy raises {error}"
    return True, difference(found, expected)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.startswith("np.")])
def test_a_function_of_numpy(name: str) -> None:
    texts = list(calls(name, FUNCTIONS[name]))
    outcomes = {text: outcome(text) for text in sample(texts, 30)}
    if name == "np.reciprocal":  # 1 / x is a float here, and cut off to an integer in NumPy
        outcomes = {text: found for text, found in outcomes.items() if not re.search(r"\b[a-ln-z]\d|m\d|True", text)}
    assert not {text: wrong for text, (_, wrong) in outcomes.items() if wrong is not None}
    assert any(accepted for accepted, _ in outcomes.values()) or any(outcome(text)[0] for text in texts)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.startswith("math.")])
def test_a_function_of_math(name: str) -> None:
    # elementwise, they take tensors here; and of numbers outside of their domain they are NaN
    outcomes = {text: outcome(text) for text in calls(name, FUNCTIONS[name])}
    more = re.compile(
        r"0-dimensional|math domain error|doesn't define|must be a positive|expected a (nonneg|pos|number)"
    )
    assert not {t: wrong for t, (_, wrong) in outcomes.items() if wrong is not None and not more.search(wrong)}
    assert any(accepted for accepted, _ in outcomes.values())


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_arrays(name: str) -> None:
    texts = [text for text in method_calls() if f".{name}(" in text]
    outcomes = {text: outcome(text) for text in texts if not any(f"{word}=" in text for word in OF_NO_NUMPY)}
    scalars = "'numpy.float64' object has no attribute"
    assert not {t: wrong for t, (_, wrong) in outcomes.items() if wrong is not None and scalars not in wrong}
    assert any(accepted for accepted, _ in outcomes.values())


def test_signatures_are_numpys() -> None:
    for key, signature in signatures().items():
        function = getattr(np.linalg, key[7:]) if key.startswith("linalg.") else getattr(np, key)
        try:
            theirs = inspect.signature(function).parameters
        except ValueError:
            continue  # it is written in C
        known = [p for p in signature.parameters.values() if p.name not in ("constant_values",)]
        by_position = {p.name: n for n, p in enumerate(known) if p.kind is not p.KEYWORD_ONLY}
        assert [n for n, p in theirs.items() if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD] == [
            *by_position
        ], key


# ---- numbers


def test_numbers_are_exact() -> None:
    outcomes = {text: outcome(text) for text in number_expressions()}
    by_zero = re.compile(r"division by zero|modulo|floor division")  # Python raises, NumPy has infinities
    outcomes.pop("min(True, 2.5)", None)  # a bool in Python, which takes the dtype of the float here
    assert not {t: wrong for t, (_, wrong) in outcomes.items() if wrong is not None and not by_zero.search(wrong)}
    assert sum(accepted for accepted, _ in outcomes.values()) > 500


CONVERTED = (
    "np.array([0.1, 0.2, 0.3], dtype=np.float64)", "np.asarray(0.1, np.float64)",
    "np.array([0.1, 0.2]).astype(x1.dtype)",
    "np.sum([0.1, 0.2], dtype=np.float64)", "np.stack([0.1, 0.2], dtype=np.float64)", "np.insert([0.1, 0.2], 1, 0.3)",
    "np.insert(x1, 1, 0.1)", "np.float_power(x1 * x1, 0.1)", "np.sum(x1, initial=0.1)", "np.max(x1, initial=3.3)",
    "np.pad(x1, 1, constant_values=(0.1, 0.3))", "np.full_like(x1, 0.1, shape=(2,))", "np.nanmin(x1, initial=-3.3)",
    "np.geomspace(0.1, 0.7, 4, dtype=np.float64)", "np.ediff1d(x1, to_end=[0.1, 0.3])", "np.polyint(x1, 1, 0.1)",
    "np.copysign(0.1, x1)", "np.nextafter(0.1, x1)",
)  # fmt: skip


def test_numbers_that_are_converted_are_not_rounded_before() -> None:
    f, arguments = program([f"x1[0] * {text}" for text in CONVERTED])
    for text, found in zip(CONVERTED, assert_modes_agree(f, *arguments), strict=True):
        np.testing.assert_allclose(found, ARRAYS["x1"][0] * in_numpy(text), rtol=1e-14, err_msg=text)


def test_numbers_beyond_int32_are_int64() -> None:
    f, _ = program(["1 << 40", "2**31 - 1", "2**31", "-(2**31)", "(1 << 40) + n0", "(1 << 31) - 1"])
    with pytest.raises(R.TypeMismatch, match="1099511627776 is out of range for int32"):
        f.interpret(ARRAYS["n0"])
    f, _ = program(["1 << 40", "2**31 - 1", "2**31", "-(2**31)", "(1 << 40) + l0", "(1 << 31) - 1"])
    results = assert_modes_agree(f, ARRAYS["l0"])
    assert [str(r.dtype) for r in results] == ["int64", "int32", "int64", "int32", "int64", "int32"]
    assert [int(r) for r in results] == [2**40, 2**31 - 1, 2**31, -(2**31), 2**40 + int(ARRAYS["l0"]), 2**31 - 1]


@pytest.mark.parametrize("text", ["10 ** 10**8", "1 << 10**12", "((1 << 16000) * (1 << 16000)) >> 31000", "1 << -1"])
def test_numbers_take_no_endless_work(text: str) -> None:
    f, arguments = program([text])
    with pytest.raises(R.TypeMismatch, match=r"too large|negative shift count"):
        f.interpret(*arguments)


def test_sizes_are_shifted_as_numbers() -> None:
    @R.relay(dynamic=True)
    def f(x):
        n = x.shape[0]
        return x.sum() * float(n << 3) + float(n >> 1)

    for size in (3, 10):
        assert float(f(np.ones(size))) == size * size * 8 + size // 2


# ---- compiled


COMPILED = tuple(
    """np.cumsum(x2); np.cumprod(x3); x2.cumsum(); np.cumsum(m2); np.take(x2, i1); x3.take(i2, axis=None);
np.linalg.norm(x2, 1); np.linalg.norm(x2, np.inf); np.linalg.norm(x3, -1, axis=(0, 2), keepdims=True);
np.linalg.norm(x2); np.dot(q3, q3); x2.dot(q3); np.dot(x0, y2); np.trace(x3); np.diagonal(x3, 1, 2, 0);
np.linalg.trace(x3); np.round(x2, 1); x1.round(-1); np.sum(u1); np.prod(b1); np.mean(n2, dtype=np.float64);
np.isclose(special, others); math.pow(2, 3); math.log(8.0, 2.0); np.concatenate((x1, y2), axis=None); np.std(x2,
axis=0, ddof=1); np.zeros_like(n2, dtype=np.float64); np.sort(x2, 0, 'stable'); 1 << 40; np.diff(x3, 2, 1);
np.append(x2, y1); np.hypot(special, others); np.cbrt(x1); np.fmod(x1, y1); np.fmod(n1, -3);
np.copysign(x1, special[1]);
np.fmax(special, others); np.heaviside(x1, 0.5); np.logaddexp2(x1, y1); np.signbit(special); np.gcd(n2, 6);
np.trapezoid(x2, x1); np.ptp(x3, 1); np.average(x2, 0, y2); np.nan_to_num(special); np.interp(x2, sorted1[:3], y1);
np.vander(x1, 2); np.rot90(x3, -1, (1, 2)); np.ediff1d(x2); np.select([m1, x1 > 0.0], [x1, y1], 7.0);
np.digitize(x2, sorted1); np.vstack((x1, x2)); np.linalg.det(q2); m2 @ m1; m2.T @ m2; np.dot(m1, m1); np.abs(m1);
np.inner(m2, m2); np.outer(m1, m1); np.einsum('ij,kj->ik', m2, m2); np.einsum('ij->j', m2); m1 << 2; m1 >> m1; 1 << m1;
np.tensordot(m2, m2, 2); np.isnan(m1); np.nansum(m2, 0); np.nanmean(m2); np.isclose(m1, m1); np.square(m1); m1 ** m1;
np.sum(x2, 0, initial=2.0, where=m2); np.max(x2, 1, initial=-9.0, where=m2); np.std(x2, where=m2, ddof=1); np.all(n2);
np.quantile(x3, [0.2, 0.9], (0, 1), method='hazen'); np.nanquantile(special, 0.3); np.nanmedian(special[2:]);
np.quantile(x1, 0.3, method='averaged_inverted_cdf'); np.quantile(x1, 0.3, weights=y1**2, method='inverted_cdf');
np.pad(x2, (1, 2), 'wrap'); np.pad(x2, 4, 'symmetric'); np.pad(x2, 1, 'linear_ramp', end_values=2.0);
np.pad(x2, ((1,), (2,)), 'mean'); np.pad(x2, 1, 'reflect', reflect_type='odd'); np.pad(n2, 1, 'median');
np.linspace(x1, y1, 4, axis=1); np.linspace(0.0, x0, 3, retstep=True)[1]; np.geomspace(1.0, np.abs(x1) + 1.0, 3);
np.meshgrid(x1, y1, sparse=True)[1]; np.reshape(x2, (3, 2), order='F'); np.gradient(x3, 2.0, edge_order=2, axis=1);
np.unique(i2[[0, 1, 0]], axis=0); np.cov(x2, fweights=[1, 2, 3], aweights=[0.5, 2.0, 1.0]); np.frexp(x1)[1];
np.ldexp(x1, n1); np.nextafter(special, others); np.spacing(x1); np.nextafter(s1, s1 + 1.0); np.i0(x1);
np.choose(i1 + 1, (x1[0], 2.0, y1[1])); np.histogram2d(x2.ravel(), y2.ravel(), (3, 2))[0]; np.trim_zeros(m1);
np.block([[q2, x1[:, None]], [x1, x0]]); np.resize(x2, (2, 4)); np.polyfit(sorted1 * 1.0, x2.ravel()[:5], 1);
np.polydiv(sorted1, x1[1:])[0]; np.linalg.eigvalsh(p3); np.linalg.svdvals(x2); np.linalg.pinv(x2); np.linalg.qr(x2)[1];
np.linalg.lstsq(x2.T, x1)[0]; np.linalg.matrix_power(q3, -3); np.linalg.inv(q3); np.linalg.norm(x3, 'nuc', (0, 2));
np.fft.fftfreq(5); np.fft.fftshift(x2); np.kaiser(5, x0); np.logical_xor(x1, n1); np.diff(x2, append=x2[:, :1]);
np.interp(x1, sorted1[2:], y1, period=2.0); np.cross(x2, y2, axis=1); np.lexsort((n2, x2), axis=0); x2.mT; np.angle(x1);
np.diag(m1); np.fmax(m1, m1); np.vander(m1, 3); np.matmul(m1, m2.T); np.hypot(m1, m1); np.cbrt(m1)""".replace(
        "\n", " "
    ).split("; ")
)


def test_compiled_programs_mean_the_same() -> None:
    f, arguments = program(COMPILED)
    for text, found in zip(COMPILED, f(*arguments), strict=True):
        assert difference(found, in_numpy(text)) is None, text


def test_gradients_go_through_the_names() -> None:
    @R.relay
    def f(x):
        rows = np.cumsum(x) * np.take(x, np.array([0, 3])).sum()
        written = np.diff(x, axis=0).sum() + np.ptp(np.hypot(x, 2.0)) + np.interp(x, x[:, 0], x[:, 1]).sum()
        written += np.average(x, weights=np.cbrt(x * x)) + np.trapezoid(np.fmod(x, 0.7), x, axis=0).sum()
        written += (np.vander(x[0], 4) * np.rot90(np.append(x, x).reshape(4, 2))).sum() + np.logaddexp2(x, 1.0).sum()
        written += np.quantile(x, x[0, 0], axis=0, method="weibull").sum() + np.linspace(x, 2.0, 3)[1].sum()
        written += (
            np.sum(np.pad(x, 1, "symmetric") ** 2) + np.std(x, where=x > 0.0) + np.max(x, where=x < 1.0, initial=-9.0)
        )
        written += np.frexp(x + 0.2)[0].sum() + np.polyfit(x[0], x[1], 1).sum() + np.gradient(x[:, 0], x[1] + 3.0)[0]
        return rows.sum() + np.linalg.norm(x, 1) + np.trace(np.dot(x, x)) + x.std(ddof=1) + written

    x = np.array([[0.5, -1.5], [2.0, 0.25]])
    R.check_gradient(f, x)
    np.testing.assert_allclose(R.grad(f)(x), R.grad(f).interpret(x), rtol=1e-10)


# ---- what is said


def message(text: str) -> str:
    f, arguments = program([text])
    with pytest.raises(RelayError) as raised:
        f.interpret(*arguments)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "said", "help"),
    [
        ("np.max(x2, where=m2)", "np.max with where needs an initial value: initial=-np.inf", ""),
        ("np.exp(x2, where=m2)", "exp has no argument 'where'", "np.where(mask, result, y)"),
        ("np.hypot(x2, x2, out=x2)", "hypot has no parameter 'out'", "values never change"),
        ("np.sum(x2, axis=0, where=m2, out=x1)", "np.sum with 'out'", "assign the result"),
        ("np.sum(x2, out=x1)", "np.sum with 'out'", "assign the result"),
        ("np.sort(x2, descending=True)", "np.sort takes no argument 'descending'", "relay.sort(x, descending=..) does"),
        ("np.linalg.norm(x2, 3)", "the norm of order 3 of matrices", "np.linalg.norm(A.ravel(), ord)"),
        ("np.partition(x1, 1)", "`partition` is not part of Relay", "np.sort(x) has each element"),
        ("math.remainder(x0, y0)", "`remainder` is not part of Relay", "relay.round(x / y)"),
        ("math.pow(n0, n0)", "math.pow needs floats", "n ** 2"),
        ("np.linalg.eig(q2)", "`eig` is not part of Relay", "np.linalg.eigh takes symmetric ones"),
        ("np.fft.fft(x1)", "`fft` is not part of Relay", "np.cos(2 * np.pi * np.outer(k, k) / n) @ x"),
        ("np.savetxt('a', x1)", "`savetxt` is not part of Relay", "return the array"),
        ("np.rint(n1)", "rint of integers", "np.round(n)"),
        ("np.trace(x3, 0, 1, 1)", "needs two axes, found 1 twice", ""),
        ("x2.sum(0, 1)", "the dtype of sum must be a dtype, found 1", "relay.Float32"),
        ("np.transpose(x2, True)", "axes of transpose must be", ""),
        ("(-8) ** 0.5", "a root of a negative number", ""),
    ],
)
def test_refusals_say_what_to_write(text: str, said: str, help: str) -> None:
    found = message(text)
    assert said in found
    assert help in found
