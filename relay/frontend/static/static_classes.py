"""Classes of a file that is not imported: their declarations, without execution of their bodies.

A class is made of its fields, of values that are known without running the program, of nested classes, and of functions
that cannot be called. Classes whose creation runs code (metaclasses, other decorators, bases that are not read) are not
supported.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import types
import typing
from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from relay.frontend.annotations import AnnotationReader
from relay.frontend.data import data_classes
from relay.frontend.functions import type_parameters
from relay.frontend.scope import ParameterScope
from relay.frontend.static.evaluation import Evaluator, NotEvaluated
from relay.frontend.static.static_functions import SourceFunction
from relay.ir.intrinsic import IN_PLACE
from relay.ir.structure import SourceRecord
from relay.ir.types import Type

if TYPE_CHECKING:
    from relay.frontend.static.top_level import FileReader

_METHODS = frozenset(
    (
        *(*data_classes.OPERATORS, *data_classes.OWN, *IN_PLACE.values(), "__post_init__", "__len__", "__ne__"),
        *("__setitem__", "__iter__", "__bool__", "__repr__", "__str__", "__format__"),
    )
)
"""The double-underscore names of methods that a class here has. Python calls none of them where a class is made."""

_WRAPPERS: dict[str, Callable[[Any], object]] = {
    "staticmethod": staticmethod,
    "classmethod": classmethod,
    "property": property,
}


class ClassMaker:
    """Makes the classes of one file. `is_data`: whether Relay makes a data type of a class."""

    def __init__(self, reader: FileReader, evaluator: Evaluator, is_data: bool) -> None:
        self._reader = reader
        self._evaluator = evaluator
        self._is_data = is_data

    def make(self, node: ast.ClassDef, around: str = "") -> type:
        """The class. Raises NotEvaluated if only running the program makes it, and RelayError."""
        if node.keywords:
            raise NotEvaluated
        parameters = type_parameters(self._reader.file, node)
        bases = [self._base(base) for base in node.bases]
        if parameters:
            bases.append(typing.Generic[tuple(parameters.values())])  # type: ignore[index]
        qualname = f"{around}.{node.name}" if around else node.name
        module = self._reader.names["__name__"]
        members: dict[str, Any] = {"__module__": module, "__qualname__": qualname, "__doc__": ast.get_docstring(node)}
        if parameters:
            members["__type_params__"] = tuple(parameters.values())
        body = _Body(self, node, qualname, parameters)
        members |= body.members
        members["__annotations__"] = {name: _text(written) for name, written in body.annotations.items()}
        if any(base is typing.NamedTuple for base in bases):
            bases = [tuple if base is typing.NamedTuple else base for base in bases]
            members |= _tuple_members(body)
        elif not self._is_data and (options := self._record_options(node)) is not None:
            members |= _record_members(body, options, [b for b in bases if isinstance(b, type)])
        resolved = types.resolve_bases(tuple(bases))
        if resolved != tuple(bases):
            members["__orig_bases__"] = tuple(bases)
        made = type(node.name, resolved, members)
        for member in body.members.values():
            parts = (member.fget, member.fset) if isinstance(member, property) else (member,)
            for part in parts:
                written = getattr(part, "__func__", part)
                if isinstance(written, SourceFunction):
                    written.owner = made
        return made

    def _base(self, node: ast.expr) -> Any:
        base = self._evaluator.value(node)
        is_read = isinstance(base, type) and base.__module__.startswith("<check ")
        generic = base is typing.Generic or typing.get_origin(base) is typing.Generic
        if base is object or base is typing.NamedTuple or generic or is_read:
            return base
        raise NotEvaluated

    def _record_options(self, node: ast.ClassDef) -> dict[str, object] | None:
        """The options written in `@dataclass(..)`; None for other classes. Raises NotEvaluated for other decorators."""
        found = None
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            if self._evaluator.meaning(decorator if call is None else call.func) is not dataclasses.dataclass:
                raise NotEvaluated
            found = {}
            for keyword in [] if call is None else call.keywords:
                found[keyword.arg or ""] = self._evaluator.value(keyword.value)
        return found

    def function(self, node: ast.FunctionDef, members: dict[str, Any]) -> object:
        """A method, which is only read, in a class with these members."""
        reader = self._reader
        if reader.decorators.is_decorated(node):
            if len(node.decorator_list) > 1:
                raise NotEvaluated
            return reader.define_method(node)
        written = SourceFunction(reader.file, node, reader.scope, reader.value_or_unknown, reader.names["__name__"])
        if not node.decorator_list:
            return written
        match node.decorator_list:
            case [ast.Attribute(value=ast.Name(id=name), attr="setter")] if isinstance(members.get(name), property):
                return members[name].setter(written)
        (name,) = [d.id if isinstance(d, ast.Name) else "" for d in node.decorator_list]
        if name not in _WRAPPERS or name in reader.names:
            raise NotEvaluated
        return _WRAPPERS[name](written)

    def class_evaluator(self, members: dict[str, Any]) -> Evaluator:
        """The evaluator of expressions in a class, which see its names."""
        return Evaluator(ChainMap(members, self._evaluator.names), self._evaluator.budget)

    def type_of(self, node: ast.expr, members: dict[str, Any]) -> Type:
        """The type that the annotation of a field means. Raises FrontendError for what is none."""
        return AnnotationReader(self._reader.file, ParameterScope(members, self._reader.scope)).type(node)

    def make_nested(self, node: ast.ClassDef, around: str) -> type:
        """A class in a class."""
        if node.decorator_list or node.bases:
            raise NotEvaluated
        return self.make(node, around)

    @property
    def is_late(self) -> bool:
        """True if annotations are not evaluated where the class is made."""
        return self._is_data or self._reader.has_late_annotations


class _Body:
    """The declarations in the body of a class."""

    def __init__(self, maker: ClassMaker, node: ast.ClassDef, qualname: str, parameters: dict[str, object]) -> None:
        self.maker = maker
        self.annotations: dict[str, ast.expr] = {}
        self.defaults: dict[str, object] = {}
        self.members: dict[str, Any] = {}
        self.keyword_only: set[str] = set()
        self.names: dict[str, Any] = dict(parameters)
        self._evaluator = maker.class_evaluator(self.names)
        for statement in node.body:
            self._statement(statement, qualname)

    def _statement(self, statement: ast.stmt, qualname: str) -> None:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                if value is not None:
                    self._bind(name, self._evaluator.value(value))
                self._field(name, annotation)
                if value is not None and name in self.annotations:
                    self.defaults[name] = self.names[name]
            case ast.Assign(targets=targets, value=value) if all(isinstance(t, ast.Name) for t in targets):
                found = self._evaluator.value(value)
                for target in targets:
                    assert isinstance(target, ast.Name)
                    self._bind(target.id, found)
            case ast.FunctionDef(name=name):
                if not _is_special(name) or name in _METHODS:
                    self._bind(name, self.maker.function(statement, self.members), special=True)
            case ast.ClassDef(name=name):
                self._bind(name, self.maker.make_nested(statement, qualname))
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case _:
                raise NotEvaluated

    def _bind(self, name: str, value: object, special: bool = False) -> None:
        if name.startswith("__") and not _is_special(name):
            raise NotEvaluated  # Python gives it another name
        if special or not _is_special(name):
            self.members[name] = self.names[name] = value

    def _field(self, name: str, annotation: ast.expr) -> None:
        if not self.maker.is_late and not isinstance(annotation, ast.Constant):
            with contextlib.suppress(NotEvaluated):
                self._evaluator.value(annotation)  # raises RelayError where importing the file does
        head = annotation.value if isinstance(annotation, ast.Subscript) else annotation
        meant = self._evaluator.meaning(head)
        if meant is typing.ClassVar:
            return
        if meant is dataclasses.InitVar or _is_special(name) or name.startswith("__"):
            raise NotEvaluated
        if meant is dataclasses.KW_ONLY:
            self.keyword_only = {""}
            return
        self.annotations[name] = annotation
        if self.keyword_only:
            self.keyword_only.add(name)

    def types(self) -> dict[str, Callable[[], Type]]:
        """The readers of the fields' types."""
        return {name: self._type_reader(written) for name, written in self.annotations.items()}

    def _type_reader(self, written: ast.expr) -> Callable[[], Type]:
        return lambda: self.maker.type_of(written, self.names)


def _tuple_members(body: _Body) -> dict[str, object]:
    """The members of a class of named tuples."""
    names = tuple(body.annotations)
    for name in names:
        body.members.pop(name, None)
    return {
        **dict.fromkeys(names),
        "_fields": names,
        "_field_defaults": dict(body.defaults),
        "__signature__": _signature([(name, body.defaults.get(name, _EMPTY), False) for name in names]),
        "__relay_record__": SourceRecord(names, body.types()),
    }


def _record_members(body: _Body, options: dict[str, object], bases: Sequence[type]) -> dict[str, object]:
    """The members of a dataclass."""
    reads: dict[str, Callable[[], Type]] = {}
    parameters: dict[str, tuple[str, object, bool]] = {}
    for base in reversed(bases):
        above = getattr(base, "__relay_record__", None)
        if isinstance(above, SourceRecord):
            reads |= above.types
            for parameter in inspect.signature(base).parameters.values():
                by_keyword = parameter.kind is parameter.KEYWORD_ONLY
                parameters[parameter.name] = (parameter.name, parameter.default, by_keyword)
    reads |= body.types()
    for name in body.annotations:
        by_keyword = options.get("kw_only") is True or name in body.keyword_only
        parameters[name] = (name, body.defaults.get(name, _EMPTY), by_keyword)
    return {
        "__signature__": _signature(list(parameters.values())),
        "__relay_record__": SourceRecord(tuple(parameters), reads),
    }


_EMPTY = inspect.Parameter.empty


def _signature(fields: Sequence[tuple[str, object, bool]]) -> inspect.Signature:
    """Raises ValueError for a field without a default after one that has one."""
    kinds = inspect.Parameter
    ordered = sorted(fields, key=lambda field: field[2])
    return inspect.Signature(
        [
            kinds(name, kinds.KEYWORD_ONLY if by_keyword else kinds.POSITIONAL_OR_KEYWORD, default=default)
            for name, default, by_keyword in ordered
        ]
    )


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _text(node: ast.expr) -> str:
    """An annotation as Python keeps it where it is not evaluated."""
    return ast.unparse(node)
