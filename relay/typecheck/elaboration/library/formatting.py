"""String formatting: `print`, f-strings and assertion messages, with static parts as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.errors.raised import SEPARATOR, raised_class
from relay.ir.expr import Assert, Binding, Print
from relay.ir.program_output import QUOTED, TEXT, check_format
from relay.ir.types import Form, TensorType, show
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Method,
    Number,
    PythonObject,
    Text,
    Tuple,
    TypedBlockBuilder,
    empty_context,
    is_constant_bool,
    is_of_template,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions.conditions import require_bool
from relay.typecheck.elaboration.values import records, special_methods, texts
from relay.typecheck.elaboration.values.data import is_string, is_text
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.labels import members_of_run
from relay.typecheck.unification import resolve


class _Writer:
    """A text that is put together: pieces of text with values between them."""

    def __init__(self, checker: Checker, out: TypedBlockBuilder, span: Span | None) -> None:
        self.checker = checker
        self.out = out
        self.span = span
        self.pieces = [""]
        self.values: list[DynamicValue] = []
        self.formats: list[str] = []

    def text(self, text: str) -> None:
        self.pieces[-1] += text

    def put(self, entity: AbstractValue, specification: str = "", quoted: bool = False) -> None:
        """Append a value. Inside of tuples, strings are quoted, as in Python."""
        entity = data_dependent.number_at_run_time(self.checker, self.out, entity, self.span)
        known = is_constant_bool(entity)
        if isinstance(entity, DynamicValue) and known is None:
            entity = expand(self.checker, self.out, entity, self.span)
        match entity:
            case Text(pieces, values, formats) if not specification and not quoted:
                for piece, value, form in zip(pieces, values, formats, strict=False):
                    self.text(piece)
                    self._value(value, form)
                self.text(pieces[-1])
            case _ if known is not None and not isinstance(entity, PythonObject):
                self._write_constant(known, specification)
            case Number():
                self._write_constant(entity.specialize(), specification)
            case PythonObject(str() | None as value):
                self.text(repr(value) if quoted else format(value, specification) if value is not None else "None")
            case PythonObject(value):
                self.text(str(value))
            case Tuple() if (members := members_of_run(entity)) is not None:
                said = [PythonObject(repr(member) if quoted else format(member)) for member in members]
                chosen = Tuple(tuple(said), Form(list))
                text = self.checker.engine.index(self.checker, self.out, chosen, [entity.items[0]], self.span)
                self.put(text, specification)
            case Tuple() if (own := self._own_text(entity, specification, quoted)) is not None:
                self.put(own)
            case Tuple():
                self._tuple(entity)
            case Text():
                self._string(entity, specification, quoted)
            case DynamicValue() if is_string(entity):
                self._string(entity, specification, quoted)
            case DynamicValue():
                self._value(entity, specification)
            case _:
                raise TypeMismatch("a function cannot be formatted", self.span, help="print values")

    def _own_text(self, entity: Tuple, specification: str, quoted: bool) -> AbstractValue | None:
        """The text that an object's class makes of it; None if it makes none."""
        for name in ("__format__", "__str__", "__repr__"):
            if (quoted and name != "__repr__") or not records.is_of_user(entity, name):
                continue
            given = [PythonObject(specification)] if name == "__format__" else []
            return special_methods.call(self.checker, self.out, name, entity, given, self.span)
        return None

    def _string(self, entity: Text | DynamicValue, specification: str, quoted: bool) -> None:
        """Append a run-time string."""
        found = texts.codes(self.checker, self.out, entity, self.span)
        if specification:
            written = texts.formatted(self.checker, self.out, entity, specification, self.span)
            if written is None:
                message = f"the format {specification!r} is for numbers, found a run-time string"
                raise TypeMismatch(message, self.span, help="write a width alone: {text:>8}")
            found = written
        self._value(found, QUOTED if quoted else TEXT)

    def _write_constant(self, value: int | float | bool, specification: str) -> None:
        try:
            self.text(format(value, specification))
        except ValueError as error:
            raise TypeMismatch(f"the format {specification!r} does not fit {value}: {error}", self.span) from None

    def _value(self, value: DynamicValue, specification: str) -> None:
        self.values.append(value)
        self.formats.append(specification)
        self.pieces.append("")

    def _tuple(self, entity: Tuple) -> None:
        form = entity.form
        names: Sequence[str] = form.names if form is not None else ()
        is_list, is_dict = form is not None and form.cls is list, form is not None and form.cls is dict
        opening = "[" if is_list else "{" if is_dict else f"{form.cls.__name__}(" if form is not None else "("
        self.text(opening)
        for position, item in enumerate(entity.items):
            self.text(", " if position else "")
            if names:
                self.text(f"{names[position]!r}: " if is_dict else f"{names[position]}=")
            self.put(item, quoted=True)
        lone = form is None and len(entity.items) == 1
        self.text("]" if is_list else "}" if is_dict else ",)" if lone else ")")


def make_text(
    checker: Checker, out: TypedBlockBuilder, parts: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`f"..{x}.."`: a string where all its values are known, otherwise a Text."""
    writer = _Writer(checker, out, span)
    for position in range(0, len(parts) - 1, 3):
        writer.text(_string(parts[position]))
        value, form = parts[position + 1], parts[position + 2]
        if isinstance(form, Text):
            writer.put(_padded(checker, out, value, form, span))
            continue
        specification = _string(form)
        quoted = specification == "!r"
        writer.put(value, "" if quoted else specification, quoted)
    writer.text(_string(parts[-1]))
    return _text_entity(writer)


_PADDED = re.compile(r"(?:(?P<fill>.)(?=[<>^]))?(?P<align>[<>^])?(?P<zeros>0)?", re.DOTALL)
_PADDING = {"<": "ljust", ">": "rjust", "^": "center"}


def _padded(
    checker: Checker, out: TypedBlockBuilder, value: AbstractValue, form: Text, span: Span | None
) -> AbstractValue:
    """A value in a format whose width is computed: `{x:>{width}.2f}`. Raises TypeMismatch for other computed parts."""
    before = _PADDED.fullmatch(form.pieces[0])
    if before is None or len(form.values) != 1 or form.formats[0]:
        help = "compute the width alone: {x:>{width}.2f}"
        raise TypeMismatch("this part of a format must be known at compile time", span, help=help)
    text = make_text(checker, out, [PythonObject(""), value, PythonObject(form.pieces[1]), PythonObject("")], span)
    method = _PADDING[before["align"] or ("<" if is_text(value) else ">")]
    given: list[AbstractValue] = [form.values[0], PythonObject(before["fill"] or " ")]
    if before["zeros"]:
        method, given = "zfill", given[:1]
    return checker.engine.call(checker, empty_context(), out, Method(text, method), given, (), span, [])


def concatenate_texts(
    checker: Checker, out: TypedBlockBuilder, parts: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`a + b` of texts."""
    writer = _Writer(checker, out, span)
    for part in parts:
        writer.put(part)
    return _text_entity(writer)


def _text_entity(writer: _Writer) -> AbstractValue:
    if not writer.values:
        return PythonObject(writer.pieces[0])
    return Text(tuple(writer.pieces), tuple(writer.values), tuple(writer.formats))


def _string(entity: AbstractValue) -> str:
    assert isinstance(entity, PythonObject) and isinstance(entity.value, str)
    return entity.value


def print_(
    checker: Checker,
    out: TypedBlockBuilder,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
) -> AbstractValue:
    """`print(..)`"""
    checker.effect("io", "prints", span)
    options = {"sep": " ", "end": "\n"}
    for name, entity in keywords:
        if not isinstance(entity, PythonObject) or not isinstance(entity.value, str | None):
            raise TypeCheckError(f"the {name} of print must be a string known at compile time", span)
        if entity.value is not None:
            options[name] = entity.value
    writer = _Writer(checker, out, span)
    for position, argument in enumerate(arguments):
        writer.text(options["sep"] if position else "")
        writer.put(argument)
    writer.text(options["end"])
    node = Print(tuple(writer.pieces), tuple(v.atom for v in writer.values), tuple(writer.formats), span)
    out.items.append(Binding((), node))
    _check_formats(checker, writer.values, writer.formats, span)
    return PythonObject(None)


def _check_formats(checker: Checker, values: Sequence[DynamicValue], formats: Sequence[str], span: Span | None) -> None:
    """See at the end that the values can be written."""

    def check() -> None:
        for value, specification in zip(values, formats, strict=True):
            type_ = resolve(value.type)
            if not isinstance(type_, TensorType):
                message = f"print cannot write a value of type {show(type_)}"
                raise TypeMismatch(
                    message, span, help="print tensors and numbers; print the elements of a list in a loop"
                )
            wrong = check_format(specification, type_.dtype, type_.rank)
            if wrong is not None:
                raise TypeMismatch(wrong, span)

    if not checker.generic:
        checker.module.finishers.append(check)


def never_holds(message: str, span: Span | None) -> TypeCheckError:
    """The error for an assertion whose condition the checker knows not to hold. (`assert False` is one at run time.)"""
    cls, text = raised_class(message)
    message = text if cls is AssertionError else message
    if is_of_template(span):  # the library says what a call of its must be
        return TypeCheckError(message, span)
    return TypeCheckError(f"this assertion cannot hold: {message}", span).wherever_it_runs(message)


def plain_text(text: AbstractValue) -> str:
    """The static value of a text."""
    if isinstance(text, PythonObject):
        return str(text.value)
    return "".join(text.pieces) if isinstance(text, Text) else ""


def assert_(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`assert c, f".."`, where c does not hold."""
    checker.effect("assert", "may fail in an assertion", span)
    condition, text = arguments
    if isinstance(condition, DynamicValue) and condition.known is False:
        raise never_holds(plain_text(text), span)
    if isinstance(text, PythonObject) and isinstance(text.value, str):
        typed = require_bool(checker, out, condition, span, "the condition of assert")
        out.items.append(Binding((), Assert(typed.atom, text.value, span)))
        return PythonObject(None)
    if not isinstance(text, Text):
        raise SchemeOnly(span, "the text of the assertion")
    text = _of_caught_error(checker, out, text, span)
    values = tuple(v.atom for v in text.values)
    out.items.append(Binding((), Print(text.pieces, values, text.formats, span, fails=True)))
    _check_formats(checker, text.values, text.formats, span)
    return PythonObject(None)


def _of_caught_error(checker: Checker, out: TypedBlockBuilder, text: Text, span: Span | None) -> Text:
    """The text of an error, behind its class, as one value, in a program that may catch it."""
    if not checker.decisions.caught:
        return text
    first, separator, rest = text.pieces[0].partition(SEPARATOR)
    prefix = first + separator if separator else ""
    whole = Text((rest if separator else first, *text.pieces[1:]), text.values, text.formats)
    return Text((prefix, ""), (texts.codes(checker, out, whole, span),), (TEXT,))
