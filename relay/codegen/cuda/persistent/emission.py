"""Persistent kernels: the loops of a region for one block of threads.

Each variable of the region has memory of its own: what is small and stays inside, in shared memory; results, where the
host wants them. A group is one step or several, between which all threads wait. Loops and branches are those of CUDA C:
all threads read the same condition, so that all go the same way. `next` copies to a loop's parameters, `exit` to its
results; for a loop of a known number of rounds these are the same. An update of a tensor that nothing reads later is
done in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm_ffi import structural_map

from relay.codegen.cuda.kernels import GroupSteps, group_steps, new_launch
from relay.codegen.cuda.launches import GroupKernels, HostBlock, updated_variable
from relay.codegen.cuda.rules.blocks import ONE_BLOCK, Blocks, barrier, guarded_statement, thread_buffer
from relay.codegen.kernels.emission import Decision
from relay.codegen.kernels.kernels import is_inlined
from relay.codegen.kernels.loops import loop
from relay.codegen.kernels.stage import with_fresh_names
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, tirx
from relay.errors import InternalError, Span
from relay.ir.dims import product
from relay.ir.expr import (
    Arm,
    Ascribe,
    Atom,
    Block,
    Constant,
    Dead,
    Exit,
    If,
    Loop,
    LoopLabel,
    Next,
    OpCall,
    Var,
    Yield,
)
from relay.ir.types import BaseType, TensorType
from relay.transform.fusion.fusion_groups import FusionGroup

RULE = "persistent"

SHARED_BYTES = 40 * 1024
"""Shared memory for the variables of a region, of the 48 KiB that a block has without being asked."""

LARGEST_SHARED = 4096
"""Bytes of the largest variable in shared memory."""

SHARED_ALIGNMENT = 64
"""Bytes by which TVM aligns variables in shared memory."""

Groups = Mapping[Block, Mapping[int, FusionGroup]]


def persistent_kernel(
    block: Block, start: int, end: int, blocks: Mapping[Block, HostBlock], groups: Groups, name: str
) -> GroupKernels:
    """The kernel of the bindings from `start` to before `end`. Its operands and results are as those of a group."""
    region = _Region(blocks, groups, _results(block, start, end, blocks, groups))
    statements = region.bindings(block, start, end)
    operands, temporaries = tuple(region.operands), tuple(region.scratch)
    buffers = [
        *region.operands.values(),
        *(region.results[variable] for variable in region.results),
        *(buffer for buffer, _ in temporaries),
    ]
    made = Blocks(
        [*map(tirx.AllocBuffer, region.own), *statements], region.thread, tirx.Var("block", "int32"), ONE_BLOCK, 1
    )
    subject = f"{region.steps} steps, {len(region.own)} variables in shared memory"
    decision = Decision(RULE, subject, "one block computes it in less time than launches take")
    body = with_fresh_names(tir.sequence(made.statements))
    launch = new_launch(made, body, buffers, (), name, 1, decision)
    types = tuple(map(_type, region.results))
    lines = tuple(dict.fromkeys(region.lines))
    bytes_ = tuple(count for _, count in temporaries)
    return GroupKernels(operands, tuple(region.results), types, (), bytes_, (launch,), None, lines)


def _results(block: Block, start: int, end: int, blocks: Mapping[Block, HostBlock], groups: Groups) -> dict[Var, Any]:
    """Memory for the variables that are made between two bindings, and read after them."""
    known, found = blocks[block], dict[Var, None]()
    for at in range(start, end):
        if at in known.groups:
            found.update(dict.fromkeys(groups[block][at].outputs))
        if not isinstance(block.bindings[at].value, OpCall):
            found.update(dict.fromkeys(block.bindings[at].targets))
    dropped = {variable for at in range(start, end) for variable in known.last[at]}
    return {v: _buffer(v, f"r{n}") for n, v in enumerate(v for v in found if v not in dropped)}


def _has_conditions(block: Block) -> bool:
    return any(isinstance(binding.value, If | Loop) for binding in block.bindings)


def _type(atom: Atom) -> TensorType:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    assert isinstance(type_, TensorType)
    return type_


def _elements(atom: Atom) -> int:
    count = product(_type(atom).shape)
    assert isinstance(count, int)
    return max(count, 1)


def _dtype(atom: Atom) -> str:
    base = _type(atom).base
    assert isinstance(base, BaseType)
    return base.name


def _buffer(atom: Atom, name: str) -> Any:
    return tir.buffer(name, (_elements(atom),), _dtype(atom))


class _Region:
    """A region that is being emitted. `operands` and `results`: the memory of what comes from outside and goes there;
    `own`: what is in shared memory; `scratch`: other memory, with its bytes."""

    def __init__(self, blocks: Mapping[Block, HostBlock], groups: Groups, results: dict[Var, Any]) -> None:
        self._blocks, self._groups = blocks, groups
        self.operands: dict[Atom, Any] = {}
        self.results = results
        self.own: list[Any] = []
        self.scratch: list[tuple[Any, int]] = []
        self.thread = tirx.Var("thread", "int32")
        self.steps = 0
        self.lines: list[Span] = []
        self._shared = 0
        self._places: dict[Var, Any] = {}
        self._fixed: list[Any] = []  # memory that several variables have
        self._loops: dict[LoopLabel, tuple[Sequence[Any], Sequence[Any]]] = {}  # memory of parameters and results

    # ---- memory

    def _new_place(self, variable: Var) -> Any:
        """Memory for a variable of the region."""
        found = self.results.get(variable)
        self._places[variable] = self._memory(_elements(variable), _dtype(variable)) if found is None else found
        return self._places[variable]

    def _memory(self, elements: int, dtype: str) -> Any:
        count = elements * BaseType(dtype).dtype.itemsize
        taken = -(-count // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
        if count <= LARGEST_SHARED and self._shared + taken <= SHARED_BYTES:
            self._shared += taken
            self.own.append(thread_buffer(f"s{len(self.own)}", elements, dtype, "shared"))
            return self.own[-1]
        self.scratch.append((tir.buffer(f"t{len(self.scratch)}", (elements,), dtype), count))
        return self.scratch[-1][0]

    def _place(self, atom: Atom) -> Any:
        """The memory of a value: of the region's own, or an operand's."""
        if isinstance(atom, Var) and atom in self._places:
            return self._places[atom]
        if atom not in self.operands:
            self.operands[atom] = _buffer(atom, f"p{len(self.operands)}")
        return self.operands[atom]

    def _may_change(self, atom: Atom, dead: Sequence[Var]) -> bool:
        """True if nothing else reads the memory of a value that is not read any more."""
        if not isinstance(atom, Var) or atom not in dead or atom not in self._places:
            return False
        return not any(self._places[atom].same_as(buffer) for buffer in self._fixed)

    def _copy(self, atom: Atom, target: Any) -> list[Statement]:
        """The statements of target := value."""
        count = int(target.shape[0])
        if isinstance(atom, Constant) and is_inlined(atom):
            value = tir.literal(atom.value.item(), _type(atom).base)  # type: ignore[arg-type]
            return [guarded_statement(self.thread.equal(0), [tirx.BufferStore(target, value, [0])])]
        source = self._place(atom)
        if source.same_as(target):
            return []
        return self._each_element(count, lambda i: tirx.BufferStore(target, tirx.BufferLoad(source, [i]), [i]))

    def _each_element(self, count: int, statement: Any) -> list[Statement]:
        def in_round(number: Expression) -> list[Statement]:
            at = number * ONE_BLOCK + self.thread
            made = statement(at)
            return [made] if count % ONE_BLOCK == 0 else [guarded_statement(at < count, [made])]

        return loop(-(-count // ONE_BLOCK), "int32", in_round)

    def _copy_all(self, values: Sequence[Atom], targets: Sequence[Any]) -> list[Statement]:
        """The statements of targets := values, at once, as a value may be in another one's memory, with a barrier."""
        statements: list[Statement] = []
        sources = [None if isinstance(v, Constant) and is_inlined(v) else self._place(v) for v in values]
        pairs = list(zip(values, sources, targets, strict=True))
        waiting: list[tuple[Any, Any]] = []
        for value, source, target in pairs:
            others = [other for other in targets if not other.same_as(target)]
            if source is not None and any(source.same_as(other) for other in others):
                kept = self._memory(int(target.shape[0]), str(target.dtype))
                statements += self._copy(value, kept)
                waiting.append((kept, target))
        statements += [barrier()] * bool(waiting)
        moved = [target for _, target in waiting]
        for value, _, target in pairs:
            if not any(target.same_as(other) for other in moved):
                statements += self._copy(value, target)
        for kept, target in waiting:
            statements += self._each_element(
                int(target.shape[0]),
                lambda i, kept=kept, target=target: tirx.BufferStore(target, tirx.BufferLoad(kept, [i]), [i]),
            )
        return [*statements, barrier()] if statements else []

    # ---- bindings

    def bindings(self, block: Block, start: int, end: int) -> list[Statement]:
        """The statements of bindings, after which all threads see what they make."""
        known, statements = self._blocks[block], list[Statement]()
        for at in range(start, end):
            binding, dead = block.bindings[at], known.last[at]
            if at in known.groups:
                statements += self._group(self._groups[block][at], dead)
            match binding.value:
                case OpCall():
                    pass
                case Var() | Constant() | Ascribe() as same:
                    statements += self._name(binding.targets[0], same.value if isinstance(same, Ascribe) else same)
                case If(arms, orelse):
                    targets = list(map(self._new_place, binding.targets))
                    statements += self._branch(arms, orelse, targets)
                case Loop() as construct:
                    statements += self._loop(construct, binding.targets)
                case other:
                    raise InternalError(f"{type(other).__name__} in a persistent kernel")
        return statements

    def _name(self, target: Var, value: Atom) -> list[Statement]:
        """Another name of a value: its memory, unless that is to be the host's."""
        if target in self.results or isinstance(value, Constant):
            return self._copy_all([value], [self._new_place(target)])
        self._places[target] = self._place(value)
        self._fixed.append(self._places[target])
        return []

    def _group(self, group: FusionGroup, dead: Sequence[Var]) -> list[Statement]:
        self.steps += 1
        calls = [binding.value for binding in group.bindings if isinstance(binding.value, OpCall)]
        self.lines += [call.span for call in calls if call.span is not None]
        changed, result = updated_variable(group), group.bindings[-1].targets[0]
        updates = changed is not None and result not in self.results and self._may_change(changed, dead)
        made = group_steps(group, updates)
        if updates:
            assert changed is not None
            self._places[result] = self._place(changed)
        for output in group.outputs:
            if output not in self._places:
                self._new_place(output)
        return self._steps(made, group.outputs)

    def _steps(self, made: GroupSteps, outputs: Sequence[Var]) -> list[Statement]:
        """The steps of a group, with the region's memory in place of its buffers."""
        given = [*map(self._place, made.operands), *map(self._place, outputs)]
        own = made.buffers[len(given) :]
        given += [self._memory(int(buffer.shape[0]), str(buffer.dtype)) for buffer in own]
        places = dict(zip(made.buffers, given, strict=True))
        statements: list[Statement] = []
        for step, body in made.steps:
            assert isinstance(step.blocks, int)
            inside = structural_map(body, ((tirx.Var, lambda v: places.get(v, v)),))

            def in_round(number: Expression, step: Blocks = step, inside: Statement = inside) -> list[Statement]:
                values = {step.thread: self.thread, step.block: number}
                return [structural_map(inside, ((tirx.Var, lambda v: values.get(v, v)),))]

            rounds = loop(step.blocks, "int32", in_round)
            if step.threads < ONE_BLOCK:
                rounds = [guarded_statement(self.thread < step.threads, rounds)]
            statements += [*rounds, barrier()]
        return statements

    # ---- branches and loops

    def _block(self, block: Block, targets: Sequence[Any]) -> list[Statement]:
        """A block, which yields to `targets`, or leaves the loop around it."""
        statements = self.bindings(block, 0, len(block.bindings))
        match block.terminator:
            case Yield(values):
                statements += self._copy_all(values, targets)
            case Next(label, values):
                statements += [*self._copy_all(values, self._loops[label][0]), tirx.Evaluate(tirx.continue_loop())]
            case Exit(label, values):
                statements += [*self._copy_all(values, self._loops[label][1]), tirx.Evaluate(tirx.break_loop())]
            case Dead():
                pass
        return statements

    def _branch(self, arms: Sequence[Arm], orelse: Block, targets: Sequence[Any]) -> list[Statement]:
        if not arms:
            return self._block(orelse, targets)
        first = arms[0].condition
        assert isinstance(first.terminator, Yield)
        statements = self.bindings(first, 0, len(first.bindings))
        (condition,) = first.terminator.values
        holds = self._number(condition)
        # A copy to a loop's parameter waits until all threads have read it.
        first_steps = [barrier()] * (isinstance(condition, Var) and self._is_parameter(self._place(condition)))
        taken = [*first_steps, *self._block(arms[0].body, targets)]
        other = [*first_steps, *self._branch(arms[1:], orelse, targets)]
        return [*statements, tirx.IfThenElse(holds, tir.sequence(taken), tir.sequence(other))]

    def _is_parameter(self, place: Any) -> bool:
        return any(place.same_as(other) for places, _ in self._loops.values() for other in places)

    def _number(self, atom: Atom) -> Expression:
        """The only element of a value."""
        if isinstance(atom, Constant) and is_inlined(atom):
            return tir.literal(atom.value.item(), _type(atom).base)  # type: ignore[arg-type]
        return tirx.BufferLoad(self._place(atom), [0])

    def _loop(self, construct: Loop, targets: Sequence[Var]) -> list[Statement]:
        """A loop. Where it has conditions, all threads wait for each other at the beginning of a round: those that are
        behind still read the condition of the round before."""
        counter, results = construct.counter, list(map(self._new_place, targets))
        if counter is None:
            places = list(map(self._new_place, construct.parameters))
        else:  # what the parameters are in the end are the results
            places = results
            self._places.update(zip(construct.parameters, places, strict=True))
        self._loops[construct.label] = places, results
        statements = self._copy_all(construct.initial, places)
        head = [barrier()] * (counter is None or _has_conditions(construct.body))
        if counter is not None:
            index = thread_buffer("index", 1, _dtype(counter.index), "local")
            self._places[counter.index] = index
            self._fixed.append(index)
            here = tirx.BufferLoad(index, [0])
            one = tirx.const(1, str(here.ty))
            count = thread_buffer("count", 1, _dtype(counter.index), "local")
            statements += [tirx.AllocBuffer(index), tirx.BufferStore(index, -one, [0]), tirx.AllocBuffer(count)]
            statements.append(tirx.BufferStore(count, self._number(counter.count), [0]))
            head.append(tirx.BufferStore(index, here + one, [0]))
            ended = here >= tirx.BufferLoad(count, [0])
            head.append(guarded_statement(ended, [tirx.Evaluate(tirx.break_loop())]))
        body = tir.sequence([*head, *self._block(construct.body, ())])
        return [*statements, tirx.While(tirx.const(True, "bool"), body)]


__all__ = ["RULE", "persistent_kernel"]
