"""The names that a file imports from other files, which are read when something needs the names."""

from __future__ import annotations

import ast
import builtins
import difflib
import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from relay.errors import FrontendError, RelayError
from relay.frontend.source import SourceFile
from relay.frontend.static.evaluation import MODULES
from relay.frontend.static.file_module import FileModule
from relay.frontend.static.unknown_names import UnknownValue
from relay.ir.definition import MISSING

if TYPE_CHECKING:
    from relay.frontend.static.files import Files

_SUBMODULES = ("numpy.linalg", "numpy.random", "numpy.fft", "numpy.typing", "collections.abc")
"""Those of the known modules whose import has no effect that a check should avoid, besides Relay's."""


class ImportedNames:
    """The imports of one file. `names` gets the values of what is imported, `errors` the mistakes."""

    def __init__(self, files: Files, file: SourceFile, names: dict[str, Any], errors: list[RelayError]) -> None:
        self._files = files
        self._file = file
        self._names = names
        self._errors = errors
        self._waiting: dict[str, Callable[[], object]] = {}  # names that are read when they are needed
        self._postponed: set[str] = set()  # those of them that are functions of this file
        self._loading: set[str] = set()
        self._stars: list[Callable[[], FileModule | str]] = []  # what `from module import *` means, the last one first
        self._has_unknown_star = False
        self._modules: dict[tuple[str, int], None] = {}  # those of the user's, with the levels of the imports

    @property
    def is_known(self) -> bool:
        """True if all imported names are known by now."""
        return not self._has_unknown_star and not self._loading

    @property
    def has_unknown_names(self) -> bool:
        """True if `from module import *` brings names that are not known."""
        return self._has_unknown_star

    def waiting_names(self) -> list[str]:
        """The names whose files have not been read."""
        return list(self._waiting)

    def forget(self, name: str) -> None:
        """A name gets another value than an imported one."""
        self._waiting.pop(name, None)

    def postpone(self, name: str, load: Callable[[], object]) -> None:
        """A name means a function of the file, which is read when it is needed."""
        self._names.pop(name, None)
        self._waiting[name] = load
        self._postponed.add(name)

    def statement(self, node: ast.Import | ast.ImportFrom, tried: bool = False) -> None:
        """Note what an import brings. One that is only `tried` may fail."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                self._import_module(alias)
            else:
                self._import_name(alias, node.module or "", node.level, tried)

    def meaning(self, name: str) -> object:
        """The meaning of a name at the top of the file, or MISSING."""
        self._load(name)
        if name in self._names:
            return self._names[name]
        for star in self._stars:
            module = star()
            if isinstance(module, FileModule) and not name.startswith("_"):
                found = getattr(module, name, MISSING)
                if found is not MISSING:
                    return found
        return MISSING

    def load_names_in(self, node: ast.AST) -> None:
        """Read what all names in a piece of syntax are imported from, also those in texts, which may be annotations."""
        if not self._waiting and not self._stars:
            return
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self._load_or_find(inner.id)
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                for name in re.findall(r"\w+", inner.value):
                    self._load_or_find(name)

    def load_everything(self) -> None:
        """Read all modules that the file imports."""
        for name in self.waiting_names():
            if name not in self._postponed:
                self._load(name)
        for star in self._stars:
            star()

    def load_overloads(self) -> None:
        """Read the modules in which overloads may be written: those count wherever their module is imported."""
        importing = Path(os.path.abspath(self._file.source.filename))
        for name, level in self._modules:
            if self._files.mentions(b"overload(", name, level, importing):
                self._module(name, level)

    # ---- statements

    def _import_module(self, alias: ast.alias) -> None:
        name = alias.asname or alias.name.split(".")[0]
        target = alias.name if alias.asname else name
        known = _known_module(target)
        if known is not None and _known_module(alias.name) is not None:
            self._bind(name, known)
        else:
            self._modules[alias.name, 0] = None
            self._bind_lazily(name, alias, lambda: self._module(target, 0))

    def _import_name(self, alias: ast.alias, module: str, level: int, tried: bool) -> None:
        known = _known_module(module) if level == 0 else None
        if known is None:
            self._modules[module, level] = None
        if alias.name == "*":
            if known is None:
                self._import_star(module, level)
                return
            for name in getattr(known, "__all__", [name for name in vars(known) if not name.startswith("_")]):
                self._bind(name, getattr(known, name))
            return
        name = alias.asname or alias.name
        if known is not None:
            self._bind(name, getattr(known, alias.name, UnknownValue(name, span=self._file.span(alias))))
        else:
            self._bind_lazily(name, alias, lambda: self._attribute(self._module(module, level), alias, tried))

    def _import_star(self, module: str, level: int) -> None:
        found: list[FileModule | str] = []

        def load_module() -> FileModule | str:
            if not found:
                found.append(self._module(module, level))
                if isinstance(found[0], str) or not found[0].is_known:
                    self._has_unknown_star = True
            return found[0]

        self._stars.insert(0, load_module)

    def _module(self, name: str, level: int) -> FileModule | str:
        return self._files.module(name, level, Path(os.path.abspath(self._file.source.filename)))

    def _attribute(self, module: FileModule | str, alias: ast.alias, tried: bool) -> object:
        """A name of a module. One that it does not have is an error at the import."""
        if isinstance(module, str):
            return module
        try:
            return getattr(module, alias.name)
        except AttributeError:
            if tried:
                return f"{module.__name__} has no {alias.name!r}"
            close = difflib.get_close_matches(alias.name, dir(module), n=1)
            help = f"did you mean {close[0]!r}?" if close else None
            message = f"{module.__name__} has no {alias.name!r}"
            self._errors.append(FrontendError(message, self._file.span(alias), help=help))
            return UnknownValue(alias.name, mistaken=True)

    # ---- names

    def _bind(self, name: str, value: object) -> None:
        self._waiting.pop(name, None)
        self._names[name] = value

    def _bind_lazily(self, name: str, alias: ast.alias, load: Callable[[], object]) -> None:
        """Bind a name when it is needed; a text says why it cannot be read."""

        def load_value() -> object:
            found = load()
            return UnknownValue(name, span=self._file.span(alias), reason=found) if isinstance(found, str) else found

        self._names.pop(name, None)
        self._postponed.discard(name)
        self._waiting[name] = load_value

    def _load(self, name: str) -> None:
        load = self._waiting.get(name)
        if load is None or name in self._loading:
            return
        self._loading.add(name)
        try:
            found = load()
        finally:
            self._loading.discard(name)
        self._names[name] = found
        if not (isinstance(found, UnknownValue) and found.is_early):
            self._waiting.pop(name, None)

    def _load_or_find(self, name: str) -> None:
        self._load(name)
        if name not in self._names and self._stars and not hasattr(builtins, name):
            found = self.meaning(name)
            if found is not MISSING:
                self._names[name] = found


def _known_module(name: str) -> ModuleType | None:
    """A module whose import has no effect, of Relay or one of `MODULES`."""
    top, *inner = name.split(".")
    if top not in MODULES or (inner and top != "relay" and name not in _SUBMODULES):
        return None
    if any(part.startswith("_") for part in inner):  # which are programs, as `relay.__main__`
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
