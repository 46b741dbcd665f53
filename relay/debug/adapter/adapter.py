"""The debug adapter: a conversation with an editor, and the program that it is about.

Two threads: one reads messages; the other, the main one, runs the program, or waits for messages where it stands. While
it runs, the reader answers itself what changes no variables (breakpoints, `pause`, `terminate`), and refuses the rest.

What is launched is a call of a decorated function, or a script, whose calls of decorated functions are debugged.
"""

from __future__ import annotations

import _thread
import contextlib
import io
import os
import queue
import runpy
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relay.api.differentiation import grad
from relay.api.function import RelayFunction
from relay.debug.adapter.framing import Connection, Malformed, Message
from relay.debug.adapter.requests import THREAD, Go, Requests
from relay.debug.programs import STAGES
from relay.debug.session import MEMORY, Session, step
from relay.errors import FrontendError, RelayError
from relay.support import python_mode

WHILE_RUNNING = {
    *("setBreakpoints", "setFunctionBreakpoints", "setExceptionBreakpoints", "breakpointLocations", "threads"),
    *("pause", "terminate", "disconnect", "source"),
}
"""The requests that are answered while the program runs."""

REASONS = {
    **dict.fromkeys(("line", "operation", "return", "beginning"), "step"),
    **dict.fromkeys(("error", "nan"), "exception"),
    "breakpoint": "breakpoint",
    "interrupt": "pause",
    "end": "pause",
}

FORWARD = ("resume", "over", "step", "out", "operation")
INTERRUPTED = 130
"""The exit code of a program that Ctrl-C has ended."""


class SessionEnd(BaseException):
    """The client ends the program, or restarts it: the script is left from within."""


class Adapter(Requests):
    """A conversation over two streams. `read_call(launched)` gives the function and arguments of a launch.

    What the client does not say in `launch` is in `defaults`.
    """

    def __init__(self, connection: Connection, defaults: Mapping[str, Any], read_call: Any) -> None:
        super().__init__(connection, defaults)
        self._read_call = read_call
        self._inbox: queue.SimpleQueue[Message | Malformed | None] = queue.SimpleQueue()
        self._is_running = self._is_in_script = False
        self._call: tuple[RelayFunction, dict[str, Any]] | None = None
        self._stops_next = False

    def serve(self) -> bool:
        """Talk until the client leaves (False), or Ctrl-C (True)."""
        threading.Thread(target=self._read, name="relay-dap", daemon=True).start()
        try:
            go = self._converse()
            while go in ("start", "restart"):
                if go == "restart":
                    self._load_again()
                go = self._debug()
        except KeyboardInterrupt:
            self.event("terminated")
            return True
        return False

    # ---- messages

    def _read(self) -> None:
        while True:
            message: Message | Malformed | None
            try:
                message = self.connection.read()
            except Malformed as error:
                message = error
            except (OSError, ValueError):
                message = None
            with self._lock:
                if self._is_running:
                    self._answer(message)
                    if self.ending and self._is_in_script:
                        _thread.interrupt_main()
                else:
                    self._inbox.put(message)
            if message is None or (isinstance(message, Malformed) and message.is_final):
                return

    def _converse(self) -> Go:
        """Answer messages until one continues the program."""
        self.go = None
        while self.go is None:
            self._answer(self._inbox.get())
        return self.go

    @contextlib.contextmanager
    def _running_program(self) -> Iterator[None]:
        """While the program runs, the reader answers."""
        with self._lock:
            self.go = None
            self._is_running = True
            while not self._inbox.empty():
                self._answer(self._inbox.get())
        try:
            yield
        finally:
            with self._lock:
                self._is_running = False

    def _answer(self, message: Message | Malformed | None) -> None:
        if message is None or (isinstance(message, Malformed) and message.is_final):
            if message is not None:
                self._refuse({}, str(message))
            self.on_disconnect({})
            return
        if isinstance(message, Malformed):
            self._refuse({}, str(message))
            return
        command, arguments = message.get("command"), message.get("arguments") or {}
        handler = getattr(self, f"on_{command}", None) if isinstance(command, str) else None
        if message.get("type") != "request" or not isinstance(command, str):
            self._refuse(message, "a message that is not a request")
        elif not isinstance(arguments, Mapping):
            self._refuse(message, f"the arguments of {command} are no object")
        elif handler is None:
            self._refuse(message, f"the request {command!r} is not supported")
        elif self._is_running and command not in WHILE_RUNNING:
            self._refuse(message, "the program is running; pause it first")
        else:
            self._respond(message, handler, arguments)

    def _respond(self, message: Message, handler: Any, arguments: Mapping[str, Any]) -> None:
        try:
            body = handler(arguments)
        except RelayError as error:
            place = f"{error.span}: " if error.span is not None and message["command"] == "launch" else ""
            self._refuse(message, f"{place}{error.message}" + (f"; {error.help}" if error.help else ""))
        except Exception as error:
            self._refuse(message, " ".join(f"{type(error).__name__}: {error}".split()))
        else:
            response = {"type": "response", "request_seq": message.get("seq", 0), "success": True}
            self.connection.write({**response, "command": message["command"], **({"body": body} if body else {})})
            if message["command"] == "launch":
                self.event("initialized")

    def _refuse(self, message: Message, reason: str) -> None:
        """An error response, which the client shows."""
        error = {"id": 1, "format": reason.replace("{", "(").replace("}", ")"), "showUser": True}
        known = {"request_seq": message.get("seq", 0), "command": str(message.get("command", ""))}
        self.connection.write(
            {"type": "response", "success": False, **known, "message": reason, "body": {"error": error}}
        )

    # ---- what is launched

    def load(self, given: Mapping[str, Any]) -> None:
        """The call that is launched, before its first line; of a script only that it can be read."""
        program = given.get("program")
        if not isinstance(program, str):
            raise FrontendError('launch needs "program", the path of a file')
        if given.get("stage") not in (None, *STAGES):
            raise FrontendError(f"there is no stage {given['stage']!r}")
        if isinstance(given.get("cwd"), str):
            try:
                os.chdir(given["cwd"])
            except OSError as error:
                raise FrontendError(f"cannot go to {given['cwd']}: {error.strerror}") from None
        if given.get("function") is None:
            if not os.path.isfile(program):
                raise FrontendError(f"there is no file {program}")
            return
        with self._output():
            function, arguments = self._read_call(program, str(given["function"]), given.get("args"))
            self._call = (grad(function) if given.get("grad") else function), arguments
            self.adopt(self._session(*self._call, given))

    def _session(self, function: RelayFunction, arguments: Any, given: Mapping[str, Any]) -> Session:
        memory = given.get("memory")
        size = memory << 20 if isinstance(memory, int) else MEMORY
        if isinstance(arguments, Mapping):
            return step(function, stage=given.get("stage"), memory=size, **arguments)
        return step(function, *arguments[0], stage=given.get("stage"), memory=size, **arguments[1])

    def _load_again(self) -> None:
        assert self.launched is not None
        self.ending = self.interrupted = False
        self.session = None
        try:
            self.load(self.launched)
        except Exception as error:
            self._send_output("stderr", f"{error}\n")

    def _debug(self) -> Go:
        """Run what is launched to its end, and what the client wants then."""
        assert self.launched is not None
        self.ending = self.interrupted = False
        with self._output():
            code, go = self._debug_script() if self.launched.get("function") is None else self._debug_call()
        if go in ("restart", "leave"):
            return go
        self.session = None
        self.values.clear()
        self.event("exited", {"exitCode": code})
        self.event("terminated")
        return self._converse_after_end()

    def _converse_after_end(self) -> Go:
        go: Go = "end"
        while go not in ("restart", "leave"):
            go = self._converse()
        return go

    def _debug_call(self) -> tuple[int, Go]:
        session = self.session
        if session is None:  # it could not be loaded again
            return 1, "end"
        go = self._drive(session, bool(self.launched and self.launched.get("stopOnEntry")))
        if go == "failed":
            self._send_output("stderr", f"{session.error}\n")
            return 1, "end"
        if go == "returned":
            self._send_output("console", f"{session.program.function.__name__} returned {session.result!r}\n")
            return 0, "end"
        return (INTERRUPTED if go == "interrupted" else 0), go

    def _debug_script(self) -> tuple[int, Go]:
        assert self.launched is not None
        program, given = str(self.launched["program"]), self.launched.get("args")
        arguments = [str(a) for a in given] if isinstance(given, Sequence) and not isinstance(given, str) else []
        self._stops_next = bool(self.launched.get("stopOnEntry"))
        before = sys.argv, sys.path[:]
        sys.argv, sys.path[:0] = [program, *arguments], [os.path.dirname(os.path.abspath(program))]
        code = 0
        try:
            with python_mode.enter(_CallsInDebugger(self)), self._running_program():
                self._go_on_in_script()
                try:
                    runpy.run_path(program, run_name="__main__")
                finally:
                    self._is_in_script = False
        except SessionEnd:
            pass
        except KeyboardInterrupt:
            code = 0 if self.ending else INTERRUPTED
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
            if isinstance(error.code, str):
                self._send_output("stderr", f"{error.code}\n")
        except RelayError as error:
            self._send_output("stderr", f"{error}\n")
            code = 1
        except BaseException as error:
            self._send_output("stderr", "".join(traceback.format_exception(error.with_traceback(_below_runpy(error)))))
            code = 1
        finally:
            sys.argv, sys.path[:] = before
        go = self.go if self.ending or self.go == "restart" else None
        return code, go if go is not None else "end"

    # ---- a call in the debugger

    def call(self, function: RelayFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """A call of the script's, in the debugger; what it returns. Raises what it raises, and Ended."""
        assert self.launched is not None
        self._is_in_script = False
        session = self._session(function, (arguments, keywords), self.launched)
        with self._lock:
            self.adopt(session)
            self._is_running = False
        go = self._drive(session, self._stops_next)
        self.session = None
        if isinstance(go, str) and go in ("returned", "failed"):
            self._go_on_in_script()
        if go == "returned":
            return session.result
        if go == "failed":
            assert session.error is not None
            raise session.error
        self.go = go
        raise KeyboardInterrupt if go == "interrupted" else SessionEnd

    def _go_on_in_script(self) -> None:
        """Python runs from here on, which no session can stop."""
        with self._lock:
            self._is_running = True
            while not self._inbox.empty():
                self._answer(self._inbox.get())
            self._is_in_script = True
        if self.ending:
            raise SessionEnd

    def _drive(self, session: Session, at_entry: bool) -> Go:
        """Run a session as the client requests: to the end ("returned"), an error ("failed"), Ctrl-C
        ("interrupted"), or until it is ended otherwise ("end", "restart", "leave")."""
        reason, found = "entry", session.at_breakpoint()
        if session.error is not None:
            reason, at_entry = "exception", True
        elif found is not None and not at_entry:
            reason, at_entry = "breakpoint", True
        elif self.interrupted and not self.ending:
            reason, at_entry = "pause", True
        move: Any = session.resume
        while True:
            if not at_entry:
                self.interrupted = self.ending
                with self._running_program():
                    stop = move()
                self._flush()
                if self.ending:
                    return self.go if self.go in ("end", "leave") else "end"
                if stop.reason == "end" and not (self.launched or {}).get("stopOnExit"):
                    self._stops_next = getattr(move, "__name__", "") != "resume"
                    return "returned"
                if stop.reason == "interrupt" and not self.interrupted:
                    return "interrupted"
                if stop.reason == "error" and "errors" not in self.filters:
                    return "failed"
                reason, found = REASONS[stop.reason], stop.breakpoint
            at_entry = False
            self._report_stop(session, reason, found)
            go = self._converse()
            self.values.clear()
            if isinstance(go, str):
                return "end" if go == "start" else go
            move, name = go, getattr(go, "__name__", "")
            if name in FORWARD and session.finished:
                self._stops_next = name != "resume"
                return "returned"
            if name in FORWARD and session.error is not None and session.stop.reason == "error":
                return "failed"
            self.event("continued", {"threadId": THREAD, "allThreadsContinued": True})

    def _report_stop(self, session: Session, reason: str, found: object) -> None:
        stop = session.stop
        hits = [w.number for w in self.wanted if w.made is not None and w.made is found]
        body: dict[str, Any] = {"reason": reason, "threadId": THREAD, "allThreadsStopped": True}
        if stop.error is not None:
            body.update(description=stop.error.message, text=stop.error.message)
        elif stop.reason in ("beginning", "end"):
            body["description"] = "the record begins" if stop.reason == "beginning" else "the call has returned"
        self.event("stopped", {**body, **({"hitBreakpointIds": hits} if hits else {})})

    # ---- output

    def _send_output(self, category: str, text: str) -> None:
        self.event("output", {"category": category, "output": text})

    def _flush(self) -> None:
        sys.stdout.flush()

    @contextlib.contextmanager
    def _output(self) -> Iterator[None]:
        """A context in which the program's output goes to the client."""
        out, err = _Output(self, "stdout"), _Output(self, "stderr")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                yield
            finally:
                out.flush()
                err.flush()


class _CallsInDebugger(python_mode.Mode):
    """Calls of decorated functions go through the debugger; in it, they are as ever."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def call(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Debug a call."""
        __tracebackhide__ = True
        with python_mode.no_mode():
            return self._adapter.call(function, arguments, keywords)


class _Output(io.TextIOBase):
    """A stream whose lines are events."""

    def __init__(self, adapter: Adapter, category: str) -> None:
        self._adapter, self._category = adapter, category
        self._waiting = ""

    def writable(self) -> bool:
        """As of a stream."""
        return True

    def write(self, text: str) -> int:
        """Send the lines that are complete."""
        lines, end, rest = (self._waiting + text).rpartition("\n")
        if end:
            self._adapter._send_output(self._category, lines + end)
        self._waiting = rest
        return len(text)

    def flush(self) -> None:
        """Send the rest."""
        if self._waiting:
            self._adapter._send_output(self._category, self._waiting)
            self._waiting = ""


def _below_runpy(error: BaseException) -> Any:
    """The part of a traceback that is the script's."""
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        found = found.tb_next
    return found


def serve_port(port: int, defaults: Mapping[str, Any], read_call: Any) -> None:
    """Talk to one client after another at a port of this machine, until Ctrl-C. Port 0 means any free one, which is
    printed on standard error. Raises OSError for a port that is taken."""
    with socket.create_server(("127.0.0.1", port)) as server, contextlib.suppress(KeyboardInterrupt):
        print(f"listening on 127.0.0.1:{server.getsockname()[1]}", file=sys.stderr, flush=True)
        while _serve_client(server.accept()[0], defaults, read_call):
            pass


def _serve_client(client: socket.socket, defaults: Mapping[str, Any], read_call: Any) -> bool:
    """Talk to a client; True if another one may come. That it goes in the middle of a message is not an error."""
    reading, writing = client.makefile("rb"), client.makefile("wb")
    try:
        return not Adapter(Connection(reading, writing), defaults, read_call).serve()
    finally:
        for end in (writing.close, lambda: client.shutdown(socket.SHUT_RDWR), reading.close, client.close):
            with contextlib.suppress(OSError):
                end()  # the shutdown, so that the thread that reads waits no longer


def serve_standard_streams(defaults: Mapping[str, Any], read_call: Any) -> None:
    """Talk over standard input and output, until Ctrl-C. What else is printed, by native code, goes to standard
    error."""
    reading, writing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    with contextlib.suppress(KeyboardInterrupt):
        Adapter(Connection(reading, writing), defaults, read_call).serve()
