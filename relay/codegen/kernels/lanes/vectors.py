"""Vectors of lanes: values of several rounds of a loop, element by element by turns, and statements on them.

A vector is a small buffer that LLVM keeps in registers: each access is of all lanes. Bools are kept as int32, whose
vectors have one form in memory and in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import attrs
import numpy as np
from tvm import te

from relay.codegen.kernels.emission import Emission, Place, key
from relay.codegen.kernels.kernels import Extents, operator_stage, placeholder
from relay.codegen.kernels.stage import substitute_variables
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, integer, tirx
from relay.ir.dims import product
from relay.ir.expr import OpCall
from relay.ir.types import BOOL, BaseType, TensorType, scalar

LANES = "int64"
"""The dtype of numbers of lanes."""


class NoLaneCode(Exception):
    """An operator's code is not a function of elements."""


@attrs.frozen(eq=False)
class Vector:
    """A tensor of each lane."""

    type: TensorType
    buffer: Any

    @property
    def elements(self) -> int:
        return elements_of(self.type)


@attrs.frozen(eq=False)
class Uniform:
    """A tensor that is the same in all lanes: a number, or in memory."""

    type: TensorType
    number: Expression | None = None
    buffer: Any = None


Operand: TypeAlias = Vector | Uniform


def elements_of(type_: TensorType) -> int:
    elements = product(type_.shape)
    assert isinstance(elements, int)
    return elements


def storage(type_: TensorType) -> str:
    """The dtype that elements are kept in."""
    assert isinstance(type_.base, BaseType)
    return "int32" if type_.base.name == "bool" else type_.base.name


def itemsize(type_: TensorType) -> int:
    """The bytes that an element takes."""
    return BaseType(storage(type_)).dtype.itemsize


def stored_element(value: Expression) -> Expression:
    """An element as it is kept."""
    return tirx.Cast("int32", value) if str(value.ty) == "bool" else value


class VectorCode:
    """Statements on vectors of `width` lanes."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.emission = Emission(1, LANES)
        self.allocations: list[Statement] = []
        self.statements: list[Statement] = []
        self._names = 0

    # ---- statements

    def emit(self, *statements: Statement) -> None:
        self.statements += statements

    @contextmanager
    def collect(self) -> Iterator[list[Statement]]:
        """A context: statements that are emitted inside are collected in a separate list."""
        outer, self.statements = self.statements, []
        yield self.statements
        self.statements = outer

    def emit_if(self, condition: Expression, then: Sequence[Statement], orelse: Sequence[Statement] = ()) -> None:
        if then or orelse:
            self.emit(tirx.IfThenElse(condition, tir.sequence(then), tir.sequence(orelse) if orelse else None))

    def each_lane(self, body: Callable[[Expression], Sequence[Statement]], kind: str = "VECTORIZED") -> None:
        """Emit body(lane) for all lanes at once, or, of another kind, one after the other."""
        lane = tirx.Var("lane", LANES)
        first, count = integer(0), integer(self.width)
        self.emit(tirx.For(lane, first, count, tirx.ForKind[kind], tir.sequence(body(lane))))

    # ---- memory

    def _buffer(self, dtype: str, count: int) -> Any:
        self._names += 1
        made = tir.buffer(f"lanes{self._names}", (count,), dtype)
        self.allocations.append(tirx.AllocBuffer(made))
        return made

    def vector(self, type_: TensorType) -> Vector:
        """A new vector."""
        return Vector(type_, self._buffer(storage(type_), elements_of(type_) * self.width))

    def cell(self, value: int = 0, dtype: str = "int64") -> Any:
        """A number that is one for all lanes, with a value at the start."""
        made = self._buffer(dtype, 1)
        self.allocations.append(tirx.BufferStore(made, tirx.const(value, dtype), [0]))
        return made

    @staticmethod
    def load(cell: Any) -> Expression:
        return tirx.BufferLoad(cell, [0])

    def store(self, cell: Any, value: Expression) -> None:
        self.emit(tirx.BufferStore(cell, value, [0]))

    # ---- elements

    def place(self, element: int, lane: Expression) -> Expression:
        return lane + integer(element * self.width) if element else lane

    def stored_element(self, vector: Vector, element: int, lane: Expression) -> Expression:
        """An element of a vector as it is kept."""
        return tirx.BufferLoad(vector.buffer, [self.place(element, lane)])

    def element(self, value: Operand, element: int, lane: Expression) -> Expression:
        """An element of a value in a lane."""
        if isinstance(value, Vector):
            found = self.stored_element(value, element, lane)
            return tirx.NE(found, integer(0, "int32")) if value.type.base == BOOL else found
        if value.number is not None:
            return value.number
        return tirx.BufferLoad(value.buffer, [integer(element)])

    def write(self, vector: Vector, element: int, lane: Expression, value: Expression) -> Statement:
        return tirx.BufferStore(vector.buffer, stored_element(value), [self.place(element, lane)])

    def copy(self, target: Vector, source: Operand) -> None:
        """target := source"""
        if target is source:
            return
        for n in range(target.elements):
            self.each_lane(lambda lane, n=n: [self.write(target, n, lane, self.element(source, n, lane))])  # type: ignore[misc]

    def choose(self, target: Vector, mask: Operand, then: Operand, orelse: Operand) -> None:
        """target := then where the mask holds, else orelse"""
        for n in range(target.elements):

            def choose_lane(lane: Expression, n: int = n) -> list[Statement]:
                left, right = stored_element(self.element(then, n, lane)), stored_element(self.element(orelse, n, lane))
                value = tirx.Select(self.element(mask, 0, lane), left, right)
                return [tirx.BufferStore(target.buffer, value, [self.place(n, lane)])]

            self.each_lane(choose_lane)

    def mask(self, value: Callable[[Expression], Expression]) -> Vector:
        """A new vector of bools."""
        made = self.vector(scalar(BOOL))
        self.each_lane(lambda lane: [self.write(made, 0, lane, value(lane))])
        return made

    def masked_condition(self, mask: Vector | None, condition: Operand, holds: bool = True) -> Vector:
        """The lanes of a mask in which a condition holds, or does not."""

        def value(lane: Expression) -> Expression:
            known = self.element(condition, 0, lane)
            known = known if holds else tirx.Not(known)
            return known if mask is None else tirx.And(self.element(mask, 0, lane), known)

        return self.mask(value)

    # ---- all lanes together

    def reduce(self, kind: str, vector: Vector) -> Expression:
        """One number of all lanes of a vector of integers: `or`, `smax`."""
        whole = tirx.BufferLoad(vector.buffer, [tirx.Ramp(integer(0), integer(1), self.width)])
        return tirx.call_llvm_pure_intrin(storage(vector.type), f"llvm.vector.reduce.{kind}", whole)

    # ---- operators

    def call(self, call: OpCall, operands: Sequence[Operand], type_: TensorType, mask: Vector | None) -> Vector:
        """The result of an operator on each lane. Where a `mask` is given, the operator may fail in the lanes that it
        does not hold in, so its last operand is 1 there."""
        e, extents = self.emission, Extents((), True)
        stages = [placeholder(n, operand.type, extents) for n, operand in enumerate(operands)]
        made = operator_stage(call, stages, type_, None, extents)
        target = self.vector(type_)
        for number, index in enumerate(np.ndindex(*map(int, type_.shape))):  # type: ignore[arg-type]

            def value(lane: Expression, number: int = number, index: tuple[int, ...] = index) -> list[Statement]:
                e.lane = lane
                for position, (stage, operand) in enumerate(zip(stages, operands, strict=True)):
                    last = position == len(operands) - 1
                    self._give(stage, operand, lane, mask if last else None)
                return [self.write(target, number, lane, self._result(made, index))]

            statement_lane = tirx.Var("lane", LANES)
            statements = value(statement_lane)
            kind = "VECTORIZED" if e.vectorizes([statements[0].value]) else "SERIAL"
            self.emit(
                tirx.For(statement_lane, integer(0), integer(self.width), tirx.ForKind[kind], tir.sequence(statements))
            )
        return target

    def scalar_call(self, call: OpCall, operands: Sequence[Operand], type_: TensorType) -> Uniform:
        """The result of an operator on numbers that are the same in all lanes."""
        extents = Extents((), True)
        stages = [placeholder(n, operand.type, extents) for n, operand in enumerate(operands)]
        made = operator_stage(call, stages, type_, None, extents)
        for stage, operand in zip(stages, operands, strict=True):
            self.emission.values[key(stage)] = self.element(operand, 0, integer(0))
        cell = self.cell(0, storage(type_))
        self.store(cell, stored_element(self._result(made, ())))
        number = self.load(cell)
        return Uniform(type_, tirx.NE(number, integer(0, "int32")) if type_.base == BOOL else number)

    def _give(self, stage: Any, operand: Operand, lane: Expression, mask: Vector | None) -> None:
        """Say what an operand of an operator is in a lane."""
        e = self.emission
        if operand.elements == 1 if isinstance(operand, Vector) else operand.number is not None:
            value = self.element(operand, 0, lane)
            if mask is not None and str(value.ty) != "bool":
                value = tirx.Select(self.element(mask, 0, lane), value, tirx.const(1, str(value.ty)))
            e.values[key(stage)] = value
            return
        lanes = self.width if isinstance(operand, Vector) else 1
        e.places[key(stage)] = Place(operand.buffer, tuple(map(int, operand.type.shape)), lanes=lanes)  # type: ignore[arg-type]

    def _result(self, tensor: Any, index: tuple[int, ...]) -> Expression:
        """An element of what an operator computes."""
        if not isinstance(tensor.op, te.ComputeOp):
            raise NoLaneCode
        pending: list[Any] = list(tensor.op.input_tensors)
        while pending:
            one = pending.pop()
            if key(one) in self.emission.values or key(one) in self.emission.places:
                continue
            if not isinstance(one.op, te.ComputeOp) or one.op.reduce_axis:
                raise NoLaneCode
            pending += list(one.op.input_tensors)
        if tensor.op.reduce_axis:
            return self._reduction_element(tensor, index)
        return self.emission.load(tensor, [integer(i) for i in index])

    def _reduction_element(self, tensor: Any, index: tuple[int, ...]) -> Expression:
        """An element of a reduction, term by term."""
        e, op = self.emission, tensor.op
        node = op.body[tensor.value_index]
        own = e.axis_values([a.var for a in op.axis], index)
        extents = [int(a.dom.extent.value) for a in op.reduce_axis]
        known = list(node.combiner.identity_element)
        for place in np.ndindex(*extents):
            variables = {**own, **e.axis_values([a.var for a in op.reduce_axis], place)}
            terms = [e.element(source, variables) for source in node.source]
            pairs = dict(zip((*node.combiner.lhs, *node.combiner.rhs), (*known, *terms), strict=True))
            known = [substitute_variables(result, pairs) for result in node.combiner.result]
        return known[int(node.value_index)]
