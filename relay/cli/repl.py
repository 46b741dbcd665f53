"""`relay repl`: Python's prompt with support for `@relay`, as the source of every input is retained."""

from __future__ import annotations

import argparse
import ast
import code
import contextlib
import linecache
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import relay
from relay.diagnostic import wants_color
from relay.errors import RelayError
from relay.frontend.lower import lower_text
from relay.function import RelayFunction
from relay.ir.types import FunctionType, QuantifiedType, Type, show
from relay.typecheck.elaboration import scheme

NAME = "repl"
HELP = "a Python prompt at which decorated functions can be typed in"

COMMANDS = """\
:type EXPRESSION   the type of an expression, which is not run, or of a decorated function
:text FUNCTION     the typed program of a decorated function
:help              these lines
:quit              leave, as Ctrl-D"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no options."""


def run(options: argparse.Namespace) -> int:
    """Read and run inputs until the end; 0."""
    interactive = sys.stdin.isatty()
    names = {name: getattr(relay, name) for name in ("Tensor", "Float", "Int", "Bool", "Any", "dims", "grad")}
    prompt = Prompt({"__name__": "__console__", "__doc__": None, "relay": relay, "np": np, **names})
    history = _prepare_line_editing(prompt) if interactive else None
    version = sys.version.split()[0]
    banner = f"Relay at the prompt of Python {version}; `relay` and `np` are imported, and :help lists commands."
    try:
        prompt.interact(banner=banner if interactive else "", exitmsg="")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    finally:
        if history is not None:
            _write_history(history)
    return 0


class Prompt(code.InteractiveConsole):
    """Python's prompt. Inputs are files for `linecache`, so that their functions have a source."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)
        self._count = 1

    def push(self, line: str, *arguments: Any, **keywords: Any) -> bool:
        """Take a line; True if the input goes on."""
        if not self.buffer and line.lstrip().startswith(":"):
            self._command(line.strip())
            return False
        return super().push(line, *arguments, **keywords)

    def runsource(self, source: str, filename: str = "<input>", symbol: str = "single") -> bool:
        """Run an input that is complete; True if it is not."""
        filename = f"<input {self._count}>"
        linecache.cache[filename] = (len(source), None, [line + "\n" for line in source.split("\n")], filename)
        more = super().runsource(source, filename, symbol)
        if not more:
            self._count += 1
        return more

    def _command(self, line: str) -> None:
        name, _, rest = line[1:].partition(" ")
        rest = rest.strip()
        try:
            match name:
                case "type" if rest:
                    print(show(self._type(rest)))
                case "text" if rest:
                    print(self._function(rest).text())
                case "quit" | "q":
                    raise SystemExit(0)
                case "help" | "h":
                    print(COMMANDS)
                case _:
                    print(f"there is no command {line!r}\n{COMMANDS}")
        except RelayError as error:
            self.write("\n".join(d.render(color=wants_color(sys.stderr)) for d in error.diagnostics) + "\n")
        except Exception as error:
            self.write(f"{type(error).__name__}: {error}\n")

    def _function(self, expression: str) -> RelayFunction:
        value = eval(expression, self.locals)
        if not isinstance(value, RelayFunction):
            raise TypeError(f"{expression} is not a decorated function")
        return value

    def _type(self, expression: str) -> Type:
        """The type of an expression, found without running it."""
        with contextlib.suppress(SyntaxError):
            if _is_path(ast.parse(expression, mode="eval").body) and isinstance(
                value := eval(expression, self.locals),
                RelayFunction,
            ):
                return value.type
        text = f"def expression():\n    return ({expression}\n    )\n"
        (definition,) = lower_text(text, "<type>", self.locals).values()
        type_ = scheme(definition)[1]
        inner = type_.body if isinstance(type_, QuantifiedType) else type_
        assert isinstance(inner, FunctionType)
        return inner.result


def _is_path(node: ast.expr) -> bool:
    """Whether an expression is a name, or attributes of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _prepare_line_editing(prompt: Prompt) -> Path | None:
    """Arrow keys, completion by tab, and the inputs of earlier times; where they are kept."""
    try:
        import readline
        import rlcompleter
    except ImportError:  # Windows
        return None
    readline.set_completer(rlcompleter.Completer(prompt.locals).complete)
    readline.parse_and_bind("tab: complete")
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    history = state / "relay" / "history"
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    return history


def _write_history(history: Path) -> None:
    import readline

    readline.set_history_length(1000)
    with contextlib.suppress(OSError):  # a home that cannot be written to
        history.parent.mkdir(parents=True, exist_ok=True)
        readline.write_history_file(history)
