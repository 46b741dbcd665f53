"""Whether the modes agree: interpreted, compiled, at each level of optimization, differentiated.

assert_modes_agree(f, x, y)                        compiled gives what the interpreter gives
assert_modes_agree(f, x, y, expected=np.sin(x))    and both are this
assert_modes_agree(f, x, y, levels=(0, 3), gradient=True, calls=2)

assert_agree(found, expected)    two answers of Relay: the same structures, dtypes and shapes, and nearly the same
                                 numbers
assert_close(found, expected)    an answer and what NumPy, or Python, says: nearly the same numbers
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs
import numpy as np

import relay
from relay.frontend.data.values import is_value
from relay.function import RelayFunction
from relay.ir.structure import split

# Compiled float64 code may reassociate sums and uses other transcendental functions than NumPy: a few units in the
# last place, more where they accumulate.
RELATIVE = 1e-10

ROUNDING = {"float64": 1e-10, "float32": 4e-6, "float16": 2e-3, "bfloat16": 2.0**-6}
"""By how much answers of two modes may differ, relative to the number and absolutely: some units in the last place of
numbers near 1."""


def parts_of(value: Any) -> list[Any] | None:
    """The parts of a Python structure or a value of a data type; None for anything else."""
    if is_value(value):
        return list(vars(value).values())
    structure = split(value)
    return None if structure is None else list(structure[1])


def leaves(value: Any) -> Iterator[Any]:
    """What a structure holds, from left to right."""
    parts = parts_of(value)
    if parts is None:
        yield value
    else:
        for item in parts:
            yield from leaves(item)


def assert_close(found: Any, expected: Any, rtol: float = RELATIVE, atol: float = 1e-14) -> None:
    """Nearly the same numbers, from left to right. An array may also be expected as a list."""
    one, other = list(leaves(found)), list(leaves(expected))
    if len(one) == 1 and len(other) != 1:
        other = [expected]
    assert len(one) == len(other), f"{len(one)} numbers or arrays instead of {len(other)}"
    for part, wanted in zip(one, other, strict=True):
        if part is None or wanted is None:
            assert part is None and wanted is None
        else:
            np.testing.assert_allclose(np.asarray(part), np.asarray(wanted), rtol=rtol, atol=atol)


def assert_agree(found: Any, expected: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """The same structures, dtypes and shapes; the same integers and bools, and floats that differ by roundings
    (`ROUNDING`) or by what is given: `atol` is 0 where only `rtol` is."""
    one, other = parts_of(found), parts_of(expected)
    if one is not None and other is not None:
        assert type(found) is type(expected), f"a {type(found).__name__} instead of a {type(expected).__name__}"
        assert len(one) == len(other), f"{len(one)} parts instead of {len(other)}"
        for part, wanted in zip(one, other, strict=True):
            assert_agree(part, wanted, rtol, atol)
        return
    if found is None or expected is None:
        assert found is None and expected is None
        return
    array, wanted = np.asarray(found), np.asarray(expected)
    assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape)
    rounding = ROUNDING.get(array.dtype.name)
    if rounding is None:
        np.testing.assert_array_equal(array, wanted)
        return
    if atol is None:
        atol = rounding if rtol is None else 0.0
    relative = rounding if rtol is None else rtol
    np.testing.assert_allclose(array.astype(np.float64), wanted.astype(np.float64), rtol=relative, atol=atol)


def modes(function: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What calls a decorated function compiled, and what has the interpreter run it: `for run in modes(f): run(x)`."""
    return function, function.interpret


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
    """A decorated function gives the same compiled as interpreted (`assert_agree`), in each of so many `calls`, and at
    further `levels`; both give what is `expected`, where that is known (`assert_close`); so does its `gradient`, but
    for what is expected. Returns what the compiled function gives."""
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
        assert_modes_agree(relay.grad(function), *arguments, levels=levels, calls=calls, rtol=rtol, atol=atol)
    return compiled
