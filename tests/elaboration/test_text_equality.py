"""`==` of texts in which values of the run stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as rl
from relay import relay

SAME = [
    'f"{i}" == "3"',
    '"3" == f"{i}"',
    'f"{i}" != "3"',
    'f"{i}" == "-3"',
    'f"{i}" == "03"',
    'f"{i}" == "3.0"',
    'f"{i}" == ""',
    'f"{i:d}" == "3"',
    'f"a{i}b" == "a3b"',
    'f"a{i}b" == "b3a"',
    'f"aa{i}" == "aa"',
    'f"{i}" == "99999999999"',
    'f"{b}" == "True"',
    'f"{b}" == "False"',
    'f"{b}" == "1"',
    'f"{i}" == f"{i}"',
    'f"{x}" == f"{x}"',
    'f"{i}" == f"{i + 1}"',
    'f"{i}" in ("3", "4")',
    'f"{i}" not in ("3", "4")',
    'f"{i}" == None',
    '(f"{i}", 1) == ("3", 1)',
    '[f"{i}"] == ["3"]',
    '"3" in [f"{i}", "4"]',
    '"a" + f"{i}" == "a3"',
    'f"{i}" + "a" + "b" == "3ab"',
    'isinstance(f"{i}", str)',
    'isinstance(f"{i}", int)',
    'any([f"{i}" == "3", b])',
    'not f"{i}" == "3"',
]


@pytest.mark.parametrize("i", [3, -3, 30])
def test_texts_are_compared_by_their_values(i: int) -> None:
    listed = ", ".join(f"({text})" for text in SAME)
    function = rl.from_source(f"def f(i, b, x):\n    return {listed}\n")
    expected = eval(f"[{listed}]", {"i": i, "b": i > 0, "x": 0.5})
    arguments = (np.int32(i), np.bool_(i > 0), 0.5)
    found = [bool(v) for v in assert_modes_agree(function, *arguments)]
    assert [t for t, a, b in zip(SAME, found, expected, strict=True) if a != b] == []


def test_a_counter_is_compared() -> None:
    @relay
    def rounds():
        n = 0
        while f"{n}" != "3":
            n += 1
        return n

    assert int(rounds()) == int(rounds.interpret()) == 3


OF_THE_RUN = [
    'f"{i}{i}" == "33"',
    'f"{i},{j}" == "1,2"',
    'f"{x}" == "0.5"',
    'f"{i:3}" == "  3"',
    'f"{i}" == f"a{i}"',
    'f"{x}" == f"{y}"',
    'f"{i}" in "345"',
    '"3" in f"{i}"',
    'f"{i}" < "4"',
    'f"{i}" * 2 == "33"',
    'not f"{i}"',
    '1 if f"{i}" else 0',
    'len(f"{i}")',
    'f"{i}".startswith("3")',
    'sorted([f"{i}", "4"])',
    'min(f"{i}", "4")',
    'f"{i}"[0]',
    '[f"{i}"].index("3")',
    '(lambda m: m == "3")(f"{i}")',
    'f"{i}" if i > 2 else "x"',
]


def test_other_comparisons_are_those_of_strings() -> None:
    listed = ", ".join(f"({text})" for text in OF_THE_RUN)
    function = rl.from_source(f"def f(i, j, x, y):\n    return {listed}\n")
    arguments = (np.int32(3), np.int32(4), 0.5, 1.5)
    expected = eval(f"[{listed}]", dict(zip("ijxy", arguments, strict=True)))
    found = assert_modes_agree(function, *arguments)
    assert [t for t, a, b in zip(OF_THE_RUN, found, expected, strict=True) if a != b] == []


REFUSED = [
    'f"{i}" == i',
    'f"{i}" == v',
    'f"{v}" == "[1. 2.]"',
    'f"{i}" or 1',
    'hash(f"{i}")',
    'relay.zeros(3, dtype=f"{i}")',
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_needs_a_text_at_run_time_is_refused(text: str) -> None:
    arguments: tuple[Any, ...] = (np.int32(3), np.int32(4), 0.5, 1.5, np.ones(2))
    with pytest.raises(rl.RelayError) as caught:
        rl.from_source(f"def f(i, j, x, y, v):\n    return {text}\n").interpret(*arguments)
    (first, *_) = str(caught.value).splitlines()
    assert ":2:" in first and not any(word in first for word in ("Text(", "Typed", "tensor", "method"))


def test_patterns_match_texts() -> None:
    @relay
    def matched(i):
        match f"{i}":
            case "3":
                return 1
            case _:
                return 0

    assert matched.interpret(np.int32(3)) == 1 and matched.interpret(np.int32(4)) == 0
