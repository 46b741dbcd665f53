"""Arrays, attributes of operators and options of `grad` from their text."""

from __future__ import annotations

import numpy as np

from relay.errors import FrontendError
from relay.ir.expr import AttributeValue
from relay.ir.types import BOOL, BaseType
from relay.text.constants import SUFFIXES, Nested, array_of
from relay.text.lexer import Cursor, Kind, Token
from relay.text.type_parser import NUMBERS, TypeParser


class ValueParser:
    """Reads values at a cursor."""

    def __init__(self, cursor: Cursor, types: TypeParser) -> None:
        self.cursor = cursor
        self.types = types

    # ---- arrays

    def at_array(self) -> bool:
        """True if the elements of an array are at the cursor."""
        token = self.cursor.next
        if token.kind is Kind.NAME:
            return token.text in ("true", "false") or (
                token.text in NUMBERS and self.cursor.peek().text == "." and self.cursor.peek(2).text in SUFFIXES
            )
        return token.kind is Kind.NUMBER or self.cursor.is_at("[")

    def array(self) -> np.ndarray:
        """`2.0f32`, `true`, `[[1, 2], [3, 4]]i32`, `inf.f32`. Raises FrontendError."""
        cursor = self.cursor
        start = cursor.next
        elements = self._elements()
        last = cursor.tokens[cursor.position - 1]
        base = BOOL
        if last.kind is Kind.NAME and last.text not in NUMBERS:  # true, false
            pass
        elif last.text in NUMBERS:
            cursor.expect(".", " and the dtype of the number")
            base = self._suffix()
        elif cursor.next.kind is Kind.NAME and cursor.next.start == last.end:
            base = self._suffix()
        elif last.kind is Kind.NUMBER:
            suffix = "i32" if last.text.lstrip("-").isdigit() else "f32"
            help = f"write {last.text}{suffix}, for example"
            raise FrontendError(f"the number {last.text} has no dtype", cursor.span(last), help=help)
        try:
            return array_of(elements, base)
        except ValueError as error:
            raise FrontendError(str(error), cursor.span_from(start)) from None

    def _suffix(self) -> BaseType:
        cursor = self.cursor
        token = cursor.expect_kind(Kind.NAME, "a dtype such as f32")
        if token.text not in SUFFIXES:
            raise cursor.unknown_name_error("dtype", token, token.text, SUFFIXES)
        return SUFFIXES[token.text]

    def _elements(self) -> Nested:
        cursor = self.cursor
        if cursor.accept("["):
            return self.types.separated_items("]", self._elements)
        token = cursor.next
        if token.kind is Kind.NUMBER or (token.kind is Kind.NAME and token.text in ("true", "false", *NUMBERS)):
            return cursor.take().text
        raise cursor.expected_error("an element of an array")

    def index(self, what: str) -> int:
        """An integer from 0. Raises FrontendError for anything else."""
        token = self.cursor.next
        if not token.text.isdigit():
            raise self.cursor.expected_error(what)
        return int(self.cursor.take().text)

    # ---- attributes

    def attribute(self) -> AttributeValue:
        """The value of an attribute. Raises FrontendError."""
        return self.types.attribute()

    def grad_options(self) -> dict[str, object]:
        """`{wrt=(0,), output=1, keeping=(0,), seedable, with_value, has_aux}`, each of them or not."""
        cursor = self.cursor
        cursor.expect("{")
        options: dict[str, object] = {}
        for token, value in self.types.separated_items("}", self._option):
            if token.text in options:
                raise FrontendError(f"the option `{token.text}` is given twice", cursor.span(token))
            options[token.text] = value
        return options

    def _option(self) -> tuple[Token, object]:
        cursor = self.cursor
        token = cursor.expect_kind(Kind.NAME, "an option of `grad`")
        match token.text:
            case "seedable" | "with_value" | "has_aux":
                return token, True
            case "memory":
                cursor.expect("=")
                start = cursor.next
                value = self.attribute()
                if value != "recompute" and type(value) is not int:
                    wanted = '"recompute" or a number of bytes'
                    raise FrontendError(f"`memory` is {wanted}", cursor.span_from(start))
                return token, value
            case "wrt" | "keeping" | "output":
                cursor.expect("=")
                start = cursor.next
                value = self.attribute()
                values = (value,) if token.text == "output" else value
                if not isinstance(values, tuple) or not all(type(v) is int for v in values):
                    wanted = "an integer" if token.text == "output" else "a tuple of integers"
                    raise FrontendError(f"`{token.text}` is {wanted}", cursor.span_from(start))
                return token, value
        options = ("wrt", "output", "keeping", "seedable", "with_value", "has_aux", "memory")
        raise cursor.unknown_name_error("option of `grad`", token, token.text, options)
