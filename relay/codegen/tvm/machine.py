"""The processor that code is generated for: this one, or another one while its code is generated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs

_ARCHITECTURES = ("x86_64", "aarch64", "riscv64", "powerpc64le", "loongarch64")
"""Little-endian ones: constants are stored as they lie in this processor's memory."""


@attrs.frozen
class Machine:
    """A processor as LLVM names it: its triple (`aarch64-linux-gnu`), its name (empty: what all of the kind have), and
    features beside those (`+sve`). An empty triple is that of this system."""

    triple: str = ""
    processor: str = ""
    features: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str) -> Machine:
        """`TRIPLE[,PROCESSOR][,+FEATURE]..`. Raises ValueError for what is none."""
        triple, *others = (part.strip() for part in text.split(","))
        features = tuple(part for part in others if part.startswith(("+", "-")))
        names = [part for part in others if part not in features]
        if not triple or not all(others) or len(names) > 1:
            raise ValueError(f"a target is TRIPLE[,PROCESSOR][,+FEATURE].., found {text!r}")
        if triple.partition("-")[0] not in _ARCHITECTURES:
            known = ", ".join(_ARCHITECTURES)
            raise ValueError(f"code is made for processors with addresses of 64 bits: {known}; found {text!r}")
        return Machine(triple, names[0] if names else "", features)

    @property
    def architecture(self) -> str:
        """The first part of the triple."""
        return self.triple.partition("-")[0]


_current: ContextVar[Machine | None] = ContextVar("_current", default=None)


def current_machine() -> Machine | None:
    """The processor that code is generated for; None if it is this one."""
    return _current.get()


@contextmanager
def code_for(machine: Machine | None) -> Iterator[None]:
    """Generate code for a processor meanwhile."""
    token = _current.set(machine)
    try:
        yield
    finally:
        _current.reset(token)
