"""Functions are named by a noun or a verb: no name is a bare participle, preposition or pronoun, which says nothing."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]

# An adjective may be a predicate of its own (`exact`, `finished`), or NumPy's name for something (`less`, `full`).
_EMPTY = """
    after ahead alone alike anew anything around arriving assigned before behind below beneath between beyond both
    calling changed changing chosen compiled computed converted copied covering described direct directly dotted each
    eliminated elsewhere ended ending everywhere exported fitting found fresh from gathered general given growing
    guarded halved held here holding inside instead interpreted into introduced inward kept known leading leaving
    located longer made many mapped measured meeting mentioned merged merging misspelled moved named narrowed nearest
    needed now of old one only opened others outermost outward overlapping overwritten own packed placed plain pooled
    prepared printing pushed quoted ran reached reachable reduced refilled relocated remaining replaced replacing
    replayed resized resolved returning running said selected selecting settled several shared shortened shown sliding
    stacked standing stored stretched taken together told turned typing unfinished unrolled unwrapping
    used usable using vanishing varying visible waiting whatever whole wide wider within without written
"""
_DEFINITION = re.compile(rf"^ *(?:async )?(?:def|class) _?({'|'.join(_EMPTY.split())})\b", re.MULTILINE | re.IGNORECASE)


def test_names_are_nouns_or_verbs() -> None:
    found = [
        f"{path.relative_to(_ROOT)}: {match.group().strip()}"
        for path in sorted((_ROOT / "relay").rglob("*.py"))
        for match in _DEFINITION.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "say the noun: what is given, found or made?\n" + "\n".join(found)
