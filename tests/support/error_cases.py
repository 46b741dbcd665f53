"""Programs that must be refused, and where: `tests/typecheck/cases/*.test`.

A file holds programs, each after a line `-- case: name`. A line that must be refused ends in `# E: text`, in `# E:12:
text` where the error must stand at column 12, or in `# E:12-17: text` where it must also end before column 17. The text
must occur in the error's message, labels, notes or help; `text | text` demands several. Where no line has room, `# E@3:
text` says that line 3 has the error. The errors of a program must be exactly these, so what follows from a mistake must
not be reported; a program without such a line must be accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from relay.errors import Diagnostic, RelayError
from relay.ir.annotations import annotation
from relay.ir.types import ANY, BASE_TYPES, BOOL, FLOAT32, INT32

Check = Callable[[str, str], object]

FOLDER = Path(__file__).parents[1] / "typecheck" / "cases"

EXPECTATION = re.compile(r"\s*# E(?:@(\d+))?:(?:(\d+)(?:-(\d+))?:)? (.*)$")

(n, m, k, h, w, c) = annotation.dims("n m k h w c")

NAMES: dict[str, object] = {
    "Tensor": annotation.Tensor,
    "Fn": annotation.Fn,
    "Ref": annotation.Ref,
    "Any": ANY,
    "Float": FLOAT32,
    "Float32": FLOAT32,
    "Float16": BASE_TYPES["float16"],
    "Float64": BASE_TYPES["float64"],
    "Int": INT32,
    "Bool": BOOL,
    "n": n,
    "m": m,
    "k": k,
    "h": h,
    "w": w,
    "c": c,
    "s": annotation.shape_var("s"),
    "b": annotation.base_type_var("b"),
    "A": annotation.type_var("A"),
    "SIZE": 4,
    "Image": annotation.Tensor[FLOAT32, (3, n, n)],
}


@attrs.frozen
class Expected:
    """An error that a program must give: its line, columns (if told) and texts."""

    line: int
    column: int | None
    end_column: int | None
    texts: tuple[str, ...]

    def differs(self, found: Diagnostic) -> str | None:
        """What is not as expected."""
        if found.span is None:
            return "no place"
        said = "\n".join([found.message, *(label.text for label in found.labels), *found.notes, found.help or ""])
        missing = [text for text in self.texts if text not in said]
        if missing:
            return f"expected {missing[0]!r}"
        if found.span.line != self.line:
            return f"expected line {self.line}"
        if self.column not in (None, found.span.column):
            return f"expected column {self.column}"
        if self.end_column not in (None, found.span.end_column):
            return f"expected end column {self.end_column}"
        return None


@attrs.frozen
class Case:
    """One program of a file, and the errors that it must give."""

    name: str
    text: str
    expected: tuple[Expected, ...] = ()


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
                at, column, end, text = match.groups()
                columns = (int(column) if column else None, int(end) if end else None)
                expected.append(Expected(int(at or number), *columns, tuple(text.strip().split(" | "))))
                line = line[: match.start()]  # an excerpt in the error must not contain what is looked for
            elif "# E" in line:
                raise ValueError(f"{name}: a malformed expectation: {line.strip()}")
            lines.append(line)
        cases.append(Case(name.strip(), "\n".join(lines) + "\n", tuple(sorted(expected, key=lambda e: e.line))))
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
        found = sorted(error.diagnostics, key=lambda d: d.span.line if d.span is not None else 0)
        for expected, diagnostic in zip(case.expected, found, strict=False):
            difference = expected.differs(diagnostic)
            assert difference is None, f"{difference}:\n{error}"
        assert len(found) <= len(case.expected), f"an unexpected error:\n{found[len(case.expected)]}"
        assert len(found) == len(case.expected), f"{case.expected[len(found)]} was accepted:\n{error}"
    else:
        assert not case.expected, f"line {case.expected[0].line} was accepted: {case.expected[0].texts} expected"


def all_cases(pattern: str) -> list[object]:
    """The cases of all files whose names match, as parameters of a test."""
    files = sorted(FOLDER.glob(pattern))
    return [
        pytest.param(case, id=f"{file.stem}-{case.name}") for file in files for case in parse_cases(file.read_text())
    ]
