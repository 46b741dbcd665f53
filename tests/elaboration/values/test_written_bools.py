"""Bools that calls write for parameters which must be known at compile time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def total(x, keep):  # type: ignore[no-untyped-def]
    return x.sum(axis=1, keepdims=keep)


def outer(x, keep):  # type: ignore[no-untyped-def]
    return total(x, keep) * 2.0


def with_options(x, **options):  # type: ignore[no-untyped-def]
    return x.sum(**options) if options["keepdims"] else -x.sum(**options)


def with_dict(x, options):  # type: ignore[no-untyped-def]
    return total(x, options["keep"]) * options["keep"]


def used_as_number(x, keep):  # type: ignore[no-untyped-def]
    return total(x, keep) * keep


def of_default(x, keep=False):  # type: ignore[no-untyped-def]
    return total(x, keep)


def recursive(x, depth, keep):  # type: ignore[no-untyped-def]
    return total(x, keep) if depth == 0 else recursive(x * 2.0, depth - 1, keep)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "position": lambda x: total(x, True),
    "name": lambda x: total(x, keep=True),
    "both": lambda x: total(x, True) + total(x, False)[0],
    "two levels": lambda x: outer(x, True) + outer(x, False)[0],
    "options": lambda x: (with_options(x, axis=1, keepdims=True), with_options(x, axis=1, keepdims=False)),
    "in a dict": lambda x: (with_dict(x, {"keep": True}), with_dict(x, {"keep": False})),
    "number": lambda x: (used_as_number(x, True), used_as_number(x, False)),
    "default": lambda x: (of_default(x), of_default(x, True)),
    "recursion": lambda x: recursive(x, 2, True),
    "chosen": lambda x: total(x, not False),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_written_bools_specialize_functions(name: str) -> None:
    program = relay.relay(PROGRAMS[name])
    wanted = relay.tree.leaves(PROGRAMS[name](X))
    for found in (program(X), program.interpret(X)):
        leaves = relay.tree.leaves(found)
        assert [np.shape(leaf) for leaf in leaves] == [np.shape(leaf) for leaf in wanted]
        for one, other in zip(leaves, wanted, strict=True):
            np.testing.assert_allclose(one, other)


def test_a_run_time_bool_is_an_error() -> None:
    with pytest.raises(relay.errors.TypeMismatch, match="keepdims must be known at compile time"):
        relay.relay(lambda x: total(x, x.sum() > 0))(X)
