"""Errors that a program catches: the way back to the `Attempt` around what has failed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.errors import ExecutionError
from relay.eval.frames import Frame, attempt_condition, attempt_of
from relay.eval.tape import Differentiation
from relay.ir.expr import Atom


def catch(frames: list[Frame | Differentiation], error: ExecutionError) -> bool:
    """Go back to the innermost `Attempt` whose protected block is being run; False if there is none, or if the error
    is none that programs catch. Whether the program has an `except` for it, what follows there asks."""
    if error.raised is None:
        return False
    for depth in range(len(frames) - 1, -1, -1):
        frame = frames[depth]
        if not isinstance(frame, Frame):
            continue
        for position in range(len(frame.activations) - 1, 0, -1):
            attempt = attempt_of(frame, position)
            if attempt is None:
                continue
            del frames[depth + 1 :], frame.activations[position:]
            around = frame.activations[-1]
            around.position = around.block.bindings.index(attempt) + 1
            values: Sequence[object] = (np.array(True), error, np.array([*map(ord, error.message)], np.int32))
            frame.environment.update(zip(attempt.targets, values, strict=True))
            return True
    return False


def end_attempt(frame: Frame, failed: Atom) -> None:
    """Let errors in what is being run go on to what is around the `Attempt` with this first variable."""
    for activation in frame.activations:
        if attempt_condition(activation) is failed:
            activation.unprotected = True
