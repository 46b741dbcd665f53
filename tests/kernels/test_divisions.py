"""Indices of several axes of symbolic sizes are quotients of quotients. Their code divides and does not choose: a
choice in each would be copied by each one around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from symbolic_sizes import all_axes, elaborated
from tvm_ffi import structural_walk

import relay as R
from relay import relay
from relay.codegen.lowering import module_builder
from relay.codegen.tvm import tir
from relay.codegen.tvm.division import without_choices
from relay.codegen.tvm.tir import tirx
from relay.compilation.stages import to_core
from relay.ir.sizes.extents import Place
from relay.ir.sizes.facts import assume_facts


class _Lowered(BaseException):
    """The code is lowered: what LLVM would compile. No exception that a bug might raise, which would be reported as
    one."""


def choices(text: str, arguments: tuple[Any, ...], axes: list[Place], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The choices between integers in the code of a program that is compiled for all sizes of these axes, once TVM has
    lowered it."""
    found: list[Any] = []

    def lower(functions: dict[Any, Any], threads: int, calls: int, repeats: bool) -> Any:
        module = tir.lower_functions(functions, tir.target(threads, calls, repeats))
        for _, made in module.functions_items():
            structural_walk(made.body, ((tirx.Select, found.append),))
        raise _Lowered

    core = to_core(elaborated(R.from_source(text, {"R": R}), arguments, axes), 3)
    with monkeypatch.context() as patch, assume_facts(core.where), pytest.raises(_Lowered):
        patch.setattr(tir, "build", lower)
        module_builder.assemble(core, 1, {}, frozenset())
    return [str(choice) for choice in found if "int" in str(choice.ty)]


def test_indices_are_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = np.ones((2, 3, 4, 5, 6)), np.ones((3, 3, 3, 2, 3))
    channels = [Place(1, (), 0), Place(1, (), 1)]
    for rank in (1, 3):
        arguments = x[(..., *(0,) * (3 - rank))], w[(..., *(0,) * (3 - rank))]
        text = f"def f(x, w):\n    return R.conv{rank}d_transpose(x, w)\n"
        assert choices(text, arguments, [*all_axes(arguments[:1]), *channels], monkeypatch) == []
    steps = "    x = R.reshape(R.transpose(x), (m, n))\n" * 8
    text = f"def f(x):\n    n, m = x.shape\n{steps}    return R.reshape(x, (m * n,))\n"
    assert choices(text, (np.ones((3, 5)),), all_axes((np.ones((3, 5)),)), monkeypatch) == []


def test_what_may_be_negative_is_rounded_down() -> None:
    size, place = tirx.Var("size", "int64"), tirx.Var("place", "int64")
    small = tirx.Cast("int8", place)
    kept = [place - 3, small, place * -1, tirx.Cast("int64", small + small), tirx.Var("number", "int64") + place]
    changed = [place, place + size - 2, place * size + 1, tirx.min(place, size - 1), tirx.floormod(place - 9, size)]
    for dividend in (*kept, *changed):
        divisor = tirx.Cast(str(dividend.ty), size)
        for division in (tirx.FloorDiv, tirx.FloorMod):
            inner = tirx.Evaluate(division(dividend, divisor))
            loop = tirx.For(place, tirx.const(0, "int64"), size, tirx.ForKind.SERIAL, inner)
            made = without_choices(loop, {size: 2}).body.value
            assert isinstance(made, division) == any(dividend is other for other in kept), str(dividend)
    by_number = tirx.Evaluate(tirx.FloorDiv(size, tirx.const(-3, "int64")))
    assert isinstance(without_choices(by_number, {size: 2}).value, tirx.FloorDiv)


def test_integers_of_the_program_are_divided_as_ever() -> None:
    numbers = R.from_source(
        "@relay(dynamic=True)\ndef f(x, y):\n    return (R.arange(x.shape[0]) - 2) // y, x // 3\n",
        {"R": R, "relay": relay},
    )
    for length in (3, 7):
        x, y = np.arange(length) - 4, np.where(np.arange(length) % 2, 3, -2)
        for found, wanted in zip(numbers(x, y), ((np.arange(length) - 2) // y, x // 3), strict=True):
            np.testing.assert_array_equal(found, wanted)
