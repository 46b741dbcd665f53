"""Native (C) stacks of programs and of the compiler."""

from __future__ import annotations

import contextvars
import ctypes
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from relay.support.limits import PAGE, RESERVE, stack_size

_ENOUGH = 4 << 20  # bytes of C stack for TVM and LLVM

_T = TypeVar("_T")
_U = TypeVar("_U")

_thread = threading.local()
_starting = threading.Lock()


def stack_limit() -> int:
    """The lowest address of this thread's C stack that recursion may reach; 0 if it is not known."""
    limit: int | None = getattr(_thread, "limit", None)
    if limit is None:
        limit = _thread.limit = _find_stack_limit()
    return limit


def _find_stack_limit() -> int:
    lowest, size = _stack()
    return lowest + min(RESERVE, size // 2)


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
    """The result of `work`: a compiler needs a stack as the main thread has, and other threads may have less."""
    known: bool | None = getattr(_thread, "has_room", None)
    if known is None:
        known = _thread.has_room = not 0 < _stack()[1] < _ENOUGH
    found: list[_T] = []
    if known or not on_large_stack(lambda: found.append(work()), lambda: None):
        return work()
    return found[0]


def _start_thread(context: contextvars.Context, target: Callable[[], None], size: int) -> threading.Thread | None:
    """A thread that runs something, with the largest stack of this many bytes, half of it, .. that there is."""
    with _starting:
        usual, asked = threading.stack_size(), 0
        try:
            while size >= 2 * RESERVE:
                threading.stack_size(size)
                asked = size
                thread = threading.Thread(target=context.run, args=(target,), name="relay", daemon=True)
                try:
                    thread.start()
                    return thread
                except RuntimeError:  # there is not as much memory in one piece
                    size = size // 2 // PAGE * PAGE
        finally:
            found = threading.stack_size(usual)
            if found != asked:  # other threads may have set it meanwhile
                threading.stack_size(found)
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

    thread = _start_thread(contextvars.copy_context(), target, stack_size())
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


def run_both(here: Callable[[], _T], beside: Callable[[], _U]) -> tuple[_T, _U]:
    """The results of both, `beside` on another thread that has a stack for a compiler, or afterwards where the
    system gives none. Returns when both have ended, also if one raises; if both do, raises the error of `here`."""
    found: list[_U] = []
    raised: list[BaseException] = []

    def target() -> None:
        try:
            found.append(beside())
        except BaseException as error:
            raised.append(error)

    thread = _start_thread(contextvars.copy_context(), target, 2 * _ENOUGH)
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
