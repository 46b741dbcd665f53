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
__device__ inline nv_bfloat16 __float2bfloat16_rn(float x) { return nv_bfloat16(x); }
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

TENSOR_CORES = """\
#define RELAY_FRAGMENT(name, form) \\
  __device__ inline void name(unsigned int* f, const void* row) { \\
    unsigned int at = (unsigned int)__cvta_generic_to_shared(row); \\
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" form ".shared.b16 {%0, %1, %2, %3}, [%4];" \\
                 : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(at) : "memory"); \\
  }
RELAY_FRAGMENT(relay_fragment, "")
RELAY_FRAGMENT(relay_fragment_turned, ".trans")
#define RELAY_MMA(name, type) \\
  __device__ inline void name(float* c, const unsigned int* a, unsigned int b0, unsigned int b1) { \\
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 " \\
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \\
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) \\
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)); \\
  }
RELAY_MMA(relay_mma_float16, "f16")
RELAY_MMA(relay_mma_bfloat16, "bf16")
__device__ inline void relay_copy_later(void* to, const void* from, int there) {
  unsigned int at = (unsigned int)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(at), "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0) : "memory");
}
__device__ inline void relay_wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
"""
"""Instructions of warps. A fragment of 16 lines and 16 terms is read from shared memory, where lane n gives the place
of its row n: with `ldmatrix`, each lane has two neighbors of four parts of 8 x 8, in the order (0, 0), (8, 0), (0, 8),
(8, 8) of lines and terms; "turned" where neighbors in memory are lines. A product of fragments adds to sums that lie as
`mma.m16n8k16` has them. A copy of 16 bytes is there only after the wait of the thread that began it; zeros are where
nothing is `there` to be copied."""

__all__ = ["HALF", "HALF_OPERATIONS", "PRELUDE", "TENSOR_CORES"]
