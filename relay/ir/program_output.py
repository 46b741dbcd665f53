"""Output of `print`: the same text in every executor."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from relay.errors.raised import failure
from relay.ir.expr import Print

TEXT, QUOTED = "!s", "!r"
"""The formats of strings, whose code points are the value: as they are, and as Python writes them in a program."""


def check_format(specification: str, dtype: np.dtype[np.generic], rank: int) -> str | None:
    """The mistake in a format specification for tensors of this dtype and rank; None if it is valid."""
    if not specification or specification in (TEXT, QUOTED):
        return None
    if rank:
        return f"the format {specification!r} is for scalars, found a tensor of rank {rank}"
    try:
        format(np.zeros((), dtype).item(), specification)
    except ValueError as error:
        return f"the format {specification!r} does not fit {dtype}: {error}"
    return None


def _formatted(array: np.ndarray, specification: str) -> str:
    if specification in (TEXT, QUOTED):
        text = "".join(map(chr, array.tolist()))
        return text if specification == TEXT else repr(text)
    return format(array.item(), specification) if specification else str(array)


def write(node: Print, values: Sequence[np.ndarray]) -> None:
    """Write the text of a `Print` with these values to `sys.stdout`. Raises ExecutionError if it `fails`."""
    parts = [node.pieces[0]]
    for value, specification, piece in zip(values, node.formats, node.pieces[1:], strict=True):
        parts.append(_formatted(np.asarray(value), specification))
        parts.append(piece)
    if node.fails:
        raise failure("".join(parts), node.span)
    sys.stdout.write("".join(parts))
