"""The user's own modules, as against installed packages, Python's modules and Relay's: what programs read of them
without a decorator."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

_INSTALLED = ("site-packages", "dist-packages")
_LIBRARY = (sysconfig.get_path("stdlib"), str(Path(__file__).parents[1]))
"""The folders of Python's own modules, and of Relay's."""


def is_readable_module(name: str | None) -> bool:
    """True if programs read the functions and classes of a module: not those of one with `__relay_python__ = True`. One
    that is not in `sys.modules` was loaded by importlib, or is no more there; what `exec` makes may have none."""
    if name is None:
        return True
    if getattr(sys.modules.get(name), "__relay_python__", False):
        return False
    return name.partition(".")[0] not in ("builtins", "numpy", "torch", "jax")


def is_user_file(name: str) -> bool:
    """True if a file is neither Python's nor Relay's nor that of an installed package."""
    return not name.startswith(_LIBRARY) and not any(part in _INSTALLED for part in Path(name).parts)
