"""A scripted client of the language server: it starts `relay lsp` and talks to it over standard input and output."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

PATIENCE = 120
"""How many seconds an answer may take, also on a busy machine."""


class Client:
    """The client's side of the conversation."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._number = 0
        self.notifications: list[dict[str, Any]] = []
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline().strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if length == 0:
                break
            self._messages.put(json.loads(stream.read(length)))
        self._messages.put(None)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message as it is."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.send({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> int:
        """Send a request; returns its number."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        return self._number

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request, as it was sent."""
        while True:
            message = self._next()
            if message.get("id") == number and "method" not in message:
                return message
            self.notifications.append(message)

    def request(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        found = self.answer(self.ask(method, **params))
        assert "error" not in found, found["error"]
        return found["result"]

    def _next(self) -> dict[str, Any]:
        message = self._messages.get(timeout=PATIENCE)
        assert message is not None, "the server has ended"
        return message

    def diagnostics(self, uri: str, version: int) -> list[dict[str, Any]]:
        """The diagnostics that are published for a version of a document."""
        while True:
            for message in self.notifications:
                told = message.get("params", {})
                is_published = message.get("method") == "textDocument/publishDiagnostics"
                if is_published and told["uri"] == uri and told.get("version") == version:
                    return told["diagnostics"]
            self.notifications.append(self._next())

    def open(self, uri: str, text: str, version: int = 1) -> None:
        """Open a document."""
        document = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", textDocument=document)

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        """Change a document."""
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", textDocument=document, contentChanges=list(changes))

    def at(self, method: str, uri: str, line: int, character: int) -> Any:
        """What the server says of a position, as `textDocument/hover`."""
        place = {"line": line, "character": character}
        return self.request(f"textDocument/{method}", textDocument={"uri": uri}, position=place)

    def end(self) -> int:
        """Shut the server down; its exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self._process.wait(PATIENCE)


@contextlib.contextmanager
def language_server(root: str | None = None) -> Iterator[Client]:
    """A server with a client that has greeted it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "relay", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    errors = threading.Thread(target=process.stderr.read, daemon=True)  # so that it never waits
    errors.start()
    client = Client(process)
    try:
        client.request("initialize", processId=None, rootUri=root, capabilities={})
        client.notify("initialized")
        yield client
    finally:
        process.kill()
        process.wait()
        for thread in (client.reading, errors):
            thread.join(PATIENCE)
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def place_of(text: str, mark: str) -> tuple[int, int]:
    """Line and character, in UTF-16 units, at which a piece of a text begins for the first time."""
    before = text[: text.index(mark)].replace("\r\n", "\n")
    line = before.split("\n")[-1]
    return before.count("\n"), len(line.encode("utf-16-le")) // 2
