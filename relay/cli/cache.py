"""`relay cache`: the disk cache of compiled programs."""

from __future__ import annotations

import argparse
import time

from relay.compilation import disk_cache

NAME = "cache"
HELP = "show the compiled programs that are kept on disk, or remove them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show", help="default: %(default)s")


def run(options: argparse.Namespace) -> int:
    """Show or clear."""
    if options.action == "clear":
        print(f"removed {_programs(disk_cache.clear())} from {disk_cache.directory()}")
        return 0
    entries = disk_cache.entries()
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        print(f"{entry.name:<24}  {_size(entry.size):>10}  last used {used}")
    total = _size(sum(entry.size for entry in entries))
    print(f"{_programs(len(entries))}, {total} of at most {_size(disk_cache.limit())}, in {disk_cache.directory()}")
    return 0


def _programs(count: int) -> str:
    return f"{count} program{'' if count == 1 else 's'}"


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
