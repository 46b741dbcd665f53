"""Conditional nodes of graphs: branches and loops that a graph decides by values on the GPU, without the host.

A branch becomes a node for each of its arms, a loop one node whose body runs while a flag is set. What the arms and the
body make is captured into graphs of these nodes, and leaves them by copies to memory that was there before: the results
of the branch, the loop's parameters for its next round, or its results. Both arms are captured, so nothing in them may
change what the host has: references, stacks, sizes, and calls, which may be recursive, leave the program to the host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from relay.codegen.cuda.tensors import DeviceTensor
from relay.ir.expr import Arm, Block, Dead, Exit, If, Loop, Next, Var, Yield
from relay.ir.types import TensorType

if TYPE_CHECKING:
    from relay.codegen.cuda.execution import CallRequest, Frame, Leaving, Run, Steps

KERNEL = "relay_condition"
"""The kernel that sets the flag of a node."""

DECLARATION = """\
extern "C" __device__ void cudaGraphSetConditional(uint64_t handle, unsigned int value);
"""

SOURCE = f"""\
extern "C" __global__ void {KERNEL}(bool* __restrict__ value, int64_t handle, int64_t inverted) {{
  cudaGraphSetConditional(handle, (unsigned int)(*value != (inverted != 0)));
}}
"""


class NotRepeatable(Exception):
    """The run depends on values on the GPU in a way that no graph has."""


_TRUE = np.array(True)


@attrs.frozen(eq=False)
class OpenLoop:
    """A loop whose body is being captured: the memory of its parameters and results, and its flag."""

    parameters: Sequence[DeviceTensor]
    results: Sequence[DeviceTensor]
    flag: int


def choose(frame: Frame, branch: If, targets: Sequence[Var]) -> Steps:
    """Capture a branch that depends on the GPU: a Yield of its results, or Dead if all arms leave it."""
    results = _memory(frame, targets)
    leaves = yield from _capture_arms(frame, branch.arms, branch.orelse, results)
    if len(leaves) > 1:
        raise NotRepeatable
    return (Dead(), []) if True in leaves else (Yield(()), list(results))


def _capture_arms(
    frame: Frame, arms: Sequence[Arm], orelse: Block, results: Sequence[DeviceTensor]
) -> Generator[CallRequest, Any, set[bool]]:
    """Capture arms. The result: whether they leave the branch, for those that differ."""
    if not arms:
        return _finish(frame, (yield from frame.block(orelse)), results)
    left = yield from frame.block(arms[0].condition)
    if not isinstance(left[0], Yield):
        return _finish(frame, left, results)
    condition, run = left[1][0], frame.run
    if not isinstance(condition, DeviceTensor):
        if condition:
            return _finish(frame, (yield from frame.block(arms[0].body)), results)
        return (yield from _capture_arms(frame, arms[1:], orelse, results))
    before = dict(frame.environment)
    with _node(run, _flag(run), condition):
        leaves = _finish(frame, (yield from frame.block(arms[0].body)), results)
    frame.restore(before)  # an arm drops what it reads last
    with _node(run, _flag(run), condition, inverted=True):
        leaves |= yield from _capture_arms(frame, arms[1:], orelse, results)
    frame.restore(before)
    return leaves


def repeat(frame: Frame, loop: Loop, values: Sequence[Any], targets: Sequence[Var]) -> Steps:
    """Capture a loop whose end depends on the GPU: a Yield of its results."""
    run = frame.run
    if loop.counter is not None:
        raise NotRepeatable
    before = dict(frame.environment)
    flag = _flag(run)
    opened = run.open_loops[loop.label] = OpenLoop(_memory(frame, loop.parameters), _memory(frame, targets), flag)
    _copy_values(run, values, opened.parameters)
    frame.environment.update(zip(loop.parameters, opened.parameters, strict=True))
    with _node(run, flag, run.device(_TRUE), loops=True):
        _finish(frame, (yield from frame.block(loop.body)), ())
    del run.open_loops[loop.label]
    frame.restore(before)
    return Yield(()), list(opened.results)


def _memory(frame: Frame, variables: Sequence[Var]) -> list[DeviceTensor]:
    """Memory for the values of variables, whose sizes the host knows."""
    made = []
    for variable in variables:
        if not isinstance(variable.type, TensorType):
            raise NotRepeatable
        try:
            shape = tuple(map(frame.size, variable.type.shape))
        except (KeyError, TypeError):
            raise NotRepeatable from None
        made.append(frame.run.empty(variable.type.dtype, shape))
    return made


def _finish(frame: Frame, left: Leaving, results: Sequence[DeviceTensor]) -> set[bool]:
    """Copy what a block ends with to where it belongs: {True} if it leaves the block around it."""
    (terminator, values), run = left, frame.run
    match terminator:
        case Yield():
            _copy_values(run, values, results)
            return {False}
        case Next(label, _) if label in run.open_loops:
            _copy_values(run, values, run.open_loops[label].parameters)
        case Exit(label, _) if label in run.open_loops:
            _copy_values(run, values, run.open_loops[label].results)
            _set_flag(run, run.open_loops[label].flag, run.device(_TRUE), inverted=True)
        case Dead():
            pass
        case _:
            raise NotRepeatable
    return {True}


def _copy_values(run: Run, values: Sequence[Any], targets: Sequence[DeviceTensor]) -> None:
    """targets := values at once: a value may be another one's target."""
    places = {target.memory.address for target in targets}
    held = []
    for value, target in zip(values, targets, strict=True):
        tensor = run.device(value)
        if tensor.memory.address in places - {target.memory.address}:
            kept = run.empty(tensor.dtype, tensor.shape)
            run.gpu.copy(tensor.memory, kept.memory, tensor.nbytes)
            tensor = kept
        held.append(tensor)
    for tensor, target in zip(held, targets, strict=True):
        if tensor.memory.address != target.memory.address:
            run.gpu.copy(tensor.memory, target.memory, target.nbytes)


def _flag(run: Run) -> int:
    flag = run.gpu.new_condition()
    if flag is None:  # the driver has no conditional nodes
        raise NotRepeatable
    return flag


def _set_flag(run: Run, flag: int, value: DeviceTensor, inverted: bool) -> None:
    words = [value.memory.address, flag, int(inverted)]
    run.gpu.launch(KERNEL, run.kernels.functions[KERNEL], 1, 1, words)


@contextlib.contextmanager
def _node(run: Run, flag: int, condition: DeviceTensor, inverted: bool = False, loops: bool = False) -> Iterator[None]:
    """A node that runs what is captured in the context, if the condition holds, or while its flag is set."""
    _set_flag(run, flag, condition, inverted)
    run.conditions += 1
    try:
        with run.gpu.conditional_node(flag, loops):
            yield
    finally:
        run.conditions -= 1


__all__ = ["DECLARATION", "KERNEL", "SOURCE", "NotRepeatable", "OpenLoop", "choose", "repeat"]
