"""Decorators in a file that is parsed without an import."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Sequence
from typing import Any

import attrs

from relay.errors import FrontendError
from relay.frontend.source import FunctionNode, parse_text
from relay.frontend.static.evaluation import Evaluator
from relay.frontend.static.imported_names import ImportedNames
from relay.ir.definition import MISSING


@attrs.frozen(eq=False)
class Decorators:
    """Tells Relay's decorators from others, by what the names at the top of the file mean."""

    _expressions: Evaluator
    _imports: ImportedNames

    def is_decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
        """True if `@relay` decorates a function, or a class, which it cannot."""
        return any(self.is_relay(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)

    def _options(self, node: FunctionNode) -> dict[str, ast.expr]:
        """The options written in `@relay(..)`, or `@relay.overload(..)`."""
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        calls = [d for d in decorators if isinstance(d, ast.Call) and self.is_relay(d.func)]
        if isinstance(node, ast.FunctionDef) and (overload := self.overload_decorator(node)) is not None:
            calls.append(overload)
        return {k.arg: k.value for d in calls for k in d.keywords if k.arg is not None}

    def written_options(self, node: FunctionNode) -> tuple[dict[str, object], ast.Call] | None:
        """The options written in `@relay(..)`, and their place: MISSING for values known only at run time. None
        without parentheses."""
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else []:
            if isinstance(decorator, ast.Call) and self.is_relay(decorator.func):
                found: dict[str, object] = {}
                for keyword in decorator.keywords:
                    if keyword.arg is None:
                        continue
                    try:
                        found[keyword.arg] = ast.literal_eval(keyword.value)
                    except ValueError:  # a name, or a call
                        found[keyword.arg] = MISSING
                return found, decorator
        return None

    def is_declared_pure(self, node: FunctionNode) -> bool:
        """True if a function is decorated with `@relay(pure=True)`."""
        match self._options(node).get("pure"):
            case ast.Constant(value=True):
                return True
            case _:
                return False

    def static_names(self, node: FunctionNode) -> Sequence[str]:
        """The names of `@relay(static_argnames=..)`."""
        match self._options(node).get("static_argnames"):
            case ast.Constant(value=str(name)):
                return (name,)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return [i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]
            case _:
                return ()

    def is_relay(self, node: ast.expr) -> bool:
        """True if an expression is the decorator."""
        self._imports.load_names_in(node)
        return self._expressions.meaning(node) is importlib.import_module("relay")

    def gradient(self, node: ast.FunctionDef) -> tuple[Any, ast.expr] | None:
        """The method of `@f.def_gradient` or `@f.def_gradient(saving=g)`, and the decorator."""
        for decorator in node.decorator_list:
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(function, ast.Attribute) and function.attr == "def_gradient":
                self._imports.load_names_in(function)
                method = self._expressions.meaning(function)
                if hasattr(getattr(method, "__self__", None), "__relay__"):
                    return method, decorator
        return None

    def overload_decorator(self, node: ast.FunctionDef) -> ast.Call | None:
        """The decorator `@relay.overload(function)`."""
        relay = importlib.import_module("relay")
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and len(decorator.args) == 1:
                self._imports.load_names_in(decorator)
                if self._expressions.meaning(decorator.func) is relay.overload:
                    return decorator
        return None

    def registers(self, node: ast.expr) -> bool:
        """True if an expression is one of the functions that register operators."""
        relay, found = importlib.import_module("relay"), self._expressions.meaning(node)
        return found is not None and any(found is f for f in (relay.register_op, relay.composite, relay.pure_callback))

    def registration(self, node: ast.FunctionDef) -> ast.expr | None:
        """The decorator of a function that registers an operator."""
        for decorator in node.decorator_list:
            if self.registers(decorator.func if isinstance(decorator, ast.Call) else decorator):
                return decorator
        return None


def options_in_text(text: str, filename: str) -> dict[str, dict[str, object]]:
    """The options in the decorators of a text's functions, by the functions' names; these decorators are not run.

    Raises FrontendError for options that are not literals, and for other decorators than `@relay`.
    """
    file = parse_text(text, filename)
    found: dict[str, dict[str, object]] = {}
    for node in (n for n in file.tree.body if isinstance(n, ast.FunctionDef)):
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
            if ast.unparse(call.func).rpartition(".")[2] not in ("relay", "jit") or call.args:
                help = "leave it out, or write the program into a file"
                raise FrontendError("the decorators of a text are `@relay`", file.span(decorator), help=help)
            try:
                options = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg is not None}
            except ValueError:
                help = "write numbers, strings, booleans, or tuples and dicts of these"
                raise FrontendError(
                    "the options of a text's functions are literals", file.span(decorator), help=help
                ) from None
            found[node.name] = options
    return found


def operator_name(node: ast.FunctionDef, decorator: ast.expr) -> str:
    """The name under which a function is registered."""
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    written = next((k.value for k in keywords if k.arg == "name"), None)
    return written.value if isinstance(written, ast.Constant) and isinstance(written.value, str) else node.name
