"""Joins of branches: the variables that they yield, and names that only some of them assign."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from relay.errors import Label, Span
from relay.frontend.analysis.names import Names
from relay.frontend.context import UNREAD, Context, State, SurfaceBlock, Unassigned, distinct_captures
from relay.ir.expr import Var, Yield


@attrs.frozen(eq=False)
class Branch:
    """One way to the end of an `if`: its block, and what to say where it lacks a value."""

    block: SurfaceBlock
    span: Span
    text: str


def join(
    context: Context, branches: Sequence[Branch], live: Collection[str] | None, span: Span | None
) -> tuple[Var, ...]:
    """Bring the ends of an `if` together: yield what they assign, and return the variables for it.

    `live` are the names that are read later; None if that is not known (inside an expression).
    """
    environment = context.block.environment
    for branch in branches:
        for name, place in branch.block.environment.captured.items():
            if branch.block.is_open:
                environment.captured.setdefault(name, place)
    ends = [branch for branch in branches if branch.block.is_open]
    changed: Names = {name: None for branch in ends for name in branch.block.environment.states}
    targets: list[Var] = []
    yields: list[list[Var]] = [[] for _ in ends]
    for name in changed:
        states = [end.block.environment.lookup(name) for end in ends]
        values = [state for state in states if isinstance(state, Var)]
        if live is not None and name not in live and name not in context.cells:
            environment.states[name] = UNREAD
        elif name in context.early and len(values) == len(ends):
            environment.states[name] = context.early[name]
        elif len(values) == len(ends):
            target = Var(name, None, values[0].span)
            held = distinct_captures(capture for value in values for capture in context.holds.get(value, ()))
            if held:
                context.holds[target] = held
            targets.append(target)
            environment.states[name] = target
            for row, value in zip(yields, values, strict=True):
                row.append(value)
        else:
            environment.states[name] = _partial_assignment(name, ends, states)
    for end, row in zip(ends, yields, strict=True):
        end.block.terminator = Yield(tuple(row), end.block.last_span if end.block.last_span is not None else span)
    return tuple(targets)


def _partial_assignment(name: str, ends: Sequence[Branch], states: Sequence[State | None]) -> Unassigned:
    """The state of a name that some ends have not assigned."""
    for state in states:
        if isinstance(state, Unassigned) and state is not UNREAD:
            return state
    assigned = next((s.span for s in states if isinstance(s, Var)), None)
    missing = next(end for end, state in zip(ends, states, strict=True) if not isinstance(state, Var))
    labels = [Label(missing.span, missing.text)]
    if assigned is not None:
        labels.insert(0, Label(assigned, "assigned here"))
    return Unassigned(
        f"`{name}` may have no value here: one path assigns it and another one does not",
        tuple(labels),
        f"give `{name}` a value on every path, or before the `if`",
    )
