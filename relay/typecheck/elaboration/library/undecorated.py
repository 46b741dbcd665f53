"""Plain Python functions of the user's that programs call: they are read as if they were decorated.

Functions of installed packages and of Python's own modules are not; nor are those of a module that sets
`__relay_python__ = True`, and results of other decorators.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeGuard
from weakref import WeakKeyDictionary

from relay.ir.definition import Definition
from relay.support.user_code import is_readable_module, is_user_file

_definitions: WeakKeyDictionary[FunctionType, Definition] = WeakKeyDictionary()
_translate: Callable[[FunctionType], Definition]


def use_translation(translate: Callable[[FunctionType], Definition]) -> None:
    """Say how Python functions are translated."""
    global _translate
    _translate = translate


def is_read(function: FunctionType) -> bool:
    """True if a program may call this function without a decorator."""
    if hasattr(function, "__wrapped__") or not is_readable_module(function.__module__):
        return False
    return is_user_file(function.__code__.co_filename)


def is_written(function: object) -> TypeGuard[FunctionType]:
    """True for such a function that the user has written, and not `dataclass` and the like; also one of a file that is
    not imported."""
    if hasattr(type(function), "__relay_source__"):
        return True
    return (
        isinstance(function, FunctionType)
        and is_read(function)
        and not function.__code__.co_filename.startswith(("<string>", "<attrs"))
    )


def definition(function: FunctionType) -> Definition:
    """The meaning of the function; the same object each time. Raises FrontendError for anything that Relay does not
    support."""
    found = _definitions.get(function)
    if found is None:
        found = _definitions[function] = _translate(function)
    return found
