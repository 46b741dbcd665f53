"""Places of errors: the assertions and raises of a module, numbered by the classes of what they raise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs
import numpy as np

from relay.errors.raised import raised_class
from relay.ir.builder import BlockBuilder
from relay.ir.dims import made_dim
from relay.ir.expr import (
    Ascribe,
    Assert,
    Atom,
    Attempt,
    AxisSize,
    BindDim,
    Block,
    Call,
    Constant,
    Dead,
    Expr,
    Function,
    Global,
    Module,
    Print,
    Var,
)
from relay.ir.program_output import TEXT
from relay.ir.traverse import all_blocks, operands, terminator_operands, walk
from relay.ir.types import INT32, INT64, TensorType, scalar
from relay.transform.analysis.graph import call_graph, strong_components


@attrs.frozen(eq=False)
class Place:
    """A place where an error is raised: its class and text, and the expression that raises it."""

    cls: type[Exception]
    text: str
    raising: Assert | Print

    @property
    def makes_text(self) -> bool:
        """True if the text is made at run time."""
        return isinstance(self.raising, Print) and bool(self.raising.values)

    def failing(self, text: Atom) -> Block:
        """A block that raises the error, whose text is made at run time, if the place makes it."""
        out, span = BlockBuilder(), self.raising.span
        if isinstance(self.raising, Print) and self.makes_text:
            size = out.assign(AxisSize(text, 0, span), scalar(INT64), "size", span)
            dim = made_dim("size")
            out.perform(BindDim(dim, size, span))
            sized = out.assign(Ascribe(text, span), TensorType(INT32, (dim,)), "text", span)
            out.perform(Print(self.raising.pieces, (sized,), (TEXT,), span, True))
        elif isinstance(self.raising, Print):
            out.perform(self.raising)
        else:
            out.perform(Assert(Constant(np.array(False), span), self.raising.message, span))
        return out.block(Dead())


class ErrorPlaces:
    """The places of a module. `have_texts`: the texts of errors are passed on with their numbers."""

    def __init__(self, module: Module) -> None:
        bodies = {name: f.body for name, f in module.functions.items() if isinstance(f, Function)}
        values = [b.value for body in bodies.values() for b in walk(body)]
        found = {_key(value): _place(value) for value in values if _raises(value)}
        keys = sorted(found, key=lambda key: (found[key].cls.__module__, found[key].cls.__qualname__))
        self._places = [found[key] for key in keys]
        self._numbers = {key: number for number, key in enumerate(keys)}
        self.have_texts = any(p.makes_text for p in self._places) or _text_is_read(bodies.values())
        self._failing = self._inherited(module, {name: self._places_in(body) for name, body in bodies.items()})
        self._possible: dict[Atom, frozenset[int]] = {}
        self._texts: dict[Atom, Atom] = {}

    def __getitem__(self, number: int) -> Place:
        return self._places[number]

    def number(self, raising: Expr) -> int:
        """The number of an expression that raises an error."""
        return self._numbers[_key(raising)]

    def may_fail(self, name: str) -> bool:
        """True if a function, or one that it calls, raises errors."""
        return bool(self._failing[name])

    def note(self, error: Var, text: Var, protected: Block) -> None:
        """Note what the error of an `Attempt` may be, and where its text is."""
        called = [
            self._failing[b.value.function.name]
            for b in walk(protected)
            if isinstance(b.value, Call) and isinstance(b.value.function, Global)
        ]
        self._possible[error] = self._places_in(protected).union(*called)
        self._texts[error] = text

    def text(self, error: Atom) -> Atom:
        """The variable with the text of an error."""
        return self._texts[error]

    def possible(self, error: Atom) -> list[int]:
        """The numbers of the places from which an error may be, in order."""
        return sorted(self._possible[error])

    def ranges(self, error: Atom, is_meant: Callable[[type[Exception]], bool]) -> list[tuple[int, int]] | None:
        """The ranges of numbers, first and last, of the errors of some classes; None if the error is of these."""
        possible = self._possible[error]
        if all(is_meant(self._places[number].cls) for number in possible):
            return None
        found: list[tuple[int, int]] = []
        for number, place in enumerate(self._places):
            if not is_meant(place.cls):
                continue
            if found and found[-1][1] == number - 1:
                found[-1] = (found[-1][0], number)
            else:
                found.append((number, number))
        return [(a, b) for a, b in found if not possible.isdisjoint(range(a, b + 1))]

    def _places_in(self, block: Block) -> frozenset[int]:
        return frozenset(self.number(b.value) for b in walk(block) if _raises(b.value))

    def _inherited(self, module: Module, own: Mapping[str, frozenset[int]]) -> dict[str, frozenset[int]]:
        """The numbers of each function, with those of what it calls."""
        graph = call_graph(module)
        found: dict[str, frozenset[int]] = {}
        for component in strong_components(graph):
            called = [found[n] for name in component for n in graph[name] if n in found]
            whole = frozenset().union(*called, *(own.get(name, frozenset()) for name in component))
            found.update((name, whole) for name in component)
        return found


def _raises(value: Expr) -> bool:
    return isinstance(value, Assert) or (isinstance(value, Print) and value.fails)


def _key(value: Expr) -> object:
    """The key of a place of errors, which stays where functions are copied."""
    assert isinstance(value, Assert | Print)
    return (value.message if isinstance(value, Assert) else value.pieces), value.span


def _place(value: Expr) -> Place:
    assert isinstance(value, Assert | Print)
    message = value.message if isinstance(value, Assert) else value.pieces[0]
    return Place(*raised_class(message), value)


def _text_is_read(bodies: Iterable[Block]) -> bool:
    """True if a handler reads the text of its error."""
    for body in bodies:
        texts = {b.targets[2] for b in walk(body) if isinstance(b.value, Attempt)}
        for block in all_blocks(body) if texts else ():
            read = (*terminator_operands(block.terminator), *(a for b in block.bindings for a in operands(b.value)))
            if not texts.isdisjoint(read):
                return True
    return False
