"""Texts and functions for the tests of the front end, and ways to look at what becomes of them."""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Iterator
from typing import Any

from relay.errors import Span
from relay.frontend.lower import lower_text
from relay.ir import expr, surface
from relay.ir.expr import Block, Function


def lower(text: str, **names: object) -> Function:
    """The last function of a text."""
    return list(lower_text(program(text), "<test>", names).values())[-1].function


def program(text: str) -> str:
    """A text without the indentation that it has in this file."""
    return textwrap.dedent(text).lstrip("\n")


def values(block: Block) -> list[Any]:
    """What the bindings of a block bind."""
    return [binding.value for binding in block.bindings]


def only(function: Function, kind: type[Any]) -> Any:
    """The one binding's value of a kind, anywhere in a function."""
    (found,) = [v for block in blocks(function.body) for v in values(block) if isinstance(v, kind)]
    return found


def blocks(block: Block) -> Iterator[Block]:
    """A block and those inside of it."""
    yield block
    for value in values(block):
        match value:
            case expr.If(arms, orelse):
                for arm in arms:
                    yield from blocks(arm.condition)
                    yield from blocks(arm.body)
                yield from blocks(orelse)
            case expr.Loop(body=body) | surface.ForEach(body=body):
                yield from blocks(body)
            case expr.Lambda(function):
                yield from blocks(function.body)


def place(span: Span | None) -> tuple[int, int, int, int]:
    assert span is not None
    return span.line, span.column, span.end_line, span.end_column


def source_of(span: Span | None) -> str:
    """The text of a span on one line."""
    assert span is not None and span.line == span.end_line
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1]


counter = iter(range(10**6))


def defined(text: str, name: str, **names: object) -> Any:
    """Execute a text as a notebook does: its lines are in `linecache`."""
    filename = f"<cell {next(counter)}>"
    text = program(text)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec", dont_inherit=True), names)
    return names[name]
