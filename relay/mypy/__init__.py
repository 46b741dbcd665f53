"""A plugin for mypy: `plugins = relay.mypy` in its configuration.

- Relay's types in annotations, `Tensor[Float, (n, 3)]`, are not mistakes.
- A decorated function has the signature that Python sees: it takes arrays, numbers and structures of them, and returns
  `relay.Array`s. Derivatives take what the function takes, and return what Relay infers.
- The body of a decorated function is Relay's: mypy's messages about it are dropped, and those of `relay check` are
  reported at their lines, with the code `relay`.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mypy.nodes import (
    ARG_STAR,
    ARG_STAR2,
    GDEF,
    Argument,
    CallExpr,
    Context,
    Decorator,
    Expression,
    FuncDef,
    IntExpr,
    ListExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    RefExpr,
    StrExpr,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
    Var,
)
from mypy.options import Options
from mypy.plugin import (
    AnalyzeTypeContext,
    ClassDefContext,
    FunctionContext,
    MethodContext,
    Plugin,
    ReportConfigContext,
)
from mypy.plugins.common import add_method_to_class
from mypy.types import AnyType, CallableType, Instance, Type, TypeOfAny, get_proper_type

from relay.mypy.aliases import plain_aliases
from relay.mypy.checked import TYPES, CheckedFiles, read
from relay.mypy.data import data_class, empty, is_data, is_missing
from relay.mypy.reports import RELAY, drop_errors, report
from relay.mypy.signatures import Signatures, any_type

_FOREIGN = ("builtins", "typing", "types", "collections", "numpy", "relay", "abc", "_typeshed", "typing_extensions")
_DECORATOR = "relay.api.plain_functions.Decorator"
_DECORATORS = ("relay._Relay.__call__", f"{_DECORATOR}.__call__")
_MODULE = "types.ModuleType"
_COMPOSITE = "relay.operator.registry.composite"


def plugin(version: str) -> type[Plugin]:
    """The entry point that mypy calls."""
    return RelayPlugin


class RelayPlugin(Plugin):
    """The plugin's hooks."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._checked = CheckedFiles([*options.mypy_path, *os.environ.get("MYPYPATH", "").split(os.pathsep)])
        self._signatures = Signatures(self.lookup_fully_qualified, lambda: self._modules or {})

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        module, _, name = fullname.rpartition(".")
        if module in ("relay", "relay.ir.annotations.annotation"):
            return _relay_type if name in TYPES else None
        if name in self._aliases(module):
            return _relay_type
        found = self._data_type(fullname)
        return None if found is None else lambda context: found  # its arguments are sizes and types of Relay

    def _data_type(self, fullname: str) -> Type | None:
        """A data type of the user's."""
        if self._modules is None or fullname.split(".")[0] in _FOREIGN:
            return None
        symbol = self.lookup_fully_qualified(fullname)
        info = symbol.node if symbol is not None else None
        if not isinstance(info, TypeInfo) or not is_data(info):
            return None
        return Instance(info, [any_type() for _ in info.type_vars])

    def _aliases(self, module: str) -> frozenset[str]:
        """The names of Relay's types in a module of the user."""
        file = self._modules.get(module) if self._modules is not None else None
        if file is None or not file.path.endswith(".py") or module.split(".")[0] in _FOREIGN:
            return frozenset()
        return self._checked.names_of_types(file.path)

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        if fullname in _DECORATORS:
            return self._decorated_type
        return self._called_module if fullname == f"{_MODULE}.__call__" else None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        if fullname == _COMPOSITE:
            return self._composite
        module, _, name = fullname.rpartition(".")
        if module != "relay.api.differentiation":
            return None
        hooks = {"vjp": self._vjp, "jvp": self._jvp, "checkpoint": self._derivative}
        return hooks.get(name, self._derivative if name in _DERIVATIVES else None)

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return _make_callable if fullname == _MODULE else None

    def get_class_decorator_hook_2(self, fullname: str) -> Callable[[ClassDefContext], bool] | None:
        return data_class if fullname == "relay.data" else None

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        plain_aliases(file)
        return []

    def report_config_data(self, ctx: ReportConfigContext) -> object:
        return self._checked.digest(ctx.path)  # changes with what the plugin makes of a file, so that mypy forgets it

    # ---- decorators

    def _called_module(self, context: MethodContext) -> Type:
        module = get_proper_type(context.type)
        attributes = module.extra_attrs if isinstance(module, Instance) else None
        if attributes is None or attributes.mod_name != "relay":
            context.api.fail("Module not callable", context.context)
            return AnyType(TypeOfAny.from_error)
        if any(kind.is_named() for kinds in context.arg_kinds for kind in kinds):
            return self._signatures.named_type(_DECORATOR)
        return self._decorated_type(context)

    def _decorated_type(self, context: MethodContext | FunctionContext) -> Type:
        """The type of a decorated function; its mistakes are reported."""
        function = _first_function(context)
        if function is None:
            return context.default_return_type
        self._report(context, function)
        node = context.context
        definition = node.func if isinstance(node, Decorator) else None
        line = (definition or node).line
        return self._signatures.decorated_signature(
            function, definition, self._checked.function(context.api.path, line)
        )

    def _composite(self, context: FunctionContext) -> Type:
        """A composite operator's body is Relay's."""
        function = _first_function(context)
        if function is not None:
            self._report(context, function)
        return context.default_return_type

    def _report(self, context: MethodContext | FunctionContext, function: CallableType) -> None:
        """Report what Relay finds in a function, and withdraw what mypy said of its body."""
        if isinstance(context.context, Decorator):
            drop_errors(context.api.msg.errors, context.context.func)
            _hide(context.context.func, function)
        report(context, self._checked)

    # ---- derivatives

    def _derivative(self, context: FunctionContext) -> Type:
        """A derivative takes what the function takes, and perhaps a seed."""
        function = _first_function(context)
        if function is None:
            return context.default_return_type
        written, of = _text(context, context.context), _text(context, _innermost_function(context.context))
        found = None if written is None else self._checked.expression(context.api.path, written, of)
        if found is None and any(map(len, context.arg_types[4:])):
            return context.default_return_type  # which arguments it takes, is not known
        return self._signatures.derivative(function, found) or context.default_return_type

    def _vjp(self, context: FunctionContext) -> Type:
        """The value, and the pullback."""
        written = _text(context, context.args[0][0]) if context.args and context.args[0] else None
        if written is None:
            return context.default_return_type
        path = context.api.path
        found, back = self._checked.expression(path, written), self._checked.pullback(path, written)
        value = any_type() if found is None else self._signatures.result(found.result)
        gradients = any_type() if back is None else self._signatures.result(back.result)
        return self._signatures.pair(value, self._signatures.pullback(gradients))

    def _jvp(self, context: FunctionContext) -> Type:
        """The value, and its tangent."""
        written = _text(context, context.args[0][0]) if context.args and context.args[0] else None
        found = None if written is None else self._checked.expression(context.api.path, written)
        if found is None:
            return context.default_return_type
        return self._signatures.pair(self._signatures.result(found.result), self._signatures.tangent(found.result))


_DERIVATIVES = ("grad", "value_and_grad", "jacobian", "hessian")


def _first_function(context: MethodContext | FunctionContext) -> CallableType | None:
    """The function that is the first argument of a call."""
    arguments = [get_proper_type(t) for types in context.arg_types for t in types]
    return arguments[0] if arguments and isinstance(arguments[0], CallableType) else None


def _innermost_function(node: Context) -> Context:
    """The function that derivatives are taken of: f in `grad(grad(f))`."""
    while isinstance(node, CallExpr) and node.args:
        node = node.args[0]
    return node


def _text(context: FunctionContext, node: object) -> str | None:
    """The text of an expression in which all names are those of the top of the file; None for others."""
    text = read(context.api.path)
    if text is None or not isinstance(node, Expression) or not _is_global(node) or node.end_line is None:
        return None
    lines = [line.encode() for line in text.split("\n")[node.line - 1 : node.end_line]]
    if not lines or node.end_column is None:
        return None
    lines[-1] = lines[-1][: node.end_column]
    lines[0] = lines[0][node.column :]
    return " ".join(line.decode(errors="replace") for line in lines)


def _is_global(node: Expression) -> bool:
    match node:
        case NameExpr():
            return node.kind == GDEF or isinstance(node.node, MypyFile)
        case MemberExpr(expr=around):
            return _is_global(around)
        case CallExpr(callee=callee, args=arguments):
            return _is_global(callee) and all(map(_is_global, arguments))
        case TupleExpr(items=items) | ListExpr(items=items):
            return all(map(_is_global, items))
        case UnaryExpr(expr=inner):
            return _is_global(inner)
        case _:
            return isinstance(node, IntExpr | StrExpr) and not isinstance(node, RefExpr)


# ---- types


def _relay_type(context: AnalyzeTypeContext) -> Type:
    """The type for brackets after Tensor, whose content is not a Python type."""
    return any_type()


def _make_callable(context: ClassDefContext) -> None:
    """Let modules be called: `import relay`, then `@relay`. Those of others are refused by `_called_module`."""
    arguments = [
        Argument(Var("arguments", any_type()), any_type(), None, ARG_STAR),
        Argument(Var("keywords", any_type()), any_type(), None, ARG_STAR2),
    ]
    add_method_to_class(context.api, context.cls, "__call__", arguments, any_type())


def _hide(function: FuncDef, type_: CallableType) -> None:
    """Keep mypy from checking a function as Python's, which it does after its decorators."""
    empty(function)
    unknown = AnyType(TypeOfAny.explicit)
    types = [unknown if is_missing(t) else t for t in type_.arg_types]
    result = unknown if is_missing(type_.ret_type) else type_.ret_type
    function.type = type_.copy_modified(arg_types=types, ret_type=result, implicit=False)


__all__ = ["RELAY", "RelayPlugin", "plugin"]
