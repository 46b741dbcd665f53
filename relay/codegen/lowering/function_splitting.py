"""Function splitting: long runs of kernel calls become functions of their own.

LLVM takes time to the square of a function's length, and a program without loops is one function: a chain of 5000
operators compiles in a fifth of the time if it is cut into parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relay.codegen.lowering.function_builder import Code, KernelCall
from relay.codegen.lowering.values import Place
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, GlobalVar, Statement, tirx

LONGEST = 250
"""The most calls in one part."""

SHORTEST = 100
"""Runs of fewer calls stay where they are."""


def split_call_runs(code: Code, name: str) -> dict[Any, Any]:
    """Replace the long runs of calls in a function by calls of new functions, which are returned. All of the function's
    statements must be there."""
    code.place()
    made: dict[Any, Any] = {}
    kept: list[Statement | KernelCall] = []
    run: list[KernelCall] = []

    def end() -> None:
        if len(run) < SHORTEST:
            kept.extend(run)
        else:
            count = -(-len(run) // LONGEST)
            for part in range(count):  # of equal lengths
                calls = run[len(run) * part // count : len(run) * (part + 1) // count]
                function = GlobalVar(f"{name}_part{len(made)}")
                made[function], arguments = _part(code, calls)
                kept.append(tirx.Evaluate(tir.call(function, [code.context, code.frame, *arguments])))
        run.clear()

    for statement in code.statements:
        if isinstance(statement, KernelCall):
            run.append(statement)
        else:
            end()
            kept.append(statement)
    end()
    code.statements = kept
    return made


def _part(outer: Code, calls: Iterable[KernelCall]) -> tuple[Any, list[Expression]]:
    """A function that makes these calls in the workspace of another one, and its arguments from that one's
    parameters."""
    code = Code(outer.places)
    given: dict[Place, tuple[Expression, Any]] = {}

    def parameter(place: Place, expression: Expression) -> Expression:
        if place not in outer.parameters:  # a number
            return expression
        if place not in given:
            given[place] = expression, tirx.Var(expression.name, expression.ty)
        return given[place][1]

    code.emit(*[statement for call in calls for statement in code.relocate_call(call, parameter)])
    body, _ = code.finish()
    made = tir.function([code.context, code.frame, *(variable for _, variable in given.values())], body)
    return made, [expression for expression, _ in given.values()]
