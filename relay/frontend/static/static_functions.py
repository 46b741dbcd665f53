"""Functions of files that are not imported.

They take the place of a Python function, and cannot be called.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import NoReturn

from relay.errors import InternalError
from relay.frontend.source import SourceFile
from relay.ir.definition import Scope


class SourceFunction:
    """A `def` of a file that is only read. `evaluated` gives the values of defaults, `owner` is the class it is in."""

    __relay_source__ = True

    def __init__(
        self,
        file: SourceFile,
        node: ast.FunctionDef,
        scope: Scope,
        evaluated: Callable[[ast.expr], object],
        module: str,
    ) -> None:
        self.file = file
        self.node = node
        self.scope = scope
        self.evaluated = evaluated
        self.owner: type | None = None
        self.__name__ = node.name
        self.__qualname__ = node.name
        self.__doc__ = ast.get_docstring(node)
        self.__module__ = module

    def __call__(self, *arguments: object, **keywords: object) -> NoReturn:
        raise InternalError(f"{self.__name__} was called, which is only read")

    @property
    def __signature__(self) -> inspect.Signature:
        """Its parameters, with annotations as texts."""
        kinds, written = inspect.Parameter, self.node.args
        positional = [*written.posonlyargs, *written.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(written.defaults))
        defaults += written.defaults
        found = []
        for position, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
            before = position < len(written.posonlyargs)
            found.append(
                self._parameter(argument, default, kinds.POSITIONAL_ONLY if before else kinds.POSITIONAL_OR_KEYWORD)
            )
        if written.vararg is not None:
            found.append(self._parameter(written.vararg, None, kinds.VAR_POSITIONAL))
        for argument, default in zip(written.kwonlyargs, written.kw_defaults, strict=True):
            found.append(self._parameter(argument, default, kinds.KEYWORD_ONLY))
        if written.kwarg is not None:
            found.append(self._parameter(written.kwarg, None, kinds.VAR_KEYWORD))
        return inspect.Signature(found)

    def _parameter(
        self, argument: ast.arg, default: ast.expr | None, kind: inspect._ParameterKind
    ) -> inspect.Parameter:
        empty = inspect.Parameter.empty
        annotation = empty if argument.annotation is None else ast.unparse(argument.annotation)
        value = empty if default is None else self.evaluated(default)
        return inspect.Parameter(argument.arg, kind, default=value, annotation=annotation)
