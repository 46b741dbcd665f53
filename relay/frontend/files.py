"""Python files that are read together without importing them: their decorated functions, and what these need.

Other modules are files that are read in the same way, when something that is checked mentions what comes from them.
`top_level.py` reads one file, `modules.py` finds the file of a module.
"""

from __future__ import annotations

import linecache
import os
import tokenize
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from relay.errors import RelayError
from relay.frontend import modules
from relay.frontend.file_module import FileModule
from relay.frontend.top_level import FileReader, Unread, Wrap
from relay.ir.definition import Definition


@attrs.frozen(eq=False)
class Read:
    """What reading a file found: the decorated functions, by number since names may repeat, and mistakes."""

    definitions: tuple[Definition, ...]
    unread: tuple[Unread, ...]
    _reader: FileReader

    @property
    def errors(self) -> list[RelayError]:
        """The mistakes at the top of this file, and of the files that it is known to need by now."""
        return [error for reader in self._readers for error in reader.errors]

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of all files that this one is known to need by now: what is looked up late may need more."""
        return tuple(reader.filename for reader in self._readers[1:])

    @property
    def _readers(self) -> list[FileReader]:
        found = [self._reader]
        for reader in found:
            found += [other for other in reader.needs if other not in found]
        return found


class Files:
    """Files that are read together, each once, also where they import each other. Use it in a `with` statement.

    `wrap` makes a callable of each decorated function, for what the files derive from it. `folders`: where modules are
    searched, too, before Python's own path.
    """

    def __init__(self, wrap: Wrap, folders: Sequence[str] = ()) -> None:
        self.wrap = wrap
        self.folders = tuple(folders)
        self._readers: dict[str, FileReader] = {}  # by the real path
        self._modules: dict[modules.Place, FileModule] = {}
        self._relevant: dict[str, bool] = {}  # installed packages in which something mentions Relay
        self.reading: set[str] = set()  # the files whose tops are being read
        self._entries: dict[str, Any] = {}  # of linecache, which data classes read
        self._before: dict[str, Any] = {}

    def __enter__(self) -> Files:
        for name, entry in self._entries.items():
            self._show(name, entry)
        return self

    def __exit__(self, *raised: object) -> None:
        for name in self._entries:
            linecache.cache.pop(name, None)
        linecache.cache.update(self._before)
        self._before.clear()

    def _show(self, name: str, entry: Any) -> None:
        if name in linecache.cache:
            self._before.setdefault(name, linecache.cache[name])
        self._entries[name] = linecache.cache[name] = entry

    def read(self, text: str, filename: str) -> Read:
        """Read a file's decorated functions. Raises FrontendError if the text is no Python."""
        reader = self._reader(text, filename)
        if reader.invalid is not None:
            raise reader.invalid
        reader.finish()
        return Read(tuple(d for _, d in reader.found), tuple(reader.unread), reader)

    def _reader(self, text: str, filename: str) -> FileReader:
        key = os.path.realpath(filename)
        if key not in self._readers:
            self._show(filename, (len(text), None, text.splitlines(keepends=True), filename))
            reader = self._readers[key] = FileReader(self, filename)
            reader.read(text)
        return self._readers[key]

    # ---- modules

    def module(self, name: str, level: int, importing: Path) -> FileModule | str:
        """The module that `import name` means in a file, or `from ..name import` of this level; else why there is none
        to read."""
        if level:
            folder = importing.parent
            for _ in range(level - 1):
                folder = folder.parent
            inside = folder / "__init__.py"
            place: modules.Place | None = modules.Place(inside if inside.is_file() else None, (folder,))
            parts = name.split(".") if name else []
            told = "." * level + name
        else:
            top, *parts = name.split(".")
            folders = modules.import_folders(importing, self.folders)
            place = modules.locate_top(top, folders)
            told = name
        for part in parts:
            place = modules.locate(part, place.folders) if place is not None else None
        if place is None:
            return f"no source of the module {told} was found"
        return self.at(place, told)

    def at(self, place: modules.Place, name: str) -> FileModule | str:
        """The module of a place, or why it is not read."""
        if place.file is not None:
            if modules.is_of_the_standard_library(place.file):
                return f"{name} is a module of Python's library"
            if modules.is_installed(place.file) and not self._is_relevant(place.file):
                return f"{name} is an installed module that does not use relay"
        found = self._modules.get(place)
        if found is not None:
            return found
        reader = None
        if place.file is not None:
            filename = _shown(place.file)
            try:
                with tokenize.open(place.file) as file:  # in the encoding that the file declares
                    text = file.read()
            except (OSError, UnicodeDecodeError, SyntaxError) as error:
                return f"{filename} cannot be read: {error}"
            known = self._readers.get(os.path.realpath(place.file))
            reader = known if known is not None else self._reader(text, filename)
        return self._modules.setdefault(place, FileModule(self, place, name, reader))

    def _is_relevant(self, file: Path) -> bool:
        """Whether an installed file belongs to a package that uses Relay."""
        index = max(i for i, part in enumerate(file.parts) if part in modules.INSTALLED)
        top = Path(*file.parts[: index + 2])
        key = str(top)
        if key not in self._relevant:
            self._relevant[key] = modules.mentions(top, b"relay")
        return self._relevant[key]


def _shown(file: Path) -> str:
    """How messages name a file: by its way from the working directory, if it is in there."""
    return os.path.relpath(file) if file.is_relative_to(Path.cwd()) else str(file)
