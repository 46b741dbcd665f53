"""Docstrings say at once what a thing is: the noun of a file, class or value, "True if", or what a function does."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]

_INDIRECT = re.compile(r"(What|How|Whether|Which|Where|When|Who|Whose|Why)\b")

_NO_NOUN = re.compile(r"(From|In|At|See|All that|To|Does|Is|Looking|Making|Getting|This (file|module))\s")


@functools.cache
def _docstrings() -> tuple[tuple[str, bool, str], ...]:
    return tuple(_read())


def _read() -> Iterator[tuple[str, bool, str]]:
    """Each docstring: its place with the first line, True for a file, and the text, empty for a file without one."""
    for file in sorted((_ROOT / "relay").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                is_file = isinstance(node, ast.Module)
                if text or (is_file and file.stat().st_size):
                    name = getattr(node, "name", "the file")
                    yield f"{file.relative_to(_ROOT)}: {name}: {text.partition(chr(10))[0]}", is_file, text


def test_docstrings_name_the_thing() -> None:
    found = [place for place, _, text in _docstrings() if _INDIRECT.match(text)]
    assert not found, "say 'The ..', 'True if ..' or what it does:\n" + "\n".join(found)


def test_files_begin_with_a_noun() -> None:
    found = [place for place, is_file, text in _docstrings() if is_file and (not text or _NO_NOUN.match(text))]
    assert not found, "\n".join(found)
