"""Unused bindings: effect-free values that are never read.

A binding has an effect if it writes a reference, prints or asserts, or calls a function that does or that is not known.
Parameters, loop variables and names that begin with an underscore are not reported.
"""

from __future__ import annotations

import types
from collections.abc import Mapping

import numpy as np

from relay.errors.diagnostic import Diagnostic, Span
from relay.ir.definition import MISSING, Definition, Scope, data_class
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Block,
    Expr,
    Global,
    If,
    Lambda,
    Loop,
    Next,
    Print,
    RefWrite,
    Static,
    Var,
    Yield,
)
from relay.ir.intrinsic import Intrinsic
from relay.ir.structure import is_record_class
from relay.ir.surface import Annotated, Apply, Attribute, ForEach, IndexUpdate, PatternMatch, SetAttribute
from relay.ir.traverse import blocks, operands, terminator_operands, walk
from relay.ir.types import BaseType
from relay.operator import Operator, resolve_name
from relay.typecheck.elaboration.abstract_values import DependsOnPoison

_EFFECTS = (RefWrite, SetAttribute, Assert, Print)
_CONTROL = (If, Loop, ForEach, PatternMatch)
_BUILTINS = (
    len,
    range,
    zip,
    enumerate,
    abs,
    min,
    max,
    sum,
    float,
    int,
    bool,
    tuple,
    list,
    dict,
    round,
    pow,
    isinstance,
    any,
    all,
    sorted,
    divmod,
    reversed,
)
_METHODS = ("astype", "dot", "flatten", "ravel", "clip", "copy", "items", "keys", "values", "get")


def unused_warnings(definition: Definition) -> list[Diagnostic]:
    """Warnings for the unused bindings of a function, in the order of the text."""
    body = definition.function.body
    used = _used_variables(body)
    read_names = {v.name for v in used}
    effects = _Effects(definition.scope)
    for binding in walk(body):
        effects.note(binding)
    found = []
    for binding in walk(body):
        if not binding.targets and _does_nothing(binding.value, effects):
            what = "`if`" if isinstance(binding.value, If) else "loop"
            found.append(Diagnostic("warning", f"this {what} has no effect", binding.value.span, code="unused"))
        if len(binding.targets) != 1 or binding.targets[0] in used or binding.targets[0].span is None:
            continue
        (target,) = binding.targets
        value = binding.value
        if isinstance(value, _CONTROL) or effects.has_effect(value):
            continue
        if _is_name(target) or isinstance(value, Lambda):
            if not target.name.startswith("_"):
                found.append(_warning(target, again=target.name in read_names))
        elif isinstance(value, IndexUpdate) or _changes_list(value, effects.values):
            message = f"this change of `{target.name}` is never used and has no effect"
            help = f"return {target.name}: values do not change, so the caller does not see this"
            found.append(Diagnostic("warning", message, value.span, help=help, code="unused"))
        elif isinstance(value, Apply) and not _is_growing(value):
            found.append(Diagnostic("warning", "this value is never used and has no effect", value.span, code="unused"))
    return found


def _warning(target: Var, again: bool) -> Diagnostic:
    name = target.name
    what = f"this value of `{name}`" if again else f"`{name}`"
    help = "remove it" if again else f"remove it, or call it `_{name}`"
    return Diagnostic("warning", f"{what} is never used and has no effect", target.span, help=help, code="unused")


def _used_variables(body: Block) -> set[Var]:
    found = [*terminator_operands(body.terminator)]
    for binding in walk(body):
        found += operands(binding.value)
        for block in blocks(binding.value):
            found += terminator_operands(block.terminator)
    return {atom for atom in found if isinstance(atom, Var)}


def _is_name(target: Var) -> bool:
    """True if the user wrote the variable, as the target of an assignment."""
    span: Span | None = target.span
    if span is None or span.line != span.end_line:
        return False
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1] == target.name


_LISTS = ("list", "growing", "append", "spread", "insert", "clear", "reverse", "sort", "remove")
"""The intrinsics whose result is a list."""


def _changes_list(value: Expr, values: Mapping[Var, Expr]) -> bool:
    """True if an expression is a list after `xs.append(v)` and the like."""
    match value:
        case Apply(Static(Intrinsic(name)), (Var() as xs, *_)) if name in _LISTS[2:]:
            return _is_list(values.get(xs))
        case _:
            return False


def _is_list(value: Expr | None) -> bool:
    match value:
        case Apply(Static(Intrinsic(name))):
            return name in _LISTS
        case _:
            return False


def _does_nothing(value: Expr, effects: _Effects) -> bool:
    """True if an `if` or `for` has nothing inside."""
    if not isinstance(value, If | ForEach):
        return False
    inner = list(blocks(value))
    conditions = [arm.condition for arm in value.arms] if isinstance(value, If) else []
    goes_on = Yield if isinstance(value, If) else Next  # a `continue` in an `if` leaves out what follows
    for block in inner:
        end = block.terminator
        if block not in conditions and (block.bindings or not isinstance(end, goes_on) or end.values):
            return False
    return not any(effects.of_block(b) for b in conditions)


def _is_growing(value: Apply) -> bool:
    return isinstance(value.function, Static) and isinstance(value.function.value, Intrinsic)


def _is_operator(name: str) -> bool:
    """True for the name of an operator, as far as a file tells that is only read."""
    try:
        return resolve_name(name) is not None
    except DependsOnPoison:
        return False


class _Effects:
    """The expressions that have effects, as far as names tell."""

    def __init__(self, scope: Scope, known: dict[Definition, bool] | None = None) -> None:
        self.scope = scope
        self.known: dict[Definition, bool] = {} if known is None else known
        self.values: dict[Var, Expr] = {}

    def note(self, binding: Binding) -> None:
        for target in binding.targets:
            self.values[target] = binding.value

    def has_effect(self, value: Expr) -> bool:
        if isinstance(value, _EFFECTS):
            return True
        if isinstance(value, Apply):
            return self._call(value.function)
        return False

    def of_block(self, body: Block) -> bool:
        for binding in walk(body):
            self.note(binding)
        return any(self.has_effect(binding.value) for binding in walk(body))

    def _call(self, function: Atom) -> bool:
        match function:
            case Static(Intrinsic(name)):
                return name in ("print", "assert", "call", "changed_copy")
            case Static(value):
                return self._object(value)
            case Global(name):
                return self._global(name)
            case Var():
                return self._variable(function)
            case _:
                return True

    def _variable(self, function: Var) -> bool:
        match self.values.get(function):
            case Lambda(inner):
                return self.of_block(inner.body)
            case Attribute(Global(module), name) if isinstance(found := self._resolve(module), types.ModuleType):
                return self._object(getattr(found, name, MISSING))
            case Attribute(_, name):  # a method: of a tensor, if there is such an operator
                return name not in _METHODS and not _is_operator(name)
            case Var() | Global() as other:
                return self._call(other)
            case Annotated(atom, _):
                return self._call(atom)
            case _:
                return True

    def _global(self, name: str) -> bool:
        found = self._resolve(name)
        return True if found is MISSING else self._object(found)

    def _resolve(self, name: str) -> object:
        try:
            return self.scope.resolve(name)
        except DependsOnPoison:
            return MISSING

    def _object(self, value: object) -> bool:
        if isinstance(value, Operator | BaseType | np.ufunc) or any(value is b for b in _BUILTINS):
            return False
        if isinstance(value, type) and (data_class(value) is not None or issubclass(value, np.generic)):
            return False
        if value is not MISSING and is_record_class(value):
            return False
        builtin = getattr(value, "__relay_builtin__", None)
        if builtin is not None:
            return builtin in ("write", "breakpoint")
        try:
            definition = getattr(value, "__relay__", None)
        except DependsOnPoison:
            return True
        if isinstance(definition, Definition):
            return self._definition(definition)
        module = (getattr(value, "__module__", None) or "").split(".")[0]
        return not (module in ("numpy", "math") and resolve_name(getattr(value, "__name__", "")) is not None)

    def _definition(self, definition: Definition) -> bool:
        if definition not in self.known:
            self.known[definition] = False  # a recursive call adds nothing
            self.known[definition] = _Effects(definition.scope, self.known).of_block(definition.function.body)
        return self.known[definition]
