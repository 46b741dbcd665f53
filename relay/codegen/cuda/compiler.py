"""NVRTC: machine code for CUDA C, and what it takes of a GPU. Needs no GPU and no driver."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any

import attrs

from relay.codegen.cuda.target import Architecture
from relay.errors import CompileError, InternalError

INSTALL = "pip install 'relay-lang[cuda]'"


@attrs.frozen
class Resources:
    """The resources of a kernel: registers of each thread, and bytes of shared memory of each block."""

    registers: int
    shared_bytes: int


@attrs.frozen(eq=False)
class MachineCode:
    """Machine code, and what its kernels take, by their names."""

    code: bytes
    resources: dict[str, Resources]


def compiler_version() -> str:
    """The version of NVRTC, as far as its packages tell it, which does not load it."""
    names = "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"
    return " ".join(f"{d.name} {d.version}" for name in names for d in metadata.distributions(name=name))


_USED = re.compile(r"Compiling entry function '(\w+)'.*?Used (\d+) registers([^\n]*)", re.S)


def machine_code(source: str, architecture: Architecture) -> MachineCode:
    """Compile CUDA C. Products and sums are not contracted: numbers are rounded as on the processor. Raises
    CompileError where NVRTC is not installed, InternalError if it refuses the code."""
    try:
        from cuda.bindings import nvrtc

        created, program = nvrtc.nvrtcCreateProgram(source.encode(), b"relay.cu", 0, [], [])
    except (ImportError, RuntimeError) as error:
        raise CompileError(f"the target 'cuda' needs NVRTC: {error}", help=INSTALL) from None
    options = [f"--gpu-architecture={architecture.name}", "--fmad=false", "--ptxas-options=-v", "-default-device"]
    given = [option.encode() for option in options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
    log = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
    if int(created) or int(status):
        raise InternalError(f"NVRTC refuses the generated code: {log[:2000]}")
    code = _read(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    nvrtc.nvrtcDestroyProgram(program)
    found = {}
    for name, registers, rest in _USED.findall(log):
        shared = re.search(r"(\d+) bytes smem", rest)
        found[name] = Resources(int(registers), int(shared[1]) if shared else 0)
    return MachineCode(code, found)


def _read(size: Any, read: Any, program: Any) -> bytes:
    """The output of NVRTC for a program."""
    count = int(size(program)[1])
    text = b" " * count
    read(program, text)
    return text


def exceeded_resource(resources: Resources, threads: int, architecture: Architecture) -> str | None:
    """The resource of which a kernel needs more than the architecture has; None if it fits."""
    for what, used, most in (
        ("threads", threads, architecture.threads),
        ("registers of a thread", resources.registers, architecture.registers),
        ("registers of a block", resources.registers * threads, architecture.block_registers),
        ("bytes of shared memory", resources.shared_bytes, architecture.shared_bytes),
    ):
        if used > most:
            return f"{used} {what} of {most}"
    return None
