"""Python files that are read together without importing them: their decorated functions, and what these need.

Other modules are files that are read in the same way, when something that is checked mentions what comes from them.
`top_level.py` reads one file, `modules.py` finds the file of a module.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from relay.errors import RelayError, Span
from relay.frontend.data import data_classes
from relay.frontend.source import SourceFile
from relay.frontend.static import modules
from relay.frontend.static.evaluation import Budget
from relay.frontend.static.file_module import FileModule
from relay.frontend.static.text_files import read_bytes, read_source
from relay.frontend.static.top_level import FileReader, PostponedFunction, UnreadableFunction, Wrap
from relay.frontend.static.unknown_names import UnknownNameError
from relay.ir.definition import Definition
from relay.ir.expr import Function
from relay.operator import Operator
from relay.operator.registry import finding
from relay.typecheck.elaboration.library import overloads


@attrs.frozen(eq=False)
class ReadResult:
    """The result of reading a file: the decorated functions, by number since names may repeat, and those not read."""

    definitions: tuple[Definition | PostponedFunction, ...]
    unread: tuple[UnreadableFunction, ...]


_numbers = itertools.count()


class Files:
    """Files that are read together, each once, also where they import each other. Use it in a `with` statement.

    `wrap` makes a callable of each decorated function, for what the files derive from it. `folders`: where modules are
    searched, too, before Python's own path. `check_options` raises RelayError for what a decorator does not take;
    with the function, for what does not fit its parameters. `texts` gives the texts of files that are not those on
    disk.
    """

    def __init__(
        self,
        wrap: Wrap,
        folders: Sequence[str] = (),
        check_options: Callable[[Mapping[str, Any], Function | None], object] = lambda written, function: None,
        texts: Callable[[Path], str | None] = lambda path: None,
    ) -> None:
        self.wrap = wrap
        self.check_options = check_options
        self._texts = texts
        self.folders = tuple(folders)
        self._readers: dict[str, FileReader] = {}  # by the real path
        self._modules: dict[modules.Place, FileModule] = {}
        self.postponed: list[Callable[[], None]] = []  # statements that need names of files which import each other
        self._depth = 0  # how many files are being read
        self._number = next(_numbers)
        self.budget = Budget()
        self._overloads: overloads.Table = {}  # those of the files
        self._namespaces: set[str] = set()
        weakref.finalize(self, data_classes.forget, self._namespaces)

    def __enter__(self) -> Files:
        self._inside = contextlib.ExitStack()
        self._inside.enter_context(finding(self.operator))
        self._inside.enter_context(overloads.scope(self._overloads))
        return self

    def __exit__(self, *raised: object) -> None:
        self._inside.close()

    def read(self, text: str, filename: str, is_remembered: Callable[[Span], bool] = lambda span: False) -> ReadResult:
        """Read a file's decorated functions. Raises FrontendError if the text is not Python.

        Functions at the top for whose place `is_remembered` holds are read when something needs them.
        """
        reader = self._reader(text, filename, is_remembered)
        if reader.invalid is not None:
            raise reader.invalid
        reader.finish()
        found = (f if isinstance(f, PostponedFunction) else f.__relay__ for f in reader.found)
        return ReadResult(tuple(found), tuple(reader.unread))

    def source_file(self, text: str, filename: str) -> SourceFile:
        """The parsed text of a file."""
        return self._reader(text, filename).file

    def value(self, text: str, filename: str, expression: str) -> object:
        """The value of an expression without effects of the names at the top of a file; None for others."""
        reader = self._reader(text, filename)
        try:
            node = ast.parse(expression.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return None if reader.invalid is not None else reader.value_or_unknown(node)

    def names_at_top(self, text: str, filename: str) -> list[tuple[str, object]]:
        """The names at the top of a file and their meanings, without those that are imported from others."""
        reader = self._reader(text, filename)
        return [] if reader.invalid is not None else list(reader.names.items())

    @property
    def names(self) -> list[str]:
        """The names of all files that were read so far."""
        return [reader.filename for reader in self._readers.values()]

    def _reader(
        self, text: str, filename: str, is_remembered: Callable[[Span], bool] = lambda span: False
    ) -> FileReader:
        key = os.path.realpath(filename)
        if key not in self._readers:
            reader = self._readers[key] = FileReader(self, filename, is_remembered)
            self._depth += 1
            reader.read(text)
            self._depth -= 1
            while self.postponed and not self._depth:
                self.postponed.pop(0)()
        return self._readers[key]

    def operator(self, name: str) -> Operator | None:
        """The operator that one of the files registers, or one that they import. Raises OutsideName if it is not known
        without running the program."""
        if name.startswith("_"):
            return None
        for reader in (readers := list(self._readers.values())):
            found = reader.operators.get(name)
            if found is not None:
                getattr(found, "__relay__", None)  # raises
                return found  # type: ignore[return-value]
            reader.imports.load_everything()
            readers += [r for r in self._readers.values() if r not in readers]
        unknown = next((r.unknown_operator for r in readers if r.unknown_operator is not None), None)
        if unknown is not None:  # which may have this name
            raise UnknownNameError(attrs.evolve(unknown, name=name))
        return None

    @property
    def errors(self) -> list[RelayError]:
        """The mistakes at the tops of the user's files that were read so far; modules of installed packages may define
        names as they run. What is looked up late may need further files."""
        own = (reader for path, reader in self._readers.items() if not modules.is_installed(Path(path)))
        return [error for reader in own for error in reader.errors]

    def namespace(self, filename: str) -> dict[str, Any]:
        """The names of a file that is read, at first its own."""
        name = f"<check {self._number}: {filename}>"
        self._namespaces.add(name)
        return {"__name__": name}

    # ---- modules

    def module(self, name: str, level: int, importing: Path) -> FileModule | str:
        """The module that `import name` means in a file, or `from ..name import` of this level; else why there is none
        to read."""
        told = "." * level + name
        place = modules.find(name, level, importing, self.folders)
        return f"no source of the module {told} was found" if place is None else self.module_at(place, told)

    def mentions(self, word: bytes, name: str, level: int, importing: Path) -> bool:
        """True if the text of a user's module has a word."""
        place = modules.find(name, level, importing, self.folders)
        file = place.file if place is not None else None
        if file is None or modules.is_of_the_standard_library(file) or modules.is_irrelevant(file):
            return False
        given = self._texts(file)
        try:
            return word in (read_bytes(file) if given is None else given.encode(errors="replace"))
        except OSError:
            return False

    def module_at(self, place: modules.Place, name: str) -> FileModule | str:
        """The module of a place, or why it is not read."""
        if place.file is not None:
            if modules.is_of_the_standard_library(place.file):
                return f"{name} is a module of Python's library"
            if modules.is_irrelevant(place.file):
                return f"{name} is an installed module that does not use relay"
        found = self._modules.get(place)
        if found is not None:
            return found
        reader = None
        if place.file is not None:
            filename = _display_path(place.file)
            try:
                given = self._texts(place.file)
                text = read_source(place.file) if given is None else given
            except (OSError, UnicodeDecodeError, SyntaxError) as error:
                return f"{filename} cannot be read: {error}"
            known = self._readers.get(os.path.realpath(place.file))
            reader = known if known is not None else self._reader(text, filename)
        return self._modules.setdefault(place, FileModule(self, place, name, reader))


def _display_path(file: Path) -> str:
    """The name of a file in messages: relative to the working directory, if it is in there."""
    return os.path.relpath(file) if file.is_relative_to(Path.cwd()) else str(file)
