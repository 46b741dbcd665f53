"""A plugin for mypy: `plugins = relay.mypy` in its configuration.

- Relay's types in annotations, `Tensor[Float, (n, 3)]`, are no mistakes.
- A decorated function has the signature that Python sees: it takes arrays, numbers and structures of them, and returns
  `relay.Array`s.
- The body of a decorated function is Relay's: what mypy says of it is left out, and what `relay check` finds is
  reported at its line, with the code `relay`.
"""

from __future__ import annotations

import ast
import functools
import tokenize
from collections.abc import Callable

from mypy.errorcodes import ErrorCode
from mypy.errors import Errors
from mypy.nodes import (
    ARG_STAR,
    ARG_STAR2,
    Argument,
    Block,
    ClassDef,
    Context,
    Decorator,
    FuncDef,
    RaiseStmt,
    TypeInfo,
    Var,
)
from mypy.plugin import (
    AnalyzeTypeContext,
    ClassDefContext,
    FunctionContext,
    MethodContext,
    Plugin,
    ReportConfigContext,
)
from mypy.plugins.common import add_method_to_class
from mypy.plugins.dataclasses import dataclass_class_maker_callback
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    Type,
    TypeOfAny,
    UnboundType,
    UnionType,
    get_proper_type,
)

from relay.checking import check_text
from relay.diagnostic import Diagnostic, Span

RELAY = ErrorCode("relay", "What relay check finds in a decorated function", "Relay")

_TYPES = ("Tensor", "Fn", "Forall", "PureFn", "Ref")
_FOREIGN = ("builtins", "typing", "types", "collections", "numpy", "relay", "abc", "_typeshed", "typing_extensions")
_DECORATORS = ("relay._Relay.__call__", "relay._Decorator.__call__")
_DATA = "relay"
_MODULE = "types.ModuleType"
_DERIVATIVES = ("grad", "value_and_grad", "jacobian", "hessian")
_SIGNATURE_CODES = ("no-untyped-def", "no-untyped-call", "empty-body", "type-var", "name-defined")  # "NCHW" is no name


def plugin(version: str) -> type[Plugin]:
    """What mypy calls."""
    return RelayPlugin


class RelayPlugin(Plugin):
    """The plugin's hooks."""

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        module, _, name = fullname.rpartition(".")
        if module in ("relay", "relay.ir.annotation"):
            return _relay_type if name in _TYPES else None
        return _relay_type if name in self._aliases(module) else None

    def _aliases(self, module: str) -> frozenset[str]:
        """The names that stand for types of Relay in a module of the user."""
        file = self._modules.get(module) if self._modules is not None else None
        if file is None or not file.path or module.split(".")[0] in _FOREIGN:
            return frozenset()
        return _names_of_types(file.path)

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        if fullname in _DECORATORS:
            return self._decorated
        return self._called_module if fullname == f"{_MODULE}.__call__" else None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        module, _, name = fullname.rpartition(".")
        return self._derivative if module == "relay.differentiation" and name in _DERIVATIVES else None

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return _make_callable if fullname == _MODULE else None

    def get_class_decorator_hook_2(self, fullname: str) -> Callable[[ClassDefContext], bool] | None:
        return _data_class if fullname == "relay.data" else None

    def report_config_data(self, ctx: ReportConfigContext) -> object:
        return 1  # changes with what the plugin makes of a file, so that mypy forgets what it knew

    def _called_module(self, context: MethodContext) -> Type:
        module = get_proper_type(context.type)
        attributes = module.extra_attrs if isinstance(module, Instance) else None
        if attributes is None or attributes.mod_name != "relay":
            context.api.fail("Module not callable", context.context)
            return AnyType(TypeOfAny.from_error)
        if any(kind.is_named() for kinds in context.arg_kinds for kind in kinds):
            return self._named("relay._Decorator")
        return self._decorated(context)

    def _decorated(self, context: MethodContext | FunctionContext) -> Type:
        """The type of a decorated function; its mistakes are reported."""
        arguments = [get_proper_type(t) for types in context.arg_types for t in types]
        if not arguments or not isinstance(arguments[0], CallableType):
            return context.default_return_type
        function = arguments[0]
        _report(context, function)
        node = context.context
        definition = node.func if isinstance(node, Decorator) else None
        return self._python_facing(function, definition)

    def _derivative(self, context: FunctionContext) -> Type:
        """A derivative takes what the function takes."""
        arguments = [get_proper_type(t) for types in context.arg_types for t in types]
        if not arguments or not isinstance(arguments[0], CallableType) or any(map(len, context.arg_types[4:])):
            return context.default_return_type  # a seed is a further argument
        fallback = self._function()
        return arguments[0].copy_modified(ret_type=AnyType(TypeOfAny.special_form), fallback=fallback)

    def _python_facing(self, function: CallableType, definition: FuncDef | None) -> Type:
        written = definition.unanalyzed_type if definition is not None else None
        types, result = list(function.arg_types), function.ret_type
        if isinstance(written, CallableType) and len(written.arg_types) == len(types):
            types = [
                _taken(self._named, unanalyzed, type_)
                for unanalyzed, type_ in zip(written.arg_types, types, strict=True)
            ]
            result = _returned(self._named, written.ret_type, result)
        fallback = self._function()
        return function.copy_modified(arg_types=types, ret_type=result, fallback=fallback, implicit=False)

    def _named(self, fullname: str) -> Type:
        """A class of Relay or NumPy, which `import relay` has loaded; its parameters may be anything.

        Anything, if mypy is told not to look at NumPy.
        """
        symbol = self.lookup_fully_qualified(fullname)
        if symbol is None or not isinstance(symbol.node, TypeInfo):
            return AnyType(TypeOfAny.special_form)
        return Instance(symbol.node, [AnyType(TypeOfAny.special_form) for _ in symbol.node.type_vars])

    def _function(self) -> Instance:
        """The class of decorated functions."""
        found = self._named("relay.compiler.RelayFunction")
        assert isinstance(found, Instance)
        return found


# ---- types


def _relay_type(context: AnalyzeTypeContext) -> Type:
    """What stands in brackets after Tensor is no Python type."""
    return AnyType(TypeOfAny.special_form)


def _make_callable(context: ClassDefContext) -> None:
    """Let modules be called: `import relay`, then `@relay`. Those of others are refused by `_called_module`."""
    add_method_to_class(context.api, context.cls, "__call__", _any_arguments(), AnyType(TypeOfAny.special_form))


def _data_class(context: ClassDefContext) -> bool:
    """The constructors of a sum are its nested classes; a record's own is a dataclass's. Methods are Relay's code."""
    members = context.cls.defs.body
    nested = [node for node in members if isinstance(node, ClassDef)]
    for constructor in nested:
        if "__init__" not in constructor.info.names:
            add_method_to_class(context.api, constructor, "__init__", _any_arguments(), NoneType())
    context.cls.info.metadata[_DATA] = {}
    for node in members:
        if isinstance(node, FuncDef):
            _drop_errors(context.api.errors, node)  # type: ignore[attr-defined]
            _empty(node)
            if node.type is None:
                anything = AnyType(TypeOfAny.explicit)
                fallback = context.api.named_type("builtins.function")
                types = [anything for _ in node.arguments]
                node.type = CallableType(types, node.arg_kinds, node.arg_names, anything, fallback, name=node.name)
    return True if nested else dataclass_class_maker_callback(context)


def _any_arguments() -> list[Argument]:
    anything = AnyType(TypeOfAny.special_form)
    return [
        Argument(Var("arguments", anything), anything, None, ARG_STAR),
        Argument(Var("keywords", anything), anything, None, ARG_STAR2),
    ]


def _empty(function: FuncDef) -> None:
    """Leave a function without a body that could be checked."""
    body = Block([RaiseStmt(None, None)])
    body.set_line(function.body)
    function.body = body


_Named = Callable[[str], Type]


def _kind(written: Type) -> str | None:
    """Which of Relay's types an annotation is: "tensor", "scalar", "tuple"; None for others."""
    if not isinstance(written, UnboundType):
        return None
    name = written.name.rpartition(".")[2]
    if name == "Tensor" and len(written.args) in (2, 3):
        shape = written.args[1]
        return "scalar" if getattr(shape, "items", None) == [] else "tensor"
    if name in ("int", "float", "bool"):
        return "scalar"
    return "tuple" if name == "tuple" and written.args else None


def _taken(named: _Named, written: Type, analysed: Type) -> Type:
    """What Python may pass for an annotation."""
    match _kind(written):
        case "tensor":
            return UnionType([named("relay.array.ArrayLike"), _number(named)])
        case "scalar":
            return UnionType([named("builtins.float"), named("relay.array.ArrayLike"), _number(named)])
        case "tuple":
            return AnyType(TypeOfAny.special_form)
        case _:
            proper = get_proper_type(analysed)
            # the constructors of a sum are none of its subclasses for mypy
            is_data = isinstance(proper, Instance) and _DATA in proper.type.metadata
            return AnyType(TypeOfAny.special_form) if is_data else analysed


def _returned(named: _Named, written: Type, analysed: Type) -> Type:
    """What Python gets for an annotation."""
    match _kind(written):
        case "tensor" | "scalar":
            return named("relay.array.Array")
        case "tuple":
            return AnyType(TypeOfAny.special_form)
        case _:
            return analysed if not isinstance(get_proper_type(analysed), NoneType) else NoneType()


def _number(named: _Named) -> Type:
    return named("numpy.generic")


# ---- errors


def _place(span: Span) -> Context:
    """A place for mypy, whose columns count from 0."""
    place = Context(span.line, span.column - 1)
    place.end_line, place.end_column = span.end_line, span.end_column - 1
    return place


def _report(context: MethodContext | FunctionContext, type_: CallableType) -> None:
    """Report what Relay finds in a function, and withdraw what mypy said of its body."""
    node = context.context
    first, last = _lines(context)
    if isinstance(node, Decorator):
        _drop_errors(context.api.msg.errors, node.func)
        _hide(node.func, type_)
    path = context.api.path
    for found in _diagnostics(path):
        span = _span_in(path, found)
        own = found.span is None or (span is not None and first <= span.line <= last)
        if found.severity == "error" and (own or (span is not None and not _is_decorated(path, span))):
            place = node if span is None else _place(span)  # mypy tells repeated ones once
            context.api.fail(found.message.replace("\n", " "), place, code=RELAY)
            elsewhere = (f"in {found.span}",) if found.span is not None and span != found.span else ()
            for note in (*elsewhere, *found.notes, *((f"help: {found.help}",) if found.help else ())):
                context.api.msg.note(note, place, code=RELAY)


def _span_in(path: str, found: Diagnostic) -> Span | None:
    """The place of a mistake in a file. A mistake in another file is that of the call here that led there."""
    spans = [span for span in (found.span, *(label.span for label in found.labels)) if span is not None]
    return next((span for span in spans if span.source.filename == path), None)


def _lines(context: MethodContext | FunctionContext) -> tuple[int, int]:
    node = context.context
    if isinstance(node, Decorator):
        starts = [node.line, node.func.line, *(d.line for d in node.decorators)]
        return min(starts), node.func.end_line or node.func.line
    return node.line, node.end_line or node.line


@functools.lru_cache(maxsize=100)
def _decorated_lines(text: str) -> list[range]:
    """The lines of each function with a decorator."""
    functions = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.decorator_list
    ]
    return [range(f.decorator_list[0].lineno, (f.end_lineno or f.lineno) + 1) for f in functions]


def _is_decorated(path: str, span: Span | None) -> bool:
    """Whether a place is in a function with a decorator, which reports it itself."""
    text = _read(path)
    return text is not None and span is not None and any(span.line in lines for lines in _decorated_lines(text))


def _drop_errors(errors: Errors, function: FuncDef) -> None:
    """Drop mypy's own errors of a function's body, which is no Python, and of annotations that are missing."""
    found = errors.error_info_map.get(errors.file)
    if found is None:
        return
    body = range(function.body.line, (function.end_line or function.body.line) + 1)
    head = range(function.line, function.body.line)
    errors.error_info_map[errors.file] = [
        info
        for info in found
        if (info.code is RELAY)
        or not (
            (info.line in body and info.line not in head)
            or (info.line in head and info.code is not None and info.code.code in _SIGNATURE_CODES)
        )
    ]


def _hide(function: FuncDef, type_: CallableType) -> None:
    """Keep mypy from checking a function as Python's, which it does after its decorators."""
    _empty(function)
    anything = AnyType(TypeOfAny.explicit)
    types = [anything if _is_missing(t) else t for t in type_.arg_types]
    result = anything if _is_missing(type_.ret_type) else type_.ret_type
    function.type = type_.copy_modified(arg_types=types, ret_type=result, implicit=False)


def _is_missing(type_: Type) -> bool:
    proper = get_proper_type(type_)
    return isinstance(proper, AnyType) and proper.type_of_any == TypeOfAny.unannotated


@functools.lru_cache(maxsize=1000)
def _names_of_types(path: str) -> frozenset[str]:
    """`Row = Tensor[Float, (3,)]`, `A = type_var("A")`: what the top of a file calls a type of Relay."""
    text = _read(path)
    if text is None or "relay" not in text:
        return frozenset()
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return frozenset()
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _makes_type(value, found):
                found.add(name)
    return frozenset(found)


def _makes_type(node: ast.expr, known: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in known
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inside):
            return name in _TYPES or (name == "tuple" and any(_makes_type(n, known) for n in _items(inside)))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == "type_var"
        case _:
            return False


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


_checked: dict[str, tuple[str, list[Diagnostic]]] = {}


def _diagnostics(path: str) -> list[Diagnostic]:
    """What Relay finds in a file; it is checked once for each text."""
    text = _read(path)
    if text is None:
        return []
    known = _checked.get(path)
    if known is None or known[0] != text:
        known = _checked[path] = text, check_text(text, path)
    return known[1]


def _read(path: str) -> str | None:
    """A file's text; None if it cannot be read, which mypy says itself."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


__all__ = ["RelayPlugin", "plugin"]
