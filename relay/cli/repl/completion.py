"""Completion at the prompt: commands, names of Python, attributes, and Relay's operators with their types."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator
from typing import Any

import relay
from relay.api.function import RelayFunction
from relay.cli.repl.commands import NAMES
from relay.ir.types import show
from relay.operator.registry import get_env
from relay.operator.signature_text import signature, type_text

_PATH = re.compile(r"(?:[^\W\d]\w*\.)*(?:[^\W\d]\w*)?$")


def completions(text: str, names: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """The completions of a text: the word, its note, and the number of characters of the text that it replaces."""
    stripped = text.lstrip()
    if stripped.startswith(":") and " " not in stripped:
        yield from ((f":{name}", "", len(stripped)) for name in NAMES if name.startswith(stripped[1:]))
        return
    found = _PATH.search(text)
    path = "" if found is None else found.group()
    if not path:
        return
    head, _, begun = path.rpartition(".")
    if not head:
        known = sorted({*names, *keyword.kwlist, *(n for n in dir(builtins) if not n.startswith("_"))})
        yield from ((n, _type(names.get(n)), len(begun)) for n in known if n.startswith(begun))
        return
    try:
        value = _value(head, names)
    except (AttributeError, KeyError):
        return
    for name in sorted(dir(value)):
        if name.startswith(begun) and (begun.startswith("_") or not name.startswith("_")):
            operator = get_env().find(name) if value is relay else None
            said = "" if operator is None else f"{signature(operator)}: {type_text(operator) or 'by its own rule'}"
            yield name, said, len(begun)


def _value(path: str, names: dict[str, Any]) -> Any:
    """The value of a dotted name. Properties of objects are not run, modules' and classes' attributes are."""
    first, *rest = path.split(".")
    value = names[first] if first in names else vars(builtins)[first]
    for name in rest:
        value = getattr(value, name)
    return value


def _type(value: Any) -> str:
    """The type of a decorated function that has one, the class of other values."""
    if isinstance(value, RelayFunction):
        try:
            return show(value.type)
        except relay.RelayError:
            return "function"
    return "" if value is None else type(value).__name__
