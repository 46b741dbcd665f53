"""Symbolic dims from their text, `2*n + m//2 - 1` and `n % 2 == 0`, and sequences of anything in brackets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from relay.errors import FrontendError
from relay.ir import dims
from relay.ir.dims import DataDependentDim, made_dim
from relay.ir.sizes.facts import AT_LEAST, DIFFERENT, EQUAL, DimConstraint
from relay.ir.types import ANY, Dim, Kind, TypeId
from relay.text import lexer
from relay.text.lexer import Cursor

_T = TypeVar("_T")

_OPERATORS = {
    "+": dims.add, "-": dims.subtract, "*": dims.multiply, "//": dims.floor_divide, "%": dims.modulo,
}  # fmt: skip
EXTREMA = {"max": dims.maximum, "min": dims.minimum}
"""Functions of dims, by the names that no type-level function has in a text."""


class DimParser:
    """Reads dims at a cursor. `_variables` are the variables that are in scope there, of all kinds."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self._variables: dict[str, TypeId] = {}

    # ---- declarations

    def declare_dims(self) -> None:
        """`n, m, made k, made wide l`: the symbolic dims of the module, and the data-dependent ones."""
        cursor = self.cursor
        while True:
            is_made = cursor.is_at("made") and cursor.peek().kind in (lexer.Kind.NAME, lexer.Kind.STRING)
            if is_made:
                cursor.take()
            is_wide = is_made and cursor.is_at("wide") and cursor.peek().kind in (lexer.Kind.NAME, lexer.Kind.STRING)
            if is_wide:
                cursor.take()
            token = cursor.next
            name = cursor.name("the name of a dim")
            if name in self._variables:
                raise FrontendError(f"the dim `{name}` is declared twice", cursor.span(token))
            self._variables[name] = made_dim(name, is_wide) if is_made else TypeId(name, Kind.Dim)
            if not cursor.accept(","):
                return

    def made_dim(self) -> DataDependentDim:
        """The name of a data-dependent size. Raises FrontendError."""
        token = self.cursor.next
        found = self._variables.get(self.cursor.name("the name of a dim"))
        if not isinstance(found, DataDependentDim):
            raise FrontendError(f"`{token.text}` is not declared, `dims made {token.text};`", self.cursor.span(token))
        return found

    # ---- dims

    def at_dim(self) -> bool:
        """True if a dim that is not only a number is at the cursor."""
        cursor = self.cursor
        token = cursor.next
        if cursor.is_at("("):
            return self._is_operator(cursor.tokens[cursor.closing[cursor.position] + 1])
        if token.kind is lexer.Kind.NAME:
            variable = self._variables.get(token.text)
            in_scope = variable is not None and variable.kind is Kind.Dim
            return in_scope or (token.text in EXTREMA and cursor.peek().text == "(")
        if cursor.is_at("-"):
            return True
        return token.kind is lexer.Kind.NUMBER and self._is_operator(cursor.peek())

    def _is_operator(self, token: lexer.Token) -> bool:
        is_symbol = token.kind is lexer.Kind.SYMBOL and token.text in _OPERATORS
        return is_symbol or (token.kind is lexer.Kind.NUMBER and token.text.startswith("-"))

    def dim(self) -> Dim:
        """`2*n + m//2 - 1`, as `relay.ir.dims` prints it. Raises FrontendError."""
        cursor = self.cursor
        total: Dim = dims.subtract(0, self._product()) if cursor.accept("-") else self._product()
        while True:
            if cursor.accept("+"):
                total = dims.add(total, self._product())
            elif cursor.accept("-"):
                total = dims.subtract(total, self._product())
            elif cursor.next.kind is lexer.Kind.NUMBER and cursor.next.text.startswith("-"):
                total = dims.add(total, self._product())
            else:
                return total

    def _product(self) -> Dim:
        cursor = self.cursor
        value = self._factor()
        while cursor.next.kind is lexer.Kind.SYMBOL and cursor.next.text in ("*", "//", "%"):
            symbol = cursor.take()
            factor = self._factor()
            if symbol.text != "*" and factor == 0:
                raise FrontendError("a dim is divided by 0", cursor.span_from(symbol))
            value = _OPERATORS[symbol.text](value, factor)
        return value

    def _factor(self) -> Dim:
        cursor = self.cursor
        token = cursor.next
        if token.kind is lexer.Kind.NUMBER and token.text.lstrip("-").isdigit():
            return int(cursor.take().text)
        if cursor.accept("("):
            inside = self.dim()
            cursor.expect(")")
            return inside
        if cursor.accept("Any"):
            return ANY
        if token.kind is lexer.Kind.NAME and token.text in EXTREMA and cursor.peek().text == "(":
            cursor.position += 2
            return EXTREMA[token.text](*self.separated_items(")", self.dim))
        variable = self._variables.get(token.text)
        if variable is None or variable.kind is not Kind.Dim:
            raise cursor.expected_error("a dim: a number, `Any` or a variable")
        cursor.take()
        return variable

    def constraint(self) -> DimConstraint:
        """`n >= 1`: what is demanded of dims."""
        cursor = self.cursor
        start = cursor.next
        left = self.dim()
        relation = cursor.next.text
        if relation not in (EQUAL, DIFFERENT, AT_LEAST):
            raise cursor.expected_error("`==`, `!=` or `>=`")
        cursor.take()
        right = self.dim()
        return DimConstraint(left, relation, right, span=cursor.span_from(start))

    # ---- sequences

    def separated_items(self, closing: str, item: Callable[[], _T]) -> list[_T]:
        """Items with commas between them, up to the closing bracket; the opening one has been read."""
        cursor = self.cursor
        items: list[_T] = []
        if cursor.accept(closing):
            return items
        while True:
            items.append(item())
            if cursor.accept(closing):
                return items
            cursor.expect(",", f" or `{closing}`")

    def tuple_items(self, item: Callable[[], _T]) -> tuple[_T, ...]:
        """The items of `()`, `(a,)`, `(a, b)`; the opening bracket has been read."""
        cursor = self.cursor
        items: list[_T] = []
        while not cursor.accept(")"):
            items.append(item())
            if cursor.is_at(")") and len(items) == 1:
                raise cursor.expected_error("`,`", help="a tuple with one item is written with a comma: (a,)")
            if not cursor.is_at(")"):
                cursor.expect(",", " or `)`")
        return tuple(items)
