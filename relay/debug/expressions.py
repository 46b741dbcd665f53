"""Values of a stopped program as Python sees them, and expressions of the language over its variables."""

from __future__ import annotations

import ast
import builtins
import difflib
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from relay.api.function import RelayFunction
from relay.api.plain_functions import from_source
from relay.calling import marshalling
from relay.calling.array import Array
from relay.calling.results import run_time_value
from relay.debug.local_functions import Definitions, NoDefinitionError, is_local_function, local_function
from relay.errors import ExecutionError, FrontendError
from relay.errors.diagnostic import Span
from relay.eval.frames import Frame
from relay.eval.interpreter import Machine, accept
from relay.eval.sizes import sizes_of
from relay.eval.tape import unbox
from relay.eval.values import Box, Closure, Data, GradientFunction, Reference, Stack, primal
from relay.eval.variables import Structure, Variable, Variables, short_text, type_text
from relay.ir.annotations.annotation import Ref
from relay.ir.debugging.source_names import FunctionName, Parts
from relay.ir.definition import MISSING, Definition, data_class, is_optional
from relay.ir.expr import Var
from relay.ir.structure import build, split
from relay.ir.types import DataType, TensorType, TupleType, Type, prune, show


class OpaqueValue:
    """A value without a Python form, such as a function: it can only be shown."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"<{short_text(self._value)}>"


def python_value(value: object) -> Any:
    """A run-time value as a Python object of its own: NumPy's arrays, also at rank 0, structures, data, references."""
    match value:
        case Box() | np.ndarray():
            return primal(value).copy()
        case tuple():
            return tuple(map(python_value, value))
        case Structure(items, form):
            return build(form, tuple(map(python_value, items)))
        case Stack(buffer, length):
            cells = buffer[:length]
            return [python_value(cell.content if isinstance(cell, Reference) else cell) for cell in cells]
        case Reference(content):
            return Ref(python_value(content))
        case Data(definition) if data_class(definition) is not None or is_optional(DataType(definition)):
            return marshalling.from_data(value, DataType(definition), lambda part, _: python_value(part), True)
        case Data() | Closure() | GradientFunction() | FunctionName():
            return OpaqueValue(value)
        case _:
            return value


class Expressions:
    """Expressions of the language over the variables of frames. Compiled expressions are cached."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._definitions = definitions
        self._made: dict[tuple[object, ...], RelayFunction] = {}
        self._prepared: dict[tuple[object, ...], _PreparedExpression] = {}

    def evaluate(self, text: str, frame: Frame, variables: Variables) -> Any:
        """The value of an expression, computed by the interpreter. It changes nothing: references are copies.

        Raises FrontendError for a text that is not an expression, and whatever the expression raises.
        """
        function, values = self._function(text, frame, variables)
        return function.interpret(*map(python_value, values))

    def compute(self, text: str, frame: Frame, variables: Variables) -> Any:
        """As `evaluate`, for one that is computed often: of arrays by a machine that is kept, and not wrapped."""
        function, values = self._function(text, frame, variables)
        if not all(type(value) is np.ndarray for value in values):
            found = function.interpret(*map(python_value, values))
            return found.numpy() if isinstance(found, Array) else found
        kinds = [(value.dtype, value.shape) for value in values if isinstance(value, np.ndarray)]
        key = (function, *kinds)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepared[key] = _PreparedExpression(function, [python_value(value) for value in values])
        return prepared.run(values)

    def type(self, text: str, frame: Frame, variables: Variables) -> str:
        """The type of an expression, as the language writes it. It is not run."""
        variable = variables.get(text.strip())
        if variable is not None:
            return type_text(variable.value)
        if (closure := local_function(text.strip(), frame)) is not None:
            return type_text(closure)
        if is_local_function(text.strip(), frame):
            return "a function"
        function, values = self._function(text, frame, variables)
        result = function.typed(*map(python_value, values)).main.result
        return "?" if result is None else show(result)

    def _function(self, text: str, frame: Frame, variables: Variables) -> tuple[RelayFunction, list[object]]:
        """The function that computes an expression, and the values of its parameters."""
        needed = Definitions(frame, variables)
        for name in used_names(text):
            try:
                needed.add(name)
            except NoDefinitionError:
                shown = OpaqueValue(variables[name].value) if name in variables else name
                raise FrontendError(f"{name} is {shown!r} here, which an expression cannot use") from None
        given, body = tuple(needed.values), (*needed.lines, f"return ({text})")
        key = (given, body, frame.closure.function)
        function = self._made.get(key)
        if function is None:
            around: dict[str, object] = {}
            for name, span in needed.names.items():
                around.update(self.surrounding_names(span, [name]))
                if name not in around and not hasattr(builtins, name):
                    raise not_defined(name, variables)
            lines = "".join(f"    {line}\n" for line in body)
            made = from_source(f"def expression({', '.join(given)}):\n{lines}", around, "<expression>")
            assert isinstance(made, RelayFunction)
            function = self._made[key] = made
        return function, list(needed.values.values())

    def surrounding_names(self, span: Span | None, names: Iterable[str]) -> Mapping[str, object]:
        """The meaning of names around a function at a place."""
        for definition in self._definitions:
            own = definition.function.span
            if span is not None and own is not None and own.source.filename == span.source.filename:
                found = {name: definition.scope.resolve(name) for name in names}
                return {name: value for name, value in found.items() if value is not MISSING}
        return {}


def not_defined(name: str, found: Iterable[str]) -> FrontendError:
    """The error for a name that is not in scope."""
    own = list(found)
    close = difflib.get_close_matches(name, own, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"in scope are {', '.join(own) or 'none'}"
    return FrontendError(f"the name {name!r} is not defined here", help=hint)


class _PreparedExpression:
    """An expression for operands of certain types."""

    def __init__(self, function: RelayFunction, given: Sequence[Any]) -> None:
        signature, _ = function.prepare_call(given, {})
        module = signature.typed
        self._closure = Closure(module.main, {}, module)
        self._machine = Machine(sizes=sizes_of(module, module.main, accept(module.main, given)))

    def run(self, values: Sequence[object]) -> object:
        """The value of the expression for some operands."""
        try:
            return unbox(self._machine.run(self._closure, values))
        finally:
            self._machine.frames.clear()


@functools.lru_cache(maxsize=256)
def used_names(text: str) -> tuple[str, ...]:
    """The names that an expression uses, without those that it binds itself. Raises FrontendError for what is none."""
    try:
        tree = ast.parse(text.strip(), "<expression>", "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise FrontendError(f"{text!r} is not an expression: {said}") from None
    nodes = list(ast.walk(tree))
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return tuple(dict.fromkeys(n.id for n in nodes if isinstance(n, ast.Name) and n.id not in bound))


def assigned_values(variable: Variable, value: Any) -> list[tuple[Var, object]]:
    """The values that an assignment to a variable gives variables of the program.

    Raises ExecutionError for a variable that the program does not have: a static number, a function; TypeMismatch for a
    value of another type.
    """
    match variable.held_by:
        case Var() as var:
            assert var.type is not None
            return [(var, run_time_value(_plain_value(value, var.type), var.type, variable.name))]
        case Parts(items) if isinstance(variable.value, Structure):
            given = split(value)
            if given is None or len(given[1]) != len(items):
                raise ExecutionError(f"{variable.name} has {len(items)} parts, which a new value must have, too")
            changes: list[tuple[Var, object]] = []
            parts = zip(items, variable.value.items, given[1], strict=True)
            for position, (meaning, before, part) in enumerate(parts):
                inner = Variable(f"{variable.name}[{position}]", before, meaning)
                if not isinstance(meaning, Var | Parts) and _is_same(before, part):
                    continue
                changes += assigned_values(inner, part)
            return changes
        case _:
            raise ExecutionError(
                f"{variable.name} cannot be changed: the program is made for {short_text(variable.value)}",
                help="make it an argument of the function",
            )


def _is_same(before: object, after: object) -> bool:
    try:
        return bool(np.all(np.asarray(before) == np.asarray(after)))
    except (TypeError, ValueError):
        return before is after


def _plain_value(value: Any, type_: Type) -> Any:
    """A Python value as the argument of a run-time type: arrays of its dtype, tuples of structures."""
    type_ = prune(type_)  # type: ignore[assignment]
    if isinstance(type_, TupleType) and (parts := split(value)) is not None and len(parts[1]) == len(type_.items):
        return tuple(map(_plain_value, parts[1], type_.items))
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(type_, TensorType) and isinstance(value, list | tuple):
        return _array_of(value, type_)
    if isinstance(value, np.ndarray):
        return value.copy()
    return np.asarray(value) if isinstance(value, np.generic | bool) else value


def _array_of(numbers: list[Any] | tuple[Any, ...], type_: TensorType) -> Any:
    """Python's numbers as an array of a variable's dtype, which has to hold them; other things as they are."""
    try:
        found = np.array(numbers)
        if found.dtype.kind not in "biuf" or (found.dtype.kind == "f" and type_.dtype.kind in "biu"):
            return found
        made = found.astype(type_.dtype)
    except (ValueError, OverflowError):
        return numbers
    return made if type_.dtype.kind in "fV" or np.array_equal(made, found) else found
