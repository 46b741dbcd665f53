"""The C header of a program for a GPU: a text that has all of it, and starts it by NVIDIA's driver alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relay.codegen.cuda.compiler import MachineCode
from relay.codegen.cuda.program import CudaProgram
from relay.codegen.cuda.recording import FIRST_INPUT, NotRecordableError, Recording, record
from relay.codegen.cuda.target import Architecture
from relay.codegen.runtime.header import C_TYPES, ExportError, identifier
from relay.ir.types import TensorType


def gpu_header(program: CudaProgram, name: str) -> str:
    """The text of the header for the function of this name. Raises ExportError for what has none."""
    try:
        recording = record(program.host)
    except NotRecordableError as reason:
        raise ExportError(f"it has no C header: {reason}; leave header= out") from None
    return _text(recording, program.code, program.architecture, identifier(name))


def _text(recording: Recording, code: MachineCode, architecture: Architecture, name: str) -> str:
    launches = {step.launch.name: step.launch for step in recording.steps if step.launch is not None}
    places = {kernel: place for place, kernel in enumerate(launches)}
    words = [word for step in recording.steps for word in step.words]
    steps, first = [], 0
    for step in recording.steps:
        kernel = -1 if step.launch is None else places[step.launch.name]
        threads = 0 if step.launch is None else step.launch.threads
        steps.append(f"{{{kernel}, {step.blocks}, {threads}, {first}, {len(step.words)}}}")
        first += len(step.words)
    return _TEXT.format(
        name=name,
        architecture=architecture.name,
        inputs=_description(recording.inputs),
        outputs=_description(recording.outputs),
        code=_rows(_numbers(code.code)),
        constants=_rows(_numbers(recording.constants)),
        constant_bytes=len(recording.constants),
        kernels=_rows(f'"{kernel}"' for kernel in launches),
        kernel_count=len(launches),
        steps=_rows(steps),
        step_count=len(steps),
        words=_rows(f"{{{base}, INT64_C({value})}}" for base, value in words),
        most=max((len(step.words) for step in recording.steps), default=1),
        workspace=recording.workspace,
        first_input=FIRST_INPUT,
        first_output=FIRST_INPUT + len(recording.inputs),
    )


def _description(types: Sequence[TensorType]) -> str:
    shapes = ("".join(f"[{dim}]" for dim in t.shape) or "(one number)" for t in types)
    lines = (
        f"     {n}: {C_TYPES[str(t.base)]} {shape}" for n, (t, shape) in enumerate(zip(types, shapes, strict=True))
    )
    return "\n".join(lines) or "     none"


def _numbers(content: bytes) -> Iterator[str]:
    """Bytes as numbers of 64 bits, the first byte last, as all hosts of such GPUs have them."""
    for start in range(0, len(content), 8):
        yield f"0x{int.from_bytes(content[start : start + 8], 'little'):x}u"


def _rows(items: Iterator[str] | Sequence[str]) -> str:
    """The items of an array, which is not empty in C."""
    found = list(items) or ["0"]
    return ",\n".join("  " + ", ".join(found[n : n + 6]) for n in range(0, len(found), 6))


_TEXT = """\
/* How to call the function {name}, which Relay has compiled for GPUs of {architecture}. Link with -lcuda.

   inputs, on the GPU, row by row:
{inputs}
   outputs, on the GPU, whose memory the caller provides:
{outputs}

   All functions return 0, or the driver's error, in the context that is current. {name}_run returns before the kernels
   have run: they are in the stream, which other streams have to wait for. One {name}_program is for one stream at a
   time: it has {workspace} bytes of memory for what is computed on the way. */
#ifndef RELAY_{name}_H
#define RELAY_{name}_H

#include <cuda.h>
#include <stdint.h>
#include <string.h>

typedef struct {{
  CUmodule module;
  CUfunction kernels[{kernel_count} + 1];
  CUdeviceptr memory, constants;
}} {name}_program;

static const uint64_t {name}_code[] = {{
{code}
}};

static const uint64_t {name}_constants[] = {{
{constants}
}};

static const char* const {name}_kernels[] = {{
{kernels}
}};

/* A kernel, or -1 for a copy; blocks, threads, and where its words are, and how many. */
static const struct {{ int32_t kernel; uint32_t blocks, threads; int32_t first, count; }} {name}_steps[] = {{
{steps}
}};

/* Where an address lies, and the bytes from there; -1 for numbers. */
static const struct {{ int32_t place; int64_t offset; }} {name}_words[] = {{
{words}
}};

static inline CUresult {name}_close({name}_program* self) {{
  CUresult status = CUDA_SUCCESS, next;
  if (self->memory) status = cuMemFree(self->memory);
  if (self->constants && (next = cuMemFree(self->constants))) status = next;
  if (self->module && (next = cuModuleUnload(self->module))) status = next;
  memset(self, 0, sizeof(*self));
  return status;
}}

static inline CUresult {name}_open({name}_program* self) {{
  CUresult status;
  int n;
  memset(self, 0, sizeof(*self));
  status = cuModuleLoadData(&self->module, {name}_code);
  for (n = 0; !status && n < {kernel_count}; ++n)
    status = cuModuleGetFunction(&self->kernels[n], self->module, {name}_kernels[n]);
  if (!status) status = cuMemAlloc(&self->memory, {workspace} + 256);
  if (!status) status = cuMemAlloc(&self->constants, {constant_bytes} + 256);
  if (!status && {constant_bytes}) status = cuMemcpyHtoD(self->constants, {name}_constants, {constant_bytes});
  if (status) {name}_close(self);
  return status;
}}

static inline CUresult {name}_run(
    {name}_program* self, const CUdeviceptr* inputs, const CUdeviceptr* outputs, CUstream stream) {{
  int step, n;
  for (step = 0; step < {step_count}; ++step) {{
    int64_t words[{most}];
    void* places[{most}];
    CUresult status;
    for (n = 0; n < {name}_steps[step].count; ++n) {{
      int32_t place = {name}_words[{name}_steps[step].first + n].place;
      CUdeviceptr base = 0;
      if (place == 0) base = self->memory;
      else if (place == 1) base = self->constants;
      else if (place >= {first_output}) base = outputs[place - {first_output}];
      else if (place >= {first_input}) base = inputs[place - {first_input}];
      words[n] = (int64_t)base + {name}_words[{name}_steps[step].first + n].offset;
      places[n] = &words[n];
    }}
    if ({name}_steps[step].kernel < 0)
      status = cuMemcpyDtoDAsync((CUdeviceptr)words[0], (CUdeviceptr)words[1], (size_t)words[2], stream);
    else
      status = cuLaunchKernel(self->kernels[{name}_steps[step].kernel], {name}_steps[step].blocks, 1, 1,
                              {name}_steps[step].threads, 1, 1, 0, stream, places, NULL);
    if (status) return status;
  }}
  return CUDA_SUCCESS;
}}

#endif
"""


__all__ = ["gpu_header"]
