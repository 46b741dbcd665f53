"""The table of programs: what `f.programs()` and `relay.explain` say of a function's calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import relay as module
from relay import FrontendError, TypeMismatch, relay


@dataclass
class Layer:
    weight: Any
    kind: Any


@relay
def total(x, mode="sum"):
    return x.sum() if mode == "sum" else x.max()


@relay
def scaled(layer, xs):
    return sum(x.sum() * layer.weight for x in xs) * (2.0 if layer.kind == "double" else 1.0)


@relay
def needs_three(x):
    return x[:3].sum() if x.shape[0] > 3 else x.sum()


@relay(static_argnames="n")
def powered(x, n):
    return x**n


def test_each_program_says_why_it_was_compiled_and_how_often_it_was_used() -> None:
    total.reload()
    assert str(total.programs()) == "no programs yet"
    assert str(relay.explain(total, np.ones(3))) == "there is no program yet\none would be compiled for these sizes"
    for size, count in ((3, 4), (4, 2), (5, 1), (3, 1)):
        for _ in range(count):
            total(np.ones(size))
    found = relay.explain(total, np.ones(3)).program
    assert found is not None and found.number == 2  # the program of the last call like this one is tried first
    total(np.ones(3), "max")
    total(np.float32(2.0), mode="max")
    programs = total.programs()
    assert [(p.signature, p.guards, p.reason, p.uses) for p in programs] == [
        ("x: Tensor[float64, (3,)], mode='sum'", (), "for the first call", 4),
        ("x: Tensor[float64, (x_0,)], mode='sum'", ("x_0 >= 2",), "axis 0 of x is 4, not 3", 4),
        ("x: Tensor[float64, (3,)], mode='max'", (), "mode is 'max', not 'sum'", 1),
        ("x: Tensor[float32, ()], mode='max'", (), "x is float32, not float64; x has 0 axes, not 1", 1),
    ]
    assert all(p.seconds is not None and p.seconds > 0.0 for p in programs)
    assert programs[2].specialized == ("mode='max'",)
    assert "compiled in" in str(programs) and "used 4 times" in str(programs) and "used once" in str(programs)


def test_what_was_only_interpreted_is_not_compiled() -> None:
    powered.reload()
    powered.interpret(2.0, 3)
    (program,) = powered.programs()
    assert program.seconds is None and program.uses == 0 and "not compiled yet" in str(program)
    assert program.signature == "x: Tensor[float32, ()], n=3"
    powered(2.0, 3)
    (program,) = powered.programs()
    assert program.seconds is not None and program.uses == 1


def test_a_call_is_explained_by_the_guards_that_fail() -> None:
    needs_three.reload()
    for size in (5, 6):
        needs_three(np.ones(size))
    assert relay.explain(needs_three, np.ones(9)).program is not None
    found = relay.explain(needs_three, np.ones(2))
    assert found.program is None and found.compiles == "one would be compiled with axis 0 of x symbolic"
    assert found.refusals[0] == "program 1: axis 0 of x is 2, not 5"
    assert found.refusals[1].startswith("program 2: the program assumes x_0 >= 4 (at ")
    assert len(needs_three.programs()) == 2  # nothing was compiled
    needs_three(np.ones(2))
    assert len(needs_three.programs()) == 3
    found = relay.explain(needs_three, np.ones(2))
    assert found.program is not None and found.program.number == 3


def test_structures_differ_at_a_place() -> None:
    scaled.reload()
    scaled(Layer(1.0, "plain"), [np.ones(2)])
    found = relay.explain(scaled, Layer(np.ones(2), "double"), [np.ones(2)])
    assert found.refusals == (
        "program 1: layer.weight is float64 (2,), not a Python float; layer.kind is 'double', not 'plain'",
    )
    for count in (2, 3, 4):
        scaled(Layer(1.0, "plain"), [np.ones(2)] * count)
    one, other = scaled.programs()
    assert one.specialized == ("layer.kind='plain'",) and other.uses == 3
    assert other.reason == "xs is a list of any length, not a list of 1"
    found = relay.explain(scaled, Layer(1.0, "plain"), [np.ones(2)] * 9)
    assert found.program is not None and found.program.number == 2


def test_derivatives_have_tables_of_their_own() -> None:
    gradient = relay.grad(total, wrt="x")
    gradient.reload()
    gradient(np.ones(3))
    assert [p.uses for p in gradient.programs()] == [1]
    assert module.explain(gradient, np.ones(3)).program is not None


def test_wrong_arguments_are_told_as_a_call_tells_them() -> None:
    with pytest.raises(FrontendError, match="explain takes a decorated function, found builtin_function_or_method"):
        module.explain(len, 1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match="is a Python object"):
        relay.explain(total, object())


def test_lists_of_other_elements_are_told_apart() -> None:
    @module.relay
    def summed(xs: list[float]):
        return sum(xs)

    for given in ([1.0], [], [np.float32(1.0)]):
        summed(given)
    reasons = [p.reason for p in summed.programs()]  # the annotation says what the empty one would hold
    assert reasons[1:] == ["xs is a list of float32, not a list of a Python float"]
