"""Traceback filtering: user errors show user frames only; RELAY_FULL_TRACEBACK=1 shows all.

The hook that prints uncaught exceptions leaves Relay's own frames out for a RelayError, and those of libraries that
Relay called. On a terminal the error is in colors. Notebooks ask the error itself (`_render_traceback_`).
"""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback as traceback_module
from types import TracebackType

from relay.errors import RelayError
from relay.errors.diagnostic import wants_color
from relay.support.html import fragment, from_terminal

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_GENERATED = ("<attrs generated", "<frozen ", "<__array_function__")


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package and of the libraries that it called."""
    frames = []
    inside = False
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        path = os.path.abspath(filename)
        inside = path.startswith(_PACKAGE) or (
            inside and (filename.startswith(_GENERATED) or path.startswith(_LIBRARIES))
        )
        if not inside:
            frames.append(traceback)
        traceback = traceback.tb_next
    result: TracebackType | None = None
    for frame in reversed(frames):
        result = TracebackType(result, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return result


def shows_all() -> bool:
    """True if the user wants to see Relay's own frames."""
    return os.environ.get("RELAY_FULL_TRACEBACK") == "1"


def install() -> None:
    """Put the filter before the present hook, once."""
    previous = sys.excepthook
    if getattr(previous, "__relay_hook__", False):
        return

    def hook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        if not isinstance(value, RelayError):
            previous(kind, value, traceback)
            return
        if not shows_all():
            traceback = without_own_frames(traceback)
            value = value.with_traceback(traceback)
            value.__suppress_context__ = True
        value.in_color = wants_color(sys.stderr)
        try:
            previous(kind, value, traceback)
        finally:
            value.in_color = False

    hook.__relay_hook__ = True  # type: ignore[attr-defined]
    sys.excepthook = hook
    RelayError._render_traceback_ = _notebook_lines  # type: ignore[attr-defined]
    RelayError._repr_html_ = _notebook_html  # type: ignore[attr-defined]


def _notebook_lines(error: RelayError) -> list[str]:
    """The traceback that IPython prints for an uncaught error, without its own frames outside of the cell."""
    if shows_all():
        return traceback_module.format_exception(error)
    traceback = without_own_frames(error.__traceback__)
    while traceback is not None and str(traceback.tb_frame.f_globals.get("__name__")).startswith("IPython."):
        traceback = traceback.tb_next
    lines = ["Traceback (most recent call last):\n", *traceback_module.format_tb(traceback)]
    error.in_color = _shell_has_color()
    try:
        return "".join([*lines, f"{type(error).__name__}: {error}"]).split("\n")
    finally:
        error.in_color = False


def _shell_has_color() -> bool:
    """True if the IPython shell that asks shows colors, as notebooks do."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return not os.environ.get("NO_COLOR") and str(getattr(shell, "colors", "nocolor")).lower() != "nocolor"


def _notebook_html(error: RelayError) -> str:
    """An error that is a value, as HTML for notebooks: its printed text."""
    shown = "\n\n".join(diagnostic.render(color=True) for diagnostic in error.diagnostics)
    return fragment(f"<pre>{from_terminal(shown)}</pre>")
