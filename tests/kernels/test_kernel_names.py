"""Names of parts of elements in kernels: constants, choices and what is read in one case only are no problem to TVM."""

from __future__ import annotations

import random

import numpy as np
import pytest
from agreement import assert_modes_agree
from matrix import SEED, everything

import relay as R
from relay import relay
from relay.codegen.kernels import loops


@relay(opt_level=0)
def power_of_constants(x):
    return ((2.0 * relay.ones(2, dtype=R.Float64)) ** 2).sum() + x


@relay(opt_level=1)
def power_of_constants_simplified(x):
    return ((2.0 * relay.ones(2, dtype=R.Float64)) ** 2).sum() + x


@relay
def power_of_symbolic_constants(x):
    return relay.maximum(relay.zeros_like(x) + 0.25, 0.5) ** 2 + (2.0 * relay.ones((x.shape[0],), dtype=R.Float64)) ** 2


@relay
def beside_a_turn(x):
    return relay.maximum(relay.abs(0.5 * relay.ones(x.shape[0], dtype=R.Float64)), relay.concatenate((x[1:], x[:1])))


@relay
def beside_a_broadcast(x):
    s = x[0]
    first = relay.maximum(relay.broadcast_to(s * s, x.shape), relay.concatenate((x[1:], x[:1])))
    second = relay.minimum(relay.abs(relay.broadcast_to(s, x.shape)), relay.flip(x))
    third = relay.abs(relay.broadcast_to(s, x.shape)) + relay.concatenate((x[1:], x[:1]))
    return first, second, third


@relay
def choice_of_numbers(x):
    return np.sin(np.where(x[0] > 0, 2.0, 3.0) * np.arange(x.shape[0])) + x


@relay
def names_in_both_arms(x):
    """Polynomials in the arms of a choice, of elements that only this arm may read."""
    longer = relay.concatenate((relay.exp(x), relay.tanh(x[:2]), relay.sin(x * 2.0)))
    return relay.exp(relay.pad(relay.log(relay.abs(x) + 1.0), ((2, 3),))).sum(), longer, relay.tanh(longer) + 1.0


@relay
def names_in_indices(x):
    places = (relay.arange(x.shape[0]) * 3 + 1) % x.shape[0]
    return relay.where(places % 2 == 0, relay.take(relay.tanh(x), places), relay.full(x.shape, 2.0, dtype=R.Float64))


PROGRAMS = (
    *(power_of_constants_simplified, power_of_symbolic_constants, beside_a_turn, beside_a_broadcast),
    *(choice_of_numbers, names_in_both_arms, names_in_indices),
)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_at_several_sizes(function: R.RelayFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    for size, threads in ((5, 2), (3, 1)):  # the second one is the program for all sizes
        monkeypatch.setenv("RELAY_NUM_THREADS", str(threads))
        assert_modes_agree(function, np.linspace(-1, 1, size), rtol=1e-12, atol=1e-12)
    assert_modes_agree(function, np.linspace(-1, 1, 40), rtol=1e-12, atol=1e-12)


def test_constants_at_level_0() -> None:
    assert_modes_agree(power_of_constants, np.float64(1.0), rtol=1e-12, atol=1e-12)


# ---- groups of random operators

SCALARS = ("2.0", "0.5", "1.0", "0.0", "-1.5")
ONE = (
    *("relay.abs({})", "relay.tanh({})", "relay.sqrt(relay.abs({}))", "({}) ** 2", "-{}", "relay.relu({})"),
    *("relay.exp(-relay.abs({}))", "relay.sign({})", "relay.flip({})", "relay.roll({}, 2)"),
    *("relay.pad({}[2:], ((2, 0),))", "relay.concatenate(({0}[1:], {0}[:1]))", "relay.take({}, k)"),
    "relay.broadcast_to({}.sum() * s, v.shape)",
    *("{} * relay.ones(v.shape[0], dtype=Float64)", "relay.where(k % 2 == 0, {}, 0.5)"),
)  # fmt: skip
TWO = ("relay.maximum({}, {})", "relay.minimum({}, {})", "{} + {}", "{} * {}", "relay.where({0} > {1}, {0}, 1.0)")


def random_group(seed: int) -> str:
    """A program of a few operators that become one kernel, or two."""
    chosen, names, lines = random.Random(seed), ["v", "w"], []
    for number in range(chosen.randrange(2, 8)):
        parts = chosen.choice(names[-3:]), chosen.choice((chosen.choice(names), chosen.choice(SCALARS), "s"))
        form = chosen.choice(ONE if chosen.random() < 0.6 else TWO)
        lines.append(f"    t{number} = {form.format(*parts)}")
        names.append(f"t{number}")
    return "def f(s, v, w, k):\n" + "\n".join(lines) + f"\n    return {', '.join(names[-2:])}\n"


@pytest.mark.parametrize("start", range(0, 200 if everything() else 8, 8))
def test_random_groups(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    for seed in range(SEED * 1000 + start, SEED * 1000 + start + 8):
        monkeypatch.setenv("RELAY_NUM_THREADS", str(1 + seed % 2))
        text, rng = random_group(seed), np.random.default_rng(seed)
        function = R.from_source(text, {"relay": relay, "Float64": R.Float64})
        size = int(rng.integers(3, 40))
        vectors = rng.normal(size=(2, size))
        number, places = np.float64(rng.normal()), rng.integers(0, size, size).astype(np.int32)
        assert_modes_agree(function, number, *vectors, places, rtol=1e-12, atol=1e-12)
