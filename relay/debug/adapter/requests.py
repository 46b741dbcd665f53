"""Requests of clients: breakpoints, the stack, variables, moves.

A handler takes a request's arguments and returns the body of the response; an exception is the client's mistake, and an
error response. A request that moves the program sets `go`, and the adapter, which runs it, continues.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from relay.debug import places
from relay.debug.adapter.framing import Connection
from relay.debug.adapter.values import Place, Scope, Values, part_at, place_of, replace_part
from relay.debug.breakpoints import Breakpoint
from relay.debug.commands import Commands
from relay.debug.expressions import python_value
from relay.debug.session import Session
from relay.errors import FrontendError, RelayError
from relay.errors.diagnostic import Span

THREAD = 1

FILTERS = {
    "errors": ("Errors", "an error of the program, before the operation that fails", True),
    "nan": ("NaN and infinity", "the operation that makes the first one of finite numbers", False),
}

CAPABILITIES = {
    **dict.fromkeys(
        (
            *("supportsConfigurationDoneRequest", "supportsFunctionBreakpoints", "supportsConditionalBreakpoints"),
            *("supportsEvaluateForHovers", "supportsStepBack", "supportsSetVariable", "supportsRestartRequest"),
            *("supportsExceptionInfoRequest", "supportsDelayedStackTraceLoading", "supportsTerminateRequest"),
            *("supportsCompletionsRequest", "supportsSteppingGranularity", "supportsBreakpointLocationsRequest"),
            *("supportsVariableType", "supportsVariablePaging", "supportsLogPoints"),
        ),
        True,
    ),
    "exceptionBreakpointFilters": [
        {"filter": name, "label": label, "description": text, "default": default}
        for name, (label, text, default) in FILTERS.items()
    ],
}

LOOKING = ("type", "stats", "vars", "list", "where")
"""The terminal's commands that a console takes after a colon: they move nothing."""

Arguments = Mapping[str, Any]
Go = str | Callable[[], object]
"""The way to continue: "start", "end", "restart", "leave", or a function that moves the session."""


@attrs.define(eq=False)
class Wanted:
    """A breakpoint that the client wants, in every session of this run."""

    number: int
    file: str | None
    line: int | None
    function: str | None
    condition: str | None
    log: str | None = None
    made: Breakpoint | None = None


class Requests:
    """The state of a conversation, and the handlers of its requests: `on_` and the request's name."""

    def __init__(self, connection: Connection, defaults: Mapping[str, Any]) -> None:
        self.connection = connection
        self.defaults = defaults
        self.session: Session | None = None
        self.go: Go | None = None
        self.launched: Mapping[str, Any] | None = None
        self.interrupted = self.ending = False
        self.wanted: list[Wanted] = []
        self.filters = {name for name, (_, _, default) in FILTERS.items() if default}
        self.values = Values()
        self._sources: list[Any] = []
        self._numbers = 0
        self._first_line = 1
        self._lock = threading.RLock()

    def event(self, name: str, body: Mapping[str, Any] | None = None) -> None:
        """Tell the client of something."""
        self.connection.write({"type": "event", "event": name, **({"body": body} if body is not None else {})})

    # ---- beginning and end

    def on_initialize(self, arguments: Arguments) -> object:
        self._first_line = 1 if arguments.get("linesStartAt1", True) else 0
        return CAPABILITIES

    def on_attach(self, arguments: Arguments) -> object:
        raise FrontendError("there is nothing to attach to", help='"request": "launch", with a "program"')

    def on_launch(self, arguments: Arguments) -> object:
        if self.launched is not None:
            raise FrontendError("a program is launched already", help="restart it")
        given = {**self.defaults, **{k: v for k, v in arguments.items() if v is not None}}
        self.load(given)
        self.launched = given
        return None

    def load(self, given: Arguments) -> None:
        """Read what is launched. Raises RelayError or Refusal if it cannot be run."""
        raise NotImplementedError

    def on_configurationDone(self, arguments: Arguments) -> object:
        if self.launched is None:
            raise FrontendError("nothing is launched")
        self.go = "start"
        return None

    def on_restart(self, arguments: Arguments) -> object:
        if self.launched is None:
            raise FrontendError("nothing is launched")
        self.go = "restart"
        return None

    def on_terminate(self, arguments: Arguments) -> object:
        self.ending, self.interrupted, self.go = True, True, "end"
        return None

    def on_disconnect(self, arguments: Arguments) -> object:
        self.ending, self.interrupted, self.go = True, True, "leave"
        return None

    # ---- breakpoints

    def on_setBreakpoints(self, arguments: Arguments) -> object:
        source = arguments.get("source")
        if not isinstance(source, Mapping) or not isinstance(source.get("path") or source.get("name"), str):
            raise FrontendError("breakpoints are set in a source with a path")
        file = source.get("path") or source["name"]
        self._drop([w for w in self.wanted if w.line is not None and w.file == file])
        given = arguments.get("breakpoints")
        if given is None:
            given = [{"line": line} for line in arguments.get("lines") or ()]
        wanted = [
            Wanted(0, file, self._own_line(b), None, _text(b, "condition"), _text(b, "logMessage")) for b in given
        ]
        return {"breakpoints": [self._want(each) for each in wanted]}

    def on_setFunctionBreakpoints(self, arguments: Arguments) -> object:
        self._drop([w for w in self.wanted if w.line is None])
        given = arguments.get("breakpoints") or ()
        wanted = [Wanted(0, None, None, str(b.get("name")), _text(b, "condition")) for b in given]
        return {"breakpoints": [self._want(each) for each in wanted]}

    def on_setExceptionBreakpoints(self, arguments: Arguments) -> object:
        found = set(arguments.get("filters") or ())
        if unknown := found - FILTERS.keys():
            raise FrontendError(f"there is no filter {min(unknown)!r}", help=f"there are {', '.join(FILTERS)}")
        self.filters = found
        if self.session is not None:
            self.session.stops_at_non_finite = "nan" in found
        return None

    def on_breakpointLocations(self, arguments: Arguments) -> object:
        first, file = self._own_line(arguments), (arguments.get("source") or {}).get("path", "")
        last = self._own_line({"line": arguments.get("endLine", arguments.get("line"))})
        module = self._stopped_session().program.module
        found = [n for name, lines in places.lines(module).items() if name == file for n in lines]
        return {"breakpoints": [{"line": self._client_line(n)} for n in found if first <= n <= last]}

    def adopt(self, session: Session) -> None:
        """Make a session the one that is asked about, with the breakpoints that are wanted."""
        self.session = session
        session.listen = lambda: self.interrupted
        session.write = lambda text: self.event("output", {"category": "console", "output": f"{text}\n"})
        session.stops_at_non_finite = "nan" in self.filters
        for wanted in self.wanted:
            self.event("breakpoint", {"reason": "changed", "breakpoint": self._set(wanted)})

    def _want(self, wanted: Wanted) -> object:
        self._numbers += 1
        wanted.number = self._numbers
        self.wanted.append(wanted)
        return self._set(wanted)

    def _set(self, wanted: Wanted) -> dict[str, Any]:
        """Make a breakpoint in the session; what it is to the client."""
        found: dict[str, Any] = {"id": wanted.number, "verified": False}
        if wanted.line is not None:
            found["line"] = self._client_line(wanted.line)
        session, function = self.session, wanted.function or ""
        if session is None:
            return {**found, "message": "checked when a decorated function is called"}
        operator = function.removeprefix("op ").strip() if function.startswith("op ") else None
        try:
            if wanted.line is not None and not _is_inside(session, wanted):
                raise FrontendError("no decorated function of this program is here")
            wanted.made = session.breakpoint(
                wanted.line,
                file=wanted.file,
                function=None if operator else wanted.function,
                operator=operator,
                when=wanted.condition,
                log=wanted.log,
            )
        except RelayError as error:
            wanted.made = None
            return {**found, "message": error.message}
        line = {} if wanted.made.line is None else {"line": self._client_line(wanted.made.line)}
        return {**found, "verified": True, **line}

    def _drop(self, some: Sequence[Wanted]) -> None:
        for wanted in some:
            self.wanted.remove(wanted)
            if wanted.made is not None and self.session is not None and wanted.made in self.session.breakpoints:
                self.session.remove(wanted.made)

    # ---- looking

    def on_threads(self, arguments: Arguments) -> object:
        return {"threads": [{"id": THREAD, "name": "program"}]}

    def on_stackTrace(self, arguments: Arguments) -> object:
        session = self._stopped_session()
        start, levels = _number(arguments, "startFrame"), _number(arguments, "levels")
        calls = session.calls(start, start + levels if levels else None)
        frames = [self._frame(start + i, name, span) for i, (name, span) in enumerate(calls)]
        return {"stackFrames": frames, "totalFrames": session.depth}

    def on_source(self, arguments: Arguments) -> object:
        number = arguments.get("sourceReference") or (arguments.get("source") or {}).get("sourceReference")
        if not isinstance(number, int) or not 0 < number <= len(self._sources):
            raise FrontendError(f"there is no source {number!r}")
        return {"content": self._sources[number - 1].text, "mimeType": "text/x-python"}

    def on_scopes(self, arguments: Arguments) -> object:
        session, level = self._selected_frame(arguments)
        if session.finished:
            return {"scopes": []}
        own, every = self.values.number(Scope(level)), self.values.number(Scope(level, everything=True))
        return {
            "scopes": [
                _scope("Variables", own, False, "locals"),
                _scope("Temporaries", every, True, "registers"),
            ]
        }

    def on_variables(self, arguments: Arguments) -> object:
        found = self.values.find(arguments.get("variablesReference"))
        if found is None:
            raise FrontendError("these variables belong to an earlier stop")
        if isinstance(found, Scope):
            inside = self._at(found.frame).scope(temporaries=found.everything)
            return {"variables": self.values.variables(inside, found)}
        kind, start, count = arguments.get("filter"), _number(arguments, "start"), _number(arguments, "count")
        return {"variables": self.values.parts(found, kind, start, count)}

    def on_evaluate(self, arguments: Arguments) -> object:
        session, level = self._selected_frame(arguments)
        text = str(arguments.get("expression", "")).strip()
        if arguments.get("context") == "repl" and text.startswith(":"):
            word = text[1:].split(" ")[0]
            if word not in LOOKING:
                raise FrontendError(f"there is no command {text!r}", help=f"there are :{', :'.join(LOOKING)}")
            return {"result": Commands(session).run(text[1:]), "variablesReference": 0}
        scope = session.scope()
        place = Place(level, text, (), text) if text in scope else None
        value = scope[text].value if text in scope else session.evaluate(text)
        found = self.values.protocol_variable(text, value, place)
        kept = ("type", "variablesReference", "indexedVariables", "namedVariables")
        return {"result": found["value"], **{k: found[k] for k in kept if k in found}}

    def on_setVariable(self, arguments: Arguments) -> object:
        found = self.values.find(arguments.get("variablesReference"))
        name, session = str(arguments.get("name")), self._stopped_session()
        if found is None:
            raise FrontendError("these variables belong to an earlier stop")
        place = place_of(found, name)
        if place is None:
            raise FrontendError(f"{name} cannot be changed here", help="change the variable that it is a part of")
        self._at(place.frame)
        value = session.new_value(str(arguments.get("value", "")))
        if place.path:
            value = replace_part(python_value(session.scope()[place.variable].value), place.path, value)
        session.set(place.variable, value)
        held: Any = python_value(session.scope()[place.variable].value)
        shown = self.values.protocol_variable(name, part_at(held, place.path), place)
        return {k: shown[k] for k in ("value", "type", "variablesReference")}

    def on_completions(self, arguments: Arguments) -> object:
        session, _ = self._selected_frame(arguments)
        text = str(arguments.get("text", ""))[: max(_number(arguments, "column") - 1, 0)]
        word = next((text[i:] for i in range(len(text)) if text[i:].isidentifier()), "")
        names = [] if session.finished else [n for n in session.scope() if n.startswith(word)]
        return {"targets": [{"label": n, "length": len(word), "type": "variable"} for n in names]}

    def on_exceptionInfo(self, arguments: Arguments) -> object:
        error = self._stopped_session().stop.error
        if error is None:
            raise FrontendError("the program is not stopped at an error")
        name = type(error).__name__
        details = {"message": error.message, "typeName": name, "stackTrace": str(error)}
        return {"exceptionId": name, "description": error.message, "breakMode": "always", "details": details}

    # ---- moving

    def on_continue(self, arguments: Arguments) -> object:
        self.go = self._stopped_session().resume
        return {"allThreadsContinued": True}

    def on_next(self, arguments: Arguments) -> object:
        session = self._stopped_session()
        self.go = session.operation if arguments.get("granularity") == "instruction" else session.over
        return None

    def on_stepIn(self, arguments: Arguments) -> object:
        session = self._stopped_session()
        self.go = session.operation if arguments.get("granularity") == "instruction" else session.step
        return None

    def on_stepOut(self, arguments: Arguments) -> object:
        self.go = self._stopped_session().out
        return None

    def on_stepBack(self, arguments: Arguments) -> object:
        session = self._stopped_session()
        self.go = session.operation_back if arguments.get("granularity") == "instruction" else session.back_over
        return None

    def on_reverseContinue(self, arguments: Arguments) -> object:
        self.go = self._stopped_session().resume_back
        return None

    def on_pause(self, arguments: Arguments) -> object:
        self.interrupted = True
        return None

    # ---- helpers

    def _stopped_session(self) -> Session:
        if self.session is None:
            raise FrontendError("no decorated function is being run")
        return self.session

    def _selected_frame(self, arguments: Arguments) -> tuple[Session, int]:
        level = max(_number(arguments, "frameId") - 1, 0)
        return self._at(level), level

    def _at(self, level: int) -> Session:
        """The session, with a frame selected: the innermost is 0."""
        session = self._stopped_session()
        if not session.finished:
            session.select(level)
        return session

    def _frame(self, level: int, name: str, span: Span | None) -> dict[str, Any]:
        frame: dict[str, Any] = {"id": level + 1, "name": name, "line": 0, "column": 0}
        if span is None:
            return {**frame, "presentationHint": "subtle"}
        frame["line"] = self._client_line(span.line)
        file = Path(span.source.filename)
        if file.is_file():
            return {**frame, "source": {"name": file.name, "path": str(file.absolute())}}
        if span.source not in self._sources:
            self._sources.append(span.source)
        return {**frame, "source": {"name": str(file), "sourceReference": self._sources.index(span.source) + 1}}

    def _own_line(self, at: Arguments) -> int:
        line = at.get("line")
        if not isinstance(line, int):
            raise FrontendError(f"a line is a number, found {line!r}")
        return line + 1 - self._first_line

    def _client_line(self, line: int) -> int:
        return line - 1 + self._first_line


def _scope(name: str, number: int, expensive: bool, hint: str) -> dict[str, Any]:
    return {"name": name, "variablesReference": number, "expensive": expensive, "presentationHint": hint}


def _text(arguments: Arguments, name: str) -> str | None:
    """A text that is not empty."""
    found = arguments.get(name)
    return found.strip() or None if isinstance(found, str) else None


def _number(arguments: Arguments, name: str) -> int:
    found = arguments.get(name) or 0
    if not isinstance(found, int) or found < 0:
        raise FrontendError(f"{name} is a number, found {found!r}")
    return found


def _is_inside(session: Session, wanted: Wanted) -> bool:
    """True if a line is one of a function of the program."""
    probe = Breakpoint(0, file=wanted.file)
    for function in places.functions(session.program.module):
        if function.span is None or not probe.is_file(function.span.source.filename):
            continue
        lines = [line for found in places.lines_of(function).values() for line in found]
        if lines and wanted.line is not None and min(function.span.line, *lines) <= wanted.line <= max(lines):
            return True
    return False
