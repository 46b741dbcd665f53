"""Functions of trees, nested structures of arrays and numbers: in Python, and in decorated functions.

    params = relay.tree.map(lambda w, g: w - 0.1 * g, params, gradients)
    total = relay.tree.reduce(lambda total, x: total + (x * x).sum(), gradients, 0.0)

Tuples, lists, dicts, named tuples, dataclasses, classes of attrs, values of data types, references, and values of
classes registered by `relay.register_tree` are nodes. None, strings, members of enumerations, dtypes, classes and
functions belong to the structure; everything else is a leaf. The parts of a dict come in the order of its sorted keys.

With `is_leaf`, a node of which `is_leaf(node)` is true is a leaf.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any

from relay.errors import TypeMismatch
from relay.ir import tree as _tree
from relay.ir.tree import Structure

__all__ = ["Structure", "flatten", "leaves", "map", "reduce", "structure", "unflatten"]

_MISSING: Any = object()
_IsLeaf = Callable[[Any], bool] | None


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _IsLeaf = None) -> Any:
    """The tree with `f(leaf, ..)` in place of its leaves; `f` also gets the values at the same place of the others.

    The others have the structure of `tree`, and may have more structure where it has leaves. None may stand there for
    what has no leaves, as in gradients. A reference becomes a new one. Raises TypeMismatch where structures differ.
    """
    found, structure = _tree.flatten(tree, is_leaf)
    others = [_tree.flatten_like(structure, other, f"rest[{index}]") for index, other in enumerate(rest)]
    return _tree.unflatten(structure, [f(*row) for row in zip(found, *others, strict=True)])


def flatten(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[Any], Structure]:
    """(leaves, structure): `unflatten(structure, leaves)` is the tree. Raises TypeMismatch for a cycle."""
    return _tree.flatten(tree, is_leaf)


def leaves(tree: Any, is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves, in order."""
    return _tree.flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: _IsLeaf = None) -> Structure:
    """The structure of the tree without its leaves: hashable, and equal for trees of one structure."""
    return _tree.flatten(tree, is_leaf)[1]


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves. Raises TypeMismatch for another number of them."""
    if not isinstance(structure, Structure):
        swapped = isinstance(leaves, Structure)
        help = "the structure comes first" if swapped else "relay.tree.structure(tree) gives one"
        raise TypeMismatch(f"unflatten needs a structure, found {type(structure).__name__}", help=help)
    return _tree.unflatten(structure, builtins.list(leaves))


def reduce(f: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: _IsLeaf = None) -> Any:
    """`f(.. f(f(initializer, first), second) .., last)` of the leaves; without `initializer` it starts with the first.

    Raises TypeMismatch for a tree without leaves where there is no `initializer`.
    """
    found = leaves(tree, is_leaf)
    if initializer is not _MISSING:
        return functools.reduce(f, found, initializer)
    if not found:
        raise TypeMismatch("reduce of a tree without leaves needs an initializer")
    return functools.reduce(f, found)


for _function in (map, flatten, leaves, structure, unflatten, reduce):
    vars(_function)["__relay_builtin__"] = f"tree.{getattr(_function, '__name__', '')}"
