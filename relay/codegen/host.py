"""Functions of the core as native functions: one case for each construct, loops as `While`, branches as `IfThenElse`.

A function has the parameters context, workspace, the leaves of its parameters (one-element tensors by value, others by
address), and the addresses of its result's leaves. It returns a status that every caller checks. A recursive function is
two: the outer one checks the depth and provides the workspace of the inner one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import attrs

from relay.codegen import tir
from relay.codegen.code import DEPTH, STACK_LIMIT, TOO_DEEP, RUNNING_OUT_OF_MEMORY, Code, Failures, build
from relay.codegen.constants import Constants
from relay.codegen.external import Externals
from relay.codegen.growth import Growth
from relay.codegen.kernels import Kernels, inlined
from relay.codegen.layout import ROW, TAG, DataLayout, Layouts, RowLayout, StackLayout, TensorLayout, leaves
from relay.codegen.pools import Pools
from relay.codegen.tir import GlobalVar, integer, tirx
from relay.codegen.values import DataValue, Immediate, Leaf, Memory, StackValue, Value, parts
from relay.errors import InternalError
from relay.ir.expr import (
    Assert,
    Atom,
    Block,
    Call,
    Constant,
    Construct,
    Dead,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Next,
    OpCall,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.types import BOOL
from relay.operator import lookup
from relay.transform.fusion import Group, plan

CONDITION = TensorLayout(BOOL, ())


@attrs.frozen(eq=False)
class Program:
    """What the functions of one program share."""

    layouts: Layouts
    kernels: Kernels
    externals: Externals
    constants: Constants
    pools: Pools
    growth: Growth
    failures: Failures
    names: Mapping[str, Any]  # the native functions by the core functions
    frames: dict[str, int]  # the workspace that a caller provides, of functions that are not recursive


@attrs.frozen(eq=False)
class _LoopState:
    """A loop that is being generated."""

    parameters: tuple[Value, ...]
    results: tuple[Value, ...]
    running: Leaf | None  # false once the loop was left by an `Exit`
    index: Leaf | None


def generate(function: Function, program: Program, recursive: bool) -> dict[Any, Any]:
    """The native functions for a core function; its own name is the one that callers use."""
    generator = _Generator(program)
    code = generator.code
    parameters, values = [], []
    for parameter in function.parameters:
        received = []
        for layout in leaves(program.layouts.of[parameter]):
            passed = tirx.Var(parameter.name, layout.base.name if _passed_by_value(layout) else "int64")
            parameters.append(passed)
            received.append(Leaf(layout, Immediate(passed) if _passed_by_value(layout) else Memory(passed)))
        values.append(build(program.layouts.of[parameter], iter(received)))
    results = [Leaf(layout, Memory(tirx.Var("result", "int64"))) for layout in leaves(program.layouts.results[function.name])]
    parameters += [leaf.place.address for leaf in results if isinstance(leaf.place, Memory)]
    generator.variables.update(zip(function.parameters, values, strict=True))
    generator.exits[function.label] = (build(program.layouts.results[function.name], iter(results)),)
    generator.block(function.body, ())
    body, frame = code.finish()
    name = program.names[function.name]
    if not recursive:
        program.frames[function.name] = frame
        return {name: tir.function([code.context, code.frame, *parameters], body)}
    program.frames[function.name] = 0
    inner = GlobalVar(f"{name.name_hint}_body")
    return {
        inner: tir.function([code.context, code.frame, *parameters], body),
        name: _guarded(inner, [p.copy_with_suffix("") if False else tirx.Var(p.name, _dtype(p)) for p in parameters], frame),
    }
