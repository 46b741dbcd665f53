"""Memory over time: the bytes of the memory plan in use when each kernel runs, and those that the run has taken
besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.codegen.lowering.layout import TensorLayout, leaves
from relay.codegen.lowering.probes import Probes
from relay.debug.profiling.builds import ProbedBuild, RunRecord
from relay.eval.values import Data, Reference, Stack
from relay.ir.dims import Dim, TypeId, evaluate, variables


@attrs.frozen(eq=False)
class MemoryUse:
    """Bytes over the seconds of a call: those of `arguments`, `results` and captured `constants` are there all the
    time; the plan reserves `workspace` for intermediate values, of which some are alive at a time; lists, recursive
    data and recursion take more while the program runs.

    `times` and `bytes` are what is in use when each kernel runs, the last 32768 of them, named in `kernels`.
    """

    arguments: int
    results: int
    constants: int
    workspace: int
    times: tuple[float, ...] = attrs.field(repr=False)
    bytes: tuple[int, ...] = attrs.field(repr=False)
    kernels: tuple[str, ...] = attrs.field(repr=False)

    @property
    def fixed(self) -> int:
        """The bytes in use all the time."""
        return self.arguments + self.results + self.constants

    @property
    def peak(self) -> int:
        """The most bytes in use."""
        return max(self.bytes, default=self.fixed)

    @property
    def peak_kernel(self) -> str | None:
        """The kernel that runs when the most bytes are in use."""
        return self.kernels[self.bytes.index(self.peak)] if self.bytes else None


def memory_use(
    build: ProbedBuild, record: RunRecord, arguments: Sequence[Any], sizes: Mapping[TypeId, int]
) -> MemoryUse:
    """The memory of a run."""
    native = build.program.native

    def number(dim: Dim) -> int:
        if isinstance(dim, int):
            return dim
        return max(evaluate(dim, sizes), 0) if all(v in sizes for v in variables(dim)) else 0

    results = sum(number(leaf.bytes) for leaf in leaves(native.result) if isinstance(leaf, TensorLayout))
    constants = sum(a.nbytes for place, a in native.constants.items() if place != build.probes.place)
    fixed = _held_bytes(list(arguments)) + results + constants
    bases = _bases(build.probes, number)
    live = {site.number: number(site.live) + bases.get(site.function, 0) for site in build.sites}
    kept = [event for event in record.events if int(event[0]) in live]
    first = min((int(event[1]) for event in kept), default=0)
    names = {site.number: site.kernel for site in build.sites}
    return MemoryUse(
        arguments=fixed - results - constants,
        results=results,
        constants=constants,
        workspace=number(list(build.probes.frames.values())[-1]),  # the entry comes after what it calls
        times=tuple((int(event[1]) - first) / build.rate for event in kept),
        bytes=tuple(fixed + live[int(event[0])] + max(build.limit - int(event[3]), 0) for event in kept),
        kernels=tuple(names[int(event[0])] for event in kept),
    )


def _bases(probes: Probes, number: Any) -> dict[str, int]:
    """The bytes that the callers of each function have in use while it runs, at most: without those of recursive
    functions, which take theirs at run time."""
    bases: dict[str, int] = {}
    for name in reversed(list(probes.frames)):  # callers come after what they call
        given = [
            bases.get(call.caller, 0) + number(call.live) - number(probes.frames[name])
            for call in probes.calls
            if call.callee == name and call.caller != name
        ]
        bases[name] = max([0, *given])
    return bases


def _held_bytes(values: Sequence[Any]) -> int:
    """The bytes of the arrays in run-time values, each counted once."""
    pending, seen, total = list(values), set[int](), 0
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        match value:
            case tuple() | list():
                pending += value
            case Data():
                pending += value.fields
            case Reference():
                pending.append(value.content)
            case Stack():
                pending += value.buffer[: value.length]
            case _:
                total += np.asarray(value).nbytes if hasattr(value, "shape") else 0
    return total
