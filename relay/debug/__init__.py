"""See what a program does, and where it goes wrong: a step debugger on the interpreter."""

from relay.debug.breakpoints import Breakpoint
from relay.debug.differences import Cause, Difference, diff
from relay.debug.non_finite import Finding, error_of_call, find_nan
from relay.debug.profiling.machine import machine_peak
from relay.debug.profiling.profile import profile
from relay.debug.profiling.report import Profile
from relay.debug.session import Session, Stop, step
from relay.debug.statistics import Statistics
from relay.debug.tracing import Row, Trace, trace

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
