"""A client of the Debug Adapter Protocol, for tests: it sends requests and waits for what comes back."""

from __future__ import annotations

import json
import queue
import threading
from typing import Any, BinaryIO

TIMEOUT = 60.0


class Client:
    """Talks over two streams. Events are kept until they are waited for."""

    def __init__(self, reading: BinaryIO, writing: BinaryIO) -> None:
        self._reading, self._writing = reading, writing
        self._inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._events: list[dict[str, Any]] = []
        self._sent = 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while header := self._reading.readline():
            self._reading.readline()
            self._inbox.put(json.loads(self._reading.read(int(header.split(b":")[1]))))
        self._inbox.put(None)

    def close(self) -> None:
        """Wait for the end of what the other side says."""
        self._thread.join(TIMEOUT)

    def send_bytes(self, text: bytes) -> None:
        """Send anything."""
        self._writing.write(text)
        self._writing.flush()

    def send(self, message: Any) -> None:
        """Send a message as it is."""
        body = json.dumps(message).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def start(self, command: str, **arguments: Any) -> int:
        """Send a request; its number."""
        self._sent += 1
        self.send({"seq": self._sent, "type": "request", "command": command, "arguments": arguments})
        return self._sent

    def receive(self) -> dict[str, Any] | None:
        """The next message; None where the other side has gone."""
        return self._inbox.get(timeout=TIMEOUT)

    def response(self, number: int) -> dict[str, Any]:
        """The response to a request."""
        while True:
            message = self.receive()
            assert message is not None, "the adapter has gone"
            if message["type"] == "response" and message["request_seq"] == number:
                return message
            self._events.append(message)

    def request(self, command: str, **arguments: Any) -> Any:
        """The body of the response to a request, which succeeds."""
        found = self.response(self.start(command, **arguments))
        assert found["success"], found
        return found.get("body")

    def refused(self, command: str, **arguments: Any) -> str:
        """The message of the response to a request that fails."""
        found = self.response(self.start(command, **arguments))
        assert not found["success"], found
        assert "Traceback" not in found["message"]
        return str(found["message"])

    def event(self, name: str) -> Any:
        """The body of the next event of this name; those before it are kept."""
        for position, message in enumerate(self._events):
            if message.get("event") == name:
                return self._events.pop(position).get("body")
        while True:
            message = self.receive()
            assert message is not None, "the adapter has gone"
            if message.get("event") == name:
                return message.get("body")
            self._events.append(message)

    def output(self) -> str:
        """What the events have said so far that nobody has waited for."""
        found = [m["body"]["output"] for m in self._events if m.get("event") == "output"]
        self._events = [m for m in self._events if m.get("event") != "output"]
        return "".join(found)

    def move(self, command: str, **arguments: Any) -> Any:
        """Go on, until the program stops; the event's body."""
        self.request(command, threadId=1, **arguments)
        return self.event("stopped")

    def place(self) -> tuple[str, int]:
        """The function and line where the program stands."""
        frame = self.request("stackTrace", threadId=1)["stackFrames"][0]
        return frame["name"], frame["line"]

    def variables(self, frame: int = 1) -> dict[str, dict[str, Any]]:
        """The variables of a frame by name."""
        scope = self.request("scopes", frameId=frame)["scopes"][0]
        found = self.request("variables", variablesReference=scope["variablesReference"])["variables"]
        return {v["name"]: v for v in found}

    def parts(self, variable: dict[str, Any], **paging: Any) -> dict[str, str]:
        """The parts of a variable: name and value."""
        number = variable["variablesReference"]
        found = self.request("variables", variablesReference=number, **paging)["variables"]
        return {v["name"]: v["value"] for v in found}
