"""Gradients checked against finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.array import Array
from relay.differentiation import vjp
from relay.errors import DifferentiationError, TypeCheckError
from relay.frontend.values import is_value, make
from relay.ir.definition import DataClass
from relay.ir.structure import build, fields_of, form_of

Path: TypeAlias = tuple["str | int", ...]


@attrs.frozen
class _Precision:
    """How finite differences are taken: `step` is relative to the argument, `tolerance` to the gradient."""

    step: float
    tolerance: float


# Central differences with step h err by about h^2 (the third derivative) and eps/h (rounding): h = eps^(1/3) is best.
_DOUBLE = _Precision(np.finfo(np.float64).eps ** (1 / 3), 1e-5)
_SINGLE = _Precision(float(np.finfo(np.float32).eps) ** (1 / 3), 2e-2)


def check_gradient(
    f: Any,
    *arguments: Any,
    wrt: int | str | Sequence[int | str] | None = None,
    step: float | None = None,
    tolerance: float | None = None,
) -> float:
    """Compare the gradient of f at these arguments with central finite differences.

    Every float element of the arguments is checked, in structures and data types, too. A result of several elements is
    multiplied with fixed weights and summed. float16 and float32 arguments become float64 before, so that differences
    are meaningful; only where f's annotations ask for another type, they stay, and the differences are coarse: step and
    tolerance are then chosen for float32.

    Args:
        wrt: the positions or names of the parameters that are checked, as for `grad`. Default: all.
        step: of the differences, relative to each element (at least to 1). Default: the cube root of the precision.
        tolerance: the largest relative error that passes. Default: 1e-5; where float64 is impossible 2e-2.

    Returns the largest relative error. Raises DifferentiationError if it exceeds the tolerance; the message says where.
    """
    given, precision = tuple(map(_copied, arguments)), _DOUBLE
    wide = tuple(_mapped(a, lambda leaf: leaf.astype(np.float64)) for a in given)
    try:
        f.typed(*wide)
        given = wide
    except TypeCheckError:
        if any(leaf.dtype != np.float64 for a in given for _, leaf in _leaves(a)):
            precision = _SINGLE
    step = precision.step if step is None else step
    tolerance = precision.tolerance if tolerance is None else tolerance

    value, pullback = vjp(f, *given)
    weights = _mapped(_plain(value), _weights)
    found = pullback(_only_floats(weights))
    gradients = (found,) if len(given) == 1 else tuple(found)

    def total(changed: tuple[Any, ...]) -> float:
        pairs = zip(_leaves(_plain(f(*changed))), _leaves(weights), strict=True)
        return math.fsum(float(np.sum(np.asarray(v, np.float64) * w)) for (_, v), (_, w) in pairs)

    worst = (0.0, "", 0.0, 0.0)
    scale = max([abs(total(given)), *(float(np.max(np.abs(g), initial=0.0)) for _, g in _leaves(_plain(gradients)))])
    checked = _positions(f, wrt, len(given))
    for path, leaf in list(_leaves(given)):
        if path[0] not in checked:
            continue
        gradient = np.asarray(_at(gradients, path))
        for index in np.ndindex(leaf.shape):
            change = step * max(1.0, abs(float(leaf[index])))
            ends = []
            for sign in (1.0, -1.0):
                moved = leaf.copy()
                moved[index] += sign * change
                ends.append((float(moved[index]), total(_replaced(given, path, moved))))
            expected = (ends[0][1] - ends[1][1]) / (ends[0][0] - ends[1][0])
            here = float(gradient[index])
            error = abs(here - expected) / max(abs(here), abs(expected), 1e-3 * scale, 1e-30)
            if not error <= worst[0]:  # also for NaN
                worst = (error, _described(f, path, index), here, expected)
    if not worst[0] <= tolerance:
        raise DifferentiationError(
            f"the gradient of {f.__name__} with respect to {worst[1]} is {worst[2]:.9g}, finite differences give"
            f" {worst[3]:.9g}: a relative error of {worst[0]:.2g}, more than {tolerance:g}",
            f._function.span,
        )
    return worst[0]


def _positions(f: Any, wrt: int | str | Sequence[int | str] | None, count: int) -> set[int]:
    """The positions of the arguments that are checked. Raises TypeCheckError for parameters that there are not."""
    if wrt is None:
        return set(range(count))
    names = [p.name for p in f._function.parameters]
    found = set()
    for item in (wrt,) if isinstance(wrt, int | str) else wrt:
        position = names.index(item) if item in names else item
        if isinstance(position, str) or not -len(names) <= position < len(names):
            raise TypeCheckError(f"wrt: there is no parameter {item!r}; there are {', '.join(names)}")
        found.add(position % len(names))
    return found


def _weights(leaf: np.ndarray) -> np.ndarray:
    """Fixed numbers between 1 and 2, bare ones for a single element."""
    spread = np.cos(np.arange(leaf.size, dtype=np.float64)) / 2 + 1.5 if leaf.size > 1 else np.ones(leaf.size)
    return spread.reshape(leaf.shape).astype(leaf.dtype)


# ---- structures of arrays


def _plain(value: Any) -> Any:
    """The value with NumPy arrays in place of Relay's."""
    return _walked(value, lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf)


def _copied(value: Any) -> Any:
    def leaf(part: Any) -> Any:
        array = np.array(part) if isinstance(part, np.ndarray | np.generic | Array | float) else part
        return array

    return _walked(value, leaf)


def _mapped(value: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """The structure with its float arrays changed."""
    return _walked(value, lambda leaf: change(leaf) if _is_float(leaf) else leaf)


def _only_floats(value: Any) -> Any:
    return _walked(value, lambda leaf: leaf if _is_float(leaf) else None)


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and (leaf.dtype.kind == "f" or leaf.dtype.name == "bfloat16")


def _parts(value: Any) -> dict[str | int, Any] | None:
    """The parts of a structure or of a value of a data type, by name or position."""
    if is_value(value):
        return dict(vars(value))
    form = form_of(value)
    if form is not None:
        return dict(zip(form.names or range(len(fields_of(value, form))), fields_of(value, form), strict=True))
    return dict(enumerate(value)) if isinstance(value, tuple) else None


def _rebuilt(value: Any, parts: list[Any]) -> Any:
    if is_value(value):
        owner: DataClass = type(value).__relay_data__
        return make(owner, type(value).__relay_constructor__, dict(zip(vars(value), parts, strict=True)))
    form = form_of(value)
    return tuple(parts) if form is None else build(form, parts)


def _walked(value: Any, change: Callable[[Any], Any]) -> Any:
    parts = _parts(value)
    return change(value) if parts is None else _rebuilt(value, [_walked(p, change) for p in parts.values()])


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, np.ndarray]]:
    parts = _parts(value)
    if parts is None:
        if _is_float(value):
            yield path, value
        return
    for key, part in parts.items():
        yield from _leaves(part, (*path, key))


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = (_parts(value) or {})[key]
    return value


def _replaced(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    parts = _parts(value) or {}
    return _rebuilt(value, [_replaced(p, path[1:], new) if k == path[0] else p for k, p in parts.items()])


def _described(f: Any, path: Path, index: tuple[int, ...]) -> str:
    position, *rest = path
    parameters = f._function.parameters
    assert isinstance(position, int)
    name = parameters[position].name if position < len(parameters) else f"argument {position}"
    inside = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in rest)
    element = f"[{', '.join(map(str, index))}]" if index else ""
    return f"{name}{inside}{element}"
