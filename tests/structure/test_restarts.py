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
from relay.typecheck.elaboration.restarts import Restart

# docs/decisions.md says what the kinds are, and why each is left. Fewer are written here; more need a reason there.
RESTARTS = {
    "SeveralRestarts": "beams buckets buckets chosen_before_sizes distances early_result folded followed "
    "grown_by_annotation grown_in_rounds grown_until heap_of_ones_own heap_of_ones_own known_size_first "
    "observed of_a_grown_tensor "
    "of_a_grown_tensor queens records_as_state records_as_state returned_from_the_inner_loop "
    "shrinking shrinking_in_a_tuple shrinking_in_loops "
    "shrinking_in_nested_loops shrinking_local shrinking_local shrinking_on_a_path sorted_items "
    "swapped unpacked_and_growing updates",
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


@pytest.mark.parametrize(
    ("function", "restarts"),
    [
        (both, {}),  # numbers that reach axes and shapes
        (halves, {}),  # a loop that types alone end
        (nested, {}),  # a list that two loops make longer
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
