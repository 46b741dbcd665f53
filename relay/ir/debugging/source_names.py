"""Source names: the meaning of the user's names in a typed program, block by block.

A typed program has variables where it computes something; `pair = (x, y)` or `b = a` computes nothing, so those names
are not in it. Tools that show a program in the user's terms collect them while it is elaborated:

    with collecting() as names:
        module = ..
    names[block]   the names that get a meaning in a block, in order

Elaboration does so for every program (`Elaborated.source_names`).
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import TypeAlias

import attrs

from relay.errors import Span
from relay.errors.diagnostic import Source
from relay.ir.dims import Dim
from relay.ir.expr import Block, Constant, Expr, Function, Global, If, Loop, Var
from relay.ir.surface import ForEach, PatternMatch
from relay.ir.traverse import blocks, bound_variables
from relay.ir.types import Form


@attrs.frozen(eq=False)
class Parts:
    """A tuple or another structure, part by part."""

    items: tuple[Meaning, ...]
    form: Form | None = None


@attrs.frozen(eq=False)
class PythonValue:
    """An object of Python that the program has taken in: a number, a string, None, a module."""

    value: object


@attrs.frozen(eq=False)
class SizeValue:
    """A size that is a number in each call."""

    dim: Dim


@attrs.frozen(eq=False)
class ComputedNumber:
    """A number that is computed from sizes, in each call."""

    compute: Callable[..., int | float]
    operands: tuple[Meaning, ...]


@attrs.frozen(eq=False)
class FunctionName:
    """A function that is elaborated again at each call, so that it has no single value."""

    name: str


Meaning: TypeAlias = "Var | Constant | Global | Parts | PythonValue | SizeValue | ComputedNumber | FunctionName"


@attrs.frozen(eq=False)
class SourceName:
    """A name that means something once the first bindings of a block, `position` of them, have been run."""

    position: int
    name: str
    meaning: Meaning


class SourceNames:
    """The names that get a meaning in the blocks of typed programs, in order."""

    def __init__(self) -> None:
        self._names: dict[Block, Sequence[SourceName]] = {}
        self._introduced: dict[Block, tuple[Var, ...]] = {}
        self._chosen: dict[frozenset[str], SourceNames] = {}

    def __iter__(self) -> Iterator[str]:
        """All names in all blocks."""
        return (name.name for names in self._names.values() for name in names)

    def subset(self, wanted: frozenset[str]) -> SourceNames:
        """These names only."""
        found = self._chosen.get(wanted)
        if found is None:
            found = SourceNames()
            kept = ((block, [n for n in names if n.name in wanted]) for block, names in self._names.items())
            found._names = {block: names for block, names in kept if names}
            self._chosen[wanted] = found
        return found

    def __getitem__(self, block: Block) -> Sequence[SourceName]:
        return self._names.get(block, ())

    def add(self, block: Block, names: Sequence[SourceName]) -> None:
        """Record the names in a finished block."""
        self._names[block] = names

    def enter(self, expression: Expr) -> None:
        """The blocks of an expression of the surface IR are elaborated next."""
        match expression:
            case PatternMatch(_, cases):
                for case in cases:
                    variables = tuple(dict.fromkeys(bound_variables(case.pattern)))
                    for block in (case.body, case.guard):
                        if block is not None:
                            self._introduced[block] = variables
            case If() | Loop() | ForEach():
                introduced = tuple(bound_variables(expression))
                self._introduced.update((block, introduced) for block in blocks(expression))
            case _:
                pass

    def finish(self) -> None:
        """Forget what is needed while programs are elaborated only."""
        self._introduced.clear()

    def introduced_variables(self, block: Block, visible: Iterable[Var]) -> Iterable[Var]:
        """The variables that a block of the surface IR begins with, in addition to those of the blocks around it.
        The body of a function begins with all that are `visible` there."""
        return self._introduced.get(block, visible)


_collected: ContextVar[SourceNames | None] = ContextVar("source names", default=None)


@contextlib.contextmanager
def collecting() -> Iterator[SourceNames]:
    """While programs are elaborated: what their names mean."""
    names = SourceNames()
    token = _collected.set(names)
    try:
        yield names
    finally:
        _collected.reset(token)
        names.finish()


def name_collector() -> SourceNames | None:
    """The collector of names; None if nobody wants them."""
    return _collected.get()


def is_written(name: str, span: Span | None) -> bool:
    """True if a variable is the user's: its place begins with its name. Temporaries have the places of expressions."""
    if span is None:
        return False
    text = span.source.line(span.line)[span.column - 1 :]
    rest = text.removeprefix(name)
    return rest != text and not (rest[:1].isalnum() or rest[:1] == "_")


@functools.lru_cache(maxsize=64)
def words_of(source: Source) -> frozenset[str]:
    """The names in a text."""
    return frozenset(re.findall(r"[^\W\d]\w*", source.text))


_DEFINITION = re.compile(r"(?:async\s+)?def\s+(\w+)")
_SUFFIX = re.compile(r"(?:_\d+)?((?:_forward|_backward|_gradient)*)$")


def _own_and_part(function: Function) -> tuple[str, str]:
    """A function's name in the source, and which part of its derivative it is: `f`, and `_backward`. The program may
    have an `f_1` of it for other types."""
    name, span = function.name, function.span
    if span is None:
        return name, ""
    found = _DEFINITION.match(span.source.line(span.line), span.column - 1)
    written = found.group(1) if found is not None else None
    suffix = _SUFFIX.search(name)
    assert suffix is not None
    stem = name[: suffix.start()]
    if stem == written or (name != written and name not in words_of(span.source)):
        return stem, suffix.group(1)
    return name, ""


def function_name(function: Function) -> str:
    """The name of a function in the source; parts of derivatives have their suffix, `f_backward`."""
    return "".join(_own_and_part(function))


def differentiated_name(function: Function) -> str:
    """The name of the function in the source that this one is, or is a part of the derivative of."""
    return _own_and_part(function)[0]
