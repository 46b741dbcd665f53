// What CUDA C needs to run on a processor: blocks one after another, a fiber for each thread of a block.
//
// A fiber gives up control at barriers only, of its block or, within instructions of warps, of its warp. Between barriers
// of the block, warps run one after another. If a barrier is not reached by all threads, the launch reports a deadlock, on
// which a GPU would hang or go wrong.
#pragma once
#include <math.h>  // headers of C, which g++ reads in half the time
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define uint unsigned int
#define uchar unsigned char
#define ushort unsigned short

#define CUDART_INF_F INFINITY
#define CUDART_INF double(INFINITY)
#define CUDART_NAN_F NAN
#define CUDART_NAN double(NAN)

template <typename T> inline T max(T a, T b) { return a < b ? b : a; }
template <typename T> inline T min(T a, T b) { return b < a ? b : a; }

struct half {
  _Float16 value;
  half() = default;
  half(float x) : value(_Float16(x)) {}
  half(double x) : value(_Float16(x)) {}
  template <typename T> explicit half(T x) : half(float(x)) {}
  operator float() const { return float(value); }
};

inline float __int_as_float(int bits) {
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

inline double __longlong_as_double(long long bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

namespace emulation {

struct Index { int x = 0, y = 0, z = 0; };

struct Copy { void* to; const void* from; bool there; };

struct Fiber {
  Index id;
  bool done = false, waiting = false, in_warp = false, started = false;
  Copy copies[64];
  int copying = 0;
  jmp_buf state;
  ucontext_t start;
  char* stack = nullptr;
};

inline constexpr size_t stack_bytes = 256 * 1024;
inline Fiber* fibers = nullptr;
inline size_t count = 0;
inline Fiber* current = nullptr;
inline jmp_buf scheduler;
inline Index block;
inline void (*kernel)(int64_t*) = nullptr;
inline int64_t* arguments = nullptr;
inline const char* fault = nullptr;  // what an instruction may not do

inline void enter() {
  kernel(arguments);
  if (current->copying) fault = "a copy that was not waited for";
  current->done = true;
  _longjmp(scheduler, 1);
}

inline void wait() {
  current->waiting = true;
  if (!_setjmp(current->state)) _longjmp(scheduler, 1);
}

inline void wait_for_warp() {
  current->in_warp = true;
  if (!_setjmp(current->state)) _longjmp(scheduler, 1);
}

inline void resume(Fiber& fiber) {
  current = &fiber;
  if (_setjmp(scheduler)) return;
  if (fiber.started) _longjmp(fiber.state, 1);
  fiber.started = true;
  setcontext(&fiber.start);
}

inline constexpr size_t warp = 32;

// Runs a warp up to the next barrier of the block; false on a deadlock.
inline bool run_warp(size_t first, bool backwards) {
  size_t size = count - first < warp ? count - first : warp;
  for (;;) {
    size_t inside = 0;
    for (size_t i = 0; i < size; ++i) {
      auto& fiber = fibers[first + (backwards ? size - 1 - i : i)];
      if (!fiber.done && !fiber.waiting) resume(fiber);
    }
    for (size_t i = 0; i < size; ++i) inside += fibers[first + i].in_warp, fibers[first + i].in_warp = false;
    if (!inside) return true;
    if (inside < size) return false;
  }
}

// Runs a block; false on a deadlock.
inline bool run_block(bool backwards) {
  for (size_t i = 0; i < count; ++i) {
    auto& fiber = fibers[i];
    fiber.done = fiber.waiting = fiber.in_warp = fiber.started = false;
    fiber.copying = 0;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack;
    fiber.start.uc_stack.ss_size = stack_bytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, enter, 0);
  }
  size_t warps = (count + warp - 1) / warp;
  for (;;) {
    for (size_t i = 0; i < warps; ++i)
      if (!run_warp(warp * (backwards ? warps - 1 - i : i), backwards)) return false;
    size_t done = 0;
    for (size_t i = 0; i < count; ++i) done += fibers[i].done, fibers[i].waiting = false;
    if (done == count) return true;
    if (done) return false;  // some have returned, others wait for them
  }
}

inline const char* launch(void (*body)(int64_t*), int64_t* given, long blocks, int threads, bool backwards) {
  kernel = body, arguments = given, fault = nullptr;
  count = threads;
  fibers = new Fiber[threads];
  for (int i = 0; i < threads; ++i) fibers[i].id.x = i, fibers[i].stack = new char[stack_bytes];
  const char* problem = nullptr;
  for (long i = 0; i < blocks; ++i) {
    block.x = int(backwards ? blocks - 1 - i : i);
    if (!problem && !run_block(backwards)) problem = "deadlock: a barrier is not reached by all threads";
  }
  for (int i = 0; i < threads; ++i) delete[] fibers[i].stack;
  delete[] fibers;
  return problem ? problem : fault;
}

}  // namespace emulation

#define threadIdx (emulation::current->id)
#define blockIdx emulation::block

inline void __syncthreads() { emulation::wait(); }

// ---- instructions of warps, as relay/codegen/cuda/prelude.py has them

// The handle of a condition is the address of its value.
extern "C" inline void cudaGraphSetConditional(uint64_t handle, unsigned int value) { *(unsigned int*)handle = value; }

namespace emulation {

inline const void* rows[warp];
inline unsigned int words[warp][6];

inline unsigned short half_word(const void* row, int at) { return ((const unsigned short*)row)[at]; }

inline void fragment(unsigned int* f, const void* row, bool turned) {
  if (uintptr_t(row) % 16) fault = "a row that is not aligned";
  int lane = current->id.x % warp;
  rows[lane] = row;
  wait_for_warp();
  for (int part = 0; part < 4; ++part) {
    int line = lane / 4, pair = lane % 4 * 2;
    auto low = turned ? half_word(rows[8 * part + pair], line) : half_word(rows[8 * part + line], pair);
    auto high = turned ? half_word(rows[8 * part + pair + 1], line) : half_word(rows[8 * part + line], pair + 1);
    f[part] = low | (unsigned int)high << 16;
  }
  wait_for_warp();
}

template <typename Number>
inline void mma(float* c, const unsigned int* a, unsigned int b0, unsigned int b1, Number number) {
  int lane = current->id.x % warp;
  memcpy(words[lane], a, 16);
  words[lane][4] = b0, words[lane][5] = b1;
  wait_for_warp();
  for (int n = 0; n < 4; ++n) {
    int row = lane / 4 + n / 2 * 8, column = lane % 4 * 2 + n % 2;
    double sum = c[n];
    for (int k = 0; k < 16; ++k) {
      unsigned int left = words[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
      unsigned int right = words[column * 4 + k % 8 / 2][4 + k / 8];
      sum += double(number(left >> k % 2 * 16)) * number(right >> k % 2 * 16);
    }
    c[n] = float(sum);
  }
  wait_for_warp();
}

// The word that another lane of the warp has; all lanes take part.
template <typename Number>
inline Number exchange(Number value, int distance) {
  int lane = current->id.x % warp;
  memcpy(words[lane], &value, sizeof value);
  wait_for_warp();
  Number other;
  memcpy(&other, words[lane ^ distance], sizeof other);
  wait_for_warp();
  return other;
}

inline float from_float16(unsigned int bits) {
  unsigned short word = bits;
  _Float16 number;
  memcpy(&number, &word, sizeof number);
  return float(number);
}

inline float from_bfloat16(unsigned int bits) { return __int_as_float(bits << 16); }

}  // namespace emulation

template <typename Number>
inline Number __shfl_xor_sync(unsigned int lanes, Number value, int distance) {
  if (lanes != 0xffffffffu) emulation::fault = "an exchange that not all lanes take part in";
  return emulation::exchange(value, distance);
}

inline void relay_fragment(unsigned int* f, const void* row) { emulation::fragment(f, row, false); }
inline void relay_fragment_turned(unsigned int* f, const void* row) { emulation::fragment(f, row, true); }

inline void relay_mma_float16(float* c, const unsigned int* a, unsigned int b0, unsigned int b1) {
  emulation::mma(c, a, b0, b1, emulation::from_float16);
}

inline void relay_mma_bfloat16(float* c, const unsigned int* a, unsigned int b0, unsigned int b1) {
  emulation::mma(c, a, b0, b1, emulation::from_bfloat16);
}

// Nothing is there before the wait, so that a missing one shows.
inline void relay_copy_later(void* to, const void* from, int there) {
  auto& fiber = *emulation::current;
  if ((uintptr_t(to) | uintptr_t(from)) % 16) emulation::fault = "a copy that is not aligned";
  if (fiber.copying == 64) emulation::fault = "more copies at once than there is room for";
  else fiber.copies[fiber.copying++] = {to, from, bool(there)};
}

inline void relay_wait_for_copies() {
  auto& fiber = *emulation::current;
  for (int i = 0; i < fiber.copying; ++i) {
    auto& copy = fiber.copies[i];
    if (copy.there) memcpy(copy.to, copy.from, 16);
    else memset(copy.to, 0, 16);
  }
  fiber.copying = 0;
}
