"""The texts of files that are read, which may be of anyone."""

from __future__ import annotations

import errno
import io
import os
import stat
import tokenize

LARGEST_TEXT = 64 * 2**20
"""Files of more bytes than this are not read."""


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file. Raises OSError for large files and what is not a plain one (a pipe would never end)."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise OSError(None, "it is not a plain file")
    with open(descriptor, "rb") as file:
        content = file.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise OSError(None, f"it has more than {LARGEST_TEXT >> 20} MiB")
    return content


def read_source(path: str | os.PathLike[str]) -> str:
    """The text of a Python file, in the encoding that it declares. Raises OSError, UnicodeDecodeError, SyntaxError."""
    content = io.BytesIO(read_bytes(path))
    encoding, _ = tokenize.detect_encoding(content.readline)
    content.seek(0)
    try:
        with io.TextIOWrapper(content, encoding) as file:
            return file.read()
    except LookupError as error:  # one that is not of text
        raise SyntaxError(str(error)) from None
    except UnicodeDecodeError:
        raise
    except ValueError as error:  # of a codec
        raise SyntaxError(f"{encoding}: {error}") from None
