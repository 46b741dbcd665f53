"""Every program of the zoo in every mode: interpreted, compiled, differentiated by the transform and by the
interpreter."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from agreement import RELATIVE, assert_agree, assert_close, leaves, parts_of
from guarded import guarded
from matrix import quick, sample
from zoo import Program, programs

import relay
from relay.api.differentiation import PULLBACK
from relay.api.templates import derived_function
from relay.calling.results import wrap
from relay.eval import interpreter
from relay.frontend.data.values import make
from relay.ir.protocols import is_value
from relay.ir.structure import build, split
from relay.ir.validation.check import check
from relay.typecheck.elaboration.derivatives.templates import static_parameters

# Central differences in float64 with a step of 1e-6 are right to about 1e-9 of the value's scale.
DIFFERENCE = 2e-6

# Programs whose arguments lie on a kink, or whose numbers of rounds depend on them.
SINGULAR = ("untaken",)

ALL = sample(programs(), 8) if quick() else programs()
DIFFERENTIABLE = [p for p in ALL if p.differentiable]
COMPILED_TWICE = sample(DIFFERENTIABLE, 20)  # of which the second derivative is compiled, too
OPTIMIZED = sample(DIFFERENTIABLE, 150)  # whose gradients LLVM optimizes: others each day, and all values


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_compiled_equals_interpreted(program: Program) -> None:
    interpreted = program.function.interpret(*program.arguments)
    if program.expected is not None:
        assert_close(interpreted, program.expected, atol=1e-12)
    compiled = program.function(*guarded(program.arguments, end=True))
    assert_agree(compiled, interpreted, rtol=RELATIVE, atol=1e-12)


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_stages_are_well_formed(program: Program) -> None:
    typed = program.function.typed(*program.arguments)
    check(typed, "typed")
    core = program.function.core(*program.arguments)
    check(core, "structured")
    assert relay.to_text(core) == relay.to_text(core)


def numerical_gradient(program: Program) -> list[np.ndarray | None]:
    """Central finite differences of the compiled program with respect to every float leaf."""
    gradients: list[np.ndarray | None] = []

    def value(arguments: Any) -> float:
        return float(program.function(*arguments))  # which gives what the interpreter gives, and is fast

    def leaf_paths(part: Any, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        parts = parts_of(part)
        if parts is None:
            yield path
        else:
            for i, item in enumerate(parts):
                yield from leaf_paths(item, (*path, i))

    def replaced(part: Any, path: tuple[int, ...], new: Any) -> Any:
        if not path:
            return new
        parts = [replaced(p, path[1:], new) if i == path[0] else p for i, p in enumerate(parts_of(part) or ())]
        if is_value(part):
            fields = dict(zip(vars(part), parts, strict=True))
            return make(type(part).__relay_data__, type(part).__relay_constructor__, fields)
        structure = split(part)
        assert structure is not None
        return build(structure[0], parts)

    for path in leaf_paths(program.arguments, ()):
        leaf: Any = program.arguments
        for i in path:
            leaf = (parts_of(leaf) or ())[i]
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
def test_gradients_agree(program: Program, request: pytest.FixtureRequest) -> None:
    program.function.compile(*program.arguments)
    if program not in OPTIMIZED:
        request.getfixturevalue("low_effort")
    derivative = relay.grad(program.function)
    by_tape = derivative.interpret(*program.arguments)
    expected = numerical_gradient(program)
    has_kink = program.name in ("untaken",)  # the derivative at 0 is defined by the taken branch
    flat = list(leaves(by_tape))
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
        gradients = by_tape if isinstance(by_tape, tuple) else (by_tape,)
        assert_close(gradients, program.expected_gradient, rtol=1e-6, atol=1e-12)
    core = derivative.core(*program.arguments)
    check(core, "structured")
    lowered = derivative.lower(*program.arguments)
    transformed = wrap(interpreter.run(core, lowered.values), lowered.result)
    assert_agree(transformed, by_tape, rtol=1e-9, atol=1e-11)
    compiled = derivative(*program.arguments)
    assert_agree(compiled, by_tape, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("program", DIFFERENTIABLE, ids=lambda p: p.name)
def test_second_derivatives_agree(program: Program) -> None:
    """A Hessian times a vector: the interpreter's two tapes, the transform twice, and differences of the gradient."""
    arguments = program.arguments
    floats = [isinstance(a, np.ndarray | np.floating) and a.dtype == np.float64 for a in arguments]
    positions = [i for i, is_float in enumerate(floats) if is_float]
    if not positions or program.name in SINGULAR:
        pytest.skip("there is no second derivative to test")
    gradient = relay.grad(program.function, wrt=positions)
    parameters = static_parameters(len(arguments), [False] * len(arguments))
    pullback = derived_function(
        gradient, ("vjp", len(arguments)), lambda: PULLBACK.definition(gradient.__relay__, parameters, {})
    )
    weights = [
        np.asarray(np.cos(np.arange(np.size(arguments[i])) + i)).reshape(np.shape(arguments[i])) for i in positions
    ]
    given = (*arguments, weights[0] if len(positions) == 1 else tuple(weights))
    by_tape = pullback.interpret(*given)
    parts = by_tape if len(arguments) > 1 else (by_tape,)
    found = sum(float(np.sum(np.asarray(parts[i]) * w)) for i, w in zip(positions, weights, strict=True))

    def along(step: float) -> float:
        moved = list(arguments)
        for i, w in zip(positions, weights, strict=True):
            moved[i] = np.asarray(arguments[i]) + step * w
        slopes = gradient.interpret(*moved)
        slopes = (slopes,) if len(positions) == 1 else slopes
        return sum(float(np.sum(np.asarray(s) * w)) for s, w in zip(slopes, weights, strict=True))

    scale = max(abs(along(0.0)), 1.0)
    np.testing.assert_allclose(found, (along(1e-6) - along(-1e-6)) / 2e-6, rtol=1e-5, atol=1e-6 * scale)
    lowered = pullback.lower(*given)
    transformed = wrap(interpreter.run(lowered.core, lowered.values), lowered.result)
    assert_agree(transformed, by_tape, rtol=1e-8, atol=1e-10)
    if program in COMPILED_TWICE:
        assert_agree(pullback(*given), by_tape, rtol=1e-8, atol=1e-10)
