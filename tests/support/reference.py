"""Sentences of the documentation with programs that try them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import relay
from relay.errors import InternalError, RelayError

DOCS = Path(__file__).resolve().parents[2] / "docs"


@attrs.frozen
class Fails:
    """The program raises a RelayError whose text this fits."""

    pattern: str


@attrs.frozen(eq=False)
class Claim:
    """A sentence, or a part of one, and what a program gives for arguments. The program is the body of a function of
    a, b and c, or whole functions, of which the first is called."""

    sentence: str
    program: str
    arguments: Sequence[Any]
    expected: Any


def check(page: str, claim: Claim, names: Mapping[str, object] | None = None) -> None:
    """The sentence stands on the page, and the program does on the interpreter what is said. (That compiled programs
    do the same is what other tests are about.)"""
    says(page, claim.sentence)
    if isinstance(claim.expected, Fails):
        with pytest.raises(RelayError) as caught:
            _run(claim, names or {})
        assert not isinstance(caught.value, InternalError)
        assert re.search(claim.expected.pattern, str(caught.value)), str(caught.value)
    else:
        np.testing.assert_equal(_run(claim, names or {}), claim.expected)


def says(page: str, sentence: str) -> None:
    """The sentence stands on the page, wherever its lines end."""
    assert " ".join(sentence.split()) in _text(page), f"{page} does not say: {sentence}"


def _run(claim: Claim, names: Mapping[str, object]) -> Any:
    text = claim.program
    if not text.startswith("def "):
        lines = "".join(f"    {line}\n" for line in text.splitlines())
        text = f"def f({', '.join('abcdefg'[: len(claim.arguments)])}):\n{lines}"
    made = relay.from_source(text + "\n", {"relay": relay, "np": np, "math": math, **names})
    f = next(iter(made.values())) if isinstance(made, dict) else made
    return plain(f.interpret(*claim.arguments))


def plain(value: Any) -> Any:
    """The value of Python's that has the same elements."""
    if isinstance(value, relay.Array | np.ndarray | np.generic):
        return np.asarray(value).tolist()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    return value


@functools.cache
def _text(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())
