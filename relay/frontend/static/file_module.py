"""A module of the user's, as far as reading its file tells what its names mean."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from relay.frontend.static import modules
from relay.frontend.static.unknown_names import UnknownValue
from relay.ir.definition import MISSING

if TYPE_CHECKING:
    from relay.frontend.static.files import Files
    from relay.frontend.static.top_level import FileReader


class FileModule(ModuleType):
    """A module of the user's, as far as reading its text tells what its names mean."""

    __relay_file__ = True

    def __init__(self, files: Files, place: modules.Place, name: str, reader: FileReader | None) -> None:
        super().__init__(name)
        self._files = files
        self._place = place
        self._reader = reader

    def __getattr__(self, name: str) -> object:
        """The meaning of a name of the module. Raises AttributeError if it has no such name."""
        if name.startswith("__"):
            raise AttributeError(f"{self.__name__} has no {name!r}")
        reader = self._reader
        if reader is not None:
            if reader.invalid is not None:
                return UnknownValue(name, mistaken=True)
            found = reader.meaning(name)
            if found is not MISSING:
                return found
        inner = modules.locate(name, self._place.folders)
        if inner is not None:
            module = self._files.module_at(inner, self._part(name))
            return UnknownValue(name, reason=module) if isinstance(module, str) else module
        if modules.is_compiled(name, self._place.folders):
            return UnknownValue(name, reason=f"{self.__name__}.{name} is compiled")
        if reader is None:
            return UnknownValue(name, reason=f"no source of the module {self._part(name)} was found")
        if not reader.is_known:
            return UnknownValue(name, is_early=not reader.is_complete)
        raise AttributeError(f"{self.__name__} has no {name!r}")

    def __dir__(self) -> list[str]:
        return [] if self._reader is None else self._reader.scope.names()

    def _part(self, name: str) -> str:
        return f"{self.__name__}{name}" if self.__name__.endswith(".") else f"{self.__name__}.{name}"

    @property
    def is_known(self) -> bool:
        """True if all names at its top are known."""
        return self._reader is None or self._reader.is_known
