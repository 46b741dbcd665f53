"""The step debugger: one call of a decorated function, stopped between any two steps of the interpreter.

    session = relay.debug.step(f, x)
    session.breakpoint(line=12, when="loss > 10.0")
    session.resume()
    session.variables["loss"], session.evaluate("x.mean()"), session.type("x @ w")
    session.back()
    session.set("rate", 0.01)
    session.resume(); session.result

A line is stopped at before it is run. What computes nothing at run time, `pair = (x, y)` or `total = 0.0`, has no stop.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from relay.api.function import RelayFunction
from relay.debug import places
from relay.debug.breakpoints import Breakpoint, Condition, NonFinite, applied_operator
from relay.debug.conditions import Conditions
from relay.debug.expressions import Expressions, assigned_values, not_defined, python_value
from relay.debug.log_messages import expressions_in, log_text
from relay.debug.notebook import session_html
from relay.debug.places import Point
from relay.debug.programs import Program, program_of
from relay.debug.recording import Recording
from relay.debug.statistics import Statistics, statistics_of
from relay.errors import ExecutionError, FrontendError, RelayError
from relay.errors.diagnostic import Span
from relay.eval.backtrace import Call, backtrace_of
from relay.eval.frames import Frame
from relay.eval.values import Closure
from relay.eval.variables import Variables, own_variables, variable_lines, variables
from relay.ir.expr import Block

MEMORY = 256 << 20
"""The bytes that a recording takes by default."""

SHOWN_CALLS = 60
"""The number of calls that `where` shows."""

_REASONS = {
    "error": "error",
    "nan": "not finite",
    "breakpoint": "breakpoint",
    "interrupt": "interrupted",
    "return": "returned to",
    "beginning": "the record begins",
}


@attrs.frozen
class Stop:
    """The stop of a session: `reason` is "line", "operation", "breakpoint", "return", "end", "error", "nan",
    "interrupt" or "beginning" (of the recording)."""

    reason: str
    function: str = ""
    span: Span | None = None
    breakpoint: Breakpoint | None = None
    error: RelayError | None = None

    @property
    def line(self) -> int | None:
        """The line of the user's file."""
        return None if self.span is None else self.span.line

    def __str__(self) -> str:
        if self.reason == "end":
            return "the call has returned"
        text = _REASONS.get(self.reason, "")
        if self.breakpoint is not None:
            text = str(self.breakpoint)
        where = f"in {self.function}"
        if self.span is not None:
            line = self.span.source.line(self.span.line).strip()
            where = f"{self.span.source.filename}:{self.span.line}, {where}: {line}"
        said = f"\n{self.error.message}" if self.error is not None else ""
        return (f"{text}: {where}" if text else where) + said


class _ConditionError(Exception):
    """The condition of a breakpoint cannot be computed where the program stands."""

    def __init__(self, breakpoint: Breakpoint, error: ExecutionError) -> None:
        self.breakpoint, self.error = breakpoint, error


class Session:
    """A call that is debugged. Make one with `relay.debug.step`."""

    def __init__(self, program: Program, memory: int = MEMORY) -> None:
        if isinstance(memory, bool) or not isinstance(memory, int) or memory < 0:
            raise FrontendError(f"the memory of a recording is a number of bytes, found {memory!r}")
        self.program = program
        self.breakpoints: list[Breakpoint] = []
        self.error: RelayError | None = None
        """The error of the last step; the program is still before it."""
        self._recording = Recording(memory, program.sizes, program.names)
        self._expressions = Expressions(program.definitions)
        self._conditions = Conditions(program, self._expressions)
        self._points: dict[Block, tuple[Point, ...]] = {}
        self.listen: Callable[[], bool] = lambda: False
        """Asked between two steps: whether the program is to stop, as another thread wants it."""
        self.write: Callable[[str], object] = print
        """Takes the messages of breakpoints that do not stop."""
        self.stops_at_non_finite = False
        """True if the program stops before an operation that makes a NaN or infinity from finite numbers."""
        self._passed = -1  # the step at which it has stopped for that
        self._selected = 0
        self._numbers = 0
        self._recording.enter(Closure(program.module.main, {}, program.module), program.arguments)
        self.stop = Stop("line")
        if not self._begins_line():
            self._run(self._begins_line)
        self._recording.begin()
        self._stop_at("error" if self.error is not None else "line")

    # ---- moving

    def step(self) -> Stop:
        """Go on to the next line, of this function or of one that it calls, or that called it."""
        return self._run(self._begins_line)

    def over(self) -> Stop:
        """Go on to the next line of this function, or of its caller when it returns."""
        return self._run(self._not_inside(self._begins_line))

    def out(self) -> Stop:
        """Go on until this function has returned."""
        depth = len(self._recording.frames)
        return self._run(lambda: len(self._recording.frames) < depth, "return")

    def operation(self) -> Stop:
        """Run one operation: a binding of the program, which is less than a line."""
        return self._run(lambda: True, "operation")

    def resume(self) -> Stop:
        """Go on to the next breakpoint, error, or the end."""
        return self._run(lambda: False)

    def run_to(self, line: int, file: str | None = None) -> Stop:
        """Go on to a line, or a breakpoint before it."""
        target = Breakpoint(0, self._line_with_code(line, file), file)
        return self._run(lambda: target.is_at(self._top_frame, self._point, self._begins_line(), self._begins_call()))

    def back(self) -> Stop:
        """Take back what was run since the line before, of this function or of one that it called, or its caller."""
        return self._rewind(self._begins_line, "line")

    def back_over(self) -> Stop:
        """As `back`, but not into functions that this one called."""
        return self._rewind(self._not_inside(self._begins_line), "line")

    def operation_back(self) -> Stop:
        """Take one operation back."""
        return self._rewind(lambda: True, "operation")

    def resume_back(self) -> Stop:
        """Go back to the last breakpoint, or to where the recording begins."""
        return self._rewind(lambda: False, "line")

    # ---- breakpoints

    def breakpoint(
        self,
        line: int | None = None,
        *,
        file: str | None = None,
        function: str | None = None,
        operator: str | None = None,
        when: Condition | None = None,
        log: str | None = None,
    ) -> Breakpoint:
        """A breakpoint at a line (of a file, by its name), at the beginning of a function, at calls of an operator, or
        wherever a condition becomes true; with several of them, all must be true.

        A line that computes nothing means the next one that does. Raises FrontendError for one after the last line, for
        a function, operator or variable that the program does not have, and for a condition that is not an expression.

        If a condition fails, the program stops there, and `stop.error` says why; the breakpoint stays. With `log` the
        program does not stop, and prints the message, in which `{x + 1}` is the value of an expression.
        """
        if line is not None:
            line = self._line_with_code(line, file)
        if function is not None:
            names = (name for f in places.functions(self.program.module) for name in places.names_of(f))
            _check_name("function", function, names)
        if operator is not None:
            _check_name("operator", operator, places.operators(self.program.module))
        if line is None and function is None and operator is None and when is None:
            raise FrontendError("a breakpoint is at a line, function or operator, or has a condition")
        if when is not None:
            self._conditions.check(when)
        for expression in expressions_in(log) if log is not None else ():
            self._conditions.check(expression)
        self._numbers += 1
        made = Breakpoint(self._numbers, line, file, function, operator, when, log)
        self.breakpoints.append(made)
        return made

    def remove(self, breakpoint: Breakpoint | int) -> None:
        """Remove a breakpoint, or the one with this number. Raises FrontendError if there is none."""
        kept = [b for b in self.breakpoints if b is not breakpoint and b.number != breakpoint]
        if len(kept) == len(self.breakpoints):
            raise FrontendError(f"there is no breakpoint {breakpoint}")
        self.breakpoints = kept

    # ---- looking

    @property
    def finished(self) -> bool:
        """True if the call has returned."""
        return not self._recording.frames

    @property
    def result(self) -> Any:
        """The result of the call, as from `f.interpret`. Raises ExecutionError while it is running."""
        if not self.finished:
            raise ExecutionError("the call has not returned yet", help="session.resume()")
        return self.program.result(self._recording.machine.result)

    @property
    def steps(self) -> int:
        """The number of operations that have been run."""
        return self._recording.count

    @property
    def recorded(self) -> int:
        """The number of steps that can be taken back."""
        return self._recording.kept_steps

    @property
    def backtrace(self) -> tuple[Call, ...]:
        """The calls that are being run, the innermost last, with their variables as text."""
        calls = backtrace_of(self._recording.frames, self.program.names)
        if not calls:
            return ()
        return (*calls[:-1], attrs.evolve(calls[-1], span=self._place))

    @property
    def depth(self) -> int:
        """The number of calls that are running."""
        return len(self._recording.frames)

    def up(self) -> Call:
        """Look at the caller from now on, until the program goes on."""
        return self._look(self._selected + 1)

    def down(self) -> Call:
        """Look at what the function at hand has called."""
        return self._look(self._selected - 1)

    def select(self, level: int) -> None:
        """Look at a call by its place in the stack: the innermost is 0. Raises FrontendError if there is none."""
        frames = self._recording.frames
        if not 0 <= level < len(frames) or not isinstance(frames[-1 - level], Frame):
            raise FrontendError(f"there is no call {level} of {len(frames)} to look at")
        self._selected = level

    def calls(self, start: int = 0, stop: int | None = None) -> list[tuple[str, Span | None]]:
        """The running functions and the place of each, the innermost first, from one position in the stack to
        another."""
        frames = self._recording.frames
        chosen = frames[::-1][start:stop] if start or stop is not None else frames[::-1]
        return [(f.name, self._place_of(f)) if isinstance(f, Frame) else ("grad", f.grad.span) for f in chosen]

    def scope(self, temporaries: bool = False) -> Variables:
        """The variables in scope, as they are in the program; `temporaries`: those without a name in the source, too.
        What they hold must not be changed."""
        return own_variables(self._frame) if temporaries else self._variables()

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variables in scope by name: NumPy arrays, Python structures of them, values of data types."""
        return {name: python_value(v.value) for name, v in self._variables().items()}

    @property
    def temporaries(self) -> Mapping[str, Any]:
        """All of the program's own variables in scope, those without a name in the source among them."""
        return {name: python_value(v.value) for name, v in own_variables(self._frame).items()}

    def show(self, name: str | None = None) -> str:
        """The variables in scope, or one of them: name, type and value in short, a line for each."""
        found = self._variables()
        return "\n".join(variable_lines(found if name is None else {name: found[self._known_names(name, found)]}))

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of the language over the variables in scope. It changes nothing."""
        return self._expressions.evaluate(expression, self._frame, self._variables())

    def new_value(self, text: str) -> Any:
        """The value that `set` assigns for a text: the value of the expression; a number alone, `2.5`, is Python's,
        which fits a variable of any dtype that has it."""
        try:
            found = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return self.evaluate(text)
        return found if isinstance(found, bool | int | float) else self.evaluate(text)

    def type(self, expression: str) -> str:
        """The type of an expression, which is not run."""
        return self._expressions.type(expression, self._frame, self._variables())

    def statistics(self, expression: str) -> Statistics:
        """Smallest, largest, mean, deviation of the numbers in a value, and how many are NaN, infinite and zero."""
        found = self._variables()
        name = expression.strip()
        return statistics_of(python_value(found[name].value) if name in found else self.evaluate(expression))

    def set(self, name: str, value: Any) -> None:
        """Give a variable another value, of the same type, and go on with it. `back` takes that back.

        Names that mean the same value, as after `b = a`, change together. Raises FrontendError for a name that is not
        in scope, ExecutionError for one that is not a variable of the program, TypeMismatch for another type.
        """
        found = self._variables()
        for variable, new in assigned_values(found[self._known_names(name, found)], value):
            self._recording.change(self._frame, variable, new)
        self.error = None

    def source(self, around: int = 4) -> str:
        """The lines around the place of the selected function, which is marked."""
        place = self._place_of(self._frame)
        if place is None:
            return f"(no source for {self._frame.name})"
        source, line = place.source, place.line
        numbers = range(max(source.first_line, line - around), line + around + 1)
        width = len(str(line + around))
        last = source.first_line + source.text.count("\n")
        rows = [(n, source.line(n)) for n in numbers if n <= last]
        return "\n".join(f"{'->' if n == line else '  '} {n:>{width}} {text}".rstrip() for n, text in rows)

    def where(self, most: int = SHOWN_CALLS) -> str:
        """The running calls, the innermost last, with their lines; of more than `most` the first, the last and those
        around the selected one."""
        calls = list(reversed(list(enumerate(self.calls()))))
        if len(calls) > most:
            part = most // 3
            near = range(self._selected - part // 2, self._selected + part // 2 + 1)
            calls = [(n, c) for n, c in calls if n < part or n >= len(calls) - part or n in near]
        rows: list[str] = []
        before = None
        for level, (name, span) in calls:
            if before is not None and before - level > 1:
                rows.append(f"   .. {before - level - 1} more ..")
            before = level
            mark = "->" if level == self._selected else "  "
            place = f"{span.source.filename}:{span.line}" if span is not None else "?"
            line = span.source.line(span.line).strip() if span is not None else ""
            rows.append(f"{mark} {place}, in {name}: {line}")
        return "\n".join(rows)

    def __str__(self) -> str:
        return str(self.stop)

    def __repr__(self) -> str:
        return f"<session of {self.program.function.__name__}: {self.stop}>"

    def _repr_html_(self) -> str:
        """The session as HTML for notebooks: the place in the source, the variables and the calls."""
        return session_html(self, None if self.finished else self._selected_call())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    # ---- how it moves

    @property
    def _top_frame(self) -> Frame:
        return self._recording.top_frame

    @property
    def _point(self) -> Point:
        """The next point of the innermost frame."""
        frame = self._top_frame
        activation = frame.activations[-1]
        points = self._points.get(activation.block)
        if points is None:
            points = self._points[activation.block] = places.points_of(activation.block, frame.closure.function)
        return points[activation.position]

    @property
    def _place(self) -> Span | None:
        return places.place(self._top_frame, self._point)

    def _place_of(self, frame: Frame) -> Span | None:
        return self._place if frame is self._top_frame else places.visible_span(frame)

    def _begins_line(self) -> bool:
        """True if the program is before a line that it has not begun."""
        line = self._point.line
        return line is not None and line != self._top_frame.environment.line  # type: ignore[attr-defined]

    def _begins_call(self) -> bool:
        """True if the innermost function has done nothing yet."""
        frame = self._top_frame
        return len(frame.activations) == 1 and frame.activations[0].position == 0

    def _not_inside(self, wanted: Callable[[], bool]) -> Callable[[], bool]:
        """A condition that holds only outside of functions that the innermost one calls."""
        depth, own = len(self._recording.frames), self._recording.top_frame if not self.finished else None

        def is_reached() -> bool:
            now = len(self._recording.frames)
            return (now < depth or (now == depth and self._top_frame is own) or own is None) and wanted()

        return is_reached

    def _advance(self) -> None:
        """One step of the interpreter."""
        point = self._point
        line = None if point.begins_round else point.line
        if line is None and not point.begins_round:
            line = self._top_frame.environment.line  # type: ignore[attr-defined]
        call = None
        if self.stops_at_non_finite and self._recording.count != self._passed:
            call = applied_operator(self._top_frame, self._recording.machine)
        self._recording.step(line, point.changes_reference)
        if call is not None and (made := call.non_finite()) is not None:
            self._recording.undo()
            self._passed = self._recording.count
            raise NonFinite(f"{call.operator} makes {made}", point.span)

    def _run(self, reached: Callable[[], bool], reason: str = "line") -> Stop:
        """Go on until something is reached."""
        self._selected, self.error = 0, None
        if self.finished:
            return self._stop_at("end")
        frames = self._recording.frames
        try:
            with np.errstate(all="ignore"):
                self._advance()
                while frames:
                    if self.listen():
                        return self._stop_at("interrupt")
                    if (found := self._breakpoint()) is not None:
                        return self._stop_at("breakpoint", found if isinstance(found, Breakpoint) else None)
                    if reached():
                        return self._stop_at(reason)
                    self._advance()
        except KeyboardInterrupt:
            return self._stop_at("interrupt")
        except _ConditionError as failed:
            return self._stop_at("breakpoint", failed.breakpoint, failed.error)
        except RelayError as error:
            if isinstance(error, ExecutionError) and not error.backtrace:
                error.backtrace = self.backtrace
            self.error = error
            return self._stop_at("nan" if isinstance(error, NonFinite) else "error")
        return self._stop_at("end")

    def _rewind(self, reached: Callable[[], bool], reason: str) -> Stop:
        """Take steps back until something is reached."""
        self._selected, self.error, self._passed = 0, None, -1
        try:
            while self._recording.undo():
                if self.listen():
                    return self._stop_at("interrupt")
                if (found := self._breakpoint(writes=False)) is not None:
                    return self._stop_at("breakpoint", found if isinstance(found, Breakpoint) else None)
                if reached():
                    return self._stop_at(reason)
        except KeyboardInterrupt:
            return self._stop_at("interrupt")
        except _ConditionError as failed:
            return self._stop_at("breakpoint", failed.breakpoint, failed.error)
        return self._stop_at("beginning")

    def _stop_at(self, reason: str, breakpoint: Breakpoint | None = None, error: RelayError | None = None) -> Stop:
        if breakpoint is not None:
            breakpoint.hits += 1
        if self.finished:
            self.stop = Stop("end")
        else:
            self.stop = Stop(reason, self._top_frame.name, self._place, breakpoint, error or self.error)
        return self.stop

    def at_breakpoint(self) -> Breakpoint | None:
        """The breakpoint at which the program is stopped, if any."""
        try:
            found = None if self.finished or self.error is not None else self._breakpoint(writes=False)
        except _ConditionError as failed:
            found = failed.breakpoint
        return found if isinstance(found, Breakpoint) else None

    def _breakpoint(self, writes: bool = True) -> Breakpoint | bool | None:
        """The breakpoint at which the program is stopped; True for one in the program itself. `writes`: those with a
        message write it."""
        point = self._point
        if point.is_breakpoint:
            return True
        if not self.breakpoints:
            return None
        frame = self._top_frame
        begins_line, begins_call = self._begins_line(), self._begins_call()
        for breakpoint in self.breakpoints:
            if not breakpoint.is_at(frame, point, begins_line, begins_call):
                continue
            if breakpoint.log is not None and not writes:
                continue
            if breakpoint.when is None and breakpoint.log is not None:
                self._write_message(breakpoint)
                continue
            if breakpoint.when is None:
                return breakpoint
            before = breakpoint.held
            try:
                breakpoint.held = self._conditions.holds(breakpoint.when, frame, point.span)
            except ExecutionError as error:
                breakpoint.held = True  # it is told once, where it is looked at before every line
                if not (before and breakpoint.is_condition_only):
                    raise _ConditionError(breakpoint, error) from None
            if breakpoint.held and not (before and breakpoint.is_condition_only):
                if breakpoint.log is None:
                    return breakpoint
                self._write_message(breakpoint)
        return None

    def _write_message(self, breakpoint: Breakpoint) -> None:
        """Write the message of a breakpoint that does not stop."""
        breakpoint.hits += 1
        frame = self._top_frame
        found = variables(frame, self.program.names)
        self.write(log_text(breakpoint.log or "", lambda text: self._expressions.compute(text, frame, found)))

    # ---- what it looks at

    @property
    def _frame(self) -> Frame:
        """The selected frame."""
        if self.finished:
            raise ExecutionError("the call has returned, and has no variables any more", help="session.back()")
        frame = self._recording.frames[-1 - self._selected]
        assert isinstance(frame, Frame)
        return frame

    def _variables(self) -> Variables:
        return variables(self._frame, self.program.names)

    def _known_names(self, name: str, found: Variables) -> str:
        if name not in found:
            raise not_defined(name, found)
        return name

    def _look(self, selected: int) -> Call:
        frames = self._recording.frames
        direction = 1 if selected > self._selected else -1
        while 0 <= selected < len(frames) and not isinstance(frames[-1 - selected], Frame):
            selected += direction
        if not 0 <= selected < len(frames):
            raise FrontendError("there is no call further out" if direction > 0 else "there is no call further in")
        self._selected = selected
        return self._selected_call()

    def _selected_call(self) -> Call:
        """The call that is looked at."""
        (call,) = backtrace_of([self._frame], self.program.names)
        return attrs.evolve(call, span=self._place_of(self._frame))

    def _line_with_code(self, line: int, file: str | None) -> int:
        """The first line from this one on at which the program can be stopped."""
        if isinstance(line, bool) or not isinstance(line, int) or line < 1:
            raise FrontendError(f"the number of a line is wanted, found {line!r}")
        by_file = places.lines(self.program.module)
        probe = Breakpoint(0, line, file)
        main = self.program.module.main.span
        wanted = [
            numbers
            for name, numbers in by_file.items()
            if (probe.is_file(name) if file is not None else main is None or name == main.source.filename)
        ]
        following = [number for numbers in wanted for number in numbers if number >= line]
        if not following:
            raise FrontendError(f"the program computes nothing from line {line} on", help="see session.source()")
        return min(following)


def _check_name(what: str, name: object, known: Iterable[str]) -> None:
    """Raises FrontendError for a name that a program does not have."""
    own = list(dict.fromkeys(known))
    if name in own:
        return
    close = difflib.get_close_matches(str(name), own, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(own) or 'none'}"
    raise FrontendError(f"the program has no {what} {name!r}", help=hint)


def step(
    function: RelayFunction, *arguments: Any, stage: str | None = None, memory: int = MEMORY, **keywords: Any
) -> Session:
    """A call of a decorated function in the step debugger, before its first line.

    Args:
        function: what `@relay` or `relay.grad` returned.
        arguments, keywords: as a call of it gets them.
        stage: "typed", the program as it is written; "derived", with its derivatives as programs, forward and backward
            part; "optimized", as it is compiled. None: "typed", or "derived" if there are derivatives in it.
        memory: the bytes that the recording may take, which decide how far back it reaches.

    Raises what the call would raise before it runs.
    """
    return Session(program_of(function, arguments, keywords, stage), memory)
