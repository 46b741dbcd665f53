"""Atoms in text: variables, labels, functions and constants, at their bindings and uses."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from relay.errors import FrontendError, Label
from relay.ir.expr import Atom, Constant, Global, LoopLabel, Var
from relay.ir.types import BaseType, FunctionType, TensorType
from relay.text.lexer import Cursor, Kind, Token
from relay.text.type_parser import TypeParser
from relay.text.values import ValueParser


@attrs.define(eq=False)
class Declarations:
    """The declarations that bodies may mention: the functions of the module with their types, and its long
    constants."""

    functions: dict[str, FunctionType] = attrs.field(factory=dict)
    constants: dict[str, Constant] = attrs.field(factory=dict)


class AtomParser:
    """Reads atoms at a cursor, and knows what is in scope there."""

    def __init__(self, cursor: Cursor, types: TypeParser, values: ValueParser, declared: Declarations) -> None:
        self.cursor = cursor
        self.types = types
        self.values = values
        self.declared = declared
        self.labels: dict[str, LoopLabel] = {}
        self._visible: dict[str, Var] = {}
        self._ended: dict[str, Var] = {}  # the last variable of each name whose block has ended

    def enter_function(self) -> None:
        """Nothing is in scope at the beginning of a function of the module."""
        self.labels, self._visible, self._ended = {}, {}, {}

    # ---- variables

    def variable(self) -> Var:
        """`%x: T`, where it is bound."""
        cursor = self.cursor
        token = cursor.expect_kind(Kind.VARIABLE)
        cursor.expect(":", " and the type of the variable")
        return Var(token.text[1:], self.types.type(), cursor.span(token))

    def bind(self, variables: Iterable[Var]) -> None:
        """Variables come into scope. Raises FrontendError if one of that name is in scope already."""
        for var in variables:
            before = self._visible.get(var.name)
            if before is not None:
                labels = () if before.span is None else (Label(before.span, "first here"),)
                raise FrontendError(f"%{var.name} is bound twice", var.span, labels=labels)
            self._visible[var.name] = var

    def unbind(self, variables: Iterable[Var]) -> None:
        """Variables go out of scope."""
        for var in variables:
            del self._visible[var.name]
            self._ended[var.name] = var

    def use(self, token: Token) -> Var:
        """The variable that a name means. Raises FrontendError."""
        name = token.text[1:]
        var = self._visible.get(name)
        if var is not None:
            return var
        ended = self._ended.get(name)
        if ended is not None and ended.span is not None:
            raise FrontendError(
                f"%{name} is used outside of the block that binds it",
                self.cursor.span(token),
                labels=(Label(ended.span, "bound here"),),
            )
        raise self.cursor.unknown_name_error("variable", token, name, self._visible, "%")

    def label(self) -> LoopLabel:
        """A loop around the cursor, by its label."""
        token = self.cursor.expect_kind(Kind.LABEL)
        label = self.labels.get(token.text[1:])
        if label is None:
            raise self.cursor.unknown_name_error("loop around this", token, token.text[1:], self.labels, "'")
        return label

    # ---- atoms

    def atom(self) -> Atom:
        """A variable, a function of the module, or a constant."""
        cursor = self.cursor
        token = cursor.next
        match token.kind:
            case Kind.VARIABLE:
                return self.use(cursor.take())
            case Kind.GLOBAL:
                cursor.take()
                name = cursor.unquote(token)
                if name not in self.declared.functions:
                    raise cursor.unknown_name_error("function", token, name, self.declared.functions, "@")
                return Global(name, self.declared.functions[name], cursor.span(token))
            case Kind.CONSTANT:
                return self.long_constant()
        if not self.values.at_array():
            raise cursor.expected_error("a variable, a function `@f` or a constant")
        array = self.values.array()
        return Constant(array, cursor.span_from(token))

    def long_constant(self) -> Constant:
        """`constant#0[B, (d, ..)]`, whose elements are at the end of the text. Raises FrontendError."""
        cursor = self.cursor
        token = cursor.take()
        constant = self.declared.constants.get(token.text)
        if constant is None:
            raise FrontendError(
                f"the text does not hold the elements of {token.text}",
                cursor.span(token),
                help="they are at its end, in `constants { .. }`, unless they were elided when it was printed",
            )
        cursor.expect("[", " and the type of the constant")
        start = cursor.next
        found = self.types.tensor()
        if found != constant.type:
            raise FrontendError(f"{token.text} is {constant.type}, found {found}", cursor.span_from(start))
        cursor.expect("]")
        return constant

    def array_type(self) -> tuple[BaseType, tuple[int, ...]]:
        """`Tensor[B, (d, ..)]`: the dtype and shape of an array."""
        start = self.cursor.next
        type_ = self.types.type()
        if not isinstance(type_, TensorType) or not isinstance(type_.base, BaseType):
            raise FrontendError("a constant is a tensor with a known shape", self.cursor.span_from(start))
        try:
            return type_.base, type_.dims
        except TypeError:
            raise FrontendError("a constant has a known shape", self.cursor.span_from(start)) from None
