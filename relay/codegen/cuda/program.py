"""Programs for a GPU, as calls see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from relay.codegen.cuda.driver import DriverDevice
from relay.codegen.cuda.host_program import HostProgram, host_program, runner
from relay.codegen.cuda.source import cuda_source
from relay.codegen.cuda.target import Architecture
from relay.errors import CompileError
from relay.ir.expr import Module
from relay.support.locks import Lock, compiling


def kernels_of(module: Module, architecture: Architecture) -> tuple[HostProgram, str]:
    """A program of an optimized core, and the CUDA C of its kernels. Raises CompileError for what the target does not
    have yet."""
    with compiling:
        program = host_program(module)
        return program, cuda_source(program.launches, architecture)


class CudaProgram:
    """A compiled program for a GPU: call it with one value for each parameter."""

    def __init__(self, module: Module, architecture: Architecture) -> None:
        """Raises CompileError for what the target does not have, and where there is no GPU."""
        program, source = kernels_of(module, architecture)
        self._run = runner(program, DriverDevice(source, program.launches, architecture))
        self._name = module.entry
        self._lock = Lock()

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Arrays, and tuples of them, as the entry's types say. Raises ExecutionError."""
        with self._lock:
            return self._run(arguments)

    @property
    def native(self) -> NoReturn:
        """Raises CompileError: only programs for the processor have machine code."""
        raise CompileError(
            f"{self._name} was compiled for a GPU, whose programs are not exported, measured or examined yet",
            help="leave target= out for the processor",
        )
