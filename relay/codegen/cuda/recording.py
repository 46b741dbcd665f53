"""Recordings: what a program starts on a GPU, in the order in which it does, without a GPU.

The host program runs with tensors that have addresses and no content, as where a graph is captured. What it starts is
the same in each call if nothing on the host depends on values on the GPU, and may then be started without Python.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from relay.codegen.cuda.conditions import NotRepeatable
from relay.codegen.cuda.driver import LoadedKernels
from relay.codegen.cuda.execution import Run
from relay.codegen.cuda.host_program import HostProgram
from relay.codegen.cuda.launches import Launch
from relay.codegen.cuda.memory import ALIGNMENT, Arena, Memory
from relay.codegen.cuda.tensors import DeviceTensor
from relay.errors import Span
from relay.ir.types import BaseType, TensorType, TupleType, Type

WORKSPACE, CONSTANTS, FIRST_INPUT = 0, 1, 2
"""The places of addresses: the program's memory, its constants, its inputs; outputs follow the inputs."""

NUMBER = -1
"""The place of a number, which is no address."""

_SPACE = 44
"""Bits of the addresses in one of these places."""

Word = tuple[int, int]
"""The place of an address, and its offset there; or NUMBER, and the number."""


class NotRecordableError(Exception):
    """The reason for which a program has no recording."""


@attrs.frozen(eq=False)
class Step:
    """The start of a kernel with these words; without a kernel, a copy, whose words are target, source and count."""

    launch: Launch | None
    blocks: int
    words: tuple[Word, ...]


@attrs.frozen(eq=False)
class Recording:
    """The steps of a program, the tensors that it takes and returns, the content of its constants, and the bytes that
    it needs beside them."""

    steps: tuple[Step, ...]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    constants: bytes
    workspace: int


def record(program: HostProgram) -> Recording:
    """The recording of a program. Raises NotRecordableError."""
    main = program.module.main
    gpu = _RecordingGpu()
    kernels = LoadedKernels(None, {launch.name: launch for launch in program.launches})
    run = Run(program, gpu, kernels, {}, OrderedDict())  # type: ignore[arg-type]
    run.allocate = gpu.workspace.allocate
    inputs: list[TensorType] = []
    arguments = [_argument(gpu, parameter.type, inputs) for parameter in main.parameters]
    try:
        result = run(arguments, {})
    except NotRepeatable:
        raise NotRecordableError(
            "the host decides by values on the GPU (a branch, a loop, a size or a check)"
        ) from None
    outputs: list[TensorType] = []
    for leaf in _leaves(result):
        tensor = run.device(leaf)
        target = FIRST_INPUT + len(inputs) + len(outputs), 0
        gpu.steps.append(Step(None, 0, (target, _word(tensor.memory.address), (NUMBER, tensor.nbytes))))
        outputs.append(TensorType(BaseType(str(tensor.dtype)), tensor.shape))
    return Recording(tuple(gpu.steps), tuple(inputs), tuple(outputs), bytes(gpu.constants), gpu.taken)


def _argument(gpu: _RecordingGpu, type_: Type | None, inputs: list[TensorType]) -> Any:
    """A value of a type, whose tensors are the next inputs."""
    if isinstance(type_, TupleType):
        return tuple(_argument(gpu, item, inputs) for item in type_.items)
    if not isinstance(type_, TensorType):
        raise NotRecordableError("it takes something else than arrays")
    shape = tuple(dim for dim in type_.shape if isinstance(dim, int))
    if len(shape) != len(type_.shape):
        raise NotRecordableError("its sizes are not known: compile it for arrays, not for symbolic sizes")
    memory = Memory((FIRST_INPUT + len(inputs)) << _SPACE, 0)
    inputs.append(type_)
    return DeviceTensor(gpu, memory, type_.dtype, shape, owner="the caller")


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    if not isinstance(value, DeviceTensor | np.ndarray):
        raise NotRecordableError("it returns something else than arrays")
    return [value]


def _word(address: int) -> Word:
    return address >> _SPACE, address & ((1 << _SPACE) - 1)


class _RecordingGpu:
    """The GPU as a run sees it. Nothing can be read from it."""

    capturing = True
    timer = None
    cublas = None
    cudnn = None
    stream = 0

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.constants = bytearray()
        self.taken = 0
        self.workspace = Arena(self._take, lambda: None, ALIGNMENT)

    def _take(self, count: int) -> int:
        self.taken += count
        return (WORKSPACE << _SPACE) + self.taken - count

    def allocate(self, count: int) -> Memory:
        """Memory of a constant."""
        start = len(self.constants)
        self.constants += bytes(-(-max(count, 1) // ALIGNMENT) * ALIGNMENT)
        return Memory((CONSTANTS << _SPACE) + start, count)

    def upload(self, array: np.ndarray, memory: Memory) -> None:
        """Take note of the content of a constant."""
        start = _word(memory.address)[1]
        self.constants[start : start + array.nbytes] = np.ascontiguousarray(array).tobytes()

    def copy(self, source: Memory, target: Memory, count: int) -> None:
        """Take note of a copy."""
        if count:
            self.steps.append(Step(None, 0, (_word(target.address), _word(source.address), (NUMBER, count))))

    def launch(
        self, name: str, function: Launch, blocks: int, threads: int, words: Sequence[int], lines: Sequence[Span] = ()
    ) -> None:
        """Take note of the start of a kernel."""
        pointers = len(function.buffers)
        given = (*map(_word, words[:pointers]), *((NUMBER, int(word)) for word in words[pointers:]))
        self.steps.append(Step(function, blocks, given))

    def new_condition(self) -> None:
        """Conditional nodes are for graphs."""


__all__ = ["CONSTANTS", "FIRST_INPUT", "NUMBER", "WORKSPACE", "NotRecordableError", "Recording", "Step", "record"]
