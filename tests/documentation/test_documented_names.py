"""Every name of Relay that a page mentions exists: `relay.grad`, `relay.text.type_parser.parse_type`, and what `dir`
shows."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import relay
from relay.ir.types import BaseType

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("[a-z]*/README.md")), *sorted((ROOT / "docs").rglob("*.md"))]

PLACEHOLDERS = {"name", "f"}
"""Names that stand for any operator: `relay.name(x, ..)`."""

_DOTTED = re.compile(r"(?<![\w./'\"-])relay((?:\.[A-Za-z_]\w*)+)(?![\w-]*/)")
_SUFFIXES = {"py", "md", "relay"}


def is_resolved(name: str) -> bool:
    """True if attributes and modules lead from `relay` to the last part of a dotted name."""
    value: object = relay
    path = "relay"
    for part in name.split("."):
        path = f"{path}.{part}"
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        if not isinstance(value, ModuleType):
            return False
        try:
            value = importlib.import_module(path)
        except ImportError:
            return False
    return True


def documented_names(text: str) -> set[str]:
    """The dotted names after `relay.` on a page, without files, and without operators that the page itself defines."""
    defined = set(re.findall(r"^ *def (\w+)", text, re.MULTILINE)) | set(re.findall(r'get_env\(\), "(\w+)"', text))
    names = {match.removeprefix(".") for match in _DOTTED.findall(text)}
    return {
        name
        for name in names
        if name.split(".")[0] not in defined | PLACEHOLDERS and name.split(".")[-1] not in _SUFFIXES
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_names_on_pages_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert sorted(name for name in documented_names(text) if not is_resolved(name)) == []


def test_public_names_are_documented() -> None:
    """Those of the package itself, but for dtypes; operators have a page that is written from their definitions."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    words = set(re.findall(r"\w+", text))
    names = {name for name in relay.__all__ if not isinstance(getattr(relay, name), BaseType)}
    assert sorted(names - words) == []


def test_public_names_exist() -> None:
    assert [name for name in dir(relay) if not hasattr(relay, name)] == []


def test_a_name_that_does_not_exist_is_noticed() -> None:
    page = "`relay.gradd(f)`, `relay.tree.mapp`, `relay.text.printer.to_text`, `relay.name(x)`, relay.own"
    own = "\ndef own(x):\n"
    assert {name for name in documented_names(page + own) if not is_resolved(name)} == {"gradd", "tree.mapp"}
