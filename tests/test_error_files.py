"""Programs that must be refused, and where: `tests/typecheck/*.test`.

A file holds programs, each after a line `-- case: name`. A line that must be refused ends in `# E: text`, or in `#
E:12: text` where the error must stand at column 12; the text must occur in the error's message, help or notes. Only
the first error of a program counts, so a program has one such line; a program without one must be accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from relay.errors import RelayError
from relay.frontend.lower import lower_text
from relay.ir import annotation
from relay.ir.types import ANY, BASE_TYPES, BOOL, FLOAT32, INT32

Check = Callable[[str, str], object]

FOLDER = Path(__file__).parent / "typecheck"
EXPECTATION = re.compile(r"\s*# E:(?:(\d+):)? (.*)$")

(n, m, k) = annotation.dims("n m k")
NAMES: dict[str, object] = {
    "Tensor": annotation.Tensor,
    "Fn": annotation.Fn,
    "Ref": annotation.Ref,
    "Any": ANY,
    "Float": FLOAT32,
    "Float32": FLOAT32,
    "Float64": BASE_TYPES["float64"],
    "Int": INT32,
    "Bool": BOOL,
    "n": n,
    "m": m,
    "k": k,
    "s": annotation.shape_var("s"),
    "b": annotation.base_type_var("b"),
    "A": annotation.type_var("A"),
    "SIZE": 4,
    "Image": annotation.Tensor[FLOAT32, (3, n, n)],
}


@attrs.frozen
class Case:
    """One program of a file, and the error that it must give: its line, column (if told) and text."""

    name: str
    text: str
    line: int | None = None
    column: int | None = None
    message: str = ""


def parse_cases(text: str) -> list[Case]:
    """The programs of a file. Raises ValueError if the file is not in the format."""
    cases: list[Case] = []
    parts = re.split(r"^-- case: *(.*)$", text, flags=re.MULTILINE)
    if any(not line.startswith("--") for line in parts[0].splitlines() if line.strip()):
        raise ValueError("text before the first case")
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        lines, expected = [], []
        for number, line in enumerate(body.lstrip("\n").rstrip().split("\n"), start=1):
            match = EXPECTATION.search(line)
            if match is not None:
                column = int(match[1]) if match[1] else None
                expected.append((number, column, match[2].strip()))
                line = line[: match.start()]  # an excerpt in the error must not contain what is looked for
            elif "# E" in line:
                raise ValueError(f"{name}: a malformed expectation: {line.strip()}")
            lines.append(line)
        if len(expected) > 1:
            raise ValueError(f"{name}: more than one expectation")
        cases.append(Case(name.strip(), "\n".join(lines) + "\n", *(expected[0] if expected else ())))
    names = [case.name for case in cases]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"repeated names of cases: {repeated}")
    return cases


def verify(case: Case, check: Check) -> None:
    """Run one program through a checker and compare. Raises AssertionError."""
    filename = f"{case.name}.py"
    try:
        check(case.text, filename)
    except RelayError as error:
        assert case.line is not None, f"an unexpected error:\n{error}"
        assert error.span is not None, f"an error without a place:\n{error}"
        said = "\n".join([error.message, error.help or "", *error.notes])
        assert case.message in said, f"expected {case.message!r}:\n{error}"
        assert error.span.line == case.line, f"expected line {case.line}:\n{error}"
        assert case.column in (None, error.span.column), f"expected column {case.column}:\n{error}"
    else:
        assert case.line is None, f"line {case.line} was accepted: {case.message!r} expected"


def check_frontend(text: str, filename: str) -> object:
    """Translate all functions of a text."""
    return lower_text(text, filename, NAMES)


def all_cases(pattern: str) -> list[object]:
    """The cases of all files whose names match, as parameters of a test."""
    files = sorted(FOLDER.glob(pattern))
    return [
        pytest.param(case, id=f"{file.stem}-{case.name}") for file in files for case in parse_cases(file.read_text())
    ]


@pytest.mark.parametrize("case", all_cases("frontend*.test"))
def test_frontend_errors(case: Case) -> None:
    verify(case, check_frontend)


# ---- the runner itself


def test_a_missing_error_is_noticed() -> None:
    (case,) = parse_cases("-- case: a\ndef f(x):\n    return x  # E: wrong\n")
    assert case.line == 2
    with pytest.raises(AssertionError, match="was accepted"):
        verify(case, check_frontend)


def test_an_unexpected_error_is_noticed() -> None:
    (case,) = parse_cases("-- case: a\ndef f(x):\n    import math\n")
    with pytest.raises(AssertionError, match="unexpected"):
        verify(case, check_frontend)


@pytest.mark.parametrize("comment", ["# E: something else", "# E:6: import", "# E: # E:"])
def test_another_error_is_noticed(comment: str) -> None:
    (case,) = parse_cases(f"-- case: a\ndef f(x):\n    import math  {comment}\n")
    with pytest.raises(AssertionError, match="expected"):
        verify(case, check_frontend)


def test_another_line_is_noticed() -> None:
    (case,) = parse_cases("-- case: a\ndef f(x):  # E: import\n    import math\n")
    with pytest.raises(AssertionError, match="expected line 1"):
        verify(case, check_frontend)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n-- case: a\n",
        "-- case: a\nx # E:wrong\n",
        "-- case: a\n-- case: a\n",
        "-- case: a\nx # E: 1\ny # E: 2\n",
    ],
)
def test_malformed_files_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_cases(text)
