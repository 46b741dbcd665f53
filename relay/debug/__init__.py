"""Debugging: what a program does, and where it goes wrong, with a step debugger on the interpreter.

What looks at compiled code is imported when it is asked for; the rest needs no compiler.
"""

import importlib
from typing import TYPE_CHECKING

from relay.debug.breakpoints import Breakpoint
from relay.debug.non_finite import Finding, error_of_call, find_nan
from relay.debug.session import Session, Stop, step
from relay.debug.statistics import Statistics
from relay.debug.tracing import Row, Trace, trace

if TYPE_CHECKING:
    from relay.debug.differences import Cause, Difference, diff
    from relay.debug.profiling.machine import machine_peak
    from relay.debug.profiling.profile import profile
    from relay.debug.profiling.report import Profile

_OF_COMPILED_CODE = {
    **dict.fromkeys(("Cause", "Difference", "diff"), "differences"),
    "machine_peak": "profiling.machine",
    "profile": "profiling.profile",
    "Profile": "profiling.report",
}


def __getattr__(name: str) -> object:
    if name not in _OF_COMPILED_CODE:
        raise AttributeError(f"module 'relay.debug' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"relay.debug.{_OF_COMPILED_CODE[name]}"), name)
    return found


__all__ = [
    "Breakpoint",
    "Cause",
    "Difference",
    "Finding",
    "Profile",
    "Row",
    "Session",
    "Statistics",
    "Stop",
    "Trace",
    "diff",
    "error_of_call",
    "find_nan",
    "machine_peak",
    "profile",
    "step",
    "trace",
]
