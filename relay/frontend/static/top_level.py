"""One Python file, read without importing it: its decorated functions, and what the names at its top mean.

Statements at the top that have no effect are evaluated: imports of Relay, NumPy and a few modules of the standard
library, assignments of what `evaluation.py` knows, classes (`static_classes.py`). Names that come from other modules
are looked up in their files when they are needed. What else a function mentions is `Outside`: only importing it tells
what it is.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from relay.errors import CompileError, FrontendError, RelayError, Source, Span
from relay.frontend import lower
from relay.frontend.data import data_classes
from relay.frontend.functions import type_parameters, with_static
from relay.frontend.scope import ParameterScope, TextScope
from relay.frontend.source import FunctionNode, SourceFile, no_async, no_class, parse_text
from relay.frontend.static.chosen_statements import of_python, only_tries_imports
from relay.frontend.static.decorators import Decorators, operator_name
from relay.frontend.static.evaluation import Evaluator, NotEvaluated
from relay.frontend.static.imported_names import ImportedNames
from relay.frontend.static.static_classes import ClassMaker
from relay.frontend.static.static_functions import SourceFunction
from relay.frontend.static.unknown_names import UnknownNameError, UnknownValue
from relay.ir.annotations.type_parameters import SourceAlias
from relay.ir.definition import MISSING, DataClass, Definition, Scope, data_class
from relay.operator.registry import composite_operator
from relay.typecheck.elaboration.library.overload_calls import add_user_overload

if TYPE_CHECKING:
    from relay.frontend.static.files import Files

_REGISTERED = "it is an operator that Python code defines"
_LONGEST_TEXT = 60

Wrap = Callable[[Definition], Any]


@attrs.frozen(eq=False)
class UnreadableFunction:
    """A function that could not be read: its name, its place, and what is unknown in it."""

    function: str
    span: Span | None
    outside: UnknownValue


@attrs.frozen(eq=False)
class PostponedFunction:
    """A decorated function that is read when something needs it: its place, and what reads it."""

    span: Span
    read: Callable[[], object]


class FileReader:
    """One file: what its names mean, and what is decorated in it.

    `is_remembered` tells of a function at the top, by the place of its `def`, that all about it is known already.
    """

    def __init__(self, files: Files, filename: str, is_remembered: Callable[[Span], bool] = lambda span: False) -> None:
        self.files = files
        self.filename = filename
        self._is_remembered = is_remembered
        self.file = SourceFile(Source(filename, ""), ast.Module([], []))
        self.names = files.namespace(filename)
        self.expressions = Evaluator(self.names, files.budget)
        self.has_late_annotations = sys.version_info >= (3, 14)  # which are not evaluated
        self.is_complete = False
        self.scope = _FileScope(TextScope({}, self.names), self)
        self.found: list[Any] = []  # the decorated functions, some of them postponed
        self.data: list[DataClass] = []  # the data types, whose methods are still to be read
        self.operators: dict[str, object] = {}  # those that the file registers
        self.unknown_operator: UnknownValue | None = (
            None  # where the file registers one under a name that is not written
        )
        # decorated functions in others: their scopes, and where the names around them stand
        self.waiting: list[tuple[FunctionNode, str, Scope, dict[str, Any]]] = []
        self.errors: list[RelayError] = []
        self.unread: list[UnreadableFunction] = []
        self.invalid: FrontendError | None = None
        self.imports = ImportedNames(files, self.file, self.names, self.errors)
        self.decorators = Decorators(self.expressions, self.imports)

    def read(self, text: str) -> None:
        """Read the statements at the top."""
        try:
            self.file = parse_text(text, self.filename)
        except FrontendError as error:
            self.invalid = error
            self.errors.append(error)
        self.imports = ImportedNames(self.files, self.file, self.names, self.errors)
        self.decorators = Decorators(self.expressions, self.imports)
        for node in self.file.tree.body:
            self._statement(node)
        self.is_complete = True
        self.imports.load_overloads()

    def finish(self) -> None:
        """Read the functions inside of others, which see all names at the top."""
        waiting, self.waiting = self.waiting, []
        for node, name, scope, local in waiting:
            before = len(self.found)
            self._define(node, name, scope)
            if name in local and len(self.found) > before:  # the others around see it
                local[name] = self.found[-1]
        classes, self.data = self.data, []
        for owner in classes:
            for method in owner.methods.values():
                self._read_method(owner, method)

    def _read_method(self, owner: DataClass, method: Callable[[], Definition]) -> None:
        """Read a method of a data type, which needs no decorator. It is checked where all types in it are known without
        a call."""
        try:
            definition = method()
            owner.complete()
        except UnknownNameError:
            return  # its class says so where it is used
        except RelayError as error:
            self.errors.append(error)
        else:
            known = not owner.definition.parameters and all(p.type for p in definition.function.parameters)
            if known and all(getattr(function, "__relay__", None) is not definition for function in self.found):
                self.found.append(self.files.wrap(definition))

    @property
    def is_known(self) -> bool:
        """True if all names at the top are known: others do not exist."""
        return self.is_complete and self.imports.is_known and "__getattr__" not in self.names

    def meaning(self, name: str) -> object:
        """The meaning of a name at the top, or MISSING."""
        return self.imports.meaning(name)

    # ---- statements at the top

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import():
                self.imports.statement(node)
            case ast.ImportFrom(module=module, names=aliases):
                self.imports.statement(node)
                if module == "__future__" and any(a.name == "annotations" for a in aliases):
                    self.has_late_annotations = True
            case ast.Expr(value=ast.Call() as made) if self.decorators.registers(made.func):
                self._named_operator(made)
            case ast.Assign(targets=targets, value=value):
                if isinstance(value, ast.Call) and self.decorators.registers(value.func):
                    self._named_operator(value)
                for part in targets:
                    self._assign(part, value)
            case ast.AnnAssign(target=part, value=value) if value is not None:
                self._assign(part, value)
            case ast.FunctionDef(name=name) if self.decorators.is_decorated(node):
                if self._is_remembered(self.file.function_span(node)):
                    self._postpone(node)
                else:
                    self._define(node, name, self.scope, bound=name)
            case ast.FunctionDef() if (call := self.decorators.registration(node)) is not None:
                self._operator(node, call)
            case ast.FunctionDef() if (overload := self.decorators.overload_decorator(node)) is not None:
                self._overload(node, overload)
            case ast.FunctionDef() if (method := self.decorators.gradient(node)) is not None:
                self._define_gradient(node, method)
            case ast.AsyncFunctionDef(name=name) if self.decorators.is_decorated(node):
                self._refuse_async(node)
                self._bind(name, UnknownValue(name, mistaken=True))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._bind(
                    name, UnknownValue(name, span=self.file.function_span(node), reason="it is a Python function")
                )
                self._read_nested(node.body, self.scope, [node])
            case ast.ClassDef():
                self._class(node)
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                pass  # what is done when the file is run as a program
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), body=body):
                for statement in (*body, *node.orelse):  # where both give a name, the second one counts
                    self._statement(statement)
            case ast.If(test=test, body=body) if (holds := of_python(test)) is not None:
                for statement in body if holds else node.orelse:
                    self._statement(statement)
            case ast.Try(body=body, handlers=handlers) if only_tries_imports(body, handlers):
                for statement in body:
                    assert isinstance(statement, ast.Import | ast.ImportFrom)
                    self.imports.statement(statement, tried=True)
                for statement in (*node.orelse, *node.finalbody):
                    self._statement(statement)
            case _ if type(node).__name__ == "TypeAlias":
                self._alias(node)
            case _:
                for inner in ast.walk(node):
                    for name in _bound_names(inner):
                        self._bind(name, self._unknown_value(name, inner))
                self._read_nested([node], self.scope, [])

    def _bind(self, name: str, value: object) -> None:
        self.imports.forget(name)
        self.names[name] = value

    def _unknown_value(self, name: str, node: ast.AST, reason: str | None = None) -> UnknownValue:
        span = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            span = self.file.function_span(node)
        elif isinstance(node, ast.stmt):
            span = self.file.keyword_span(node)
        elif isinstance(node, ast.expr | ast.alias):
            span = self.file.span(node)
        return UnknownValue(name, span=span, reason=reason)

    # ---- values and classes at the top

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        match target, value:
            case ast.Name(id=name), ast.Call(func=function, args=[ast.Lambda() as node]) if self.decorators.is_relay(
                function
            ):
                self._define(node, name, self.scope, bound=name)
                return
        self.imports.load_names_in(value)
        if isinstance(target, ast.Attribute | ast.Subscript):
            self._change(target)
            return
        self._evaluate_as(names, lambda: dict(_assignment_items(target, self.expressions.value(value))), target)

    def _change(self, target: ast.Attribute | ast.Subscript) -> None:
        """Handle an assignment to a part of something: the changed object is no longer known, under any name."""
        root: ast.expr = target
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if isinstance(root, ast.Name):
            changed = self.names.get(root.id)
            if isinstance(changed, list | dict | np.ndarray | type):
                for name in [name for name, value in self.names.items() if value is changed]:
                    self._bind(name, self._unknown_value(name, target))

    def _class(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases):
            self.imports.load_names_in(part)
        data = any(self._is_function(d, "data") for d in node.decorator_list)
        if self.decorators.is_decorated(node):
            self.errors.append(no_class(self.file, node, node.name))
            self._bind(node.name, UnknownValue(node.name, mistaken=True))
            return
        self.imports.load_names_in(node)
        self._evaluate_as([node.name], lambda: self._make_class(node, data), node)
        made = self.names[node.name]
        nested = node.body
        if isinstance(made, type):
            nested = [part for part in node.body if not self._is_method(part)]
            if (owner := data_class(made)) is not None:
                self.data.append(owner)
        if not data:
            self._read_nested(nested, self.scope, [])

    def _make_class(self, node: ast.ClassDef, data: bool) -> dict[str, object]:
        if data and len(node.decorator_list) > 1:
            raise NotEvaluated
        made = ClassMaker(self, self.expressions, data).make(node)
        if data:
            place = data_classes.ClassPlace((self.file, node), {}, self.names)
            data_classes.define(made, place, self.files.wrap)
        return {node.name: made}

    def _is_method(self, part: ast.stmt) -> bool:
        """True if a statement in a class is a method that only Relay decorates."""
        is_alone = isinstance(part, ast.FunctionDef) and len(part.decorator_list) == 1
        return is_alone and isinstance(part, ast.FunctionDef) and self.decorators.is_decorated(part)

    def define_method(self, node: ast.FunctionDef) -> object:
        """Read a decorated method of a class at the top, and give what it means."""
        name = f"<{node.name}>"
        self._define(node, node.name, self.scope, bound=name)
        return self.names.pop(name)

    def _is_function(self, node: ast.expr, name: str) -> bool:
        """True if an expression is one of Relay's functions."""
        return self.expressions.meaning(node) is getattr(importlib.import_module("relay"), name)

    def _evaluate_as(
        self, names: Sequence[str], evaluate: Callable[[], Mapping[str, object]], node: ast.stmt | ast.expr
    ) -> None:
        """Set names to the result of an evaluation, or to Outside if it is unknown."""
        for name in names:
            self.imports.forget(name)
        outside = {name: self._unknown_value(name, node) for name in names}
        try:
            self.names.update({**outside, **evaluate()})
        except NotEvaluated:
            self.names.update(outside)
        except RelayError as error:
            self.errors.append(error.with_span(self.file.span(node)))
            self.names.update({name: UnknownValue(name, mistaken=True) for name in names})
        except UnknownNameError as unknown:
            self.names.update(dict.fromkeys(names, unknown.outside))
            if unknown.outside.is_early:
                self.files.postponed.append(lambda: self._evaluate_as(names, evaluate, node))
        except Exception:  # of the user's expression: importing the file shows it
            self.names.update(outside)

    def _alias(self, node: Any) -> None:
        """`type Row = ..`, which is evaluated where it is used."""
        name: str = node.name.id
        self.imports.load_names_in(node)

        def make_alias() -> dict[str, object]:
            parameters = type_parameters(self.file, node)
            inside = Evaluator(ChainMap(parameters, self.names), self.expressions.budget)

            def value() -> object:
                try:
                    return inside.value(node.value)
                except NotEvaluated:
                    raise UnknownNameError(self._unknown_value(name, node)) from None

            return {name: SourceAlias(name, tuple(parameters.values()), value)}

        self._evaluate_as([name], make_alias, node)

    # ---- decorated functions

    def _refuse_async(self, node: ast.AsyncFunctionDef) -> None:
        self.errors.append(no_async(self.file, node))

    def _check_options(self, node: FunctionNode) -> None:
        """Report what a function's decorator does not take."""
        written = self.decorators.written_options(node)
        if written is not None:
            options, decorator = written
            try:
                self.files.check_options(options, None)
            except RelayError as error:
                self.errors.append(error.with_span(self.file.span(decorator)))

    def _check_parameters(self, node: FunctionNode, definition: Definition) -> None:
        """Raise FrontendError for names in a function's decorator that are not its parameters."""
        written = self.decorators.written_options(node)
        if written is not None:
            with contextlib.suppress(CompileError):  # which has been reported
                self.files.check_options(written[0], definition.function)

    def _define(self, node: FunctionNode, name: str, scope: Scope, bound: str | None = None) -> None:
        """Read a decorated function. `bound`: the name at the top that means it."""
        if bound is not None:
            self._bind(bound, UnknownValue(name, is_early=True))
        self._check_options(node)
        try:
            definition = lower.lower_definition(self.file, scope, node, self.value_or_unknown)
            definition = with_static(definition, self.decorators.static_names(node))
            self._check_parameters(node, definition)
            definition = attrs.evolve(definition, pure=self.decorators.is_declared_pure(node))
        except UnknownNameError as unknown:
            if unknown.outside.is_early:
                self.files.postponed.append(lambda: self._define(node, name, scope, bound))
            elif not unknown.outside.mistaken:
                self.unread.append(UnreadableFunction(name, self.file.function_span(node), unknown.outside))
            if bound is not None:
                self.names[bound] = unknown.outside
        except RelayError as error:
            self.errors.append(error)
            if bound is not None:
                self.names[bound] = UnknownValue(name, mistaken=True)
        else:
            function = self.files.wrap(definition)
            self.found.append(function)
            if bound is not None:
                self.names[bound] = function

    def _postpone(self, node: ast.FunctionDef) -> None:
        """Read a decorated function at the top, of which all is known, when another one needs it."""

        def read() -> object:
            self._define(node, node.name, self.scope, bound=node.name)
            if self.found and self.found[-1] is self.names[node.name]:
                self.found.pop()  # it has its place already
            return self.names[node.name]

        self._check_options(node)
        self.imports.postpone(node.name, read)
        self.found.append(PostponedFunction(self.file.function_span(node), read))

    def value_or_unknown(self, node: ast.expr) -> object:
        """The value of an expression if it is known without running the program; else Outside."""
        self.imports.load_names_in(node)
        with contextlib.suppress(NotEvaluated, RelayError, UnknownNameError):  # importing the file shows the mistakes
            return self.expressions.value(node)
        return UnknownValue(_shortened_text(node), span=self.file.span(node))

    # ---- gradients and operators

    def _define_gradient(self, node: ast.FunctionDef, method: tuple[Any, ast.expr]) -> None:
        define, decorator = method
        self._define(node, node.name, self.scope, bound=node.name)
        rule, saving = self.names[node.name], None
        if isinstance(decorator, ast.Call):
            self.imports.load_names_in(decorator)
            saving = next((self.expressions.meaning(k.value) for k in decorator.keywords if k.arg == "saving"), None)
        if isinstance(rule, UnknownValue) or isinstance(saving, UnknownValue):
            return
        try:
            define(rule, saving=saving)
        except RelayError as error:
            self.errors.append(error.with_span(self.file.span(decorator)))

    def _overload(self, node: ast.FunctionDef, decorator: ast.Call) -> None:
        """Read a meaning of a Python callable. Which one that is may not be known."""
        self._define(node, node.name, self.scope, bound=node.name)
        target, made = decorator.args[0], self.names[node.name]
        function = self.value_or_unknown(target)
        if isinstance(target, ast.Attribute) and isinstance(owner := self.value_or_unknown(target.value), type):
            function = getattr(owner, target.attr, function)  # a method, which has no value elsewhere
        if isinstance(function, UnknownValue) or isinstance(made, UnknownValue):
            return
        name = ast.unparse(target)
        try:
            add_user_overload(function, name, made, (self.names["__name__"], node.name))
        except RelayError as error:
            self.errors.append(error.with_span(self.file.span(decorator)))

    def _operator(self, node: ast.FunctionDef, decorator: ast.expr) -> None:
        """Read an operator. A composition is its body; other operators are defined by Python code, which is not run."""
        name = operator_name(node, decorator)
        found: object = UnknownValue(name, span=self.file.function_span(node), reason=_REGISTERED)
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if self._is_function(function, "composite"):
            python = self._python_function(node)
            if python is not None:
                try:
                    found = composite_operator(python, name)
                    definition = lower.lower_function(python, annotated=False)
                    self.found.append(self.files.wrap(with_static(definition, tuple(found.attributes))))
                except RelayError as error:
                    self.errors.append(error.with_span(self.file.function_span(node)))
                    found = UnknownValue(name, mistaken=True)
        self.operators[name] = found
        self._bind(node.name, found)

    def _named_operator(self, call: ast.Call) -> None:
        """Note the operator of `register_op(env, "name", type, compiler)`."""
        match call.args:
            case [_, ast.Constant(value=str(name)), *_]:
                self.operators[name] = UnknownValue(name, span=self.file.span(call), reason=_REGISTERED)
            case _:
                reason = "it may be an operator that is registered here"
                self.unknown_operator = UnknownValue("", span=self.file.span(call.func), reason=reason)

    def _python_function(self, node: ast.FunctionDef) -> Any:
        """The stand-in for the function without its decorators; None if its defaults are not known."""
        defaults = (*node.args.defaults, *node.args.kw_defaults)
        if any(d is not None and isinstance(self.value_or_unknown(d), UnknownValue) for d in defaults):
            return None
        return SourceFunction(self.file, node, self.scope, self.value_or_unknown, self.names["__name__"])

    def _read_nested(
        self, body: list[ast.stmt], scope: Scope, around: list[ast.FunctionDef | ast.AsyncFunctionDef]
    ) -> None:
        """Decorated functions in functions, classes and branches. Local names around them are known only at run
        time."""
        reason = "it is a variable of the function around"
        nodes = [inner for f in around for inner in ast.walk(f)]
        local: dict[str, Any] = {
            n: self._unknown_value(n, inner, reason) for inner in nodes for n in _bound_names(inner)
        }
        arguments = [a for f in around for a in ast.walk(f.args) if isinstance(a, ast.arg)]
        local |= {a.arg: UnknownValue(a.arg, span=self.file.parameter_span(a), reason=reason) for a in arguments}
        around_scope: Scope = ParameterScope(local, scope) if local else scope
        binders = [n for f in around for inner in ast.walk(f) if inner is not f for n in _bound_names(inner)]
        binders += [a.arg for a in arguments]
        once = local if all(isinstance(f, ast.FunctionDef) for f in around) else {}
        for node in body:
            decorators: list[ast.AST] = []
            for inner in ast.walk(node):
                if isinstance(inner, ast.AsyncFunctionDef) and self.decorators.is_decorated(inner):
                    self._refuse_async(inner)
                elif isinstance(inner, ast.ClassDef) and self.decorators.is_decorated(inner):
                    self.errors.append(no_class(self.file, inner, inner.name))
                elif isinstance(inner, ast.FunctionDef):
                    decorators += inner.decorator_list
                    if (decorator := self.decorators.registration(inner)) is not None:
                        name = operator_name(inner, decorator)
                        self.operators[name] = self._unknown_value(name, inner, _REGISTERED)
                    elif self.decorators.is_decorated(inner):
                        seen = once if binders.count(inner.name) == 1 else {}
                        self.waiting.append((inner, inner.name, around_scope, seen))
                elif isinstance(inner, ast.Call) and inner not in decorators and self.decorators.registers(inner.func):
                    self._named_operator(inner)


@attrs.frozen(eq=False)
class _FileScope:
    """The names at the top of the file."""

    inner: TextScope
    reader: FileReader

    def resolve(self, name: str) -> object:
        found = self.reader.meaning(name)
        if found is MISSING:
            found = self.inner.resolve(name)
        return UnknownValue(name) if found is MISSING and self.reader.imports.has_unknown_names else found

    def names(self) -> list[str]:
        return [
            name for name in (*self.inner.names(), *self.reader.imports.waiting_names()) if not name.startswith("__")
        ]


def _assignment_items(target: ast.expr, value: object) -> Iterator[tuple[str, object]]:
    """The names of the left side of an assignment with their values. Raises NotEvaluated."""
    match target:
        case ast.Name(id=name):
            yield name, value
        case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(value, tuple | list | str):
            if len(parts) != len(value):
                raise NotEvaluated
            for part, item in zip(parts, value, strict=True):
                yield from _assignment_items(part, item)
        case _:
            raise NotEvaluated


def _bound_names(node: ast.AST) -> Iterator[str]:
    """The names that a node binds itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            for alias in aliases:
                yield alias.asname or alias.name.split(".")[0]
        case ast.ExceptHandler(name=str(name)):
            yield name
        case _:
            pass


def _shortened_text(node: ast.expr) -> str:
    """The text of an expression, for messages."""
    try:
        text = ast.unparse(node)
    except (ValueError, RecursionError):  # a number of too many digits, or too deep
        return "<an expression>"
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}.."
