"""Random sequences of kernels, compiled together at several sizes, give what the interpreter gives.

Two kernels that are right may be wrong together: they share memory, and each is a part of the function that calls it. A
program runs at the sizes with which it was written, and then at others, through the symbolic program.

A sample runs each day; `RELAY_TEST_SEED` repeats a day, `RELAY_TEST_ALL` runs 2,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import ml_dtypes
import numpy as np
import pytest
from generators.random_kernels import FLOATS, Array, Parameter, RandomKernels, random_kernels
from generators.random_programs import function_of, random_program_of_a_vector
from matrix import SEED, everything

import relay
from relay import RelayFunction
from relay.codegen.kernels import kernels, loops
from relay.operator import lookup

COUNT = 2000 if everything() else 20
TOGETHER = 10  # programs in one test

ROUNDINGS = {"float64": 1e-11, "float32": 1e-5, "float16": 2.0**-7, "bfloat16": 2.0**-4}
"""Errors of a few kernels, relative to the largest number of a result: sums are added in another order, and half floats
are rounded after each step in one of the modes only."""

MORE = 20
"""How many times the effect of one rounding of the arguments a result may differ that is not within those."""


def outcomes(program: RandomKernels) -> Iterator[str]:
    """What is wrong with a compiled program, at each of its sizes."""
    function = program.function()
    for number in range(len(program.sizes)):
        arguments = program.arguments(number)
        with np.errstate(all="ignore"):
            try:
                wanted = _arrays(function.interpret(*arguments))
            except relay.RelayError:
                wanted = None
        try:
            found = _arrays(function(*arguments))
        except relay.RelayError as error:
            if wanted is not None:
                yield f"refused at {program.sizes[number]}: {error}"
            continue
        if wanted is None and not program.is_whole:
            continue  # what fails may be needed by no result
        if wanted is None:
            yield f"not refused at {program.sizes[number]}, found {found}"
        elif difference := _difference(program, arguments, found, wanted):
            yield f"wrong at {program.sizes[number]}: {difference}"


def _arrays(result: object) -> list[Array]:
    return [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]


def _difference(program: RandomKernels, arguments: Sequence[Array], found: list[Array], wanted: list[Array]) -> str:
    """What differs, beyond the roundings; empty if nothing does."""
    for n, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"result {n} is {one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
        if other.dtype.name not in FLOATS:
            if not np.array_equal(one, other):
                return f"result {n} is {one} instead of {other}"
        elif not _close(one, other, _size(other) * ROUNDINGS[_coarsest(program, other)]):
            changes = [_change(program, arguments, n, seed) for seed in range(4)]
            if not _close(one, other, MORE * max(changes) + _size(other) * ROUNDINGS[_coarsest(program, other)]):
                return f"result {n} is {one} instead of {other}"
    return ""


def _coarsest(program: RandomKernels, result: Array) -> str:
    """The dtype with the largest roundings among those that a result may depend on."""
    order = list(FLOATS)
    names = [p.dtype for p in program.parameters if p.dtype in order] + [result.dtype.name]
    names += [
        d for d in ("float32", "float16", "bfloat16") if d.replace("bf", "BF").replace("f", "F", 1) in program.text
    ]
    return max(names, key=order.index)


def _size(array: Array) -> float:
    wide = np.abs(array.astype(np.float64))
    return float(wide[np.isfinite(wide)].max(initial=1.0))


def _close(found: Array, wanted: Array, error: float) -> bool:
    return np.allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=error, equal_nan=True)


def _change(program: RandomKernels, arguments: Sequence[Array], position: int, seed: int) -> float:
    """How much a result changes where the float arguments do by some roundings."""
    rng = np.random.default_rng(seed)
    changed = []
    for array in arguments:
        if array.dtype.name in FLOATS:
            step = float(ml_dtypes.finfo(array.dtype).eps)
            wide = array.astype(np.float64)
            array = (wide + (np.abs(wide) + 0.1) * step * rng.uniform(-2, 2, array.shape)).astype(array.dtype)
        changed.append(array)
    function = program.function()
    with np.errstate(all="ignore"):
        first, second = (_arrays(function.interpret(*given))[position] for given in (arguments, changed))
    difference = np.abs(first.astype(np.float64) - second.astype(np.float64))
    return float(difference[np.isfinite(difference)].max(initial=0.0))


@pytest.mark.parametrize("start", range(0, COUNT, TOGETHER))
def test_random_kernels(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if start // TOGETHER % 2:  # as programs run by default
        monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
        monkeypatch.setenv("RELAY_NUM_THREADS", "2")
    for number in range(start, start + TOGETHER):
        seed = SEED * 10_000 + number
        program = random_kernels(seed)
        assert list(outcomes(program)) == [], f"random_kernels({seed}):\n{program.text}"


def test_a_wrong_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_VERIFY", "0")  # which would notice it first
    monkeypatch.setattr(kernels, "lookup", lambda name: lookup("sin" if name == "tanh" else name))
    program = RandomKernels(
        "def f(x):\n    r = relay.tanh(x)\n    return relay.argmax(x), r\n",
        (Parameter("x", ("n",), "float64"),), ({"n": 5}, {"n": 9}), False, 2, {},
    )  # fmt: skip
    assert len([problem for problem in outcomes(program) if problem.startswith("wrong")]) == 2


@pytest.mark.parametrize("number", range(100 if everything() else 2))
def test_random_programs_at_several_sizes(number: int) -> None:
    """Control flow, and before and behind it reductions and places: a program of its own for the first size, then the
    symbolic one."""
    seed = SEED * 10_000 + number
    text = random_program_of_a_vector(seed)
    function = function_of(text, "of_a_vector")
    symbolic = RelayFunction(function.__relay__, attrs.evolve(function._options, dynamic=True))
    rng = np.random.default_rng(seed)
    for made, sizes in ((function, (5, 8)), (symbolic, (1, 2, 8, 13, 64, 70))):
        for size in sizes:
            w, n = rng.uniform(-1, 1, size), np.int32(rng.integers(0, 4))
            found, wanted = _arrays(made(w, n)), _arrays(function.interpret(w, n))
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(
                    one, other, rtol=1e-9, atol=1e-10, err_msg=f"seed {seed}, size {size}:\n{text}"
                )
