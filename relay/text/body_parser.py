"""The bodies of functions from their text: blocks, bindings and expressions, in the notation of `relay.text.printer`.

A variable is in scope from the end of its binding to the end of its block; lambdas in consecutive bindings see each
other. Recursion follows the nesting of the text, never its length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import attrs

from relay.errors import FrontendError, InternalError, Source, Span
from relay.ir.expr import (
    Arm,
    Atom,
    AttributeValue,
    Binding,
    Block,
    Call,
    Construct,
    Counter,
    Dead,
    Exit,
    Expr,
    Function,
    Grad,
    If,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Next,
    OpCall,
    Parameter,
    Print,
    PrintErased,
    Project,
    Recompute,
    Terminator,
    Var,
    Yield,
)
from relay.ir.node import Field, Role, fields, keywords, notation
from relay.ir.surface import ForEach
from relay.ir.types import BaseType, DataDefinition, Type
from relay.operator import get_env
from relay.operator.definition import REQUIRED
from relay.text.atoms import AtomParser, Declarations
from relay.text.lexer import Cursor, Kind, Token
from relay.text.type_parser import TypeParser
from relay.text.values import ValueParser

_SURFACE = {"apply", "unpack"}
_TERMINATORS = "`yield`, `next`, `exit`, `return` or `dead`"


_PLACE = re.compile(r"(\d+):(\d+):(\d+)-(\d+):(\d+)")
_Part = TypeVar("_Part", bound="Expr | _Place")


@attrs.frozen
class _Place:
    """The place of a function, where it is still to be read."""

    span: Span


@attrs.frozen(eq=False)
class Signature:
    """The parameters of a function, which are not in scope yet, and its result; both may lack types in untyped
    programs, where `kinds` has the properties of Python's parameters."""

    parameters: tuple[Var, ...]
    result: Type | None
    kinds: tuple[Parameter, ...] = ()


@attrs.frozen(eq=False)
class GradOptions:
    """The options of a `grad` that are given."""

    given: Mapping[str, Any]

    def gradient_of(self, function: Atom, span: Span) -> Grad:
        """The derivative of a function with these options."""
        return Grad(function, **self.given, span=span)


class BodyParser:
    """Reads functions at a cursor."""

    def __init__(self, cursor: Cursor, types: TypeParser, declared: Declarations) -> None:
        self.cursor = cursor
        self.types = types
        self.values = ValueParser(cursor, types)
        self.declared = declared
        self.atoms = self._atoms()
        self.sources: list[Source] = []
        self._function = LoopLabel("")
        self._lambdas: dict[int, Var] = {}  # those ahead in a group, by the position of their binding

    def _atoms(self) -> AtomParser:
        return AtomParser(self.cursor, self.types, self.values, self.declared)

    # ---- functions

    def signature(self) -> Signature:
        """`(%x: T, ..) -> T`"""
        self.cursor.expect("(", " and the parameters")
        parameters = self.types.separated_items(")", self.atoms.variable)
        self.cursor.expect("->", " and the type of the result")
        return Signature(tuple(parameters), self.types.type())

    def function(self, name: str, signature: Signature, span: Span) -> Function:
        """A function of the module: its body is at the cursor."""
        self.atoms.enter_function()
        return self._body(name, signature, span)

    def _body(self, name: str, signature: Signature, span: Span) -> Function:
        around, self._function = self._function, LoopLabel(name)
        labels, self.atoms.labels = self.atoms.labels, {}
        place = self.with_span(_Place(span)).span
        given, result, kinds = signature.parameters, signature.result, signature.kinds
        body = self._block(given, returns=True)
        function = Function(name, given, body, self._function, result, kinds, span=place)
        self._function, self.atoms.labels = around, labels
        return function

    def _lambda(self) -> Lambda:
        cursor = self.cursor
        start = cursor.take()
        name = cursor.name("the name of a function")
        signature = self.signature()
        span = cursor.span_from(start)
        rule = Recompute() if cursor.accept("recompute") else PrintErased() if cursor.accept("quiet") else None
        function = attrs.evolve(self._body(name, signature, span), rule=rule)  # type: ignore[misc]
        return Lambda(function, span)

    # ---- blocks

    def _block(self, bound: Sequence[Var] = (), returns: bool = False) -> Block:
        """A block in braces, in which `bound` are in scope. With `returns` its last line may be the result."""
        cursor = self.cursor
        cursor.expect("{")
        self.atoms.bind(bound)
        bindings: list[Binding] = []
        while (terminator := self._terminator()) is None:
            if cursor.is_at("}"):
                what = "the result" if returns else "how the block ends"
                raise cursor.expected_error(f"a statement or {what}", help=f"a block ends in {_TERMINATORS}")
            start = cursor.next
            if cursor.is_at("let"):
                bindings.append(self._let())
            else:
                value = self._expression()
                if returns and cursor.is_at("}") and isinstance(value, Atom):
                    terminator = Exit(self._function, (value,), cursor.span_from(start))
                    break
                if cursor.is_at("}"):
                    raise cursor.expected_error("`;`", help=f"a block ends in {_TERMINATORS}")
                bindings.append(Binding((), self.with_span(value)))
            cursor.expect(";")
        if not cursor.is_at("}"):
            raise cursor.expected_error("`}` after the end of the block")
        cursor.take()
        for binding in bindings:
            self.atoms.unbind(binding.targets)
        self.atoms.unbind(bound)
        return Block(tuple(bindings), terminator)

    def _let(self) -> Binding:
        cursor = self.cursor
        known = self._lambdas.pop(cursor.position, None)
        targets = self._targets()
        if cursor.is_at("fn"):
            if known is None:
                self.atoms.bind(targets)
                self._lambdas_ahead()
            else:
                targets = (known,)
            return Binding(targets, self.with_span(self._lambda()))
        value = self.with_span(self._expression())
        self.atoms.bind(targets)
        return Binding(targets, value)

    def with_span(self, part: _Part) -> _Part:
        """An expression with the place that follows it, `at "source:line:column-line:column"`, if one does."""
        cursor = self.cursor
        if not cursor.is_at("at"):
            return part
        cursor.take()
        token = cursor.next
        found = _PLACE.fullmatch(cursor.string("a place, in quotes"))
        numbers = [] if found is None else [int(n) for n in found.groups()]
        if not numbers or numbers[0] >= len(self.sources):
            message = "a place is `source:line:column-line:column`, with the number of one of the `sources`"
            raise FrontendError(message, cursor.span(token))
        if isinstance(part, Atom):
            raise FrontendError("a name or constant has no place of its own", cursor.span(token))
        evolve: Any = attrs.evolve  # every expression is a class of attrs, which mypy cannot see
        placed: _Part = evolve(part, span=Span(self.sources[numbers[0]], *numbers[1:]))
        return placed

    def _targets(self) -> tuple[Var, ...]:
        cursor = self.cursor
        cursor.expect("let")
        targets = [self.atoms.variable()]
        while cursor.accept(","):
            targets.append(self.atoms.variable())
        cursor.expect("=")
        return tuple(targets)

    def _lambdas_ahead(self) -> None:
        """Bind the variables of the lambdas that follow the one at the cursor, which sees them."""
        cursor = self.cursor
        position = cursor.position
        while True:
            while not cursor.is_at("{"):
                if cursor.next.kind is Kind.END:  # reading the function itself will show what is wrong
                    cursor.position = position
                    return
                cursor.position = cursor.closing.get(cursor.position, cursor.position) + 1
            cursor.position = cursor.closing[cursor.position] + 1
            if cursor.is_at("at"):
                cursor.position += 2
            start = cursor.position + 1
            if not cursor.is_at(";", "let"):
                break
            cursor.take()
            targets = self._targets()
            if not cursor.is_at("fn") or len(targets) != 1:
                break
            self.atoms.bind(targets)
            self._lambdas[start] = targets[0]
        cursor.position = position

    def _terminator(self) -> Terminator | None:
        """The terminator of a block, if it is at the cursor."""
        cursor = self.cursor
        start = cursor.next
        if start.kind is not Kind.NAME:
            return None
        match start.text:
            case "yield":
                cursor.take()
                values = [] if cursor.is_at("}") else [self.atoms.atom()]
                while cursor.accept(","):
                    values.append(self.atoms.atom())
                return Yield(tuple(values), cursor.span_from(start))
            case "next" | "exit":
                cursor.take()
                label = self.atoms.label()
                cursor.expect("(", " and the values")
                passed = tuple(self.types.separated_items(")", self.atoms.atom))
                span = cursor.span_from(start)
                return Next(label, passed, span) if start.text == "next" else Exit(label, passed, span)
            case "return":
                cursor.take()
                value = self.atoms.atom()
                return Exit(self._function, (value,), cursor.span_from(start))
            case "dead":
                cursor.take()
                return Dead()
        return None

    # ---- expressions

    def _expression(self) -> Expr:
        cursor = self.cursor
        start = cursor.next
        if start.kind in (Kind.NAME, Kind.STRING):
            if cursor.peek().text == "(":
                return self._operator()
            if cursor.peek().text == "." and not self.values.at_array():
                return self._construct()
            if not self.values.at_array():
                return self._keyword()
        if cursor.accept("("):
            return MakeTuple(self.types.tuple_items(self.atoms.atom), cursor.span_from(start))
        atom = self.atoms.atom()
        if cursor.is_at("(") and start.kind in (Kind.VARIABLE, Kind.GLOBAL):
            cursor.take()
            return Call(atom, tuple(self.types.separated_items(")", self.atoms.atom)), cursor.span_from(start))
        if cursor.accept("."):
            if cursor.next.kind is Kind.NAME:
                raise cursor.expected_error(
                    "the index of a component", help="attributes are allowed in untyped programs only"
                )
            index = self.values.index("the index of a component")
            return Project(atom, index, cursor.span_from(start))
        return atom

    def _operator(self) -> OpCall:
        cursor = self.cursor
        start = cursor.next
        name = cursor.name("an operator")
        operator = get_env().find(name)
        if operator is None:
            raise cursor.unknown_name_error("operator", start, name, get_env().names())
        cursor.expect("(")
        arguments: list[Atom] = []
        attributes: dict[str, AttributeValue] = {}
        while not cursor.is_at(")"):
            token = cursor.next
            if token.kind in (Kind.NAME, Kind.STRING) and cursor.peek().text == "=":
                attribute = cursor.name("an attribute")
                if attribute not in operator.attributes:
                    raise cursor.unknown_name_error(f"attribute of {name}", token, attribute, operator.attributes)
                cursor.expect("=")
                if attribute in attributes:
                    raise FrontendError(f"the attribute `{attribute}` is given twice", cursor.span(token))
                attributes[attribute] = self._attribute(attribute, operator.attributes[attribute])
            elif attributes:
                raise cursor.expected_error("an attribute or `)`", help="attributes follow the operands")
            else:
                arguments.append(self.atoms.atom())
            if not cursor.is_at(")"):
                cursor.expect(",", " or `)`")
        cursor.take()
        for attribute, default in operator.attributes.items():
            if default is REQUIRED and attribute not in attributes:
                raise FrontendError(f"{name} needs the attribute `{attribute}`", cursor.span_from(start))
            attributes.setdefault(attribute, default)
        return OpCall(operator.name, tuple(arguments), attributes, cursor.span_from(start))

    def _attribute(self, name: str, default: object) -> AttributeValue:
        cursor = self.cursor
        start = cursor.next
        value = self.values.attribute()
        if isinstance(default, bool) and not isinstance(value, bool):
            raise FrontendError(f"the attribute `{name}` is `true` or `false`", cursor.span_from(start))
        return value

    def _construct(self) -> Construct:
        cursor = self.cursor
        start = cursor.next
        definition = self.types.definition()
        cursor.expect(".")
        constructor = self._constructor(definition)
        cursor.expect("(", " and the fields")
        return Construct(
            definition, constructor, tuple(self.types.separated_items(")", self.atoms.atom)), cursor.span_from(start)
        )

    def _constructor(self, definition: DataDefinition) -> str:
        token = self.cursor.next
        name = self.cursor.name("a constructor")
        known = [c.name for c in definition.constructors]
        if name not in known:
            raise self.cursor.unknown_name_error(f"constructor of {definition.name}", token, name, known)
        return name

    def _keyword(self) -> Expr:
        """An expression that begins with a word."""
        cursor = self.cursor
        start = cursor.next
        match start.text:
            case "if" | "do":
                return self._if()
            case "match":
                return self._match()
            case "loop":
                return self._loop()
            case "fn":
                return self._lambda()
        if start.text in _SURFACE:
            raise FrontendError(f"`{start.text}` is allowed in untyped programs only", cursor.span(start))
        cursor.take()
        match start.text:
            case "grad":
                options = self.grad_options()
                return options.gradient_of(self.atoms.atom(), cursor.span_from(start))
            case "print":
                return self._print(start)
            case "fail":
                return self._print(start, fails=True)
        cls = keywords().get(start.text)
        if cls is not None:
            return self._by_notation(cls, start)
        cursor.position -= 1
        raise cursor.expected_error("an expression")

    def _by_notation(self, cls: type, start: Token) -> Expr:
        """A node that has a notation, after its keyword."""
        given: dict[str, object] = {}
        written = "".join(part if isinstance(part, str) else f" {{{part.name}}} " for part in notation(cls))
        for word in written.replace("[", " [ ").replace("]", " ] ").replace(",", " , ").split()[1:]:
            if word[0] == "{":
                field = next(f for f in fields(cls) if f.name == word[1:-1])
                given[field.name] = self._field(field)
            else:
                self.cursor.expect(word)
        made: Expr = cls(**given, span=self.cursor.span_from(start))
        return made

    def _field(self, field: Field) -> object:
        """The value of a field of a node that has a notation."""
        match field.role, field.type:
            case Role.ATOM, _:
                return self.atoms.atom()
            case Role.TYPE, _:
                return self.types.type()
            case Role.DIM, _:
                return self.types.dim()
            case Role.NEW_DIM, _:
                return self.types.made_dim()
            case Role.ATTRIBUTE, "str":
                return self.cursor.string(f"the {field.name}, in quotes")
            case Role.ATTRIBUTE, "int":
                return self.values.index(f"the {field.name}, a number")
            case Role.ATTRIBUTE, "BaseType":
                token = self.cursor.next
                base = self.values.attribute()
                if not isinstance(base, BaseType):
                    raise FrontendError(f"the {field.name} is a type of numbers", self.cursor.span(token))
                return base
            case role, _:
                raise InternalError(f"{field.name}, a {role.value}, has no notation")

    def _print(self, start: Token, *, fails: bool = False) -> Print:
        cursor = self.cursor
        pieces = [cursor.string("the text to print, in quotes")]
        values: list[Atom] = []
        formats: list[str] = []
        while not cursor.is_at(";") and not cursor.is_at("at"):
            values.append(self.atoms.atom())
            formats.append(cursor.string("a format, in quotes") if cursor.accept("as") else "")
            pieces.append(cursor.string("the text that follows the value, in quotes"))
        return Print(tuple(pieces), tuple(values), tuple(formats), cursor.span_from(start), fails)

    def grad_options(self) -> GradOptions:
        """`{wrt=(0,), output=0, keeping=(0,), seedable, with_value, has_aux}` or nothing."""
        return GradOptions(self.values.grad_options() if self.cursor.is_at("{") else {})

    # ---- expressions with blocks

    def _if(self) -> If:
        cursor = self.cursor
        start = cursor.next
        arms: list[Arm] = []
        while cursor.is_at("elif" if arms else "if"):
            cursor.take()
            if cursor.is_at("{"):
                condition = self._block()
            else:
                token = cursor.next
                atom = self.atoms.atom()
                condition = Block((), Yield((atom,), cursor.span(token)))
            cursor.expect("then")
            arms.append(Arm(condition, self._block()))
        cursor.expect("else" if arms else "do")
        return If(tuple(arms), self._block(), cursor.span(start))

    def _match(self) -> Expr:
        cursor = self.cursor
        start = cursor.take()
        value = self.atoms.atom()
        span = cursor.span_from(start)
        cursor.expect("{", " and the arms")
        arms: list[MatchArm] = []
        while not cursor.accept("}"):
            constructor = cursor.name("a constructor or `}`")
            fields = tuple(self.types.separated_items(")", self.atoms.variable)) if cursor.accept("(") else ()
            cursor.expect("->")
            arms.append(MatchArm(constructor, fields, self._block(fields)))
        return Match(value, tuple(arms), span)

    def _loop(self) -> Expr:
        cursor = self.cursor
        start = cursor.take()
        token = cursor.expect_kind(Kind.LABEL)
        if token.text[1:] in self.atoms.labels:
            raise FrontendError(f"a loop around this has the label {token.text} too", cursor.span(token))
        index: Var | None = None
        each = counter = None
        resized: tuple[int, ...] = ()
        if cursor.accept("for"):
            index = self.atoms.variable()
            each = self._iterable()
            if each is None:
                cursor.expect("<", " and the number of rounds")
                count = self.atoms.atom()
                axis = cursor.string("an axis") if cursor.accept("along") else ""
                counter = Counter(index, count, axis, cursor.string("a way") if cursor.accept("diverging") else "")
            else:
                resized = self._resized_parameters()
        cursor.expect("(", " and the parameters of the loop")
        pairs = self.types.separated_items(")", self._initialized_parameter)
        span = cursor.span_from(start)
        parameters, initial = tuple(p for p, _ in pairs), tuple(v for _, v in pairs)
        label = self.atoms.labels[token.text[1:]] = LoopLabel(token.text[1:])
        body = self._block(parameters if index is None else (*parameters, index))
        del self.atoms.labels[label.name]
        if each is not None and index is not None:
            return ForEach(label, index, each, parameters, initial, body, span, resized)
        return Loop(label, parameters, initial, body, counter, span)

    def _iterable(self) -> Atom | None:
        """The iterable of a loop, after its variable, in untyped programs."""
        return None

    def _resized_parameters(self) -> tuple[int, ...]:
        """The positions of parameters that are lists which the loop makes longer or shorter, in untyped programs."""
        return ()

    def _initialized_parameter(self) -> tuple[Var, Atom]:
        parameter = self.atoms.variable()
        self.cursor.expect("=", " and the initial value")
        return parameter, self.atoms.atom()
