"""Notebook display of a debugger's session: its place in the source, the variables and the calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]

from relay.eval.backtrace import Call
from relay.support.html import fragment, span
from relay.text.display.programs import diagnostic_html

if TYPE_CHECKING:
    from relay.debug.session import Session

_NUMBER = re.compile(r"(?:->|  ) *\d+ ?")
"""The text before a line of the source: the arrow and the number."""

_CLASSES = (
    (Token.Keyword, "k"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "n"),
    (Token.Comment, "c"),
    (Token.Name.Function, "f"),
    (Token.Name.Decorator, "f"),
    (Token.Name.Builtin, "o"),
    (Token.Operator.Word, "k"),
)


def session_html(session: Session, call: Call | None) -> str:
    """A session as HTML; `call` is the selected one."""
    parts = [f'<div class="head">{escape(str(session.stop).partition(chr(10))[0])}</div>']
    if call is None:
        return fragment(f"{parts[0]}<pre>{escape(repr(session.result))}</pre>")
    if session.error is not None:
        parts += map(diagnostic_html, session.error.diagnostics)
    parts.append(f"<pre>{''.join(_source(session.source()))}</pre>")
    rows = "".join(_row(v.name, v.type, v.value) for v in call.variables)
    parts.append(f"<table><tr><th>variable</th><th>type</th><th>value</th></tr>{rows}</table>")
    parts.append(f"<pre>{escape(session.where())}</pre>")
    return fragment("".join(parts))


def python_html(text: str) -> list[str]:
    """The lines of a text in Python as HTML, in colors."""
    parts: list[str] = []
    for kind, words in PythonLexer(stripnl=False, ensurenl=False).get_tokens(text):
        name = next((name for base, name in _CLASSES if kind in base), "")
        parts.append("\n".join(span(name, line) if line else "" for line in words.split("\n")))
    return "".join(parts).split("\n")


def _source(text: str) -> Iterator[str]:
    """The lines around the place, which is marked with an arrow."""
    for line in text.split("\n"):
        found = _NUMBER.match(line)
        mark = "" if found is None else found.group()
        code = span("head", mark) + "".join(python_html(line[len(mark) :]))
        yield f'<span class="here">{code}</span>\n' if mark.startswith("->") else f"{code}\n"


def _row(name: str, type_: str, value: str) -> str:
    return f"<tr><td>{span('v', name)}</td><td>{span('t', type_)}</td><td>{escape(value)}</td></tr>"
