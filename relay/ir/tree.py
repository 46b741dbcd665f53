"""Trees: nested structures as a list of leaves and a hashable structure.

    flatten({"w": [x, 2.0], "b": None})  ->  [x, 2.0], Structure({'b': None, 'w': [*, *]})
    unflatten(structure, leaves)         ->  the same structure with other leaves

Nodes are tuples, lists, dicts, named tuples, dataclasses, classes of attrs, values of data types, references, and what
is registered. None, strings, members of enumerations, dtypes, classes and functions are part of the structure.
Everything else is a leaf: arrays, numbers. The parts of a dict come in the order of its sorted keys, so that two dicts
with the same keys have one structure.

A structure is a flat tuple of its nodes, each before its parts: nothing here recurses, however deep a value is.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import attrs
import numpy as np

from relay.errors import TypeMismatch
from relay.ir.annotations.annotation import Ref
from relay.ir.structure import build, ordered_keys, split
from relay.ir.types import BaseType, Form

_Part = TypeVar("_Part")


@attrs.frozen
class LeafNode:
    """The place of a leaf."""


@attrs.frozen
class StaticNode:
    """A part that is known before any run: None, a string, a function."""

    value: object
    type: object  # as 1 == True == an integer of an enumeration


@attrs.frozen
class InnerNode:
    """A structure with this many parts, which follow. `order`: the places of a dict's parts in its own order."""

    form: Form
    count: int
    order: tuple[int, ...] | None = attrs.field(default=None, eq=False)

    def in_own_order(self, parts: Sequence[_Part]) -> tuple[tuple[_Part, ...], Form]:
        """The parts as the structure has them, and its form with its keys in that order."""
        if self.order is None:
            return tuple(parts), self.form
        names = tuple(self.form.names[place] for place in self.order)
        return tuple(parts[place] for place in self.order), Form(self.form.cls, names)


Node: TypeAlias = LeafNode | StaticNode | InnerNode

LEAF = LeafNode()
_REFERENCE = Form(Ref, ("value",))
_CYCLE_CHECK = 1000
"""From which depth on a value might contain itself, which is looked at whenever the depth has doubled."""


class Structure:
    """The structure of a tree: what is left of it without its leaves. Equal ones are the same structure."""

    __slots__ = ("_hash", "nodes")

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.nodes == other.nodes

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.nodes)
        return self._hash

    def __repr__(self) -> str:
        return f"Structure({self})"

    def __str__(self) -> str:
        texts: list[str] = []
        for node in reversed(self.nodes):
            match node:
                case LeafNode():
                    texts.append("*")
                case StaticNode(value):
                    texts.append(show_static(value))
                case InnerNode(form, count):
                    parts = [texts.pop() for _ in range(count)]
                    texts.append(_show_node(form, parts))
        return texts.pop()

    @property
    def leaf_count(self) -> int:
        """The number of leaves."""
        return sum(node is LEAF or node == LEAF for node in self.nodes)

    def paths(self) -> Iterator[str]:
        """The text by which each node is read from the whole: `["w"][1]`."""
        pending = [""]
        for node in self.nodes:
            path = pending.pop()
            yield path
            if isinstance(node, InnerNode):
                pending += [path + step for step in reversed(steps(node.form, node.count))]

    def path(self, position: int) -> str:
        """That of one node."""
        return next(path for index, path in enumerate(self.paths()) if index == position)


def is_static(value: object) -> bool:
    """True if a value that is not a structure is part of the structure around it."""
    return (
        value is None
        or isinstance(value, str | bytes | enum.Enum | BaseType | np.dtype | type | Structure)
        or (callable(value) and not hasattr(value, "__array__"))
    )


def node_of(value: object) -> tuple[InnerNode, Sequence[Any]] | None:
    """A structure's node and its parts; None for leaves and for what is part of the structure around it."""
    if type(value) is tuple:
        return InnerNode(Form(tuple), len(value)), value
    if isinstance(value, dict):
        return dict_node(value)
    if isinstance(value, Ref):
        return InnerNode(_REFERENCE, 1), (value.value,)
    cls = type(value)
    if getattr(cls, "__relay_constructor__", None) is not None:
        names: tuple[str, ...] = cls.__match_args__  # type: ignore[attr-defined]
        return InnerNode(Form(cls, names), len(names)), [vars(value)[name] for name in names]
    found = split(value)
    return None if found is None else (InnerNode(found[0] or Form(tuple), len(found[1])), found[1])


def dict_node(value: dict[Any, _Part]) -> tuple[InnerNode, Sequence[_Part]]:
    """The node of a dict, and its parts in the order of the keys."""
    given = tuple(value)
    names = ordered_keys(given)
    place = {name: index for index, name in enumerate(names)}
    order = None if names == given else tuple(place[name] for name in given)
    return InnerNode(Form(dict, names), len(names), order), [value[name] for name in names]


def flatten(value: object, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Structure]:
    """The leaves of a tree, in order, and its structure. Where `is_leaf` holds, a node is a leaf.

    Raises TypeMismatch for a structure that contains itself.
    """
    leaves: list[Any] = []
    nodes: list[Node] = []
    pending: list[Any] = [value]
    around: list[Any] = []  # the structures that are being gone through
    limit = _CYCLE_CHECK
    while pending:
        item = pending.pop()
        if item is _END:
            around.pop()
            continue
        if is_leaf is not None and is_leaf(item):
            leaves.append(item)
            nodes.append(LEAF)
            continue
        found = node_of(item)
        if found is None:
            if is_static(item):
                nodes.append(StaticNode(item, type(item)))
            else:
                leaves.append(item)
                nodes.append(LEAF)
            continue
        node, parts = found
        nodes.append(node)
        around.append(item)
        if len(around) >= limit:
            _refuse_cycle(around)
            limit *= 2
        pending.append(_END)
        pending.extend(reversed(parts))
    return leaves, Structure(tuple(nodes))


_END = object()


def _refuse_cycle(around: list[Any]) -> None:
    if len({id(item) for item in around}) < len(around):
        raise TypeMismatch(f"a {type(around[0]).__name__} contains itself", help="a tree has no cycles")


def unflatten(
    structure: Structure,
    leaves: Sequence[Any],
    make: Callable[[InnerNode, list[Any]], Any] = lambda node, parts: build_node(node, parts),
    static: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """The tree of this structure with these leaves. `make` builds a node of its parts, in the order of `flatten`;
    `static` what is part of the structure.

    Raises TypeMismatch for another number of leaves.
    """
    given = list(leaves)
    if len(given) != structure.leaf_count:
        wanted = f"{structure.leaf_count} lea{'f' if structure.leaf_count == 1 else 'ves'}"
        raise TypeMismatch(f"{structure} has {wanted}, found {len(given)}")
    made: list[Any] = []
    for node in reversed(structure.nodes):
        match node:
            case LeafNode():
                made.append(given.pop())
            case StaticNode(value):
                made.append(static(value))
            case InnerNode():
                parts = [made.pop() for _ in range(node.count)]
                made.append(make(node, parts))
    return made.pop()


def build_node(node: InnerNode, parts: list[Any]) -> Any:
    """The Python object of a node with these parts."""
    form = node.form
    if form.cls is tuple:
        return tuple(parts)
    if form.cls is Ref:
        return Ref(parts[0])
    given, form = node.in_own_order(parts)
    return build(form, given)


def flatten_like(structure: Structure, value: object, name: str) -> list[Any]:
    """The values of another tree, called `name` in messages, at the places of the leaves of a structure. None may stand
    for a string or a function in the structure, as it does in gradients.

    Raises TypeMismatch where the structures differ.
    """
    found: list[Any] = []
    pending = [value]
    for position, node in enumerate(structure.nodes):
        item = pending.pop()
        match node:
            case LeafNode():
                found.append(item)
            case StaticNode(expected):
                if item is not None and not (type(item) is node.type and item == expected):
                    inside = node_of(item)
                    shown = describe(item) if inside is None else show(inside[0])
                    raise structure_mismatch(name + structure.path(position), node, shown)
            case InnerNode():
                inside = node_of(item)
                if inside is None or inside[0] != node:
                    shown, other = (describe(item), None) if inside is None else (show(inside[0]), inside[0])
                    raise structure_mismatch(name + structure.path(position), node, shown, other)
                pending.extend(reversed(inside[1]))
    return found


def structure_mismatch(path: str, node: Node, found: str, other: InnerNode | None = None) -> TypeMismatch:
    """The error for a tree that has something else than a node where `path` reads it: `other`, if it is a structure."""
    if isinstance(node, InnerNode) and other is not None and node.form.cls is other.form.cls:
        lacking = [name for name in node.form.names if name not in other.form.names]
        added = [name for name in other.form.names if name not in node.form.names]
        said = [f"has no {_keys(lacking)}"] * bool(lacking) + [f"has {_keys(added)}"] * bool(added)
        if said:
            return TypeMismatch(f"{path} {', and '.join(said)}; the trees must have the same structure")
    return TypeMismatch(f"{path} is {found}, expected {show(node)}; the trees must have the same structure")


def _keys(names: Sequence[object]) -> str:
    return ", ".join(repr(name) for name in names)


# ---- words


def steps(form: Form, count: int) -> list[str]:
    """The text by which each part of a structure is read."""
    if form.cls is dict:
        return [f'["{name}"]' if isinstance(name, str) else f"[{name!r}]" for name in form.names]
    if form.names:
        return [f".{name}" for name in form.names]
    return [f"[{index}]" for index in range(count)]


def show(node: Node) -> str:
    """A node, for messages."""
    match node:
        case LeafNode():
            return "a leaf"
        case StaticNode(value):
            return show_static(value)
        case InnerNode(form, count) if form.cls in (tuple, list):
            return f"a {form.cls.__name__} of {count}"
        case InnerNode(form) if form.cls is dict:
            return f"a dict with {_keys(form.names)}" if form.names else "an empty dict"
        case InnerNode(form) if form.cls is Ref:
            return "a reference"
        case InnerNode(form):
            beside = "" if form.auxiliary is None else f" with {form.auxiliary!r}"
            return f"{'an' if form.cls.__name__[0] in 'AEIOU' else 'a'} {form.cls.__name__}{beside}"


def describe(value: object) -> str:
    """A leaf or static part, for messages."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"an array of shape {shape}"
    if is_static(value):
        return show_static(value)
    return f"the number {value!r}" if isinstance(value, int | float) else f"a {type(value).__name__}"


def show_static(value: object) -> str:
    """A part of a structure that is known before any run."""
    if isinstance(value, enum.Enum):
        return str(value)
    name = getattr(value, "__name__", None)
    return name if callable(value) and isinstance(name, str) else repr(value)


def _show_node(form: Form, parts: Sequence[str]) -> str:
    if form.cls is tuple:
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if form.cls is list:
        return f"[{', '.join(parts)}]"
    if form.cls is dict:
        return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(form.names, parts, strict=True)) + "}"
    named = [f"{name}={part}" for name, part in zip(form.names, parts, strict=True)] if form.names else list(parts)
    beside = [] if form.auxiliary is None else [f"{form.auxiliary!r}"]
    return f"{form.cls.__name__}({', '.join(named + beside)})"
