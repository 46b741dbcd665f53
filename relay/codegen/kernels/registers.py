"""Register allocation of names: names in long expressions become stores to registers.

TVM's analyses put the values of names (`Let`) in place of them, which takes exponential time where values contain names
that are used more than once. They also take floats for numbers that they may simplify, and fail with an error where a
name has one value as written and another one simplified, or is a choice of float constants. They do not track memory:
so each name is stored to a small buffer, which LLVM keeps in a register.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir import Call, TensorLoad
from tvm_ffi import structural_map, structural_walk

from relay.codegen.kernels.stage import CHOICE, features, is_choice
from relay.codegen.tvm.tir import Expression, Statement, buffer, sequence, statement_list, tirx

_NAME = "element_of_stage"


def bind_name(value: Expression) -> tuple[Expression, Statement]:
    """A name for a number that several statements of a loop use, and the statement that gives it."""
    name = tirx.Var(_NAME, value.ty)
    return name, tirx.Bind(name, value)


def with_registers(statement: Statement, scope: str = "global") -> Statement:
    """The statement, whose names are all different, with registers for what is `named` and for the names of its long
    expressions. `scope`: where TVM declares them."""

    def vector(loop: Any) -> Any:
        if loop.kind != tirx.ForKind.VECTORIZED or not isinstance(loop.extent, tirx.IntImm):
            return loop
        allocations, body = _in_registers(statement_list(loop.body), loop.loop_var, int(loop.extent.value), scope)
        if not allocations:
            return loop
        changed = tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, sequence(body))
        return sequence([*allocations, changed])

    def scalar(several: Any) -> Any:
        parts = statement_list(several)
        if not any(map(_is_name, parts)):
            return several
        allocations, body = _in_registers(parts, None, 1, scope)
        return sequence([*allocations, *body])

    def store(one: Any) -> Any:
        made, allocations = _store_with_registers(one, None, 1, scope)
        return sequence([*allocations, *made])

    for node, change in ((tirx.For, vector), (tirx.SeqStmt, scalar), (tirx.BufferStore, store)):
        statement = structural_map(statement, ((node, change),))
    return statement


def _is_name(statement: Statement) -> bool:
    return isinstance(statement, tirx.Bind) and bool(statement.var.name == _NAME)


def _in_registers(
    parts: Sequence[Statement], lane: Expression | None, width: int, scope: str
) -> tuple[list[Statement], list[Statement]]:
    """The statements that declare registers, and statements that use them for names; the loop variable `lane` counts
    to `width`."""
    at = tirx.const(0, "int32") if lane is None else lane
    registers: dict[Any, Any] = {}
    allocations: list[Statement] = []
    body: list[Statement] = []

    def read(variable: Any) -> Any:
        return tirx.BufferLoad(registers[variable], [at]) if variable in registers else variable

    for part in parts:
        known = structural_map(part, ((tirx.Var, read),)) if registers else part
        if _is_name(known):
            register = buffer("register", (width,), str(known.var.ty), scope)
            allocations.append(tirx.AllocBuffer(register))
            registers[known.var] = register
            known = tirx.BufferStore(register, known.value, [at])
        made, own = _store_with_registers(known, lane, width, scope)
        allocations += own
        body += made
    return allocations, body


def _store_with_registers(
    statement: Statement, lane: Expression | None, width: int, scope: str
) -> tuple[list[Statement], list[Statement]]:
    """A store as stores to registers and itself, and what makes the registers; other statements as they are."""
    if not isinstance(statement, tirx.BufferStore):
        return [statement], []
    lifted = [_hoist_names(part) for part in (statement.value, *statement.indices)]
    names = _definitions(lifted)
    if not names or any(str(name.ty) in ("bool", "bfloat16") for name, _ in names):
        return [statement], []
    at = tirx.const(0, "int32") if lane is None else lane
    registers = {v: buffer(f"register{k}", (width,), str(v.ty), scope) for k, (v, _) in enumerate(names)}

    def read(part: Expression) -> Expression:
        return structural_map(
            _without_definitions(part),
            ((tirx.Var, lambda v: tirx.BufferLoad(registers[v], [at]) if v in registers else v),),
        )

    stores = [tirx.BufferStore(registers[name], read(value), [at]) for name, value in names]
    value, *indices = map(read, lifted)
    last = tirx.BufferStore(statement.buffer, value, indices)
    return [*stores, last], [tirx.AllocBuffer(register) for register in registers.values()]


def _hoist_names(expression: Expression) -> Expression:
    """The expression with the names in arms of choices defined before these; what reads memory, in this case only."""

    def call(choice: Any) -> Any:
        if not is_choice(choice):
            return choice
        condition, *arms = choice.args[:3]
        whole = tirx.if_then_else(condition, *map(_without_definitions, arms))
        for arm, chosen in zip(arms, (condition, tirx.Not(condition)), strict=True):
            for name, value in reversed(_definitions([arm])):
                bare = _without_definitions(value)
                if not _is_safe(bare):
                    bare = tirx.if_then_else(chosen, bare, tirx.const(0, str(name.ty)))
                whole = tirx.Let(name, bare, whole)
        return whole

    return structural_map(expression, ((Call, call),)) if CHOICE in features(expression) else expression


def _is_safe(expression: Expression) -> bool:
    """True if an expression can be computed where it is not needed: it reads nothing, and divides no integers."""
    found: list[Any] = []
    kinds = (TensorLoad, tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
    structural_walk(expression, tuple((kind, found.append) for kind in kinds))
    return not found


def _without_definitions(expression: Expression) -> Expression:
    """An expression without the definitions of its names."""
    return structural_map(expression, ((tirx.Let, lambda let: let.body),))


def _definitions(expressions: Sequence[Expression]) -> list[tuple[Any, Expression]]:
    """The names of expressions with their values, those first that the values of others use."""
    lets: list[Any] = []
    for expression in expressions:
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
