"""How much a program may take: the C stack of its recursion, and the memory of data that grows.

RELAY_STACK_SIZE    the bytes of stack that a deep recursion may use; by default 1 GiB, or an eighth of the memory
RELAY_MEMORY_LIMIT  the bytes that the growing data of a call may take; by default nine tenths of what is available
"""

from __future__ import annotations

import contextvars
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from relay.errors import CompileError, ExecutionError

UNLIMITED = 2**63 - 1

_STACK_SIZE = 1 << 30
_RESERVE = 768 * 1024  # bytes of C stack that recursion leaves for kernels and callbacks
_PAGE = 4096
_ENOUGH = 4 << 20  # bytes of C stack for TVM and LLVM

_T = TypeVar("_T")
_U = TypeVar("_U")

_thread = threading.local()
_starting = threading.Lock()


def number(variable: str) -> int | None:
    """What an environment variable says; None if it is not set. Raises CompileError if that is no number from 1 on."""
    given = os.environ.get(variable, "").strip()
    if not given:
        return None
    if not given.isdecimal() or int(given) == 0:
        raise CompileError(f"{variable} is no number: {given!r}", help="set it to 1 or more")
    return int(given)


# ---- memory


def memory_limit() -> int:
    """The bytes that growing data may take. Raises CompileError for a wrong RELAY_MEMORY_LIMIT."""
    given = number("RELAY_MEMORY_LIMIT")
    if given is not None:
        return given
    available = _available()
    return UNLIMITED if available is None else available * 9 // 10


def _available() -> int | None:
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


# ---- the C stack


def stack_size() -> int:
    """The bytes of stack for recursion that a thread's own does not suffice for. Raises CompileError for a wrong
    RELAY_STACK_SIZE."""
    given = number("RELAY_STACK_SIZE")
    if given is not None:
        return max(given // _PAGE * _PAGE, 2 * _RESERVE)
    available = _available()
    return _STACK_SIZE if available is None else max(min(_STACK_SIZE, available // 8 // _PAGE * _PAGE), 2 * _RESERVE)


def stack_limit() -> int:
    """The lowest address of this thread's C stack that recursion may reach; 0 if it is not known."""
    limit: int | None = getattr(_thread, "limit", None)
    if limit is None:
        limit = _thread.limit = _find_stack_limit()
    return limit


def _find_stack_limit() -> int:
    lowest, size = _stack()
    return lowest + min(_RESERVE, size // 2)


def _stack() -> tuple[int, int]:
    """The lowest address of this thread's C stack, and its bytes; 0 if they are not known."""
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None, use_errno=True)
        attributes = (ctypes.c_char * 256)()
        libc.pthread_self.restype = ctypes.c_void_p
        if libc.pthread_getattr_np(ctypes.c_void_p(libc.pthread_self()), attributes) == 0:
            lowest, size = ctypes.c_void_p(), ctypes.c_size_t()
            libc.pthread_attr_getstack(attributes, ctypes.byref(lowest), ctypes.byref(size))
            libc.pthread_attr_destroy(attributes)
            return lowest.value or 0, size.value
    return 0, 0


def with_room(work: Callable[[], _T]) -> _T:
    """What `work` returns: a compiler needs a stack as the main thread has, and other threads may have less."""
    known: bool | None = getattr(_thread, "has_room", None)
    if known is None:
        known = _thread.has_room = not 0 < _stack()[1] < _ENOUGH
    found: list[_T] = []
    if known or not on_large_stack(lambda: found.append(work()), lambda: None):
        return work()
    return found[0]


def _started(context: contextvars.Context, target: Callable[[], None], size: int) -> threading.Thread | None:
    """A thread that runs something, with the largest stack of so many bytes, half of it, .. that there is."""
    with _starting:
        usual = threading.stack_size()
        try:
            while size >= 2 * _RESERVE:
                threading.stack_size(size)
                thread = threading.Thread(target=context.run, args=(target,), name="relay", daemon=True)
                try:
                    thread.start()
                    return thread
                except RuntimeError:  # there is not as much memory in one piece
                    size = size // 2 // _PAGE * _PAGE
        finally:
            threading.stack_size(usual)
    return None


def on_large_stack(run: Callable[[], object], stop: Callable[[], object]) -> bool:
    """Run something on a stack of `stack_size()` bytes, or of as many as the system gives, and wait for it; False if it
    gives hardly any.

    `stop` makes it end early: what a signal's handler raises meanwhile is raised when it has ended.
    """
    raised: list[BaseException] = []

    def target() -> None:
        try:
            run()
        except BaseException as error:
            raised.append(error)

    thread = _started(contextvars.copy_context(), target, stack_size())
    if thread is None:
        return False
    try:
        thread.join()
    except BaseException:
        stop()
        thread.join()
        raise
    if raised:
        raise raised[0]
    return True


def both(here: Callable[[], _T], beside: Callable[[], _U]) -> tuple[_T, _U]:
    """What both return, `beside` on another thread that has a stack for a compiler, or afterwards where the system
    gives none. Returns when both have ended, also if one raises; if both do, raises what `here` has raised."""
    found: list[_U] = []
    raised: list[BaseException] = []

    def target() -> None:
        try:
            found.append(beside())
        except BaseException as error:
            raised.append(error)

    thread = _started(contextvars.copy_context(), target, 2 * _ENOUGH)
    try:
        own = here()
    finally:
        while thread is not None and thread.is_alive():
            thread.join()
    if thread is None:
        target()
    if raised:
        raise raised[0]
    return own, found[0]


def too_large(what: str, error: MemoryError) -> ExecutionError:
    """The error for memory that Python does not get."""
    return ExecutionError(f"there is not enough memory for the program's {what}: {error}")
