"""Axis names: the meaning of a tensor's axes, independent of their extents.

A layout is a word whose letters name the axes, NCHW; other names are words themselves, ("batch", "feature"). An axis
without a name, `_` in a layout and None in a tuple, agrees with every name. Names tell users and the checker; types
that differ in them only are equal, and finished modules have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from relay.errors import FrontendError

AxisNames: TypeAlias = tuple[str | None, ...]

ResultNames: TypeAlias = "AxisNames | list[ResultNames] | None"
"""Names of the axes of a result; of each one in a list, where there are several."""

NAMES_HELP = "write a layout, Tensor[Float, (n, c, h, w), NCHW], or names, Tensor[Float, dict(batch=n, feature=d)]"

NCW, NWC, NCHW, NHWC, NCDHW, NDHWC = "NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"  # batch, channels, space
CHW, HWC, OIHW, HWIO = "CHW", "HWC", "OIHW", "HWIO"  # an image; the weights of a convolution


def read_names(given: object, rank: int | None) -> AxisNames | None:
    """The names that a user gave: a layout as a string, or a sequence of names and None; `rank` is the number of axes,
    None where it is open. Raises FrontendError."""
    if given is None:
        return None
    if isinstance(given, str):
        found: Sequence[object] = tuple(None if letter == "_" else letter for letter in given)
    elif isinstance(given, tuple | list):
        found = [None if name == "_" else name for name in given]
    else:
        raise FrontendError(f"{given!r} names no axes", help=NAMES_HELP)
    for name in found:
        if name is not None and not (isinstance(name, str) and name.isidentifier()):
            raise FrontendError(f"{name!r} is not a name for an axis", help=NAMES_HELP)
    if rank is None:
        raise FrontendError("names are for shapes whose number of axes is known", help=NAMES_HELP)
    if len(found) != rank:
        raise FrontendError(f"{len(found)} names for a shape with {rank} axes: {axes_text(given)}", help=NAMES_HELP)
    return tuple(found) if any(found) else None  # type: ignore[arg-type]


def axes_text(names: object) -> str:
    """Names for a message: `NCHW`, `(batch, feature)`."""
    if isinstance(names, str):
        return names
    words = ["_" if name is None else str(name) for name in names]  # type: ignore[attr-defined]
    is_layout = words and all(word == "_" or (len(word) == 1 and word.isupper()) for word in words)
    return "".join(words) if is_layout else f"({', '.join(words)})"


def show_named(base: str, dims: Sequence[str], names: AxisNames) -> str:
    """A tensor type with names, as users write it."""
    shape = f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"
    if all(name is None or (len(name) == 1 and name.isupper()) for name in names):
        return f"Tensor[{base}, {shape}, {axes_text(names)}]"
    if None not in names and len(set(names)) == len(names):
        fields = ", ".join(f"{name}={dim}" for name, dim in zip(names, dims, strict=True))
        return f"Tensor[{base}, dict({fields})]"
    words = ", ".join("None" if name is None else f'"{name}"' for name in names)
    return f"Tensor[{base}, {shape}, ({words}{',' * (len(names) == 1)})]"


def agree(first: AxisNames, second: AxisNames) -> bool:
    """True if no axis, counted from the first, has two names."""
    return all(a is None or b is None or a == b for a, b in zip(first, second, strict=False))


def order(found: AxisNames, wanted: AxisNames) -> tuple[int, ...] | None:
    """The order that a transposition puts `found` into to make it `wanted`; None if there is not just one."""
    if len(set(wanted)) < len(wanted) or set(found) != set(wanted) or len(found) != len(wanted):
        return None
    return tuple(found.index(name) for name in wanted)


def position(name: str, names: AxisNames | None) -> int | None:
    """The position of the axis with this name; None if there is none, or several."""
    return names.index(name) if names is not None and names.count(name) == 1 else None
