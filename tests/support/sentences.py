"""The sentences of a page, and where each is executed.

A sentence of a reference page that says what happens is quoted by a test (`Claim`, `says`), or shown by a block of the
page, which is executed too. `tests/documentation/sentences/<page>.txt` lists the ones that are not quoted:

    affine         | Parameters may be positional-only ..        a block of the page has this text, and shows it
    tests/x.py     | Programs that would need more ..            another test does it
    -              | *Static* means resolved ..                  it introduces, defines or refers: nothing happens
    not run: why   | The file runs on processors ..              it cannot be executed here
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]
LEDGERS = ROOT / "tests" / "documentation" / "sentences"

SHORTEST = 15
"""Texts of fewer characters quote nothing: they may be in a sentence by chance."""

_BLOCK = re.compile(r"^```.*?^```\s*?$", re.MULTILINE | re.DOTALL)
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*(~:\[])")


@attrs.frozen
class Entry:
    """A line of a ledger: how a sentence is covered, and how it begins."""

    how: str
    beginning: str


def sentences(text: str) -> list[str]:
    """The sentences of a page's prose and lists, and the rows of its tables, without code."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", _BLOCK.sub("\n", text)):
        lines = [line for line in paragraph.split("\n") if line.strip()]
        if not lines or lines[0].startswith(("    ", "#")):
            continue
        if lines[0].startswith("|"):
            found += [" ".join(line.split()) for line in lines[2:]]
            continue
        for item in _items(lines):
            found += _END.split(item)
    return found


def _items(lines: list[str]) -> list[str]:
    """The items of a list, or the one paragraph, each in one line."""
    items: list[str] = []
    for line in lines:
        if line.lstrip().startswith("- "):
            items.append(" ".join(line.split())[2:])
        elif items:
            items[-1] += " " + " ".join(line.split())
        else:
            items.append(" ".join(line.split()))
    return items


def code(text: str) -> str:
    """The executed blocks of a page."""
    return "\n".join(block for block in _BLOCK.findall(text) if block.startswith("```python"))


def ledger(page: str) -> list[Entry]:
    """The lines of a page's ledger."""
    path = LEDGERS / f"{Path(page).stem}.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    parts = [line.split(" | ", 1) for line in lines if line.strip()]
    return [Entry(how.strip(), beginning.strip()) for how, beginning in parts]


def quotes() -> Iterator[str]:
    """The texts in the tests of the documentation that may quote a page."""
    for path in sorted((ROOT / "tests" / "documentation").glob("test_reference_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) >= SHORTEST:
                yield " ".join(node.value.split())
