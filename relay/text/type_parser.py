"""Types and data types from their text, as `relay.ir.types.show` writes them.

Tensor[float32, (3, 2*n + 1)]   (T, U)   fn(T) -> U   Ref[T]   Stack[T]   List   forall (a: Type) (s: Shape). T
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from relay.errors import FrontendError, Label, Span
from relay.ir.annotations.annotation import axis_names
from relay.ir.axes import AxisNames
from relay.ir.types import (
    BASE_TYPES,
    NONE,
    AnyDim,
    Application,
    AttributeValue,
    Base,
    BaseClass,
    ClassConstraint,
    Constraint,
    Constructor,
    DataDefinition,
    DataType,
    Dim,
    Equation,
    Form,
    FunctionType,
    Kind,
    QuantifiedType,
    RefType,
    Shape,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
)
from relay.text import lexer
from relay.text.dim_parser import EXTREMA, DimParser
from relay.text.lexer import Cursor
from relay.text.surface import builtin

_T = TypeVar("_T")

RESERVED = frozenset({"Tensor", "Ref", "Stack", "fn", "forall", "None"})
"""Names that no data type has in a text."""

_OPENED = {"Tensor": "[", "Ref": "[", "Stack": "[", "list": "[", "fn": "("}

_WORDS: dict[str, AttributeValue] = {"none": None, "true": True, "false": False}
NUMBERS = frozenset({"inf", "nan", "-inf", "-nan"})


class TypeParser(DimParser):
    """Reads types at a cursor. `data` are the data types of the module, `places` the places of their names,
    `objects` the objects of Python that a text may mention."""

    def __init__(self, cursor: Cursor, objects: Mapping[str, object] | None = None) -> None:
        super().__init__(cursor)
        self.objects = objects or {}
        self.data: dict[str, DataDefinition] = {}
        self._places: dict[str, Span] = {}
        self._aliases: dict[str, Type] = {}
        self._equations: list[tuple[TypeId, Equation]] | None = None  # what applications in a scheme stand for

    # ---- data types

    def declare(self) -> None:
        """`data D`: the name of a data type, so that others may mention it before its constructors are known."""
        cursor = self.cursor
        token = cursor.next
        name = cursor.name("the name of a data type")
        if name in self.data:
            raise FrontendError(
                f"the data type `{name}` is declared twice",
                cursor.span(token),
                labels=(Label(self._places[name], "first here"),),
            )
        if name in RESERVED:
            raise FrontendError(f"`{name}` is the name of a type of the language", cursor.span(token))
        parameters = tuple(self.separated_items("]", self._type_variable)) if cursor.accept("[") else ()
        self.data[name], self._places[name] = DataDefinition(name, parameters=parameters), cursor.span(token)

    def alias(self) -> None:
        """`V = Tensor[float32, (3,)];`: another name for a type, for the rest of the text."""
        cursor = self.cursor
        token = cursor.next
        name = cursor.name("the name of a type")
        if name in self.data or name in self._aliases or name in RESERVED:
            raise FrontendError(f"there is a type `{name}` already", cursor.span(token))
        cursor.expect("=", " and the type")
        self._aliases[name] = self.type()

    def define(self) -> None:
        """`D[a: Type, ..] { C, C(T, ..), .. }`: the constructors of a declared data type, which may be polymorphic."""
        cursor = self.cursor
        definition = self.data[cursor.name("the name of a data type")]
        if cursor.is_at("["):
            cursor.position = cursor.closing[cursor.position] + 1
        if cursor.accept("gradient"):  # the type of its gradients, where that is another one
            definition.gradient = self.definition()
        outer, self._variables = self._variables, {**self._variables, **{p.name: p for p in definition.parameters}}
        self._constructors(definition)
        self._variables = outer

    def _constructors(self, definition: DataDefinition) -> None:
        cursor = self.cursor
        cursor.expect("{", " and the constructors")
        constructors: dict[str, Constructor] = {}
        for token, constructor in self.separated_items("}", self._constructor):
            if constructor.name in constructors:
                message = f"`{definition.name}` has two constructors `{constructor.name}`"
                raise FrontendError(message, cursor.span(token))
            constructors[constructor.name] = constructor
        definition.constructors = tuple(constructors.values())

    def _constructor(self) -> tuple[lexer.Token, Constructor]:
        cursor = self.cursor
        token = cursor.next
        name = cursor.name("the name of a constructor")
        fields = self.separated_items(")", self._field) if cursor.accept("(") else []
        names = tuple(n for n, _ in fields if n is not None)
        if names and len(names) < len(fields):
            raise FrontendError("all fields of a constructor have names, or none", cursor.span_from(token))
        if len(set(names)) < len(names):
            raise FrontendError(f"two fields of `{name}` have one name", cursor.span_from(token))
        return token, Constructor(name, tuple(t for _, t in fields), names)

    def _field(self) -> tuple[str | None, Type]:
        cursor = self.cursor
        if cursor.next.kind in (lexer.Kind.NAME, lexer.Kind.STRING) and cursor.peek().text == ":":
            name = cursor.name("the name of a field")
            cursor.expect(":")
            return name, self.type()
        return None, self.type()

    def definition(self) -> DataDefinition:
        """The data type whose name is at the cursor. Raises FrontendError if there is none of that name."""
        token = self.cursor.next
        name = self.cursor.name("a data type")
        if name not in self.data:
            raise self.cursor.unknown_name_error("data type", token, name, self.data)
        return self.data[name]

    def declare_variables(self) -> None:
        """`(n: Dim) (s: Shape) ..`: the variables of an untyped module's annotations."""
        while self.cursor.accept("("):
            token = self.cursor.next
            variable = self._type_variable()
            if variable.name in self._variables:
                raise FrontendError(f"the variable `{variable.name}` is declared twice", self.cursor.span(token))
            self._variables[variable.name] = variable
            self.cursor.expect(")")

    def python(self) -> object:
        """The object of Python that a name in quotes means. Raises FrontendError if there is none."""
        token = self.cursor.next
        name = self.cursor.string("the name of an object, in quotes")
        if name in self.objects:
            return self.objects[name]
        found = builtin(name)
        if found is None:
            raise FrontendError(
                f"there is no object {name!r} beside the text",
                self.cursor.span(token),
                help="give it: relay.parse(text, objects={name: object})",
            )
        return found

    # ---- types

    def scheme(self) -> Type:
        """A type that may contain applications of type-level functions, as that of a polymorphic function."""
        self._equations = []
        start = self.cursor.next
        type_ = self.type()
        equations, self._equations = self._equations, None
        if not equations:
            return type_
        identifiers, function = (type_.identifiers, type_.body) if isinstance(type_, QuantifiedType) else ((), type_)
        if not isinstance(function, FunctionType):
            raise FrontendError(
                "an application is allowed only in the type of a function", self.cursor.span_from(start)
            )
        named = tuple(v for v, _ in equations)
        where = (*(e for _, e in equations), *function.where)
        return QuantifiedType((*identifiers, *named), attrs.evolve(function, where=where))

    def _application(self, kind: Kind) -> Application | None:
        """`broadcast(s1, s2)` in a scheme, if one is at the cursor."""
        cursor = self.cursor
        is_call = cursor.next.kind is lexer.Kind.NAME and cursor.peek().text == "("
        if self._equations is None or not is_call or cursor.next.text in (*EXTREMA, "fn"):
            return None
        name = cursor.name("a type-level function")
        cursor.expect("(")
        attributes: list[tuple[str, AttributeValue]] = []

        def part() -> Type | Base | Shape | Dim | None:
            if cursor.peek().text == "=":
                key = cursor.name("an attribute")
                cursor.expect("=")
                attributes.append((key, self.attribute()))
                return None
            return self._any_argument()

        arguments = tuple(a for a in self.separated_items(")", part) if a is not None)
        return Application(name, arguments, tuple(attributes))

    def _application_variable(self, kind: Kind) -> TypeId | None:
        """The variable that stands for the application at the cursor, if one is there."""
        application = self._application(kind)
        if application is None:
            return None
        assert self._equations is not None
        variable = TypeId(f"{application.function}_{len(self._equations) + 1}", kind)
        value = (variable,) if kind is Kind.Shape else variable
        self._equations.append((variable, Equation(application, value)))
        return variable

    def _any_argument(self) -> Type | Base | Shape | Dim:
        """The argument of a type-level function, of any kind."""
        cursor = self.cursor
        token = cursor.next
        variable = self._variables.get(token.text)
        if variable is not None and variable.kind is Kind.BaseType:
            return self._base()
        if self.at_dim() or token.kind is lexer.Kind.NUMBER or token.text == "Any":
            return self.dim()
        if cursor.is_at("("):
            inside = cursor.peek()
            known = self._variables.get(inside.text)
            is_dim = known is not None and known.kind is Kind.Dim
            if is_dim or inside.kind is lexer.Kind.NUMBER or inside.text in ("*", ")", "-", "Any", *EXTREMA):
                return self._shape()
            return self.type()
        if variable is not None and variable.kind is Kind.Shape:
            return self._shape()
        if variable is None and cursor.peek().text == "(" and token.text != "fn":
            found = self._application_variable(Kind.Shape)
            assert found is not None
            return (found,)
        return self.type()

    def attribute(self) -> AttributeValue:
        """The value of an attribute: a number, a text, an element type, `true`, `false`, `none`, a symbolic dim, or a
        tuple of them. Raises FrontendError."""
        cursor = self.cursor
        token = cursor.next
        if self.at_dim():
            dim = self.dim()
            if isinstance(dim, AnyDim | Unknown):
                raise FrontendError("`Any` is not a size that an operator can be given", cursor.span_from(token))
            return dim
        if cursor.accept("("):
            return self.tuple_items(self.attribute)
        if token.kind is lexer.Kind.STRING:
            return cursor.string("a text")
        if token.kind is lexer.Kind.NUMBER or token.text in NUMBERS:
            cursor.take()
            return int(token.text) if token.text.lstrip("-").isdigit() else float(token.text)
        if token.kind is lexer.Kind.NAME and (token.text in _WORDS or token.text in BASE_TYPES):
            cursor.take()
            return BASE_TYPES[token.text] if token.text in BASE_TYPES else _WORDS[token.text]
        raise cursor.expected_error("the value of an attribute")

    def type(self) -> Type:
        """The type at the cursor. Raises FrontendError."""
        cursor = self.cursor
        if cursor.accept("("):
            return TupleType(self.tuple_items(self.type))
        if cursor.is_at("fn", "("):
            cursor.position += 2
            parameters = self.separated_items(")", self.type)
            cursor.expect("->", " and the type of the result")
            return self._function(parameters, self.type())
        if cursor.is_at("forall"):
            return self._forall()
        if cursor.is_at("Tensor", "["):
            cursor.position += 2
            tensor = self.tensor()
            cursor.expect("]")
            return tensor
        if cursor.accept("None"):
            return NONE
        if cursor.next.kind is lexer.Kind.NAME and cursor.next.text in self._aliases:
            return self._aliases[cursor.take().text]
        if cursor.is_at("record") and cursor.peek().kind is lexer.Kind.STRING:
            return self._record()
        if cursor.is_at("Ref", "[") or cursor.is_at("Stack", "["):
            is_reference = cursor.take().text == "Ref"
            cursor.take()
            inner = self.type()
            cursor.expect("]")
            return RefType(inner) if is_reference else StackType(inner)
        if cursor.is_at("list", "["):
            cursor.position += 2
            inner = self.type()
            cursor.expect("]")
            return StackType(RefType(inner))
        return self._application_variable(Kind.Type) or self._named_type()

    def _record(self) -> TupleType:
        """`record "Class"(field: T, ..)`: the annotation of a dataclass or named tuple in an untyped module."""
        self.cursor.take()
        token = self.cursor.next
        cls = self.python()
        if not isinstance(cls, type):
            raise FrontendError(f"{token.text} is not a class", self.cursor.span(token))
        self.cursor.expect("(", " and the fields")
        fields = self.separated_items(")", self._record_field)
        return TupleType([t for _, t in fields], Form(cls, tuple(n for n, _ in fields)))

    def _record_field(self) -> tuple[str, Type]:
        name = self.cursor.name("the name of a field")
        self.cursor.expect(":", " and its type")
        return name, self.type()

    def _function(self, parameters: Sequence[Type], result: Type) -> FunctionType:
        """`! {io}` and `where n >= 1` after the type of a result."""
        cursor = self.cursor
        effects: tuple[str, ...] | None = None
        where: list[Constraint] = []
        if cursor.accept("!"):
            cursor.expect("{", " and the effects")
            effects = tuple(self.separated_items("}", self._effect))
        if cursor.accept("where"):
            where.append(self._demand())
            while cursor.accept(","):
                where.append(self._demand())
        return FunctionType(tuple(parameters), result, tuple(where), effects)

    def _effect(self) -> str:
        """`io`, a variable, or `effects(A)`: those of the functions in a value of that type."""
        name = self.cursor.name("an effect")
        if name != "effects" or not self.cursor.accept("("):
            return name
        of = self.cursor.name("a variable")
        self.cursor.expect(")")
        return f"{name}({of})"

    def _demand(self) -> Constraint:
        """`broadcast(s1, s2) == s1`, `bt is float or int`, `n >= 1`: what a function demands of its arguments."""
        cursor = self.cursor
        variable = self._variables.get(cursor.next.text)
        if variable is not None and variable.kind is Kind.BaseType:
            base = self._base()
            cursor.expect("is", " and classes of element types")
            classes = [self._class()]
            while cursor.accept("or"):
                classes.append(self._class())
            return ClassConstraint(base, frozenset(classes))
        application = self._application(Kind.Type)
        if application is None:
            return self.constraint()
        value = self._any_argument() if cursor.accept("==") else None
        return Equation(application, value)  # type: ignore[arg-type]

    def _class(self) -> BaseClass:
        token = self.cursor.next
        name = self.cursor.name("a class of element types")
        classes = {c.value: c for c in BaseClass}
        if name not in classes:
            raise self.cursor.unknown_name_error("class of element types", token, name, classes)
        return classes[name]

    def tensor(self) -> TensorType:
        """`B, (d, ..)`: the content of the brackets of a tensor type, with names of the axes or without."""
        base = self._base()
        cursor = self.cursor
        cursor.expect(",", " and the shape")
        if cursor.is_at("dict", "("):
            cursor.position += 2
            fields = self.separated_items(")", self._named_dim)
            return TensorType(base, tuple(dim for _, dim in fields), tuple(name for name, _ in fields))
        shape = self._shape()
        return TensorType(base, shape, self._axes(shape) if cursor.accept(",") else None)

    def _named_dim(self) -> tuple[str, Dim]:
        name = self.cursor.name("the name of an axis")
        self.cursor.expect("=", " and its dim")
        return name, self.dim()

    def _axes(self, shape: Shape) -> AxisNames | None:
        """`NCHW`, `("batch", None)`"""
        cursor = self.cursor
        token = cursor.next
        given: object = self.tuple_items(lambda: self._axis()) if cursor.accept("(") else cursor.name("names of axes")
        try:
            return axis_names(given, shape)
        except FrontendError as error:
            raise error.with_span(cursor.span_from(token)) from None

    def _axis(self) -> str | None:
        return None if self.cursor.accept("None") else self.cursor.name("the name of an axis")

    def _named_type(self) -> Type:
        cursor = self.cursor
        token = cursor.next
        name = cursor.name("a type")
        variable = self._variables.get(name)
        if variable is not None:
            return variable
        definition = self.data.get(name)
        if definition is None:
            if name in _OPENED:
                raise cursor.expected_error(f"`{_OPENED[name]}` behind `{name}`")
            raise cursor.unknown_name_error("type", token, name, (*self._variables, *self.data, *RESERVED))
        return DataType(definition, self._arguments(definition, token) if definition.parameters else ())

    def _arguments(self, definition: DataDefinition, token: lexer.Token) -> tuple[Type | Base | Shape | Dim, ...]:
        """The arguments for the parameters of a polymorphic data type, each of its kind."""
        cursor = self.cursor
        cursor.expect("[", f" and what stands for {', '.join(map(str, definition.parameters))}")
        readers: dict[Kind, Callable[[], Type | Base | Shape | Dim]] = {
            Kind.BaseType: self._base,
            Kind.Shape: self._shape,
            Kind.Dim: self.dim,
        }
        kinds = iter(definition.parameters)

        def argument() -> Type | Base | Shape | Dim:
            parameter = next(kinds, None)
            return self.type() if parameter is None else readers.get(parameter.kind, self.type)()

        arguments = tuple(self.separated_items("]", argument))
        if len(arguments) != len(definition.parameters):
            wanted, found = len(definition.parameters), len(arguments)
            raise FrontendError(f"`{definition.name}` has {wanted} arguments, found {found}", cursor.span_from(token))
        return arguments

    def _forall(self) -> QuantifiedType:
        cursor = self.cursor
        cursor.take()
        outer, self._variables = self._variables, dict(self._variables)
        variables: list[TypeId] = []
        while cursor.accept("("):
            variables.append(self._type_variable())
            self._variables[variables[-1].name] = variables[-1]
            cursor.expect(")")
        cursor.expect(".", " and the type")
        body = self.type()
        self._variables = outer
        return QuantifiedType(tuple(variables), body)

    def _type_variable(self) -> TypeId:
        cursor = self.cursor
        name = cursor.name("a type variable")
        cursor.expect(":", " and its kind")
        token = cursor.next
        kind = cursor.name("a kind")
        kinds = {k.value: k for k in Kind}
        if kind not in kinds:
            raise cursor.unknown_name_error("kind", token, kind, kinds)
        return TypeId(name, kinds[kind])

    def _base(self) -> Base:
        token = self.cursor.next
        name = self.cursor.name("an element type")
        variable = self._variables.get(name)
        if variable is not None and variable.kind is Kind.BaseType:
            return variable
        if name not in BASE_TYPES:
            raise self.cursor.unknown_name_error("element type", token, name, BASE_TYPES)
        return BASE_TYPES[name]

    def _shape(self) -> Shape:
        cursor = self.cursor
        variable = self._variables.get(cursor.next.text)
        if variable is not None and variable.kind is Kind.Shape:
            cursor.take()
            return (variable,)
        applied = self._application_variable(Kind.Shape)
        if applied is not None:
            return (applied,)
        cursor.expect("(", " and the dims of a shape")
        return tuple(d for dims in self.tuple_items(self._dim) for d in dims)

    def _dim(self) -> tuple[Dim, ...]:
        cursor = self.cursor
        if not cursor.accept("*"):
            return (self.dim(),)
        applied = self._application_variable(Kind.Shape)
        if applied is not None:
            return (applied,)
        variable = self._variables.get(cursor.next.text)
        if variable is None or variable.kind is not Kind.Shape:
            raise cursor.expected_error("a shape variable")
        cursor.take()
        return (variable,)


def parse_type(text: str, filename: str = "<relay>", data: Iterable[DataDefinition] = ()) -> Type:
    """The type in a text, which may contain these data types. Raises FrontendError."""
    (type_,) = _parse(text, filename, data, lambda cursor: cursor.expected_error("the end of the type"))
    return type_


def parse_types(text: str, filename: str = "<relay>", data: Iterable[DataDefinition] = ()) -> tuple[Type, ...]:
    """Several types with commas between them. Raises FrontendError."""
    return _parse(text, filename, data, None)


def _parse(
    text: str, filename: str, data: Iterable[DataDefinition], single: Callable[[Cursor], FrontendError] | None
) -> tuple[Type, ...]:
    cursor = Cursor(text, filename)
    parser = TypeParser(cursor)
    parser.data.update((d.name, d) for d in data)
    types: list[Type] = []
    with cursor.reading():
        while cursor.next.kind is not lexer.Kind.END or (single is not None and not types):
            if types:
                if single is not None:
                    raise single(cursor)
                cursor.expect(",", " between two types")
            types.append(parser.scheme())
    return tuple(types)
