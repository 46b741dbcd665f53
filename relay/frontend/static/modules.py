"""Module resolution: the source of a module, with Python's search rules, from the importing file.

Nothing is imported. A module is a file, a package (a folder with `__init__.py`), or a folder without one, whose parts
may lie in several places. Modules without Python source (compiled ones, those of zip files) are not found.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import attrs

from relay.frontend.static.text_files import read_bytes

INSTALLED = ("site-packages", "dist-packages")
"""The folders of packages that were installed."""

_MANY_FILES = 400


@attrs.frozen
class Place:
    """The place of a module: its file (none for a folder without `__init__.py`), and the folders of its submodules."""

    file: Path | None
    folders: tuple[Path, ...] = ()


def import_folders(file: Path, further: Sequence[str] = ()) -> tuple[Path, ...]:
    """The folders in which modules are searched for a file: the folder around its packages, the working directory,
    `further`, and Python's own path."""
    root = file.parent
    while (root / "__init__.py").is_file() and root != root.parent:
        root = root.parent
    found = [root, Path.cwd(), *map(Path, further), *map(Path, sys.path)]
    return tuple(dict.fromkeys(found))


def locate(name: str, folders: Iterable[Path]) -> Place | None:
    """The module of a name without dots in the first of these folders that has it; None if none has its source."""
    parts = []
    for folder in folders:
        inner = folder / name
        if _is_file(inner / "__init__.py"):
            return Place(inner / "__init__.py", (inner,))
        if is_compiled(name, (folder,)):
            return None
        if _is_file(folder / f"{name}.py"):
            return Place(folder / f"{name}.py")
        if inner.is_dir():
            parts.append(inner)
    return Place(None, tuple(parts)) if parts else None


def locate_top(name: str, folders: Sequence[Path]) -> Place | None:
    """As `locate`, for the first part of a name; the finders of packages installed in place are asked, too."""
    found = locate(name, folders)
    if found is not None and found.file is not None:
        return found
    with contextlib.suppress(ImportError, ValueError, AttributeError):  # what other finders do is theirs
        specification = importlib.util.find_spec(name)
        origin = specification.origin if specification is not None else None
        if specification is not None and origin is not None and origin.endswith(".py"):
            return Place(Path(origin), tuple(map(Path, specification.submodule_search_locations or ())))
    return found


def is_compiled(name: str, folders: Iterable[Path]) -> bool:
    """True if one of these folders has the module as machine code."""
    return any(_is_file(folder / f"{name}{suffix}") for folder in folders for suffix in EXTENSION_SUFFIXES)


def find(name: str, level: int, importing: Path, further: Sequence[str] = ()) -> Place | None:
    """The module that `import name` means in a file, or `from ..name import` of this level."""
    parts = name.split(".") if name else []
    if level:
        folder = importing.parent
        for _ in range(level - 1):
            folder = folder.parent
        inside = folder / "__init__.py"
        place: Place | None = Place(inside if inside.is_file() else None, (folder,))
    else:
        place = locate_top(parts.pop(0), import_folders(importing, further))
    for part in parts:
        place = locate(part, place.folders) if place is not None else None
    return place


def is_of_the_standard_library(file: Path) -> bool:
    """True if a file comes with Python."""
    return not is_installed(file) and any(file.is_relative_to(folder) for folder in _standard_folders())


def is_irrelevant(file: Path) -> bool:
    """True if a file was installed with a package that does not use Relay."""
    if not is_installed(file):
        return False
    index = max(i for i, part in enumerate(file.parts) if part in INSTALLED)
    return not mentions(Path(*file.parts[: index + 2]), b"relay")


def is_installed(file: Path) -> bool:
    """True if a file was installed with a package, rather than being written here."""
    return any(part in INSTALLED for part in file.parts)


@cache
def mentions(place: Path, word: bytes) -> bool:
    """True if a file, or one of the first files in a folder and its folders, has a word in its text."""
    files = [place] if place.is_file() else itertools.chain(place.glob("*.py"), place.glob("*/*.py"))
    for file in itertools.islice(files, _MANY_FILES):
        with contextlib.suppress(OSError):
            if word in read_bytes(file):
                return True
    return False


@cache
def _standard_folders() -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")))


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # of an unreadable folder: no
