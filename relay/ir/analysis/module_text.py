"""The text of modules, which the printer, of a higher layer, makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relay.errors import InternalError

if TYPE_CHECKING:
    from relay.ir.expr import Module


def _no_printer(module: Module) -> str:
    raise InternalError("no printer has been set")


_printer: Callable[[Module], str] = _no_printer


def use_printer(printer: Callable[[Module], str]) -> None:
    """Set what makes the text of a module."""
    global _printer
    _printer = printer


def module_text(module: Module) -> str:
    """A module in Relay's notation."""
    return _printer(module)
