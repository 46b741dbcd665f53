"""Execution of host programs: the host walks through the program and starts kernels; tensors stay on the GPU.

A condition, and what is asserted or printed, is copied to the host, alone. Numbers of integer dtypes that the host
knows anyway, loops' counters and sizes, are computed on the host, so that what depends on them alone waits for nothing.
Calls wait on a stack of the host's own, so recursion is as deep as memory allows.
"""

from __future__ import annotations

import math
import sys
from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from typing import Any, assert_never

import numpy as np

from relay.codegen.cuda.conditions import NotRepeatable, OpenLoop, choose, repeat
from relay.codegen.cuda.driver import Gpu, LoadedKernels
from relay.codegen.cuda.host_program import HostProgram
from relay.codegen.cuda.launches import GENERAL, GroupKernels
from relay.codegen.cuda.libraries.calls import run_by_library
from relay.codegen.cuda.memory import Memory
from relay.codegen.cuda.tensors import Cell, DataValue, DeviceTensor, HostStack
from relay.errors import ExecutionError, InternalError, Span
from relay.errors.raised import failure
from relay.ir import program_output
from relay.ir.dims import Dim, TypeId, evaluate, no_size
from relay.ir.expr import (
    Ascribe,
    Assert,
    Atom,
    AxisSize,
    BindDim,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Dead,
    Exit,
    Extent,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Next,
    OpCall,
    Print,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Shadow,
    StackGet,
    StackLength,
    StackNew,
    StackPrefix,
    StackPush,
    StackSet,
    Var,
    Yield,
)
from relay.ir.types import TensorType
from relay.operator import lookup
from relay.support.limits import stack_size, too_deep

CALL_BYTES = 1024
"""About what a waiting call takes of the host's memory; `stack_size` says how many may wait."""

ALWAYS_DEEP_ENOUGH = 10_000
"""Calls that may wait without a look at the memory."""

KEPT_NUMBERS = 4096
"""Numbers of the host that stay on the GPU for the next kernel that reads them."""

Leaving = tuple[Yield | Next | Exit | Dead, list[Any]]
"""The end of a block, with its values."""

CallRequest = tuple[Function, list[Any], Mapping[TypeId, int]]
"""A call that a block waits for: the function, its arguments, and the sizes that it sees."""

Steps = Generator[CallRequest, Any, Leaving]
"""A block that is being run. It yields the calls that it waits for, and is sent their results."""


class Run:
    """One run of a program. `constants` are those that earlier runs have copied, by `id`; `numbers` the host's."""

    def __init__(
        self,
        program: HostProgram,
        gpu: Gpu,
        kernels: LoadedKernels,
        constants: dict[int, DeviceTensor],
        numbers: OrderedDict[tuple[str, tuple[int, ...], bytes], DeviceTensor],
    ) -> None:
        self.program, self.gpu, self.kernels = program, gpu, kernels
        self.constants, self.numbers = constants, numbers
        self.allocate = gpu.allocate
        self.decided_loops: set[LoopLabel] = set()
        """The loops of unknown length in which the GPU has decided something, in this run and those before."""
        self.decisions = 0
        """The branches that the GPU has decided."""
        self.open_loops: dict[LoopLabel, OpenLoop] = {}
        self.conditions = 0
        """The conditional nodes that are being captured, one in the other."""

    def __call__(self, arguments: list[Any], sizes: Mapping[TypeId, int]) -> Any:
        """The result of the entry for tensors and what holds them. `arguments` is emptied, so that the memory of what
        nobody else has is free after its last use. Raises ExecutionError for what is found at run time."""
        waiting = [self._function(self.program.module.main, arguments, sizes)]
        deepest = ALWAYS_DEEP_ENOUGH
        result: Any = None
        while waiting:
            try:
                callee, given, known = waiting[-1].send(result)
            except StopIteration as stop:
                waiting.pop()
                result = stop.value
                continue
            if len(waiting) > deepest:
                deepest = max(stack_size() // CALL_BYTES, ALWAYS_DEEP_ENOUGH)
                if len(waiting) > deepest:
                    raise too_deep(deepest)
            waiting.append(self._function(callee, given, known))
            result = None
        return result

    # ---- tensors

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        """A tensor with no content yet."""
        count = math.prod(shape) * dtype.itemsize
        return DeviceTensor(self.gpu, self.allocate(count), dtype, shape)

    def on_device(self, array: np.ndarray) -> DeviceTensor:
        """An array of the host on the GPU. While a graph is made, it is there before the graph runs, so that its memory
        must not be that of what the graph has computed before."""
        allocate = self.gpu.allocate if self.gpu.capturing else self.allocate
        made = DeviceTensor(self.gpu, allocate(array.nbytes), array.dtype, array.shape)
        self.gpu.upload(array, made.memory)
        return made

    def device(self, value: Any) -> DeviceTensor:
        """A tensor as kernels read it."""
        if isinstance(value, DeviceTensor):
            return value
        key = str(value.dtype), value.shape, value.tobytes()
        known = self.numbers.get(key)
        if known is None:
            known = self.numbers[key] = self.on_device(value)
            if len(self.numbers) > KEPT_NUMBERS and not self.gpu.capturing:
                self.numbers.popitem(last=False)
        return known

    def host(self, value: Any) -> np.ndarray:
        """A tensor's elements on the host, once they are computed. Raises NotRepeatable while a graph is made."""
        if not isinstance(value, DeviceTensor):
            return value  # type: ignore[no-any-return]
        if self.gpu.capturing:
            raise NotRepeatable
        array = np.empty(value.shape, value.dtype)
        self.gpu.download(value.memory, array)
        return array

    # ---- blocks

    def _function(
        self, function: Function, arguments: list[Any], sizes: Mapping[TypeId, int]
    ) -> Generator[CallRequest, Any, Any]:
        frame = Frame(self, dict(zip(function.parameters, arguments, strict=True)), sizes)
        arguments.clear()  # its caller has the list, too
        _, (result,) = yield from frame.block(function.body)
        return result


class Frame:
    """A function that is being run: its variables, and the sizes that it knows."""

    def __init__(self, run: Run, environment: dict[Var, Any], sizes: Mapping[TypeId, int]) -> None:
        self.run, self.environment, self.sizes = run, environment, sizes

    def restore(self, environment: Mapping[Var, Any]) -> None:
        """Have the variables that there were before."""
        self.environment.clear()
        self.environment.update(environment)

    def block(self, block: Block) -> Steps:
        """Run a block: how it ends, or how what it has in it leaves it."""
        known = self.run.program.blocks[block]
        environment = self.environment
        end = 0  # of a region that has run
        for position, binding in enumerate(block.bindings):
            if position in known.regions:
                self._launch(known.regions[position].kernels, ())
                end = known.regions[position].end
            elif position >= end and position in known.groups:
                self._launch(known.groups[position], known.last[position])
            if position >= end and not isinstance(binding.value, OpCall):
                left = yield from self._binding(binding, known.last[position], known.carried.get(position, ()))
                if left is not None:
                    return left
            for variable in known.last[position]:
                environment.pop(variable, None)
        terminator = block.terminator
        values = [] if isinstance(terminator, Dead) else list(map(self._atom, terminator.values))
        for variable in known.ending:
            environment.pop(variable, None)
        return terminator, values

    def size(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else evaluate(dim, self.sizes)

    def _launch(self, group: GroupKernels, last: Sequence[Var]) -> None:
        run, environment = self.run, self.environment
        given = [self._atom(atom) for atom in group.operands]
        values = given if group.updated is None else [*given, environment[group.updated]]
        if not any(isinstance(value, DeviceTensor) for value in values) and self._on_host(group):
            return
        del values  # references to what may be changed are counted
        operands = [run.device(value) for value in given]
        del given
        if group.is_view:
            (source,), (type_,) = operands, group.results
            shape = tuple(map(self.size, type_.shape))
            made = DeviceTensor(run.gpu, source.memory, source.dtype, shape, source.owner)
            environment[group.outputs[0]] = made
            return
        types = group.results if group.updated is None else group.results[:-1]
        results = [run.empty(type_.dtype, tuple(map(self.size, type_.shape))) for type_ in types]
        if group.updated is not None:
            results.append(self._changeable(group.updated, last, operands))
        if not run_by_library(self, group, operands, results):
            self.compute(group, operands, results)
        environment.update(zip(group.outputs, results, strict=True))

    def compute(
        self, group: GroupKernels, operands: Sequence[DeviceTensor], results: Sequence[DeviceTensor] | None = None
    ) -> Sequence[DeviceTensor]:
        """Start the kernels of a group; its results, in new memory if none is given."""
        run = self.run
        if results is None:
            results = [run.empty(type_.dtype, tuple(map(self.size, type_.shape))) for type_ in group.results]
        numbers = [self.sizes[dim] for dim in group.sizes]
        general = dict(zip(GENERAL, numbers, strict=False))
        temporaries = [
            run.allocate(count if isinstance(count, int) else evaluate(count, general)) for count in group.temporaries
        ]
        addresses = [tensor.memory.address for tensor in operands]
        addresses += [result.memory.address for result in results]
        addresses += [memory.address for memory in temporaries]
        for launch in group.launches:
            blocks = launch.blocks if isinstance(launch.blocks, int) else evaluate(launch.blocks, general)
            if blocks > 0:
                words = [addresses[n] for n in launch.buffers] + numbers[: launch.sizes]
                run.gpu.launch(
                    launch.name, run.kernels.functions[launch.name], blocks, launch.threads, words, group.lines
                )
        return results

    def _changeable(self, variable: Var, last: Sequence[Var], operands: Sequence[DeviceTensor]) -> DeviceTensor:
        """A tensor with the elements of a variable, which may be written: its own memory if nothing but these operands
        has it."""
        run = self.run
        found = [self.environment[variable]]
        if variable in last:
            self.environment.pop(variable)
        alone, alone_memory = _ALONE_TENSOR
        alone += sum(operand is found[0] for operand in operands)
        is_own = isinstance(found[0], DeviceTensor) and found[0].owner is None
        if is_own and _tensor_holders(found, 0) == (alone, alone_memory):
            return found[0]  # type: ignore[no-any-return]
        old = run.device(found[0])
        new = run.empty(old.dtype, old.shape)
        run.gpu.copy(old.memory, new.memory, old.nbytes)
        return new

    def _on_host(self, group: GroupKernels) -> bool:
        """Compute a group of few integers on the host, where its operands are; False if that is not what it is of."""
        if group.calls is None:
            return False
        environment: dict[Atom, np.ndarray] = {variable: self.environment[variable] for variable in group.read}
        with np.errstate(all="ignore"):
            for target, call in group.calls:
                operands = [atom.value if isinstance(atom, Constant) else environment[atom] for atom in call.arguments]
                operator = lookup(call.operator)
                made = operator.reference(*((tuple(operands),) if operator.variadic else operands), **call.attributes)
                assert isinstance(target.type, TensorType)
                environment[target] = np.asarray(made, target.type.dtype)
        self.environment.update((variable, environment[variable]) for variable in group.outputs)
        return True

    def _atom(self, atom: Atom) -> Any:
        if isinstance(atom, Var):
            return self.environment[atom]
        if not isinstance(atom, Constant):
            raise InternalError(f"{atom} is not a value")
        value = atom.value
        if stays_on_host(value):
            return value
        known = self.run.constants.get(id(value))
        if known is None:
            known = self.run.constants[id(value)] = self.run.on_device(value)
        return known

    def _binding(
        self, binding: Binding, last: Sequence[Var], carried: Sequence[Var]
    ) -> Generator[CallRequest, Any, Leaving | None]:
        """Run a binding; how it leaves its block, if it does."""
        environment, value = self.environment, self._atom
        results: Sequence[Any]
        match binding.value:
            case Call(Global(name), arguments):
                self._refuse_in_nodes()
                function = self.run.program.module.functions[name]
                assert isinstance(function, Function)
                given = list(map(value, arguments))
                for variable in last:
                    environment.pop(variable, None)
                results = ((yield function, given, self.sizes),)
            case If() | Match() | Loop() as construct:
                left = yield from self._construct(construct, carried, binding.targets)
                if not isinstance(left[0], Yield):
                    return left
                results = left[1]
            case _:
                results = self._simple_values(binding, last)
        environment.update(zip(binding.targets, results, strict=True))
        return None

    def _simple_values(self, binding: Binding, last: Sequence[Var]) -> Sequence[Any]:
        """The values of a binding that takes one step."""
        value = self._atom
        match binding.value:
            case Var() | Constant() | Ascribe() as same:
                return (value(same.value if isinstance(same, Ascribe) else same),)
            case MakeTuple(items):
                return (tuple(map(value, items)),)
            case Project(whole, index):
                return (value(whole)[index],)
            case Construct(definition, constructor, arguments):
                return (DataValue(definition, constructor, tuple(map(value, arguments))),)
            case Assert(condition, message, span):
                if not self.run.host(value(condition)):
                    raise failure(message, span)
                return ()
            case Print(_, atoms) as text:
                if self.run.gpu.capturing:
                    raise NotRepeatable
                program_output.write(text, [self.run.host(value(a)) for a in atoms])
                return ()
            case RefNew(content):
                return (Cell(value(content)),)
            case RefRead(reference):
                return (value(reference).content,)
            case RefWrite(reference, content):
                self._refuse_in_nodes()
                value(reference).content = value(content)
                return ()
            case Shadow(reference, sweep, initial, slot):
                self._refuse_in_nodes()
                return (value(reference).shadow(slot, value(sweep), value(initial)),)
            case Extent(dim, base):
                return (np.array(self.size(dim), base.dtype),)
            case BindDim(made, size, span):
                number = int(self.run.host(value(size)))
                if not 0 <= number <= made.upper_bound:
                    raise ExecutionError(no_size(made), span)
                self.sizes = {**self.sizes, made: number}
                return ()
            case AxisSize(tensor, axis):
                return (np.array(value(tensor).shape[axis], np.int64),)
            case StackNew() | StackPush() | StackSet() | StackPrefix() | StackGet() | StackLength() as stacks:
                return (self._stack(stacks, last),)
            case other:
                raise InternalError(f"{type(other).__name__} is not in programs for GPUs")

    def _stack(
        self, node: StackNew | StackPush | StackSet | StackPrefix | StackGet | StackLength, last: Sequence[Var]
    ) -> Any:
        """The value of an operation on a stack. A change is made in place if nothing but a variable that is of no more
        use has the stack."""
        self._refuse_in_nodes()
        match node:
            case StackNew():
                return HostStack([], 0)
            case StackLength(stack):
                return np.array(self._atom(stack).length, np.int64)
            case StackGet(stack, index, span):
                held = self._atom(stack)
                return held.buffer[self._position(index, held.length, span)]
            case StackPush(stack, item):
                return self._atom(stack).push(self._atom(item))
            case StackSet(stack, index, item, span):
                only = [self._atom(stack)]
                position = self._position(index, only[0].length, span)
                new = self._atom(item)
                return only[0].with_element(position, new, self._is_last(only, last))
            case StackPrefix(stack, length, span):
                only = [self._atom(stack)]
                position = self._position(length, only[0].length + 1, span)
                return only[0].prefix(position, self._is_last(only, last))
            case _:
                assert_never(node)

    def _is_last(self, only: list[HostStack], last: Sequence[Var]) -> bool:
        """True if nothing but variables that are of no more use, which are dropped, and this list has a stack."""
        for variable in last:
            self.environment.pop(variable, None)
        return _holders(only, 0) == _ALONE

    def _position(self, index: Atom, length: int, span: Span | None) -> int:
        position = int(self.run.host(self._atom(index)))
        if not 0 <= position < length:
            raise ExecutionError(f"index {position} is out of range for a stack of {length}", span)
        return position

    def _construct(self, construct: If | Match | Loop, carried: Sequence[Var], targets: Sequence[Var]) -> Steps:
        """Run what has blocks: a Yield of its results, or how it leaves the block around it."""
        match construct:
            case If():
                return (yield from self._branch(construct, targets))
            case Match(matched, match_arms):
                data = self._atom(matched)
                found = next(arm for arm in match_arms if arm.constructor == data.constructor)
                self.environment.update(zip(found.fields, data.fields, strict=True))
                return (yield from self.block(found.body))
            case Loop(label):
                if self.run.gpu.capturing and label in self.run.decided_loops:
                    return (yield from repeat(self, construct, list(map(self._atom, construct.initial)), targets))
                return (yield from self._loop(construct, carried))
            case _:
                assert_never(construct)

    def _branch(self, branch: If, targets: Sequence[Var]) -> Steps:
        if self.run.gpu.capturing:
            return (yield from choose(self, branch, targets))
        for block, body in [*((arm.condition, arm.body) for arm in branch.arms), (None, branch.orelse)]:
            if block is not None:
                left = yield from self.block(block)
                if not isinstance(left[0], Yield):
                    return left
                self.run.decisions += isinstance(left[1][0], DeviceTensor)
                if not self.run.host(left[1][0]):
                    continue
            return (yield from self.block(body))
        raise InternalError("a branch without an arm")

    def _refuse_in_nodes(self) -> None:
        """Raise NotRepeatable in a conditional node, which must not change what the host has."""
        if self.run.conditions:
            raise NotRepeatable

    def _loop(self, loop: Loop, carried: Sequence[Var]) -> Steps:
        environment = self.environment
        values = list(map(self._atom, loop.initial))
        for variable in carried:
            environment.pop(variable, None)
        rounds, dtype = None, None
        if loop.counter is not None:
            count = self.run.host(self._atom(loop.counter.count))
            rounds, dtype = int(count), count.dtype
        number, decisions = 0, self.run.decisions
        while rounds is None or number < rounds:
            environment.update(zip(loop.parameters, values, strict=True))
            values.clear()
            if loop.counter is not None:
                environment[loop.counter.index] = np.array(number, dtype)
            terminator, values = yield from self.block(loop.body)
            if isinstance(terminator, Exit) and terminator.label is loop.label:
                break
            if not isinstance(terminator, Next) or terminator.label is not loop.label:
                return terminator, values
            number += 1
        if rounds is None and self.run.decisions > decisions:
            self.run.decided_loops.add(loop.label)
        return Yield(()), values


def _holders(stacks: Sequence[HostStack], position: int) -> tuple[int, int]:
    """The references to a stack and to its buffer."""
    return sys.getrefcount(stacks[position]), sys.getrefcount(stacks[position].buffer)


_ALONE = _holders([HostStack([], 0)], 0)


def _tensor_holders(tensors: Sequence[DeviceTensor], position: int) -> tuple[int, int]:
    """The references to a tensor and to its memory."""
    return sys.getrefcount(tensors[position]), sys.getrefcount(tensors[position].memory)


_ALONE_TENSOR = _tensor_holders([DeviceTensor(None, Memory(0, 0), np.dtype(bool), ())], 0)


def stays_on_host(value: np.ndarray) -> bool:
    """True if a number is kept on the host until a kernel reads it: one of an integer dtype, or a bool."""
    return value.ndim == 0 and value.dtype.kind in "iub"


__all__ = ["Run", "stays_on_host"]
