"""Native functions of core functions: their parameters, the way of results, and the check of a recursion's depth.

A function has the parameters context, workspace, the leaves of its parameters (one-element tensors by value, others
by address), and the addresses of its result's leaves. It returns a status that every caller checks. A recursive
function is two: the outer one checks the depth and provides the workspace of the inner one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relay.codegen.lowering.context import BUDGET, DEPTH, RUNNING_OUT_OF_MEMORY, STACK_LIMIT, TOO_DEEP
from relay.codegen.lowering.function_builder import Code, build
from relay.codegen.lowering.function_splitting import split_call_runs
from relay.codegen.lowering.function_state import ProgramContext
from relay.codegen.lowering.functions import FunctionGenerator
from relay.codegen.lowering.interrupts import recursive_call
from relay.codegen.lowering.layout import ROW, leaves, received_leaves
from relay.codegen.lowering.memory.aliasing import MemorySharing
from relay.codegen.lowering.memory.donation import NOTHING, Donation
from relay.codegen.lowering.memory.ownership import stack_ownership
from relay.codegen.lowering.values import Immediate, Leaf, Memory
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, GlobalVar, integer, tirx
from relay.ir.dims import Dim, TypeId
from relay.ir.expr import Function
from relay.transform.analysis.lanes import lane_loops


def generate(
    function: Function, shared: ProgramContext, recursive: bool, sharing: MemorySharing, donation: Donation = NOTHING
) -> dict[Any, Any]:
    """The native functions for a core function. A caller provides `shared.frames` bytes, set here, of workspace."""
    generator = FunctionGenerator(shared, function.name, sharing, stack_ownership(function), lane_loops(function))
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
    if shared.probes is not None:
        shared.probes.close(function.name, code.workspace, 0 if recursive else frame)
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
