"""Recovery from syntax errors: the readable part of a text while something in it is still being typed.

A statement with a syntax error is replaced by `pass`, a header without a body gets one, and where that does not
help, the whole statement at the top of the file is replaced by an assignment of its name. Lines keep their numbers.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

import attrs

MOST_REPAIRS = 40
_HEADER = re.compile(r"expected an indented block after .* on line (\d+)")
_NAME = re.compile(r"(?:async\s+def|def|class)\s+(\w+)|(\w+)\s*(?::[^=]*)?=")


@attrs.frozen(eq=False)
class Repaired:
    """A text that is Python, its syntax tree, the lines (from 1) that differ from what is written, and the error; None
    if there was none. Texts that Python's parser cannot take at all stay as they are, with an empty tree."""

    text: str
    tree: ast.Module
    lines: frozenset[int] = frozenset()
    error: SyntaxError | None = None


def repaired_text(text: str) -> Repaired:
    """The text without what keeps Python from reading it."""
    lines = text.split("\n")
    first: SyntaxError | None = None
    changed: dict[int, int] = {}  # how often a line was changed
    for _ in range(MOST_REPAIRS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse("\n".join(lines))
        except SyntaxError as error:
            first = first or error
            _repair(lines, error, changed)
            continue
        except (ValueError, RecursionError, MemoryError):
            return Repaired(text, _empty(), frozenset(), first)
        return Repaired("\n".join(lines), tree, frozenset(changed), first)
    return Repaired("", _empty(), frozenset(range(1, len(lines) + 1)), first)


def _empty() -> ast.Module:
    return ast.Module([], [])


def _repair(lines: list[str], error: SyntaxError, changed: dict[int, int]) -> None:
    number = min(max(error.lineno or 1, 1), len(lines))
    header = _HEADER.search(error.msg or "")
    if header is not None:
        number = int(header[1])
        if not changed.get(number):
            lines[number - 1] = lines[number - 1].partition("#")[0].rstrip() + " pass"
            changed[number] = 1
            return
    while number > 1 and not lines[number - 1].strip():  # the end of the text, behind what is not complete
        number -= 1
    line, times = lines[number - 1], changed.get(number, 0)
    changed[number] = times + 1
    if times == 0 and "indent" not in (error.msg or ""):
        lines[number - 1] = line[: len(line) - len(line.lstrip())] + "pass"
    elif times == 0:
        lines[number - 1] = ""
    else:
        for inside in _statement_at_top(lines, number):
            changed[inside] = changed.get(inside, 0) + 1
            name = _NAME.match(lines[inside - 1])
            lines[inside - 1] = f"{name[1] or name[2]} = __unknown__()" if name is not None else ""


def _statement_at_top(lines: list[str], number: int) -> Iterator[int]:
    """The lines of the statement at the top that a line is in: from one that is not indented to the next."""

    def begins(line: str) -> bool:
        return bool(line) and not line[0].isspace() and line[0] not in ")]}#"

    start = number
    while start > 1 and not begins(lines[start - 1]):
        start -= 1
    while start > 1 and lines[start - 2].startswith("@"):
        start -= 1
    end = number
    while end < len(lines) and not begins(lines[end]):
        end += 1
    yield from range(start, end + 1)
