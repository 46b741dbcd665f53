"""The check of files' texts: the front end and the type checker over their decorated functions, without importing
them."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from relay.api.differentiation import grad
from relay.calling.donation import donated_names
from relay.diagnostic import Diagnostic, Label, Span
from relay.errors import RelayError, together
from relay.frontend.analysis.unused import unused_warnings
from relay.frontend.static.files import Files
from relay.frontend.static.unknown_names import UnknownNameError, UnknownValue
from relay.function import RelayFunction
from relay.ir.annotations.type_parameters import alias_value, is_alias
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
from relay.options import Options, options
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
    """A check of several files, which may import each other. Each is read once; what is told of one may be told again.

    `folders`: where modules are searched besides the folders around a file, the working directory and Python's path.
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._files = Files(lambda definition: RelayFunction(definition, Options()), folders, _check_options)
        self._types: dict[Definition | DerivedDefinition, FunctionType | None] = {}
        self._polymorphic: set[Definition | DerivedDefinition] = set()

    @property
    def files(self) -> list[str]:
        """The names of all files that were read so far."""
        return self._files.names

    def text(self, text: str, filename: str) -> list[Diagnostic]:
        """The diagnostics of a file's text, in the order of files and lines; its own come first. Mistakes that keep
        other modules from being read are among them."""
        with self._files as files:
            try:
                read = files.read(text, filename)
            except RelayError as error:
                return list(error.diagnostics)
            errors: list[RelayError] = []
            found = [_not_checked(u.function, u.outside, u.span) for u in read.unread]
            for definition in read.definitions:
                found += unused_warnings(definition)
                try:
                    self._note(definition, scheme(definition))
                except UnknownNameError as unknown:
                    if not unknown.outside.mistaken:
                        function = definition.function
                        found.append(_not_checked(function.name, unknown.outside, function.span))
                except RelayError as error:
                    errors.append(error)
            errors = [*files.errors, *errors]
            if errors:
                found += together(errors).diagnostics
            return in_order(found, filename)

    def functions(self, text: str, filename: str) -> dict[int, FunctionType]:
        """The types of a file's decorated functions that have one, by the line of `def`, or of the lambda."""
        with self._files as files:
            try:
                read = files.read(text, filename)
            except RelayError:
                return {}
            found = [(d.function.span, self._type(d)) for d in read.definitions]
            return {span.line: type_ for span, type_ in found if span is not None and type_ is not None}

    def expression(self, text: str, filename: str, expression: str, of: str | None = None) -> FunctionType | None:
        """The type of a function that an expression without effects makes of the names at the top of a file, as
        `relay.jacobian(f)`; None if that is not known. `of`: the expression of the function that it is made of, whose
        annotations may tell more."""
        with self._files as files:
            definition = self._definition(files.value(text, filename, expression))
            found = None if definition is None else self._type(definition)
            if found is None or definition is None or of is None or is_known(found.result):
                return found
            base = self._definition(files.value(text, filename, of))
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
                definition = self._definition(grad(files.value(text, filename, expression), seedable=True))
            except (RelayError, DependsOnPoison):
                return None
            return None if definition is None else self._type(definition)

    def _definition(self, value: object) -> Definition | DerivedDefinition | None:
        try:
            found = getattr(value, "__relay__", None)
        except DependsOnPoison:
            return None
        return found if isinstance(found, Definition | DerivedDefinition) else None

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


def in_order(diagnostics: Iterable[Diagnostic], first: str = "") -> list[Diagnostic]:
    """Diagnostics in the order of the text; those without a place first, then those of the first file."""
    return sorted(diagnostics, key=lambda d: (_file(d) not in ("", first), _file(d), place_of(d)))


def _file(diagnostic: Diagnostic) -> str:
    return diagnostic.span.source.filename if diagnostic.span is not None else ""


def place_of(diagnostic: Diagnostic) -> tuple[int, int]:
    """Line and column, to sort and compare by."""
    return (diagnostic.span.line, diagnostic.span.column) if diagnostic.span is not None else (0, 0)


def _not_checked(function: str, outside: UnknownValue, span: Span | None) -> Diagnostic:
    message = f"{function} was not checked: only importing the file can tell what {outside.name!r} is; use --import"
    labels = () if outside.span is None else (Label(outside.span, f"{outside.name!r} comes from here"),)
    notes = () if outside.reason is None else (outside.reason,)
    return Diagnostic("note", message, span, labels, notes, code="not-checked")
