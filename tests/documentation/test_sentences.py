"""Every sentence of the reference that says what happens has an example that is executed."""

from __future__ import annotations

import re

import pytest
from sentences import ROOT, SHORTEST, Entry, code, ledger, quotes, sentences

PAGES = [
    "language",
    "types",
    "typing-rules",
    "differentiation",
    "running",
    "custom-operators",
    "checking",
    "text",
    "trees",
]


def _is_good(page: str, entry: Entry, tests: frozenset[str]) -> bool:
    """Whether what a line of a ledger says is there: a test, a text in a block of the page, or another page."""
    if entry.how == "-" or entry.how.startswith("not run: "):
        return True
    if entry.how.startswith("test_"):
        return entry.how in tests
    if entry.how.endswith(".md"):
        return (ROOT / "docs" / entry.how).exists()
    return entry.how in code(page)


@pytest.fixture(scope="module")
def tests() -> frozenset[str]:
    """The names of all tests."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        found.update(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES)
def test_every_sentence_has_an_example(page: str, tests: frozenset[str]) -> None:
    """It is quoted by a test, or tests/documentation/sentences/<page>.txt says where it is executed, or why not."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found, entries, quoted = sentences(text), ledger(page), list(quotes())
    assert [e for e in entries if not _is_good(text, e, tests)] == [], "these lines name nothing that there is"
    beginnings = tuple(entry.beginning for entry in entries)
    open_ = [
        sentence
        for sentence in found
        if not sentence.startswith(beginnings)
        and not any(q in sentence or (len(sentence) >= SHORTEST and sentence in q) for q in quoted)
    ]
    assert open_ == [], f"quote these in a test, or list them in tests/documentation/sentences/{page}.txt"
    stale = [e for e in entries if not any(sentence.startswith(e.beginning) for sentence in found)]
    assert stale == [], "no sentence of the page begins so"
