"""The elements of `te.compute`, seen before TVM goes through them.

TVM's constructor goes through each occurrence of a part, so an expression of twenty steps, each of which uses the one
before three times, would take it years.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from tvm.te import _ffi_api

_change: ContextVar[Callable[[Any], Any] | None] = ContextVar("_change", default=None)
_construct = _ffi_api.ComputeOp


def _construct_changed(name: str, tag: str, attributes: Any, axes: Any, bodies: Any) -> Any:
    change = _change.get()
    if change is not None:
        bodies = [change(body) for body in bodies]
    return _construct(name, tag, attributes, axes, bodies)


_ffi_api.ComputeOp = _construct_changed


@contextlib.contextmanager
def changed_bodies(change: Callable[[Any], Any]) -> Iterator[None]:
    """Let every `te.compute` compute what `change` makes of its element, on this thread."""
    token = _change.set(change)
    try:
        yield
    finally:
        _change.reset(token)
