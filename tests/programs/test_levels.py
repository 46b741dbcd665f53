"""The zoo at every level of optimization, values and gradients: compiled programs give what the interpreter gives.

Every program runs at every level, and the gradients of some at one more level than `test_programs.py` has them: a
sample that differs from the next day's. `RELAY_TEST_ALL=1` runs every gradient at every level.
"""

from __future__ import annotations

import functools
from typing import Any

import attrs
import pytest
from agreement import assert_close
from matrix import SEED, everything, sample
from zoo import Program, programs

import relay
from relay.function import RelayFunction
from relay.transform.pipeline import LEVELS

ALL = programs()
POSITION = {program: position for position, program in enumerate(ALL)}
OTHERS = [level for level in range(len(LEVELS)) if level != 2]  # test_programs.py has all programs at this level
SAMPLED = 40  # gradients that are compiled at one more level


def cases(chosen: list[Program], complete: bool) -> list[Any]:
    """Programs with levels: all levels, or one of each program that changes with it and with the day."""
    pairs = [
        (program, level)
        for program in chosen
        for level in (OTHERS if complete else [OTHERS[(POSITION[program] + SEED) % len(OTHERS)]])
    ]
    return [pytest.param(program, level, id=f"{program.name}-{level}") for program, level in pairs]


def at_level(function: RelayFunction, level: int) -> RelayFunction:
    return RelayFunction(function.__relay__, attrs.evolve(function._options, opt_level=level))


GRADIENTS = cases(sample([p for p in ALL if p.differentiable], SAMPLED), everything())


@functools.cache
def interpreted(program: Program) -> Any:
    return program.function.interpret(*program.arguments)


@functools.cache
def interpreted_gradient(program: Program) -> Any:
    return relay.grad(program.function).interpret(*program.arguments)


@pytest.mark.parametrize(("program", "level"), cases(ALL, True))
def test_values_at_each_level(program: Program, level: int) -> None:
    assert_close(at_level(program.function, level)(*program.arguments), interpreted(program))


@pytest.mark.parametrize(("program", "level"), GRADIENTS)
def test_gradients_at_each_level(program: Program, level: int) -> None:
    derivative = at_level(relay.grad(program.function), level)
    assert_close(derivative(*program.arguments), interpreted_gradient(program), rtol=1e-9, atol=1e-11)
