"""Function builder: one native function's statements, workspace, and access to values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, assert_never

import attrs

from relay.codegen.lowering.context import BUDGET, FIRST_FAILURE, FIRST_FREE, RUNNING_OUT_OF_MEMORY, STATUS
from relay.codegen.lowering.layout import (
    ROW,
    DataLayout,
    Layout,
    Pool,
    RowLayout,
    StackLayout,
    TensorLayout,
    TupleLayout,
    leaves,
)
from relay.codegen.lowering.memory.workspace import Slot, Workspace
from relay.codegen.lowering.values import DataValue, Immediate, Leaf, Memory, Place, Register, StackValue, Value, pairs
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, integer, tirx
from relay.errors import Span
from relay.ir.dims import WIDEST_SIZE, DataDependentDim, Dim, DimExpr, TypeId, add
from relay.ir.sizes.data_dependent import data_dependent_dims_in
from relay.ir.sizes.upper_bounds import may_overflow
from relay.ir.types import INT64

TABLE_SIZE = 1 << 20  # of the view; the real table has as many places as were asked for


_NUMBERS = (tirx.IntImm, tirx.FloatImm)


class CallWrapper(Protocol):
    """A function that puts statements around a call."""

    def __call__(self, code: Code, call: Statement) -> Sequence[Statement]: ...


class TensorAllocator(Protocol):
    """The allocator of tensors of data-dependent size."""

    def reserve(self, code: Code, size: Expression) -> Expression:
        """The address of this many bytes."""
        ...


@attrs.frozen(eq=False)
class KernelCall:
    """A call of a kernel that cannot fail, with arguments that are the same anywhere in the function: slots of the
    workspace, constants, sizes, and the function's own parameters."""

    function: Any
    operands: Sequence[Leaf]
    outputs: Sequence[Leaf]
    sizes: Sequence[Dim]
    temporaries: Sequence[Leaf]
    around: CallWrapper | None = None  # of a profiling build: the call with the clock read around it

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """All that is read or written."""
        return (*self.operands, *self.outputs, *self.temporaries)


class Code:
    """Statements of one function. `context` is the parameter that holds the address of the context table."""

    def __init__(self, places: Mapping[TypeId, int] | None = None, arena: TensorAllocator | None = None) -> None:
        """`places`: the positions of symbolic dims' sizes in the context table. `arena` has the memory of tensors of
        data-dependent size."""
        self._arena = arena
        self.made: dict[DataDependentDim, Expression] = {}  # the sizes that are in scope
        self.context = tirx.Var("context", "int64")
        self.frame = tirx.Var("frame", "int64")
        self.workspace = Workspace()
        self._table, self._declarations = tir.view("table", (TABLE_SIZE,), "int64", self.context)
        self.parameters: set[Place] = set()  # the places that the function's parameters are, or are the addresses of
        self.places = places or {}
        self.statements: list[Statement | KernelCall] = []  # KernelCalls outside of constructs only
        self._depth = 0
        self._placed: Dim | None = None
        self._names = 0
        self._first: list[Statement] = []
        self._sizes: dict[Dim, Expression] = {}
        self._size_bindings: list[Statement] = []

    # ---- statements

    def emit(self, *statements: Statement) -> None:
        self.statements += statements

    @contextmanager
    def collect(self) -> Iterator[list[Statement]]:
        """A context: statements that are emitted inside are collected in a separate list."""
        outer = self.open()
        collected = self.statements
        yield collected
        self.close(outer)

    def open(self) -> list[Statement]:
        """Collect from here; returns what was collected so far, for `close`."""
        outer, self.statements = self.statements, []
        self._depth += 1
        return outer

    def close(self, outer: list[Statement]) -> list[Statement]:
        """Go back to what was collected before `open`; returns what was emitted since."""
        collected, self.statements = self.statements, outer
        self._depth -= 1
        return collected

    def emit_if(self, condition: Expression, then: Sequence[Statement], orelse: Sequence[Statement] = ()) -> None:
        """Emit an `if`."""
        if then or orelse:
            self.emit(tirx.IfThenElse(condition, tir.sequence(then), tir.sequence(orelse) if orelse else None))

    def bind(self, expression: Expression, dtype: str = "int64", name: str = "t") -> Expression:
        """Evaluate an expression now and name it."""
        variable = tirx.Var(name, dtype)
        self.emit(tirx.Bind(variable, expression))
        return variable

    def check(self, status: Expression) -> None:
        """Leave the function if a call has failed. A status that is dropped makes wrong answers."""
        self.fail_if(self.bind(status, "int32", "status"))

    def fail_if(self, status: Expression) -> None:
        """Leave the function unless a status is 0."""
        self.emit(tirx.IfThenElse(tirx.NE(status, integer(0, "int32")), tir.fail(), None))

    def failure(self, status: int) -> list[Statement]:
        """The statements that leave the function with a status for Python."""
        return [tirx.BufferStore(self._table, integer(status), [STATUS]), tir.fail()]

    def call_kernel(self, call: KernelCall, may_fail: bool) -> None:
        """Call a kernel. The call can be moved to another function unless it may fail, is in a construct, or reads
        values that this function computes."""
        for leaf in (*call.outputs, *call.temporaries, *call.leaves):  # what is written lives with all that is read
            self.touch(leaf)
        if not may_fail and self._depth == 0 and self._is_movable(call):
            self.statements.append(call)
            return
        operands, outputs = map(self.tensor_argument, call.operands), map(self.address, call.outputs)
        sizes, temporaries = map(self.size, call.sizes), map(self.address, call.temporaries)
        status = tir.call(call.function, [*operands, *outputs, *sizes, *temporaries])
        if may_fail:
            found = tirx.Var("status", "int32")
            status, statement = found, tirx.Bind(found, status)
        else:
            statement = tirx.Evaluate(status)
        self.emit(*(call.around(self, statement) if call.around is not None else (statement,)))
        if may_fail:
            self.fail_if(status)

    def _is_movable(self, call: KernelCall) -> bool:
        for leaf in call.leaves:
            match leaf.place:
                case Memory() as place:
                    own = place.whole or place
                    if own.slot is None and own.entry is None and own not in self.parameters:
                        return False
                case Immediate(expression):
                    if leaf.place not in self.parameters and not isinstance(expression, _NUMBERS):
                        return False
                case Register():
                    return False
                case _:
                    assert_never(leaf.place)
        return not any(True for _ in data_dependent_dims_in(tuple(call.sizes)))

    def relocate_call(
        self, call: KernelCall, parameter: Callable[[Place, Expression], Expression]
    ) -> Sequence[Statement]:
        """A kernel's call as statements of this function; `parameter` gives what the place of a parameter is here."""

        def argument(place: Place) -> Expression:
            match place:
                case Memory(whole=Memory() as whole, begin=begin):
                    return argument(whole) + self.size(begin)
                case Memory(_, Slot(offset=offset)):
                    return self.frame + self.size(offset)
                case Memory(_, _, int() as entry):
                    return self.table(entry)
                case Memory(known) | Immediate(known):
                    return parameter(place, known)
                case _:
                    raise AssertionError("a call that cannot be moved")

        given = [argument(leaf.place) for leaf in (*call.operands, *call.outputs)]
        temporaries = [argument(leaf.place) for leaf in call.temporaries]
        arguments = [*given, *map(self.size, call.sizes), *temporaries]
        statement = tirx.Evaluate(tir.call(call.function, arguments))
        return call.around(self, statement) if call.around is not None else (statement,)

    def place(self) -> Dim:
        """Give the workspace's slots their offsets, after the last statement; returns the workspace's bytes."""
        if self._placed is None:
            self._placed = self.workspace.place()
        return self._placed

    def finish(self) -> tuple[list[Statement], Dim]:
        """The function's body, and the bytes of its workspace."""
        size = self.place()
        statements = [
            statement
            for s in self.statements
            for statement in (self.relocate_call(s, lambda _, e: e) if isinstance(s, KernelCall) else (s,))
        ]
        addresses = [
            tirx.Bind(slot.address, self.frame + self.size(slot.offset))
            for slot in self.workspace.slots
            if slot.named and slot.first is not None
        ]
        return [*self._declarations, *self._first, *self._size_bindings, *addresses, *statements], size

    # ---- sizes

    def size(self, dim: Dim) -> Expression:
        """A dim as a number. Symbolic ones are constants of a call, so a function computes them once, at its start; not
        so what depends on data-dependent sizes."""
        if isinstance(dim, int):
            return integer(dim)
        if isinstance(dim, DataDependentDim):
            return self.made[dim]
        if any(True for _ in data_dependent_dims_in(dim)):
            assert isinstance(dim, DimExpr)
            return self.bind(tir.arithmetic(dim, self.size), name="size")
        if dim not in self._sizes:
            if isinstance(dim, TypeId):
                found = self.table(self.places[dim])
            else:
                assert isinstance(dim, DimExpr)
                found = tir.arithmetic(dim, self.size)
            variable = tirx.Var("size", "int64")
            self._size_bindings.append(tirx.Bind(variable, found))
            self._sizes[dim] = variable
        return self._sizes[dim]

    def bytes(self, dim: Dim) -> Expression:
        """A number of bytes that are taken. The program ends where there are more than any memory has."""
        if may_overflow(dim):
            self.limit_bytes(tir.magnitude(dim, self.size))
        return self.size(dim)

    def limit_bytes(self, count: Expression) -> None:
        """Fail if a number of bytes, a float64, is larger than any memory."""
        with self.collect() as exhausted:
            self.emit(*self.failure(RUNNING_OUT_OF_MEMORY))
        self.emit_if(tirx.GT(count, tirx.const(float(WIDEST_SIZE), "float64")), exhausted)

    # ---- the context table

    def table(self, place: int) -> Expression:
        """An entry of the context table, as it is now."""
        return tirx.BufferLoad(self._table, [place])

    def set_table(self, place: int, value: Expression) -> None:
        self.emit(tirx.BufferStore(self._table, value, [place]))

    def spend(self, size: Expression) -> None:
        """Take this many bytes of what the program may have, or fail; less than none gives them back."""
        left = self.bind(self.table(BUDGET) - size, name="left")
        with self.collect() as exhausted:
            self.emit(*self.failure(RUNNING_OUT_OF_MEMORY))
        self.emit_if(tirx.LT(left, integer(0)), exhausted)
        self.set_table(BUDGET, left)

    # ---- places

    def leaf(self, layout: TensorLayout) -> Leaf:
        """A new place for a tensor."""
        self._names += 1
        name = f"v{self._names}"
        if tir.by_value(layout.base, layout.elements):
            view, address, statements = tir.local_element(name, layout.base.name)
            self._declarations += statements
            return Leaf(layout, Register(view, address))
        if any(True for _ in data_dependent_dims_in(layout.dims)):
            assert self._arena is not None
            return Leaf(layout, Memory(self._arena.reserve(self, self.bytes(layout.bytes))))
        variable = tirx.Var(name, "int64")
        return Leaf(layout, Memory(variable, self.workspace.slot(layout.bytes, variable)))

    def part(self, whole: Leaf, layout: TensorLayout, begin: Dim) -> Leaf:
        """The place of a tensor within the memory of another one, `begin` bytes after its address."""
        place = whole.place
        assert isinstance(place, Memory)
        base, begin = (place, begin) if place.whole is None else (place.whole, add(place.begin, begin))
        return Leaf(layout, Memory(base.address + self.size(begin), base.slot, whole=base, begin=begin))

    def allocate(self, layout: Layout) -> Value:
        """New places for a value."""
        return build(layout, map(self.leaf, leaves(layout)))

    def in_registers(self, places: Value) -> Value:
        """The same places, but registers for the one-element tensors, which would be slow in memory."""
        match places:
            case Leaf(layout, Memory()) if tir.by_value(layout.base, layout.elements):
                return self.leaf(layout)
            case Leaf() | StackValue():
                return places
            case tuple():
                return tuple(map(self.in_registers, places))
            case DataValue(tag, fields):
                return DataValue(tag, tuple(None if f is None else tuple(map(self.in_registers, f)) for f in fields))
            case _:
                assert_never(places)

    def number(self, value: int, layout: TensorLayout) -> Leaf:
        return Leaf(layout, Immediate(tir.literal(value, layout.base)))

    # ---- reading and writing

    def load(self, leaf: Leaf) -> Expression:
        """The element of a one-element tensor. It must be evaluated before the place is written again."""
        match leaf.place:
            case Immediate(expression):
                return expression
            case Register(view):
                return tirx.BufferLoad(view, [0])
            case Memory(address, slot):
                if slot is not None:
                    self._name(slot)
                view, statements = tir.view("m", (1,), leaf.layout.base.name, address)
                self.emit(*statements)
                return tirx.BufferLoad(view, [0])
            case _:
                assert_never(leaf.place)

    def leaf_at(self, address: Expression | None) -> Leaf:
        """A new place for a word; it holds the one at the address, if there is one."""
        leaf = self.leaf(TensorLayout(INT64, ()))
        if address is not None:
            self.store(leaf, self.load_word(address))
        return leaf

    def load_word(self, address: Expression) -> Expression:
        """The int64 at an address, as it is now."""
        view, statements = tir.view("word", (1,), "int64", address)
        self.emit(*statements)
        return self.bind(tirx.BufferLoad(view, [0]), name="word")

    def store_word(self, address: Expression, value: Expression) -> None:
        """Write an int64 to an address."""
        view, statements = tir.view("word", (1,), "int64", address)
        self.emit(*statements, tirx.BufferStore(view, value, [0]))

    def value(self, leaf: Leaf) -> Expression:
        """The element of a one-element tensor, evaluated now."""
        if isinstance(leaf.place, Immediate):
            return leaf.place.expression
        return self.bind(self.load(leaf), leaf.layout.base.name)

    def store(self, leaf: Leaf, element: Expression) -> None:
        match leaf.place:
            case Register(view):
                self.emit(tirx.BufferStore(view, element, [0]))
            case Memory(address, slot):
                if slot is not None:
                    self._name(slot)
                view, statements = tir.view("m", (1,), leaf.layout.base.name, address)
                self.emit(*statements, tirx.BufferStore(view, element, [0]))
            case Immediate():
                raise AssertionError("an immediate place is not written")
            case _:
                assert_never(leaf.place)

    def _name(self, slot: Slot) -> None:
        """Use a slot through the variable that holds its address."""
        self.workspace.use(slot)
        slot.named = True

    def tensor_argument(self, leaf: Leaf) -> Expression:
        """A tensor as functions take it."""
        in_register = tir.by_value(leaf.layout.base, leaf.layout.elements)
        return self.load(leaf) if in_register else self.address(leaf)

    def address(self, leaf: Leaf) -> Expression:
        """The address of a tensor."""
        match leaf.place:
            case Memory(address, slot):
                if slot is not None:
                    self._name(slot)
                return address
            case Register(_, address):
                return address
            case Immediate(expression):
                spilled = self.leaf(leaf.layout)
                self.store(spilled, expression)
                return self.address(spilled)
            case _:
                assert_never(leaf.place)

    def register(self, value: int) -> Leaf:
        """An int64 register that holds a number when the function starts."""
        leaf = self.leaf(ROW)
        assert isinstance(leaf.place, Register)
        self._first.append(tirx.BufferStore(leaf.place.view, integer(value), [0]))
        return leaf

    def copy(self, target: Leaf, source: Leaf) -> None:
        """target := source, which do not overlap unless they are the same."""
        if target.place is source.place or target.layout.elements == 0:
            return
        if tir.by_value(target.layout.base, target.layout.elements):
            self.store(target, self.load(source))
            return
        size = self.size(target.layout.bytes)
        with self.collect() as copied:
            self.emit(tir.copy_bytes(self.address(target), self.address(source), size))
        if isinstance(source.place, Memory) and source.place.optional:
            self.emit_if(tirx.NE(self.address(source), integer(0)), copied)
        else:
            self.emit(*copied)
        self.touch(target)

    def touch(self, leaf: Leaf) -> None:
        """Keep a buffer alive until here."""
        if isinstance(leaf.place, Memory) and leaf.place.slot is not None:
            self.workspace.use(leaf.place.slot)

    def assign(self, target: Value, source: Value) -> None:
        """target := source, where the target holds nothing of the source."""
        for left, right in pairs(target, source):
            self.copy(left, right)

    def assign_parallel(self, targets: Sequence[Value], sources: Sequence[Value]) -> None:
        """All targets := all sources at once; a source may be another target's place."""
        moves = [
            (left, right)
            for target, source in zip(targets, sources, strict=True)
            for left, right in pairs(target, source)
            if left.place is not right.place
        ]
        while moves:
            blocked = {id(right.place) for _, right in moves}
            ready = [(left, right) for left, right in moves if id(left.place) not in blocked]
            if not ready:  # a cycle: save one place, then it can be written
                left, _ = moves[0]
                saved = self.leaf(left.layout)
                self.copy(saved, left)
                moves = [(a, saved if b.place is left.place else b) for a, b in moves]
                continue
            for left, right in ready:
                self.copy(left, right)
            done = {id(left.place) for left, _ in ready}
            moves = [(left, right) for left, right in moves if id(left.place) not in done]

    # ---- pools

    def row(self, pool: Pool, row: Expression) -> Value:
        """The value at a row of a pool: addresses that hold until the pool grows."""
        assert pool.slot is not None
        places = []
        for position, layout in enumerate(leaves(pool.element)):
            base = self.table(pool.slot + 2 + position)
            address = self.bind(base + row * self.size(layout.bytes), "int64", "at")
            places.append(Leaf(layout, Memory(address)))
        return build(pool.element, iter(places))

    def shadow_words(self, pool: Pool, slot: str, row: Expression) -> tuple[Expression, Expression]:
        """The addresses of the words for a shadow in a row of a pool of references: see `Pool`."""
        assert pool.slot is not None
        first = pool.slot + 2 + sum(1 for _ in leaves(pool.element)) + 2 * pool.shadows.index(slot)
        there, shadow = (self.table(first + n) + row * self.size(ROW.bytes) for n in range(2))
        return self.bind(there, "int64", "at"), self.bind(shadow, "int64", "at")

    def read(self, value: Value, keep: bool) -> Value:
        """A value that lies in a pool, read now; with `keep`, larger tensors stay where they are."""
        match value:
            case Leaf(layout):
                if keep and not tir.by_value(layout.base, layout.elements):
                    return value
                leaf = self.leaf(layout)
                self.copy(leaf, value)
                return leaf
            case tuple():
                return tuple(self.read(item, keep) for item in value)
            case DataValue(tag, fields):
                new_tag = self._read_leaf(tag)
                new_fields = [None if f is None else tuple(self.read(item, keep) for item in f) for f in fields]
                return DataValue(new_tag, tuple(new_fields))
            case StackValue(offset, length):
                return StackValue(self._read_leaf(offset), self._read_leaf(length))
            case _:
                assert_never(value)

    def _read_leaf(self, leaf: Leaf) -> Leaf:
        read = self.read(leaf, keep=False)
        assert isinstance(read, Leaf)
        return read


def build(layout: Layout, places: Iterator[Leaf]) -> Value:
    """A value of a layout from its leaves in order."""
    match layout:
        case TensorLayout() | RowLayout():
            return next(places)
        case TupleLayout(items):
            return tuple(build(item, places) for item in items)
        case DataLayout(_, fields):
            tag = next(places)
            return DataValue(tag, tuple(tuple(build(f, places) for f in constructor) for constructor in fields))
        case StackLayout():
            return StackValue(next(places), next(places))
        case _:
            assert_never(layout)


class FailureTable:
    """The failures of a program: the error for each status."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Span | None], int] = {}

    def status(self, message: str, span: Span | None) -> int:
        return self._known.setdefault((message, span), FIRST_FAILURE + len(self._known))

    def errors(self) -> list[tuple[str, Span | None]]:
        return list(self._known)


class ContextTable:
    """The places of the context table."""

    def __init__(self) -> None:
        self.size = FIRST_FREE

    def reserve(self, count: int) -> int:
        first = self.size
        self.size += count
        return first
