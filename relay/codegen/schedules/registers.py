"""Names in long expressions as stores to registers.

TVM's analyses put the values of names (`Let`) in place of them, which takes exponential time where values contain
names that are used more than once. They do not look through memory: so where an expression has many names, each is
stored to a small buffer, which LLVM keeps in a register.

They also fail where the value of a name holds other names with values that they simplify, so names that are few stand
before all that uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm_ffi import structural_map, structural_walk

from relay.codegen.schedules.stage import CHOICE, features
from relay.codegen.tir import Expression, Statement, buffer, outermost, sequence, tirx

_NAME = "element_of_stage"

MANY = 4
"""Expressions with fewer names than this stay as they are: the analyses are quick, and the code is shorter. With seven
names one of TVM's passes can take 30 ms."""


def named(value: Expression) -> tuple[Expression, Statement]:
    """A name for a number that several statements of a loop use, and the statement that gives it."""
    name = tirx.Var(_NAME, value.ty)
    return name, tirx.Bind(name, value)


def with_registers(statement: Statement) -> Statement:
    """The statement, whose names are all different, with registers for what is `named` and for the names of its long
    expressions."""

    def vector(loop: Any) -> Any:
        if loop.kind != tirx.ForKind.VECTORIZED or not isinstance(loop.extent, tirx.IntImm):
            return loop
        allocations, body = _in_registers(outermost(loop.body), loop.loop_var, int(loop.extent.value))
        if not allocations:
            return loop
        changed = tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, sequence(body))
        return sequence([*allocations, changed])

    def scalar(several: Any) -> Any:
        parts = outermost(several)
        if not any(map(_is_name, parts)):
            return several
        allocations, body = _in_registers(parts, None, 1)
        return sequence([*allocations, *body])

    def store(one: Any) -> Any:
        made, allocations = _stored(one, None, 1)
        return sequence([*allocations, *made])

    for node, change in ((tirx.For, vector), (tirx.SeqStmt, scalar), (tirx.BufferStore, store)):
        statement = structural_map(statement, ((node, change),))
    return statement


def _is_name(statement: Statement) -> bool:
    return isinstance(statement, tirx.Bind) and bool(statement.var.name == _NAME)


def _in_registers(
    parts: Sequence[Statement], lane: Expression | None, width: int
) -> tuple[list[Statement], list[Statement]]:
    """What makes registers, and statements with these for names; the loop variable `lane` counts to `width`."""
    at = tirx.const(0, "int32") if lane is None else lane
    registers: dict[Any, Any] = {}
    allocations: list[Statement] = []
    body: list[Statement] = []

    def read(variable: Any) -> Any:
        return tirx.BufferLoad(registers[variable], [at]) if variable in registers else variable

    for part in parts:
        known = structural_map(part, ((tirx.Var, read),)) if registers else part
        if _is_name(known):
            register = buffer("register", (width,), str(known.var.ty))
            allocations.append(tirx.AllocBuffer(register))
            registers[known.var] = register
            known = tirx.BufferStore(register, known.value, [at])
        made, own = _stored(known, lane, width)
        allocations += own
        body += made
    return allocations, body


def _stored(statement: Statement, lane: Expression | None, width: int) -> tuple[list[Statement], list[Statement]]:
    """A store as stores to registers and itself, and what makes the registers, or with its few names first; other
    statements as they are."""
    if not isinstance(statement, tirx.BufferStore):
        return [statement], []
    names = _definitions(statement.value)
    guarded = CHOICE in features(statement.value)  # what is named may be read in one case only
    if not names or guarded or any(str(name.ty) in ("bool", "bfloat16") for name, _ in names):
        return [statement], []
    if len(names) < MANY:
        whole = _bare(statement.value)
        for name, value in reversed(names):
            whole = tirx.Let(name, _bare(value), whole)
        return [tirx.BufferStore(statement.buffer, whole, list(statement.indices))], []
    at = tirx.const(0, "int32") if lane is None else lane
    registers = {name: buffer(f"register{number}", (width,), str(name.ty)) for number, (name, _) in enumerate(names)}

    def read(part: Expression) -> Expression:
        return structural_map(
            _bare(part), ((tirx.Var, lambda v: tirx.BufferLoad(registers[v], [at]) if v in registers else v),)
        )

    stores = [tirx.BufferStore(registers[name], read(value), [at]) for name, value in names]
    last = tirx.BufferStore(statement.buffer, read(statement.value), list(statement.indices))
    return [*stores, last], [tirx.AllocBuffer(register) for register in registers.values()]


def _bare(expression: Expression) -> Expression:
    """An expression without the definitions of its names."""
    return structural_map(expression, ((tirx.Let, lambda let: let.body),))


def _definitions(expression: Expression) -> list[tuple[Any, Expression]]:
    """The names of an expression with their values, those first that the values of others use."""
    lets: list[Any] = []
    structural_walk(expression, ((tirx.Let, lets.append),))
    values: dict[Any, Expression] = {let.var: let.value for let in lets}
    ordered: dict[Any, Expression] = {}

    def visit(name: Any) -> None:
        if name in ordered:
            return
        used: list[Any] = []
        structural_walk(values[name], ((tirx.Var, used.append),))
        for other in used:
            if other in values and other is not name:
                visit(other)
        ordered[name] = values[name]

    for name in values:
        visit(name)
    return list(ordered.items())
