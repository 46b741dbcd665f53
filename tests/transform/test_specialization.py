"""Specialization and the structured form, on programs built by hand."""

from __future__ import annotations

import pytest
from transform_programs import (
    FF,
    PROGRAMS,
    Build,
    F,
    Program,
    Z,
    assert_bound_once,
    assert_first_order,
    assert_modules_agree,
    assert_structured,
    function,
    give,
    leave,
    lowered,
    module,
    real,
    straight,
    twice,
    whole,
)

from relay.errors import CompileError
from relay.ir.expr import Atom, Block, Exit, Function, Global, LoopLabel, Terminator, Var
from relay.ir.traverse import all_blocks, blocks
from relay.ir.types import DataType, FunctionType
from relay.ir.validation.check import check
from relay.transform.core.specialization import specialize
from relay.transform.core.structuring import structure

# ---- tests of specialization and structure


@pytest.mark.parametrize("name", PROGRAMS)
def test_specialized_program_gives_the_same(name: str) -> None:
    before = PROGRAMS[name].make()
    after = specialize(before)
    assert_first_order(after)
    assert_bound_once(after)
    assert_modules_agree(before, after, PROGRAMS[name])
    assert_modules_agree(before, specialize(after), PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_structured_program_gives_the_same(name: str) -> None:
    before = PROGRAMS[name].make()
    after = structure(specialize(before))
    assert_structured(after)
    assert_bound_once(after)
    assert_modules_agree(before, after, PROGRAMS[name])
    again = structure(after)
    assert_structured(again)
    assert len(again.data) == len(after.data)
    assert_modules_agree(before, again, PROGRAMS[name])


@pytest.mark.parametrize("name", ["straight", "early_return", "unrolled", "power", "counting"])
def test_simple_programs_need_no_data_type(name: str) -> None:
    assert not lowered(name).data


def test_specializations_are_shared() -> None:
    """tw^6 makes one function for each level, not 2^6."""
    assert len(specialize(twice()).functions) == 8


def test_many_early_returns_nest_little() -> None:
    def f(b: Build, label: LoopLabel, x: Var) -> Terminator:
        for k in range(2000):
            b.branch([], (b.op("equal", x, real(k)), leave(label, real(k * 2))))
        return Exit(label, (x,))

    def carrying(b: Build, label: LoopLabel, x: Var) -> Terminator:
        for k in range(300):
            x = b.op("subtract", x, real(1))
            b.branch([], (b.op("less", x, real(0)), leave(label, real(k))))
        return Exit(label, (x,))

    for write, cases in ((f, (0.0, 1999.0, -1.0)), (carrying, (0.5, 70.5, 130.5, 299.5, 400.0))):
        before = module(function("f", [F], F, write))
        after = structure(before)
        assert_structured(after)
        assert_bound_once(after)
        assert_modules_agree(before, after, Program(straight, tuple((c,) for c in cases)))
        assert _depth(after.main.body) < 100


def _depth(part: Block) -> int:
    return 1 + max((_depth(b) for binding in part.bindings for b in blocks(binding.value)), default=0)


def test_functions_chosen_at_run_time_become_data() -> None:
    def f(b: Build, x: Var) -> Atom:
        g = b.lam("g", [F], F, lambda c, v: c.op("add", v, x))
        h = b.lam("h", [F], F, lambda c, v: c.op("multiply", v, x))
        (chosen,) = b.branch([FF], (b.op("less", x, real(0)), give(g)), orelse=give(h))
        return b.call(chosen, x)

    before = module(function("f", [F], F, f))
    after = specialize(before)
    assert_first_order(after)
    assert_bound_once(after)
    check(after, "core")
    (closure,) = after.data
    assert [len(c.fields) for c in closure.constructors] == [1, 1]
    assert_modules_agree(before, after, Program(straight, ((-2.0,), (3.0,))))


def test_growing_closures_become_recursive_data() -> None:
    type_ = FunctionType((FF, Z, F), F)

    def grow(b: Build, label: LoopLabel, g: Var, n: Var, x: Var) -> Terminator:
        b.branch([], (b.op("equal", n, whole(0)), lambda c: Exit(label, (c.call(g, x),))))
        wrapped = b.lam("wrapped", [F], F, lambda c, v: c.op("add", c.call(g, v), v))
        return Exit(label, (b.call(Global("grow", type_), wrapped, b.op("subtract", n, whole(1)), x),))

    def f(b: Build, x: Var) -> Atom:
        g = b.lam("g", [F], F, lambda c, v: c.op("add", v, x))
        return b.call(Global("grow", type_), g, whole(3), x)

    before = module(function("f", [F], F, f), function("grow", [FF, Z, F], F, grow))
    after = specialize(before)
    assert_first_order(after)
    assert_bound_once(after)
    check(after, "core")
    (closure,) = after.data
    assert any(DataType(closure) in c.fields for c in closure.constructors)
    assert_modules_agree(before, after, Program(straight, ((-2.0,), (3.0,))))


def test_entry_that_takes_functions_is_refused() -> None:
    entry = function("f", [FF, F], F, lambda b, g, x: b.call(g, x))
    with pytest.raises(CompileError, match="the entry of a compiled program cannot take or return functions"):
        specialize(module(entry))


def test_all_blocks_have_types() -> None:
    for name in PROGRAMS:
        for made in lowered(name).functions.values():
            assert isinstance(made, Function)
            assert all(b.terminator is not None for b in all_blocks(made.body))
