// What CUDA C needs to run on a processor: blocks one after another, a fiber for each thread of a block.
//
// A fiber gives up control at barriers only. If a barrier is not reached by all threads of a block, the launch reports a
// deadlock, on which a GPU would hang or go wrong.
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

struct Fiber {
  Index id;
  bool done = false, waiting = false, started = false;
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

inline void enter() {
  kernel(arguments);
  current->done = true;
  _longjmp(scheduler, 1);
}

inline void wait() {
  current->waiting = true;
  if (!_setjmp(current->state)) _longjmp(scheduler, 1);
}

inline void resume(Fiber& fiber) {
  current = &fiber;
  if (_setjmp(scheduler)) return;
  if (fiber.started) _longjmp(fiber.state, 1);
  fiber.started = true;
  setcontext(&fiber.start);
}

// Runs a block; false on a deadlock.
inline bool run_block(bool backwards) {
  for (size_t i = 0; i < count; ++i) {
    auto& fiber = fibers[i];
    fiber.done = fiber.waiting = fiber.started = false;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack;
    fiber.start.uc_stack.ss_size = stack_bytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, enter, 0);
  }
  for (;;) {
    for (size_t i = 0; i < count; ++i) {
      auto& fiber = fibers[backwards ? count - 1 - i : i];
      if (!fiber.done) resume(fiber);
    }
    size_t done = 0;
    for (size_t i = 0; i < count; ++i) done += fibers[i].done, fibers[i].waiting = false;
    if (done == count) return true;
    if (done) return false;  // some have returned, others wait for them
  }
}

inline const char* launch(void (*body)(int64_t*), int64_t* given, long blocks, int threads, bool backwards) {
  kernel = body, arguments = given;
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
  return problem;
}

}  // namespace emulation

#define threadIdx (emulation::current->id)
#define blockIdx emulation::block

inline void __syncthreads() { emulation::wait(); }
