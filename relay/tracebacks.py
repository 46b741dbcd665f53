"""Tracebacks of the user's mistakes show the user's frames only.

The hook that prints uncaught exceptions leaves Relay's own frames out for a RelayError; RELAY_FULL_TRACEBACK=1 shows
all.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

from relay.errors import RelayError

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package."""
    frames = []
    while traceback is not None:
        if not os.path.abspath(traceback.tb_frame.f_code.co_filename).startswith(_PACKAGE):
            frames.append(traceback)
        traceback = traceback.tb_next
    result: TracebackType | None = None
    for frame in reversed(frames):
        result = TracebackType(result, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return result


def install() -> None:
    """Put the filter before the present hook, once."""
    previous = sys.excepthook
    if getattr(previous, "__relay_hook__", False):
        return

    def hook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(value, RelayError) and os.environ.get("RELAY_FULL_TRACEBACK") != "1":
            traceback = without_own_frames(traceback)
            value = value.with_traceback(traceback)
            value.__suppress_context__ = True
        previous(kind, value, traceback)

    hook.__relay_hook__ = True  # type: ignore[attr-defined]
    sys.excepthook = hook
