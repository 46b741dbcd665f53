"""Tiling choices: loop tiles that measurements have chosen, and the options that there are.

A kernel goes by a name made of what it computes, so a choice holds for all programs that compute the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TypeAlias

import attrs

_number = attrs.validators.optional(attrs.validators.and_(attrs.validators.instance_of(int), attrs.validators.ge(1)))
_text = attrs.validators.optional(attrs.validators.instance_of(str))
_truth = attrs.validators.optional(attrs.validators.instance_of(bool))


@attrs.frozen
class TilingChoice:
    """The loops of a kernel; None: by rule. `rule` is the schedule rule that is preferred where it applies. A tile of a
    product is `height` rows of `vectors` vectors, which stay in registers.

    Raises TypeError or ValueError for an invalid choice, which a file may contain."""

    height: int | None = attrs.field(default=None, validator=_number)
    vectors: int | None = attrs.field(default=None, validator=_number)
    packed: bool | None = attrs.field(default=None, validator=_truth)  # copy panels of the right operand
    parallel: bool | None = attrs.field(default=None, validator=_truth)
    rule: str | None = attrs.field(default=None, validator=_text)


DEFAULT = TilingChoice()


@attrs.frozen
class HandSchedule:
    """The loops of a kernel that the program chooses: blocks of an elementwise kernel, or what `choice` has. `cache`:
    blocks have copies of what they read."""

    choice: TilingChoice
    tile: tuple[int, ...] = ()
    vectorize: bool = True
    unroll: bool = False
    cache: bool = False


Choices: TypeAlias = Mapping[str, TilingChoice]
"""Choices by the kernels' names."""


@attrs.frozen
class Tilings:
    """The possible tiles of a schedule rule."""

    tiles: tuple[tuple[int, int], ...]  # height and vectors
    packed: tuple[bool, ...]
    parallel: tuple[bool, ...]


@attrs.frozen
class TilingOptions:
    """The possible choices for a kernel: the schedule rules that apply, where there are several, and the tilings of
    those that have some."""

    rules: tuple[str, ...]
    tilings: Mapping[str, Tilings]


def kernel_name(key: object) -> str:
    """The name of the kernel with this key, the same in every process."""
    return hashlib.sha256(repr(key).encode()).hexdigest()
