"""Function generation: one case for each construct of the core, loops as `While`, branches as `IfThenElse`.

The result of a block is computed in the place where it will be needed, if possible (`_destinations`). Arrays that are
updated in place share memory with their operands, as planned by `memory.aliasing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import attrs

from relay.codegen.kernels.kernels import symbolic_in
from relay.codegen.kernels.schedules import Packing
from relay.codegen.lowering.calls import emit_call, emit_status_check
from relay.codegen.lowering.function_builder import KernelCall
from relay.codegen.lowering.function_state import FunctionState, ProgramContext
from relay.codegen.lowering.interrupts import Interrupts
from relay.codegen.lowering.lane_calls import LaneKernels
from relay.codegen.lowering.layout import ROW, DataLayout, Layout, RowLayout, SizedLayout, TensorLayout, TupleLayout
from relay.codegen.lowering.memory.aliasing import MemorySharing, has_exits
from relay.codegen.lowering.memory.joined_operands import joined_operands
from relay.codegen.lowering.memory.ownership import Ownership
from relay.codegen.lowering.pooled_data import PooledData
from relay.codegen.lowering.values import DataValue, Immediate, Leaf, Memory, Place, StackValue, Value, parts
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, integer, tirx
from relay.errors import InternalError
from relay.ir.dims import ANY, multiply, no_size, product
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
from relay.ir.sizes.data_dependent import dims_of_binding
from relay.ir.traverse import walk
from relay.ir.types import BOOL, UINT8, FunctionType, TensorType
from relay.operator import lookup
from relay.transform.analysis.lanes import LaneLoop
from relay.transform.fusion.fusion_groups import FusionGroup, in_place_operands

CONDITION = TensorLayout(BOOL, ())


@attrs.frozen(eq=False)
class _LoopState:
    """A loop that is being generated. `running` becomes false when the loop is left by an `Exit`."""

    parameters: tuple[Value, ...]
    results: tuple[Value, ...]
    running: Leaf | None
    index: Leaf | None


class FunctionGenerator(FunctionState):
    """Generates the body of one function."""

    def __init__(
        self,
        shared: ProgramContext,
        name: str,
        sharing: MemorySharing,
        ownership: Ownership,
        lanes: Mapping[Loop, LaneLoop],
    ) -> None:
        super().__init__(shared, name)
        self.sharing = sharing
        self.lanes = LaneKernels(lanes)
        self.ownership = ownership
        self.homes: dict[Var, Value] = {}  # the memory of each class of variables that share it
        self.taken: set[Place] = set()  # all of it: nothing else is made there
        self.donated: dict[Place, Block] = {}  # those of arguments that results take, by the block that returns them
        self.replacing: Mapping[Var, Place] = {}  # what is made in such a place
        self.joined: dict[Var, list[tuple[Atom, Leaf]]] = {}  # operands with their parts of results that join them
        self.pooled = PooledData(self, ownership)
        self.interrupts = Interrupts(self.code, shared.meter)
        self.exits: dict[LoopLabel, tuple[Value, ...]] = {}
        self.loops: dict[LoopLabel, _LoopState] = {}

    # ---- blocks

    def block(self, block: Block, targets: Sequence[Value]) -> None:
        """Emit a block whose `Yield` gives to the targets."""
        wanted = {
            variable: target
            for variable, target in self._destinations(block, targets).items()
            if not any(leaf.place in self.taken or self._is_occupied(block, variable, leaf) for leaf in parts(target))
        }
        settled = [self._settle(variable, target) for variable, target in wanted.items()]
        self._place_joined_operands(block, wanted)
        ownership = self.ownership
        self.pooled.share(ownership.entered.get(block, ()))
        self.pooled.drop(ownership.left.get(block, ()))
        for position, group in self.sharing.order[block]:
            if group is not None:
                self.group(group, wanted)
            else:
                binding = block.bindings[position]
                self.pooled.share(ownership.shared.get(binding, ()))
                self.binding(block, position, binding, wanted)
                self.pooled.receive(binding, ownership.received.get(binding, ()))
                self.pooled.drop(ownership.dropped.get(binding, ()))
        self.pooled.share(ownership.passed.get(block, ()))
        self._leave(block, targets)
        self.taken.difference_update(place for places in settled for place in places)

    def _is_occupied(self, block: Block, variable: Var, target: Leaf) -> bool:
        """True if a place that a variable is wanted in still holds an argument that is read."""
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

    def _place_joined_operands(self, block: Block, wanted: dict[Var, Value]) -> None:
        """Let operands that this block computes and joins be where the result will stand."""
        replacing = [v for v, value in wanted.items() if any(leaf.place in self.donated for leaf in parts(value))]
        groups, shared = [group for _, group in self.sharing.order[block]], {*self.sharing.home, *replacing}
        for joined in joined_operands(block, groups, wanted, shared, self.shared.kernels.threads):
            whole = self.target(joined.result, wanted)
            assert isinstance(whole, Leaf)
            found = self.joined[joined.result] = []
            for atom, begin in joined.parts:
                layout = self.shared.layouts.atom(atom)
                assert isinstance(layout, TensorLayout)
                part = self.code.part(whole, layout, begin)
                found.append((atom, part))
                if atom in joined.computed:
                    wanted.setdefault(atom, part)  # type: ignore[arg-type]

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
        """The places in which values of this block's variables are computed: those that its end would copy them to.

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

    def target(self, target: Var, wanted: Mapping[Var, Value]) -> Value:
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
        if (joined := self.joined.pop(group.outputs[0], None)) is not None:
            sources = [self.leaf(atom) for atom, _ in joined]
            for (_, part), source in zip(joined, sources, strict=True):
                code.copy(part, source)
            computed = sum(part.place is source.place for (_, part), source in zip(joined, sources, strict=True))
            self.shared.kernels.note_joined(group, computed, len(joined) - computed)
            return
        targets = [self.target(output, wanted) for output in group.outputs]
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
            with self.measured_region("Python", last.value.operator, group):
                self._external(last.value, group.outputs[-1], outputs[-1])
            return
        kernel = self.shared.kernels.kernel(group)
        temporaries = [code.leaf(TensorLayout(UINT8, (size,))) for size in kernel.temporaries]
        operands = [self._operand(atom, kernel.packed.get(place)) for place, atom in enumerate(kernel.operands)]
        site = self.site("kernel", str(kernel.function.name_hint), group)
        call = KernelCall(kernel.function, operands, outputs, kernel.sizes, temporaries, self.timing_wrapper(site))
        code.call_kernel(call, kernel.may_fail)
        self.record_call(site)

    def _external(self, call: OpCall, target: Var, output: Leaf) -> None:
        """Emit the call of an operator that brings its own code."""
        code, operator = self.code, lookup(call.operator)
        types = tuple(a.type for a in call.arguments if isinstance(a, Var | Constant))
        type_ = FunctionType(types, target.type)  # type: ignore[arg-type]
        dims = tuple(dict.fromkeys(d for t in (*types, target.type) for d in symbolic_in(t)))
        addresses = [code.address(self.leaf(a)) for a in call.arguments]
        given = [*addresses, code.address(output), *map(code.size, dims)]
        status = self.shared.externals.call(operator, call, type_, dims, given)
        emit_status_check(code, status)

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
                self._branch(branch, [self.target(t, wanted) for t in targets])
            case Match() as match:
                self._match(match, [self.target(t, wanted) for t in targets])
            case Loop() as loop:
                self._loop(loop, targets, wanted)
            case Call() as call:
                emit_call(self, call, self.target(targets[0], wanted))
            case Assert(condition, message, span):
                with code.collect() as statements:
                    code.emit(*code.failure(self.shared.failures.status(message, span)))
                code.emit_if(tirx.Not(code.load(self.leaf(condition))), statements)
            case Print(_, atoms) as text:
                types = [a.type for a in atoms if isinstance(a, Var | Constant)]
                sizes = [code.size(d) for t in types if isinstance(t, TensorType) for d in t.shape]
                addresses = [code.address(self.leaf(a)) for a in atoms]
                status = self.shared.externals.print(text, types, addresses, sizes)
                emit_status_check(code, status)
            case Extent(dim, base):
                number = tirx.Cast(base.name, code.size(dim)) if base.name != "int64" else code.size(dim)
                self.variables[targets[0]] = Leaf(TensorLayout(base, ()), Immediate(number))
            case BindDim(made, size, span):
                number = code.made[made] = code.value(self.leaf(size))
                with code.collect() as statements:
                    code.emit(*code.failure(self.shared.failures.status(no_size(made), span)))
                code.emit_if((number < integer(0)) | (number > integer(made.upper_bound)), statements)
            case AxisSize(atom, axis):
                self.variables[targets[0]] = self._axis_size(self.value(atom), self.shared.layouts.atom(atom), axis)
            case Ascribe(atom):
                self.variables[targets[0]] = self._ascribe_layout(atom, self.shared.layouts.of[targets[0]])
            case Construct() as construct:
                self.variables[targets[0]] = self.pooled.construct(construct, self.shared.layouts.of[targets[0]])
            case RefNew(atom):
                self.variables[targets[0]] = self.pooled.new_row(self.shared.layouts.of[targets[0]], self.value(atom))
            case RefRead(reference):
                self.variables[targets[0]] = code.read(self.pooled.row(reference), keep=False)
            case RefWrite(reference, atom):
                if binding.value not in self.ownership.overwriting:
                    self.pooled.drop_content(reference)
                code.assign(self.pooled.row(reference), self.value(atom))
            case Shadow() as shadow:
                self.variables[targets[0]] = self.pooled.shadow(shadow, self.shared.layouts.of[targets[0]])
            case StackNew():
                self.variables[targets[0]] = StackValue(code.number(0, ROW), code.number(0, ROW))
            case StackPush() | StackSet() as change:
                self.variables[targets[0]] = self.pooled.change_stack(change)
            case StackPrefix() as prefix:
                self.variables[targets[0]] = self.pooled.prefix(prefix)
            case StackGet() as get:
                self.variables[targets[0]] = self.pooled.element(get, block, position)
            case StackLength(stack):
                self.variables[targets[0]] = self.pooled.stack(stack)[0].length
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
            code.emit(tir.copy_bytes(there, code.address(value), size))
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
        if self.lanes.emit(self, loop, targets, wanted):
            return
        code, counter = self.code, loop.counter
        exits = has_exits(loop)
        if counter is None or exits:
            results = tuple(self.target(t, wanted) for t in targets)
            parameters = tuple(self.target(p, {}) for p in loop.parameters)
        else:
            # Such a loop ends with its parameters as results, so they are the same places.
            results = parameters = tuple(self.target(t, wanted) for t in targets)
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
        arena, free = self.shared.arena, self.shared.rounds.freed_pools(loop, targets)
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
        """True if no memory of the arena from a round is in use after the round; and True if the round takes any."""
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


def _is_arbitrary(binding: Binding) -> bool:
    return isinstance(binding.value, OpCall) and lookup(binding.value.operator).memory.uninitialized
