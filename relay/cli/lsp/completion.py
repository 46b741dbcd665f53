"""Completion: operators and functions of modules with their types, fields of records, names in scope; and the
parameters of the call at hand."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
from lsprotocol import types

from relay.cli.lsp import scope
from relay.cli.lsp.analysis import Analysis
from relay.cli.lsp.descriptions import Description, describe, operator_type
from relay.cli.lsp.documents import Text
from relay.ir.definition import DataClass, data_class
from relay.operator import Operator, resolve_name
from relay.operator.definition import REQUIRED
from relay.operator.signature_text import signature
from relay.typecheck.elaboration.library import overloads
from relay.typecheck.elaboration.values.objects import is_meaningful
from relay.typecheck.elaboration.values.tensors import attribute_names

_KINDS = {
    "function": types.CompletionItemKind.Function,
    "class": types.CompletionItemKind.Class,
    "module": types.CompletionItemKind.Module,
    "value": types.CompletionItemKind.Variable,
    "field": types.CompletionItemKind.Field,
    "method": types.CompletionItemKind.Method,
}
_BUILTINS = (
    "abs all any bool dict enumerate float int len list max min pow print range reversed round sorted sum tuple zip"
)


def complete(analysis: Analysis, now: Text, position: types.Position) -> types.CompletionList:
    """The completions at a position. `now`: the text as it is, which may be newer than the analysis."""
    line = now.lines[position.line] if position.line < len(now.lines) else ""
    column = now.column(position)
    before = line[:column]
    if "#" in before and before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
        return types.CompletionList(False, [])
    around, _ = scope.written_before(line, column)
    number = position.line + 1
    items = _members(analysis, around, number) if around else _names(analysis, number)
    return types.CompletionList(False, list(items))


def _item(name: str, kind: str, detail: str | None = None, text: str = "", rank: int = 1) -> types.CompletionItem:
    documentation = types.MarkupContent(types.MarkupKind.Markdown, text) if text else None
    return types.CompletionItem(
        name, kind=_KINDS[kind], detail=detail, documentation=documentation, sort_text=f"{rank}{name}"
    )


# ---- behind a dot


def _members(analysis: Analysis, around: str, line: int) -> Iterator[types.CompletionItem]:
    if scope.is_local(analysis, around.split(".")[0], line):
        yield from _members_of_type(analysis, _type_of_name(analysis, around, line))
        return
    value = analysis.value(around)
    if isinstance(value, ModuleType):
        yield from _of_module(value)
    elif value is not None and data_class(value) is not None:
        owner = data_class(value)
        assert owner is not None
        yield from (_item(name, "class") for name in owner.constructors)
    elif value is not None:
        description = describe(value, around)
        if description is not None and ": Tensor[" in description.head:
            yield from _of_tensor()


def _of_module(module: ModuleType) -> Iterator[types.CompletionItem]:
    name = module.__name__
    if name.startswith("numpy"):
        yield from _of_numpy(name)
        return
    names = dir(module) if name.split(".")[0] == "relay" else getattr(module, "__all__", dir(module))
    for inner in names:
        if not inner.startswith("_"):
            yield from _member_of_module(module, inner)


def _member_of_module(module: ModuleType, name: str) -> Iterator[types.CompletionItem]:
    value = resolve_name(name) if module.__name__ == "relay" else None
    if value is None:
        value = vars(module).get(name)
    if isinstance(value, Operator):
        yield _operator_item(name, value)
        return
    found = describe(value, name) if value is not None else Description(name)
    if found is None:
        yield _item(name, "value", rank=2)
    else:
        yield _item(name, found.kind, found.head, found.text, rank=2)


@functools.cache
def _of_numpy(name: str) -> tuple[types.CompletionItem, ...]:
    """The names of NumPy that have a meaning in programs."""
    numpy: Any = __import__(name, fromlist=["_"])
    found = []
    for inner in dir(numpy):
        value = vars(numpy).get(inner)
        if inner.startswith("_") or value is None or isinstance(value, ModuleType):
            continue
        same = resolve_name(inner)
        if callable(value) and is_meaningful(value):
            description = describe(value, f"np.{inner}")
            told = "" if same is None else f"Type `{operator_type(same)}`\n\n"
            if description is not None:
                found.append(_item(inner, description.kind, description.head, told + description.text))
    return tuple(found)


def _operator_item(name: str, operator: Operator) -> types.CompletionItem:
    description = describe(operator, name)
    text = "" if description is None else description.text
    return _item(name, "function", f"{signature(operator)}  {operator_type(operator)}", text)


@functools.cache
def _of_tensor() -> tuple[types.CompletionItem, ...]:
    found = []
    for name in dict.fromkeys(attribute_names()):
        operator = resolve_name(name)
        known = overloads.method(np.ndarray, name)
        if name.startswith("_"):
            continue
        if known and overloads.is_attribute(known[0].function):
            found.append(_item(name, "field", rank=0))
        elif operator is None:
            found.append(_item(name, "method"))
        elif operator.operands:
            found.append(_item(name, "method", f"{signature(operator)}  {operator_type(operator)}"))
    return tuple(found)


def _type_of_name(analysis: Analysis, dotted: str, line: int) -> str | None:
    """The type of a variable, or of a field of one, by the last place before a line where it is known."""
    name, *fields = dotted.split(".")
    node = scope.definition_of(analysis, name, line)
    found = analysis.types_of(node) if isinstance(node, ast.expr | ast.arg) else ()
    type_ = found[0] if found else None
    for field in fields:
        members = dict(_fields(analysis, type_)) if type_ is not None else {}
        type_ = members.get(field)
    return type_


def _members_of_type(analysis: Analysis, type_: str | None) -> Iterator[types.CompletionItem]:
    if type_ is None:
        return
    if type_.startswith("Tensor["):
        yield from _of_tensor()
    elif type_.startswith("Ref["):
        yield _item("value", "field", type_[4:-1])
    elif type_.startswith(("list[", "[")):
        yield from (_item(name, "method") for name in ("append", "extend", "insert", "pop", "clear", "reverse", "sort"))
    else:
        yield from (_item(name, "field", text, rank=0) for name, text in _fields(analysis, type_))
        owner = _class_of(analysis, type_)
        if owner is not None:
            yield from (_item(name, "method") for name in owner.methods)


def _class_of(analysis: Analysis, type_: str) -> DataClass | None:
    name = type_.partition("[")[0]
    return data_class(analysis.value(name)) if name.isidentifier() else None


def _fields(analysis: Analysis, type_: str) -> Iterator[tuple[str, str]]:
    """The fields of a record or of a data type, with their types."""
    owner = _class_of(analysis, type_)
    if owner is not None:
        for constructor in owner.definition.constructors:
            names = owner.fields.get(constructor.name, ())
            yield from zip(names, map(str, constructor.fields), strict=False)
        return
    start = next((i for i, c in enumerate(type_) if c in "({"), None)
    if start is None:
        return
    for part in _split(type_[start + 1 : -1]):
        name, colon, text = part.partition(": ")
        if colon and name.strip().isidentifier():
            yield name.strip(), text


def _split(inside: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, character in enumerate(inside):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            yield inside[start:index]
            start = index + 1
    yield inside[start:]


# ---- names


def _names(analysis: Analysis, line: int) -> Iterator[types.CompletionItem]:
    seen: set[str] = set()
    for function in reversed(scope.functions_around(analysis, line)):
        for name, node in scope.bindings(function):
            if name not in seen and getattr(node, "lineno", 0) <= line:
                seen.add(name)
                type_ = _type_of_name(analysis, name, line)
                yield _item(name, "value", type_, rank=0)
    for name, node in scope.bindings(analysis.tree):
        if name not in seen:
            seen.add(name)
            yield _name_at_top(analysis, name, node)
    for name in _BUILTINS.split():
        if name not in seen:
            yield _item(name, "function", rank=3)


def _name_at_top(analysis: Analysis, name: str, node: ast.AST) -> types.CompletionItem:
    function = analysis.functions.get(getattr(node, "lineno", 0))
    if isinstance(node, ast.FunctionDef):
        return _item(name, "function", None if function is None else function.type)
    return _item(name, "class" if isinstance(node, ast.ClassDef) else "value")


# ---- the call at hand


def signature_help(analysis: Analysis, now: Text, position: types.Position) -> types.SignatureHelp | None:
    """The parameters of the call around a position."""
    call = scope.open_call(now.lines, position.line, now.column(position))
    if call is None:
        return None
    found = _signature(analysis, call.function, position.line + 1)
    if found is None:
        return None
    label, names, text = found
    active = names.index(call.keyword) if call.keyword in names else min(call.position, max(len(names) - 1, 0))
    parameters = [types.ParameterInformation(name) for name in names]
    told = types.MarkupContent(types.MarkupKind.Markdown, text) if text else None
    shown = types.SignatureInformation(label, told, parameters, active)
    return types.SignatureHelp([shown], 0, active)


def _signature(analysis: Analysis, name: str, line: int) -> tuple[str, list[str], str] | None:
    if scope.is_local(analysis, name.split(".")[0], line):
        head, _, method = name.rpartition(".")
        operator = resolve_name(method) if head else None
        if operator is None or operator.spread:
            return None
        names = [*operator.operands[1:], *operator.attributes]
        description = describe(operator, method)
        text = "" if description is None else description.text
        return f"{method}({', '.join(_operator_text(operator, n) for n in names)})", names, text
    value = analysis.value(name)
    if isinstance(value, Operator):
        names = [*value.operands, *value.attributes]
        description = describe(value, name)
        return signature(value), names, "" if description is None else description.text
    node = scope.definition_of(analysis, name, line)
    if isinstance(node, ast.FunctionDef):
        parameters = scope.parameters(node)
        shown = [a.arg if not (t := analysis.types_of(a)) else f"{a.arg}: {t[0]}" for a in parameters]
        return f"{name}({', '.join(shown)})", [a.arg for a in parameters], ""
    return None


def _operator_text(operator: Operator, name: str) -> str:
    default = operator.attributes.get(name, REQUIRED)
    return name if default is REQUIRED else f"{name}={default!r}"
