"""Docstrings say at once what a thing is: the noun of a file, class or value, "True if", or what a function does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]

_INDIRECT = re.compile(r"(What|How|Whether|Which|Where|When|Who|Whose|Why)\b")

_NO_NOUN = re.compile(r"(From|In|At|See|All that|To|Does|Is|Looking|Making|Getting|This (file|module))\b")


def _docstrings() -> Iterator[tuple[str, ast.AST, str]]:
    for file in sorted((_ROOT / "relay").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    name = getattr(node, "name", "the file")
                    yield f"{file.relative_to(_ROOT)}: {name}: {text.splitlines()[0]}", node, text


def test_docstrings_name_the_thing() -> None:
    found = [place for place, _, text in _docstrings() if _INDIRECT.match(text)]
    assert not found, "say 'The ..', 'True if ..' or what it does:\n" + "\n".join(found)


def test_files_begin_with_a_noun() -> None:
    found = [place for place, node, text in _docstrings() if isinstance(node, ast.Module) and _NO_NOUN.match(text)]
    assert not found, "\n".join(found)


def test_every_file_says_what_it_is() -> None:
    files = [p for p in sorted((_ROOT / "relay").rglob("*.py")) if p.stat().st_size]
    without = [str(p) for p in files if not ast.get_docstring(ast.parse(p.read_text(encoding="utf-8")))]
    assert not without
