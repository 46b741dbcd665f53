"""Messages of the Debug Adapter Protocol: JSON objects, each after a header with its length in bytes."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import IO, Any, TypeAlias

Message: TypeAlias = dict[str, Any]

LARGEST = 64 << 20
"""The largest number of bytes of a message."""

LONGEST_LINE = 4096
"""The largest number of bytes of a header's line."""


class Malformed(Exception):
    """Input that is not a message. Where its end is unknown (`is_final`), nothing more can be read."""

    def __init__(self, reason: str, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


class Connection:
    """Two streams of bytes to a client. Messages may be written from several threads."""

    def __init__(self, reading: IO[bytes], writing: IO[bytes]) -> None:
        self._reading, self._writing = reading, writing
        self._lock = threading.Lock()
        self._written = 0

    def read(self) -> Message | None:
        """The next message; None where the client has gone. Raises Malformed."""
        length = None
        while True:
            line = self._reading.readline(LONGEST_LINE)
            if not line.endswith(b"\n"):
                if len(line) < LONGEST_LINE:
                    return None
                raise Malformed("a line of a header that does not end", is_final=True)
            line = line.strip()
            if not line:
                if length is None:
                    raise Malformed("a header without Content-Length", is_final=True)
                break
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                if not value.strip().isdigit() or int(value) > LARGEST:
                    raise Malformed(f"Content-Length is not a length up to {LARGEST}", is_final=True)
                length = int(value)
        body = self._reading.read(length)
        if len(body) < length:
            return None
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            raise Malformed("a message that is not JSON in UTF-8") from None
        if not isinstance(message, dict):
            raise Malformed("a message that is not a JSON object")
        return message

    def write(self, message: Message) -> None:
        """Send a message, with its number. What cannot be sent to a client that has gone is dropped."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._written += 1
            body = json.dumps({"seq": self._written, **message}, allow_nan=True).encode()
            self._writing.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self._writing.flush()
