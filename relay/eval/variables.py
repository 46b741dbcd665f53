"""The variables of a frame by the names that the user gave them, and values in a short form.

Names come from `relay.ir.debugging.source_names` where they are known, as in a typed program. In other programs, made
by passes or given as text, they are the names of the program's own variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from relay.eval.frames import Activation, Frame
from relay.eval.values import Box, Closure, Data, GradientFunction, Reference, Stack, describe, primal
from relay.ir.debugging.source_names import (
    ComputedNumber,
    FunctionName,
    Meaning,
    Parts,
    PythonValue,
    SizeValue,
    SourceNames,
    function_name,
    words_of,
)
from relay.ir.definition import is_optional
from relay.ir.dims import evaluate
from relay.ir.expr import Constant, Global, If, Loop, Match, Var
from relay.ir.traverse import bound_variables
from relay.ir.types import DataType, Form

SHOWN_CHARACTERS = 72
SHOWN_DEPTH = 3
SHOWN_ITEMS = 4
EDGE_ELEMENTS = 3
"""The number of elements at each end that the short form of a value shows."""

COTANGENT = "d_"
"""The beginning of cotangents' names, before the name of their variable."""

NO_VALUE = object()


@attrs.frozen(eq=False)
class Structure:
    """A structure of the user's whose parts are values of their own."""

    items: tuple[object, ...]
    form: Form | None


@attrs.frozen(eq=False)
class Variable:
    """A variable of a frame: its name, its value now, and what holds it in the program (None where nothing does, as for
    a number that is known before the program runs)."""

    name: str
    value: object
    held_by: Meaning


Variables: TypeAlias = dict[str, Variable]


def variables(frame: Frame, names: SourceNames | None, wanted: frozenset[str] | None = None) -> Variables:
    """The meaning of the names in scope at a frame's place, the outermost first; of `wanted` only, if given."""
    found: Variables = {}
    meanings: Iterator[tuple[str, Meaning]]
    if names is None or not _is_named(frame, names):
        meanings = _in_source(frame)
    else:
        meanings = _user_names(frame, names if wanted is None else names.subset(wanted))
    for name, meaning in meanings:
        if wanted is not None and name not in wanted:
            continue
        if isinstance(meaning, FunctionName):
            meaning = _closure(frame, meaning.name) or meaning
        value = _value(frame, meaning)
        if value is not NO_VALUE:
            found.pop(name, None)
            found[name] = Variable(name, value, meaning)
    return found


def _closure(frame: Frame, name: str) -> Var | None:
    """The variable of this name that holds a function."""
    found = [v for v, value in frame.environment.items() if v.name == name and isinstance(value, Closure)]
    return found[-1] if found else None


def own_variables(frame: Frame) -> Variables:
    """The program's own variables in scope at a frame's place, temporaries among them."""
    return {
        name: Variable(name, frame.environment[var], var)
        for name, var in _own_variables(frame)
        if var in frame.environment
    }


def _is_named(frame: Frame, names: SourceNames) -> bool:
    return any(names[activation.block] for activation in frame.activations) or not frame.closure.function.parameters


def _user_names(frame: Frame, names: SourceNames) -> Iterator[tuple[str, Meaning]]:
    """The names that users have written, as far as the frame has got."""
    last = len(frame.activations) - 1
    for depth, activation in enumerate(frame.activations):
        run = activation.position - (depth < last)  # a binding with a block inside is being run
        yield from ((n.name, n.meaning) for n in names[activation.block] if n.position <= run)


def _in_source(frame: Frame) -> Iterator[tuple[str, Var]]:
    """The program's own variables that are named as one in the source is, cotangents of those among them."""
    span = frame.closure.function.span
    if span is None:
        return _own_variables(frame)
    words = words_of(span.source)
    return ((name, var) for name, var in _own_variables(frame) if name.removeprefix(COTANGENT) in words)


def _own_variables(frame: Frame) -> Iterator[tuple[str, Var]]:
    """The program's own variables, as far as the frame has got."""
    for variable in (*frame.closure.environment, *frame.closure.function.parameters):
        yield variable.name, variable
    last = len(frame.activations) - 1
    for depth, activation in enumerate(frame.activations):
        yield from ((v.name, v) for v in _block_variables(activation))
        for binding in activation.block.bindings[: activation.position - (depth < last)]:
            yield from ((v.name, v) for v in binding.targets)


def _block_variables(activation: Activation) -> Sequence[Var]:
    """The variables that a block begins with."""
    match activation.owner.value if activation.owner is not None else None:
        case Loop() as loop:
            return tuple(bound_variables(loop))
        case Match(_, arms):
            return next((arm.fields for arm in arms if arm.body is activation.block), ())
        case If() | None:
            return ()
        case _:
            return ()


def _value(frame: Frame, meaning: Meaning) -> object:
    match meaning:
        case Var():
            return frame.environment.get(meaning, NO_VALUE)
        case Constant(value):
            return value
        case Global(name) | FunctionName(name):
            return FunctionName(name)
        case PythonValue(value):
            return value
        case SizeValue(dim):
            try:
                return evaluate(dim, frame.sizes)
            except KeyError:  # it is made later
                return NO_VALUE
        case ComputedNumber(compute, operands):
            numbers = [_value(frame, operand) for operand in operands]
            return NO_VALUE if any(n is NO_VALUE for n in numbers) else compute(*numbers)
        case Parts(items, form):
            values = tuple(_value(frame, item) for item in items)
            return NO_VALUE if any(v is NO_VALUE for v in values) else Structure(values, form)
    raise AssertionError(meaning)


# ---- in short


def type_text(value: object) -> str:
    """The type of a value, as far as it shows: `Tensor[float64, (3,)]`."""
    match value:
        case Structure(items, form):
            name = "" if form is None or form.cls is list else form.cls.__name__
            inside = [type_text(item) for item in items]
            if form is not None and form.names:
                inside = [f"{n}: {t}" for n, t in zip(form.names, inside, strict=True)]
            return _bracketed_text(name, form, inside)
        case Reference(content):
            return f"Ref[{type_text(content)}]"
        case Stack(_, length):
            return f"a list of {length}"
        case Data(definition, _, fields) if is_optional(DataType(definition)):
            return type_text(fields[0]) if fields else "None"
        case Data(definition):
            return definition.name
        case FunctionName():
            return "a function"
        case np.ndarray() | Box() | tuple() | Closure() | GradientFunction():
            return describe(value)
        case _:
            return type(value).__name__


def short_text(value: object, characters: int = SHOWN_CHARACTERS) -> str:
    """A value in short, on one line."""
    text = _short_text(value, SHOWN_DEPTH)
    return text if len(text) <= characters else text[: characters - 2] + ".."


def _short_text(value: object, depth: int) -> str:
    match value:
        case Box():
            return _short_text(primal(value), depth)
        case np.ndarray():
            return _array_text(value)
        case Structure(items, form):
            inside = [_short_text(item, depth - 1) for item in items[:SHOWN_ITEMS]] if depth else [".."]
            if form is not None and form.names and depth:
                inside = [f"{n}={t}" for n, t in zip(form.names, inside, strict=False)]
            name = "" if form is None or form.cls is list else form.cls.__name__
            return _bracketed_text(name, form, [*inside, *[".."] * (depth > 0 and len(items) > SHOWN_ITEMS)])
        case tuple():
            return _short_text(Structure(value, None), depth)
        case Reference(content):
            return f"ref({_short_text(content, depth - 1) if depth else '..'})"
        case Stack(buffer, length):
            cells = buffer[: min(length, SHOWN_ITEMS)]
            held = [cell.content if isinstance(cell, Reference) else cell for cell in cells]
            inside = [_short_text(item, depth - 1) for item in held] if depth else [".."]
            return f"[{', '.join([*inside, *['..'] * (depth > 0 and length > SHOWN_ITEMS)])}]"
        case Data(definition, _, fields) if is_optional(DataType(definition)):
            return _short_text(fields[0], depth) if fields else "None"
        case Data(_, constructor, fields):
            if not fields:
                return constructor
            inside = [_short_text(field, depth - 1) for field in fields] if depth else [".."]
            return f"{constructor}({', '.join(inside)})"
        case Closure(function):
            return f"fn {function_name(function)}"
        case GradientFunction(function):
            return f"grad({_short_text(function, depth)})"
        case FunctionName(name):
            return f"fn {name}"
        case _:
            return " ".join(repr(value).split())


def _bracketed_text(name: str, form: Form | None, inside: Sequence[str]) -> str:
    text = ", ".join(inside)
    if form is not None and form.cls is list:
        return f"[{text}]"
    return f"{name}({text},)" if form is None and len(inside) == 1 else f"{name}({text})"


def _array_text(array: np.ndarray) -> str:
    if array.ndim == 0:
        return f"{array[()]:.6g}" if array.dtype.kind == "f" else str(array[()])
    flat = array.astype(np.float32) if array.dtype.kind == "V" else array
    text = np.array2string(flat, precision=4, separator=", ", threshold=2 * EDGE_ELEMENTS, edgeitems=EDGE_ELEMENTS)
    return " ".join(text.split()).replace("...", "..").replace("[ ", "[")


def variable_lines(variables: Mapping[str, Variable]) -> list[str]:
    """A line for each variable: its name, type and value."""
    return [f"{v.name}: {type_text(v.value)} = {short_text(v.value)}" for v in variables.values()]
