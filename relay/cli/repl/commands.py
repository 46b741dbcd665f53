"""The prompt's commands: words after a colon."""

from __future__ import annotations

import ast
import difflib
import statistics
import time
from collections.abc import Callable
from typing import Any

import attrs

from relay.api.differentiation import grad
from relay.api.function import RelayFunction
from relay.api.plain_functions import from_source
from relay.cli.repl.inputs import Inputs, value_type
from relay.compilation.stages import lowering
from relay.debug.commands import Commands as DebuggerCommands
from relay.debug.session import step
from relay.errors import FrontendError, RelayError
from relay.ir.analysis.difference import diff
from relay.text.printer import to_text
from relay.transform.pipeline import count

HELP = """\
:type EXPR     the type of an expression, which is not run, or of a function
:ir F          the typed program of a function; of `F(x, ..)` at the types of these arguments, here and below
:core F        its first-order program, optimized, as it is compiled
:grad F        the program of its gradient, forward and backward part
:time EXPR     compile an expression, and say how long that takes, and how long its runs do
:passes F      what each pass changes, with sizes before and after
:debug F(x)    step through a call: `help` lists the debugger's commands, `quit` comes back
:help          these lines
:quit          leave, as Ctrl-D"""

NAMES = ("type", "ir", "core", "grad", "time", "passes", "debug", "help", "quit")
_SHORT = {"q": "quit", "h": "help", "t": "type", "text": "ir"}
DEBUGGER_PROMPT = "(relay) "
ROUNDS, ROUND_SECONDS = 5, 0.1
SHOWN_CHANGES = 8
"""The number of lines that `:passes` prints of a pass's changes."""


@attrs.frozen
class Request:
    """A function, and arguments for it if a call was written."""

    function: RelayFunction
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


class Commands:
    """Runs inputs, and the commands among them. `read` reads a line for the debugger, None at the end."""

    def __init__(self, inputs: Inputs, read: Callable[[str], str | None]) -> None:
        self._inputs = inputs
        self._read = read
        self._table: dict[str, Callable[[str], str]] = {
            "type": inputs.type,
            "ir": lambda text: self._text(self._request(text)),
            "core": self._core,
            "grad": self._grad,
            "time": self._time,
            "passes": self._passes,
            "debug": self._debug,
        }

    def run(self, text: str) -> None:
        """Run an input; raises SystemExit if it asks to leave."""
        if not text.lstrip().startswith(":"):
            if text.strip():
                self._inputs.run(text)
            return
        word, _, rest = text.strip()[1:].partition(" ")
        name, rest = _SHORT.get(word, word), rest.strip()
        if name == "quit":
            raise SystemExit(0)
        if name == "help":
            print(HELP)
            return
        if name not in self._table:
            close = difflib.get_close_matches(name, NAMES, n=1)
            hint = f", did you mean :{close[0]}?" if close else f"\n{HELP}"
            print(f"there is no command {':' + word!r}{hint}")
        elif not rest:
            line = next(line for line in HELP.split("\n") if line.startswith(f":{name} "))
            print(f"what of? {line}")
        else:
            self._obey(self._table[name], rest)

    def _obey(self, command: Callable[[str], str], rest: str) -> None:
        try:
            said = command(rest)
        except KeyboardInterrupt:
            said = "interrupted"
        except RelayError as error:
            self._inputs.write_error(error)
            return
        except Exception as error:
            self._inputs.write(f"{type(error).__name__}: {error}\n")
            return
        if said:
            print(said)

    def _request(self, text: str) -> Request:
        """The function that is named, or called with arguments. Raises FrontendError for anything else."""
        try:
            node = ast.parse(text, "<command>", "eval").body
        except SyntaxError as error:
            raise FrontendError(f"{text!r} is not an expression: {error.msg}") from None
        is_call = isinstance(node, ast.Call)
        if is_call:  # of a decorated function; `grad(f)` is one itself
            function = self._inputs.value(ast.unparse(node.func))  # type: ignore[attr-defined]
            if isinstance(function, RelayFunction):
                given = {"__arguments__": lambda *arguments, **keywords: (arguments, keywords)}
                node.func = ast.Name("__arguments__", ast.Load())  # type: ignore[attr-defined]
                arguments, keywords = eval(ast.unparse(node), {**self._inputs.locals, **given})
                return Request(function, arguments, keywords)
        function = self._inputs.value(text)
        if not isinstance(function, RelayFunction):
            raise FrontendError(f"{text} is not a decorated function, nor a call of one")
        return Request(function, (), {})

    def _text(self, wanted: Request) -> str:
        text: str = wanted.function.text(*wanted.arguments, **wanted.keywords)
        return text

    def _types(self, wanted: Request) -> tuple[Any, ...]:
        """The arguments of a request, or the types that the annotations give. Raises FrontendError without both."""
        parameters = wanted.function.surface.main.parameters
        if wanted.arguments or wanted.keywords or not parameters:
            return wanted.arguments
        types = [p.type for p in parameters]
        if any(t is None for t in types):
            name, given = wanted.function.__name__, ", ".join([".."] * len(types))
            help = f"give arguments: {name}({given})"
            raise FrontendError(f"the parameters of {name} have no annotated types", help=help)
        return tuple(types)

    def _core(self, text: str) -> str:
        wanted = self._request(text)
        return to_text(wanted.function.core(*self._types(wanted), **wanted.keywords), elide=True)

    def _grad(self, text: str) -> str:
        wanted = self._request(text)
        return self._text(attrs.evolve(wanted, function=grad(wanted.function)))

    def _passes(self, text: str) -> str:
        wanted = self._request(text)
        typed = wanted.function.typed(*self._types(wanted), **wanted.keywords)
        pipeline = lowering(wanted.function._options.opt_level)
        pipeline(typed)
        rows, kept = [f"{'typed':<32} {count(typed):>6} bindings"], 0
        for record in pipeline.records:
            before, after = record.bindings_before, record.bindings_after
            if before == after and to_text(record.given, elide=True) == record.text:
                kept += 1
                continue
            rows.append(f"{record.name:<32} {before:>6} -> {after:<6} {record.seconds * 1e3:8.2f} ms")
            changes = str(diff(record.given, record.module)).split("\n")
            rows += (f"    {line}" for line in changes[:SHOWN_CHANGES])
            if len(changes) > SHOWN_CHANGES:
                rows.append(f"    .. {len(changes) - SHOWN_CHANGES} more lines")
        return "\n".join([*rows, f"{kept} other passes changed nothing"])

    def _time(self, text: str) -> str:
        """The expression becomes a program whose parameters are the arrays and numbers that it names."""
        names = {n.id for n in ast.walk(ast.parse(text, "<command>", "eval")) if isinstance(n, ast.Name)}
        own = self._inputs.locals
        given = [name for name in sorted(names) if name in own and _is_argument(own[name])]
        function = from_source(f"def expression({', '.join(given)}):\n    return ({text}\n    )\n", own, "<time>")
        assert isinstance(function, RelayFunction)
        values = [own[name] for name in given]
        start = time.perf_counter()
        function(*values)
        first = time.perf_counter() - start
        start = time.perf_counter()
        function(*values)
        number = max(1, int(ROUND_SECONDS / max(time.perf_counter() - start, 1e-7)))
        rounds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(number):
                function(*values)
            rounds.append((time.perf_counter() - start) / number)
        compiling = max(0.0, first - min(rounds))
        spent = f"{_seconds(min(rounds))} the fastest, {_seconds(statistics.median(rounds))} the median"
        return f"compiled in {_seconds(compiling)}; a run takes {spent} of {ROUNDS} rounds of {number}"

    def _debug(self, text: str) -> str:
        wanted = self._request(text)
        commands = DebuggerCommands(step(wanted.function, *wanted.arguments, **wanted.keywords))
        print(commands.greeting())
        while not commands.left:
            try:
                line = self._read(DEBUGGER_PROMPT)
            except KeyboardInterrupt:
                continue
            if line is None:
                break
            said = commands.run(line)
            if said:
                print(said)
        return ""


def _is_argument(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, type)
    return is_number or (not isinstance(value, RelayFunction) and value_type(value) is not None)


def _seconds(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
