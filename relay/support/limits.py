"""Resource limits of a program: the stack of its recursion, and the memory of dynamic data.

RELAY_STACK_SIZE    the bytes of stack that a deep recursion may use; by default 1 GiB, or an eighth of the memory
RELAY_MEMORY_LIMIT  the bytes that the growing data of a call may take; by default nine tenths of what is available
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from relay.errors import CompileError, ExecutionError

UNLIMITED = 2**63 - 1

RESERVE = 768 * 1024
"""The bytes of C stack that recursion leaves for kernels and callbacks."""

PAGE = 4096
"""The bytes of which stacks are multiples."""

_STACK_SIZE = 1 << 30
_LONGEST = 40  # characters of a wrong value that are shown


def number(variable: str) -> int | None:
    """The number in an environment variable; None if it is not set. Raises CompileError for no number from 1 on."""
    given = os.environ.get(variable, "").strip()
    if not given:
        return None
    if not re.fullmatch(r"0*[1-9][0-9]{0,18}", given):
        shown = given if len(given) <= _LONGEST else f"{given[:_LONGEST]}.."
        raise CompileError(f"{variable} is not a number: {shown!r}", help="set it to 1 or more")
    return min(int(given), UNLIMITED)


def memory_limit() -> int:
    """The bytes that growing data may take. Raises CompileError for a wrong RELAY_MEMORY_LIMIT."""
    given = number("RELAY_MEMORY_LIMIT")
    if given is not None:
        return given
    available = _available_memory()
    return UNLIMITED if available is None else available * 9 // 10


def _available_memory() -> int | None:
    """The bytes of memory that this process could get now, if the system tells."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
        group = Path("/sys/fs/cgroup")
        found.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):  # another system, or no limit there
        pass
    return max(0, min(found)) if found else None


def stack_size() -> int:
    """The bytes of the stack for recursions that overflow the thread's own. Raises CompileError for a wrong
    RELAY_STACK_SIZE."""
    given = number("RELAY_STACK_SIZE")
    if given is not None:
        return max(given // PAGE * PAGE, 2 * RESERVE)
    available = _available_memory()
    return _STACK_SIZE if available is None else max(min(_STACK_SIZE, available // 8 // PAGE * PAGE), 2 * RESERVE)


def too_deep(levels: int) -> ExecutionError:
    """The error for recursion that has used up the stack, at this many levels."""
    return ExecutionError(
        f"recursion deeper than {levels}: the stack is used up",
        help=f"use a loop, or set RELAY_STACK_SIZE to more than its {stack_size()} bytes",
    )


def too_large(what: str, error: MemoryError) -> ExecutionError:
    """The error for memory that Python does not get."""
    return ExecutionError(f"there is not enough memory for the program's {what}: {error}")
