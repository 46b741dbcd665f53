"""LLVM object files: the machine code of one program, compiled on two threads at once.

Most of the time that compiling takes is LLVM's, and grows with the code of kernels. About half of this work is done
separately: some kernels become functions of another object file, which a linker or `loading` adds to the first. Which
ones does not depend on how long anything takes, so the code of a program is the same each time.

LLVM does not inline these functions. So this is only for programs whose kernels run once for each call, or a call would
take longer.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import relay.codegen.tvm.without_torch  # noqa: F401  (before TVM)

# isort: split

from tvm import IRModule
from tvm.ir import Call
from tvm_ffi import structural_map, structural_walk

from relay.codegen.runtime.native_stacks import run_both
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, GlobalVar, tirx

FEWEST = 6
"""Kernels in a program that is worth two files: each one costs as much time as some small kernels do."""

_SMALL = 4
"""The cost of a kernel besides its stores, in stores of a vector or number."""

_CALLS = 12
"""This many calls of kernels cost as much as a store."""

_REST = 20
"""The cost of all other code."""


def compile_objects(
    functions: dict[Any, Any], kernels: Collection[Any], threads: int, calls: int
) -> tuple[bytes, ...] | None:
    """Files that a linker takes, for functions by their global variables, `kernels` among them, which are called in so
    many places, none of them in loops or recursion. None if one file is better. Raises InternalError if TVM refuses
    the functions."""
    if threads < 2 or len(kernels) < FEWEST:
        return None
    machine = tir.target(threads, calls, repeats=False)
    module = tir.lower_functions(functions, machine)
    names = {kernel.name_hint for kernel in kernels}
    apart = _second_half(module, names, calls)
    near: dict[Any, Any] = {}
    far: dict[Any, Any] = {}
    for variable, function in module.functions_items():
        name = variable.name_hint
        if name in apart:
            far[variable] = function.with_attr("global_symbol", _symbol(name))
        else:
            near[variable] = function if name in names else _symbol_calls(function, apart)
    # LLVM's options are the process's: without calls, those of the other file make no difference.
    plain = tir.target(threads, repeats=False)
    return run_both(lambda: tir.machine_code(IRModule(near), machine), lambda: tir.machine_code(IRModule(far), plain))


def _second_half(module: Any, kernels: Collection[str], calls: int) -> frozenset[str]:
    """The names of kernels that are about half of the work together."""
    costs = {
        variable.name_hint: _SMALL + _stores(function)
        for variable, function in module.functions_items()
        if variable.name_hint in kernels
    }
    near, far = _REST + calls // _CALLS, 0
    chosen: list[str] = []
    for name, cost in sorted(costs.items(), key=lambda item: (-item[1], item[0])):
        if far <= near:
            chosen.append(name)
            far += cost
        else:
            near += cost
    return frozenset(chosen)


def _stores(function: Any) -> int:
    found: list[Any] = []
    structural_walk(function.body, ((tirx.BufferStore, found.append),))
    return len(found)


def _symbol(name: str) -> str:
    return f"relay_{name}"


def _symbol_calls(function: Any, apart: Collection[str]) -> Any:
    """A function that calls those apart by their symbols."""
    changed = False

    def replace_call(call: Any) -> Expression:
        nonlocal changed
        if isinstance(call.op, GlobalVar) and call.op.name_hint in apart:
            changed = True
            return tirx.call_extern("int32", _symbol(call.op.name_hint), *call.args)
        return call

    body = structural_map(function.body, ((Call, replace_call),))
    return tirx.PrimFunc(function.params, body, function.ret_type, attrs=function.attrs) if changed else function
