"""Restarts of elaboration: how often it finds out too late what it should have known, over all programs of the zoo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matrix import sample
from zoo import Program, programs

import relay
from relay.errors import RelayError
from relay.typecheck.elaboration import entry
from relay.typecheck.elaboration.control_flow import static_exits
from relay.typecheck.elaboration.control_flow.round_sizes import RoundSizes
from relay.typecheck.elaboration.restarts import Restart

# docs/decisions.md says what the kinds are, and why each is left. Fewer are written here; more need a reason there.
RESTARTS = {
    "SeveralRestarts": "chosen_before_sizes folded followed known_size_first queens",
    "SizeVaries": "doubled doubled_or_halved dropped dropped dropped dropped_sum dropped_sum dropped_sum of_last_ones",
    "CalledAtTypes": "along along at_several_types at_several_types at_several_types",
    "ListGrows": "banked beam_of_the_best beam_search distances grid_of_lists in_turn local_functions permutations "
    "queens reached updates",
    "CalledAtSizes": "chosen_before_sizes known_size_first",
    "KeysOfRun": "remembered",
    "LoopUnrolls": "taken_apart taken_apart",
    "ResultIsKnown": "crossed",
    "IntegersWiden": "followed_down walked",
    "NumbersSpecialize": "parts_of_different_types",
    "FirstRoundDiffers": "banked squared_steps",
    "IsOptional": "banked",
    "ErrorsAreCaught": "sum_of_logarithms",
    "TextsDiffer": "banked turns",
    "RelayError": "american_put configured_transformer configured_transformer configured_transformer "
    "configured_transformer configured_transformer keyed_layers keyed_layers keyed_layers",
}
"""By the kind of restart, the programs of the zoo that have one, once for each. All others have none."""


@pytest.fixture
def causes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Why elaborations ended early."""
    found: Counter[str] = Counter()
    attempt: Any = entry._attempt

    def counted(*arguments: Any) -> Any:
        try:
            return attempt(*arguments)
        except (Restart, RelayError) as cause:
            found["RelayError" if isinstance(cause, RelayError) else type(cause).__name__] += 1
            raise

    monkeypatch.setattr(entry, "_attempt", counted)
    yield found


def test_restarts_of_the_zoo(causes: Counter[str]) -> None:
    restarting = {name for names in RESTARTS.values() for name in names.split()}
    found: dict[str, Counter[str]] = {}
    for program in [*sample([p for p in programs() if p.name not in restarting], 60), *programs_of(restarting)]:
        causes.clear()
        relay.relay(program.function.__wrapped__).typed(*program.arguments)
        for kind, count in causes.items():
            found.setdefault(kind, Counter())[program.name] += count
    assert found == {kind: Counter(names.split()) for kind, names in RESTARTS.items()}


def programs_of(names: set[str]) -> list[Program]:
    """The programs of these names."""
    return [program for program in programs() if program.name in names]


def total(x, axis=0):
    return relay.sum(x, axis=axis)


def heads(x, count, to):
    rows, width = x.shape
    split = lambda z, axes: z.reshape(rows, count, width // count).transpose(axes)  # noqa: E731
    return split(x, (1, 0, 2)) + total(x * 0.0, axis=to).sum()


def both(x):
    return total(x).sum() + heads(x, 2, 1).sum() + total(x, axis=1).sum()


def halves(x):
    while True:
        if x.ndim == 1 and len(x) == 1:
            break
        x = x.sum(axis=0) if x.ndim > 1 else x[: x.shape[0] // 2] * 2.0
    return x[0]


def nested(x):
    items = [x, x * 2.0]
    for i in range(len(x)):
        for j in range(3):
            if x[i] > float(j):
                items.append(x * 3.0)
    return sum(items).sum()


def windows(x):
    y: relay.Tensor[relay.Float64, (relay.Any,)] = x
    for _ in range(5):
        y = relay.concatenate([y[1:], x[:1] * y[0]])  # as long as before, which only the sizes tell
    return y


def grows_by_a_call(x):
    def longer(v, w):
        return relay.concatenate([v, w * 0.5])

    y: relay.Tensor[relay.Float64, (relay.Any,)] = x
    while y.sum() < 30.0:
        y = longer(y * 1.5, x)
    return y.sum()


def pairs(x):
    a: relay.Tensor[relay.Float64, (relay.Any,)] = x
    b = x
    for i in range(3):
        if x[i] > 1.0:
            a, b = a[1:], b * a[0]
    return a.sum() + b.sum()


def swaps(x):
    a, b = [x[0], x[1]], [x[2]]
    for _ in range(len(x)):
        a, b = b, a
    return a[0] * b[0]


def same_length(x):
    state = [x[0], x[1]]
    for i in range(4):
        new = []
        for k in range(2):
            new.append(state[k] * x[i])
        state = new
    return state[0] + state[1]


def chosen_by_the_checker(x):
    items = [x[0]]
    for i in range(len(x)):
        items = [*items, x[i]] if x.ndim > 1 else [items[0] * x[i]]
    return items[0]


def positives(x):
    y = x
    while y.sum() > 1.0:
        y = y[y > y[0]]
    return y.sum()


def queue_in_a_dict(x):
    state = {"queue": [x[0]], "total": 0.0}
    for v in x:
        if v > 1.0:
            state["queue"].append(v * v)
        state["total"] += v
    return sum(state["queue"]) * state["total"]


def at_run_time_indices(x):
    counts = [0.0] * 3
    for i in range(len(x)):
        counts[i % 3] += x[i]
    return counts[0] * counts[1] + counts[2]


def inner_loops(x, n):
    y: relay.Tensor[relay.Float64, (relay.Any,)] = x
    for _ in range(n):
        for j in range(3):
            if len(y) > 2 and x[j] > 0.0:
                y = y[1:]
    return y.sum()


@pytest.mark.parametrize(
    "function",
    [
        windows,
        grows_by_a_call,
        pairs,
        swaps,
        same_length,
        chosen_by_the_checker,
        positives,
        queue_in_a_dict,
        at_run_time_indices,
        inner_loops,
        nested,
        halves,
    ],
)
def test_sizes_found_before_are_those_that_restarts_find(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [np.arange(4.0), *([3] if function is inner_loops else [])]
    outcomes = []
    for found_before in (True, False):
        if not found_before:
            monkeypatch.setattr(RoundSizes, "is_resized", lambda *_: False)
            monkeypatch.setattr(RoundSizes, "varying_axes", lambda *_: set())
        try:
            outcomes.append(str(relay.relay(function).typed(*arguments)))
        except RelayError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("function", "restarts"),
    [
        (both, {}),  # numbers that reach axes and shapes
        (halves, {}),  # a loop that types alone end
        (nested, {}),  # a list that two loops make longer
        (grows_by_a_call, {}),  # tensors that loops resize
        (pairs, {}),
        (positives, {}),
        (queue_in_a_dict, {}),  # lists in records
        (at_run_time_indices, {}),
    ],
)
def test_what_is_found_before(function: Any, restarts: dict[str, int], causes: Counter[str]) -> None:
    x = np.arange(4.0).reshape(2, 2) if function is both else np.arange(4.0)
    relay.relay(function).typed(x)
    assert causes == restarts


def test_exits_that_types_decide() -> None:
    def deciding(python: Any) -> frozenset[int]:
        body = relay.relay(python).__relay__.function.body
        (loop,) = [b.value for b in body.bindings if type(b.value).__name__ == "Loop"]
        return static_exits.deciding_parameters(loop)

    def by_a_value(x):
        while x.ndim > 1 and x.sum() > 0.0:
            x = x.sum(axis=0)
        return x

    def by_a_break(x):
        while x.ndim > 1:
            x = x * 2.0
            if x.sum() > 3.0:
                break
        return x

    def by_types(x, y):
        while y.ndim + 1 > 1:
            y = y.sum(axis=0)
            x = x * 2.0
        return x, y

    assert [len(deciding(f)) for f in (by_a_value, by_a_break, by_types)] == [0, 0, 1]
