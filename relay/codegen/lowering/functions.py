"""Function generation: one case for each construct of the core, loops as `While`, branches as `IfThenElse`.

A function has the parameters context, workspace, the leaves of its parameters (one-element tensors by value, others
by address), and the addresses of its result's leaves. It returns a status that every caller checks. A recursive
function is two: the outer one checks the depth and provides the workspace of the inner one.

A value that a block gives to its surroundings is computed where it will be needed, if possible (`_destinations`).
Arrays that are updated in place share memory with what they are made from, as `sharing` has planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import attrs

from relay.codegen.kernels.kernels import Kernels, symbolic_in
from relay.codegen.kernels.schedules import Packing
from relay.codegen.lowering.aliasing import MemorySharing, has_exits
from relay.codegen.lowering.arena import Arena
from relay.codegen.lowering.constants import Constants
from relay.codegen.lowering.context import BUDGET, DEPTH, EXTERNAL, RUNNING_OUT_OF_MEMORY, STACK_LIMIT, TOO_DEEP
from relay.codegen.lowering.donation import NOTHING, Donation
from relay.codegen.lowering.external import Externals
from relay.codegen.lowering.function_builder import Code, FailureTable, KernelCall, build
from relay.codegen.lowering.function_splitting import split_call_runs
from relay.codegen.lowering.interrupts import Interrupts, recursive_call
from relay.codegen.lowering.layout import (
    ROW,
    TAG,
    DataLayout,
    Layout,
    Layouts,
    RowLayout,
    SizedLayout,
    StackLayout,
    TensorLayout,
    TupleLayout,
    leaves,
    received_leaves,
)
from relay.codegen.lowering.ownership import Key, Ownership, stack_ownership
from relay.codegen.lowering.pool_growth import PoolGrowth
from relay.codegen.lowering.pools import Pools
from relay.codegen.lowering.rounds import RoundLifetimes
from relay.codegen.lowering.values import DataValue, Immediate, Leaf, Memory, Place, StackValue, Value, parts
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, GlobalVar, integer, tirx
from relay.errors import InternalError
from relay.ir.analysis.metering import Meter
from relay.ir.dims import ANY, DataDependentDim, Dim, TypeId, multiply, no_size, product
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
    Static,
    Var,
    Yield,
)
from relay.ir.sizes.data_dependent import dims_of_binding
from relay.ir.traverse import walk
from relay.ir.types import BOOL, UINT8, FunctionType, TensorType
from relay.operator import lookup
from relay.transform.fusion.fusion_groups import FusionGroup, in_place_operands

CONDITION = TensorLayout(BOOL, ())


@attrs.frozen(eq=False)
class ProgramContext:
    """What the functions of one program share."""

    layouts: Layouts
    kernels: Kernels
    externals: Externals
    constants: Constants
    pools: Pools
    growth: PoolGrowth
    rounds: RoundLifetimes
    failures: FailureTable
    meter: Meter
    names: Mapping[str, Any]  # the native functions by the core functions
    frames: dict[str, Dim]  # the bytes of workspace that callers provide
    sizes: Mapping[TypeId, int]  # the places of symbolic dims in the context table
    arena: Arena
    made: Mapping[
        str, Sequence[DataDependentDim]
    ]  # the sizes made by its callers that a function is given, by its name
    packing: frozenset[str]  # the functions in which memory of the arena may come to be used from elsewhere


@attrs.frozen(eq=False)
class _LoopState:
    """A loop that is being generated. `running` becomes false when the loop is left by an `Exit`."""

    parameters: tuple[Value, ...]
    results: tuple[Value, ...]
    running: Leaf | None
    index: Leaf | None


def generate(
    function: Function, shared: ProgramContext, recursive: bool, sharing: MemorySharing, donation: Donation = NOTHING
) -> dict[Any, Any]:
    """The native functions for a core function. A caller provides `shared.frames` bytes, set here, of workspace."""
    generator = _FunctionGenerator(shared, sharing, stack_ownership(function))
    code, layouts = generator.code, shared.layouts
    parameters: list[Any] = []
    given: list[Leaf] = []
    for parameter in function.parameters:
        received = []
        for layout, there in received_leaves([layouts.of[parameter]]):
            in_register = tir.by_value(layout.base, layout.elements)
            passed = tirx.Var(parameter.name, layout.base.name if in_register else "int64")
            parameters.append(passed)
            received.append(Leaf(layout, Immediate(passed) if in_register else Memory(passed, optional=not there)))
        given += received
        generator.variables[parameter] = build(layouts.of[parameter], iter(received))
    for dim in shared.made[function.name]:
        code.made[dim] = tirx.Var(dim.name, "int64")
        parameters.append(code.made[dim])
    addresses = [tirx.Var("result", "int64") for _ in leaves(layouts.results[function.name])]
    results = [
        Leaf(layout, Memory(address))
        for layout, address in zip(leaves(layouts.results[function.name]), addresses, strict=True)
    ]
    for position, source in donation.pairs.items():
        results[position] = given[source]
        generator.donated[given[source].place] = function.body
    generator.replacing = {variable: given[source].place for variable, source in donation.made.items()}
    generator.exits[function.label] = (build(layouts.results[function.name], iter(results)),)
    code.parameters.update(leaf.place for leaf in (*given, *results))
    generator.block(function.body, ())
    name = shared.names[function.name]
    made = split_call_runs(code, name.name_hint)
    body, frame = code.finish()
    whole = [code.context, code.frame, *parameters, *addresses]
    if not recursive:
        shared.frames[function.name] = frame
        return {name: tir.function(whole, body), **made}
    shared.frames[function.name] = 0
    inner = GlobalVar(f"{name.name_hint}_body")
    return {inner: tir.function(whole, body), name: _stack_checked_function(inner, whole, frame, shared.sizes), **made}


def _stack_checked_function(inner: Any, like: Sequence[Any], frame: Dim, sizes: Mapping[TypeId, int]) -> Any:
    """A function with the parameters of `inner` that checks the depth, provides the workspace and calls it."""
    code = Code(sizes)
    parameters = [code.context, code.frame, *(tirx.Var(p.name, p.ty) for p in like[2:])]
    here = code.address(code.leaf(ROW))
    with code.collect() as too_deep:
        code.emit(*code.failure(TOO_DEEP))
    code.emit_if(tirx.LT(here, code.table(STACK_LIMIT)), too_deep)
    recursive_call(code)
    code.set_table(DEPTH, code.table(DEPTH) + integer(1))
    workspace: Expression = integer(0)
    if frame:
        size = code.bytes(frame)
        code.spend(size)
        workspace = code.bind(tir.extern("malloc", size), name="workspace")
        with code.collect() as exhausted:
            code.emit(*code.failure(RUNNING_OUT_OF_MEMORY))
        code.emit_if(tirx.EQ(workspace, integer(0)), exhausted)
    status = code.bind(tir.call(inner, [code.context, workspace, *parameters[2:]]), "int32", "status")
    if frame:
        code.emit(tirx.Evaluate(tir.extern("free", workspace)))
        code.set_table(BUDGET, code.table(BUDGET) + size)
    code.check(status)
    code.set_table(DEPTH, code.table(DEPTH) - integer(1))
    body, _ = code.finish()
    return tir.function(parameters, body)


class _FunctionGenerator:
    """Generates one function."""

    def __init__(self, shared: ProgramContext, sharing: MemorySharing, ownership: Ownership) -> None:
        self.shared = shared
        self.sharing = sharing
        self.ownership = ownership
        self.homes: dict[Var, Value] = {}  # the memory of each class of variables that share it
        self.taken: set[Place] = set()  # all of it: nothing else is made there
        self.donated: dict[Place, Block] = {}  # those of arguments that results take, by the block that returns them
        self.replacing: Mapping[Var, Place] = {}  # what is made in such a place
        self.code = Code(shared.sizes, shared.arena)
        self.interrupts = Interrupts(self.code, shared.meter)
        self.variables: dict[Var, Value] = {}
        self.exits: dict[LoopLabel, tuple[Value, ...]] = {}
        self.loops: dict[LoopLabel, _LoopState] = {}

    # ---- atoms

    def value(self, atom: Atom) -> Value:
        match atom:
            case Var():
                return self.variables[atom]
            case Constant():
                return self.shared.constants.leaf(self.code, atom)
            case Global() | Static():
                raise InternalError(f"{atom!r} is not a first-order value")
            case _:
                assert_never(atom)

    def leaf(self, atom: Atom) -> Leaf:
        value = self.value(atom)
        assert isinstance(value, Leaf)
        return value

    # ---- blocks

    def block(self, block: Block, targets: Sequence[Value]) -> None:
        """Emit a block whose `Yield` gives to the targets."""
        wanted = {
            variable: target
            for variable, target in self._destinations(block, targets).items()
            if not any(leaf.place in self.taken or self._is_occupied(block, variable, leaf) for leaf in parts(target))
        }
        settled = [self._settle(variable, target) for variable, target in wanted.items()]
        ownership = self.ownership
        self._share(ownership.entered.get(block, ()))
        self._drop(ownership.left.get(block, ()))
        for position, group in self.sharing.order[block]:
            if group is not None:
                self.group(group, wanted)
            else:
                binding = block.bindings[position]
                self._share(ownership.shared.get(binding, ()))
                self.binding(block, position, binding, wanted)
                self._receive(binding, ownership.received.get(binding, ()))
                self._drop(ownership.dropped.get(binding, ()))
        self._share(ownership.passed.get(block, ()))
        self._leave(block, targets)
        self.taken.difference_update(place for places in settled for place in places)

    def _is_occupied(self, block: Block, variable: Var, target: Leaf) -> bool:
        """Whether a place that a variable is wanted in still holds an argument that is read."""
        return self.donated.get(target.place) is block and self.replacing.get(variable) is not target.place

    def _settle(self, variable: Var, target: Value) -> list[Place]:
        """If a variable shares memory that has no place yet, let it be where the variable is wanted."""
        home = self.sharing.home.get(variable)
        if home is None or home in self.homes:
            return []
        self.homes[home] = target
        places = [leaf.place for leaf in parts(target)]
        self.taken.update(places)
        return places

    def _leave(self, block: Block, targets: Sequence[Value]) -> None:
        code = self.code
        match block.terminator:
            case Yield(values):
                code.assign_parallel(targets, [self.value(v) for v in values])
            case Next(label, values):
                state = self.loops[label]
                code.assign_parallel(state.parameters, [self.value(v) for v in values])
                if state.index is not None:
                    code.store(state.index, code.load(state.index) + tir.literal(1, state.index.layout.base))
            case Exit(label, values):
                code.assign_parallel(self.exits[label], [self.value(v) for v in values])
                if label in self.loops:
                    running = self.loops[label].running
                    assert running is not None
                    code.store(running, tir.literal(False, BOOL))
            case Dead():
                pass
            case _:
                assert_never(block.terminator)

    def _destinations(self, block: Block, targets: Sequence[Value]) -> dict[Var, Value]:
        """Where values of this block's variables are to be made: the places that its end would copy them to.

        Nothing reads these places before the block has ended, unless they are among those `taken` for variables that
        share memory. Those of the next round of a loop are not among them.
        """
        match block.terminator:
            case Yield(values):
                pending = list(zip(values, targets, strict=True))
            case Exit(label, values):
                pending = list(zip(values, self.exits[label], strict=True))
            case Next() | Dead():
                return {}
            case _:
                assert_never(block.terminator)
        made = {target: binding.value for binding in block.bindings for target in binding.targets}
        wanted: dict[Var, Value] = {}
        while pending:
            atom, target = pending.pop()
            if not isinstance(atom, Var) or atom in wanted:
                continue
            match made.get(atom):
                case MakeTuple(items):
                    assert isinstance(target, tuple)
                    pending += zip(items, target, strict=True)
                case OpCall() | Call() | If() | Match() | Loop():
                    wanted[atom] = target
                case _:
                    pass
        return wanted

    def _target(self, target: Var, wanted: Mapping[Var, Value]) -> Value:
        """New places for a variable, or the ones where it is wanted."""
        home = self.sharing.home.get(target)
        if home is not None:
            if home not in self.homes:
                self.homes[home] = self.code.allocate(self.shared.layouts.of[target])
                self.taken.update(leaf.place for leaf in parts(self.homes[home]))
            value = self.homes[home]
        elif target in wanted:
            value = self.code.in_registers(wanted[target])
        else:
            value = self.code.allocate(self.shared.layouts.of[target])
        self.variables[target] = value
        return value

    # ---- operators

    def group(self, group: FusionGroup, wanted: Mapping[Var, Value]) -> None:
        """Emit the kernel call of a group."""
        code = self.code
        targets = [self._target(output, wanted) for output in group.outputs]
        for leaf in (leaf for target in targets if isinstance(target, tuple) for leaf in parts(target)):
            code.store(leaf, integer(0))  # a tensor that nobody reads, of no elements
        outputs = [output for output in targets if isinstance(output, Leaf)]
        if all(output.layout.elements == 0 for output in outputs):
            return
        for output in outputs:
            code.touch(output)
        last = group.bindings[-1]
        if _is_arbitrary(last):
            return
        for old in in_place_operands(last):
            code.copy(outputs[-1], self.leaf(old))
        assert isinstance(last.value, OpCall)
        if lookup(last.value.operator).compute is None:
            self._external(last.value, group.outputs[-1], outputs[-1])
            return
        kernel = self.shared.kernels.kernel(group)
        temporaries = [code.leaf(TensorLayout(UINT8, (size,))) for size in kernel.temporaries]
        operands = [self._operand(atom, kernel.packed.get(place)) for place, atom in enumerate(kernel.operands)]
        code.call_kernel(KernelCall(kernel.function, operands, outputs, kernel.sizes, temporaries), kernel.may_fail)

    def _external(self, call: OpCall, target: Var, output: Leaf) -> None:
        """Emit the call of an operator that brings its own code."""
        code, operator = self.code, lookup(call.operator)
        types = tuple(a.type for a in call.arguments if isinstance(a, Var | Constant))
        type_ = FunctionType(types, target.type)  # type: ignore[arg-type]
        dims = tuple(dict.fromkeys(d for t in (*types, target.type) for d in symbolic_in(t)))
        addresses = [code.address(self.leaf(a)) for a in call.arguments]
        given = [*addresses, code.address(output), *map(code.size, dims)]
        status = self.shared.externals.call(operator, call, type_, dims, given)
        failed = code.bind(status, "int32", "status")
        with code.collect() as statements:
            code.emit(*code.failure(EXTERNAL))
        code.emit_if(tirx.NE(failed, integer(0, "int32")), statements)

    def _operand(self, atom: Atom, packing: Packing | None) -> Leaf:
        """An operand as a kernel wants it."""
        if packing is None:
            return self.leaf(atom)
        assert isinstance(atom, Constant)
        return self.shared.constants.pack_constant(self.code, atom, packing)

    # ---- everything else

    def binding(self, block: Block, position: int, binding: Binding, wanted: Mapping[Var, Value]) -> None:
        code, targets = self.code, binding.targets
        match binding.value:
            case Var() | Constant() as atom:
                self.variables[targets[0]] = self.value(atom)
            case MakeTuple(items):
                self.variables[targets[0]] = tuple(map(self.value, items))
            case Project(atom, index):
                value = self.value(atom)
                assert isinstance(value, tuple)
                self.variables[targets[0]] = value[index]
            case If() as branch:
                self._branch(branch, [self._target(t, wanted) for t in targets])
            case Match() as match:
                self._match(match, [self._target(t, wanted) for t in targets])
            case Loop() as loop:
                self._loop(loop, targets, wanted)
            case Call() as call:
                self._call(call, self._target(targets[0], wanted))
            case Assert(condition, message, span):
                with code.collect() as statements:
                    code.emit(*code.failure(self.shared.failures.status(message, span)))
                code.emit_if(tirx.Not(code.load(self.leaf(condition))), statements)
            case Print(_, atoms) as text:
                types = [a.type for a in atoms if isinstance(a, Var | Constant)]
                sizes = [code.size(d) for t in types if isinstance(t, TensorType) for d in t.shape]
                addresses = [code.address(self.leaf(a)) for a in atoms]
                status = self.shared.externals.print(text, types, addresses, sizes)
                failed = code.bind(status, "int32", "status")
                with code.collect() as statements:
                    code.emit(*code.failure(EXTERNAL))
                code.emit_if(tirx.NE(failed, integer(0, "int32")), statements)
            case Extent(dim, base):
                number = tirx.Cast(base.name, code.size(dim)) if base.name != "int64" else code.size(dim)
                self.variables[targets[0]] = Leaf(TensorLayout(base, ()), Immediate(number))
            case BindDim(made, size, span):
                number = code.made[made] = code.value(self.leaf(size))
                with code.collect() as statements:
                    code.emit(*code.failure(self.shared.failures.status(no_size(made), span)))
                code.emit_if((number < integer(0)) | (number > integer(made.largest)), statements)
            case AxisSize(atom, axis):
                self.variables[targets[0]] = self._axis_size(self.value(atom), self.shared.layouts.atom(atom), axis)
            case Ascribe(atom):
                self.variables[targets[0]] = self._ascribe_layout(atom, self.shared.layouts.of[targets[0]])
            case Construct() as construct:
                self.variables[targets[0]] = self._construct(construct, self.shared.layouts.of[targets[0]])
            case RefNew(atom):
                self.variables[targets[0]] = self._new_row(self.shared.layouts.of[targets[0]], self.value(atom))
            case RefRead(reference):
                self.variables[targets[0]] = code.read(self._row(reference), keep=False)
            case RefWrite(reference, atom):
                if binding.value not in self.ownership.overwriting:
                    self._drop_content(reference)
                code.assign(self._row(reference), self.value(atom))
            case Shadow() as shadow:
                self.variables[targets[0]] = self._shadow(shadow, self.shared.layouts.of[targets[0]])
            case StackNew():
                self.variables[targets[0]] = StackValue(code.number(0, ROW), code.number(0, ROW))
            case StackPush() | StackSet() as change:
                self.variables[targets[0]] = self._change_stack(change)
            case StackPrefix(stack, length) as change:
                held, layout = self._stack(stack)
                shorter = code.value(self.leaf(length))
                if change in self.ownership.moved:
                    with code.collect() as emptied:
                        self.shared.pools.drop(code, layout.pool, held, elements=False)
                    code.emit_if(tirx.EQ(shorter, integer(0)), emptied)
                self.variables[targets[0]] = StackValue(held.offset, Leaf(ROW, Immediate(shorter)))
            case StackGet(stack, index_atom):
                held, layout = self._stack(stack)
                row = code.load(held.offset) + tirx.Cast("int64", code.load(self.leaf(index_atom)))
                keep = layout.pool not in self.shared.growth.growing_after(block, position)
                self.variables[targets[0]] = code.read(code.row(layout.pool, code.bind(row, name="row")), keep)
            case StackLength(stack):
                self.variables[targets[0]] = self._stack(stack)[0].length
            case _:
                raise InternalError(f"{type(binding.value).__name__} in a structured core module")

    # ---- data-dependent sizes

    def _axis_size(self, value: Value, layout: Layout, axis: int) -> Leaf:
        """The extent of an axis."""
        if isinstance(layout, TensorLayout):
            return Leaf(ROW, Immediate(self.code.size(layout.dims[axis])))
        assert isinstance(layout, SizedLayout) and isinstance(value, tuple)
        if layout.dims[axis] is not ANY:
            return Leaf(ROW, Immediate(self.code.size(layout.dims[axis])))
        word = value[1 + layout.dims[:axis].count(ANY)]
        assert isinstance(word, Leaf)
        return Leaf(ROW, Immediate(self.code.value(word)))

    def _ascribe_layout(self, atom: Atom, layout: Layout) -> Value:
        """The same tensor with another layout. What gets a `SizedLayout` is copied, since its memory may be written
        again, unless it has one already."""
        code, value, source = self.code, self.value(atom), self.shared.layouts.atom(atom)
        if isinstance(layout, SizedLayout):
            words = [self._axis_size(value, source, axis) for axis, dim in enumerate(layout.dims) if dim is ANY]
            if isinstance(value, tuple):
                address = value[0]
                assert isinstance(address, Leaf)
                return (Leaf(ROW, Immediate(code.value(address))), *words)
            assert isinstance(value, Leaf)
            size = code.bytes(value.layout.bytes)
            there = self.shared.arena.reserve(code, size)
            code.emit(tirx.Evaluate(tir.extern("memcpy", there, code.address(value), size)))
            return (Leaf(ROW, Immediate(there)), *words)
        assert isinstance(layout, TensorLayout)
        if isinstance(value, tuple):
            address = value[0]
            assert isinstance(address, Leaf)
            value = Leaf(layout, Memory(code.value(address)))
        assert isinstance(value, Leaf)
        if tir.by_value(layout.base, layout.elements):
            found = code.leaf(layout)
            code.store(found, code.load(Leaf(layout, value.place)))
            return found
        if not isinstance(value.place, Memory):
            return Leaf(layout, Memory(code.address(value)))
        return Leaf(layout, value.place)

    # ---- branches

    def _branch(self, branch: If, results: Sequence[Value]) -> None:
        if not branch.arms:  # a block by itself
            self.block(branch.orelse, results)
            return
        code = self.code
        nested: list[tuple[Expression, Any, Any]] = []
        for arm in branch.arms:
            # The statements of each further arm stand in the `else` of the one before.
            outer = code.open() if nested else None
            condition = self._condition(arm.condition)
            with code.collect() as then:
                self.block(arm.body, results)
            nested.append((condition, then, outer))
        outermost = code.open()
        self.block(branch.orelse, results)
        orelse = code.close(outermost)
        for condition, then, outer in reversed(nested):
            code.emit_if(condition, then, orelse)
            if outer is not None:
                orelse = code.close(outer)

    def _condition(self, block: Block) -> Expression:
        result = self.code.leaf(CONDITION)
        self.block(block, (result,))
        return self.code.load(result)

    def _match(self, match: Match, results: Sequence[Value]) -> None:
        code = self.code
        layout, value = self.shared.layouts.atom(match.value), self.value(match.value)
        pool = layout.pool if isinstance(layout, RowLayout) else None
        if pool is not None:
            assert isinstance(value, Leaf)
            value = code.row(pool, code.value(value))
            layout = pool.element
        assert isinstance(layout, DataLayout) and isinstance(value, DataValue)
        tag = code.value(value.tag)
        bodies = []
        for arm in match.arms:
            constructor = layout.definition.index(arm.constructor)
            fields = value.fields[constructor]
            with code.collect() as body:
                if fields is not None:
                    if pool is not None:
                        keep = pool not in self.shared.growth.growing_after(arm.body, -1)
                        fields = tuple(code.read(field, keep) for field in fields)
                    self.variables.update(zip(arm.fields, fields, strict=True))
                    self.block(arm.body, results)
            bodies.append((constructor, body))
        orelse = bodies.pop()[1] if bodies else []
        for constructor, body in reversed(bodies):
            with code.collect() as nested:
                code.emit_if(tirx.EQ(tag, integer(constructor, "int32")), body, orelse)
            orelse = nested
        code.emit(*orelse)

    # ---- loops

    def _loop(self, loop: Loop, targets: Sequence[Var], wanted: Mapping[Var, Value]) -> None:
        code, counter = self.code, loop.counter
        exits = has_exits(loop)
        if counter is None or exits:
            results = tuple(self._target(t, wanted) for t in targets)
            parameters = tuple(self._target(p, {}) for p in loop.parameters)
        else:
            # Such a loop ends with its parameters as results, so they are the same places.
            results = parameters = tuple(self._target(t, wanted) for t in targets)
        code.assign_parallel(parameters, [self.value(initial) for initial in loop.initial])
        running = index = count = None
        if counter is None or exits:
            running = code.leaf(CONDITION)
            code.store(running, tir.literal(True, BOOL))
        if counter is not None:
            index = self.variables[counter.index] = code.leaf(self.leaf(counter.count).layout)
            count = code.value(self.leaf(counter.count))
            code.store(index, tir.literal(0, index.layout.base))
        self.variables.update(zip(loop.parameters, parameters, strict=True))
        self.loops[loop.label] = _LoopState(parameters, results, running, index)
        self.exits[loop.label] = results
        arena, free = self.shared.arena, self.shared.rounds.free(loop, targets)
        ends, takes = self._ends_with_round(loop.body)
        mark = arena.mark(code) if takes and not ends and self.shared.rounds.moves(loop, targets) else None
        if mark is not None:
            arena.begin(code, mark)
        code.workspace.enter_loop()
        with code.collect() as body, self.shared.pools.release_scope(code, free):
            if takes and ends:
                with arena.release_scope(code):
                    self.block(loop.body, ())
            else:
                self.block(loop.body, ())
            if mark is not None:
                with code.collect() as kept:
                    arena.keep(code, mark, self._sized_parameters(loop.parameters, parameters))
                code.emit_if(tirx.LT(integer(0), integer(1)) if running is None else code.load(running), kept)
        code.workspace.leave_loop()
        conditions = [] if index is None else [tirx.LT(code.load(index), count)]
        conditions += [] if running is None else [code.load(running)]
        condition = conditions[0] if len(conditions) == 1 else tirx.And(*conditions)
        self.interrupts.loop(loop, condition, body)
        if counter is not None and running is not None:
            with code.collect() as completed:
                code.assign_parallel(results, parameters)
            code.emit_if(code.load(running), completed)

    def _ends_with_round(self, body: Block) -> tuple[bool, bool]:
        """Whether nothing of the arena that a round takes is in use after the round, and whether it takes any."""
        if not self.shared.arena.used:
            return True, False
        ends, takes = True, False
        for binding in walk(body):
            match binding.value:
                case Ascribe() if isinstance(self.shared.layouts.of[binding.targets[0]], SizedLayout):
                    ends, takes = False, True
                case Call(Global(name)):
                    ends, takes = ends and name not in self.shared.packing, True
                case _:
                    takes = takes or any(True for _ in dims_of_binding(binding))
        return ends, takes

    def _sized_parameters(self, variables: Sequence[Var], values: Sequence[Value]) -> list[tuple[Leaf, Expression]]:
        """The tensors of the arena among a loop's parameters: the places of their addresses, and their bytes."""
        code, found = self.code, []
        pending = [(v, self.shared.layouts.of[p]) for v, p in zip(values, variables, strict=True)]
        while pending:
            value, layout = pending.pop()
            if isinstance(layout, SizedLayout):
                assert isinstance(value, tuple)
                address, *extents = value
                assert isinstance(address, Leaf)
                elements = code.size(
                    multiply(product(d for d in layout.dims if d is not ANY), layout.base.dtype.itemsize)
                )
                for extent in extents:
                    assert isinstance(extent, Leaf)
                    elements = elements * code.value(extent)
                found.append((address, code.bind(elements, name="bytes")))
            elif isinstance(layout, TupleLayout):
                assert isinstance(value, tuple)
                pending += zip(value, layout.items, strict=True)
        return found

    # ---- calls

    def _call(self, call: Call, target: Value) -> None:
        code, function = self.code, call.function
        assert isinstance(function, Global)
        name = function.name
        result_leaves = list(parts(target))
        frame = Leaf(TensorLayout(UINT8, (self.shared.frames[name],)), Immediate(integer(0)))
        if self.shared.frames[name]:
            frame = code.leaf(frame.layout)
        for leaf in (*result_leaves, frame):
            code.touch(leaf)
        arguments = [
            code.tensor_argument(leaf) if leaf is not None else _absent(layout)
            for atom in call.arguments
            for leaf, layout in _flat(self.value(atom), self.shared.layouts.atom(atom))
        ]
        arguments += [code.size(dim) for dim in self.shared.made[name]]
        workspace = code.address(frame) if self.shared.frames[name] else integer(0)
        results = [code.address(leaf) for leaf in result_leaves]
        code.check(tir.call(self.shared.names[name], [code.context, workspace, *arguments, *results]))

    # ---- data in pools

    def _construct(self, construct: Construct, layout: Layout) -> Value:
        definition, values = construct.definition, tuple(map(self.value, construct.arguments))
        active = definition.index(construct.constructor)
        fields = tuple(values if i == active else None for i in range(len(definition.constructors)))
        value = DataValue(self.code.number(active, TAG), fields)
        return self._new_row(layout, value) if isinstance(layout, RowLayout) else value

    def _new_row(self, layout: Layout, value: Value) -> Leaf:
        assert isinstance(layout, RowLayout)
        zero = integer(0)
        row = self.shared.pools.reserve(self.code, layout.pool)
        self.code.assign(self.code.row(layout.pool, row), value)
        for slot in layout.pool.shadows:
            self.code.store_word(self.code.shadow_words(layout.pool, slot, row)[0], zero)
        return Leaf(ROW, Immediate(row))

    def _row(self, reference: Atom) -> Value:
        layout = self.shared.layouts.atom(reference)
        assert isinstance(layout, RowLayout)
        return self.code.row(layout.pool, self.code.value(self.leaf(reference)))

    def _drop_content(self, reference: Atom) -> None:
        """Note that the stacks in a cell are of no more use: it gets others."""
        layout = self.shared.layouts.atom(reference)
        assert isinstance(layout, RowLayout)
        self.shared.pools.drop_content(self.code, layout.pool, self.code.value(self.leaf(reference)))

    def _shadow(self, shadow: Shadow, layout: Layout) -> Leaf:
        code, pool = self.code, self.shared.layouts.atom(shadow.reference)
        assert isinstance(pool, RowLayout)
        row, sweep = code.value(self.leaf(shadow.reference)), code.value(self.leaf(shadow.sweep)) + integer(1)
        found, (there, cell) = code.leaf(ROW), code.shadow_words(pool.pool, shadow.slot, row)
        code.store(found, code.load_word(cell))
        missing = code.bind(tirx.NE(code.load_word(there), sweep), "bool", "missing")
        with code.collect() as make:
            made = self._new_row(layout, self.value(shadow.initial))
            there, cell = code.shadow_words(pool.pool, shadow.slot, row)  # the pool may be the same one, and have moved
            code.store_word(there, sweep)
            code.store_word(cell, code.value(made))
            code.store(found, code.value(made))
        code.emit_if(missing, make)
        return found

    def _stack(self, stack: Atom) -> tuple[StackValue, StackLayout]:
        value, layout = self.value(stack), self.shared.layouts.atom(stack)
        assert isinstance(value, StackValue) and isinstance(layout, StackLayout)
        return value, layout

    def _change_stack(self, change: StackPush | StackSet) -> StackValue:
        """The stack with one element more, or another one."""
        code, moved, pushes = self.code, change in self.ownership.moved, isinstance(change, StackPush)
        held, layout = self._stack(change.stack)
        value, length = self.value(change.value), code.value(held.length)
        place = length
        if isinstance(change, StackSet):
            place = code.bind(tirx.Cast("int64", code.load(self.leaf(change.index))), name="place")
        if moved and not pushes and change not in self.ownership.overwriting:
            self.shared.pools.drop_element(code, layout.pool, held, place)
        offset = self.shared.pools.make_unique(code, layout.pool, code.value(held.offset), length, pushes, moved)
        code.assign(code.row(layout.pool, offset + place), value)
        longer = code.bind(length + integer(1), name="length") if pushes else length
        return StackValue(Leaf(ROW, Immediate(offset)), Leaf(ROW, Immediate(longer)))

    def _keyed_stack(self, key: Key) -> tuple[StackValue, StackLayout]:
        """The stack that a key stands for."""
        variable, path = key
        value, layout = self.value(variable), self.shared.layouts.atom(variable)
        for position in path:
            assert isinstance(value, tuple) and isinstance(layout, TupleLayout)
            value, layout = value[position], layout.items[position]
        assert isinstance(value, StackValue) and isinstance(layout, StackLayout)
        return value, layout

    def _share(self, keys: Sequence[Key]) -> None:
        """Note that there are more references to stacks."""
        for stack, layout in map(self._keyed_stack, keys):
            self.shared.pools.share(self.code, layout.pool, stack)

    def _receive(self, binding: Binding, keys: Sequence[Key]) -> None:
        """Note that stacks are where they were read from, too."""
        if not keys or binding not in self.ownership.taken:
            self._share(keys)
            return
        if isinstance(binding.value, RefRead):
            return
        assert isinstance(binding.value, StackGet)
        stack, layout = self._stack(binding.value.stack)
        with self.code.collect() as stays:
            self._share(keys)
        self.code.emit_if(tirx.Not(self.shared.pools.is_alone(self.code, layout.pool, stack)), stays)

    def _drop(self, keys: Sequence[Key]) -> None:
        """Note that stacks are of no more use."""
        for stack, layout in map(self._keyed_stack, keys):
            self.shared.pools.drop(self.code, layout.pool, stack)


def _is_arbitrary(binding: Binding) -> bool:
    return isinstance(binding.value, OpCall) and lookup(binding.value.operator).memory.uninitialised


def _flat(value: Value, layout: Layout) -> Iterator[tuple[Leaf | None, TensorLayout]]:
    """The leaves of a value, None for those that are not there."""
    match value, layout:
        case Leaf(), _:
            yield value, value.layout
        case tuple(), TupleLayout(items):
            for item, inner in zip(value, items, strict=True):
                yield from _flat(item, inner)
        case DataValue(tag, constructors), DataLayout(_, fields):
            yield tag, TAG
            for values, layouts in zip(constructors, fields, strict=True):
                if values is None:
                    yield from ((None, leaf) for inner in layouts for leaf in leaves(inner))
                else:
                    for item, inner in zip(values, layouts, strict=True):
                        yield from _flat(item, inner)
        case StackValue(offset, length), _:
            yield offset, ROW
            yield length, ROW
        case _:
            raise AssertionError("a value that does not fit its layout")


def _absent(layout: TensorLayout) -> Expression:
    """What is passed for a field of a constructor that is not the active one."""
    return tir.literal(0, layout.base) if tir.by_value(layout.base, layout.elements) else integer(0)
