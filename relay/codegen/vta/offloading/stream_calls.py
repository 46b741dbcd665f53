"""Stream calls: the simulator, as the host's code calls it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np

from relay.codegen.vta.program import Program
from relay.codegen.vta.program_files import program_files, program_of_files
from relay.codegen.vta.simulator.findings import NONE
from relay.codegen.vta.simulator.run import Simulator


@attrs.frozen(eq=False, slots=False)
class StreamCall:
    """A function of the host's program that is a stream: it reads the buffers `operands`, and writes `results`."""

    name: str
    program: Program
    operands: tuple[str, ...]
    results: tuple[str, ...]

    def __call__(self, *arrays: np.ndarray) -> None:
        """Run the stream on the simulator. arrays: the operands, and the results, which are written; all packed."""
        count = len(self.operands)
        inputs = {
            name: np.ascontiguousarray(array).reshape(self.program[name].shape)
            for name, array in zip(self.operands, arrays[:count], strict=True)
        }
        found = self._simulator.run(inputs)
        for name, result in zip(self.results, arrays[count:], strict=True):
            result[...] = found[name].reshape(result.shape)

    @cached_property
    def _simulator(self) -> Simulator:
        return Simulator(self.program, NONE)

    @property
    def export_arguments(self) -> tuple[str, tuple[str, ...], tuple[str, ...], dict[str, bytes]]:
        """The arguments of `of_exported` for it: its name, its operands and results, and the program's files."""
        return self.name, self.operands, self.results, program_files(self.program)

    @staticmethod
    def of_exported(exported: Any) -> StreamCall:
        """The call that was exported."""
        name, operands, results, files = exported
        return StreamCall(name, program_of_files(files), tuple(operands), tuple(results))
