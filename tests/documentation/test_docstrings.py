"""Docstrings say at once what a thing is: the noun of a file, class or value, "True if", or what a function does."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_FILES = {str(p.relative_to(_ROOT)): p.read_text(encoding="utf-8") for p in sorted((_ROOT / "relay").rglob("*.py"))}

# Files are read as text: to parse all of them takes ten seconds.
_INDIRECT = re.compile(r'^\s*[rR]?"""(?:What|How|Whether|Which|Where|When|Who|Whose|Why)\b.*', re.MULTILINE)
_NOUN = re.compile(r'[rR]?"""(?!(?:From|In|At|See|All that|To|Does|Is|Looking|Making|Getting|This)\s)\S')


def test_docstrings_name_the_thing() -> None:
    found = [f"{name}: {m.group().strip()}" for name, text in _FILES.items() for m in _INDIRECT.finditer(text)]
    assert not found, "say 'The ..', 'True if ..' or what it does:\n" + "\n".join(found)


def test_files_begin_with_a_noun() -> None:
    found = [name for name, text in _FILES.items() if text and not _NOUN.match(text)]
    assert not found, "the docstring of a file starts with what it is:\n" + "\n".join(found)


# Words of our own: "the made sizes" are data-dependent, "the way out" is an exit, "behind the loop" is after it.
_PRIVATE = re.compile(
    r"\bmade (?:sizes?|dims?)\b|\bways? out\b|\banew\b|\b(?:of|with|at least|at most) so many\b|\btruth value\b"
    r"|\bdearest\b|\bone behind the other\b|\bbehind each other\b|\bmoved? behind\b|\bfor what is no\b"
    r"|\bthat (?:is|are) no (?!longer|more)|\b(?:what|which) the run (?:makes|computes|knows|decides)\b"
    r"|\bthe talk\b|\bits kin\b|\bnothing is said\b"
)


def test_words_are_those_of_the_field() -> None:
    """In docstrings, comments and messages."""
    found = [
        f"{name}: {text[max(m.start() - 30, 0) : m.end() + 20]!r}"
        for name, text in _FILES.items()
        for m in _PRIVATE.finditer(text)
    ]
    assert not found, "docs/glossary.md has the field's words:\n" + "\n".join(found)
