/* NVIDIA's driver without a GPU: its memory is the host's, and its kernels are those of a library that g++ has built,
   whose path is in EMULATED_KERNELS. */
#ifndef EMULATED_CUDA_H
#define EMULATED_CUDA_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_NOT_FOUND = 500 } CUresult;
typedef void* CUmodule;
typedef void* CUfunction;
typedef void* CUstream;
typedef unsigned long long CUdeviceptr;

static inline CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (strncmp((const char*)image, getenv("EMULATED_IMAGE"), strlen(getenv("EMULATED_IMAGE")))) return CUDA_ERROR_INVALID_VALUE;
  *module = dlopen(getenv("EMULATED_KERNELS"), RTLD_NOW);
  return *module ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static inline CUresult cuModuleUnload(CUmodule module) { return dlclose(module) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

static inline CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  char entry[1000];
  snprintf(entry, sizeof(entry), "%s_launch", name);
  *function = dlsym(module, entry);
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static inline CUresult cuMemAlloc(CUdeviceptr* place, size_t count) {
  void* made = aligned_alloc(256, (count + 255) / 256 * 256);
  memset(made, 0xff, count);
  *place = (CUdeviceptr)(uintptr_t)made;
  return CUDA_SUCCESS;
}

static inline CUresult cuMemFree(CUdeviceptr place) {
  free((void*)(uintptr_t)place);
  return CUDA_SUCCESS;
}

static inline CUresult cuMemcpyHtoD(CUdeviceptr target, const void* source, size_t count) {
  memcpy((void*)(uintptr_t)target, source, count);
  return CUDA_SUCCESS;
}

static inline CUresult cuMemcpyDtoH(void* target, CUdeviceptr source, size_t count) {
  memcpy(target, (const void*)(uintptr_t)source, count);
  return CUDA_SUCCESS;
}

static inline CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t count, CUstream stream) {
  (void)stream;
  memcpy((void*)(uintptr_t)target, (const void*)(uintptr_t)source, count);
  return CUDA_SUCCESS;
}

static inline CUresult cuLaunchKernel(
    CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned y1, unsigned z1, unsigned shared,
    CUstream stream, void** places, void** extra) {
  typedef const char* (*launch)(int64_t*, long, int, int);
  (void)stream;
  if (y != 1 || z != 1 || y1 != 1 || z1 != 1 || shared || extra || !x || !threads) return CUDA_ERROR_INVALID_VALUE;
  /* The words of a launch are side by side. */
  return ((launch)(uintptr_t)function)((int64_t*)places[0], x, threads, 0) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

#endif
