"""Inputs of the prompt: when one is complete, how it is run, and what is shown of its value."""

from __future__ import annotations

import ast
import code
import codeop
import contextlib
import linecache
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from relay import Array
from relay.api.function import RelayFunction
from relay.api.plain_functions import from_source
from relay.errors import RelayError
from relay.errors.diagnostic import wants_color
from relay.frontend.lower import lower_text
from relay.ir import tree
from relay.ir.annotations.annotation import Ref
from relay.ir.types import FunctionType, QuantifiedType, show
from relay.support.tracebacks import without_own_frames
from relay.typecheck.elaboration import scheme

INDENT = "    "
_ENDING = ("return", "pass", "break", "continue", "raise")


def is_complete(text: str) -> bool:
    """True if an input can be run, or is wrong, which running it reports. One with a block ends in an empty line."""
    if text.lstrip().startswith(":") or not text.strip():
        return True
    before, newline, last = text.rpartition("\n")
    if newline and not last.strip():  # it is empty but for the indentation that it begins with
        text = before + newline
    try:
        return codeop.compile_command(text, "<input>", "single") is not None
    except (SyntaxError, ValueError, OverflowError):
        return True


def indentation(text: str) -> str:
    """The indentation of the line after a text."""
    line = text.split("\n")[-1]
    own = line[: len(line) - len(line.lstrip())]
    words = line.split("#")[0].split()
    if words and words[-1].endswith(":"):
        return own + INDENT
    return own.removesuffix(INDENT) if words and words[0] in _ENDING else own


class Lines:
    """Inputs made of lines, for a prompt that reads one at a time. `read` gets the next one, empty at the end."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read

    def read(self, prompt: str) -> str | None:
        """The next line; None at the end."""
        line = self._read(prompt)
        return line.removesuffix("\n") if line else None

    def next_input(self) -> str | None:
        """The next input of one or more lines; None at the end."""
        lines: list[str] = []
        while True:
            line = self.read("... " if lines else ">>> ")
            if line is None:
                return "\n".join(lines) + "\n" if lines else None
            lines.append(line)
            if is_complete("\n".join(lines)):
                return "\n".join(lines)


class Inputs(code.InteractiveInterpreter):
    """Runs inputs. Each is a file for `linecache`, so that its functions have a source, and errors in it a place."""

    locals: dict[str, Any]

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)
        self._count = 1

    def run(self, text: str) -> None:
        """Run an input, and show the values and types of what it computes or names. Tells of errors in it."""
        filename, text = f"<input {self._count}>", text.rstrip()
        self._count += 1
        linecache.cache[filename] = (len(text), None, [line + "\n" for line in text.split("\n")], filename)
        try:
            tree = ast.parse(text, filename)
        except (SyntaxError, ValueError, OverflowError) as error:
            self.write("".join(traceback.format_exception_only(error)))
            return
        for statement in tree.body:
            program = compile(ast.Interactive([statement]), filename, "single", dont_inherit=True)
            shown, sys.displayhook = sys.displayhook, self._display
            try:
                done = self._runs(program)
            finally:
                sys.displayhook = shown
            if not done:
                return
            for name in _assigned_names(statement):
                self._show_type(name, self.locals.get(name))

    def _runs(self, program: Any) -> bool:
        """True if a statement was run to its end."""
        try:
            exec(program, self.locals)
        except SystemExit:
            raise
        except KeyboardInterrupt:
            print("interrupted")
        except RelayError as error:
            self.write_error(error)
        except BaseException as error:
            shown = without_own_frames(error.__traceback__)
            self.write("".join(traceback.format_exception(type(error), error, shown)))
        else:
            return True
        return False

    def write_error(self, error: RelayError) -> None:
        """Write an error with its place in the input."""
        color = wants_color(sys.stderr)
        self.write("\n\n".join(d.render(color=color) for d in error.diagnostics) + "\n")

    def _display(self, value: Any) -> None:
        if value is None:
            return
        self.locals["_"] = value
        print(repr(value))
        self._show_type("", value)

    def _show_type(self, name: str, value: Any) -> None:
        type_ = value_type(value)
        if type_ is not None:
            print(f"{name} : {type_}".lstrip())

    def value(self, expression: str) -> Any:
        """The value of an expression of Python."""
        return eval(expression, self.locals)

    def type(self, expression: str) -> str:
        """The type of an expression, which is not run, or of a decorated function."""
        with contextlib.suppress(SyntaxError):
            if is_path(ast.parse(expression, mode="eval").body):
                value = self.value(expression)
                if isinstance(value, RelayFunction):
                    return show(value.type)
        text = f"def expression():\n    return ({expression}\n    )\n"
        (definition,) = lower_text(text, "<type>", self.locals).values()
        type_ = scheme(definition)[1]
        inner = type_.body if isinstance(type_, QuantifiedType) else type_
        assert isinstance(inner, FunctionType)
        return show(inner.result)


def _assigned_names(statement: ast.stmt) -> list[str]:
    """The names that a statement gives values, or functions, of which the types are shown."""
    match statement:
        case ast.Assign(targets):
            found: list[ast.expr] = []
            for target in targets:
                found += target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            return list(dict.fromkeys(target.id for target in found if isinstance(target, ast.Name)))
        case ast.AnnAssign(ast.Name(name)) | ast.AugAssign(ast.Name(name)) | ast.FunctionDef(name):
            return [name]
        case _:
            return []


def is_path(node: ast.expr) -> bool:
    """True if an expression is a name, or attributes of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def value_type(value: Any) -> str | None:
    """The type that a value has in a program; None for what is not the language's: numbers and texts of Python, and
    what a program does not take."""
    if isinstance(value, RelayFunction):
        try:
            return show(value.type)
        except RelayError as error:
            return f"not known: {error.message}"
    if not _has_arrays(value):
        return None
    try:
        identity = from_source("def value(x):\n    return x\n")
        assert isinstance(identity, RelayFunction)
        result = identity.typed(value).main.result
    except RelayError:
        return None
    return None if result is None else show(result)


def _has_arrays(value: Any) -> bool:
    leaves, _ = tree.flatten(value, lambda part: isinstance(part, Ref) or hasattr(type(part), "__relay_data__"))
    kinds = np.ndarray | np.generic | Array | Ref
    return any(isinstance(leaf, kinds) or hasattr(type(leaf), "__relay_data__") for leaf in leaves)
