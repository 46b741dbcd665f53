"""The zoo at every level of optimization, values and gradients: compiled programs give what the interpreter gives.

Every program runs at every level, and the gradients of some at one more level than `test_zoo.py` has them: a sample
that differs from the next day's. `RELAY_TEST_ALL=1` runs every gradient at every level. Machine code depends on what
the passes have made of a program and on nothing else, so what two levels make of a program alike is compiled once.
Here the passes are tested, and LLVM does little.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from agreement import RELATIVE, assert_agree, at_level
from matrix import SEED, everything, sample
from zoo import Program, programs

import relay
from relay.transform.pipeline import LEVELS

ALL = programs()
POSITION = {program: position for position, program in enumerate(ALL)}
ELSEWHERE = 2  # test_zoo.py has all programs at this level
OTHERS = [level for level in range(len(LEVELS)) if level != ELSEWHERE]
SAMPLED = 40  # gradients that are compiled at one more level


@functools.cache
def interpreted_gradient(program: Program) -> Any:
    return relay.grad(program.function).interpret(*program.arguments)


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_values_at_each_level(program: Program) -> None:
    function, arguments = program.function, program.arguments
    interpreted = function.interpret(*arguments)
    compiled = {function.core(*arguments).alpha_hash()}
    for level in OTHERS:
        other = at_level(function, level)
        made = other.core(*arguments).alpha_hash()
        if made not in compiled:
            compiled.add(made)
            assert_agree(other(*arguments), interpreted, rtol=RELATIVE, atol=1e-12)


def gradients() -> list[Any]:
    """Programs with levels: all levels, or one of each program that changes with it and with the day."""
    pairs = [
        (program, level)
        for program in sample([p for p in ALL if p.differentiable], SAMPLED)
        for level in (OTHERS if everything() else [OTHERS[(POSITION[program] + SEED) % len(OTHERS)]])
    ]
    return [pytest.param(program, level, id=f"{program.name}-{level}") for program, level in pairs]


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize(("program", "level"), gradients())
def test_gradients_at_each_level(program: Program, level: int) -> None:
    derivative = at_level(relay.grad(program.function), level)
    assert_agree(derivative(*program.arguments), interpreted_gradient(program), rtol=1e-9, atol=1e-11)
