"""The host program: a core program whose control flow runs in Python and whose operators are kernels on a device.

Tensors stay on the device from the arguments to the result. A condition, a position in a stack and what is printed are
copied to the host, alone; a loop's counter is copied to the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, assert_never

import attrs
import numpy as np

from relay.codegen.cuda.kernels import DeviceKernels, GroupKernels, Launch
from relay.errors import CompileError, ExecutionError, InternalError, Span
from relay.ir import program_output
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Dead,
    Exit,
    Function,
    Global,
    If,
    Loop,
    MakeTuple,
    Match,
    Module,
    Next,
    OpCall,
    Print,
    Project,
    Var,
    Yield,
)
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.traverse import walk
from relay.ir.types import TensorType, TupleType, Type, show
from relay.operator import lookup
from relay.transform.fusion.fusion_groups import plan

NOT_YET = "docs/gpu.md lists what the target 'cuda' does not have yet; leave target= out for the processor"


class Device(Protocol):
    """A device's memory, and its kernels, which run one after another. Memory is freed when nothing refers to the
    result of `allocate`."""

    def allocate(self, count: int) -> Any:
        """Memory of this many bytes."""

    def upload(self, array: np.ndarray, memory: Any) -> None:
        """Copy an array to the device."""

    def download(self, memory: Any, array: np.ndarray) -> None:
        """Copy to an array what the kernels so far have computed."""

    def launch(self, launch: Launch, pointers: Sequence[Any]) -> None:
        """Run a kernel."""


@attrs.frozen(eq=False)
class DeviceTensor:
    """A tensor on the device."""

    memory: Any
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@attrs.frozen(eq=False)
class DataValue:
    """A value of a data type."""

    constructor: str
    fields: tuple[Any, ...]


@attrs.frozen(eq=False)
class HostProgram:
    """A program, with the kernels of its blocks by the positions of bindings where they run."""

    module: Module
    groups: Mapping[Block, Mapping[int, GroupKernels]]
    launches: Sequence[Launch]


_NODES = (OpCall, Call, MakeTuple, Project, If, Match, Loop, Assert, Print, Construct, Var, Constant, Global)


def host_program(module: Module) -> HostProgram:
    """The program of an optimized core. Raises CompileError for what the target does not have yet. The caller holds
    `locks.compiling`."""
    kernels = DeviceKernels()
    groups: dict[Block, Mapping[int, GroupKernels]] = {}
    main = module.main
    if dims := symbolic_dims(module):
        raise CompileError(
            f"the target 'cuda' has no symbolic sizes yet, found {next(iter(dims))}", main.span, help=NOT_YET
        )
    for what, type_ in (*((p.name, p.type) for p in main.parameters), ("the result", main.result)):
        if type_ is not None and not _is_plain(type_):
            raise CompileError(
                f"the target 'cuda' takes and returns tensors and tuples of them; {what} is {show(type_)}",
                main.span,
                help=NOT_YET,
            )
    for function in module.functions.values():
        if not isinstance(function, Function):
            raise InternalError(f"{function} has not been derived before code generation")
        for block in _blocks(function.body):
            _refuse(block)
            groups[block] = {position: kernels.group(group) for position, group in plan(block).items()}
    return HostProgram(module, groups, tuple(kernels.launches))


def _is_plain(type_: Type) -> bool:
    return all(map(_is_plain, type_.items)) if isinstance(type_, TupleType) else isinstance(type_, TensorType)


def _blocks(block: Block) -> list[Block]:
    """A block and those in it."""
    found = [block]
    for binding in walk(block):
        match binding.value:
            case If(arms, orelse):
                found += [part for arm in arms for part in (arm.condition, arm.body)] + [orelse]
            case Match(_, arms):
                found += [arm.body for arm in arms]
            case Loop(body=body):
                found.append(body)
            case _:
                pass
    return found


def _refuse(block: Block) -> None:
    """Raise CompileError for a node that the target does not have yet."""
    for binding in block.bindings:
        value = binding.value
        span: Span | None = getattr(value, "span", None)
        if not isinstance(value, _NODES):
            raise CompileError(f"the target 'cuda' does not have {_words(value)} yet", span, help=NOT_YET)
        if isinstance(value, OpCall) and lookup(value.operator).compute is None:
            raise CompileError(f"{value.operator} runs in Python, not on the target 'cuda'", span, help=NOT_YET)


_SUBJECTS = {"Ref": "references", "Shadow": "gradients through references", "Stack": "lists of any length, nor stacks"}


def _words(node: object) -> str:
    """The name of this node's kind in error messages."""
    name = type(node).__name__
    return next((words for start, words in _SUBJECTS.items() if name.startswith(start)), "sizes that depend on values")


Leaving = tuple[Yield | Next | Exit | Dead, list[Any]]
"""The end of a block, with its values."""


class Run:
    """One run of a program on a device. `constants` are those that earlier runs have copied."""

    def __init__(self, program: HostProgram, device: Device, constants: dict[int, DeviceTensor]) -> None:
        self.program, self.device, self.constants = program, device, constants

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """The result for arrays, and tuples of them. Raises ExecutionError for what is found at run time."""
        main = self.program.module.main
        given = [self._upload(a, p.type) for a, p in zip(arguments, main.parameters, strict=True)]
        try:
            return self._download(self._call(main, given))
        except RecursionError:
            raise ExecutionError(
                "recursion is too deep for the target 'cuda', whose calls Python keeps",
                main.span,
                help="use a loop, or sys.setrecursionlimit",
            ) from None

    def _upload(self, value: Any, type_: Any) -> Any:
        if isinstance(type_, TupleType):
            return tuple(map(self._upload, value, type_.items))
        return self._on_device(np.ascontiguousarray(value, type_.dtype).reshape(type_.shape))

    def _on_device(self, array: np.ndarray) -> DeviceTensor:
        made = self._empty(array.dtype, array.shape)
        self.device.upload(array, made.memory)
        return made

    def _empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return DeviceTensor(self.device.allocate(max(count, 1)), dtype, shape)

    def _download(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._download, value))
        array = np.empty(value.shape, value.dtype)
        self.device.download(value.memory, array)
        return array

    # ---- blocks

    def _call(self, function: Function, arguments: Sequence[Any]) -> Any:
        environment: dict[Var, Any] = dict(zip(function.parameters, arguments, strict=True))
        _, (result,) = self._block(function.body, environment)
        return result

    def _block(self, block: Block, environment: dict[Var, Any]) -> Leaving:
        """Run a block: how it ends, or how what it has in it leaves it."""
        groups = self.program.groups[block]
        for position, binding in enumerate(block.bindings):
            if position in groups:
                self._launch(groups[position], environment)
            if isinstance(binding.value, OpCall):
                continue
            left = self._binding(binding, environment)
            if left is not None:
                return left
        terminator = block.terminator
        values = () if isinstance(terminator, Dead) else terminator.values
        return terminator, [self._atom(value, environment) for value in values]

    def _launch(self, group: GroupKernels, environment: dict[Var, Any]) -> None:
        operands = [self._atom(atom, environment).memory for atom in group.operands]
        results = [self._empty(type_.dtype, type_.shape) for type_ in group.results]  # type: ignore[arg-type]
        temporaries = [self.device.allocate(count) for count in group.temporaries]
        memory = [*operands, *(result.memory for result in results), *temporaries]
        for launch in group.launches:
            self.device.launch(launch, [memory[n] for n in launch.buffers])
        environment.update(zip(group.outputs, results, strict=True))

    def _atom(self, atom: Atom, environment: Mapping[Var, Any]) -> Any:
        if isinstance(atom, Var):
            return environment[atom]
        if not isinstance(atom, Constant):
            raise InternalError(f"{atom} is not a value")
        known = self.constants.get(id(atom.value))
        if known is None:
            known = self.constants[id(atom.value)] = self._on_device(atom.value)
        return known

    def _binding(self, binding: Binding, environment: dict[Var, Any]) -> Leaving | None:
        """Run a binding; how it leaves its block, if it does."""

        def value(atom: Atom) -> Any:
            return self._atom(atom, environment)

        results: Sequence[Any]
        match binding.value:
            case Var() | Constant() as atom:
                results = (value(atom),)
            case Call(Global(name), arguments):
                function = self.program.module.functions[name]
                assert isinstance(function, Function)
                results = (self._call(function, [value(a) for a in arguments]),)
            case MakeTuple(items):
                results = (tuple(map(value, items)),)
            case Project(whole, index):
                results = (value(whole)[index],)
            case Construct(_, constructor, arguments):
                results = (DataValue(constructor, tuple(map(value, arguments))),)
            case Assert(condition, message, span):
                if not self._download(value(condition)):
                    raise ExecutionError(message, span)
                results = ()
            case Print(_, atoms) as text:
                program_output.write(text, [self._download(value(a)) for a in atoms])
                results = ()
            case If() | Match() | Loop() as construct:
                left = self._construct(construct, environment)
                if not isinstance(left[0], Yield):
                    return left
                results = left[1]
            case other:
                raise InternalError(f"{type(other).__name__} has not been refused")
        environment.update(zip(binding.targets, results, strict=True))
        return None

    def _construct(self, construct: If | Match | Loop, environment: dict[Var, Any]) -> Leaving:
        """Run what has blocks: a Yield of its results, or how it leaves the block around it."""
        match construct:
            case If(arms, orelse):
                for arm in arms:
                    left = self._block(arm.condition, environment)
                    if not isinstance(left[0], Yield):
                        return left
                    if self._download(left[1][0]):
                        return self._block(arm.body, environment)
                return self._block(orelse, environment)
            case Match(matched, match_arms):
                data = self._atom(matched, environment)
                found = next(arm for arm in match_arms if arm.constructor == data.constructor)
                environment.update(zip(found.fields, data.fields, strict=True))
                return self._block(found.body, environment)
            case Loop():
                return self._loop(construct, environment)
            case _:
                assert_never(construct)

    def _loop(self, loop: Loop, environment: dict[Var, Any]) -> Leaving:
        values = [self._atom(initial, environment) for initial in loop.initial]
        rounds, dtype = None, None
        if loop.counter is not None:
            count = self._download(self._atom(loop.counter.count, environment))
            rounds, dtype = int(count), count.dtype
        number = 0
        while rounds is None or number < rounds:
            environment.update(zip(loop.parameters, values, strict=True))
            if loop.counter is not None:
                environment[loop.counter.index] = self._on_device(np.array(number, dtype))
            terminator, values = self._block(loop.body, environment)
            if isinstance(terminator, Exit) and terminator.label is loop.label:
                break
            if not isinstance(terminator, Next) or terminator.label is not loop.label:
                return terminator, values
            number += 1
        return Yield(()), values


Runner = Callable[[Sequence[Any]], Any]
"""A function that runs a program on arrays, and tuples of them."""


def runner(program: HostProgram, device: Device) -> Runner:
    """A function that runs a program on a device, and keeps its constants there."""
    constants: dict[int, DeviceTensor] = {}
    return lambda arguments: Run(program, device, constants)(arguments)


__all__ = ["Device", "HostProgram", "host_program", "runner"]
