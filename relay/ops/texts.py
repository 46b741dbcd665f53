"""Text of numbers, as code points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay.errors import ExecutionError
from relay.ir.types import FunctionType
from relay.operator.facets import Batching
from relay.ops.notation import Pattern, Relation, Tensor, register_op
from relay.ops.samples import case, cases

LONGEST = 400
"""The most characters of one number."""


def _write(x: np.ndarray, form: np.ndarray) -> np.ndarray:
    """The number of characters and their code points. Raises ExecutionError for too many."""
    specification = "".join(map(chr, form))
    text = format(x.item(), specification) if specification else str(np.asarray(x))
    if len(text) > LONGEST:
        raise ExecutionError(f"the text of a number has {len(text)} characters; there may be {LONGEST}")
    found = np.zeros(LONGEST + 1, np.int32)
    found[: len(text) + 1] = len(text), *map(ord, text)
    return found


def _external(type_: FunctionType) -> Callable[..., None]:
    def run(x: np.ndarray, form: np.ndarray, out: np.ndarray) -> None:
        out[...] = _write(x, form)

    return run


_FORMAT = np.array([ord("8")], np.int32)


@register_op(
    relation=Relation("T, int32 -> int32", lambda x, form: (LONGEST + 1,)),
    pattern=Pattern.OPAQUE,
    external=_external,
    no_gradient="text has none",
    batching=Batching(),
    sampler=cases(case((), np.zeros(0, np.int32)), case((), _FORMAT)),
)
def characters(x: Tensor, form: Tensor) -> Tensor:
    """The text of a number as Python's `format` writes it: the number of its characters, and their code points, with
    zeros behind them. x: (T, ()), form: (int32, (n,)), the code points of the format -> (int32, (401,)).

    Raises ExecutionError for a text of more than 400 characters.

    >>> relay.characters(np.float32(0.5), np.int32([]))[:4]
    Array([ 3, 48, 46, 53], dtype=int32)
    """
    return _write(np.asarray(x), np.asarray(form))


def _text_of(codes: np.ndarray) -> str:
    return "".join(map(chr, codes))


def _parse(codes: np.ndarray, kind: type[int] | type[float], dtype: type[np.generic]) -> np.ndarray:
    """1 if Python reads a text as a number, else 0, and the number."""
    try:
        return np.array([1, kind(_text_of(codes))], dtype)
    except (ValueError, OverflowError):
        return np.zeros(2, dtype)


def _parser(kind: type[int] | type[float], dtype: type[np.generic]) -> Callable[[FunctionType], Callable[..., None]]:
    def external(type_: FunctionType) -> Callable[..., None]:
        def run(codes: np.ndarray, out: np.ndarray) -> None:
            out[...] = _parse(codes, kind, dtype)

        return run

    return external


_DIGITS = np.array([*map(ord, " 1_5 ")], np.int32)


@register_op(
    relation=Relation("int32 -> int64", lambda codes: (2,)),
    pattern=Pattern.OPAQUE,
    external=_parser(int, np.int64),
    no_gradient="text has none",
    batching=Batching(),
    sampler=cases(case(_DIGITS), case(np.zeros(0, np.int32))),
)
def parse_integer(codes: Tensor) -> Tensor:
    """1 if Python's `int` reads a text, else 0, and the number. codes: (int32, (n,)), code points -> (int64, (2,)).

    >>> relay.parse_integer(np.int32([45, 55]))
    Array([ 1, -7], dtype=int64)
    """
    return _parse(np.asarray(codes), int, np.int64)


@register_op(
    relation=Relation("int32 -> float64", lambda codes: (2,)),
    pattern=Pattern.OPAQUE,
    external=_parser(float, np.float64),
    no_gradient="text has none",
    batching=Batching(),
    sampler=cases(case(_DIGITS), case(np.zeros(0, np.int32))),
)
def parse_float(codes: Tensor) -> Tensor:
    """1 if Python's `float` reads a text, else 0, and the number. codes: (int32, (n,)), code points ->
    (float64, (2,)).

    >>> relay.parse_float(np.int32([46, 53]))
    Array([1. , 0.5], dtype=float64)
    """
    return _parse(np.asarray(codes), float, np.float64)
