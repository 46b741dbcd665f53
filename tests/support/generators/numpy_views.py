"""Calls of NumPy whose results are views of their arguments, as NumPy itself says, in programs that change one of them
and read the other."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy_calls import ARRAYS


@attrs.frozen
class ViewProgram:
    """A program that changes a part of a call's result, or an argument, and returns all of them."""

    call: str
    text: str
    names: tuple[str, ...]

    @property
    def arguments(self) -> list[np.ndarray]:
        """Its arguments."""
        return [ARRAYS[name].copy() for name in self.names]

    def numpys(self) -> Any:
        """What NumPy gives."""
        return _run(self.text, self.arguments)


def _run(text: str, arguments: list[np.ndarray]) -> Any:
    names: dict[str, Any] = {"np": np, "math": math}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(text, names)
        return names["f"](*arguments)


def _arrays(value: Any, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(value, np.ndarray):
        yield path, value
    elif isinstance(value, tuple | list):
        for position, item in enumerate(value):
            yield from _arrays(item, f"{path}[{position}]")


def _is_writeable(array: np.ndarray) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arrays that are written to at many places at once
        return array.flags.writeable


def _mentioned(call: str) -> tuple[str, ...]:
    return tuple(sorted({name for name in re.findall(r"\b[a-z]+\d?\b", call) if name in ARRAYS}))


def view_programs(call: str) -> Iterator[ViewProgram]:
    """The programs of a call: none, if NumPy refuses it, or gives new arrays."""
    names = _mentioned(call)
    given = [ARRAYS[name].copy() for name in names]
    try:
        result = _run(f"def f({', '.join(names)}):\n    return {call}\n", given)
    except Exception:
        return
    header = f"def f({', '.join(names)}):\n"
    for name, before in zip(names, given, strict=True):
        if not np.array_equal(before, ARRAYS[name], equal_nan=before.dtype.kind == "f"):
            yield ViewProgram(call, f"{header}    y = {call}\n    return {name}\n", names)
    for path, array in _arrays(result):
        if not array.ndim or not array.size:
            continue
        for name, other in zip(names, given, strict=True):
            if not other.ndim or not np.shares_memory(array, other):  # an array of no axes is a number
                continue
            place = f"[{', '.join('0' * array.ndim)}]"
            if _is_writeable(array):
                lines = f"    y = {call}\n    z = y{path}\n    z{place} = 1\n    return {name}\n"
                yield ViewProgram(call, header + lines, names)
            if other.ndim:
                lines = f"    y = {call}\n    {name}[0] = 1\n    return y{path}\n"
                yield ViewProgram(call, header + lines, names)
