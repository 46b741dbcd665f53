"""Each pass alone and in any order: well-formed modules, the same types, the same answers to the last bit, the same
output, and nothing left to do when it runs again.

Every pass runs alone on every program of the zoo. All 200 orders of passes run every time: each on the programs of one
group, so that an order meets about ten programs, and a program about six orders. Which groups meet which orders changes
every day, by a seed that is printed (`RELAY_TEST_SEED` sets it), and `RELAY_TEST_ALL=1` (or `make test-all`) runs every
order on every program. Programs are small, and the interpreter runs
them. Effects count: an outcome is the result, or the message of the check that failed, and what was printed before, so
a pass that moves a `print` or a check over another one is found out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from agreement import assert_agree
from generators.random_modules import arguments, outcome, random_module
from hypothesis import given
from hypothesis import strategies as st
from matrix import SEED, everything
from zoo import programs

from relay.ir.analysis.alpha import alpha_equal
from relay.ir.expr import Function, Module
from relay.ir.types import FunctionType, RefType, StackType, TupleType
from relay.ir.validation.check import check
from relay.text.parser import parse
from relay.text.printer import to_text
from relay.transform.core.specialization import specialize
from relay.transform.core.structuring import structure
from relay.transform.passes import EXACT, LOSSY, PASSES, read_steps
from relay.transform.pipeline import LEVELS, PREPARATION

ALL = {p.name: p for p in programs()}
OPTIMIZATIONS = sorted(set(PASSES) - LOSSY - {"specialize", "structure", "differentiate"})
# Passes that are not exact sum in another order or multiply by a reciprocal: a few units in the last place, more where
# an iteration amplifies them.
ROUNDING = 1e-9
ORDERS, APART = 200, 33
"""How many orders of passes there are, and at what distance the programs of one group stand."""


@attrs.frozen
class Lowered:
    """A program of the zoo in the structured core, its text and its hash, which is the same for programs that differ
    in names; its arguments, and what the interpreter makes of it."""

    name: str
    module: Module
    text: str
    hash: str
    values: Sequence[Any]
    expected: object


def lowered(name: str) -> Lowered:
    program = ALL[name]
    kept = program.function.lower(*program.arguments)
    module = structure(specialize(kept.typed))
    expected = outcome(differentiated(module), kept.values)
    return Lowered(name, module, to_text(module), module.alpha_hash(), kept.values, expected)


@attrs.frozen
class Group:
    """Programs of the zoo at the same distance, in whose tests they are lowered once."""

    number: int
    programs: Sequence[Lowered]


@pytest.fixture(scope="module", params=range(APART))
def group(request: pytest.FixtureRequest) -> Group:
    return Group(request.param, [lowered(name) for name in list(ALL)[request.param :: APART]])


def differentiated(module: Module) -> Module:
    """A module that runs: without pending derivatives."""
    pending = any(not isinstance(f, Function) for f in module.functions.values())
    return PASSES["differentiate"](module) if pending else module


def without_cells(type_: Any) -> Any:
    """A type with the elements of lists without the cells that they may be in: callers pass either form."""
    match type_:
        case StackType(RefType(element)) | StackType(element):
            return StackType(without_cells(element))
        case TupleType(items):
            return attrs.evolve(type_, items=tuple(map(without_cells, items)))
        case FunctionType(parameters, result):
            return attrs.evolve(type_, parameters=tuple(map(without_cells, parameters)), result=without_cells(result))
        case _:
            return type_


def assert_harmless(before: Module, after: Module, values: Sequence[Any], expected: object, exact: bool) -> None:
    check(after, "structured")
    assert without_cells(after.main.type) == without_cells(before.main.type)
    found = outcome(differentiated(after), values)
    assert_agree(found, expected, ROUNDING, 1e-12, bits=exact)


def is_kept(before: Module, after: Module) -> bool:
    """True if a pass gave all functions back as they were."""
    return after is before or (
        (after.entry, after.data, after.where) == (before.entry, before.data, before.where)
        and list(after.functions) == list(before.functions)
        and all(after.functions[name] is function for name, function in before.functions.items())
    )


def test_each_pass_on_the_zoo(group: Group) -> None:
    for program in group.programs:
        for name in OPTIMIZATIONS:
            after = PASSES[name](program.module)
            if is_kept(program.module, after):
                continue
            if after.alpha_hash() == program.hash:  # nothing was done, and there is nothing new to run
                check(after, "structured")
                continue
            assert_harmless(program.module, after, program.values, program.expected, name in EXACT)
            again = PASSES[name](after)
            assert alpha_equal(again, after), f"{name}, {program.name}:\n{to_text(after)}\n\n{to_text(again)}"
        assert to_text(program.module) == program.text, f"a pass changed its input: {program.name}"


@pytest.mark.parametrize("name", OPTIMIZATIONS)
@given(seed=st.integers(0, 2**32))
def test_each_pass_on_random_programs(name: str, seed: int) -> None:
    before, values = structure(specialize(random_module(seed))), arguments(seed)
    after = PASSES[name](before)
    assert_harmless(before, after, values, outcome(before, values), name in EXACT)
    assert alpha_equal(PASSES[name](after), after)


def orders_of(number: int) -> range:
    """The orders of passes that a group of programs meets."""
    return range(ORDERS) if everything() else range((number + SEED) % APART, ORDERS, APART)


def test_every_program_meets_several_orders() -> None:
    met = Counter(order for number in range(APART) for order in orders_of(number))
    assert set(met) == set(range(ORDERS))
    assert min(len(orders_of(number)) for number in range(APART)) >= ORDERS // APART


def test_passes_in_any_order(group: Group) -> None:
    for number in orders_of(group.number):
        order = random.Random(number)
        names = order.sample(OPTIMIZATIONS * 2, len(OPTIMIZATIONS))
        exact = EXACT.issuperset(names)
        for program in group.programs:
            after = in_order(names, program.module)
            assert_harmless(program.module, after, program.values, program.expected, exact)
        seed = number if everything() else order.randrange(10**6) + SEED
        before, values = structure(specialize(random_module(seed))), arguments(seed)
        assert_harmless(before, in_order(names, before), values, outcome(before, values), exact)


def in_order(names: Sequence[str], module: Module) -> Module:
    """What these passes make of a module."""
    for step in read_steps(", ".join(names)):
        module = step(module)
    return module


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_levels_on_random_programs(level: int) -> None:
    for seed in random.Random(SEED).sample(range(10**6), 40):
        before = structure(specialize(random_module(seed)))
        values = arguments(seed)
        after = in_order((*PREPARATION[level], *LEVELS[level]), before)
        exact = EXACT.issuperset(name.partition("{")[0] for name in (*PREPARATION[level], *LEVELS[level]))
        assert_harmless(before, after, values, outcome(before, values), exact)


@given(seed=st.integers(0, 2**32))
def test_random_programs_are_read_back(seed: int) -> None:
    module = random_module(seed)
    for made in (module, structure(specialize(module)), PASSES["fuse"](structure(specialize(module)))):
        text = to_text(made)
        assert alpha_equal(parse(text), made)
        assert parse(text).alpha_hash() == made.alpha_hash()


def test_random_programs_have_everything() -> None:
    """Otherwise the tests above say less than they seem to."""
    text = "\n".join(to_text(random_module(seed)) for seed in range(60))
    for word in (
        "loop '",
        "for %",
        "if ",
        "match ",
        "read ",
        "write ",
        "push ",
        "get ",
        "print ",
        "assert ",
        "@g(",
        "@h(",
    ):
        assert word in text, word
