// What CUDA C needs to run on a processor: blocks one after another, a fiber for each thread of a block.
//
// A fiber gives up control at barriers only. If a barrier is not reached by all threads of a block, the launch reports a
// deadlock, on which a GPU would hang or go wrong.
#pragma once
#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

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

using std::max;
using std::min;

inline double __longlong_as_double(long long bits) {
  double number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

namespace emulation {

struct Index { int x = 0, y = 0, z = 0; };

struct Fiber {
  Index id;
  bool done = false, waiting = false, started = false;
  jmp_buf state;
  ucontext_t start;
  std::unique_ptr<char[]> stack;
};

inline constexpr std::size_t stack_bytes = 256 * 1024;
inline std::vector<Fiber> fibers;
inline Fiber* current = nullptr;
inline jmp_buf scheduler;
inline Index block;
inline void (*kernel)(void**) = nullptr;
inline void** arguments = nullptr;

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
  for (auto& fiber : fibers) {
    fiber.done = fiber.waiting = fiber.started = false;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = stack_bytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, enter, 0);
  }
  for (;;) {
    for (std::size_t i = 0; i < fibers.size(); ++i) {
      auto& fiber = fibers[backwards ? fibers.size() - 1 - i : i];
      if (!fiber.done) resume(fiber);
    }
    std::size_t done = 0;
    for (auto& fiber : fibers) done += fiber.done, fiber.waiting = false;
    if (done == fibers.size()) return true;
    if (done) return false;  // some have returned, others wait for them
  }
}

inline const char* launch(void (*body)(void**), void** given, long blocks, int threads, bool backwards) {
  kernel = body, arguments = given;
  fibers = std::vector<Fiber>(threads);
  for (int i = 0; i < threads; ++i) fibers[i].id.x = i, fibers[i].stack.reset(new char[stack_bytes]);
  for (long i = 0; i < blocks; ++i) {
    block.x = int(backwards ? blocks - 1 - i : i);
    if (!run_block(backwards)) return "deadlock: a barrier is not reached by all threads";
  }
  return nullptr;
}

}  // namespace emulation

#define threadIdx (emulation::current->id)
#define blockIdx emulation::block

inline void __syncthreads() { emulation::wait(); }
