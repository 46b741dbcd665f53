"""Agreement of the modes: interpreted, compiled, at each level of optimization, differentiated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from relay.api.differentiation import grad
from relay.api.function import RelayFunction
from relay.eval.values import Data, Reference, Stack
from relay.ir.annotations.annotation import Ref
from relay.ir.protocols import is_value
from relay.ir.structure import split

RELATIVE = 1e-10
"""Compiled float64 code may reassociate sums and uses other transcendental functions than NumPy: a few units in the
last place, more where they accumulate."""

Tolerances = Mapping[str, tuple[float, float]]
"""By how much floats may differ, by the name of their dtype: relative to the number, and absolutely."""

ROUNDING: Tolerances = {
    "float64": (1e-10, 1e-10),
    "float32": (4e-6, 4e-6),
    "float16": (2e-3, 2e-3),
    "bfloat16": (2.0**-6, 2.0**-6),
}
"""For answers of two modes: some units in the last place of numbers near 1."""


def parts_of(value: Any) -> list[Any] | None:
    """The parts of a Python structure, of a value of a data type, or of one of the interpreter's values; None for
    anything else."""
    match value:
        case Data():
            return list(value.fields)
        case Reference():
            return [value.content]
        case Ref():
            return [value.value]
        case Stack():
            elements = value.buffer[: value.length]  # in cells or not
            return [e.content if isinstance(e, Reference) else e for e in elements]
    if is_value(value):
        return list(vars(value).values())
    structure = split(value)
    return None if structure is None else list(structure[1])


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of a structure, from left to right."""
    parts = parts_of(value)
    if parts is None:
        yield value
    else:
        for item in parts:
            yield from leaves(item)


def assert_close(found: Any, expected: Any, rtol: float = RELATIVE, atol: float = 1e-14) -> None:
    """Assert that a result is what NumPy, or Python, computes: nearly the same numbers, from left to right. An array
    may also be expected as a list. Raises AssertionError."""
    one, other = list(leaves(found)), list(leaves(expected))
    if len(one) == 1 and len(other) != 1:
        other = [expected]
    _require(len(one) == len(other), f"{len(one)} numbers or arrays instead of {len(other)}")
    for part, wanted in zip(one, other, strict=True):
        if part is None or wanted is None:
            _require(part is None and wanted is None, f"{part!r} instead of {wanted!r}")
        else:
            np.testing.assert_allclose(np.asarray(part), np.asarray(wanted), rtol=rtol, atol=atol)


def assert_agree(
    found: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    tolerances: Tolerances = ROUNDING,
    bits: bool = False,
    what: str = "",
) -> None:
    """Assert that two results of Relay are equal: the same structures, dtypes and shapes; the same integers, bools
    and strings; and floats that differ by what `tolerances` allow, or `rtol` and `atol` (0 where only `rtol` is
    given): with `bits` not at all, not even in the sign of a zero. NaNs are equal, and functions are not compared.
    `what` is part of the AssertionError's message."""
    one, other = parts_of(found), parts_of(expected)
    if one is not None and other is not None:
        kinds = _kind(found), _kind(expected)
        _require(kinds[0] is kinds[1], f"{what}: a {kinds[0].__name__} instead of a {kinds[1].__name__}")
        if isinstance(expected, Data):
            _require(found.constructor == expected.constructor, f"{what}: another constructor")
        _require(len(one) == len(other), f"{what}: {len(one)} parts instead of {len(other)}")
        for part, wanted in zip(one, other, strict=True):
            assert_agree(part, wanted, rtol, atol, tolerances, bits, what)
        return
    if found is None or expected is None:
        _require(found is expected, f"{what}: {found!r} instead of {expected!r}")
        return
    if isinstance(found, str) or isinstance(expected, str):
        _require(isinstance(found, str) and found == expected, f"{what}: {found!r} instead of {expected!r}")
        return
    if callable(expected):
        _require(callable(found), f"{what}: {found!r} instead of a function")
        return
    array, wanted = np.asarray(found), np.asarray(expected)
    types = [f"{a.dtype} {a.shape}" for a in (array, wanted)]
    _require((array.dtype, array.shape) == (wanted.dtype, wanted.shape), f"{what}: {types[0]} instead of {types[1]}")
    _assert_close_arrays(array, wanted, rtol, atol, tolerances, bits, what)


def _kind(value: Any) -> type:
    """The class of a structure. A tuple without a form of its own is a `tuple`, as all gradients of a function are."""
    structure = split(value) if isinstance(value, tuple) else None
    return tuple if structure is not None and structure[0] is None else type(value)


def _assert_close_arrays(
    array: np.ndarray,
    wanted: np.ndarray,
    rtol: float | None,
    atol: float | None,
    tolerances: Tolerances,
    bits: bool,
    what: str,
) -> None:
    rounding = tolerances.get(array.dtype.name)
    if rounding is None or bits:
        np.testing.assert_array_equal(array, wanted, err_msg=what)
        if rounding is not None:
            np.testing.assert_array_equal(np.signbit(array), np.signbit(wanted), err_msg=what)
        return
    relative, absolute = rounding if rtol is None else (rtol, 0.0)
    absolute = absolute if atol is None else atol
    wide = array.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(*wide, rtol=relative, atol=absolute, err_msg=what)


def _require(condition: bool, message: str) -> None:
    """An assertion that `python -O` keeps."""
    if not condition:
        raise AssertionError(message)


def at_level(function: RelayFunction, level: int) -> RelayFunction:
    """The function, compiled at another level of optimization."""
    return RelayFunction(function.__relay__, attrs.evolve(function._options, opt_level=level))


def assert_modes_agree(
    function: Any,
    *arguments: Any,
    expected: Any = None,
    levels: Iterable[int] = (),
    gradient: bool = False,
    calls: int = 1,
    rtol: float | None = None,
    atol: float | None = None,
) -> Any:
    """A decorated function gives the same compiled as interpreted.

    Args:
        expected: what both give, where that is known.
        levels: further levels of optimization at which it is compiled.
        gradient: also its gradient is compared, for functions with one float as result.
        calls: how often the compiled function is called; a call that is like an earlier one takes a shorter way.
        rtol, atol: by how much floats may differ, relative to the number and absolutely. Default: some units in the
            last place of numbers near 1, as compiled code adds in another order than NumPy and has other
            transcendental functions; of float64 1e-10, float32 4e-6, float16 2e-3, bfloat16 1.6e-2.

    Structures, dtypes, shapes, integers and bools have to be the same. NaNs are equal. Returns what the compiled
    function gives. Raises AssertionError.
    """
    interpreted = function.interpret(*arguments)
    for _ in range(calls):
        compiled = function(*arguments)
        assert_agree(compiled, interpreted, rtol, atol)
    for level in levels:
        assert_agree(at_level(function, level)(*arguments), interpreted, rtol, atol)
    if expected is not None:
        for found in (interpreted, compiled):
            assert_close(found, expected, RELATIVE if rtol is None else rtol, 1e-14 if atol is None else atol)
    if gradient:
        assert_modes_agree(grad(function), *arguments, levels=levels, calls=calls, rtol=rtol, atol=atol)
    return compiled
