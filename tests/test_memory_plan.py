"""The workspace: buffers that are alive together do not overlap, and all of them take hardly more than those alive."""

from __future__ import annotations

import random

import numpy as np
import pytest
from matrix import sample
from programs import programs

import relay
from relay.codegen import memory
from relay.codegen.assembly import text
from relay.codegen.memory import ALIGNMENT, Workspace, live_bytes
from relay.lowering import lowering

ALL = {p.name: p for p in programs()}
MOST = 1.1
"""How much more than the bytes alive together a plan may take."""


def test_plans_of_the_zoo(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[tuple[int, int]] = []
    original = Workspace.place

    def place(self: Workspace) -> object:
        slots = [s for s in self.slots if s.first is not None and isinstance(s.bytes, int)]
        result = original(self)
        if isinstance(result, int):
            plans.append((result, live_bytes(slots)))
        return result

    monkeypatch.setattr(memory.Workspace, "place", place)
    for name in sample(ALL, 25):
        kept, _ = ALL[name].function._lower(ALL[name].arguments, {})
        text(lowering(2)(kept.typed), 1)
        assert all(taken <= MOST * least for taken, least in plans), (name, plans)
        plans.clear()


@pytest.mark.parametrize("seed", range(20))
def test_buffers_that_are_alive_together_do_not_overlap(seed: int) -> None:
    rng = random.Random(seed)
    workspace = Workspace()
    slots = [workspace.slot(rng.choice((1, 64, 200, 5000, rng.randint(1, 10000))), None) for _ in range(60)]
    alive: list[memory.Slot] = []
    for slot in slots:
        workspace.use(slot)
        alive.append(slot)
        for other in rng.sample(alive, min(3, len(alive))):
            workspace.use(other)
        if len(alive) > 8:
            alive.pop(rng.randrange(8))
    total = workspace.place()
    assert isinstance(total, int) and live_bytes(slots) <= total <= 1.25 * live_bytes(slots)
    for i, one in enumerate(slots):
        assert isinstance(one.offset, int) and isinstance(one.bytes, int) and one.first is not None
        assert one.offset % ALIGNMENT == 0 and one.offset + one.bytes <= total
        for other in slots[:i]:
            assert isinstance(other.offset, int) and isinstance(other.bytes, int) and other.first is not None
            if one.first <= other.last and other.first <= one.last:
                assert one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset


def test_the_workspace_is_known_before_the_run() -> None:
    @relay
    def f(x):  # type: ignore[no-untyped-def]
        y = relay.exp(x) @ relay.sin(x)
        return y @ relay.cos(x)

    x = np.ones((8, 8))
    workspace = f.compile(x).workspace
    assert workspace is not None and 512 <= workspace <= 5 * 512
