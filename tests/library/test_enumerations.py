"""Members of enumerations that are known at run time only."""

from __future__ import annotations

import enum

import numpy as np
import pytest
from agreement import same

import relay as rl
from relay import relay
from relay.errors import ExecutionError, TypeCheckError, TypeMismatch

pytestmark = pytest.mark.usefixtures("low_effort")

EVENTS = np.array([0, 1, 0, 1, 1])


class State(enum.Enum):
    IDLE = "idle"
    RUN = "run"
    DONE = "done"

    @property
    def is_busy(self):
        return self == State.RUN

    def following(self):
        if self is State.IDLE:
            return State.RUN
        return State.DONE


class Color(enum.Enum):
    RED = 1.0
    GREEN = 2.0
    BLUE = 4.0


PRICES = {State.IDLE: 1.0, State.RUN: 2.0, State.DONE: 3.0}


def step(state, event):
    if event == 1:
        return State.RUN
    return state


@relay
def chosen(events):
    state, later, count = State.IDLE, State.IDLE, 0
    for e in events:
        if state == State.IDLE and e == 1:
            state = State.RUN
        elif state is State.RUN and e == 1:
            state = State.DONE
        elif state == State.DONE:
            count += 1
        later = step(later, e)
    member = state in (State.RUN, State.DONE), later != State.IDLE, later.is_busy, later.following() is State.DONE
    return count, state.value, state.name, f"{later} {[state]}", member, PRICES[state]


@relay
def matched(events):
    state, total = State.IDLE, 0.0
    for e in events:
        match state:
            case State.IDLE:
                state = State.RUN if e == 1 else state
            case State.RUN:
                total += 1.0
                state = State.DONE
            case State.DONE:
                total += 10.0
    return total


class Machine:
    def __init__(self):
        self.state, self.count = State.IDLE, 0

    def take(self, event):
        if self.state is State.IDLE and event == 1:
            self.state = State.RUN
        elif self.state is State.RUN:
            self.count += 1


@relay
def in_structures(events):
    machine = Machine()
    colors = []
    for e in events:
        machine.take(e)
        colors.append(Color.BLUE if e == 1 else Color.RED)
    return machine.count, machine.state is State.RUN, sum(c.value for c in colors), colors.count(Color.BLUE)


@relay
def of_value(x):
    return Color(x).value, Color(x) is Color.BLUE


def test_members_are_chosen_at_run_time() -> None:
    same(chosen, EVENTS)
    same(matched, EVENTS)
    same(in_structures, EVENTS)
    same(of_value, np.array(4.0))
    with pytest.raises(ExecutionError, match="no value of Color"):
        of_value(np.array(3.0))


def test_members_are_results() -> None:
    @relay
    def last(events):
        state = State.IDLE
        for e in events:
            state = step(state, e)
        return state, [State.DONE if e == 1 else state for e in events]

    for found in (last(EVENTS), last.interpret(EVENTS)):
        assert found[0] is State.RUN and found[1] == [State.RUN, State.DONE, State.RUN, State.DONE, State.DONE]


def test_derivatives_go_by_the_way_of_the_member() -> None:
    @relay
    def paid(x):
        color = Color.GREEN if x > 1.0 else Color.BLUE
        return x * color.value * (3.0 if color is Color.GREEN else 5.0)

    assert rl.grad(paid)(2.0) == 6.0 and rl.grad(paid)(0.5) == 20.0


def test_what_members_cannot_do_is_told() -> None:
    @relay
    def lacking(x):
        return {State.IDLE: 1.0, State.RUN: 2.0}[State.RUN if x > 0.0 else State.DONE]

    @relay
    def mixed(x):
        return (State.RUN if x > 0.0 else Color.RED) is State.RUN

    with pytest.raises(TypeCheckError, match=r"the dict has no key State\.DONE"):
        lacking(np.float32(1.0))
    with pytest.raises(TypeMismatch, match="State on one path and Color on another"):
        mixed(np.float32(1.0))
