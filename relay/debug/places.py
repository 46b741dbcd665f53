"""Places of a program in the lines of the user's files: what is run next, and which lines can be stopped at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import attrs

from relay.errors.diagnostic import Span
from relay.eval.frames import Frame
from relay.ir.debugging.source_names import differentiated_name, function_name
from relay.ir.expr import (
    Ascribe,
    AxisSize,
    BindDim,
    Block,
    Breakpoint,
    Constant,
    Dead,
    Exit,
    Expr,
    Extent,
    Function,
    Global,
    Lambda,
    MakeTuple,
    Module,
    Next,
    OpCall,
    Project,
    RefWrite,
    Shadow,
    Terminator,
    Var,
    Yield,
)
from relay.ir.traverse import all_blocks
from relay.typecheck.elaboration.abstract_values import is_of_template

Node: TypeAlias = "Expr | Terminator"

_PASSED = (Var, Constant, Global, MakeTuple, Project, Lambda, Extent, BindDim, AxisSize, Ascribe, Yield, Next, Dead)
"""Expressions that only move values, or control: a step does not stop at them."""


@attrs.frozen(slots=True, eq=False)
class Point:
    """A place of a program: what is run there next, and what a debugger asks about it."""

    node: Node
    span: Span | None
    line: int | None  # at which the program can be stopped here; None where it passes
    operator: str | None
    is_breakpoint: bool  # the program says so, by `relay.breakpoint()`
    begins_round: bool  # of a loop, the next time
    changes_reference: bool


def points_of(block: Block, function: Function) -> tuple[Point, ...]:
    """The places of a block: its bindings, and its end. A line begins with the parts of values that it takes or makes,
    so that it sees a value that is changed before it."""
    points = [_point(node, function) for node in (*(b.value for b in block.bindings), block.terminator)]
    for position in reversed(range(len(block.bindings))):
        point, following = points[position], points[position + 1].line
        if point.line is None and point.span is not None and point.span.line == following:
            points[position] = attrs.evolve(point, line=following)
    return tuple(points)


def _point(node: Node, function: Function) -> Point:
    span = None if isinstance(node, Dead) or is_of_template(node.span) else node.span
    passed = isinstance(node, _PASSED) or (isinstance(node, Exit) and node.label is not function.label)
    return Point(
        node,
        span,
        None if passed or span is None else span.line,
        node.operator if isinstance(node, OpCall) else None,
        isinstance(node, Breakpoint),
        isinstance(node, Next),
        isinstance(node, RefWrite | Shadow),
    )


def place(frame: Frame, point: Point) -> Span | None:
    """The place of a frame: what it runs next, or what it is running, or the function."""
    return point.span if point.span is not None else visible_span(frame)


def visible_span(frame: Frame) -> Span | None:
    """The place that a frame has reached in the user's files."""
    span = frame.span
    return None if is_of_template(span) else span


def functions(module: Module) -> Iterator[Function]:
    """The functions of a module, those inside of others included."""
    for function in module.functions.values():
        if isinstance(function, Function):
            yield function
            for block in all_blocks(function.body):
                yield from (b.value.function for b in block.bindings if isinstance(b.value, Lambda))


def names_of(function: Function) -> tuple[str, ...]:
    """The names of a function: in the source, with the part of a derivative that it is, and in the program."""
    return differentiated_name(function), function_name(function), function.name


def operators(module: Module) -> Iterator[str]:
    """The operators that a program applies."""
    for function in functions(module):
        for block in all_blocks(function.body):
            yield from (b.value.operator for b in block.bindings if isinstance(b.value, OpCall))


def lines(module: Module) -> dict[str, list[int]]:
    """The lines at which a program can be stopped, in order, by the files."""
    found: dict[str, set[int]] = {}
    for function in functions(module):
        for file, numbers in lines_of(function).items():
            found.setdefault(file, set()).update(numbers)
    return {file: sorted(numbers) for file, numbers in found.items()}


def lines_of(function: Function) -> dict[str, set[int]]:
    """The same for one function, without those inside of it."""
    found: dict[str, set[int]] = {}
    for block in all_blocks(function.body):
        for point in points_of(block, function):
            if point.line is not None and point.span is not None:
                found.setdefault(point.span.source.filename, set()).add(point.line)
    return found
