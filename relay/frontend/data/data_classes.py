"""Classes as data types: the conversion by `relay.data`.

    class Point:            one constructor, Point, with the annotated fields
        x: T
    class Tree:             a constructor for each nested class; their Python classes derive from Tree
        class Leaf: ..

A field's type may mention the class itself, or one that is defined later, as a string. So types are read late, by
`DataClass.complete`: at the decoration if all names are known, else at the first use. The type variables in them are
the parameters of the data type, in the order of their first occurrence.

Methods become functions of the language, whose first parameter is a value of the type; so do properties and the methods
that Python's operators call (`OPERATORS`). Other double-underscore methods stay Python's own.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import inspect
import linecache
from collections.abc import Callable, Container, Iterator, Mapping
from types import FrameType, FunctionType, GenericAlias
from typing import Any, Generic, TypeAlias

import attrs

from relay.errors import FrontendError, Span
from relay.frontend.annotations import AnnotationReader, UndefinedName
from relay.frontend.data import values
from relay.frontend.lower import lower_function
from relay.frontend.scope import ParameterScope
from relay.frontend.source import SourceFile, no_class, parse_text
from relay.frontend.static.static_functions import SourceFunction
from relay.ir.annotations.annotation import argument_count, data_type, to_type
from relay.ir.definition import MISSING, DataClass, Definition, Scope, data_class
from relay.ir.types import (
    Constructor,
    DataDefinition,
    DataType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    map_type_parts,
    types_in,
)
from relay.ir.types import FunctionType as RelayFunctionType
from relay.typecheck.mapping import erase_names_and_effects

_ARITHMETIC = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
)  # fmt: skip
_OTHERS = ("neg", "invert", "abs", "lt", "le", "gt", "ge", "getitem", "call", "contains")
OPERATORS = frozenset(f"__{name}__" for name in (*_ARITHMETIC, *(f"r{n}" for n in _ARITHMETIC), *_OTHERS))
"""The methods that Python's operators, brackets, calls, `in` and `abs` call. `len` wants a number of Python's."""

OWN = ("__init__", "__new__", "__eq__", "__hash__", "__setattr__", "__delattr__")
"""Methods that a data type brings itself."""

_FUNCTIONS: TypeAlias = FunctionType | SourceFunction

_NEIGHBORS: dict[tuple[str, str], dict[str, type]] = {}
"""The data types of each module (or function) by name: they see each other before Python has bound the names."""


def forget(modules: Container[str]) -> None:
    """Forget the data types of modules that have been deleted."""
    for key in [key for key in list(_NEIGHBORS) if key[0] in modules]:
        _NEIGHBORS.pop(key, None)


@attrs.frozen(eq=False)
class ClassPlace:
    """The place of a class: its source, None if there is none, and the names around it."""

    source: tuple[SourceFile, ast.ClassDef] | None
    local: Mapping[str, object]
    globals: Mapping[str, object]

    @classmethod
    def from_frame(cls, made: type, frame: FrameType) -> ClassPlace:
        """The place of a class that is being decorated in a frame."""
        return cls(_find_class(made, frame), frame.f_locals, frame.f_globals)


def decorated_class(cls: type, frame: FrameType | None) -> FrontendError:
    """The error of a class that is decorated with `@relay`, in a frame if that is known."""
    file, node = (frame and _find_class(cls, frame)) or (None, None)
    return no_class(file, node, cls.__name__)


def define(cls: type, place: ClassPlace, wrap: Callable[..., object]) -> type:
    """Make a class a data type. `wrap(definition, python=function)` makes a callable of a method.

    Raises FrontendError for what a data type cannot have.
    """
    neighbors = _NEIGHBORS.setdefault((cls.__module__, cls.__qualname__.rpartition(".")[0]), {})
    neighbors[cls.__name__] = cls
    reading = _ClassReader(cls, place.source, _ClassScope(neighbors, place.local, place.globals))
    nested = {name: inner for name, inner in vars(cls).items() if isinstance(inner, type) and not name.startswith("_")}
    _refuse_own_names(cls, nested, reading)
    parts = nested or {cls.__name__: cls}
    fields = {name: tuple(inspect.get_annotations(part)) for name, part in parts.items()}
    for name, part in parts.items():
        reading.refuse_values(name, part, nested)
    defaults = {
        name: {field: vars(part)[field] for field in fields[name] if field in vars(part)}
        for name, part in parts.items()
    }
    definition = DataDefinition(cls.__name__)
    methods: dict[str, Callable[[], Definition]] = {}
    constructors = dict(parts)
    owner = DataClass(definition, cls, constructors, fields, defaults, methods, functools.partial(_complete, reading))
    definition.origin = owner
    reading.owner = owner
    reading.annotations = {name: dict(inspect.get_annotations(part)) for name, part in parts.items()}
    _add_methods(owner, cls, methods, reading, wrap)
    cls.__relay_data__ = owner  # type: ignore[attr-defined]
    cls.__relay_type__ = DataType(definition)  # type: ignore[attr-defined]
    cls.__class_getitem__ = classmethod(lambda _, item: _subscript_class(owner, item))  # type: ignore[attr-defined]
    values.install(owner, constructors, nested)
    try:
        owner.complete()
        for method in methods.values():
            method()
    except UndefinedName:
        pass  # a later class; read at the first use
    return cls


def _refuse_own_names(cls: type, nested: Mapping[str, type], reading: _ClassReader) -> None:
    """Raise FrontendError for fields next to constructors, and for special methods that data types bring."""
    if nested and inspect.get_annotations(cls):
        field = next(iter(inspect.get_annotations(cls)))
        raise FrontendError(
            f"{cls.__name__} has constructors (nested classes) and the field {field!r}",
            reading.span(field),
            help="put the field into each constructor",
        )
    for name in OWN:
        if name in vars(cls):
            raise FrontendError(
                f"{cls.__name__} defines {name}; the data type brings its own",
                reading.span(name),
                help="write a function",
            )


def _add_methods(
    owner: DataClass,
    cls: type,
    methods: dict[str, Callable[[], Definition]],
    reading: _ClassReader,
    wrap: Callable[..., object],
) -> None:
    """The functions and properties of a class become `methods` of its type, and attributes that call them."""
    functions = {
        name: value
        for name, value in vars(cls).items()
        if isinstance(value, _FUNCTIONS | staticmethod | classmethod) and (name in OPERATORS or not _is_special(name))
    }
    for name, value in tuple(vars(cls).items()):
        if isinstance(value, property) and isinstance(value.fget, _FUNCTIONS):
            methods[name] = functools.cache(functools.partial(_method, reading, value.fget))
            owner.properties.add(name)
            setattr(cls, name, _Property(methods[name], _method_wrapper(wrap, value.fget)))
    for name, function in functions.items():
        methods[name] = functools.cache(functools.partial(_method, reading, function))
        if not isinstance(function, _FUNCTIONS):
            owner.static.add(name)
        setattr(cls, name, _Method(methods[name], _method_wrapper(wrap, function), name in owner.static))
    for name, value in vars(cls).items():
        if isinstance(getattr(value, "__relay__", None), Definition):  # decorated by the user
            methods[name] = functools.partial(_method_definition, reading, value)


def _method_wrapper(wrap: Callable[..., object], function: object) -> Callable[[Definition], object]:
    """A function that makes a callable of a method, which knows the Python function that takes the same arguments."""
    function = function.__func__ if isinstance(function, staticmethod) else function
    return functools.partial(wrap, python=function) if isinstance(function, FunctionType) else wrap


def _subscript_class(owner: DataClass, item: object) -> DataType | GenericAlias:
    """`Tree[A]`, evaluated by Python."""
    if any(isinstance(part, str) for part in (item if isinstance(item, tuple) else (item,))):
        return GenericAlias(owner.cls, item)  # in the type of a field, which is read from the source
    with contextlib.suppress(UndefinedName):  # as in the type of a field, before a later class is defined
        owner.complete()
    return data_type(owner, item)


class _Method:
    """A method of a data type, for Python: `p.norm()` runs the program."""

    def __init__(
        self, definition: Callable[[], Definition], wrap: Callable[[Definition], object], static: bool
    ) -> None:
        self._function = functools.cache(lambda: wrap(definition()))
        self._static = static

    def __get__(self, instance: object, owner: type | None = None) -> object:
        function = self._function()
        return function if instance is None or self._static else _BoundMethod(function, instance)


class _Property:
    """A property of a data type, for Python."""

    def __init__(self, definition: Callable[[], Definition], wrap: Callable[[Definition], object]) -> None:
        self._function = functools.cache(lambda: wrap(definition()))

    def __get__(self, instance: object, owner: type | None = None) -> object:
        function: Any = self._function()
        return function if instance is None else function(instance)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


@attrs.frozen(eq=False)
class _BoundMethod:
    """A method of one value; what a function of the language can do, with the value as its first argument."""

    __relay_bound__ = True  # for `relay.ir.partial_calls`

    _function: Any
    _value: object

    @property
    def __func__(self) -> Any:
        return self._function

    @property
    def __self__(self) -> object:
        return self._value

    def __call__(self, *arguments: object, **keywords: object) -> object:
        return self._function(self._value, *arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name in ("interpret", "typed", "core"):
            return functools.partial(getattr(self._function, name), self._value)
        return getattr(self._function, name)


@attrs.frozen(eq=False)
class _ClassScope:
    """The names that a class's annotations see, looked up when they are needed."""

    neighbors: Mapping[str, type]
    local: Mapping[str, object]
    globals: Mapping[str, object]

    def resolve(self, name: str) -> object:
        for names in (self.local, self.globals, self.neighbors, vars(builtins)):
            if name in names:
                return names[name]
        return MISSING

    def names(self) -> list[str]:
        return [*self.neighbors, *self.local, *self.globals, *dir(builtins)]


def type_parameters(cls: type) -> tuple[Any, ...]:
    """Those of `class Pair[A, B]`, which Python has from 3.12 on."""
    return getattr(cls, "__type_params__", ())


class _ClassReader:
    """One class while its fields' types are still to be read."""

    def __init__(self, cls: type, source: tuple[SourceFile, ast.ClassDef] | None, scope: _ClassScope) -> None:
        self.cls = cls
        self.source = source
        self.neighbors = scope.neighbors
        parameters = {p.__name__: p for p in type_parameters(cls)}
        self.scope: Scope = ParameterScope(parameters, scope) if parameters else scope
        self.owner: DataClass | None = None
        self.annotations: dict[str, dict[str, object]] = {}
        self.state = "unread"

    def span(self, name: str, constructor: str | None = None) -> Span | None:
        """The place where a name of the class (or of a constructor's class) is defined; the class itself if it is
        not found."""
        if self.source is None:
            return None
        file, node = self.source
        body = node.body
        for statement in body:
            if isinstance(statement, ast.ClassDef) and statement.name == constructor:
                body = statement.body
        for statement in body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=found)) | ast.Assign(targets=[ast.Name(id=found)]) if (
                    found == name
                ):
                    return file.span(statement)
                case ast.FunctionDef(name=found) | ast.ClassDef(name=found) if found == name:
                    return file.function_span(statement)
                case _:
                    pass
        return file.function_span(node)

    def refuse_values(self, name: str, part: type, nested: Mapping[str, type]) -> None:
        """Raise FrontendError for what a constructor's class cannot have."""
        if part.__bases__ != ((Generic,) if type_parameters(part) else (object,)):
            raise FrontendError(
                f"{part.__name__} has a base class; a data type has none", self.span("", name), help="repeat its fields"
            )
        if not nested:
            return
        for item, value in vars(part).items():
            if isinstance(value, _FUNCTIONS | type) and not item.startswith("__"):
                raise FrontendError(
                    f"{item} is defined in a constructor; methods belong to the data type itself",
                    self.span(item, name),
                    help=f"move it to {self.cls.__name__} and use `match`",
                )

    def type(self, constructor: str, field: str) -> Type:
        """The type of a field. Raises FrontendError, UndefinedName for what may be defined later."""
        evaluated = self.annotations[constructor][field]
        node, file = self._source_annotation(constructor, field), None if self.source is None else self.source[0]
        if node is None or file is None:
            if not isinstance(evaluated, str):
                return to_type(evaluated)
            file = parse_text(evaluated, f"<the type of {self.cls.__name__}.{field}>")
            statement = file.tree.body[0] if file.tree.body else None
            if not isinstance(statement, ast.Expr):
                raise FrontendError(f"the type of {self.cls.__name__}.{field} is not an expression: {evaluated!r}")
            node = statement.value
        return AnnotationReader(file, self.scope).type(node)

    def _source_annotation(self, constructor: str, field: str) -> ast.expr | None:
        """The annotation of a field in the source."""
        body = [] if self.source is None else self.source[1].body
        for statement in body:
            if isinstance(statement, ast.ClassDef) and statement.name == constructor:
                body = statement.body
        for statement in body:
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and statement.target.id == field
            ):
                return statement.annotation
        return None


def _complete(reading: _ClassReader) -> None:
    """Read the fields' types. The types of a group of classes that mention each other are read together."""
    if reading.state != "unread":
        return
    assert reading.owner is not None
    definition = reading.owner.definition
    reading.state = "reading"
    try:
        constructors = []
        for name, fields in reading.owner.fields.items():
            constructors.append(Constructor(name, tuple(reading.type(name, field) for field in fields), fields))
        parameters: dict[TypeId, None] = {}
        for constructor in constructors:
            for field_type in constructor.fields:
                parameters.update((v, None) for v in _variables(field_type))
        definition.parameters = tuple(parameters)
        own = DataType(definition, definition.parameters)
        definition.constructors = tuple(
            Constructor(c.name, tuple(map(erase_names_and_effects, declared)), c.names, declared)
            for c in constructors
            for declared in [tuple(_with_own(t, own) for t in c.fields)]
        )
        _check_applications(reading, definition)
        reading.state = "read"
    finally:
        if reading.state == "reading":
            reading.state = "unread"
            definition.constructors, definition.parameters = (), ()


def _variables(type_: object) -> Iterator[TypeId]:
    """The variables of a type, in the order of occurrence."""
    match type_:
        case TypeId():
            yield type_
        case TensorType(base, shape):
            yield from _variables(base)
            yield from _variables(shape)
        case TupleType(items):
            yield from _variables(items)
        case tuple():
            for item in type_:
                yield from _variables(item)
        case RelayFunctionType(parameters, result):
            yield from _variables(parameters)
            yield from _variables(result)
        case RefType(content) | StackType(content):
            yield from _variables(content)
        case DataType(_, arguments):
            yield from _variables(arguments)
        case _:
            pass


def _with_own(type_: Type, own: DataType) -> Type:
    """The type with the class's bare name meaning it at its own parameters."""
    match type_:
        case DataType(definition, ()) if definition is own.definition:
            return own
        case _:
            return map_type_parts(type_, lambda part: _with_own(part, own))


def _check_applications(reading: _ClassReader, definition: DataDefinition) -> None:
    """Every data type among the fields has the arguments that it needs, and the class itself has its own parameters."""
    for constructor in definition.constructors:
        for field, type_ in zip(constructor.names, constructor.fields, strict=True):
            for used in (t for t in types_in(type_) if isinstance(t, DataType)):
                span = reading.span(field, constructor.name)
                if used.definition is definition:
                    if used.arguments != definition.parameters:
                        raise FrontendError(
                            f"{definition.name} contains itself at other arguments, {used}",
                            span,
                            help=f"write {definition.name}",
                        )
                    continue
                other = data_class(used.definition)
                if other is not None:
                    other.complete()
                    expected = used.definition.parameters
                    if used.definition.constructors and len(expected) != len(used.arguments):
                        raise FrontendError(argument_count(other, len(used.arguments)), span)


def _method(
    reading: _ClassReader,
    function: FunctionType | SourceFunction | staticmethod[..., object] | classmethod[Any, ..., object],
) -> Definition:
    """The surface IR of a method; its first parameter is a value of the type. That of a class method is the class."""
    assert reading.owner is not None
    static = not isinstance(function, _FUNCTIONS)
    python = function if isinstance(function, _FUNCTIONS) else function.__func__
    first = reading.cls if isinstance(function, classmethod) else MISSING
    names = {**reading.neighbors, reading.cls.__name__: reading.cls}
    names |= {parameter.__name__: parameter for parameter in type_parameters(reading.cls)}
    definition = lower_function(python, names, first=first)
    parameters = definition.function.parameters
    if not static:
        if not parameters:
            raise FrontendError(
                f"the method {definition.function.name} has no parameter for the value",
                definition.function.span,
                help="write `self` as its first parameter, or @staticmethod",
            )
        if parameters[0].type is None:
            reading.owner.complete()
            own = reading.owner.definition
            parameters[0].type = DataType(own, own.parameters)
    return definition


def _method_definition(reading: _ClassReader, function: object) -> Definition:
    definition = getattr(function, "__relay__", None)
    assert isinstance(definition, Definition)
    return definition


def _find_class(cls: type, frame: FrameType) -> tuple[SourceFile, ast.ClassDef] | None:
    """The source of a class that is being decorated; None if there is none."""
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    if not lines:
        return None
    try:
        file = parse_text("".join(lines), code.co_filename)
    except FrontendError:
        return None
    candidates = [
        node
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ClassDef)
        and node.name == cls.__name__
        and min([node.lineno, *(d.lineno for d in node.decorator_list)]) <= frame.f_lineno <= (node.end_lineno or 0)
    ]
    return (file, candidates[-1]) if candidates else None
