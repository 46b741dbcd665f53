"""GPUs as a target, by the text that programs name them with: `cuda`, or `cuda, arch=sm_80`."""

from __future__ import annotations

import attrs

from relay.errors import CompileError

NAME = "cuda"


@attrs.frozen
class Architecture:
    """The limits of a GPU of this architecture for kernels, by the CUDA C Programming Guide. `shared_bytes`: of
    memory that is declared in a kernel; `registers`: for each thread; `block_registers`: for all threads of a block."""

    name: str
    threads: int = 1024
    shared_bytes: int = 48 * 1024
    registers: int = 255
    block_registers: int = 64 * 1024


ARCHITECTURES = {name: Architecture(name) for name in ("sm_80", "sm_90")}
"""By name: sm_80 is the A100, sm_90 the H100 and H200."""

DEFAULT = ARCHITECTURES["sm_90"]


def names_target(text: object) -> bool:
    """True if a text names a GPU."""
    return isinstance(text, str) and text.split(",")[0].strip() == NAME


def parse_target(text: str) -> Architecture:
    """The architecture that a target's text names. Raises CompileError for one that there is not."""
    found = DEFAULT
    options = text.split(",")[1:]
    for part in options:
        name, _, value = (word.strip() for word in part.partition("="))
        if name != "arch" or value not in ARCHITECTURES or len(options) > 1:
            raise CompileError(
                f"the target {text!r} has the option {part.strip()!r}",
                help=f'write "cuda, arch=sm_90", or "cuda" for that; there are {", ".join(ARCHITECTURES)}',
            )
        found = ARCHITECTURES[value]
    return found
