"""Output of `print`: the same text in every executor."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from relay.errors.raised import failure
from relay.ir.expr import Print


def check_format(specification: str, dtype: np.dtype[np.generic], rank: int) -> str | None:
    """The mistake in a format specification for tensors of this dtype and rank; None if it is valid."""
    if not specification:
        return None
    if rank:
        return f"the format {specification!r} is for scalars, found a tensor of rank {rank}"
    try:
        format(np.zeros((), dtype).item(), specification)
    except ValueError as error:
        return f"the format {specification!r} does not fit {dtype}: {error}"
    return None


def write(node: Print, values: Sequence[np.ndarray]) -> None:
    """Write the text of a `Print` with these values to `sys.stdout`. Raises ExecutionError if it `fails`."""
    parts = [node.pieces[0]]
    for value, specification, piece in zip(values, node.formats, node.pieces[1:], strict=True):
        array = np.asarray(value)
        parts.append(format(array.item(), specification) if specification else str(array))
        parts.append(piece)
    if node.fails:
        raise failure("".join(parts), node.span)
    sys.stdout.write("".join(parts))
