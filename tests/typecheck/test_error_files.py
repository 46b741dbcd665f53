"""Programs that the front end must refuse, and the runner of `tests/typecheck/cases/*.test` itself."""

from __future__ import annotations

import pytest
from error_cases import NAMES, Case, Expected, all_cases, parse_cases, verify

from relay.frontend.lower import lower_text


def check_frontend(text: str, filename: str) -> object:
    """Translate all functions of a text."""
    return lower_text(text, filename, NAMES)


@pytest.mark.parametrize("case", all_cases("frontend*.test"))
def test_frontend_errors(case: Case) -> None:
    verify(case, check_frontend)


# ---- the runner itself


def test_a_missing_error_is_noticed() -> None:
    (case,) = parse_cases("-- case: a\ndef f(x):\n    return x  # E: wrong\n")
    assert case.expected == (Expected(2, None, None, ("wrong",)),)
    with pytest.raises(AssertionError, match="was accepted"):
        verify(case, check_frontend)


def test_an_unexpected_error_is_noticed() -> None:
    (case,) = parse_cases("-- case: a\ndef f(x):\n    import missing_module\n")
    with pytest.raises(AssertionError, match="unexpected"):
        verify(case, check_frontend)


@pytest.mark.parametrize(
    "comment", ["# E: something else", "# E:6: import", "# E:5-6: import", "# E: import | something else", "# E: # E:"]
)
def test_another_error_is_noticed(comment: str) -> None:
    (case,) = parse_cases(f"-- case: a\ndef f(x):\n    import math  {comment}\n")
    with pytest.raises(AssertionError, match="expected"):
        verify(case, check_frontend)


def test_another_line_is_noticed() -> None:
    (case,) = parse_cases("-- case: a\ndef f(x):  # E: import\n    import missing_module\n")
    with pytest.raises(AssertionError, match="expected line 1"):
        verify(case, check_frontend)


def test_each_of_several_errors_counts() -> None:
    text = "-- case: a\n# E@2: global\ndef f(x):\n    global z; import y  # E:15-23: import\n# E@4: `global`\n"
    (case,) = parse_cases(text)
    with pytest.raises(AssertionError, match="expected line 2"):
        verify(case, check_frontend)
    (case,) = parse_cases("-- case: a\ndef f(x):\n    global z; import y  # E:15-23: import\n")
    with pytest.raises(AssertionError, match="expected 'import'"):
        verify(case, check_frontend)
    (case,) = parse_cases("-- case: a\n# E@2: accepted\ndef f(x):\n    return x\n")
    with pytest.raises(AssertionError, match="line 2 was accepted"):
        verify(case, check_frontend)
    (case,) = parse_cases("-- case: a\n# E@3: global\ndef f(x):\n    global z; import y  # E:15-23: import\n")
    verify(case, check_frontend)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n-- case: a\n",
        "-- case: a\nx # E:wrong\n",
        "-- case: a\n-- case: a\n",
    ],
)
def test_malformed_files_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_cases(text)
