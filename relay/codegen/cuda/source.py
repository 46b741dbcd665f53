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

from relay.codegen.cuda.launches import Launch
from relay.codegen.cuda.target import Architecture
from relay.errors import refusals_of

_COMPILE = "tvm_callback_cuda_compile"

_FIRST_KERNEL = 'extern "C" __global__'

_PRELUDE = """\
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define uint unsigned int
#define uchar unsigned char
#define ushort unsigned short
#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_INF __longlong_as_double(0x7ff0000000000000)
#define CUDART_NAN __longlong_as_double(0xfff8000000000000)
"""
"""The parts of headers that kernels need: NVRTC's package does not have the headers that TVM includes."""

_HALF = """\
struct half {
  unsigned short bits;
  half() = default;
  __device__ half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ half(double x) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); }
  template <typename T> __device__ explicit half(T x) : half(float(x)) {}
  __device__ operator float() const { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
};
"""
"""float16, without the header that has it."""

HALF_OPERATIONS = """\
struct nv_bfloat16 {
  unsigned short bits;
  nv_bfloat16() = default;
  __device__ nv_bfloat16(float x) {
    union { float number; unsigned int bits; } u = {x};
    bits = x != x ? 0x7fc0 : (u.bits + 0x7fff + ((u.bits >> 16) & 1)) >> 16;
  }
  template <typename T> __device__ explicit nv_bfloat16(T x) : nv_bfloat16(float(x)) {}
  __device__ operator float() const {
    union { unsigned int bits; float number; } u = {(unsigned int)bits << 16};
    return u.number;
  }
};
#define RELAY_OPERATOR(type, op) \\
  __device__ inline type operator op(type a, type b) { return type(float(a) op float(b)); }
RELAY_OPERATOR(half, +)
RELAY_OPERATOR(half, -)
RELAY_OPERATOR(half, *)
RELAY_OPERATOR(half, /)
RELAY_OPERATOR(nv_bfloat16, +)
RELAY_OPERATOR(nv_bfloat16, -)
RELAY_OPERATOR(nv_bfloat16, *)
RELAY_OPERATOR(nv_bfloat16, /)
__device__ inline half __float2half_rn(float x) { return half(x); }
__device__ inline half hsqrt(half x) { return half(sqrtf(float(x))); }
__device__ inline half hfloor(half x) { return half(floorf(float(x))); }
__device__ inline half hceil(half x) { return half(ceilf(float(x))); }
__device__ inline half htrunc(half x) { return half(truncf(float(x))); }
__device__ inline half hrint(half x) { return half(rintf(float(x))); }
__device__ inline half hexp(half x) { return half(expf(float(x))); }
__device__ inline half hlog(half x) { return half(logf(float(x))); }
__device__ inline half hsin(half x) { return half(sinf(float(x))); }
__device__ inline half hcos(half x) { return half(cosf(float(x))); }
__device__ inline half __habs(half x) { return half(fabsf(float(x))); }
"""
"""The operators of float16 and bfloat16, each rounded once from float32, as hardware rounds them."""

_DEVICE_KERNEL = 2
"""TVM's calling convention of kernels."""


def cuda_source(launches: Sequence[Launch], architecture: Architecture) -> str:
    """CUDA C for kernels, by their names. Raises InternalError if TVM refuses one. The caller holds
    `locks.compiling`."""
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
        return _PRELUDE
    halves = _HALF + HALF_OPERATIONS if re.search(r"\b(half|nv_bfloat16)\b", text) else ""
    return _PRELUDE + halves + text[text.index(_FIRST_KERNEL) :]


def _kernel(launch: Launch, target: Any) -> Any:
    function = launch.function
    body = tvm_ffi.structural_map(function.body, ((tirx.FloatImm, _exact_literal), (Call, _bits)))
    made = tirx.PrimFunc(function.params, body, function.ret_type, attrs=function.attrs)
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
