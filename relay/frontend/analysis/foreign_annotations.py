"""Annotations of NumPy, typing, jaxtyping, JAX and PyTorch, which say nothing that Relay would infer from."""

from __future__ import annotations

import ast
import collections.abc
import typing

import numpy as np

from relay.ir.definition import MISSING, Scope

_MODULES = ("jaxtyping", "torch", "jax", "jaxlib", "tensorflow")
_OBJECTS = (typing.Any, np.ndarray, typing.Callable, collections.abc.Callable, dict, typing.Dict)  # noqa: UP006
_OF_PARTS = (list, tuple, typing.List, typing.Tuple, typing.Optional, typing.Sequence)  # noqa: UP006


def says_nothing(scope: Scope, node: ast.expr) -> bool:
    """True if an annotation stands for arrays, functions, dicts or values of any type: `np.ndarray`,
    `NDArray[np.float64]`, `Callable`, `dict[str, Any]`, `list[np.ndarray]`, `Float[Array, "n d"]`."""
    match node:
        case ast.Name() | ast.Attribute():
            return _is_foreign(_resolve_annotation(scope, node))
        case ast.Subscript(value=head, slice=inside):
            found = _resolve_annotation(scope, head)
            if _is_foreign(found):
                return True
            items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return _is_one_of(found, _OF_PARTS) and any(says_nothing(scope, item) for item in items)
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return says_nothing(scope, left)
        case ast.Constant(value=str(text)):
            try:
                return says_nothing(scope, ast.parse(text.strip(), mode="eval").body)
            except SyntaxError:
                return False
        case _:
            return False


def _resolve_annotation(scope: Scope, node: ast.expr) -> object:
    match node:
        case ast.Name(id=name):
            return scope.resolve(name)
        case ast.Attribute(value=around, attr=name):
            owner = _resolve_annotation(scope, around)
            return MISSING if owner is MISSING else getattr(owner, name, MISSING)
        case _:
            return MISSING


def _is_foreign(found: object) -> bool:
    if found is MISSING:
        return False
    module = str(getattr(found, "__module__", "")).partition(".")[0]
    of_arrays = getattr(found, "__origin__", None) is np.ndarray  # NDArray
    return _is_one_of(found, _OBJECTS) or of_arrays or module in _MODULES


def _is_one_of(found: object, objects: tuple[object, ...]) -> bool:
    return any(found is known for known in objects)
