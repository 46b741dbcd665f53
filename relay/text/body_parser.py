"""The bodies of functions from their text: blocks, bindings and expressions, in the notation of `relay.text.printer`.

A variable is in scope from the end of its binding to the end of its block; lambdas in consecutive bindings see each
other. Recursion follows the nesting of the text, never its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from relay.errors import FrontendError, Label, Span
from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Counter,
    Dead,
    Exit,
    Expr,
    Function,
    Global,
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
    Print,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Terminator,
    Var,
    Yield,
)
from relay.ir.types import BaseType, DataDefinition, FunctionType, TensorType, Type
from relay.operator import get_env
from relay.text.lexer import Cursor, Kind, Token
from relay.text.type_parser import TypeParser
from relay.text.values import ValueParser

_SURFACE = {"apply", "unpack"}
_TERMINATORS = "`yield`, `next`, `exit`, `return` or `dead`"


@attrs.define(eq=False)
class Declared:
    """What the bodies may mention: the functions of the module with their types, and its long constants."""

    functions: dict[str, FunctionType] = attrs.field(factory=dict)
    constants: dict[str, Constant] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class GradOptions:
    """The options of a `grad` that are given."""

    given: Mapping[str, Any]

    def of(self, function: Atom, span: Span) -> Grad:
        """The derivative of a function with these options."""
        return Grad(function, **self.given, span=span)


class BodyParser:
    """Reads functions at a cursor."""

    def __init__(self, cursor: Cursor, types: TypeParser, declared: Declared) -> None:
        self.cursor = cursor
        self.types = types
        self.values = ValueParser(cursor, types)
        self.declared = declared
        self._visible: dict[str, Var] = {}
        self._ended: dict[str, Var] = {}  # the last variable of each name whose block has ended
        self._labels: dict[str, LoopLabel] = {}
        self._function = LoopLabel("")
        self._lambdas: dict[int, Var] = {}  # those ahead in a group, by the position of their binding

    # ---- functions

    def signature(self) -> tuple[tuple[Var, ...], Type]:
        """`(%x: T, ..) -> T`: the parameters, which are not in scope yet, and the type of the result."""
        self.cursor.expect("(", " and the parameters")
        parameters = self.types.separated(")", self._variable)
        self.cursor.expect("->", " and the type of the result")
        return tuple(parameters), self.types.type()

    def function(self, name: str, parameters: tuple[Var, ...], result: Type, span: Span) -> Function:
        """A function of the module: its body is at the cursor."""
        self._visible, self._ended, self._labels = {}, {}, {}
        return self._body(name, parameters, result, span)

    def _body(self, name: str, parameters: tuple[Var, ...], result: Type, span: Span) -> Function:
        around, self._function = self._function, LoopLabel(name)
        labels, self._labels = self._labels, {}
        function = Function(name, parameters, self._block(parameters, returns=True), self._function, result, span=span)
        self._function, self._labels = around, labels
        return function

    def _lambda(self) -> Lambda:
        cursor = self.cursor
        start = cursor.take()
        name = cursor.name("the name of a function")
        parameters, result = self.signature()
        span = cursor.span_from(start)
        return Lambda(self._body(name, parameters, result, span), span)

    # ---- variables

    def _variable(self) -> Var:
        """`%x: T`, where it is bound."""
        cursor = self.cursor
        token = cursor.expect_kind(Kind.VARIABLE)
        cursor.expect(":", " and the type of the variable")
        return Var(token.text[1:], self.types.type(), cursor.span(token))

    def _bind(self, variables: Iterable[Var]) -> None:
        for var in variables:
            before = self._visible.get(var.name)
            if before is not None:
                labels = () if before.span is None else (Label(before.span, "first here"),)
                raise FrontendError(f"%{var.name} is bound twice", var.span, labels=labels)
            self._visible[var.name] = var

    def _unbind(self, variables: Iterable[Var]) -> None:
        for var in variables:
            del self._visible[var.name]
            self._ended[var.name] = var

    def _use(self, token: Token) -> Var:
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
        raise self.cursor.unknown("variable", token, name, self._visible, "%")

    # ---- blocks

    def _block(self, bound: Sequence[Var] = (), returns: bool = False) -> Block:
        """A block in braces, in which `bound` are in scope. With `returns` its last line may be the result."""
        cursor = self.cursor
        cursor.expect("{")
        self._bind(bound)
        bindings: list[Binding] = []
        while (terminator := self._terminator()) is None:
            if cursor.at("}"):
                what = "the result" if returns else "how the block ends"
                raise cursor.expected(f"a statement or {what}", help=f"a block ends in {_TERMINATORS}")
            start = cursor.next
            if cursor.at("let"):
                bindings.append(self._let())
            else:
                value = self._expression()
                if returns and cursor.at("}") and isinstance(value, Atom):
                    terminator = Exit(self._function, (value,), cursor.span_from(start))
                    break
                if cursor.at("}"):
                    raise cursor.expected("`;`", help=f"a block ends in {_TERMINATORS}")
                bindings.append(Binding((), value))
            cursor.expect(";")
        if not cursor.at("}"):
            raise cursor.expected("`}` after the end of the block")
        cursor.take()
        for binding in bindings:
            self._unbind(binding.targets)
        self._unbind(bound)
        return Block(tuple(bindings), terminator)

    def _let(self) -> Binding:
        cursor = self.cursor
        known = self._lambdas.pop(cursor.position, None)
        targets = self._targets()
        if cursor.at("fn"):
            if known is None:
                self._bind(targets)
                self._lambdas_ahead()
            else:
                targets = (known,)
            return Binding(targets, self._lambda())
        value = self._expression()
        self._bind(targets)
        return Binding(targets, value)

    def _targets(self) -> tuple[Var, ...]:
        cursor = self.cursor
        cursor.expect("let")
        targets = [self._variable()]
        while cursor.accept(","):
            targets.append(self._variable())
        cursor.expect("=")
        return tuple(targets)

    def _lambdas_ahead(self) -> None:
        """Bind the variables of the lambdas that follow the one at the cursor, which sees them."""
        cursor = self.cursor
        position = cursor.position
        while True:
            while not cursor.at("{"):
                if cursor.next.kind is Kind.END:
                    raise cursor.expected("the body of a function")
                cursor.take()
            cursor.position = cursor.closing[cursor.position] + 1
            start = cursor.position + 1
            if not cursor.at(";", "let"):
                break
            cursor.take()
            targets = self._targets()
            if not cursor.at("fn") or len(targets) != 1:
                break
            self._bind(targets)
            self._lambdas[start] = targets[0]
        cursor.position = position

    def _terminator(self) -> Terminator | None:
        """How a block ends, if its end is at the cursor."""
        cursor = self.cursor
        start = cursor.next
        if start.kind is not Kind.NAME:
            return None
        match start.text:
            case "yield":
                cursor.take()
                values = [] if cursor.at("}") else [self.atom()]
                while cursor.accept(","):
                    values.append(self.atom())
                return Yield(tuple(values), cursor.span_from(start))
            case "next" | "exit":
                cursor.take()
                label = self._label()
                cursor.expect("(", " and the values")
                passed = tuple(self.types.separated(")", self.atom))
                span = cursor.span_from(start)
                return Next(label, passed, span) if start.text == "next" else Exit(label, passed, span)
            case "return":
                cursor.take()
                value = self.atom()
                return Exit(self._function, (value,), cursor.span_from(start))
            case "dead":
                cursor.take()
                return Dead()
        return None

    def _label(self) -> LoopLabel:
        token = self.cursor.expect_kind(Kind.LABEL)
        label = self._labels.get(token.text[1:])
        if label is None:
            raise self.cursor.unknown("loop around this", token, token.text[1:], self._labels, "'")
        return label

    # ---- atoms

    def atom(self) -> Atom:
        """A variable, a function of the module, or a constant."""
        cursor = self.cursor
        token = cursor.next
        match token.kind:
            case Kind.VARIABLE:
                return self._use(cursor.take())
            case Kind.GLOBAL:
                cursor.take()
                name = cursor.unquoted(token)
                if name not in self.declared.functions:
                    raise cursor.unknown("function", token, name, self.declared.functions, "@")
                return Global(name, self.declared.functions[name], cursor.span(token))
            case Kind.CONSTANT:
                return self._long_constant()
        if not self.values.at_array():
            raise cursor.expected("a variable, a function `@f` or a constant")
        array = self.values.array()
        return Constant(array, cursor.span_from(token))

    def _long_constant(self) -> Constant:
        cursor = self.cursor
        token = cursor.take()
        constant = self.declared.constants.get(token.text)
        if constant is None:
            raise FrontendError(
                f"the text does not hold the elements of {token.text}",
                cursor.span(token),
                help="they stand at its end, in `constants { .. }`, unless they were elided when it was printed",
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

    # ---- expressions

    def _expression(self) -> Expr:
        cursor = self.cursor
        start = cursor.next
        if start.kind in (Kind.NAME, Kind.STRING):
            if cursor.after().text == "(":
                return self._operator()
            if cursor.after().text == "." and not self.values.at_array():
                return self._construct()
            if not self.values.at_array():
                return self._keyword()
        if cursor.accept("("):
            return MakeTuple(self.types.tuple_items(self.atom), cursor.span_from(start))
        atom = self.atom()
        if cursor.at("(") and start.kind in (Kind.VARIABLE, Kind.GLOBAL):
            cursor.take()
            return Call(atom, tuple(self.types.separated(")", self.atom)), cursor.span_from(start))
        if cursor.accept("."):
            if cursor.next.kind is Kind.NAME:
                raise cursor.expected("the index of a component", help="attributes exist in Python source only")
            index = self.values.index("the index of a component")
            return Project(atom, index, cursor.span_from(start))
        return atom

    def _operator(self) -> OpCall:
        cursor = self.cursor
        start = cursor.next
        name = cursor.name("an operator")
        if get_env().find(name) is None:
            raise cursor.unknown("operator", start, name, get_env().names())
        cursor.expect("(")
        arguments: list[Atom] = []
        attributes = {}
        while not cursor.at(")"):
            token = cursor.next
            if token.kind in (Kind.NAME, Kind.STRING) and cursor.after().text == "=":
                attribute = cursor.name("an attribute")
                cursor.expect("=")
                if attribute in attributes:
                    raise FrontendError(f"the attribute `{attribute}` is given twice", cursor.span(token))
                attributes[attribute] = self.values.attribute()
            elif attributes:
                raise cursor.expected("an attribute or `)`", help="attributes follow the operands")
            else:
                arguments.append(self.atom())
            if not cursor.at(")"):
                cursor.expect(",", " or `)`")
        cursor.take()
        return OpCall(name, tuple(arguments), attributes, cursor.span_from(start))

    def _construct(self) -> Construct:
        cursor = self.cursor
        start = cursor.next
        definition = self.types.definition()
        cursor.expect(".")
        constructor = self._constructor(definition)
        cursor.expect("(", " and the fields")
        return Construct(definition, constructor, tuple(self.types.separated(")", self.atom)), cursor.span_from(start))

    def _constructor(self, definition: DataDefinition) -> str:
        token = self.cursor.next
        name = self.cursor.name("a constructor")
        known = [c.name for c in definition.constructors]
        if name not in known:
            raise self.cursor.unknown(f"constructor of {definition.name}", token, name, known)
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
            raise FrontendError(f"`{start.text}` stands in untyped programs only", cursor.span(start))
        cursor.take()
        match start.text:
            case "grad":
                options = self.grad_options()
                return options.of(self.atom(), cursor.span_from(start))
            case "ref":
                return RefNew(self.atom(), cursor.span_from(start))
            case "read":
                return RefRead(self.atom(), cursor.span_from(start))
            case "write":
                return RefWrite(self.atom(), self.atom(), cursor.span_from(start))
            case "assert":
                condition = self.atom()
                return Assert(condition, cursor.string("the message, in quotes"), cursor.span_from(start))
            case "print":
                return self._print(start)
            case "stack":
                cursor.expect("[", " and the type of the elements")
                element = self.types.type()
                cursor.expect("]")
                return StackNew(element, cursor.span_from(start))
            case "push":
                return StackPush(self.atom(), self.atom(), cursor.span_from(start))
            case "get":
                return StackGet(self.atom(), self.atom(), cursor.span_from(start))
            case "len":
                return StackLength(self.atom(), cursor.span_from(start))
        cursor.position -= 1
        raise cursor.expected("an expression")

    def _print(self, start: Token) -> Print:
        cursor = self.cursor
        pieces = [cursor.string("the text to print, in quotes")]
        values: list[Atom] = []
        formats: list[str] = []
        while not cursor.at(";"):
            values.append(self.atom())
            formats.append(cursor.string("a format, in quotes") if cursor.accept("as") else "")
            pieces.append(cursor.string("the text that follows the value, in quotes"))
        return Print(tuple(pieces), tuple(values), tuple(formats), cursor.span_from(start))

    def grad_options(self) -> GradOptions:
        """`{wrt=(0,), output=0, keeping=(0,), seedable, with_value}` or nothing."""
        return GradOptions(self.values.grad_options() if self.cursor.at("{") else {})

    # ---- expressions with blocks

    def _if(self) -> If:
        cursor = self.cursor
        start = cursor.next
        arms: list[Arm] = []
        while cursor.at("elif" if arms else "if"):
            cursor.take()
            if cursor.at("{"):
                condition = self._block()
            else:
                token = cursor.next
                atom = self.atom()
                condition = Block((), Yield((atom,), cursor.span(token)))
            cursor.expect("then")
            arms.append(Arm(condition, self._block()))
        cursor.expect("else" if arms else "do")
        return If(tuple(arms), self._block(), cursor.span(start))

    def _match(self) -> Match:
        cursor = self.cursor
        start = cursor.take()
        value = self.atom()
        span = cursor.span_from(start)
        cursor.expect("{", " and the arms")
        arms: list[MatchArm] = []
        while not cursor.accept("}"):
            constructor = cursor.name("a constructor or `}`")
            fields = tuple(self.types.separated(")", self._variable)) if cursor.accept("(") else ()
            cursor.expect("->")
            arms.append(MatchArm(constructor, fields, self._block(fields)))
        return Match(value, tuple(arms), span)

    def _loop(self) -> Loop:
        cursor = self.cursor
        start = cursor.take()
        token = cursor.expect_kind(Kind.LABEL)
        name = token.text[1:]
        if name in self._labels:
            raise FrontendError(f"a loop around this has the label '{name} too", cursor.span(token))
        counter = None
        if cursor.accept("for"):
            index = self._variable()
            cursor.expect("<", " and the number of rounds")
            counter = Counter(index, self.atom())
        cursor.expect("(", " and the parameters of the loop")
        pairs = self.types.separated(")", self._initialised)
        span = cursor.span_from(start)
        parameters = tuple(p for p, _ in pairs)
        label = self._labels[name] = LoopLabel(name)
        body = self._block((*parameters, *(() if counter is None else (counter.index,))))
        del self._labels[name]
        return Loop(label, parameters, tuple(v for _, v in pairs), body, counter, span)

    def _initialised(self) -> tuple[Var, Atom]:
        parameter = self._variable()
        self.cursor.expect("=", " and the initial value")
        return parameter, self.atom()
