"""The kernel of a loop in lanes: its rounds in vectors, parts of them on several threads.

Loops of rounds may run for long, and only Python's main thread hears of signals. So threads run a limited number of
rounds of inner loops at a time; where one vector takes more than that, the caller's thread computes it, and looks for
signals as it does so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.codegen.kernels.lanes.program import LaneProgram
from relay.codegen.kernels.lanes.values import KernelContext
from relay.codegen.kernels.lanes.vectors import (
    NoLaneCode,
    Operand,
    Uniform,
    Vector,
    VectorCode,
    elements_of,
    itemsize,
    storage,
)
from relay.codegen.kernels.loops import loop as for_loop
from relay.codegen.kernels.registers import with_registers
from relay.codegen.kernels.stage import with_fresh_names
from relay.codegen.lowering.context import BUDGET, INTERRUPTED, RUNNING_OUT_OF_MEMORY, STACK_LIMIT, STATUS
from relay.codegen.lowering.function_builder import TABLE_SIZE
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, GlobalVar, Statement, integer, tirx
from relay.errors import CompileError, Span
from relay.ir.dims import Dim, product
from relay.ir.expr import Atom, Constant, Var
from relay.ir.traverse import walk
from relay.ir.types import BaseType, TensorType
from relay.support.limits import UNLIMITED
from relay.transform.analysis.lanes import LaneLoop

ROUNDS = 1 << 22
"""Rounds of inner loops that a thread runs without looking at signals."""

_PROGRESS, _STATUS, _SUMS = range(3)
"""The words of a thread: the round that it is at, its status, and the elements of its sums."""


@attrs.frozen(eq=False)
class LaneKernel:
    """The functions of a loop in lanes by their global variables, the one that is called, the atoms that it takes after
    the context, then the arrays and sums of the loop by position, then the sizes, then the number of rounds, and the
    bytes of memory whose address is the last parameter."""

    functions: dict[Any, Any]
    function: Any
    operands: tuple[Atom, ...]
    changed: tuple[int, ...]
    sizes: tuple[Dim, ...]
    memory: int


def lane_kernel(
    plan: LaneLoop, name: str, threads: int, failure: Callable[[str, Span | None], int]
) -> LaneKernel | None:
    """The kernel of a loop; None if it has an operator that is not computed element by element."""
    try:
        return _Builder(plan, name, threads, failure).build()
    except (NoLaneCode, CompileError):
        return None


def _width(plan: LaneLoop) -> int:
    """Lanes for two registers of the widest floats, and fewer for arrays that are too large for the stack."""
    size, _ = tir.vector_registers()
    types = [t.type for b in walk(plan.loop.body) for t in b.targets if isinstance(t.type, TensorType)]
    small = [t for t in types if isinstance(t.base, BaseType) and isinstance(n := product(t.shape), int) and n <= 64]
    floats = [t for t in small if isinstance(t.base, BaseType) and t.base.is_float]
    width = 2 * size // max((itemsize(t) for t in floats), default=4)
    largest = max((elements_of(t) * itemsize(t) for t in small), default=8)
    while width > 4 and width * largest >= tir.STACK_BYTES:
        width //= 2
    return width


class _Builder:
    def __init__(self, plan: LaneLoop, name: str, threads: int, failure: Callable[[str, Span | None], int]) -> None:
        self.plan, self.threads, self.failure = plan, threads, failure
        self.range, self.whole = GlobalVar(f"{name}_range"), GlobalVar(name)
        self.operands: dict[Atom, tuple[Any, Operand]] = {}
        self.sizes: dict[Dim, Any] = {}
        self.declarations: list[Statement] = []
        self.changed = tuple(sorted((*plan.arrays, *plan.sums)))
        self.context = tirx.Var("context", "int64")

    def build(self) -> LaneKernel:
        arrays = {number: tirx.Var("array", "int64") for number in self.changed}
        count, begin, end, words, polls = (tirx.Var(n, "int64") for n in ("count", "begin", "end", "words", "polls"))
        body = self._range(arrays, count, begin, end, words, polls)
        given = [p for p, _ in self.operands.values()]
        sizes = list(self.sizes.values())
        parameters = [self.context, *given, *arrays.values(), *sizes, count, begin, end, words, polls]
        functions = {self.range: _kernel(parameters, body)}
        fresh = [tirx.Var(p.name, p.ty) for p in parameters[:-4]]
        memory = tirx.Var("memory", "int64")
        sums = {n: fresh[1 + len(given) + self.changed.index(n)] for n in self.plan.sums}
        functions[self.whole] = _kernel([*fresh, memory], self._threads(fresh, fresh[-1], memory, sums))
        return LaneKernel(
            functions, self.whole, tuple(self.operands), self.changed, tuple(self.sizes), self.threads * self._stride
        )

    # ---- what comes from outside

    def _operand(self, atom: Atom) -> Operand:
        if atom not in self.operands:
            type_ = atom.type if isinstance(atom, Var | Constant) else None
            if not isinstance(type_, TensorType) or not isinstance(type_.base, BaseType):
                raise NoLaneCode
            if tir.by_value(type_.base, _product(type_)):
                parameter = tirx.Var("operand", type_.base.name)
                self.operands[atom] = parameter, Uniform(type_, parameter)
            else:
                parameter = tirx.Var("operand", "int64")
                self.operands[atom] = parameter, Uniform(type_, buffer=self._memory(type_, parameter))
        return self.operands[atom][1]

    def _memory(self, type_: TensorType, address: Expression) -> Any:
        buffer, statements = tir.view("array", (1 << 40,), _in_memory(type_), address)
        self.declarations += statements
        return buffer

    def _size(self, dim: Dim) -> Expression:
        if isinstance(dim, int):
            return integer(dim)
        return self.sizes.setdefault(dim, tirx.Var("size", "int64"))

    # ---- a range of rounds

    def _range(
        self, arrays: dict[int, Any], count: Any, begin: Any, end: Any, words: Any, polls: Any
    ) -> list[Statement]:
        plan, code = self.plan, VectorCode(_width(self.plan))
        types = {n: plan.loop.parameters[n].type for n in self.changed}
        buffers = {n: self._memory(types[n], arrays[n]) for n in plan.arrays}  # type: ignore[arg-type]
        table, declared = tir.view("table", (TABLE_SIZE,), "int64", self.context)
        self.declarations += declared
        notes, declared = tir.view("words", (_SUMS + 1024,), "int64", words)
        self.declarations += declared
        base, left, alive, status = code.cell(), code.cell(), code.cell(1), code.cell()
        code.store(base, begin)
        code.store(left, integer(ROUNDS))
        totals = {n: code.vector(types[n]) for n in plan.sums}  # type: ignore[arg-type]
        for total in totals.values():
            code.copy(total, Uniform(total.type, tirx.const(0, storage(total.type))))
        limit = tirx.Var("limit", "int64")
        code.emit(tirx.Bind(limit, tirx.truncdiv(tirx.BufferLoad(table, [BUDGET]), integer(self.threads))))

        def refill(code: VectorCode) -> None:
            self._refill(code, table, polls, (left, alive, status))

        around = KernelContext(
            self._operand, self._size, self.failure, refill, left, alive, status, limit, RUNNING_OUT_OF_MEMORY
        )
        program = LaneProgram(plan, code, around)
        with code.collect() as vector:
            first, rest = tirx.Var("first", "int64"), tirx.Var("rest", "int64")
            code.emit(tirx.Bind(first, code.load(base)))
            code.emit(tirx.Bind(rest, tirx.min(integer(code.width), end - first)))
            program.emit(first, rest, count, buffers)
            with code.collect() as finish:
                program.store()
                for number, total in totals.items():
                    self._add(code, total, program.added[number], rest)
                code.store(base, first + rest)
            code.emit_if(tirx.NE(code.load(alive), integer(0)), finish)
        more = tirx.And(tirx.LT(code.load(base), end), tirx.NE(code.load(alive), integer(0)))
        code.emit(tirx.While(more, tir.sequence(vector)))
        code.emit(tirx.BufferStore(notes, code.load(base), [integer(_PROGRESS)]))
        code.emit(tirx.BufferStore(notes, code.load(status), [integer(_STATUS)]))
        position = _SUMS
        self._stride = 8 * (_SUMS + sum(t.elements for t in totals.values()))
        for total in totals.values():
            self._sum_up(code, total, words + integer(8 * position))
            position += total.elements
        for memory in program.tapes.memories:
            code.emit(tirx.Evaluate(tir.extern("free", code.load(memory.address))))
        return [*self.declarations, *code.allocations, *code.statements]

    def _refill(self, code: VectorCode, table: Any, polls: Any, cells: tuple[Any, Any, Any]) -> None:
        """Let Python handle signals, and go on for another number of rounds: the cells hold the rounds that are left,
        whether the lanes go on, and the status."""
        left, alive, status = cells
        raised = tirx.Var("raised", "int32")
        with code.collect() as ask:
            code.emit(tirx.Bind(raised, tirx.call_extern("int32", "TVMFFIEnvCheckSignals")))
            stopped = tirx.EQ(tirx.BufferLoad(table, [STACK_LIMIT]), integer(UNLIMITED))
            with code.collect() as interrupted:
                code.store(status, integer(INTERRUPTED))
                code.store(alive, integer(0))
            with code.collect() as go_on:
                code.store(left, integer(ROUNDS))
            code.emit_if(tirx.Or(tirx.NE(raised, integer(0, "int32")), stopped), interrupted, go_on)
        with code.collect() as give_up:
            code.store(alive, integer(0))
        again = tirx.And(tirx.NE(polls, integer(0)), tirx.NE(code.load(alive), integer(0)))
        code.emit_if(again, ask, give_up)

    def _add(self, code: VectorCode, total: Vector, value: Operand, rest: Expression) -> None:
        """total += value, in the lanes that are meant."""
        dtype = storage(total.type)
        full = tirx.EQ(rest, integer(code.width))
        for n in range(total.elements):

            def vector_statements(lane: Expression, n: int = n) -> list[Statement]:
                return [code.write(total, n, lane, code.stored_element(total, n, lane) + code.element(value, n, lane))]

            def part(lane: Expression, n: int = n) -> list[Statement]:
                zero = tirx.const(0, dtype)
                given = tirx.Select(tirx.LT(lane, rest), code.element(value, n, lane), zero)
                return [code.write(total, n, lane, code.stored_element(total, n, lane) + given)]

            with code.collect() as all_:
                code.each_lane(vector_statements)
            with code.collect() as some:
                code.each_lane(part)
            code.emit_if(full, all_, some)

    def _sum_up(self, code: VectorCode, total: Vector, address: Expression) -> None:
        """Add all lanes of a sum to a thread's words."""
        dtype = storage(total.type)
        for n in range(total.elements):
            word, declared = tir.view("sum", (1,), dtype, address + integer(8 * n))
            code.emit(*declared)
            code.each_lane(
                lambda lane, n=n, word=word: [  # type: ignore[misc]
                    tirx.BufferStore(word, tirx.BufferLoad(word, [0]) + code.stored_element(total, n, lane), [0])
                ],
                "SERIAL",
            )

    # ---- threads

    def _threads(self, parameters: Sequence[Any], count: Any, memory: Any, sums: dict[int, Any]) -> list[Statement]:
        words, declared = tir.view("words", (self.threads * self._stride // 8,), "int64", memory)
        table, more = tir.view("table", (TABLE_SIZE,), "int64", parameters[0])
        stride = self._stride // 8
        width, threads = _width(self.plan), self.threads

        def word(thread: Expression, position: int) -> Any:
            return tirx.BufferLoad(words, [thread * integer(stride) + integer(position)])

        def begin(thread: Expression) -> Expression:
            vectors = tirx.truncdiv(count + integer(width - 1), integer(width))
            return tirx.min(tirx.truncdiv(vectors * thread, integer(threads)) * integer(width), count)

        def run(thread: Expression, end: Expression, polls: int) -> Statement:
            own = memory + thread * integer(self._stride)
            given = [*parameters, word(thread, _PROGRESS), end, own, integer(polls)]
            return tirx.Evaluate(tir.call(self.range, given))

        def start(thread: Expression) -> list[Statement]:
            first = [tirx.BufferStore(words, begin(thread), [thread * integer(stride)])]
            return first + for_loop(
                stride - 1,
                "int64",
                lambda n: [tirx.BufferStore(words, integer(0), [thread * integer(stride) + n + integer(1)])],
            )

        def unfinished_flag(thread: Expression) -> Expression:
            behind = tirx.LT(word(thread, _PROGRESS), begin(thread + integer(1)))
            return tirx.And(behind, tirx.EQ(word(thread, _STATUS), integer(0)))

        going = tir.buffer("going", (1,), "int64")
        status = tir.buffer("status", (1,), "int64")
        body: list[Statement] = [*declared, *more, tirx.AllocBuffer(going), tirx.AllocBuffer(status)]
        body += [tirx.BufferStore(going, integer(1), [0]), tirx.BufferStore(status, integer(0), [0])]
        body += for_loop(threads, "int64", start)
        if threads == 1:
            body.append(run(integer(0), count, 1))
        else:

            def share(thread: Expression) -> list[Statement]:
                end = begin(thread + integer(1))
                return [tirx.IfThenElse(tirx.LT(word(thread, _PROGRESS), end), run(thread, end, 0), None)]

            def finish(thread: Expression) -> list[Statement]:
                end = tirx.min(word(thread, _PROGRESS) + integer(width), begin(thread + integer(1)))
                again = tirx.BufferStore(going, integer(1), [0])
                ahead = [run(thread, end, 1), again]
                ask = tirx.And(unfinished_flag(thread), tirx.EQ(tirx.BufferLoad(status, [0]), integer(0)))
                note = tirx.BufferStore(status, word(thread, _STATUS), [0])
                fails = tirx.And(
                    tirx.NE(word(thread, _STATUS), integer(0)), tirx.EQ(tirx.BufferLoad(status, [0]), integer(0))
                )
                return [tirx.IfThenElse(ask, tir.sequence(ahead), None), tirx.IfThenElse(fails, note, None)]

            round_ = [
                tirx.BufferStore(going, integer(0), [0]),
                *for_loop(threads, "int64", share, "PARALLEL"),
                *for_loop(threads, "int64", finish),
            ]
            more_ = tirx.And(
                tirx.NE(tirx.BufferLoad(going, [0]), integer(0)), tirx.EQ(tirx.BufferLoad(status, [0]), integer(0))
            )
            body.append(tirx.While(more_, tir.sequence(round_)))
        for thread in range(threads) if threads == 1 else ():
            body.append(tirx.BufferStore(status, word(integer(thread), _STATUS), [0]))
        failed = tirx.NE(tirx.BufferLoad(status, [0]), integer(0))
        leave = [tirx.BufferStore(table, tirx.BufferLoad(status, [0]), [STATUS]), tir.fail()]
        body.append(tirx.IfThenElse(failed, tir.sequence(leave), None))
        return body + self._collect_sums(memory, sums)

    def _collect_sums(self, memory: Any, sums: dict[int, Any]) -> list[Statement]:
        """The statements that add the threads' sums to those of the loop."""
        body: list[Statement] = []
        position = _SUMS
        for number, address in sums.items():
            type_ = self.plan.loop.parameters[number].type
            assert isinstance(type_, TensorType)
            dtype, elements = storage(type_), elements_of(type_)
            target, declared = tir.view("sum", (elements,), dtype, address)
            body += declared
            for n in range(elements):
                for thread in range(self.threads):
                    at = memory + integer(thread * self._stride + 8 * (position + n))
                    part, declared = tir.view("part", (1,), dtype, at)
                    added = tirx.BufferLoad(target, [n]) + tirx.BufferLoad(part, [0])
                    body += [*declared, tirx.BufferStore(target, added, [n])]
            position += elements
        return body


def _kernel(parameters: Sequence[Any], body: Sequence[Statement]) -> Any:
    statement = with_registers(with_fresh_names(tir.sequence(list(body))))
    made = tir.function(parameters, [statement]).with_attr(tir.KERNEL, True)
    flat, large = tir.flat_kernel(made, {})
    if large:
        raise NoLaneCode
    return flat


def _product(type_: TensorType) -> Any:
    return product(type_.shape)


def _in_memory(type_: TensorType) -> str:
    assert isinstance(type_.base, BaseType)
    return "int8" if type_.base.name == "bool" else type_.base.name
