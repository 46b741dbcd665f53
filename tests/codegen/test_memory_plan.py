"""The workspace: buffers that are alive together do not overlap, and all of them take hardly more than those alive."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from agreement import leaves
from matrix import sample
from zoo import programs

import relay
from relay.codegen.lowering.memory import workspace
from relay.codegen.lowering.memory.workspace import ALIGNMENT, Workspace, live_bytes
from relay.codegen.lowering.module_builder import text
from relay.compilation.stages import lowering

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

    monkeypatch.setattr(workspace.Workspace, "place", place)
    for name in sample(ALL, 25):
        kept = ALL[name].function.lower(*ALL[name].arguments)
        text(lowering(2)(kept.typed), 1)
        assert all(taken <= MOST * least for taken, least in plans), (name, plans)
        plans.clear()


@pytest.mark.parametrize("seed", range(20))
def test_buffers_that_are_alive_together_do_not_overlap(seed: int) -> None:
    rng = random.Random(seed)
    workspace = Workspace()
    slots = [workspace.slot(rng.choice((1, 64, 200, 5000, rng.randint(1, 10000))), None) for _ in range(60)]
    alive: list[workspace.Slot] = []
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


def layers(params, x):  # type: ignore[no-untyped-def]
    for w, b in params:
        x = relay.tanh(x @ w + b)
    return relay.sum(x)


def recurrent(w, x):  # type: ignore[no-untyped-def]
    h = relay.zeros_like(x[0])
    for row in x:
        h = relay.tanh(row + h @ w)
    return relay.sum(h)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (layers, ([(np.ones((128, 128)), np.ones(128)) for _ in range(4)], np.ones((64, 128)))),
        (recurrent, (np.ones((32, 32)) / 100, np.ones((1000, 4, 32)))),
    ],
    ids=["layers", "loop"],
)
def test_a_call_takes_what_was_planned(function, arguments) -> None:  # type: ignore[no-untyped-def]
    """NumPy's memory is counted by tracemalloc, and native code asks the system for none."""
    compiled = relay.grad(relay(function), wrt=0).compile(*arguments)
    assert compiled.workspace is not None
    for allocate in (b"malloc", b"realloc", b"TVMBackendAllocWorkspace"):
        assert all(allocate not in code for code in compiled._program.native.object_code)
    tracemalloc.start()
    result = compiled(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    returned = sum(a.size * a.dtype.itemsize for a in leaves(result))
    assert compiled.workspace + returned <= peak <= 1.02 * (compiled.workspace + returned) + 32 * 1024
