"""Views of NumPy: a change that is seen under another name is refused, or seen, whichever function made the view."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import leaves
from generators.numpy_views import ViewProgram, view_programs
from matrix import sample
from numpy_calls import METHODS, accepted_names, calls, method_calls

import relay as rl

FUNCTIONS = {name: function for name, function in accepted_names() if name.startswith("np.")}


def _is_wrong(program: ViewProgram) -> bool:
    """True if a program is accepted and gives something else than NumPy."""
    try:
        found = rl.from_source(program.text, {"np": np}).interpret(*program.arguments)
    except rl.RelayError as error:
        return isinstance(error, rl.InternalError)
    ours, theirs = (list(map(np.asarray, leaves(v))) for v in (found, program.numpys()))
    return len(ours) != len(theirs) or any(
        a.shape != b.shape or not np.allclose(a, b, equal_nan=True) for a, b in zip(ours, theirs, strict=True)
    )


def _wrong(texts: list[str]) -> list[str]:
    programs = [program for text in sample(texts, 12) for program in view_programs(text)]
    return [program.text for program in sample(programs, 2) if _is_wrong(program)]


@pytest.mark.parametrize("name", sample(FUNCTIONS, 150))
def test_a_view_that_a_function_makes_is_no_other_array(name: str) -> None:
    assert not _wrong(list(calls(name, FUNCTIONS[name])))


@pytest.mark.parametrize("name", METHODS)
def test_a_view_that_a_method_makes_is_no_other_array(name: str) -> None:
    assert not _wrong([text for text in method_calls() if f".{name}(" in text])


REFUSED = [
    "z = x.T; z[0, 0] = 5.0; return x",
    "z = x.mT; z[0, 0] = 5.0; return x",
    "z = x.real; z[0, 0] = 5.0; return x",
    "z = x[..., 0]; z[0] = 5.0; return x",
    "z = x[None]; z[0, 0] = 5.0; return x",
    "rows = list(x); rows[0][0] = 5.0; return x",
    "rows = [r for r in x]; rows[0][0] = 5.0; return x",
    "a, b = x; a[0] = 5.0; return x",
    "a, *b = x; a[0] = 5.0; return x",
    "zs = np.split(x, 2); zs[1][0, 0] = 5.0; return x",
    "for z in np.split(x, 2):\n    z[0] = 5.0\nreturn x",
    "z = np.reshape(a=x, newshape=6) if False else np.reshape(x, 6); z[0] = 5.0; return x",
    "z = np.asanyarray(a=x); z[0] = 5.0; return x",
    "z = np.array(x, copy=None); z[0] = 5.0; return x",
    "z = np.nan_to_num(x, copy=False); return x",
    "z = np.nan_to_num(x, copy=n > 5); return x",
    "z = np.median(x, overwrite_input=True); return x + z",
    "z = np.real(x); z[0, 0] = 5.0; return x",
    "z = np.diff(x, n=n - n); z[0, 0] = 5.0; return x",
    "z = np.einsum('ii->i', x[:, :2]); z[0] = 5.0; return x",
    "z = np.broadcast_arrays(y, x)[1]; z[0] = 5.0; return x",
    "z = np.linalg.diagonal(x); x[0, 0] = 5.0; return z",
    "def part(v):\n    return np.ravel(v)\nz = part(x); z[0] = 5.0; return x",
    "z = np.histogram(x, y)[1]; y[0] = -5.0; return z",
    "z = np.expand_dims(np.flip(x.T, 0), 1)[0]; z[0] = 5.0; return x",
]


@pytest.mark.parametrize("body", REFUSED)
def test_views_of_views_parts_and_lists_are_refused(body: str) -> None:
    with pytest.raises(rl.TypeCheckError, match="in Python"):
        _program(body).interpret(*_given())


ACCEPTED = [
    "z = np.array(x); z[0] = 5.0; return x",
    "z = np.asarray(x, copy=True); z[0] = 5.0; return x",
    "z = np.nan_to_num(x); z[0] = 5.0; return x",
    "z = np.diff(x); z[0] = 5.0; return x",
    "z = np.diag(y); z[0, 1] = 5.0; return y, z",
    "z = np.conj(x); z[0] = 5.0; return x, z",
    "z = np.einsum('ij->i', x); z[0] = 5.0; return x, z",
    "z = np.asarray([1.0, 2.0]); z[0] = 5.0; return z",
    "zs = [1.0, 2.0]; z = np.asarray(zs); z[0] = 5.0; return zs, z",
    "z = x.astype(np.int32); z[0] = 5; return x, z",
    "z = np.asarray(x > 1.0, dtype=float); z[0] = 5.0; return x, z",
    "x = np.reshape(x, 6); x[0] = 5.0; return x",
    "zs = np.split(x, 2); zs.append(x); return x, len(zs)",
    "x = np.nan_to_num(x, copy=False); return x",
    "z = x.flatten(); z[0] = 5.0; return x, z",
    "m = np.median(x, overwrite_input=True); return m",
]


@pytest.mark.parametrize("body", ACCEPTED)
def test_what_is_no_view_is_accepted(body: str) -> None:
    names: dict[str, object] = {"np": np}
    exec(_text(body), names)
    expected = names["f"](*_given())  # type: ignore[operator]
    for ours, theirs in zip(leaves(_program(body).interpret(*_given())), leaves(expected), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def _text(body: str) -> str:
    return "def f(x, y, n):\n" + "\n".join(f"    {line}" for line in body.replace("; ", "\n").split("\n")) + "\n"


def _program(body: str) -> rl.RelayFunction:
    return rl.from_source(_text(body), {"np": np})


def _given() -> tuple[np.ndarray, np.ndarray, int]:
    return np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 4.0]), 2
