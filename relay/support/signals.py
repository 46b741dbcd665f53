"""Deferred signals: Ctrl-C and others, handled after sections in which a handler must not raise.

A handler that raises while TVM calls Python ends in the middle of C++, which makes another error of it, or does not
expect any. So handlers wait while TVM's compiler works, until the end of the step that it is in.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any]


class Deferral:
    """A `with` block in which no handler of a signal runs, but in `handle`; those of its signals run at its end.

    Only the main thread handles signals, so in others it does nothing. Blocks may be nested.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._handlers: dict[int, _Handler] = {}
        self._waiting: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if self._depth:
            self._depth += 1
            return
        try:
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
            self._depth = 1
        except BaseException:  # what a handler raised that was not yet replaced
            self._restore()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth == 0:
            handlers = dict(self._handlers)
            try:
                self._restore()
            finally:
                self._handle(handlers)

    def handle(self) -> None:
        """Run the handlers of the signals that have arrived so far. What they raise is raised here."""
        if self._waiting and threading.current_thread() is threading.main_thread():
            self._handle(dict(self._handlers))

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._waiting.append((number, frame))

    def _restore(self) -> None:
        raised: BaseException | None = None
        while self._handlers:
            try:
                number, handler = next(iter(self._handlers.items()))
                if signal.getsignal(number) == self._note:  # nobody has set another one meanwhile
                    signal.signal(number, handler)
                self._handlers.pop(number, None)
            except BaseException as error:  # of a handler that is there again
                raised = error
        if raised is not None:
            raise raised

    def _handle(self, handlers: dict[int, _Handler]) -> None:
        waiting, self._waiting = self._waiting, []
        for position, (number, frame) in enumerate(waiting):
            try:
                handlers[number](number, frame)
            except BaseException:
                self._waiting += waiting[position + 1 :] if self._depth else ()
                raise


deferral = Deferral()
"""That of this process."""
