"""Tuning records on disk: loop tilings found by `relay.tune`, by processor and number of threads.

The file is `tuning.json` in the folder of the cache. It is read when something is compiled.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs

from relay.codegen.tiling import Choices, TilingChoice
from relay.compilation import disk_cache
from relay.support import private_files

log = logging.getLogger("relay.compile")


def path() -> Path:
    """The file."""
    return disk_cache.directory() / "tuning.json"


def choices(threads: int) -> Choices:
    """The recorded choices for this processor and this many threads. An unreadable file is reported in the log."""
    found: dict[str, TilingChoice] = {}
    for name, entry in _read().get(_machine(threads), {}).items():
        try:
            found[name] = TilingChoice(**{field: entry[field] for field in attrs.fields_dict(TilingChoice)})
        except (KeyError, TypeError, ValueError):
            log.warning("%s: the entry %s is not of this version, and is not used", path(), name)
    return found


def keep(threads: int, found: Mapping[str, TilingChoice]) -> None:
    """Write choices, in one step, beside the existing ones."""
    path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _file_lock():
        content = _read()
        content.setdefault(_machine(threads), {}).update({name: attrs.asdict(choice) for name, choice in found.items()})
        private_files.write(path(), json.dumps(content, indent=1).encode())


def clear() -> None:
    """Forget everything."""
    path().unlink(missing_ok=True)


def _machine(threads: int) -> str:
    about = f"{disk_cache.processor()}\n{threads}\n{metadata.version('apache-tvm')}"
    return hashlib.sha256(about.encode()).hexdigest()


def _read() -> dict[str, dict[str, Any]]:
    try:
        private_files.check_folder(path().parent)
        content: Any = json.loads(private_files.read(path()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        log.warning("%.200s cannot be read: %s", path(), told)
        return {}
    except private_files.Untrusted as reason:
        log.warning("%s is not used: %s", path(), reason)
        return {}
    entries = content.values() if isinstance(content, dict) else [None]
    if all(isinstance(e, dict) and all(isinstance(c, dict) for c in e.values()) for e in entries):
        found: dict[str, dict[str, Any]] = content
        return found
    log.warning("%s holds no tuning records", path())
    return {}


@contextmanager
def _file_lock() -> Iterator[None]:
    """One process at a time, where the system has such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(path().with_suffix(".lock"), flags, 0o600), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
