"""CUDA graphs: a whole call as one launch.

A call whose host program reads nothing from the GPU starts the same kernels each time, for arguments of the same sizes
and the same numbers of the host. Its second run is captured: the kernels, on memory that the graph keeps for itself.
Later calls copy their arguments there, launch the graph, and copy the results out. A program that reads a condition,
an assertion or a size from the GPU is not captured; the host walks through it each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.codegen.cuda.conditions import NotRepeatable
from relay.codegen.cuda.driver import Gpu
from relay.codegen.cuda.execution import Run
from relay.codegen.cuda.memory import ALIGNMENT, Arena, Memory
from relay.codegen.cuda.tensors import DeviceTensor
from relay.ir.dims import TypeId
from relay.ir.expr import LoopLabel

FEWEST = 4
"""Kernels of a call for which a graph pays, beside the copies of arguments and results."""

MOST = 8
"""Graphs of a program, for different sizes: each keeps memory."""

FRAGMENTS = 1 << 16
"""Bytes that a graph's memory has more than its arguments and what the run before it took, and a quarter of that."""


@attrs.frozen(eq=False)
class Graph:
    """A captured call: where its arguments go, and its result, in memory of its own."""

    executable: Any
    inputs: tuple[DeviceTensor, ...]
    result: Any
    kept: tuple[object, ...]


@attrs.define(eq=False)
class _CallRecord:
    """Calls of one kind so far: the kernels and the bytes of the first, and the graph, once there is one."""

    launches: int
    bytes: int
    graph: Graph | None = None


class Graphs:
    """The graphs of one program."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._known: dict[object, _CallRecord] = {}
        self.repeatable = True
        """False once a run has read something from the GPU that no graph decides by."""
        self.decided_loops: set[LoopLabel] = set()
        """The loops of unknown length in which the GPU decides something, as far as runs have seen."""

    def key(self, leaves: Sequence[Any] | None) -> object:
        """The kind of a call; None for one that is not captured. `leaves`: its arguments, if they are all tensors."""
        if leaves is None or not self.repeatable or self._gpu.timer is not None:
            return None
        return tuple(
            (str(leaf.dtype), leaf.shape) if isinstance(leaf, DeviceTensor) or leaf.dtype.kind not in "iub" or leaf.ndim
            else (str(leaf.dtype), leaf.tobytes())
            for leaf in leaves
        )  # fmt: skip

    def graph(self, key: object) -> Graph | None:
        """The graph of such calls, if there is one."""
        known = self._known.get(key)
        return None if known is None else known.graph

    def wants(self, key: object) -> bool:
        """True if the next run of this kind is to be captured."""
        known = self._known.get(key)
        return known is not None and known.graph is None and known.launches >= FEWEST

    def record_run(self, key: object, launches: int, taken: int) -> None:
        """Take note of a run that was not captured."""
        if key not in self._known and len(self._known) < MOST:
            self._known[key] = _CallRecord(launches, taken)

    def capture(
        self,
        key: object,
        run: Run,
        leaves: Sequence[Any],
        rebuild: Callable[[list[Any]], list[Any]],
        sizes: Mapping[TypeId, int],
    ) -> Graph | None:
        """Capture a run for these arguments; None if it reads something from the GPU, or takes more memory than the
        one before. `rebuild` makes the program's arguments of new leaves."""
        gpu, known = self._gpu, self._known[key]
        copied = sum(leaf.nbytes + ALIGNMENT for leaf in leaves if not _is_fixed(leaf))
        whole = gpu.allocate(copied + known.bytes + known.bytes // 4 + FRAGMENTS)
        arena = Arena(_single_source(whole), gpu.wait, whole.size)
        run.allocate = arena.allocate
        run.numbers = OrderedDict()
        inputs = [leaf if _is_fixed(leaf) else run.empty(leaf.dtype, leaf.shape) for leaf in leaves]
        gpu.call("cuStreamSynchronize", gpu.stream)  # whose kernels may still use what is free now, and written at once
        gpu.call("cuStreamBeginCapture", gpu.stream, gpu.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        gpu.capturing, gpu.arena.may_wait = True, False
        graph, result, done = None, None, False
        try:
            result = run(rebuild(inputs), sizes)
            done = True
        except (NotRepeatable, MemoryError):
            self.repeatable = False
        finally:
            gpu.capturing, gpu.arena.may_wait = False, True
            graph = gpu.call("cuStreamEndCapture", gpu.stream)
        if not done:
            gpu.call("cuGraphDestroy", graph)
            return None
        executable = gpu.call("cuGraphInstantiate", graph, 0)
        gpu.call("cuGraphDestroy", graph)
        tensors = tuple(own for own, leaf in zip(inputs, leaves, strict=True) if not _is_fixed(leaf))
        known.graph = Graph(executable, tensors, result, (whole, arena, run.numbers, dict(run.constants)))
        return known.graph

    def replay(self, graph: Graph, leaves: Sequence[Any]) -> None:
        """Launch a graph on these arguments."""
        gpu = self._gpu
        given = [leaf for leaf in leaves if not _is_fixed(leaf)]
        for own, leaf in zip(graph.inputs, given, strict=True):
            if isinstance(leaf, DeviceTensor):
                gpu.copy(leaf.memory, own.memory, own.nbytes)
            else:
                gpu.upload(leaf, own.memory)
        gpu.call("cuGraphLaunch", graph.executable, gpu.stream)


def _is_fixed(leaf: Any) -> bool:
    """True for a number of the host, which the graph has been made for."""
    return isinstance(leaf, np.ndarray) and leaf.ndim == 0 and leaf.dtype.kind in "iub"


def _single_source(whole: Memory) -> Callable[[int], int]:
    """An arena's source that has one piece of memory."""
    left = [whole]

    def take(count: int) -> int:
        if not left or count > whole.size:
            raise MemoryError(f"{count} bytes more than a graph has")
        return left.pop().address

    return take


__all__ = ["Graph", "Graphs"]
