"""Modules from their text: the inverse of `relay.text.printer`, whose notation it reads.

    module      ::= [module "name" [stage typed];] (type V = T;)* [dims n, .. [where n >= 1 "reason", ..];]
                    (data D { C, C(T, ..), .. } | [entry] function | derivative f: T = grad{..} @f)* [constants { .. }]
                    [sources { "file" 1 "text"; .. }]
    function    ::= fn f(%x: T, ..) -> T block                   block ::= { (statement;)* terminator }

Without `entry` a call enters the first function that no other one mentions. The module is checked as its stage, `typed`
or `core`; its name is for readers. Aliases of types are for texts, too: a module has the types themselves.

The declarations are read first, so that they may mention each other in any order; then the bodies. What is read is
checked by `relay.ir.validation.check`, and a mistake is an error at its place.

`surface (n: Dim) ..;` at the beginning says that the module is untyped, with the variables of its annotations
(`relay.text.surface_parser`).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from relay.errors import FrontendError, Label, Source, Span, TypeCheckError
from relay.ir.analysis.reachability import public_functions
from relay.ir.expr import Constant, CustomGradient, Derivative, Function, Global, Module, PrintErased, Recompute, Rule
from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import BaseType, FunctionType
from relay.ir.validation.check import Stage, Violation, check
from relay.ir.validation.check_surface import check_surface
from relay.text.atoms import Declarations
from relay.text.body_parser import BodyParser, Signature
from relay.text.constants import decode
from relay.text.lexer import DECLARATIONS, Cursor, Kind, Token
from relay.text.surface_parser import SurfaceParser
from relay.text.type_parser import TypeParser


def parse(
    text: str,
    filename: str = "<relay>",
    *,
    constants: Mapping[str, np.ndarray] | None = None,
    objects: Mapping[str, object] | None = None,
) -> Module:
    """The module that a text describes. `parse(to_text(m))` is `m` up to names.

    `constants` are the arrays that the text has by name only, `objects` what an untyped program mentions of Python, but
    for builtins. Raises FrontendError for what is not in the notation, TypeCheckError where the types do not fit.
    """
    if not isinstance(text, str):
        raise FrontendError(
            f"a program must be a string, found {type(text).__name__}", help="pass a str: data.decode()"
        )
    cursor = Cursor(text, filename)
    try:
        parser = _Parser(cursor, constants or {}, objects or {})
        with cursor.reading():
            module = parser.module()
        pending = any(isinstance(f, Derivative) for f in module.functions.values())
        if parser.is_surface:
            check_surface(module)
        else:
            check(module, parser.stage or ("core" if pending else "typed"))
    except Violation as error:
        raise TypeCheckError(error.violation, error.span) from None
    except RecursionError:
        raise FrontendError("this text is nested too deeply", cursor.span(cursor.next)) from None
    return module


_STAGES: dict[str, Stage] = {"typed": "typed", "core": "core", "structured": "structured"}


@attrs.define(eq=False)
class _Header:
    """A function whose body has not been read: the place where it begins, and the header before it."""

    name: str
    signature: Signature
    body: int
    span: Span
    rule: Rule | None


class _Parser:
    """Reads the declarations of a module."""

    def __init__(self, cursor: Cursor, constants: Mapping[str, np.ndarray], objects: Mapping[str, object]) -> None:
        self.cursor = cursor
        self.constants = constants  # those beside the text
        self.stage = self._title(cursor)
        self.is_surface = cursor.is_at("surface")
        self.types = TypeParser(cursor, objects)
        self.declared = Declarations()
        kind = SurfaceParser if self.is_surface else BodyParser
        self.bodies = kind(cursor, self.types, self.declared)
        self._places: dict[str, Span] = {}
        self._entry: tuple[str, Span] | None = None
        self._differentiated: list[tuple[Token, str]] = []

    @staticmethod
    def _title(cursor: Cursor) -> Stage | None:
        """`module "name" stage typed;`, the stage that the module is checked as."""
        if not cursor.accept("module"):
            return None
        cursor.name("the name of the module")
        stage = None
        if cursor.accept("stage"):
            token = cursor.next
            stage = _STAGES.get(cursor.name("a stage"))
            if stage is None:
                raise FrontendError(f"a stage is {' or '.join(_STAGES)}, found `{token.text}`", cursor.span(token))
        cursor.expect(";", " after the name of the module")
        return stage

    def module(self) -> Module:
        cursor = self.cursor
        if cursor.accept("surface"):
            self.types.declare_variables()
            cursor.expect(";", " or `(n: Dim)`, a variable of the annotations")
        where = self._dims()
        starts = self._starts()
        for word, position in starts:
            cursor.position = position
            if word == "data":
                self.types.declare()
        for word, position in starts:
            cursor.position = position
            if word == "type":
                self.types.alias()
        for word, position in starts:
            cursor.position = position
            if word == "data":
                self.types.define()
        for word, position in starts:
            cursor.position = position
            if word == "sources":
                self._sources()
        headers: list[_Header | Derivative] = []
        for word, position in starts:
            cursor.position = position
            match word:
                case "entry" | "fn":
                    headers.append(self._header(word == "entry"))
                case "derivative":
                    headers.append(self._derivative())
                case "constants":
                    self._constants()
        for token, name in self._differentiated:
            if name not in self._places:
                raise cursor.unknown_name_error("function", token, name, self._places, "@")
        functions: dict[str, Function | Derivative] = {}
        for header in headers:
            functions[header.name] = header if isinstance(header, Derivative) else self._function(header)
        module = Module(functions, self._entry_of(headers), tuple(self.types.data.values()), where)
        if self._entry is None and len(headers) > 1 and not self.is_surface:
            return Module(functions, public_functions(module)[0], module.data, where)
        return module

    def _dims(self) -> tuple[DimConstraint, ...]:
        """The symbolic dims that the module declares, and what it assumes of them."""
        cursor = self.cursor
        if not cursor.accept("dims"):
            return ()
        self.types.declare_dims()
        where: list[DimConstraint] = []
        if cursor.accept("where"):
            where.append(self._constraint())
            while cursor.accept(","):
                where.append(self._constraint())
        cursor.expect(";", " after the dims")
        return tuple(where)

    def _constraint(self) -> DimConstraint:
        constraint = self.types.constraint()
        reason = self.cursor.string("a reason") if self.cursor.next.kind is Kind.STRING else ""
        return attrs.evolve(constraint, reason=reason)

    def _starts(self) -> list[tuple[str, int]]:
        """The declarations: the word that each begins with, and the position after it."""
        cursor = self.cursor
        starts: list[tuple[str, int]] = []
        while cursor.next.kind is not Kind.END:
            word = cursor.next.text
            if word not in DECLARATIONS or cursor.next.kind is not Kind.NAME:
                if starts and cursor.unmatched is not None:  # it may belong to the declaration before
                    cursor.skip_to_declaration()
                    continue
                raise cursor.expected_error("`fn`, `entry fn`, `data`, `derivative` or `constants`")
            cursor.take()
            starts.append((word, cursor.position))
            if word == "derivative":  # it has no braces of its own at its end
                self._skip_derivative()
            elif word == "type":
                self._skip_alias()
            else:
                self._skip_braces()
        return starts

    def _skip_braces(self) -> None:
        cursor = self.cursor
        while not cursor.is_at("{") or cursor.peek(-1).text == "!":  # behind `!` are the effects of a function's type
            if cursor.next.kind is Kind.END:
                if cursor.unmatched is not None:  # which reading the declaration will show
                    return
                raise cursor.expected_error("`{`")
            cursor.position = cursor.closing.get(cursor.position, cursor.position) + 1
        cursor.position = cursor.closing[cursor.position] + 1

    def _skip_derivative(self) -> None:
        cursor = self.cursor
        while (found := cursor.next.kind) is not Kind.GLOBAL:
            if found is Kind.END:
                raise cursor.expected_error("the function that is differentiated")
            cursor.take()
        cursor.take()

    def _skip_alias(self) -> None:
        cursor = self.cursor
        while not cursor.accept(";"):
            if cursor.next.kind is Kind.END:
                raise cursor.expected_error("`;` after the type")
            cursor.position = cursor.closing.get(cursor.position, cursor.position) + 1

    # ---- functions

    def _header(self, is_entry: bool) -> _Header:
        cursor = self.cursor
        if is_entry:
            cursor.expect("fn", " after `entry`")
        token = cursor.next
        name = self._new_name()
        signature = self.bodies.signature()
        rule = self._rule()
        parameters, result = signature.parameters, signature.result
        if result is not None:
            self.declared.functions[name] = FunctionType([p.type for p in parameters if p.type is not None], result)
        if is_entry:
            if self._entry is not None:
                raise FrontendError(
                    "a module has one entry",
                    cursor.span(token),
                    labels=(Label(self._entry[1], "this is the entry already"),),
                )
            self._entry = name, cursor.span(token)
        return _Header(name, signature, cursor.position, cursor.span(token), rule)

    def _rule(self) -> Rule | None:
        """`recompute`, `quiet`, or `gradient @backward saving @forward first`, after the type of a result."""
        cursor = self.cursor
        if cursor.accept("recompute"):
            return Recompute()
        if cursor.accept("quiet"):
            return PrintErased()
        if not cursor.accept("gradient"):
            return None
        named = [self._gradient_function("the function that computes the gradient")]
        if cursor.accept("saving"):
            named.append(self._gradient_function("the function that saves what the gradient needs"))
        depth = 0
        while cursor.accept("first"):
            depth += 1
        return CustomGradient(named[0], named[1] if len(named) > 1 else None, depth)

    def _gradient_function(self, what: str) -> str:
        token = self.cursor.expect_kind(Kind.GLOBAL, what)
        name = self.cursor.unquote(token)
        self._differentiated.append((token, name))
        return name

    def _function(self, header: _Header) -> Function:
        self.cursor.position = header.body
        function = self.bodies.function(header.name, header.signature, header.span)
        return attrs.evolve(function, rule=header.rule)  # type: ignore[misc]

    def _derivative(self) -> Derivative:
        cursor = self.cursor
        token = cursor.next
        name = self._new_name()
        cursor.expect(":", " and the type of the derivative")
        type_token = cursor.next
        type_ = self.types.type()
        if not isinstance(type_, FunctionType):
            raise FrontendError("the type of a derivative is a function type", cursor.span_from(type_token))
        cursor.expect("=")
        self.declared.functions[name] = type_
        grad = cursor.expect("grad")
        options = self.bodies.grad_options()
        of_token = cursor.expect_kind(Kind.GLOBAL, "the function that is differentiated")
        of = cursor.unquote(of_token)
        self._differentiated.append((of_token, of))
        span = cursor.span(token)
        return Derivative(name, of, type_, options.gradient_of(Global(of), cursor.span(grad)), span)

    def _new_name(self) -> str:
        cursor = self.cursor
        token = cursor.next
        name = cursor.name("the name of a function")
        if name in self._places:
            raise FrontendError(
                f"the function `{name}` is defined twice",
                cursor.span(token),
                labels=(Label(self._places[name], "first here"),),
            )
        self._places[name] = cursor.span(token)
        return name

    def _entry_of(self, headers: list[_Header | Derivative]) -> str:
        if self._entry is not None:
            return self._entry[0]
        if not headers:
            raise FrontendError("a module has at least one function, found none", self.cursor.span(self.cursor.next))
        if len(headers) == 1 or not self.is_surface:
            return headers[0].name
        raise FrontendError(
            "the module does not say which function a call enters",
            self._places[headers[0].name],
            help=f"write `entry fn {headers[0].name}`",
        )

    # ---- sources and constants

    def _sources(self) -> None:
        """The texts that the program comes from: their names, the numbers of their first lines, and their lines."""
        cursor = self.cursor
        cursor.expect("{")
        while not cursor.accept("}"):
            name = cursor.string("the name of a source, in quotes")
            first = self.bodies.values.index("the number of the first line")
            self.bodies.sources.append(Source(name, cursor.string("the text of the source, in quotes"), first))
            cursor.expect(";")

    def _constants(self) -> None:
        cursor = self.cursor
        cursor.expect("{")
        while not cursor.accept("}"):
            token = cursor.expect_kind(Kind.CONSTANT, "a constant or `}`")
            cursor.expect(":", " and the type of the constant")
            base, shape = self.bodies.atoms.array_type()
            cursor.expect("=", " and the bytes of the constant")
            data = cursor.next
            array = self._external_array(base, shape) if cursor.accept("file") else self._bytes(token, base, shape)
            cursor.expect(";")
            if token.text in self.declared.constants:
                raise FrontendError(f"the constant `{token.text}` is given twice", cursor.span(token))
            self.declared.constants[token.text] = Constant(array, cursor.span_from(data))

    def _bytes(self, token: Token, base: BaseType, shape: tuple[int, ...]) -> np.ndarray:
        """The elements of a constant in base64."""
        data = self.cursor.next
        text = self.cursor.string("the bytes of the constant, in base64, or `file` and a name")
        try:
            return decode(text, base, shape)
        except ValueError as error:
            raise FrontendError(f"{token.text}: {error}", self.cursor.span(data)) from None

    def _external_array(self, base: BaseType, shape: tuple[int, ...]) -> np.ndarray:
        """An array that is passed beside the text, by its name."""
        token = self.cursor.next
        name = self.cursor.string("the name of an array, in quotes")
        array = self.constants.get(name)
        if array is None:
            raise FrontendError(
                f"there is no array {name!r} beside the text",
                self.cursor.span(token),
                help="give it: relay.parse(text, constants=numpy.load(..)), or FILE.npz next to FILE.relay",
            )
        if array.dtype.kind == "V" and array.dtype.itemsize == base.dtype.itemsize:
            array = array.view(base.dtype)  # NumPy stores the dtypes of other packages as bytes
        if array.dtype != base.dtype or array.shape != shape:
            found = f"{array.dtype} {array.shape}"
            raise FrontendError(f"the array {name!r} is {found}, expected {base} {shape}", self.cursor.span(token))
        return array
