"""Places of errors in functions of the library: what fails there, fails at the user's call.

A function of the library that may fail is copied for each place that calls it, if it is small, or called once; what is
in a copy is at the place of the call, and so are the calls in it. `f.interpret` knows the calls that led to an error.
"""

from __future__ import annotations

from collections import Counter
from itertools import count

import attrs

from relay.errors import Span
from relay.ir.expr import Assert, Atom, Block, Call, Expr, Function, Global, Module, OpCall, Print
from relay.ir.rebuild import copy_function, map_blocks, rebind, rebuild_block
from relay.ir.traverse import count_bindings, walk
from relay.operator import lookup
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.cleanup.inlining import SMALL
from relay.transform.core.rebuilding import with_body, with_functions


def place_at_calls(module: Module) -> Module:
    """The typed module in which errors of the library are at the calls of the user's, where these are known."""
    if not any(_is_internal(f) for f in module.functions.values()):
        return module
    return _Places(module).run()


def _is_internal(function: object) -> bool:
    return isinstance(function, Function) and function.span is not None and function.span.is_internal


class _Places:
    def __init__(self, module: Module) -> None:
        self.module, self.functions = module, dict(module.functions)
        self.copies: dict[tuple[str, Span], str] = {}
        graph = call_graph(module)
        self.calls = Counter(name for f in module.functions.values() if isinstance(f, Function) for name in _called(f))
        self.failing: set[str] = set()  # the functions of the library that may fail, and do not call themselves
        for component in strong_components(graph):
            (name, *others) = component
            function = module.functions[name]
            if others or name in graph[name] or not isinstance(function, Function) or not _is_internal(function):
                continue
            if self.failing.intersection(graph[name]) or any(_may_fail(b.value) for b in walk(function.body)):
                self.failing.add(name)

    def run(self) -> Module:
        for name, function in self.module.functions.items():
            if isinstance(function, Function) and not _is_internal(function):
                self.functions[name] = with_body(function, self.block(function.body))
        return with_functions(self.module, self.functions)

    def block(self, block: Block) -> Block:
        """A block whose calls are those of copies."""
        return rebuild_block(block, [rebind(b, self.value(b.value)) for b in block.bindings], block.terminator)

    def value(self, value: Expr) -> Expr:
        match value:
            case Call(Global(name), arguments, span) if name in self.failing and span and not span.is_internal:
                copy = self.copy(name, span)
                return value if copy is None else Call(Global(copy), arguments, span)
            case _:
                return map_blocks(value, self.block)

    def copy(self, name: str, span: Span) -> str | None:
        """The copy of a function for a place; None if it is too large for several."""
        if (name, span) not in self.copies:
            function = self.module.functions[name]
            assert isinstance(function, Function)
            if self.calls[name] > 1 and count_bindings(function.body) > SMALL:
                return None
            made = next(n for i in count(1) if (n := f"{name}_{i}") not in self.functions)
            self.copies[name, span] = made
            copied = attrs.evolve(copy_function(function), name=made)  # type: ignore[misc]
            self.functions[made] = with_body(copied, self.block(_move(copied.body, span)))
        return self.copies[name, span]


def _called(function: Function) -> list[str]:
    calls = (b.value for b in walk(function.body) if isinstance(b.value, Call))
    return [call.function.name for call in calls if isinstance(call.function, Global)]


def _may_fail(value: Expr) -> bool:
    if isinstance(value, OpCall):
        return bool(lookup(value.operator).requirements)
    return isinstance(value, Assert) or (isinstance(value, Print) and value.fails)


def _move(block: Block, span: Span) -> Block:
    """The block with all that it does at one place."""

    def move(value: Expr) -> Expr:
        found = None if isinstance(value, Atom) else getattr(value, "span", None)
        moved: Expr = value if found is None else attrs.evolve(value, span=span)  # type: ignore[misc]
        return map_blocks(moved, move_block)

    def move_block(part: Block) -> Block:
        return rebuild_block(part, [rebind(b, move(b.value)) for b in part.bindings], part.terminator)

    return move_block(block)
