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
