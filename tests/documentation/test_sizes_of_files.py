"""Files stay readable: how long files and functions may be, and how many files a folder has."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = 740
FILES = 20
FUNCTION = 145

FOUND = [path for folder in ("relay", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]


def test_files_are_short() -> None:
    lengths = {path.relative_to(ROOT): path.read_text(encoding="utf-8").count("\n") for path in FOUND}
    assert len(lengths) > 500
    assert {path: length for path, length in lengths.items() if length > LINES} == {}


def test_folders_have_few_files() -> None:
    """Also of other files than Python's."""
    paths = [path for folder in ("relay", "tests") for path in (ROOT / folder).rglob("*")]
    folders = [path.parent for path in paths if path.is_file() and "__pycache__" not in path.parts]
    assert {f.relative_to(ROOT): folders.count(f) for f in {*folders} if folders.count(f) > FILES} == {}


def test_functions_are_short() -> None:
    found = {}
    for path in FOUND:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= FUNCTION:  # type: ignore[operator]
                found[f"{path.relative_to(ROOT)}: {node.name}"] = node.lineno
    assert found == {}
