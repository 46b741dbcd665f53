"""A progress bar on a terminal, on standard error, while something takes long. Elsewhere nothing is shown."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

DELAY = 1.0
"""Seconds before the bar is shown, unless RELAY_PROGRESS says otherwise."""

_terminal = threading.Lock()  # held by the bar that is shown
_active: ContextVar[_Bar | None] = ContextVar("relay_progress", default=None)


@contextmanager
def progress_bar(title: str) -> Iterator[None]:
    """Show a bar if the block takes long. Inside of another one it is a part of that."""
    delay = _delay()
    if delay is None or _active.get() is not None or not sys.stderr.isatty():
        yield
        return
    bar = _Bar(title, delay)
    token = _active.set(bar)
    try:
        yield
    finally:
        _active.reset(token)
        bar.close()


def show_progress(what: str, done: int = 0, total: int | None = None) -> None:
    """Show what is being done, in the bar around this; `done` of `total` steps, None: unknown."""
    bar = _active.get()
    if bar is not None:
        bar.say(what, done, total)


def _delay() -> float | None:
    """RELAY_PROGRESS: a number of seconds, or what is none (`never`) for no bar."""
    try:
        found = float(os.environ.get("RELAY_PROGRESS", DELAY))
    except ValueError:
        return None
    return max(found, 0.0) if found <= threading.TIMEOUT_MAX else None  # infinite ones, and none at all: never


class _Bar:
    """One bar. A timer shows it, so that what is quick never imports the library that draws."""

    def __init__(self, title: str, delay: float) -> None:
        self._title = title
        self._state: tuple[str, int, int | None] = "", 0, None
        self._lock = threading.Lock()
        self._closed = False
        self._drawn: Any = None
        self._timer = threading.Timer(delay, self._draw)
        self._timer.daemon = True
        self._timer.start()

    def say(self, what: str, done: int, total: int | None) -> None:
        with self._lock:
            self._state = what, done, total
            self._update()

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._drawn is not None:
                self._drawn.stop()
                _terminal.release()

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._closed or not _terminal.acquire(blocking=False):
                return
            columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn()
            self._drawn = Progress(*columns, console=Console(stderr=True), transient=True)
            self._drawn.add_task(self._title, total=None)
            self._update()
            self._drawn.start()

    def _update(self) -> None:
        if self._drawn is not None:
            what, done, total = self._state
            description = f"{self._title}: {what}" if what else self._title
            self._drawn.update(self._drawn.task_ids[0], description=description, completed=done, total=total)
