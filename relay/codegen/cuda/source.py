"""CUDA C for kernels, by TVM's generator."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call

from relay.codegen.cuda.conditions import DECLARATION, SOURCE
from relay.codegen.cuda.launches import Launch
from relay.codegen.cuda.prelude import HALF, HALF_OPERATIONS, PRELUDE, TENSOR_CORES
from relay.codegen.cuda.target import Architecture
from relay.codegen.kernels.registers import with_registers
from relay.errors import refusals_of

_COMPILE = "tvm_callback_cuda_compile"

_FIRST_KERNEL = 'extern "C" __global__'

_DEVICE_KERNEL = 2
"""TVM's calling convention of kernels."""


def cuda_source(launches: Sequence[Launch], architecture: Architecture, has_conditions: bool) -> str:
    """CUDA C for kernels, by their names, and for conditional nodes of graphs, if there may be some. Raises
    InternalError if TVM refuses a kernel. The caller holds `locks.compiling`."""
    target = tvm.target.Target(
        {
            "kind": "cuda",
            "arch": architecture.name,
            "max_num_threads": architecture.threads,
            "thread_warp_size": 32,
            "max_shared_memory_per_block": architecture.shared_bytes,
        }
    )
    functions = {launch.name: _kernel(launch, target) for launch in launches}
    with refusals_of("the generated kernels", None):
        lowered = _passes()(tvm.IRModule(functions))
        text: str = _without_compiler(
            lambda: tvm.get_global_func("target.build.cuda")(lowered, target).inspect_source()
        )
    if not launches:
        return PRELUDE
    halves = HALF + HALF_OPERATIONS if re.search(r"\b(half|nv_bfloat16)\b", text) else ""
    cores = TENSOR_CORES if "relay_mma_" in text else ""
    text = PRELUDE + halves + cores + text[text.index(_FIRST_KERNEL) :]
    return f"{text}\n{DECLARATION}{SOURCE}" if has_conditions else text


def _kernel(launch: Launch, target: Any) -> Any:
    function = launch.function
    body = tvm_ffi.structural_map(function.body, ((tirx.FloatImm, _exact_literal), (Call, _bits)))
    different = tirx.transform.ConvertSSA()(tvm.IRModule({"kernel": tirx.PrimFunc(function.params, body)}))["kernel"]
    body = with_registers(different.body, "local")
    made = tirx.PrimFunc(different.params, body, function.ret_type, attrs=function.attrs)
    made = made.with_attr("global_symbol", launch.name).with_attr("target", target)
    return made.with_attr("calling_conv", _DEVICE_KERNEL).with_attr("tirx.is_global_func", True)


def _exact_literal(literal: Any) -> Any:
    """A number of float64 by its bits, where the generator, which writes 15 decimals, would make another one of it."""
    value = float(literal.value)
    if str(literal.ty) != "float64" or not math.isfinite(value) or float(f"{value:.15f}") == value:
        return literal
    (bits,) = struct.unpack("q", struct.pack("d", value))
    return tirx.call_pure_extern("float64", "__longlong_as_double", tirx.const(bits, "int64"))


_REINTERPRETATIONS = {"float32": ("int32", "__int_as_float"), "float64": ("int64", "__longlong_as_double")}


def _bits(call: Any) -> Any:
    """A float by its bits, where these are a literal, of which the generator would take the address."""
    if getattr(call.op, "name", "") != "tirx.reinterpret" or str(call.ty) not in _REINTERPRETATIONS:
        return call
    integer, function = _REINTERPRETATIONS[str(call.ty)]
    if not isinstance(call.args[0], tirx.IntImm):
        return call
    return tirx.call_pure_extern(str(call.ty), function, tirx.Cast(integer, call.args[0]))


def _passes() -> Any:
    """As for the processor (`tvm.tir`), without vectors; StmtSimplify, which takes floats for real numbers, is left out
    here, too."""
    general, scheduled = tirx.transform, s_tir.transform
    return tvm.transform.Sequential(
        [
            general.ConvertSSA(),
            general.FlattenBuffer(),
            general.BF16ComputeLegalize(),
            general.UnrollLoop(),
            scheduled.RewriteUnsafeSelect(),
            general.BF16StorageLegalize(),
            general.LowerIntrin(),
        ]
    )


def _without_compiler(generate: Any) -> Any:
    """The result of `generate` while TVM takes the text for compiled code, and runs no compiler."""
    before = tvm.get_global_func(_COMPILE, allow_missing=True)
    tvm_ffi.register_global_func(_COMPILE, lambda text, *_: text.encode(), override=True)
    try:
        return generate()
    finally:
        if before is not None:
            tvm_ffi.register_global_func(_COMPILE, before, override=True)
        else:
            tvm_ffi.registry.remove_global_func(_COMPILE)
