"""Profiles of programs for GPUs: the time of each kernel, by the driver's events, and what the host adds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.ad.print_erasure import without_prints
from relay.api.function import RelayFunction
from relay.calling.results import holds_references
from relay.codegen.cuda.driver import Gpu, open_gpu
from relay.codegen.cuda.libraries import cublaslt, cudnn
from relay.compilation.stages import CompiledSignature
from relay.debug.profiling.units import count, duration
from relay.errors import CompileError, Span
from relay.ir.expr import Block, Derivative, Function, Print
from relay.ir.traverse import walk


@attrs.frozen(eq=False)
class GpuKernel:
    """A kernel of a program for a GPU: its schedule rule, the lines of its operators, how often a call starts it, and
    the seconds that it takes in a call."""

    name: str
    rule: str
    lines: tuple[int, ...]
    calls: float
    seconds: float


@attrs.frozen(eq=False)
class GpuProfile:
    """The times of a call on a GPU. `seconds`: of a call without events, from its start until the result is
    there; `host`: until the call returns, while kernels may still run. Measured kernel by kernel a call is not a CUDA
    graph, which ordinary calls may be. `memory`: the bytes of tensors at most, beside what was there before."""

    name: str
    device: str
    runs: int
    seconds: float
    host: float
    kernels: tuple[GpuKernel, ...]
    memory: int

    @property
    def busy(self) -> float:
        """The seconds of all kernels of a call together."""
        return sum(kernel.seconds for kernel in self.kernels)

    def __str__(self) -> str:
        head = f"{self.name} on {self.device}: {duration(self.seconds)} a call, {duration(self.busy)} in kernels"
        rows = [
            head,
            f"the call returns after {duration(self.host)}; its tensors take {count(self.memory)}B at most",
            "",
        ]
        width = max((len(kernel.name) for kernel in self.kernels), default=6)
        rows.append(f"{'kernel':<{width}}  {'calls':>7}  {'time':>9}  {'share':>6}  rule, lines")
        for kernel in self.kernels:
            share = kernel.seconds / self.busy if self.busy else 0.0
            lines = ", ".join(map(str, kernel.lines))
            rows.append(
                f"{kernel.name:<{width}}  {kernel.calls:>7.1f}  {duration(kernel.seconds):>9}  {share:>6.1%}  "
                f"{kernel.rule}, {lines}"
            )
        return "\n".join(rows)

    __repr__ = __str__


class _Timer:
    """Measures the kernels of some calls. The stream reaches one event before each, and one after it."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._events: list[tuple[str, Any, Any]] = []
        self.lines: dict[str, set[int]] = {}

    def __call__(self, name: str, lines: Sequence[Span]) -> Any:
        start = self._gpu.timing_event()
        self.lines.setdefault(name, set()).update(span.line for span in lines)
        return lambda: self._events.append((name, start, self._gpu.timing_event()))

    def totals(self) -> dict[str, list[float]]:
        """The seconds of each start of each kernel."""
        found: dict[str, list[float]] = {}
        for name, start, end in self._events:
            found.setdefault(name, []).append(self._gpu.seconds(start, end))
        return found


def _body(function: Function | Derivative) -> Block:
    assert isinstance(function, Function)  # derivatives are functions by now
    return function.body


def gpu_profile(
    function: RelayFunction,
    signature: CompiledSignature,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    runs: int,
) -> GpuProfile:
    """Measure a program for a GPU. Raises CompileError for one that changes what it is given."""
    if signature.donated or any(map(holds_references, signature.parameters)):
        raise CompileError(
            f"{function.__name__} changes its arguments, and the profile of a GPU calls it many times",
            signature.typed.main.span,
            help="profile a function that takes values, and returns what it makes of them",
        )
    gpu, program = open_gpu(), signature.program
    if any(isinstance(b.value, Print) for f in signature.core.functions.values() for b in walk(_body(f))):
        program = signature.with_core(without_prints(signature.core)).program
    _, values = function.prepare_compiled(arguments, keywords)

    def call() -> None:
        program(list(values))

    def wait() -> None:
        with gpu.lock:
            gpu.enter()
            gpu.call("cuStreamSynchronize", gpu.stream)

    for _ in range(3):
        call()
    wait()
    before = gpu.arena.start_peak()
    host, whole = [], []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        host.append(time.perf_counter() - start)
        wait()
        whole.append(time.perf_counter() - start)
    memory = gpu.arena.peak - before
    timer = _Timer(gpu)
    with gpu.lock:
        gpu.enter()
        gpu.timer = timer
        try:
            for _ in range(runs):
                call()
            found = timer.totals()
        finally:
            gpu.timer = None
    rules = {launch.name: launch.rule for launch in program.host.launches}  # type: ignore[attr-defined]
    rules[cublaslt.NAME] = rules[cudnn.NAME] = "library"
    kernels = [
        GpuKernel(name, rules[name], tuple(sorted(timer.lines[name])), len(times) / runs, sum(times) / runs)
        for name, times in found.items()
    ]
    kernels.sort(key=lambda kernel: -kernel.seconds)
    return GpuProfile(function.__name__, gpu.name, runs, min(whole), min(host), tuple(kernels), memory)


__all__ = ["GpuKernel", "GpuProfile", "gpu_profile"]
