"""Private files: read and written only where no other user (except root) could have written them.

As OpenSSH does with its keys: a file is trusted if it is a plain file of this user or of root that neither its group
nor others may write to, and so are the folders on the way to it. The exceptions are groups that have one user only, and
folders whose entries others may not replace (`/tmp`). Where a system has no owners of files, as Windows, the folders of
users are its own affair.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

UNFINISHED = "unfinished-"
"""The beginning of the names of files that are being written."""

_HAS_OWNERS = hasattr(os, "geteuid")
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_RELATIVE = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd


class Untrusted(Exception):
    """The reason why the content of a file may be someone else's."""


def user() -> int:
    """The user of this process."""
    return os.geteuid() if _HAS_OWNERS else 0


def check_folder(path: Path, whole: bool = True) -> None:
    """Raises Untrusted where others can write to a folder, or, with `whole`, to one around it; OSError."""
    if not _HAS_OWNERS:
        return
    real = Path(os.path.realpath(path))
    for folder in (real, *(real.parents if whole else ())):
        status = folder.stat()
        if folder == real and not stat.S_ISDIR(status.st_mode):
            raise Untrusted(f"{folder} is not a folder")
        reason = _writers(status)
        if reason is not None and not (folder != real and status.st_mode & stat.S_ISVTX):
            raise Untrusted(f"{folder} {reason}")


def read(path: Path) -> bytes:
    """The content of a trusted file. The folder is not checked. Raises Untrusted, OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _FLAGS)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Untrusted(f"{path} is a link") from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Untrusted(f"{path} is not a plain file")
        reason = _writers(status)
        if reason is not None:
            raise Untrusted(f"{path} {reason}")
    except BaseException:
        os.close(descriptor)
        raise
    with open(descriptor, "rb") as file:
        return file.read()


def write(path: Path, content: bytes) -> None:
    """Write a file that only this user reads and writes, in one step: a reader sees all of it or nothing. What stood
    there is replaced, whatever it was, and not followed. Raises OSError."""
    folder = os.open(path.parent, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)) if _RELATIVE else None
    name = f"{UNFINISHED}{secrets.token_hex(8)}"
    try:
        before, after = (name, path.name) if folder is not None else (str(path.with_name(name)), str(path))
        descriptor = os.open(before, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600, dir_fd=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
            _replace(before, after, folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(before, dir_fd=folder)
            raise
    finally:
        if folder is not None:
            os.close(folder)


def _replace(before: str, after: str, folder: int | None) -> None:
    try:
        os.replace(before, after, src_dir_fd=folder, dst_dir_fd=folder)
    except (IsADirectoryError, PermissionError):  # a folder, which is put aside, to be removed with what is unfinished
        os.rename(after, f"{before}-aside", src_dir_fd=folder, dst_dir_fd=folder)
        os.replace(before, after, src_dir_fd=folder, dst_dir_fd=folder)


def _writers(status: os.stat_result) -> str | None:
    """Other users who can write to a file with this status, as text; None if nobody can."""
    if not _HAS_OWNERS:
        return None
    if status.st_uid not in (user(), 0):
        return f"belongs to another user ({_user_name(status.st_uid)})"
    if status.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if status.st_mode & stat.S_IWGRP and not _is_group_of_one(status.st_gid):
        return f"can be written by its group ({_group_name(status.st_gid)})"
    return None


def _is_group_of_one(group: int) -> bool:
    """True if a group has no members but this user (or root)."""
    import grp
    import pwd

    if group == 0:
        return True
    try:
        found, own = grp.getgrgid(group), pwd.getpwuid(user())
    except KeyError:
        return False
    return own.pw_gid == group and found.gr_name == own.pw_name and set(found.gr_mem) <= {own.pw_name, "root"}


def _user_name(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group_name(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
