"""The machine's measured peak, kept in the cache folder by processor and number of threads."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

from relay.codegen.runtime.cpu import default_threads
from relay.codegen.runtime.machine_peak import MachinePeak
from relay.compilation import disk_cache
from relay.errors import FrontendError
from relay.support import private_files
from relay.support.locks import compiling

log = logging.getLogger("relay.compile")

_known: dict[int, MachinePeak] = {}


def machine_peak(threads: int | None = None, *, again: bool = False) -> MachinePeak:
    """The peak rates of this machine, as measured: `flops` by dtype, and `bandwidth` by the bytes that are gone over.

    The first call measures it, which takes a second or two, and keeps it in the folder of RELAY_CACHE_DIR.
    `threads`: as many as programs use, unless it says otherwise. `again`: repeat the measurement, as after one on a
    busy machine."""
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise FrontendError(f"threads is a number from 1 on, found {threads!r}")
    wanted = default_threads() if threads is None else threads
    if again or wanted not in _known:
        found = None if again else _read(wanted)
        if found is None:
            found = _measure(wanted)
            _keep(found)
        _known[wanted] = found
    return _known[wanted]


def _measure(threads: int) -> MachinePeak:
    with compiling:
        from relay.codegen.tvm import peak_kernels

        return peak_kernels.measure(threads)


def _path(threads: int) -> Path:
    machine = hashlib.sha256(disk_cache.processor().encode()).hexdigest()[:16]
    return disk_cache.directory() / f"peak-{machine}-{threads}.json"


def _read(threads: int) -> MachinePeak | None:
    if disk_cache.limit() == 0:
        return None
    try:
        private_files.check_folder(_path(threads).parent)
        return MachinePeak.from_json(json.loads(private_files.read(_path(threads))))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, private_files.Untrusted) as error:
        log.warning("%.200s is not used, and the machine measured again: %s", _path(threads), error)
        return None


def _keep(found: MachinePeak) -> None:
    if disk_cache.limit() == 0:
        return
    path = _path(found.threads)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private_files.write(path, json.dumps(found.to_json()).encode())
    except OSError as error:
        log.warning("%.200s cannot be written: %s", path, error.strerror or error)
