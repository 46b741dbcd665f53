"""Printer of untyped parts: patterns, subscripts, and static Python values.

3   2.5   "float64"   none   ...       numbers, texts, None and the ellipsis
static true   static (1, float32)      other values that have a text
$list                                  a function that Python's syntax calls (`relay.ir.intrinsic`)
python "dict"                          an object of Python by its name: a builtin, or one beside the text
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import assert_never

from relay.ir.expr import Atom, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import (
    CapturePattern,
    ClassPattern,
    OrPattern,
    Pattern,
    Slice,
    TuplePattern,
    ValuePattern,
    WildcardPattern,
)
from relay.ir.types import BaseType, show_attribute
from relay.text.lexer import name_text, quote_text

AtomText = Callable[[Atom], str]


class Objects:
    """Names for the objects of Python that stand beside a text: that of their definition, with a number where it is
    taken. Builtins have their own."""

    def __init__(self) -> None:
        self.named: dict[str, object] = {}
        self._names: dict[int, str] = {}

    def name(self, item: object) -> str:
        """The name of an object."""
        own = str(getattr(item, "__qualname__", None) or type(item).__qualname__)
        if builtin(own) is item:
            return own
        found = self._names.get(id(item))
        if found is None:
            count, found = 0, own
            while found in self.named or builtin(found) is not None:
                count += 1
                found = f"{own}_{count}"
            self.named[found], self._names[id(item)] = item, found
        return found


def builtin(name: str) -> object:
    """The builtin of Python with this name; None if there is none."""
    return getattr(builtins, name, None)


def static_text(value: object, objects: Objects) -> str:
    """A value that Python knows."""
    match value:
        case None:
            return "none"
        case Intrinsic(name):
            return f"${name}"
        case _ if value is Ellipsis:
            return "..."
        case _ if type(value) in (int, float):
            return repr(value)
        case str():
            return quote_text(value)
        case _ if is_attribute(value):
            return f"static {show_attribute(value)}"  # type: ignore[arg-type]
        case _:
            return f"python {quote_text(objects.name(value))}"


def is_attribute(value: object) -> bool:
    """True if a value is written as the attribute of an operator is."""
    if isinstance(value, tuple):
        return type(value) is tuple and all(map(is_attribute, value))
    return value is None or type(value) in (bool, int, float, str) or isinstance(value, BaseType)


def pattern_text(pattern: Pattern, atom: AtomText, variable: Callable[[Var], str]) -> str:
    """A pattern as Python writes it, but for `== %x`, the value of a variable, and variables that it binds."""

    def part_text(part: Pattern) -> str:
        return pattern_text(part, atom, variable)

    def bracketed_text(part: Pattern) -> str:
        """A part in a position where `|` and `as` need brackets."""
        text = part_text(part)
        is_open = isinstance(part, OrPattern) or (
            isinstance(part, CapturePattern) and not isinstance(part.pattern, WildcardPattern)
        )
        return f"({text})" if is_open else text

    match pattern:
        case WildcardPattern():
            return "_"
        case CapturePattern(var, WildcardPattern()):
            return variable(var)
        case CapturePattern(var, inner):
            return f"{bracketed_text(inner)} as {variable(var)}"
        case ValuePattern(Var() as value):
            return f"== {atom(value)}"
        case ValuePattern(value):
            return atom(value)
        case TuplePattern(items, star):
            parts = [f"{'*' * (i == star)}{part_text(p)}" for i, p in enumerate(items)]
            return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        case ClassPattern(function, items, keywords):
            parts = [*map(part_text, items), *(f"{name_text(k)}={part_text(p)}" for k, p in keywords)]
            return f"{atom(function)}({', '.join(parts)})"
        case OrPattern(alternatives):
            return " | ".join(map(bracketed_text, alternatives))
        case other:
            assert_never(other)


def items_text(items: Iterable[Atom | Slice], atom: AtomText) -> str:
    """The text between the brackets of a subscript."""

    def end(value: Atom | None) -> str:
        return "" if value is None else atom(value)

    return ", ".join(
        f"{end(i.start)}:{end(i.stop)}" + (f":{end(i.step)}" if i.step is not None else "")
        if isinstance(i, Slice)
        else atom(i)
        for i in items
    )
