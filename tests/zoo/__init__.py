"""The zoo: small programs that `test_programs.py` runs in every mode. Add one here, and everything is tested with it.

Each file lists its programs as `Program(function, arguments)`. Arguments are float64 where a derivative is taken.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import attrs


@attrs.frozen(eq=False)
class Program:
    """A decorated function and arguments for it.

    `differentiable`: the result is a float scalar whose gradient is to be tested.
    `expected`: the value, where a closed form is known.
    """

    function: Any
    arguments: tuple[Any, ...]
    differentiable: bool = True
    expected: Any = None
    expected_gradient: Any = None

    @property
    def name(self) -> str:
        return f"{self.function.__name__}"


def programs() -> list[Program]:
    """All programs of all files here."""
    found: list[Program] = []
    for module in sorted(pkgutil.walk_packages(__path__, f"{__name__}."), key=lambda m: m.name):
        if not module.ispkg:
            found += importlib.import_module(module.name).PROGRAMS
    return found
