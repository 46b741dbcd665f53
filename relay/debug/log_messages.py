"""Messages of breakpoints that do not stop: text with expressions in braces, `loss is {loss}, at {i}`."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

from relay.errors import FrontendError, RelayError


def expressions_in(message: str) -> list[str]:
    """The expressions in a message. Raises FrontendError for one whose braces do not fit; `{{` is a brace."""
    return [expression for _, expression in _parts(message) if expression is not None]


def log_text(message: str, evaluate: Callable[[str], Any]) -> str:
    """A message with the values of its expressions; in place of one that fails, why."""
    found = []
    for text, expression in _parts(message):
        found.append(text)
        if expression is not None:
            try:
                found.append(str(evaluate(expression)))
            except RelayError as error:
                found.append(f"<{error.message}>")
    return "".join(found)


def _parts(message: str) -> list[tuple[str, str | None]]:
    if not isinstance(message, str):
        raise FrontendError(f"a message is a text, found {type(message).__name__}")
    try:  # what stands behind a colon is a part of the expression, as in x[1:2]
        found = [
            (
                text,
                None if name is None else f"{name}{f'!{conversion}' if conversion else ''}{f':{rest}' if rest else ''}",
            )
            for text, name, rest, conversion in string.Formatter().parse(message)
        ]
    except ValueError as error:
        raise FrontendError(f"the message {message!r} has braces that do not fit: {error}") from None
    if any(expression is not None and not expression.strip() for _, expression in found):
        raise FrontendError(f"the message {message!r} has braces without an expression")
    return found
