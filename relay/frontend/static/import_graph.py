"""The import graph of files, from their import statements alone."""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from relay.frontend.source import statements
from relay.frontend.static import modules
from relay.frontend.static.evaluation import MODULES
from relay.frontend.static.text_files import read_bytes


@attrs.frozen
class _CachedImports:
    """A file as it was read: when it was written, its size, its text's digest and the files that it imports."""

    state: tuple[int, int]
    digest: str
    mentions_relay: bool
    imports: tuple[Path, ...]


class ImportGraph:
    """The files that files import. `folders`: where modules are searched besides Python's own path. `texts` gives the
    texts of files that are not those on disk."""

    def __init__(self, folders: Sequence[str] = (), texts: Callable[[Path], str | None] = lambda path: None) -> None:
        self._folders = tuple(folders)
        self._texts = texts
        self._known: dict[Path, _CachedImports] = {}

    def digest(self, filename: str) -> str:
        """A digest of what a file's check may depend on: its text, and that of all files that it imports. Empty where
        the file has nothing of Relay."""
        first = self._file(Path(os.path.abspath(filename)))
        if first is None or not first.mentions_relay:
            return ""
        return self._digest(first.digest, first.imports)

    def imports_digest(self, tree: ast.Module, filename: str) -> str:
        """A digest of all files that a file of this syntax tree imports, directly or indirectly."""
        return self._digest("", list(dict.fromkeys(self._imports(tree, Path(os.path.abspath(filename))))))

    def _digest(self, first: str, imports: Sequence[Path]) -> str:
        found: dict[Path, str] = {}
        pending = list(imports)
        while pending:
            path = pending.pop()
            if path not in found and (file := self._file(path)) is not None:
                found[path] = file.digest
                pending += file.imports
        parts = [first, *(f"{path} {digest}" for path, digest in sorted(found.items()))]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _file(self, path: Path) -> _CachedImports | None:
        try:
            given = self._texts(path)
            stat = os.stat(path) if given is None else None
            state = (stat.st_mtime_ns, stat.st_size) if stat is not None else (hash(given), -1)
            known = self._known.get(path)
            if known is None or known.state != state:
                text = read_bytes(path) if given is None else given.encode(errors="surrogatepass")
                imports = tuple(dict.fromkeys(self._imports(ast.parse(text), path)))
                known = _CachedImports(state, hashlib.sha256(text).hexdigest(), b"relay" in text, imports)
                self._known[path] = known
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None
        return known

    def _imports(self, tree: ast.Module, path: Path) -> Iterator[Path]:
        for node in statements(tree):
            for name, level in _imported_modules(node):
                if level == 0 and name.split(".")[0] in MODULES:
                    continue
                place = modules.find(name, level, path, self._folders)
                file = place.file if place is not None else None
                if file is None or modules.is_of_the_standard_library(file) or modules.is_irrelevant(file):
                    continue
                yield file


def _imported_modules(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The modules that an import may read, with the level of a relative one."""
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:
                parts = alias.name.split(".")
                yield from ((".".join(parts[: end + 1]), 0) for end in range(len(parts)))
        case ast.ImportFrom(module=module, names=aliases, level=level):
            parts = module.split(".") if module else []
            yield from ((".".join(parts[:end]), level) for end in range(0 if level else 1, len(parts) + 1))
            yield from ((".".join([*parts, alias.name]), level) for alias in aliases)  # which may be modules
        case _:
            pass
