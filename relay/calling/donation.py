"""Donated arguments: buffers that a function may reuse for its results.

An `Array` that was donated cannot be used afterwards. NumPy's arrays cannot be taken from those who hold them: their
contents are whatever the call left there.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from relay.calling import marshalling
from relay.calling.array import Array
from relay.calling.devices.device_array import DeviceArray, array_content, from_dlpack
from relay.codegen.cuda.tensors import DeviceTensor
from relay.errors import ExecutionError, FrontendError, InternalError, RelayError, TypeMismatch
from relay.ir.annotations.annotation import Ref
from relay.ir.expr import Function
from relay.ir.tree import node_of

_ONLY = 2
"""The result of `sys.getrefcount` for an array that only its `Array` refers to."""


def donated_names(function: Function, names: str | Sequence[str], positions: int | Sequence[int]) -> frozenset[str]:
    """The parameters that `donate_argnames` and `donate_argnums` say.

    Raises FrontendError for what is not a parameter, and for static ones.
    """
    known = [parameter.name for parameter in function.parameters]
    found: set[str] = set()
    for position in (positions,) if isinstance(positions, int) else positions:
        if not -len(known) <= position < len(known):
            count = f"{len(known)} parameter{'s' * (len(known) != 1)}"
            raise FrontendError(f"donate_argnums: {function.name} has {count}, and none at {position}", function.span)
        found.add(known[position])
    for name in (names,) if isinstance(names, str) else names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            help = f"did you mean {close[0]!r}?" if close else None
            raise FrontendError(f"donate_argnames: {function.name} has no parameter {name!r}", function.span, help=help)
        found.add(name)
    for parameter, description in zip(function.parameters, function.signature, strict=False):
        if description.static and parameter.name in found:
            raise FrontendError(f"{parameter.name} is static, so it has no memory to donate", function.span)
    return frozenset(found)


class DonatedArguments:
    """The donated arguments of one call.

    Raises TypeMismatch if one shares memory with another argument. If others refer to the memory, as after `a.numpy()`,
    the call takes a copy instead.
    """

    def __init__(self, function: str, names: Sequence[str], arguments: Sequence[Any], donated: Iterable[str]) -> None:
        self._function = function
        wanted = frozenset(donated)
        self._arrays: list[Array] = []
        spans: list[tuple[int, int, bool, str]] = []
        for name, argument in zip(names, arguments, strict=False):
            for leaf in _leaves(argument):
                is_donated = name in wanted
                if isinstance(leaf, Array):
                    if is_donated:
                        self._arrays.append(leaf)
                    leaf = array_content(leaf)
                if leaf.size > 1:
                    spans.append((*_span(leaf), is_donated, name))
        self._refuse_overlap(spans)
        for array in self._arrays:
            if not isinstance(array, DeviceArray) and sys.getrefcount(array._value) > _ONLY:
                array._value = array._value.copy()

    def _refuse_overlap(self, spans: list[tuple[int, int, bool, str]]) -> None:
        end, before = -1, ""
        donated_end, donated_name = -1, ""
        for first, last, is_donated, name in sorted(spans):
            other = before if is_donated and first < end else donated_name if first < donated_end else None
            if other is not None:
                which, rest = (name, other) if is_donated else (other, name)
                text = "other parts of it share" if which == rest else f"argument {rest} shares"
                raise TypeMismatch(
                    f"argument {which} of {self._function} is donated, and {text} its memory",
                    help="pass a copy of one of them",
                )
            if last > end:
                end, before = last, name
            if is_donated and last > donated_end:
                donated_end, donated_name = last, name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Once the program has run, also if it failed there, the arrays are used up."""
        if isinstance(error, RelayError | InternalError) and not isinstance(error, ExecutionError):
            return
        for array in self._arrays:
            array.donate(self._function)


def _span(array: np.ndarray | DeviceTensor) -> tuple[int, int]:
    """The addresses from which on, and up to which, an array lies."""
    if isinstance(array, DeviceTensor):
        return array.memory.address, array.memory.address + array.nbytes
    if array.flags.c_contiguous:
        start: int = array.__array_interface__["data"][0]
        return start, start + array.nbytes
    return np.lib.array_utils.byte_bounds(array)


def _leaves(argument: Any) -> Iterator[Any]:
    """The arrays in an argument. Those in values of recursive data types are copied by each call."""
    pending = [argument]
    while pending:
        item = pending.pop()
        if isinstance(item, Array | np.ndarray):
            yield item
        elif hasattr(item, "__dlpack__"):
            yield from_dlpack(item)
        elif marshalling.is_value(item) and marshalling.is_recursive(type(item).__relay_data__):
            continue
        elif not isinstance(item, Ref) and (found := node_of(item)) is not None:
            pending.extend(reversed(found[1]))
