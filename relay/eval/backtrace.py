"""The backtrace of a program in its own terms: the calls that are running, their lines, and their variables."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from relay.errors.diagnostic import Span
from relay.eval.frames import Frame
from relay.eval.tape import Differentiation
from relay.eval.variables import short_text, type_text, variables
from relay.ir.debugging.source_names import SourceNames

DEEPEST = 50
"""Of this many calls, the innermost ones, a backtrace holds the variables; of the others the place."""


@attrs.frozen
class ShownVariable:
    """A variable of a call: its name, its type as text, and its value in a short form."""

    name: str
    type: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}: {self.type} = {self.value}"


@attrs.frozen
class Call:
    """A call that is being run: the function's name, where it has got to, and its variables there."""

    function: str
    span: Span | None
    variables: tuple[ShownVariable, ...] = ()

    def __str__(self) -> str:
        place = f"{self.span.source.filename}:{self.span.line}, in " if self.span is not None else "in "
        line = f"\n    {self.span.source.line(self.span.line).strip()}" if self.span is not None else ""
        return f"{place}{self.function}{line}" + "".join(f"\n      {v}" for v in self.variables)


def backtrace_of(
    frames: Sequence[Frame | Differentiation], names: SourceNames | None, deepest: int = DEEPEST
) -> tuple[Call, ...]:
    """The calls of a stack of frames, the innermost last."""
    calls = []
    for depth, frame in enumerate(frames):
        if isinstance(frame, Differentiation):
            calls.append(Call("grad", frame.grad.span))
        elif depth < len(frames) - deepest:
            calls.append(Call(frame.name, frame.span))
        else:
            found = variables(frame, names).values()
            shown = tuple(ShownVariable(v.name, type_text(v.value), short_text(v.value)) for v in found)
            calls.append(Call(frame.name, frame.span, shown))
    return tuple(calls)
