"""A run of the interpreter that is recorded, so that it can be taken back step by step.

A step changes little: variables of a few frames, the stack of frames, how far the innermost frame's blocks have got,
the content of a reference, the tapes. What each of these was before is noted, in order, and `undo` puts it back. The
variables and the stack note their changes themselves; the interpreter runs as always, but for its updates in place:
what a note keeps is not changed, so they make copies.

Notes are dropped from the oldest on when what they alone keep alive takes more than `memory` bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from relay.eval.frames import Frame
from relay.eval.interpreter import Machine
from relay.eval.tape import Differentiation
from relay.eval.values import Box, Reference, Stack, primal
from relay.ir.debugging.source_names import SourceNames
from relay.ir.expr import RefWrite, Shadow, Var

STEP_BYTES = 600
ENTRY_BYTES = 120
"""About what the note of a step, and of a change in it, takes."""

ABSENT = object()

Entry: TypeAlias = tuple[object, object, object]
"""The changed object, the place in it, and its previous content."""


class Journal:
    """The changes of the step that is being made."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def take(self) -> list[Entry]:
        """The changes since they were taken last."""
        entries, self.entries = self.entries, []
        return entries


class Environment(dict[Var, object]):
    """The variables of a frame. `line` is the line of the user's on which the frame is."""

    __slots__ = ("_journal", "line")

    def __init__(self, variables: Mapping[Var, object], journal: Journal) -> None:
        super().__init__(variables)
        self._journal = journal
        self.line: int | None = None

    def __setitem__(self, key: Var, value: object) -> None:
        self._journal.entries.append((self, key, self.get(key, ABSENT)))
        super().__setitem__(key, value)

    def pop(self, key: Var, default: object = ABSENT) -> Any:
        """As of a dict."""
        if key in self:
            self._journal.entries.append((self, key, self[key]))
        elif default is ABSENT:
            raise KeyError(key)
        return super().pop(key, default)

    def update(self, changes: Any = (), /, **others: object) -> None:
        """As of a dict, from pairs."""
        pairs: Iterable[tuple[Var, object]] = changes.items() if isinstance(changes, Mapping) else changes
        for key, value in pairs:
            self[key] = value

    def restore(self, key: Any, before: object) -> None:
        """Undo a change."""
        if before is ABSENT:
            super().pop(key, None)
        else:
            super().__setitem__(key, before)


class Frames(list["Frame | Differentiation"]):
    """The stack of frames. `waiting` are those in it that wait for a function to be differentiated."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal
        self.waiting: list[Differentiation] = []

    def append(self, frame: Frame | Differentiation) -> None:
        """As of a list."""
        self._journal.entries.append((self, "append", frame))
        self._push(frame)

    def pop(self, index: SupportsIndex = -1, /) -> Frame | Differentiation:
        """As of a list, of the last element."""
        self._journal.entries.append((self, "pop", self[-1]))
        return self._drop()

    def restore(self, change: object, frame: Any) -> None:
        """Undo a change."""
        if change == "append":
            self._drop()
        else:
            self._push(frame)

    def _push(self, frame: Frame | Differentiation) -> None:
        super().append(frame)
        if isinstance(frame, Differentiation):
            self.waiting.append(frame)

    def _drop(self) -> Frame | Differentiation:
        frame = super().pop()
        if isinstance(frame, Differentiation):
            self.waiting.pop()
        return frame


class _Step:
    """The state that a step may have changed, as it was before."""

    __slots__ = ("activations", "cost", "entries", "frame", "line", "result", "sizes", "tapes")

    def __init__(self, machine: Machine, frames: Frames) -> None:
        self.frame: Frame = frames[-1]  # type: ignore[assignment]  # nothing else is ever run
        frame = self.frame
        self.activations = [(a, a.position, a.round) for a in frame.activations]
        self.sizes = frame.sizes
        self.line: int | None = frame.environment.line  # type: ignore[attr-defined]
        self.result = machine.result
        waiting = frames.waiting
        self.tapes = [(w.tape, w.tape.entries, len(w.tape.entries)) for w in waiting] if waiting else ()
        self.entries: Sequence[Entry] = ()
        self.cost = 0

    def undo(self, machine: Machine) -> None:
        """Put everything back."""
        for changed, where, before in reversed(self.entries):
            if isinstance(changed, Environment | Frames):
                changed.restore(where, before)
            else:
                setattr(changed, where, before)  # type: ignore[arg-type]
        frame = self.frame
        for activation, position, round_ in self.activations:
            activation.position, activation.round = position, round_
        frame.activations[:] = [activation for activation, _, _ in self.activations]
        frame.sizes = self.sizes
        frame.environment.line = self.line  # type: ignore[attr-defined]
        machine.result = self.result
        for tape, entries, count in self.tapes:
            del entries[count:]
            tape.entries, tape.closed = entries, False


class Recording:
    """A machine whose steps can be taken back, as far as the memory for notes of them reaches."""

    def __init__(self, memory: int, sizes: Mapping[Any, int], names: SourceNames | None) -> None:
        self.machine = Machine(sizes=sizes, names=names)
        self.count = 0
        """The steps from the beginning to here."""
        self._memory = memory
        self._used = 0
        self._journal = Journal()
        self._frames = Frames(self._journal)
        self._steps: deque[_Step] = deque()
        self.machine.frames = self._frames
        self.machine.environment = lambda variables: Environment(variables, self._journal)

    @property
    def kept_steps(self) -> int:
        """The number of steps that can be taken back."""
        return len(self._steps)

    @property
    def frames(self) -> Sequence[Frame | Differentiation]:
        """The stack, the innermost frame last."""
        return self._frames

    @property
    def top_frame(self) -> Frame:
        """The innermost frame: the frame that waits for a function is below its frame."""
        return self._frames[-1]  # type: ignore[return-value]

    def begin(self) -> None:
        """Forget earlier steps: they cannot be taken back."""
        self._steps.clear()
        self.count = self._used = 0

    def enter(self, function: object, arguments: Sequence[object]) -> None:
        """Begin with a call."""
        self.machine.enter(function, arguments)
        self._journal.take()

    def step(self, line: int | None, changes_reference: bool) -> None:
        """One step; `line` is the user's on which the frame then is. One that fails or is interrupted was not made."""
        note = _Step(self.machine, self._frames)
        journal = self._journal
        journal.entries = []
        if changes_reference:
            self._note_cell(note.frame)
        note.frame.environment.line = line  # type: ignore[attr-defined]
        try:
            self.machine.step()
        except BaseException:
            note.entries = journal.entries
            journal.entries = []
            note.undo(self.machine)
            raise
        self._keep(note)

    def change(self, frame: Frame, variable: Var, value: object) -> None:
        """Give a variable of a frame another value, as a separate step."""
        note = _Step(self.machine, self._frames)
        self._journal.take()
        frame.environment[variable] = value
        self._keep(note)

    def undo(self) -> bool:
        """Take the last step back. False if it is not known any more, or there was none."""
        if not self._steps:
            return False
        note = self._steps.pop()
        self._used -= note.cost
        note.undo(self.machine)
        self._journal.take()
        self.count -= 1
        return True

    def _keep(self, note: _Step) -> None:
        note.entries = entries = self._journal.entries
        self._journal.entries = []
        cost = STEP_BYTES + ENTRY_BYTES * len(entries)
        for _, change, before in entries:
            if type(before) is np.ndarray:
                cost += before.nbytes
            elif before is not ABSENT:
                cost += _held_bytes(change, before)
        note.cost = cost
        self.count += 1
        self._used += cost
        self._steps.append(note)
        while self._used > self._memory and len(self._steps) > 1:
            self._used -= self._steps.popleft().cost

    def _note_cell(self, frame: Frame) -> None:
        """Note the content of the reference that the next step writes."""
        activation = frame.activations[-1]
        value = activation.block.bindings[activation.position].value
        assert isinstance(value, RefWrite | Shadow)
        cell = self.machine.atom(frame, value.reference)
        assert isinstance(cell, Reference)
        self._journal.entries.append((cell, "content", cell.content))
        self._journal.entries.append((cell, "shadows", cell.shadows))


def _held_bytes(change: object, before: object) -> int:
    """The bytes that a note keeps alive and the program may not need any more."""
    if isinstance(before, Frame):
        return sum(map(_bytes, before.environment.values())) if change == "pop" else 0
    return _bytes(before)


def _bytes(value: object) -> int:
    match value:
        case np.ndarray():
            return value.nbytes
        case Box():
            return primal(value).nbytes
        case tuple():
            return 64 + sum(map(_bytes, value))
        case Stack(_, length):
            return 8 * length
        case _:
            return 64
