"""The bodies of untyped functions from their text: what the front end hands on, before elaboration.

function    ::= fn f([kind] [static] [given_back] %x [: T] [named "x"] [= a], ..) [-> T] block
kind        ::= positional_only | keyword_only | var_positional | var_keyword
expression  ::= apply a(a, .., name=a, ..) [changing i, ..] | a.name | a.name = a | a[item, ..] [updated]
                | a[item, .. = a] | a : T
                | unpack a 3 | loop 'l for %x in a (%y = a, ..) block
                | match a { pattern [if block] -> block .. } | those of typed programs
item        ::= a | [a]:[a][:[a]]
pattern     ::= _ | %x | a | == %x | (p, *p, ..) | a(p, .., name=p) | p | p | p as %x
atom        ::= %x | @name of the Python module | 3 | 2.5 | "text" | none | ... | static value | $list
                | python "dict" | constant
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs

from relay.errors import FrontendError, Span
from relay.ir.expr import Atom, Constant, Expr, Function, Global, Parameter, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import (
    Annotated,
    Apply,
    Attribute,
    CapturePattern,
    ClassPattern,
    Index,
    IndexUpdate,
    OrPattern,
    Pattern,
    PatternCase,
    PatternMatch,
    SetAttribute,
    Slice,
    TuplePattern,
    Unpack,
    ValuePattern,
    WildcardPattern,
)
from relay.text.atoms import AtomParser, Declarations
from relay.text.body_parser import BodyParser, Signature
from relay.text.constants import SUFFIXES
from relay.text.lexer import Cursor, Kind, Token
from relay.text.type_parser import NUMBERS, TypeParser

_KINDS = ("positional_only", "keyword_only", "var_positional", "var_keyword")
_WORDS = ("none", "static", "python", "true", "false", *NUMBERS)
_T = TypeVar("_T")


class SurfaceAtoms(AtomParser):
    """Reads the atoms of untyped programs."""

    def variable(self) -> Var:
        """`%x`, or `%x: T` where it is annotated."""
        token = self.cursor.expect_kind(Kind.VARIABLE)
        return Var(token.text[1:], self.types.type() if self.cursor.accept(":") else None, self.cursor.span(token))

    def at_atom(self) -> bool:
        """True if an atom is at the cursor."""
        token = self.cursor.next
        match token.kind:
            case Kind.VARIABLE | Kind.GLOBAL | Kind.CONSTANT | Kind.INTRINSIC | Kind.NUMBER:
                return True
            case Kind.STRING:
                return self.cursor.peek().text != "("  # else an operator
            case Kind.NAME:
                return token.text in _WORDS and self.cursor.peek().text != "("
        return self.cursor.is_at("[") or self.cursor.is_at(".", ".", ".")

    def atom(self) -> Atom:
        """A variable, a name of the Python module, a constant, or what Python knows at compile time."""
        cursor = self.cursor
        token = cursor.next
        match token.kind:
            case Kind.VARIABLE:
                return self.use(cursor.take())
            case Kind.GLOBAL:
                return Global(cursor.unquote(cursor.take()), None, cursor.span(token))
            case Kind.CONSTANT:
                return self.long_constant()
            case Kind.INTRINSIC:
                return Static(Intrinsic(cursor.take().text[1:]), cursor.span(token))
            case Kind.STRING:
                return Static(cursor.string("a text"), cursor.span(token))
            case Kind.NUMBER if not self._is_array_number():
                return Static(_number(cursor.take()), cursor.span(token))
        if cursor.is_at(".", ".", "."):
            cursor.position += 3
            return Static(..., cursor.span_from(token))
        if token.kind is Kind.NAME and token.text in _WORDS:
            return self._word(token)
        if not self.values.at_array():
            raise cursor.expected_error("a variable, a name `@f` of Python or a value")
        return Constant(self.values.array(), cursor.span_from(token))

    def _is_array_number(self) -> bool:
        """True if a dtype follows the number at the cursor."""
        number, suffix = self.cursor.next, self.cursor.peek()
        if number.text in NUMBERS:
            return suffix.text == "." and self.cursor.peek(2).text in SUFFIXES
        return suffix.kind is Kind.NAME and suffix.start == number.end

    def _word(self, token: Token) -> Atom:
        cursor = self.cursor
        if token.text in ("true", "false") or (token.text in NUMBERS and self._is_array_number()):
            return Constant(self.values.array(), cursor.span_from(token))
        cursor.take()
        match token.text:
            case "none":
                value: object = None
            case "static":
                value = self.types.attribute()
            case "python":
                value = self.types.python()
            case _:
                value = float(token.text)
        return Static(value, cursor.span_from(token))


class SurfaceParser(BodyParser):
    """Reads untyped functions at a cursor."""

    atoms: SurfaceAtoms

    def __init__(self, cursor: Cursor, types: TypeParser, declared: Declarations) -> None:
        super().__init__(cursor, types, declared)
        self._names: dict[Var, str] = {}  # of parameters that have another one in the text

    def _atoms(self) -> AtomParser:
        return SurfaceAtoms(self.cursor, self.types, self.values, self.declared)

    def signature(self) -> Signature:
        """`(%x, keyword_only %y: T = 1) [-> T]`"""
        self.cursor.expect("(", " and the parameters")
        pairs = self.types.separated_items(")", self._parameter)
        result = self.types.type() if self.cursor.accept("->") else None
        return Signature(tuple(v for v, _ in pairs), result, tuple(p for _, p in pairs))

    def _parameter(self) -> tuple[Var, Parameter]:
        cursor = self.cursor
        kind = cursor.take().text if cursor.next.text in _KINDS else "positional_or_keyword"
        static = cursor.accept("static") is not None
        given_back = cursor.accept("given_back") is not None
        variable = self.atoms.variable()
        if cursor.accept("named"):
            self._names[variable] = cursor.string("the parameter's name in Python, in quotes")
        default = self.atoms.atom() if cursor.accept("=") else None
        return variable, Parameter(kind, default, static, given_back)

    def _body(self, name: str, signature: Signature, span: Span) -> Function:
        function = super()._body(name, signature, span)
        for parameter in function.parameters:
            parameter.name = self._names.pop(parameter, parameter.name)
        return function

    # ---- expressions

    def _expression(self) -> Expr:
        cursor = self.cursor
        start = cursor.next
        if start.kind is Kind.NAME and cursor.peek().text != "(":
            match start.text:
                case "apply":
                    return self._apply()
                case "unpack":
                    return self._by_notation(Unpack, cursor.take())
        if not self.atoms.at_atom():
            return super()._expression()
        before = cursor.position
        atom = self.atoms.atom()
        if cursor.is_at("["):
            return self._subscript(atom, start)
        if cursor.accept(":"):
            return Annotated(atom, self.types.type(), cursor.span_from(start))
        if cursor.is_at(".") and cursor.peek().kind in (Kind.NAME, Kind.STRING):
            cursor.take()
            name = cursor.name("the name of an attribute")
            if cursor.accept("="):
                return SetAttribute(atom, name, self.atoms.atom(), cursor.span_from(start))
            return Attribute(atom, name, cursor.span_from(start))
        if cursor.is_at(".") or cursor.is_at("("):
            cursor.position = before
            return super()._expression()
        return atom

    def _apply(self) -> Apply:
        cursor = self.cursor
        start = cursor.take()
        function = self.atoms.atom()
        cursor.expect("(", " and the arguments")
        arguments: list[Atom] = []
        keywords: list[tuple[str, Atom]] = []
        for name, value in self.types.separated_items(")", lambda: self._keyword_item(self.atoms.atom)):
            if name is not None:
                keywords.append((name, value))
            elif keywords:
                raise FrontendError("positional arguments come before keyword arguments", cursor.span_from(start))
            else:
                arguments.append(value)
        changed: list[int] = []
        while cursor.accept("," if changed else "changing"):
            changed.append(-1 if cursor.accept("receiver") else self.values.index("the number of an argument"))
        return Apply(function, tuple(arguments), tuple(keywords), cursor.span_from(start), tuple(changed))

    def _keyword_item(self, item: Callable[[], _T]) -> tuple[str | None, _T]:
        """`name=item`, or `item`."""
        cursor = self.cursor
        name = None
        if cursor.next.kind in (Kind.NAME, Kind.STRING) and cursor.peek().text == "=":
            name = cursor.name("a name")
            cursor.take()
        return name, item()

    def _subscript(self, value: Atom, start: Token) -> Index | IndexUpdate:
        cursor = self.cursor
        cursor.take()
        items: list[Atom | Slice] = []
        while not cursor.is_at("]") and not cursor.is_at("="):
            items.append(self._item())
            if not cursor.is_at("]") and not cursor.is_at("="):
                cursor.expect(",", ", `=` or `]`")
        if cursor.accept("="):
            new = self.atoms.atom()
            cursor.expect("]")
            inside = cursor.accept("inside") is not None
            return IndexUpdate(value, tuple(items), new, cursor.span_from(start), inside)
        cursor.expect("]")
        updated = cursor.accept("updated") is not None
        return Index(value, tuple(items), cursor.span_from(start), updated)

    def _item(self) -> Atom | Slice:
        first = self._end()
        if first is not None and not self.cursor.is_at(":"):
            return first
        self.cursor.expect(":", " or an index")
        stop = self._end()
        return Slice(first, stop, self._end() if self.cursor.accept(":") else None)

    def _end(self) -> Atom | None:
        """One part of a slice, if it is given."""
        cursor = self.cursor
        return (
            None
            if cursor.is_at(":") or cursor.is_at(",") or cursor.is_at("]") or cursor.is_at("=")
            else self.atoms.atom()
        )

    def _iterable(self) -> Atom | None:
        return self.atoms.atom() if self.cursor.accept("in") else None

    def _resized_parameters(self) -> tuple[int, ...]:
        if not self.cursor.accept("resizing"):
            return ()
        positions = [self.values.index("the position of a parameter")]
        while self.cursor.accept(","):
            positions.append(self.values.index("the position of a parameter"))
        return tuple(positions)

    # ---- match

    def _match(self) -> PatternMatch:
        cursor = self.cursor
        start = cursor.take()
        value = self.atoms.atom()
        span = cursor.span_from(start)
        cursor.expect("{", " and the cases")
        cases: list[PatternCase] = []
        while not cursor.accept("}"):
            cases.append(self._case())
        return PatternMatch(value, tuple(cases), span)

    def _case(self) -> PatternCase:
        cursor = self.cursor
        start = cursor.next
        patterns = _Patterns(cursor, self.atoms, self.types.separated_items)
        pattern = patterns.pattern()
        span = cursor.span_from(start)
        variables = tuple(patterns.variables.values())
        guard = self._block(variables) if cursor.accept("if") else None
        cursor.expect("->", " and what happens in this case")
        return PatternCase(pattern, guard, self._block(variables), span)


@attrs.define(eq=False)
class _Patterns:
    """Reads one case's pattern. `variables` are those that it binds, which are bound in each of its alternatives."""

    cursor: Cursor
    atoms: SurfaceAtoms
    separated: Callable[[str, Callable[[], tuple[str | None, bool, Pattern]]], list[tuple[str | None, bool, Pattern]]]
    variables: dict[str, Var] = attrs.field(factory=dict)

    def pattern(self) -> Pattern:
        """`p | p as %x`"""
        cursor = self.cursor
        start = cursor.next
        alternatives = [self._closed_pattern()]
        while cursor.accept("|"):
            alternatives.append(self._closed_pattern())
        found = alternatives[0] if len(alternatives) == 1 else OrPattern(tuple(alternatives), self._span(start))
        while cursor.accept("as"):
            found = CapturePattern(self._variable(), found, self._span(start))
        return found

    def _span(self, start: Token) -> Span:
        return self.cursor.span_from(start)

    def _variable(self) -> Var:
        variable = self.atoms.variable()
        return self.variables.setdefault(variable.name, variable)

    def _closed_pattern(self) -> Pattern:
        cursor = self.cursor
        start = cursor.next
        if cursor.accept("_"):
            return WildcardPattern(self._span(start))
        if cursor.accept("=="):
            return ValuePattern(self.atoms.atom(), self._span(start))
        if cursor.is_at("("):
            return self._brackets()
        if start.kind is Kind.VARIABLE and cursor.peek().text != "(":
            return CapturePattern(self._variable(), WildcardPattern(self._span(start)), self._span(start))
        if not self.atoms.at_atom() and cursor.peek().text != "(":
            raise cursor.expected_error("a pattern")
        value = self.atoms.atom()
        if not cursor.accept("("):
            return ValuePattern(value, self._span(start))
        parts = self.separated(")", self._part)
        keywords = tuple((name, p) for name, _, p in parts if name is not None)
        items = tuple(p for name, _, p in parts if name is None)
        return ClassPattern(value, items, keywords, self._span(start))

    def _part(self) -> tuple[str | None, bool, Pattern]:
        """A part of a tuple or class: its name, whether it is starred, and its pattern."""
        cursor = self.cursor
        name = None
        if cursor.next.kind in (Kind.NAME, Kind.STRING) and cursor.peek().text == "=":
            name = cursor.name("the name of a field")
            cursor.take()
        starred = cursor.accept("*") is not None
        return name, starred, self.pattern()

    def _brackets(self) -> Pattern:
        """`(p, ..)`, or `(p)`, which is p."""
        cursor = self.cursor
        start = cursor.take()
        items: list[Pattern] = []
        star: int | None = None
        commas = False
        while not cursor.accept(")"):
            token = cursor.next
            _, starred, item = self._part()
            if starred and star is not None:
                raise FrontendError("a tuple has one starred part", cursor.span(token))
            star = len(items) if starred else star
            items.append(item)
            if not cursor.is_at(")"):
                cursor.expect(",", " or `)`")
                commas = True
        if len(items) == 1 and not commas and star is None:
            return items[0]
        return TuplePattern(tuple(items), star, self._span(start))


def _number(token: Token) -> int | float:
    return int(token.text) if token.text.lstrip("-").isdigit() else float(token.text)
