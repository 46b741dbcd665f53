"""The disk cache of compiled programs, shared between processes.

A program is found by what its machine code depends on: the typed program (its alpha hash, and its names, which messages
contain), the level, the number of threads, the processor, Relay's own sources, and the versions of TVM, NumPy and
Python. Programs with operators that are defined outside of Relay are not kept: their code may change unseen.

    RELAY_CACHE_DIR     where; by default `relay` in the user's cache folder
    RELAY_CACHE_SIZE    how many bytes at most, 1 GiB by default; the programs used least recently go first; 0: no cache
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import platform
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Protocol, TypeVar

import attrs

from relay.codegen.runtime import library
from relay.codegen.runtime.native import NativeModule
from relay.codegen.tiling import Choices
from relay.ir.analysis.alpha import alpha_hash
from relay.ir.expr import Function, Module, OpCall
from relay.ir.traverse import walk
from relay.operator import lookup
from relay.support import private_files
from relay.transform.passes import PASSES

log = logging.getLogger("relay.compile")

Code = TypeVar("Code")

DEFAULT_SIZE = 1 << 30
_SUFFIX = ".relay.so"
_NAME = re.compile(r"[\w-]+\.relay\.so", re.ASCII)
_NOWHERE = Path(os.devnull) / "relay"  # no folder can be made there
_ABANDONED = 3600.0  # seconds after which what was never finished is removed
UNFINISHED = private_files.UNFINISHED


@attrs.frozen
class Entry:
    """One program in the cache: its file, its size in bytes, and when it was used last, in seconds since 1970."""

    path: Path
    size: int
    used: float

    @property
    def name(self) -> str:
        """The function's name, and the first digits of the program's."""
        parts = self.path.name.removesuffix(_SUFFIX).split("-")
        return f"{parts[0]} {parts[2][:6]}" if len(parts) == 5 else parts[0][:12]


def directory() -> Path:
    """The folder of kept programs."""
    if given := os.environ.get("RELAY_CACHE_DIR"):
        return Path(given)
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "relay"
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "relay" / "cache"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relay"
    except RuntimeError:  # a user without a home, as in containers
        return _NOWHERE


def limit() -> int:
    """The number of bytes that may be kept. A setting that is not a number counts as 0, with a line in the log."""
    given = os.environ.get("RELAY_CACHE_SIZE", "").strip()
    if not given:
        return DEFAULT_SIZE
    if re.fullmatch(r"[0-9]{1,18}", given):
        return int(given)
    log.warning("RELAY_CACHE_SIZE is not a number of bytes: %.40r; nothing is kept", given)
    return 0


def is_verified() -> bool:
    """True if machine code is tried before it is used and kept: RELAY_VERIFY."""
    return os.environ.get("RELAY_VERIFY", "") not in ("", "0")


class Files(Protocol[Code]):
    """The files of one kind of machine code: `write` raises ExportError for what has no form in a file, `read` gives
    None for a file that is not whole, and raises Untrusted for one of someone else."""

    def write(self, made: Code, program: Module, path: Path, /) -> None: ...
    def read(self, path: Path, program: Module, /) -> Code | None: ...


def native(
    program: Module,
    level: int,
    threads: int,
    choices: Choices,
    compile: Callable[[], NativeModule],
    donated: frozenset[int] = frozenset(),
    target: str = "cpu",
) -> NativeModule:
    """A typed program's machine code: from the cache, or compiled and kept. `donated`: the positions of parameters
    whose memory results may take.

    A failure of the cache costs time only, and is logged.
    """
    return find_or_compile(program, lambda: key(program, level, threads, choices, donated, target), compile, library)


def for_gpu(
    program: Module, level: int, compile: Callable[[], Code], target: str, compiler: str, files: Files[Code]
) -> Code:
    """As `native`, for a GPU: `compiler` is its version."""
    return find_or_compile(
        program, lambda: key(program, level, 0, {}, frozenset(), f"{target} {compiler}"), compile, files
    )


def find_or_compile(
    program: Module, key_of: Callable[[], Key], compile: Callable[[], Code], files: Files[Code]
) -> Code:
    """The machine code of a typed program in `files`, by a key that is made where it is needed.

    A failure of the cache costs time only, and is logged.
    """
    if limit() == 0:
        return compile()
    foreign = _foreign_operator(program)
    if foreign is not None:
        log.info("not kept on disk: the operator %s is defined outside of Relay", foreign)
        return compile()
    if (changed := _foreign_pass()) is not None:
        log.info("not kept on disk: the pass %s is not Relay's own", changed)
        return compile()
    wanted = key_of()
    path = directory() / wanted.file(program.main.name)
    is_trusted = _is_trusted(path.parent)
    found = _read_program(path, program, files) if is_trusted else None
    if found is None and is_trusted:
        log.info("%s is not on disk: %s", program.main.name, _reason(program.main.name, wanted))
    if found is not None:
        log.info("found compiled code in %s", path)
        with _ignoring():
            os.utime(path, follow_symlinks=os.utime not in os.supports_follow_symlinks)
        return found
    made = compile()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.write(made, program, path)
        log.info("compiled code is kept in %s", path)
        _shrink(limit())
        again = _read_program(path, program, files) if _is_trusted(path.parent) else None
        return again or made  # which becomes machine code once more when it is called
    except library.ExportError as reason:
        log.info("not kept on disk: %s", reason)
    except OSError as error:
        told = error.strerror or error
        log.warning("not kept on disk: %s; RELAY_CACHE_DIR says where programs are kept", told)
    return made


def _read_program(path: Path, program: Module, files: Files[Code]) -> Code | None:
    """The program in a file, if it is there, whole, and of this user."""
    try:
        found = files.read(path, program)
        if found is None and os.path.lexists(path):
            log.warning("%s is damaged; recompiling", path)
        return found
    except library.Untrusted as reason:
        log.warning("%s; it is not used; recompiling", reason)
        return None
    except Exception as error:  # of the loader
        log.warning("%s cannot be used; recompiling: %s", path, error)
        return None


_told: set[tuple[str, str]] = set()  # folders that are not trusted, and why


def _is_trusted(folder: Path) -> bool:
    """True if the content of the folder may be used. If others can write there, a warning says so once. A missing
    folder will be created."""
    try:
        private_files.check_folder(folder)
    except OSError:
        return not os.path.lexists(folder)
    except private_files.Untrusted as reason:
        if (told := (str(folder), str(reason))) not in _told:
            _told.add(told)
            log.warning(
                "compiled programs in %s are not used: %s. Anyone who can write there could make you run their code."
                " `chmod go-w` it, or set RELAY_CACHE_DIR to a folder of your own",
                *told,
            )
        return False
    return True


def entries() -> list[Entry]:
    """The programs in the cache, those used last first."""
    found = []
    with _ignoring():
        for path in directory().glob(f"*{_SUFFIX}"):
            with _ignoring():
                status = path.lstat()
                if _NAME.fullmatch(path.name) and stat.S_ISREG(status.st_mode):
                    found.append(Entry(path, status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: -entry.used)


def clear() -> int:
    """Remove all programs, and what was never finished; returns how many programs."""
    count = 0
    for entry in entries():
        with _ignoring():
            entry.path.unlink()
            count += 1
    _remove_unfinished(0.0)
    return count


def _remove_unfinished(age: float) -> None:
    """Remove what processes have left behind that ended while they wrote, if it is this many seconds old."""
    with _ignoring():
        for left_behind in directory().glob(f"{UNFINISHED}*"):
            with _ignoring():
                status = left_behind.lstat()
                if time.time() - status.st_mtime < age:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    shutil.rmtree(left_behind, ignore_errors=True)
                else:
                    left_behind.unlink()


def _shrink(size: int) -> None:
    """Remove the programs used least recently until this many bytes are left."""
    _remove_unfinished(_ABANDONED)
    total = 0
    for entry in entries():
        total += entry.size
        if total > size:
            with _ignoring():
                entry.path.unlink()


class _ignoring:
    """Another process may have removed the file."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, OSError)


# ---- the key


@attrs.frozen
class Key:
    """Digests of what machine code depends on."""

    program: str
    options: str
    surroundings: str

    def file(self, name: str) -> str:
        """The name of a program's file. Its second part names the machine code; the last one tells what differs."""
        whole = _digest((self.program, self.options, self.surroundings))
        shown = "-".join(part[:_SHOWN] for part in (self.program, self.options, self.surroundings))
        return f"{_readable_name(name)}-{whole}-{shown}{_SUFFIX}"


_SHOWN = 12  # digits of a digest in a file's name

_DIFFERENCES = (
    "the program differs from those on disk",
    "those on disk have other options: target, level, number of threads, donated arguments, tuned loops",
    "those on disk were compiled by other versions of Relay, TVM, NumPy or Python, or for another processor",
)
"""Texts for the first part in which no program of this name on disk agrees with the wanted one."""


def key(
    program: Module, level: int, threads: int, choices: Choices, donated: frozenset[int], target: str = "cpu"
) -> Key:
    verified = "verified" if is_verified() else ""  # of what is found then, it was, too
    return Key(
        _digest((alpha_hash(program), *_names(program))),
        _digest((str(level), str(threads), str(sorted(donated)), target, verified, *_texts(choices))),
        _digest((_environment_key(),)),
    )


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _readable_name(name: str) -> str:
    """A function's name as part of a file's name."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)[:40]


def _reason(name: str, wanted: Key) -> str:
    """The reason why no file is there for a program."""
    known: list[list[str]] = []
    with _ignoring():
        files = directory().glob(f"{_readable_name(name)}-*{_SUFFIX}")
        known += [path.name.removesuffix(_SUFFIX).split("-")[2:] for path in files]
    here = [part[:_SHOWN] for part in (wanted.program, wanted.options, wanted.surroundings)]
    if not known:
        return "there is no program of this name"
    for count, difference in enumerate(_DIFFERENCES, 1):
        if not any(found[:count] == here[:count] for found in known):
            return difference
    return "its file was damaged"


def _texts(choices: Choices) -> Iterator[str]:
    yield from (f"{name} {choice}" for name, choice in sorted(choices.items()))


def _names(program: Module) -> Iterator[str]:
    for name, function in program.functions.items():
        yield name
        if isinstance(function, Function):
            yield from (parameter.name for parameter in function.parameters)
            for binding in walk(function.body):
                yield from (target.name for target in binding.targets)


@functools.cache
def _environment_key() -> str:
    """The surroundings that machine code depends on besides the program."""
    versions = [f"{name} {metadata.version(name)}" for name in ("apache-tvm", "apache-tvm-ffi", "numpy")]
    return "\n".join([sys.version, platform.machine(), processor(), *versions, *_sources()])


def _sources() -> Iterator[str]:
    """Relay's own files as they are now."""
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        status = path.stat()
        yield f"{path} {status.st_size} {status.st_mtime_ns}"


def processor() -> str:
    """The processor's model and instruction sets."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part")))


def _foreign_pass() -> str | None:
    """A pass that another function stands for, if there is one, as in a test of what finds wrong passes."""
    for name, change in PASSES.items():
        own = getattr(sys.modules.get(change.__module__), getattr(change, "__name__", ""), None)
        if own is not change or not change.__module__.startswith("relay."):
            return name
    return None


def _foreign_operator(program: Module) -> str | None:
    """An operator of the program that is not Relay's own, if there is one."""
    for function in program.functions.values():
        if isinstance(function, Function):
            for binding in walk(function.body):
                if isinstance(binding.value, OpCall) and not lookup(binding.value.operator).is_builtin:
                    return binding.value.operator
    return None
