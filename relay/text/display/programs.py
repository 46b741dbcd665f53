"""Relay's notation as HTML: tokens in colors, the type of each variable and operator while the mouse is over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from relay.errors import Diagnostic
from relay.ir.types import BASE_TYPES
from relay.operator.registry import get_env
from relay.operator.signature_text import summary
from relay.support.html import fragment, from_terminal, span
from relay.text.lexer import Kind, stretches

MOST_LINES = 400
"""The number of lines of a program that a notebook shows."""

_WORDS = frozenset(
    (
        *("fn", "entry", "let", "loop", "for", "in", "next", "exit", "yield", "return", "dead", "if", "then", "elif"),
        *("else", "do", "match", "data", "dims", "made", "where", "derivative", "grad", "ref", "read", "write"),
        *("assert", "print", "fail", "stack", "push", "get", "set", "len", "prefix", "extent", "dim", "size"),
        *("ascribe", "shadow", "constants", "sources", "surface", "at", "as", "apply", "gradient", "saving", "first"),
        *("quiet", "recompute", "and", "or", "not"),
    )
)
_TYPES = frozenset(("Tensor", "Ref", "Stack", "Any", *BASE_TYPES))
_CLASSES = {
    Kind.VARIABLE: "v",
    Kind.GLOBAL: "f",
    Kind.LABEL: "o",
    Kind.CONSTANT: "n",
    Kind.NUMBER: "n",
    Kind.STRING: "s",
    Kind.INTRINSIC: "o",
}
_Stretch: TypeAlias = tuple[Kind | None, str]


def shorten_program(text: str) -> str:
    """The first lines of a long program, and how many more there are."""
    lines = text.split("\n")
    if len(lines) <= MOST_LINES:
        return text
    return "\n".join([*lines[:MOST_LINES], f"# .. {len(lines) - MOST_LINES} more lines"])


def program_html(name: str, type_: str, text: str | None, errors: Sequence[Diagnostic] = ()) -> str:
    """A function as HTML for notebooks: its name and type, and its program or the errors in it."""
    head = f'<div class="head">{span("f", name)}{" : " if type_ else ""}{"".join(highlighted_lines(type_))}</div>'
    said = "" if text is None else f"<pre>{chr(10).join(highlighted_lines(shorten_program(text)))}</pre>"
    return fragment(head + said + "".join(map(diagnostic_html, errors)))


def diagnostic_html(diagnostic: Diagnostic) -> str:
    """An error as it is printed, in the colors of the page."""
    return f"<pre>{from_terminal(diagnostic.render(color=True))}</pre>"


def highlighted_lines(text: str) -> list[str]:
    """The lines of a program as HTML. Linear in the size of the text."""
    parts: list[str] = []
    for function in _functions(list(stretches(text))):
        types = _types(function)
        for position, (kind, word) in enumerate(function):
            parts += _parts(kind, word, types, _word(function, position + 1))
    return "".join(parts).split("\n")


def _word(function: Sequence[_Stretch], position: int) -> str:
    return function[position][1] if position < len(function) else ""


def _parts(kind: Kind | None, word: str, types: dict[str, str], following: str) -> Iterator[str]:
    """A stretch. One over several lines, of space and comments, has a span on each of them."""
    if kind is None:
        for position, line in enumerate(word.split("\n")):
            yield "\n" if position else ""
            yield span("c" if "#" in line else "", line)
    elif kind is Kind.VARIABLE or kind is Kind.GLOBAL:
        yield span(_CLASSES[kind], word, f"{word}: {types[word]}" if word in types else "")
    elif kind is Kind.NAME and following == "(" and (operator := get_env().find(word)) is not None:
        yield span("o", word, summary(operator))
    elif kind is Kind.NAME:
        yield span("k" if word in _WORDS else "t" if word in _TYPES else "", word)
    else:
        yield span(_CLASSES.get(kind, ""), word)


def _functions(found: Sequence[_Stretch]) -> Iterator[Sequence[_Stretch]]:
    """The stretches of each function: names of variables are unique in one."""
    begin = 0
    for position, (kind, word) in enumerate(found):
        starts_line = position == 0 or found[position - 1][1].endswith("\n")
        if kind is Kind.NAME and word in ("fn", "entry", "derivative") and starts_line:
            yield found[begin:position]
            begin = position
    yield found[begin:]


def _types(function: Sequence[_Stretch]) -> dict[str, str]:
    """The types of the variables of a function, as they are written where these are bound."""
    types: dict[str, str] = {}
    for position, (kind, word) in enumerate(function):
        if kind is Kind.VARIABLE and word not in types and _word(function, position + 1) == ":":
            types[word] = _type_from(function, position + 2)
    return types


def _type_from(function: Sequence[_Stretch], position: int) -> str:
    """The type that begins at a position: up to a character that cannot be part of one, outside of brackets."""
    words: list[str] = []
    depth = 0
    for kind, word in function[position:]:
        if depth == 0 and (word in (",", "=", "{", ";", "<", ")", "]", "}") or (kind is Kind.NAME and word == "in")):
            break
        depth += (word in ("(", "[")) - (word in (")", "]"))
        words.append(" " if kind is None else word)
    return "".join(words).strip()
