"""Strings as run-time values: chosen by branches and loops, in lists and data, as results; in both modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise, modes

import relay
from relay import relay as program


@dataclass
class Labeled:
    name: Any
    value: Any


def size_of(x):
    if x > 10:
        return "large"
    elif x > 5:
        return f"about {x:.0f}"
    return "small"


@program
def described(xs, i):
    found = []
    for x in xs:
        found.append(size_of(x))
    last = found[-1]
    label = Labeled("even" if i % 2 == 0 else "odd", i)
    missing = None
    if i > 100:
        missing = "many"
    known = "abc"[i % 3] + last[0] + last[-2:]
    code = 0
    match last:
        case "small":
            code = 1
        case "large":
            code = 2
        case _:
            code = 3
    backward = ""
    for c in last:
        backward = c + backward
    compared = last < "m", last >= "small", last != "large", "ma" in last, last in ("large", "tiny"), bool(last == "")
    methods = last.startswith("sm"), last.endswith("rge"), last.find("a"), isinstance(last, str), len(last)
    return found, "; ".join(found), label, missing, known, code, backward, compared, methods, last * 2


def expected_of(xs, i):
    found = [size_of(x) for x in xs]
    last = found[-1]
    return (
        found,
        "; ".join(found),
        Labeled("even" if i % 2 == 0 else "odd", i),
        "many" if i > 100 else None,
        "abc"[i % 3] + last[0] + last[-2:],
        {"small": 1, "large": 2}.get(last, 3),
        last[::-1],
        (last < "m", last >= "small", last != "large", "ma" in last, last in ("large", "tiny"), False),
        (last.startswith("sm"), last.endswith("rge"), last.find("a"), True, len(last)),
        last * 2,
    )


def test_texts_are_what_python_makes_of_them() -> None:
    for xs, i in ((np.array([1.0, 7.0, 20.0]), 3), (np.array([30.0, 2.0]), 104)):
        assert assert_modes_agree(described, xs, i) == expected_of(xs, i)


def digits(n, base):
    if n < base:
        return "0123456789abcdef"[n]
    return digits(n // base, base) + "0123456789abcdef"[n % base]


@program
def counted(n, x):
    text = ""
    i = 0
    while i < n:
        text += f"{i}:{x / (i + 1):.2f}{x > i} " if i % 2 == 0 else "-"
        i += 1
    print(f"<{text}>", (text, i))
    assert len(text) < 30, f"too long: {text}"
    return text, digits(n, 2), f"{x}"


def test_numbers_in_texts_are_written_as_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    for run in modes(counted):
        text = "0:1.50True -2:0.50False "
        assert run(3, 1.5) == (text, "11", "1.5")
        assert capsys.readouterr().out == f"<{text}> ({text!r}, 3)\n"
        with pytest.raises(relay.ExecutionError, match=r"too long: 0:1\.50True -2:0\.50False -4"):
            run(5, 1.5)
        capsys.readouterr()


@program
def chosen_square(x):
    mode = "square" if x > 1.0 else "plain"
    return x * x if mode == "square" else x


def test_texts_in_differentiated_programs() -> None:
    gradient = relay.grad(chosen_square)
    assert assert_modes_agree(gradient, 3.0) == 6.0 and assert_modes_agree(gradient, 0.5) == 1.0


@program
def doubled(n):
    text = "ab"
    for _ in range(n):
        text = text + text
    return text


def test_texts_that_grow_without_bound() -> None:
    assert len(assert_modes_agree(doubled, 12)) == 8192
    for caught in assert_modes_raise(doubled, 40, error=relay.ExecutionError, match="more than 10000 characters"):
        assert "text = text + text" in str(caught.value)


def test_what_texts_of_the_run_do_not_have() -> None:
    @program
    def titled(x):
        return ("a" if x > 0 else "b").title()

    @program
    def padded(x):
        s = "a" if x > 0 else "b"
        return f"{s:5d}"

    @program
    def keyed(x, table):
        return table["a" if x > 0 else "b"]

    for f, arguments, message in (
        (titled, (1.0,), "`title` does not take a run-time string"),
        (padded, (1.0,), "the format '5d' is for numbers, found a run-time string"),
        (keyed, (1.0, {"a": 1.0, "b": (2.0, 3.0)}), "needs elements of one type"),
    ):
        with pytest.raises(relay.TypeCheckError, match=message):
            f.interpret(*arguments)
