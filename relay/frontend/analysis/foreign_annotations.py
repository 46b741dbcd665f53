"""Annotations of Python's typing, NumPy, jaxtyping, JAX and PyTorch: what they say about a value, if anything.

`Annotated[A, ..]` and `Final[A]` say what A says, and `Literal` names values. Unions, protocols, abstract collections
and classes without a meaning in programs say nothing that Relay would infer from.
"""

from __future__ import annotations

import ast
import typing

import numpy as np

from relay.errors import FrontendError
from relay.ir.annotations.annotation import is_constructor, to_type
from relay.ir.annotations.type_parameters import is_alias, is_parameter
from relay.ir.definition import MISSING, Scope

_MODULES = ("jaxtyping", "torch", "jax", "jaxlib", "tensorflow")
_OF_TYPES = ("typing", "typing_extensions", "collections", "numbers")
_CLASSES = (str, bytes, object, type, dict, list, tuple, set, frozenset, slice, range, complex)
_WRAPPERS = ("Annotated", "Final", "ClassVar", "Required", "NotRequired", "ReadOnly")
_UNIONS = (typing.Optional, typing.Union)
_READ = (list, tuple, typing.List, typing.Tuple)  # noqa: UP006


def says_nothing(scope: Scope, node: ast.expr) -> bool:
    """True if an annotation stands for values of any type: `np.ndarray`, `Callable`, `dict[str, Any]`, `A | B`."""
    return meaning(scope, node) is None


def meaning(scope: Scope, node: ast.expr, may_be_none: bool = False) -> ast.expr | None:
    """The part of an annotation that says of which type a value is, or None. `may_be_none`: the parameter's default is
    None, so that `A | None` says what A says."""
    match node:
        case ast.Name() | ast.Attribute():
            found = _resolve_annotation(scope, node)
            if isinstance(found, str):
                return meaning(scope, ast.copy_location(ast.Constant(found), node), may_be_none)
            return None if _is_foreign(found) else node
        case ast.Subscript(value=head, slice=inside):
            return _application(scope, node, _resolve_annotation(scope, head), inside, may_be_none)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union(scope, node, [left, right], may_be_none)
        case ast.Constant(value=str(text)):
            try:
                said = meaning(scope, ast.parse(text.strip(), mode="eval").body, may_be_none)
            except SyntaxError:
                return node
            return None if said is None else ast.copy_location(ast.Constant(ast.unparse(said)), node)
        case _:
            return node


def literal_values(scope: Scope, node: ast.expr | None) -> ast.expr | None:
    """The values of `Literal[..]`, as a tuple; None for another annotation."""
    match node:
        case ast.Subscript(value=head, slice=inside) if _resolve_annotation(scope, head) is typing.Literal:
            items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return ast.copy_location(ast.Tuple(list(items), ast.Load()), node)
        case ast.Constant(value=str(text)):
            try:
                found = literal_values(scope, ast.parse(text.strip(), mode="eval").body)
            except SyntaxError:
                return None
            return None if found is None else ast.fix_missing_locations(ast.copy_location(found, node))
        case _:
            return None


def unknown_name(scope: Scope, node: ast.expr) -> str | None:
    """The name of an annotation that is not defined where it is read: one that only type checkers import."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) and scope.resolve(node.id) is MISSING else None


def _application(
    scope: Scope, node: ast.Subscript, head: object, inside: ast.expr, may_be_none: bool
) -> ast.expr | None:
    items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if str(getattr(head, "__name__", getattr(head, "_name", ""))) in _WRAPPERS and _module(head) in _OF_TYPES:
        return meaning(scope, items[0], may_be_none)
    if any(head is union for union in _UNIONS):
        return _union(scope, node, items, may_be_none or head is not typing.Optional)
    if _module(head) == "jaxtyping" and len(items) == 2 and isinstance(items[1], ast.Constant):
        return node
    if any(head is known for known in _READ):
        is_open = any(isinstance(item, ast.Constant) and item.value is Ellipsis for item in items)
        return None if is_open or any(says_nothing(scope, item) for item in items) else node
    return None if _is_foreign(head) else node


def _union(scope: Scope, node: ast.expr, items: list[ast.expr], may_be_none: bool) -> ast.expr | None:
    others = [item for item in items if not (isinstance(item, ast.Constant) and item.value is None)]
    if len(others) != 1 or not may_be_none or says_nothing(scope, others[0]):
        return None
    return node


def _resolve_annotation(scope: Scope, node: ast.expr) -> object:
    match node:
        case ast.Name(id=name):
            return scope.resolve(name)
        case ast.Attribute(value=around, attr=name):
            owner = _resolve_annotation(scope, around)
            return MISSING if owner is MISSING else getattr(owner, name, MISSING)
        case _:
            return MISSING


def _module(found: object) -> str:
    return str(getattr(found, "__module__", "")).partition(".")[0]


def _is_foreign(found: object) -> bool:
    """True if an object stands for values of any type."""
    if found is MISSING or is_parameter(found) or is_alias(found) or isinstance(found, typing.NewType):
        return False
    if any(found is known for known in _CLASSES) or _module(found) in _MODULES:
        return True
    origin = typing.get_origin(found)
    if origin is not None:
        return not any(origin is known for known in (list, tuple)) or not _has_meaning(found)
    if isinstance(found, type) and not is_constructor(found):
        return not _has_meaning(found)
    return _module(found) in _OF_TYPES or found in (np.typing.ArrayLike, np.typing.DTypeLike)


def _has_meaning(found: object) -> bool:
    try:
        to_type(found)
    except FrontendError:
        return False
    return True
