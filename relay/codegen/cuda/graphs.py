"""CUDA graphs: a whole call as one launch.

A call whose host program reads nothing from the GPU starts the same kernels each time, for arguments of the same sizes
and the same numbers of the host. Its second run is captured: the kernels, on memory that the graph keeps for itself.
Later calls copy their arguments there, launch the graph, and copy the results out. An argument that both runs had, as
the weights of a model, is read where it is: as long as calls pass the same array nothing of it is copied. If one passes
another array, the graph is captured again, with memory for that argument. A program that reads a condition, an
assertion or a size from the GPU is not captured; the host walks through it each time.
"""

from __future__ import annotations

import weakref
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
    """A captured call: where its arguments go, by their positions, and its result, in memory of its own. `shared` are
    the arguments that it reads where the caller has them."""

    executable: Any
    inputs: Mapping[int, DeviceTensor]
    shared: Mapping[int, Memory]
    result: Any
    kept: tuple[object, ...]
    destroy: Callable[[], object]


@attrs.define(eq=False)
class _CallRecord:
    """Calls of one kind so far: the kernels and the bytes of the first, the memory of the arguments that all have had,
    and the graph, once there is one."""

    launches: int
    bytes: int
    common: dict[int, weakref.ref[Memory]]
    graph: Graph | None = None

    def compare(self, leaves: Sequence[Any]) -> None:
        """Take note of the arguments of another call. A graph for other ones is gone."""
        differ = [n for n, known in self.common.items() if known() is not getattr(leaves[n], "memory", self)]
        for position in differ:
            del self.common[position]
        if self.graph is not None and not self.graph.shared.keys() <= self.common.keys():
            self.graph.destroy()
            self.graph = None


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

    def graph(self, key: object, leaves: Sequence[Any]) -> Graph | None:
        """The graph of such calls, if there is one for these arguments."""
        known = self._known.get(key)
        if known is None:
            return None
        known.compare(leaves)
        return known.graph

    def wants(self, key: object) -> bool:
        """True if the next run of this kind is to be captured."""
        known = self._known.get(key)
        return known is not None and known.graph is None and known.launches >= FEWEST

    def record_run(self, key: object, leaves: Sequence[Any], launches: int, taken: int) -> None:
        """Take note of a run that was not captured."""
        if key not in self._known and len(self._known) < MOST:
            tensors = {n: weakref.ref(leaf.memory) for n, leaf in enumerate(leaves) if isinstance(leaf, DeviceTensor)}
            self._known[key] = _CallRecord(launches, taken, tensors)

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
        own = [n for n, leaf in enumerate(leaves) if not _is_fixed(leaf) and n not in known.common]
        copied = sum(leaves[n].nbytes + ALIGNMENT for n in own)
        whole = gpu.allocate(copied + known.bytes + known.bytes // 4 + FRAGMENTS)
        arena = Arena(_single_source(whole), gpu.wait, whole.size)
        run.allocate = arena.allocate
        run.numbers = OrderedDict()
        inputs = [run.empty(leaf.dtype, leaf.shape) if n in own else _read_only(leaf) for n, leaf in enumerate(leaves)]
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
        known.graph = Graph(
            executable,
            {n: inputs[n] for n in own},
            {n: leaves[n].memory for n in known.common},
            result,
            (whole, arena, run.numbers, dict(run.constants), inputs),
            lambda: gpu.call("cuGraphExecDestroy", executable),  # once it has run
        )
        return known.graph

    def replay(self, graph: Graph, leaves: Sequence[Any]) -> None:
        """Launch a graph on these arguments."""
        gpu = self._gpu
        for position, own in graph.inputs.items():
            leaf = leaves[position]
            if isinstance(leaf, DeviceTensor):
                gpu.copy(leaf.memory, own.memory, own.nbytes)
            else:
                gpu.upload(leaf, own.memory)
        gpu.call("cuGraphLaunch", graph.executable, gpu.stream)


def _is_fixed(leaf: Any) -> bool:
    """True for a number of the host, which the graph has been made for."""
    return isinstance(leaf, np.ndarray) and leaf.ndim == 0 and leaf.dtype.kind in "iub"


def _read_only(leaf: Any) -> Any:
    """An argument that is the caller's: a tensor is not written to."""
    if not isinstance(leaf, DeviceTensor):
        return leaf
    return DeviceTensor(leaf.gpu, leaf.memory, leaf.dtype, leaf.shape, owner=leaf)


def _single_source(whole: Memory) -> Callable[[int], int]:
    """An arena's source that has one piece of memory."""
    left = [whole]

    def take(count: int) -> int:
        if not left or count > whole.size:
            raise MemoryError(f"{count} bytes more than a graph has")
        return left.pop().address

    return take


__all__ = ["Graph", "Graphs"]
