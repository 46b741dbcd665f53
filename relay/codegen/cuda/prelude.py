"""The beginning of CUDA C for kernels: types, and operators of float16 and bfloat16. Nothing here needs TVM."""

from __future__ import annotations

PRELUDE = """\
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

HALF = """\
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

__all__ = ["HALF", "HALF_OPERATIONS", "PRELUDE"]
