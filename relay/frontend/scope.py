"""The Python names around a function, looked up when they are asked for."""

from __future__ import annotations

import builtins
import copy
from collections.abc import Mapping
from types import CellType, FunctionType

import attrs
import numpy as np

from relay.ir.annotations.type_parameters import known_variable
from relay.ir.definition import MISSING, Scope


@attrs.frozen(eq=False)
class FunctionScope:
    """The names that a Python function sees: its closure, its module, the builtins. Later definitions count."""

    cells: Mapping[str, CellType]
    globals: Mapping[str, object]

    @classmethod
    def from_function(cls, function: FunctionType) -> FunctionScope:
        """The scope of a Python function."""
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        return cls(dict(cells), function.__globals__)

    def resolve(self, name: str) -> object:
        """The object that the name means now, or MISSING. A closure's variable that is not yet assigned is MISSING."""
        if name not in self.cells:
            return _resolve_global(self.globals, name)
        try:
            return self.cells[name].cell_contents
        except ValueError:  # the enclosing function assigns it later
            return MISSING

    def names(self) -> list[str]:
        """All visible names, for suggestions."""
        return [*self.cells, *self.globals, *dir(builtins)]


@attrs.frozen(eq=False)
class TextScope:
    """The names that the functions of a text see: each other, what the caller passed, the builtins."""

    definitions: Mapping[str, object]
    globals: Mapping[str, object]

    def resolve(self, name: str) -> object:
        """The object that the name means now, or MISSING."""
        if name in self.definitions:
            return self.definitions[name]
        return _resolve_global(self.globals, name)

    def names(self) -> list[str]:
        """All visible names, for suggestions."""
        return [*self.definitions, *self.globals, *dir(builtins)]


@attrs.frozen(eq=False)
class NamedScope:
    """A scope in which some further names have a meaning: those of classes that are still being made."""

    further: Mapping[str, object]
    around: Scope

    def resolve(self, name: str) -> object:
        """The object that the name means now, or MISSING."""
        found = self.around.resolve(name)
        return self.further.get(name, MISSING) if found is MISSING else found

    def names(self) -> list[str]:
        """All visible names, for suggestions."""
        return [*self.further, *self.around.names()]


@attrs.frozen(eq=False)
class ParameterScope:
    """A scope with the type parameters of a function, `def f[n](..)`, in front."""

    parameters: Mapping[str, object]
    around: Scope

    def resolve(self, name: str) -> object:
        """The object that the name means now, or MISSING."""
        return known_variable(self.parameters[name]) if name in self.parameters else self.around.resolve(name)

    def names(self) -> list[str]:
        """All visible names, for suggestions."""
        return [*self.parameters, *self.around.names()]


class SnapshotScope:
    """The names of another scope; numbers and arrays, also in tuples and the like, keep the value first read."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._values: dict[str, object] = {}

    def resolve(self, name: str) -> object:
        """The object that the name means now, or meant when it was first asked for, or MISSING."""
        if name in self._values:
            return self._values[name]
        value = self.scope.resolve(name)
        if _is_data(value):
            value = self._values[name] = copy.deepcopy(value)
        return value

    def names(self) -> list[str]:
        """All visible names, for suggestions."""
        return self.scope.names()

    def reload(self) -> None:
        """Read everything again from now on."""
        self._values.clear()


def _is_data(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_data, value.values()))
    if isinstance(value, tuple | list):
        return all(map(_is_data, value))
    return isinstance(value, int | float | np.ndarray | np.generic)


def _resolve_global(names: Mapping[str, object], name: str) -> object:
    if name in names:
        return names[name]
    around = names.get("__builtins__", builtins)  # a module, or its dictionary
    if isinstance(around, Mapping):
        return around.get(name, MISSING)
    return getattr(around, name, MISSING)
