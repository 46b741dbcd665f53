"""Conditions of breakpoints: expressions of the language, or functions of Python, over the variables in scope.

They are looked at before every line, so an expression is prepared once for the types of its variables, and not computed
again while these have the same values.
"""

from __future__ import annotations

import builtins
import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from relay.debug.breakpoints import Condition
from relay.debug.expressions import Expressions, python_value, used_names
from relay.debug.local_functions import is_local_function
from relay.debug.places import functions
from relay.debug.programs import Program
from relay.errors import ExecutionError, FrontendError, RelayError
from relay.errors.diagnostic import Span
from relay.eval.frames import Frame
from relay.eval.variables import COTANGENT, Variables, variables
from relay.ir.definition import MISSING
from relay.ir.expr import Function
from relay.ir.traverse import all_blocks, bound_variables


class _NoValueYet(KeyError):
    """A name of the program that has no value where it stands."""


class ScopeView(Mapping[str, Any]):
    """The variables in scope by name, as Python sees them. A name of the program that has no value here makes the
    condition that asks for it not hold; another one is a KeyError."""

    def __init__(self, found: Variables, known: frozenset[str]) -> None:
        self._found = found
        self._known = known

    def __getitem__(self, name: str) -> Any:
        if name in self._found:
            return python_value(self._found[name].value)
        if name in self._known:
            raise _NoValueYet(name)
        close = difflib.get_close_matches(str(name), self._known, n=1)
        raise KeyError(f"the program has no variable {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


@attrs.define(eq=False)
class _LastEvaluation:
    """The values that a condition was computed of last, and the answer."""

    function: Function
    values: list[object]
    holds: bool


class Conditions:
    """The conditions of a program's breakpoints."""

    def __init__(self, program: Program, expressions: Expressions) -> None:
        self._program = program
        self._expressions = expressions
        self._known: frozenset[str] | None = None
        self._last: dict[str, _LastEvaluation] = {}
        self._names: dict[str, frozenset[str]] = {}

    @property
    def variable_names(self) -> frozenset[str]:
        """The names of variables that the program has anywhere."""
        if self._known is None:
            found = set(self._program.names or ())
            for function in (*functions(self._program.module), *functions(self._program.typed)):
                own = list(function.parameters)
                for block in all_blocks(function.body):
                    for binding in block.bindings:
                        own += (*binding.targets, *bound_variables(binding.value))
                found.update(variable.name for variable in own)
            self._known = frozenset(found) | {name.removeprefix(COTANGENT) for name in found}
        return self._known

    def check(self, condition: Condition) -> None:
        """Raises FrontendError for what is not a condition, and for a name that means nothing in the program."""
        if callable(condition):
            return
        if not isinstance(condition, str):
            found = type(condition).__name__
            raise FrontendError(f"a condition is an expression or a function of the variables, found {found}")
        for name in used_names(condition):
            scopes = (definition.scope for definition in self._program.definitions)
            if (
                name in self.variable_names
                or hasattr(builtins, name)
                or any(s.resolve(name) is not MISSING for s in scopes)
            ):
                continue
            close = difflib.get_close_matches(name, self.variable_names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else None
            raise FrontendError(f"the program has no variable {name!r}", help=hint)

    def holds(self, condition: Condition, frame: Frame, span: Span | None) -> bool:
        """True if a condition is true; False if its variables have no value yet. Raises ExecutionError, at `span`, if
        it fails, or is not a single boolean."""
        if callable(condition):
            return self._holds(condition, frame, span)
        wanted = self._names.get(condition)
        if wanted is None:
            wanted = self._names[condition] = frozenset(used_names(condition))
        found = variables(frame, self._program.names, wanted)
        values = [variable.value for variable in found.values()]
        last = self._last.get(condition)
        if last is not None and last.function is frame.closure.function and _are_same(values, last.values):
            return last.holds
        missing = wanted - found.keys()
        local = {name for name in missing if is_local_function(name, frame)}
        missing -= local
        if missing and not missing <= self._expressions.surrounding_names(frame.closure.function.span, missing).keys():
            return False
        try:
            value = self._expressions.compute(condition, frame, found)
            holds = _truth_value(condition, value)
        except RelayError as error:
            raise ExecutionError(
                f"the condition {condition!r} cannot be computed: {error.message}", span, help=error.help
            ) from error
        if not local:  # which see further variables
            self._last[condition] = _LastEvaluation(frame.closure.function, values, holds)
        return holds

    def _holds(self, condition: Callable[[Mapping[str, Any]], Any], frame: Frame, span: Span | None) -> bool:
        view = ScopeView(variables(frame, self._program.names), self.variable_names)
        try:
            return bool(condition(view))
        except _NoValueYet:
            return False
        except Exception as error:
            said = error.args[0] if isinstance(error, KeyError) and error.args else error
            raise ExecutionError(f"a condition raised {type(error).__name__}: {said}", span) from error


def _are_same(values: list[object], others: list[object]) -> bool:
    """True if these are the same arrays, which do not change while a program is debugged."""
    return len(values) == len(others) and all(
        type(value) is np.ndarray and value is other for value, other in zip(values, others, strict=True)
    )


def _truth_value(condition: str, value: object) -> bool:
    """A condition's value as a bool. Raises FrontendError for an array of several."""
    if isinstance(value, np.ndarray) and value.size != 1:
        help = f"({condition}).any(), or .all()"
        raise FrontendError(f"it is not a single boolean but an array of shape {value.shape}", help=help)
    return bool(value)
