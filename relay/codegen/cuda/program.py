"""Programs for a GPU, as calls see them: arguments and results as tensors on the device, and whole calls as graphs."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from relay.codegen.cuda.compiler import MachineCode, exceeded_resource
from relay.codegen.cuda.conditions import KERNEL
from relay.codegen.cuda.driver import Gpu, LoadedKernels, compile_cuda, open_gpu
from relay.codegen.cuda.execution import Run, stays_on_host
from relay.codegen.cuda.graphs import Graph, Graphs
from relay.codegen.cuda.host_program import HostProgram, host_program
from relay.codegen.cuda.target import Architecture
from relay.codegen.cuda.tensors import Cell, DataValue, DeviceTensor, HostStack, convert_values
from relay.errors import CompileError, InternalError
from relay.ir.expr import Module
from relay.ir.sizes.extents import Place, symbolic_dims
from relay.ir.types import DataType, RefType, StackType, TupleType, Type
from relay.support.locks import compiling


def kernels_of(module: Module, architecture: Architecture) -> tuple[HostProgram, str]:
    """A program of an optimized core, and the CUDA C of its kernels. Raises CompileError for what the target does not
    have."""
    from relay.codegen.cuda.source import cuda_source

    with compiling:
        program = host_program(module)
        return program, cuda_source(program.launches, architecture, program.has_conditions)


class CudaProgram:
    """A compiled program for a GPU: call it with one value for each parameter."""

    def __init__(
        self,
        program: HostProgram,
        code: MachineCode,
        architecture: Architecture,
        make: Callable[[Any, str, tuple[Any, ...]], Any],
        reference: Callable[[Any], Any],
        uses: list[int] | None = None,
    ) -> None:
        """`make` makes the values of data types in results, `reference` the references that were not passed in. The
        runs are counted in the only item of `uses`. The first call needs the GPU."""
        self.host, self.code, self.architecture = program, code, architecture
        self._make, self._reference = make, reference
        self._uses = [0] if uses is None else uses
        self._dims = symbolic_dims(program.module)
        self._constants: dict[int, DeviceTensor] = {}
        self._numbers: OrderedDict[tuple[str, tuple[int, ...], bytes], DeviceTensor] = OrderedDict()

    @functools.cached_property
    def _gpu(self) -> Gpu:
        """The GPU. Raises CompileError where there is none, and for one of another architecture."""
        gpu = open_gpu()
        if gpu.architecture != self.architecture.name:
            raise CompileError(
                f"the GPU is an {gpu.architecture}, the program is for {self.architecture.name}",
                help='write target="cuda, arch=.." for the GPU\'s own architecture',
            )
        return gpu

    @functools.cached_property
    def _kernels(self) -> LoadedKernels:
        names = [launch.name for launch in self.host.launches]
        return self._gpu.load(self.code.code, [*names, *([KERNEL] if self.host.has_conditions else [])])

    @functools.cached_property
    def _graphs(self) -> Graphs:
        return Graphs(self._gpu)

    def _new_run(self) -> Run:
        run = Run(self.host, self._gpu, self._kernels, self._constants, self._numbers)
        run.decided_loops = self._graphs.decided_loops
        return run

    def __call__(self, arguments: list[Any]) -> Any:
        """Arrays, tensors on the device, and what holds them, as the entry's types say; tensors of the result are on
        the device, and may still be computed. Raises CompileError where there is no GPU of the program's architecture,
        ExecutionError for what is found so far."""
        gpu = self._gpu
        with gpu.lock:
            gpu.enter()
            leaves = _tensor_leaves(arguments)
            key = self._graphs.key(leaves)
            if leaves is not None and key is not None and (graph := self._graphs.graph(key, leaves)) is not None:
                return self._replay(graph, leaves)
            run = self._new_run()
            if key is not None and self._graphs.wants(key):
                assert leaves is not None
                sizes = {dim: _extent(arguments, place) for dim, place in self._dims.items()}
                captured = self._graphs.capture(key, run, leaves, lambda new: _with_leaves(arguments, new), sizes)
                if captured is not None:
                    return self._replay(captured, leaves)
                run = self._new_run()
            cells: dict[int, Cell] = {}
            launched, before_peak = gpu.launches, gpu.arena.start_peak()
            given = self._take(arguments, run, cells)
            sizes = {dim: _extent(given, place) for dim, place in self._dims.items()}
            before = {key: cell.content for key, cell in cells.items()}
            try:
                result = run(given, sizes)
                if leaves is not None and key is not None:
                    self._graphs.record_run(key, leaves, gpu.launches - launched, gpu.arena.peak - before_peak)
                found = self._give([result], run)[0]
            finally:
                for key, cell in cells.items():
                    if cell.content is not before[key]:
                        cell.outside.content = self._give([cell.content], run)[0]
        self._uses[0] += 1
        return found

    def _replay(self, graph: Graph, leaves: Sequence[Any]) -> Any:
        """The result of a captured call for these arguments."""
        self._graphs.replay(graph, leaves)
        self._uses[0] += 1
        run = self._new_run()

        def leaf(value: Any) -> DeviceTensor:
            if not isinstance(value, DeviceTensor):
                return run.on_device(value)
            made = run.empty(value.dtype, value.shape)
            self._gpu.copy(value.memory, made.memory, value.nbytes)
            return made

        return self._give([graph.result], run, leaf)[0]

    def _take(self, arguments: list[Any], run: Run, cells: dict[int, Cell]) -> list[Any]:
        """Arguments as the program's values."""

        def leaf(value: Any) -> Any:
            if isinstance(value, DeviceTensor):
                return value
            array = np.asarray(value)
            if not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            return array.copy() if stays_on_host(array) else run.on_device(array)

        def parts(value: Any) -> Sequence[Any] | None:
            if isinstance(value, tuple):
                return value
            if hasattr(value, "constructor"):
                fields: Sequence[Any] = value.fields
                return fields
            return lists.get(id(value))

        lists = _stack_elements(arguments, [p.type for p in self.host.module.main.parameters])

        def rebuild(value: Any, made: list[Any]) -> Any:
            if isinstance(value, tuple):
                return tuple(made)
            if hasattr(value, "constructor"):
                return DataValue(value.definition, value.constructor, tuple(made))
            return HostStack(made, len(made))

        def cell(value: Any) -> tuple[Any, Callable[[Any], None]] | None:
            if not hasattr(value, "content"):
                return None
            made = cells[id(value)] = Cell(None, value)
            return made, lambda content: setattr(made, "content", content)

        return convert_values(arguments, parts, rebuild, leaf, cell)

    def _give(self, values: list[Any], run: Run, copied: Callable[[Any], DeviceTensor] | None = None) -> list[Any]:
        """The program's values as results: tensors on the device, tuples, data, references, and lists for stacks.
        `copied` makes a tensor of the result of one, if it is not to be that."""

        def leaf(value: Any) -> Any:
            if copied is not None:
                return copied(value)
            return value if isinstance(value, DeviceTensor) else run.on_device(value)

        def parts(value: Any) -> Sequence[Any] | None:
            if isinstance(value, tuple):
                return value
            if isinstance(value, DataValue):
                return value.fields
            return value.buffer[: value.length] if isinstance(value, HostStack) else None

        def rebuild(value: Any, made: list[Any]) -> Any:
            if isinstance(value, tuple):
                return tuple(made)
            return (
                self._make(value.definition, value.constructor, tuple(made)) if isinstance(value, DataValue) else made
            )

        def cell(value: Any) -> tuple[Any, Callable[[Any], None]] | None:
            if not isinstance(value, Cell):
                return None
            if value.outside is None:
                value.outside = self._reference(None)
            outside = value.outside
            return outside, lambda content: setattr(outside, "content", content)

        return convert_values(values, parts, rebuild, leaf, cell)

    @property
    def native(self) -> NoReturn:
        """Raises CompileError: only programs for the processor have machine code."""
        raise CompileError(
            f"{self.host.module.entry} was compiled for a GPU, and has no machine code for the processor",
            help="leave target= out for the processor",
        )


def compile_for_gpu(
    module: Module,
    architecture: Architecture,
    make: Callable[[Any, str, tuple[Any, ...]], Any],
    reference: Callable[[Any], Any],
    uses: list[int] | None = None,
) -> CudaProgram:
    """A program of an optimized core. Raises CompileError for what the target does not have."""
    return CudaProgram(*program_parts(module, architecture), architecture, make, reference, uses)


def program_parts(module: Module, architecture: Architecture) -> tuple[HostProgram, MachineCode]:
    """The host program of an optimized core, and its machine code. Raises as `compile_for_gpu`."""
    program, source = kernels_of(module, architecture)
    return program, gpu_code(program, source, architecture)


def gpu_code(program: HostProgram, source: str, architecture: Architecture) -> MachineCode:
    """Machine code, whose kernels take no more than the architecture has. Needs no GPU."""
    made = compile_cuda(source, architecture)
    for launch in program.launches:
        problem = exceeded_resource(made.resources[launch.name], launch.threads, architecture)
        if problem is not None:
            raise InternalError(f"{launch.name} takes {problem}")
    return made


def _tensor_leaves(arguments: Sequence[Any]) -> list[Any] | None:
    """The arrays and tensors in arguments, if there are only these, and tuples of them."""
    found: list[Any] = []
    for value in arguments:
        if isinstance(value, tuple):
            inside = _tensor_leaves(value)
            if inside is None:
                return None
            found += inside
        elif isinstance(value, DeviceTensor | np.ndarray):
            found.append(value)
        else:
            return None
    return found


def _with_leaves(arguments: Sequence[Any], leaves: list[Any]) -> list[Any]:
    """The same arguments with other arrays and tensors."""
    left = iter(leaves)

    def again(value: Any) -> Any:
        return tuple(map(again, value)) if isinstance(value, tuple) else next(left)

    return list(map(again, arguments))


def _stack_elements(values: Sequence[Any], types: Sequence[Type | None]) -> dict[int, list[Any]]:
    """The elements of the stacks among values, by the stacks' `id`, as the types have them: passes may have left out
    the cells in which Python's lists hold theirs."""
    found: dict[int, list[Any]] = {}
    seen: set[int] = set()
    pending = list(zip(values, types, strict=True))
    while pending:
        value, type_ = pending.pop()
        match type_:
            case TupleType(items):
                pending += zip(value, items, strict=True)
            case RefType(content) if id(value) not in seen:
                seen.add(id(value))
                pending.append((value.content, content))
            case StackType(element) if id(value) not in found:
                held = value.buffer[: value.length]
                if not isinstance(element, RefType):
                    held = [item.content if hasattr(item, "content") else item for item in held]
                found[id(value)] = held
                pending += ((item, element) for item in held)
            case DataType(definition) if id(value) not in seen:
                seen.add(id(value))
                constructor = next(c for c in definition.constructors if c.name == value.constructor)
                pending += zip(value.fields, constructor.fields, strict=True)
            case _:
                pass
    return found


def _extent(arguments: Sequence[Any], place: Place) -> int:
    value = arguments[place.parameter]
    for index in place.path:
        value = value.fields[index] if isinstance(value, DataValue) else value[index]
    return int(value.shape[place.axis])


__all__ = ["CudaProgram", "compile_for_gpu", "kernels_of", "program_parts"]
