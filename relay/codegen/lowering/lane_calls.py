"""Calls of the kernels of loops that run in the lanes of vector registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from relay.codegen.lowering.function_builder import Code
from relay.codegen.lowering.function_state import ProgramContext
from relay.codegen.lowering.layout import TensorLayout
from relay.codegen.lowering.values import Leaf, Value
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import tirx
from relay.errors import Span
from relay.ir.expr import Atom, Loop, Var
from relay.ir.traverse import walk
from relay.ir.types import UINT8
from relay.transform.analysis.lanes import LaneLoop
from relay.transform.fusion.fusion_groups import FusionGroup

if TYPE_CHECKING:
    from relay.codegen.kernels.lanes.kernel import LaneKernel


class LaneCaller(Protocol):
    """The function around the call of such a kernel."""

    shared: ProgramContext
    code: Code

    def value(self, atom: Atom) -> Value:
        """The place of an atom."""
        ...

    def leaf(self, atom: Atom) -> Leaf:
        """The place of a tensor."""
        ...

    def target(self, target: Var, wanted: Mapping[Var, Value]) -> Value:
        """New places for a variable."""
        ...

    def measured_region(
        self, kind: str, name: str, group: FusionGroup | None, span: Span | None = None
    ) -> AbstractContextManager[None]:
        """A context: code that is emitted inside is between readings of the clock."""
        ...


class LaneKernels:
    """The kernels of one function's loops."""

    def __init__(self, plans: Mapping[Loop, LaneLoop]) -> None:
        self._plans = plans

    def emit(self, caller: LaneCaller, loop: Loop, targets: Sequence[Var], wanted: Mapping[Var, Value]) -> bool:
        """Emit a loop as a call, if it can run in lanes."""
        plan = self._plans.get(loop)
        if plan is None:
            return False
        from relay.codegen.kernels.lanes.kernel import lane_kernel  # which few programs need

        kernels = caller.shared.kernels
        kernel = lane_kernel(plan, f"lanes{len(kernels.functions)}", kernels.threads, caller.shared.failures.status)
        if kernel is None:
            return False
        kernels.functions.update(kernel.functions)
        results = tuple(caller.target(t, wanted) for t in targets)
        caller.code.assign_parallel(results, [caller.value(initial) for initial in loop.initial])
        _call(caller, loop, kernel, results)
        return True


def _call(caller: LaneCaller, loop: Loop, kernel: LaneKernel, results: Sequence[Value]) -> None:
    code = caller.code
    assert loop.counter is not None
    operands = [caller.leaf(atom) for atom in kernel.operands]
    changed = [leaf for position in kernel.changed if isinstance(leaf := results[position], Leaf)]
    memory = code.leaf(TensorLayout(UINT8, (kernel.memory,)))
    for leaf in (*changed, memory, *operands, *changed, memory):  # what is written lives with all that is read
        code.touch(leaf)
    count = code.value(caller.leaf(loop.counter.count))
    count = count if str(count.ty) == "int64" else tirx.Cast("int64", count)
    given = [*map(code.tensor_argument, operands), *map(code.address, changed), *map(code.size, kernel.sizes)]
    inner = next(b.value.span for b in walk(loop.body) if isinstance(b.value, Loop))  # where time goes
    with caller.measured_region("kernel", str(kernel.function.name_hint), None, inner):
        code.check(tir.call(kernel.function, [code.context, *given, count, code.address(memory)]))
