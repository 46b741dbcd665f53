"""Which expressions at the top of a file can be evaluated without importing it: those without an effect.

Literals, known names, types, arithmetic, arrays of literals, type variables, derivatives, and classes that only declare
fields and methods.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import importlib
import math
from collections.abc import Mapping
from typing import TypeVar, TypeVarTuple

import attrs
import numpy as np

from relay.frontend.outside import Outside, OutsideName

_RELAY = (
    *("dims", "type_var", "shape_var", "base_type_var"),
    *("grad", "value_and_grad", "vjp", "jvp", "jacobian", "hessian", "checkpoint"),
)
_NUMPY = (
    *("array", "asarray", "zeros", "ones", "full", "arange", "linspace", "eye", "identity", "dtype", "prod", "reshape"),
    *("zeros_like", "ones_like", "stack", "concatenate", "transpose", "finfo", "iinfo"),
)
_BUILTINS = (
    *("range", "tuple", "list", "dict", "len", "min", "max", "float", "int", "bool", "abs", "round", "sum", "zip"),
)

LARGE = 10**8
"""Expressions whose numbers have a larger product are not evaluated: they may be the size of an array."""


@attrs.frozen(eq=False)
class PureExpressions:
    """The expressions that have no effect, by what is known of the names in them."""

    names: Mapping[str, object]

    def value(self, node: ast.expr) -> object:
        """What a dotted name means; None for anything else."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            around = self.value(node.value)
            try:
                return None if around is None or isinstance(around, Outside) else getattr(around, node.attr, None)
            except OutsideName as unknown:
                return unknown.outside
        return None

    def is_pure(self, node: ast.AST) -> bool:
        """Whether an expression can be evaluated without an effect."""
        match node:
            case ast.Name(id=name):
                return not isinstance(self.names.get(name, getattr(builtins, name, Outside(name))), Outside)
            case ast.Attribute():
                found = self.value(node)
                return found is not None and not isinstance(found, Outside)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._is_pure_function(function) and all(
                    map(self.is_pure, (*arguments, *(k.value for k in keywords)))
                )
            case ast.Constant() | ast.expr_context() | ast.operator() | ast.unaryop() | ast.cmpop() | ast.boolop():
                return True
            case (
                ast.Tuple() | ast.List() | ast.Dict() | ast.Subscript() | ast.Slice() | ast.Starred()
                | ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.IfExp()
            ):  # fmt: skip
                return all(map(self.is_pure, ast.iter_child_nodes(node)))
            case _:
                return False

    def _is_pure_function(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name) and node.id not in self.names:
            return node.id in _BUILTINS
        value = self.value(node)
        if isinstance(value, np.ufunc) or (isinstance(value, type) and issubclass(value, np.generic)):
            return True
        return any(value is function for function in _pure_functions())

    def is_small(self, node: ast.expr) -> bool:
        """Whether an expression makes no large value: the numbers in it have a small product, and powers are small."""
        size = 1
        for inner in ast.walk(node):
            number = inner.value if isinstance(inner, ast.Constant) else None
            if isinstance(inner, ast.Name | ast.Attribute):
                number = self.value(inner)  # type: ignore[assignment]
            if isinstance(number, int):
                size *= max(abs(number), 1)
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow | ast.LShift):
                right = inner.right
                if not (isinstance(right, ast.Constant) and isinstance(right.value, int | float) and right.value <= 64):
                    return False
                size = 1  # of the operands, which the power bounds
        return size <= LARGE or not any(isinstance(n, ast.Call | ast.Mult) for n in ast.walk(node))

    def is_plain(self, node: ast.ClassDef) -> bool:
        """Whether the body of a class only declares fields, methods and such classes."""
        for statement in node.body:
            match statement:
                case ast.AnnAssign(value=value, annotation=annotation):
                    annotated = isinstance(annotation, ast.Constant) or self.is_pure(annotation)
                    if not annotated and not isinstance(annotation, ast.Name | ast.Attribute | ast.Subscript):
                        return False
                    if value is not None and not self.is_pure(value):
                        return False
                case ast.Assign(value=value) if self.is_pure(value):
                    pass
                case ast.FunctionDef(decorator_list=decorators) if all(map(self._is_plain_decorator, decorators)):
                    pass
                case ast.ClassDef(decorator_list=[], bases=[]) if self.is_plain(statement):
                    pass
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    return False
        return True

    def _is_plain_decorator(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in ("staticmethod", "classmethod", "property")


@functools.cache
def _pure_functions() -> tuple[object, ...]:
    relay = importlib.import_module("relay")
    found = [getattr(relay, name) for name in _RELAY]
    found += [*(getattr(np, name) for name in _NUMPY), dataclasses.dataclass, TypeVar, TypeVarTuple]
    return (*found, *(f for f in vars(math).values() if callable(f)))
