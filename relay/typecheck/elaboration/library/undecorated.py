"""Plain Python functions of the user's that programs call: they are read as if they were decorated.

Functions of installed packages and of Python's own modules are not; nor are those of a module that sets
`__relay_python__ = True`, and results of other decorators.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from weakref import WeakKeyDictionary

from relay.ir.definition import Definition

_INSTALLED = ("site-packages", "dist-packages")
_LIBRARY = (sysconfig.get_path("stdlib"), str(Path(__file__).parents[3]))
"""The folders of Python's own modules, and of Relay's."""

_definitions: WeakKeyDictionary[FunctionType, Definition] = WeakKeyDictionary()
_translate: Callable[[FunctionType], Definition]


def use_translation(translate: Callable[[FunctionType], Definition]) -> None:
    """Say how Python functions are translated."""
    global _translate
    _translate = translate


def is_read(function: FunctionType) -> bool:
    """True if a program may call this function without a decorator."""
    module = sys.modules.get(function.__module__)
    if getattr(module, "__relay_python__", False) or hasattr(function, "__wrapped__"):
        return False
    if module is None or function.__module__.partition(".")[0] in ("numpy", "torch", "jax"):
        return False
    file = function.__code__.co_filename
    return not file.startswith(_LIBRARY) and not any(part in _INSTALLED for part in Path(file).parts)


def definition(function: FunctionType) -> Definition:
    """The meaning of the function; the same object each time. Raises FrontendError for anything that Relay does not
    support."""
    found = _definitions.get(function)
    if found is None:
        found = _definitions[function] = _translate(function)
    return found
