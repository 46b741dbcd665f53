"""The check of files' texts: the front end and the type checker over their decorated functions, without importing
them."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from relay.api.calls_at_top import calls_at_top, elaborate_call, unhandled_effects
from relay.api.checked_file import CheckedFile, CheckedFunction, CheckMemory, FileMemory, in_order, without_duplicates
from relay.api.differentiation import grad
from relay.api.function import RelayFunction
from relay.api.place_types import of_call, with_types
from relay.calling.donation import donated_names
from relay.compilation.options import Options, options
from relay.errors import InternalError, RelayError
from relay.errors.diagnostic import Diagnostic, Label, Span
from relay.errors.place_warnings import collecting_warnings
from relay.frontend.analysis.unused import unused_warnings
from relay.frontend.source import SourceFile, parse_text
from relay.frontend.static.files import Files
from relay.frontend.static.top_level import PostponedFunction
from relay.frontend.static.unknown_names import UnknownNameError, UnknownValue
from relay.ir.annotations.type_parameters import alias_value, is_alias
from relay.ir.debugging.source_names import collecting
from relay.ir.debugging.source_places import SourcePlaces, collecting_places
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Function
from relay.ir.types import (
    DataType,
    FunctionType,
    Kind,
    QuantifiedType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    TypeId,
)
from relay.typecheck.elaboration import Scheme, elaborate_structured, scheme
from relay.typecheck.elaboration.abstract_values import DependsOnPoison
from relay.typecheck.unification import is_known


def _check_options(written: Mapping[str, Any], function: Function | None) -> None:
    """Raise RelayError for what `@relay(..)` does not take, or, with the function, for what does not fit its
    parameters."""
    chosen = options(written)
    if function is not None:
        donated_names(function, chosen.donate_argnames, chosen.donate_argnums)


class Check:
    """A check of several files, which may import each other. Each is read once; a diagnostic of one may be repeated for
    another.

    `folders`: where modules are searched besides the folders around a file, the working directory and Python's path.
    `texts`: the texts of files that are not those on disk, as of open documents.
    """

    def __init__(self, folders: Sequence[str] = (), texts: Callable[[Path], str | None] = lambda path: None) -> None:
        self._files = Files(lambda definition: RelayFunction(definition, Options()), folders, _check_options, texts)
        self._types: dict[Definition | DerivedDefinition, FunctionType | None] = {}
        self._polymorphic: set[Definition | DerivedDefinition] = set()

    @property
    def files(self) -> list[str]:
        """The names of all files that were read so far."""
        return self._files.names

    def text(self, text: str, filename: str) -> list[Diagnostic]:
        """The diagnostics of a file's text, in the order of files and lines; its own come first. Mistakes that keep
        other modules from being read are among them."""
        return list(self.file(text, filename).diagnostics)

    def file(self, text: str, filename: str, memory: CheckMemory | None = None, surroundings: str = "") -> CheckedFile:
        """The check of a file's text. With a memory, unchanged functions are not checked again, and the types of
        expressions are included; `surroundings` changes whenever a file that this one imports does."""
        with self._files as files, collecting_warnings() as warned, contextlib.ExitStack() as stack:
            places = None if memory is None else stack.enter_context(collecting_places())
            try:
                kept = None if memory is None else FileMemory(memory, parse_text(text, filename), surroundings)
                read = files.read(text, filename) if kept is None else files.read(text, filename, kept.is_known)
            except RelayError as error:
                return CheckedFile(error.diagnostics)
            found = [_not_checked(u.function, u.outside, u.span) for u in read.unread]
            functions, renewed = [], 0
            for definition in read.definitions:
                span = definition.span if isinstance(definition, PostponedFunction) else definition.function.span
                key = None if kept is None else kept.key(span)
                function = None if kept is None or key is None else kept.look_up(*key)
                if isinstance(definition, PostponedFunction):
                    assert function is not None
                elif function is None:
                    renewed += 1
                    function = self._function(files, definition, places)
                    if kept is not None and key is not None:
                        kept.keep(key[0], function, key[1])
                functions.append(function)
            found += unhandled_effects(files, text, filename, functions)
            if kept is not None and places is not None:
                names = {function.name for function in functions}
                functions += self._calls(files, text, filename, kept, places, names)
            mistakes = [d for error in files.errors for d in error.diagnostics]
            found += [*warned, *(d for f in functions for d in f.diagnostics if d.severity != "error")]
            mistakes += [d for f in functions for d in f.diagnostics if d.severity == "error"]
            return CheckedFile(
                tuple(in_order([*found, *without_duplicates(mistakes)], filename)), tuple(functions), renewed
            )

    def _calls(
        self, files: Files, text: str, filename: str, kept: FileMemory, places: SourcePlaces, names: Container[str]
    ) -> Iterator[CheckedFunction]:
        """Checked functions, from the calls at the top of a file."""
        file = files.source_file(text, filename)
        for call in calls_at_top(file.tree, names):
            key = kept.key(file.span(call))
            found = None if key is None else kept.look_up(*key)
            if found is None:
                with collecting(), places.of_program() as values:
                    is_known = elaborate_call(files, text, filename, call)
                    found = of_call(places.meanings(values) if is_known else ())
                if key is not None:
                    kept.keep(key[0], found, key[1])
            yield found

    def _function(self, files: Files, definition: Definition, places: SourcePlaces | None) -> CheckedFunction:
        """The check of one function."""
        known = {id(error) for error in files.errors}
        found, type_ = unused_warnings(definition), None
        with contextlib.ExitStack() as stack:
            values = None
            if places is not None:
                stack.enter_context(collecting())  # which tells what blocks begin with
                values = stack.enter_context(places.of_program())
            try:
                type_ = scheme(definition)
                self._note(definition, type_)
            except UnknownNameError as unknown:
                if not unknown.outside.mistaken:
                    found.append(_not_checked(definition.function.name, unknown.outside, definition.function.span))
            except RelayError as error:
                found += error.diagnostics
            except InternalError as error:
                if places is None:
                    raise
                span = definition.function.span
                found.append(Diagnostic("error", str(error).split("\n")[0], span, code=type(error).__name__))
        found += [d for error in files.errors if id(error) not in known for d in error.diagnostics]
        made = self._types.get(definition)
        effects = frozenset((made and made.effects) or ())
        function = CheckedFunction(definition.function.name, definition.function.span, tuple(found), effects=effects)
        if places is None or values is None:
            return function
        return with_types(function, definition.function, type_, places.meanings(values))

    def source_file(self, text: str, filename: str) -> SourceFile:
        """The parsed text of a file; an empty tree if it cannot be parsed."""
        with self._files as files:
            return files.source_file(text, filename)

    def value(self, text: str, filename: str, expression: str) -> object:
        """The value of an expression without effects at the top of a file; None if it is not known."""
        with self._files as files:
            try:
                found = files.value(text, filename, expression)
            except (RelayError, DependsOnPoison):
                return None
            return None if isinstance(found, UnknownValue) else found

    def functions(self, text: str, filename: str) -> dict[int, FunctionType]:
        """The types of a file's decorated functions that have one, by the line of `def`, or of the lambda."""
        with self._files as files:
            try:
                read = files.read(text, filename)
            except RelayError:
                return {}
            found = [(d.function.span, self._type(d)) for d in read.definitions if isinstance(d, Definition)]
            return {span.line: type_ for span, type_ in found if span is not None and type_ is not None}

    def expression(self, text: str, filename: str, expression: str, of: str | None = None) -> FunctionType | None:
        """The type of a function that an expression without effects makes of the names at the top of a file, as
        `relay.jacobian(f)`; None if that is not known. `of`: the expression of the function that it is made of, whose
        annotations may tell more."""
        with self._files as files:
            definition = decorated_definition(files.value(text, filename, expression))
            found = None if definition is None else self._type(definition)
            if found is None or definition is None or of is None or is_known(found.result):
                return found
            base = decorated_definition(files.value(text, filename, of))
            types = None if base is None else self._type(base)
            if types is None or base in self._polymorphic:
                return found
            try:
                made = elaborate_structured(definition, list(types.parameters))
            except (RelayError, DependsOnPoison):
                return found
            return attrs.evolve(found, result=made.result)

    def pullback(self, text: str, filename: str, expression: str) -> FunctionType | None:
        """The type of the derivative, which takes a seed, of the function that an expression makes."""
        with self._files as files:
            try:
                function: Any = files.value(text, filename, expression)
                definition = decorated_definition(grad(function, seedable=True))
            except (RelayError, DependsOnPoison):
                return None
            return None if definition is None else self._type(definition)

    def names_of_types(self, text: str, filename: str) -> frozenset[str]:
        """The names at the top of a file that stand for types of values."""
        with self._files as files:
            return frozenset(name for name, value in files.names_at_top(text, filename) if _is_type(value))

    def _note(self, definition: Definition | DerivedDefinition, found: Scheme) -> None:
        """Keep a function's type, with the structure of its result as Python sees it."""
        type_ = found.type
        if isinstance(type_, QuantifiedType):
            self._polymorphic.add(definition)
            type_ = type_.body
        self._types[definition] = attrs.evolve(type_, result=found.result) if isinstance(type_, FunctionType) else None

    def _type(self, definition: Definition | DerivedDefinition) -> FunctionType | None:
        if definition not in self._types:
            try:
                self._note(definition, scheme(definition))
            except (RelayError, DependsOnPoison):
                self._types[definition] = None
        return self._types[definition]


def _is_type(value: object) -> bool:
    if isinstance(value, types.GenericAlias):
        return any(map(_is_type, value.__args__))
    if is_alias(value):
        try:
            return _is_type(alias_value(value))
        except (RelayError, DependsOnPoison):
            return False
    if isinstance(value, TypeId):
        return value.kind is Kind.Type
    return isinstance(value, TensorType | TupleType | FunctionType | QuantifiedType | RefType | StackType | DataType)


def check_text(text: str, filename: str) -> list[Diagnostic]:
    """The diagnostics of one file's text; see `Check.text`."""
    return Check().text(text, filename)


def _not_checked(function: str, outside: UnknownValue, span: Span | None) -> Diagnostic:
    message = f"{function} was not checked: only importing the file can tell what {outside.name!r} is; use --import"
    labels = () if outside.span is None else (Label(outside.span, f"{outside.name!r} comes from here"),)
    notes = () if outside.reason is None else (outside.reason,)
    return Diagnostic("note", message, span, labels, notes, code="not-checked")


def decorated_definition(value: object) -> Definition | DerivedDefinition | None:
    """The definition of a decorated function; None for other values."""
    try:
        found = getattr(value, "__relay__", None)
    except DependsOnPoison:
        return None
    return found if isinstance(found, Definition | DerivedDefinition) else None
