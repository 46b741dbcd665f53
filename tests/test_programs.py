"""Every program of the zoo in every mode: interpreted, compiled, differentiated by the transform and by the
interpreter."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from programs import Program, programs

import relay
from relay.eval import interpreter
from relay.ir.check import check
from relay.ir.structure import build, fields_of, form_of

# Compiled float64 code may reassociate sums and uses other transcendental functions than NumPy: a few units in the
# last place, # more where they accumulate.
RELATIVE = 1e-10
# Central differences in float64 with a step of 1e-6 are right to about 1e-9 of the value's scale.
DIFFERENCE = 2e-6

ALL = programs()
DIFFERENTIABLE = [p for p in ALL if p.differentiable]


def _parts(value: Any) -> list[Any] | None:
    """The parts of a Python structure; None for anything else."""
    form = form_of(value)
    if form is not None:
        return fields_of(value, form)
    return list(value) if isinstance(value, tuple) else None


def _leaves(value: Any) -> Iterator[Any]:
    parts = _parts(value)
    if parts is None:
        yield value
    else:
        for item in parts:
            yield from _leaves(item)


def assert_close(found: Any, expected: Any, rtol: float = RELATIVE, atol: float = 1e-12) -> None:
    """Equal structure, dtypes and (nearly) values."""
    a, b = list(_leaves(found)), list(_leaves(expected))
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        if x is None or y is None:
            assert x is None and y is None
        else:
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=atol)


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_compiled_equals_interpreted(program: Program) -> None:
    interpreted = program.function.interpret(*program.arguments)
    if program.expected is not None:
        assert_close(interpreted, program.expected)
    compiled = program.function(*program.arguments)
    assert_close(compiled, interpreted)
    for a, b in zip(_leaves(compiled), _leaves(interpreted), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_stages_are_well_formed(program: Program) -> None:
    typed = program.function.typed(*program.arguments)
    check(typed, "typed")
    core = program.function.core(*program.arguments)
    check(core, "structured")
    assert relay.to_text(core) == relay.to_text(core)


def numerical_gradient(program: Program) -> list[np.ndarray | None]:
    """Central finite differences of the interpreted program with respect to every float leaf."""
    gradients: list[np.ndarray | None] = []

    def value(arguments: Any) -> float:
        return float(program.function.interpret(*arguments))

    def leaf_paths(part: Any, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        parts = _parts(part)
        if parts is None:
            yield path
        else:
            for i, item in enumerate(parts):
                yield from leaf_paths(item, (*path, i))

    def replaced(part: Any, path: tuple[int, ...], new: Any) -> Any:
        if not path:
            return new
        parts = [replaced(p, path[1:], new) if i == path[0] else p for i, p in enumerate(_parts(part) or ())]
        form = form_of(part)
        return tuple(parts) if form is None else build(form, parts)

    for path in leaf_paths(program.arguments, ()):
        leaf: Any = program.arguments
        for i in path:
            leaf = (_parts(leaf) or ())[i]
        if not isinstance(leaf, float | np.floating | np.ndarray) or np.asarray(leaf).dtype.kind != "f":
            gradients.append(None)
            continue
        base = np.array(leaf, dtype=np.asarray(leaf).dtype)
        result = np.zeros_like(base)
        for index in np.ndindex(base.shape):
            step = 1e-6 * max(1.0, abs(float(base[index])))
            high, low = copy.copy(base), copy.copy(base)
            high[index] += step
            low[index] -= step
            result[index] = (
                value(replaced(program.arguments, path, high)) - value(replaced(program.arguments, path, low))
            ) / (2 * step)
        gradients.append(result)
    return gradients


@pytest.mark.parametrize("program", DIFFERENTIABLE, ids=lambda p: p.name)
def test_gradients_agree(program: Program) -> None:
    derivative = relay.grad(program.function)
    by_tape = derivative.interpret(*program.arguments)
    expected = numerical_gradient(program)
    has_kink = program.name in ("untaken",)  # the derivative at 0 is defined by the taken branch
    flat = list(_leaves(by_tape))
    for missing in range(len(expected), len(flat)):  # parameters that have their defaults
        assert flat[missing] is None
    flat = flat[: len(expected)]
    if not has_kink:
        single = any(isinstance(a, float) for a in program.arguments)  # Python floats are float32
        for found, wanted in zip(flat, expected, strict=True):
            if wanted is None:
                assert found is None
            elif not single:
                np.testing.assert_allclose(np.asarray(found), wanted, rtol=DIFFERENCE, atol=DIFFERENCE)
    if program.expected_gradient is not None:
        assert_close(by_tape if isinstance(by_tape, tuple) else (by_tape,), program.expected_gradient, rtol=1e-6)
    core = derivative.core(*program.arguments)
    check(core, "structured")
    values = derivative._lower(program.arguments, {})[1]
    transformed = interpreter.run(core, values)
    assert_close(list(_leaves(_none_for_unit(transformed))), list(_leaves(by_tape)), rtol=1e-9, atol=1e-11)
    compiled = derivative(*program.arguments)
    assert_close(compiled, by_tape, rtol=1e-9, atol=1e-11)


def _none_for_unit(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_none_for_unit(v) for v in value) if value else None
    return value
