"""Members of enumerations at run time: those of an IntEnum are the numbers that they equal."""

from enum import IntEnum

import numpy as np

from relay import relay
from zoo import Program


class Op(IntEnum):
    PUSH = 0
    ADD = 1
    MULTIPLY = 2
    JUMP = 3
    HALT = 4


@relay
def stack_machine(code, x):
    """The code comes from data, and is compared with the members."""
    stack, at = [x], 0
    while at < len(code):
        op, argument = code[at]
        at += 1
        if op == Op.PUSH:
            stack.append(float(argument))
        elif op in (Op.ADD, Op.MULTIPLY):
            b, a = stack.pop(), stack.pop()
            stack.append(a + b if op == Op.ADD else a * b)
        elif op == Op.JUMP:
            at = argument
        elif Op.HALT == op:
            break
        else:
            raise ValueError(f"there is no operation {op}")
    return stack[-1] * stack[0]


class Phase(IntEnum):
    UP = 0
    DOWN = 1
    FLAT = 2


@relay
def phase_of(difference):
    if difference > 0.5:
        return Phase.UP
    if difference < -0.5:
        return Phase.DOWN
    return Phase.FLAT


@relay
def turns(x):
    """Which member a variable, a result or an element of a list is decides the run."""
    phase, seen, counts = Phase.FLAT, [], np.zeros(3)
    for i in range(1, len(x)):
        new = phase_of(x[i] - x[i - 1])
        match new:
            case Phase.FLAT:
                continue
            case _:
                counts[new] += 1
        if phase != new:
            seen.append(new)
            phase = new
    return seen, counts[Phase.UP] + 10 * counts[Phase.DOWN] + Phase.FLAT, phase == Phase.DOWN


_CODE = np.array([(0, 3), (2, 0), (3, 4), (4, 0), (0, 2), (1, 0), (4, 0)])
_X = np.array([0.0, 1.0, 2.0, 1.0, 1.25, 0.0])

PROGRAMS = [
    Program(stack_machine, (_CODE, np.float64(1.5)), expected=6.5**2),
    Program(turns, (_X,), differentiable=False, expected=([np.int32(0), np.int32(1)], 24.0, True)),
]
