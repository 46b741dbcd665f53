"""Wrong and odd programs: they run, or raise a RelayError; nothing else may come out."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from generators.mutated_programs import mutant
from matrix import SEED, everything
from odd_calls import ARGUMENTS, odd_call
from zoo import programs

import relay as rl
from relay.errors import ExecutionError, RelayError
from relay.eval.interpreter import Machine

STEPS = 2_000
"""The most steps of an interpreted program: it may go on for ever."""

DERIVED = 8
"""Of how many changed programs one is differentiated and lowered, too, which takes longer."""

MUTANTS, CALLS = (5_000, 20_000) if everything() else (120, 250)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the interpreter end after so many steps. What it raises is not made an InternalError here."""

    def run(machine: Any, function: object, arguments: Any, below: float = math.inf) -> object:
        machine.enter(function, arguments, below=below)
        with np.errstate(all="ignore"):
            for _ in range(STEPS):
                if not machine.frames:
                    return machine.result
                activation = machine.frames[-1].activations[-1]
                activation.position += 1
                activation.steps[activation.position - 1](machine.frames[-1], activation)
        raise ExecutionError("there are too many steps")

    monkeypatch.setattr(Machine, "run", run)


def outcomes(text: str, names: dict[str, Any], arguments: tuple[Any, ...], derived: bool = False) -> Iterator[str]:
    """What becomes of a program. Anything but a RelayError goes on. `derived`: also of its core and its derivative."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            found = rl.from_source(text, names)
        except RelayError as error:
            assert str(error)
            yield "refused"
            return
        function: Any = (found.get("f") or next(iter(found.values()))) if isinstance(found, dict) else found
        runs = [lambda: function.type, lambda: function.interpret(*arguments)]
        if derived:
            gradient = rl.grad(function, wrt=0)
            runs += [lambda: function.core(*arguments), lambda: gradient.interpret(*arguments)]
            runs += [lambda: rl.grad(function).core(*arguments), lambda: rl.grad(gradient, wrt=0).core(*arguments)]
        for run in runs:
            try:
                run()
                yield "accepted"
            except RelayError as error:
                assert str(error)
                yield "refused"


@pytest.mark.filterwarnings("ignore")
def test_changed_programs_of_the_zoo() -> None:
    chosen, zoo, done, found = random.Random(SEED), programs(), 0, set()
    while done < MUTANTS:
        made = mutant(chosen.choice(zoo), chosen.randrange(10**6))
        if made is None:
            continue
        done += 1
        try:
            found.update(outcomes(made.text, made.globals, made.arguments, done % DERIVED == 0))
        except Exception as error:
            raise AssertionError(f"{made.name} (RELAY_TEST_SEED={SEED}):\n{made.text}") from error
    assert found == {"accepted", "refused"}


@pytest.mark.filterwarnings("ignore")
def test_odd_calls_and_operands() -> None:
    names = {"relay": rl.relay, "np": np}
    found: set[str] = set()
    for number in itertools.islice(itertools.count(SEED), CALLS):
        text = odd_call(random.Random(number))
        if text is not None:
            try:
                found.update(outcomes(text, names, ARGUMENTS))
            except Exception as error:
                raise AssertionError(f"{number} (RELAY_TEST_SEED={SEED}):\n{text}") from error
    assert found == {"accepted", "refused"}


@pytest.mark.parametrize(
    "body",
    [
        *("np.arange(-1, -n, np)", "np.arange(relay.sin, [1, 2], -1)", "np.sum(x, axis=np)", "x.transpose(np.float64)"),
        *("np.full(range(n), x.T)", "np.full(relay.grad(helper), x.shape)", "relay.full_like(x.shape[0], np.float64)"),
        *("relay.arange([])", "relay.full_like(10**12, '')", "np.full(3, None)"),
        *("(x.shape).index(initial=10**12)", "(1, 2).index(initial=3)", "p['w']", "[x]['w']", "xs['w']"),
    ],
)
def test_odd_operands_that_were_found(body: str) -> None:
    text = f"def helper(v): return v * 2.0\n\ndef f(x, s, n, b, p, d, xs):\n    return {body}\n"
    function: Any = rl.from_source(text, {"relay": rl.relay, "np": np})["f"]  # type: ignore[index]
    with pytest.raises(RelayError):
        function.interpret(*ARGUMENTS)
    with contextlib.suppress(RelayError):
        print(function.type)
