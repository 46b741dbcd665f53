"""`relay.tree` in programs: functions of trees, whose structure is static.

What has no such structure, a list of any length or a value of a data type with several constructors, is gone through by
functions that are written in the language (`relay/frontend/library.py`), which call the functions here for its parts.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir import tree
from relay.ir.annotations.annotation import Ref
from relay.ir.definition import DataClass, Definition, complete_definition, data_class
from relay.ir.tree import LEAF, InnerNode, Node, StaticNode, Structure
from relay.ir.types import DataType, Form, RefType, StackType, TensorType, prune
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    Context,
    DynamicValue,
    GlobalFunction,
    Number,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly, display_type
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.expressions import references
from relay.typecheck.elaboration.instances import call_function
from relay.typecheck.elaboration.values import data
from relay.typecheck.elaboration.values.data_construction import construct
from relay.typecheck.elaboration.values.expansion import settle
from relay.typecheck.elaboration.values.objects import object_entity

Keywords = Sequence[tuple[str, AbstractValue]]

NAMES = ("tree.map", "tree.leaves", "tree.flatten", "tree.structure", "tree.unflatten", "tree.reduce")
"""The names that the functions carry as `__relay_builtin__`."""

_MISSING = object()
_LIKE: dict[str, Callable[..., Any]] = {
    "tree.map": lambda f, tree, *rest, is_leaf=None: None,
    "tree.leaves": lambda tree, is_leaf=None: None,
    "tree.flatten": lambda tree, is_leaf=None: None,
    "tree.structure": lambda tree, is_leaf=None: None,
    "tree.unflatten": lambda structure, leaves: None,
    "tree.reduce": lambda f, tree, initializer=_MISSING, is_leaf=None: None,
}
_SIGNATURES = {name: inspect.signature(like) for name, like in _LIKE.items()}

_written: Callable[[str, int, DataClass | None], Definition]


def use_library(written: Callable[[str, int, DataClass | None], Definition]) -> None:
    """Say where the functions that are written in the language come from: by their name, the number of trees, and the
    data type of their values."""
    global _written
    _written = written


def definition(name: str, count: int, of: DataClass | None) -> Definition:
    """One of them."""
    return _written(name, count, of)


def call(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    name: str,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """Call one of them. Raises TypeMismatch for trees of different structures."""
    try:
        bound = _SIGNATURES[name].bind(*arguments, **dict(keywords))
    except TypeError as error:
        raise TypeCheckError(f"relay.{name}: {error}", span) from None
    given = bound.arguments
    is_leaf = given.get("is_leaf")
    if is_leaf is not None and _is_none(is_leaf):
        is_leaf = None
    trees = _Trees(checker, context, out, span, is_leaf, name)
    match name:
        case "tree.map":
            parts = [given["tree"], *given.get("rest", ())]
            return trees.map(given["f"], parts, _written_names(span, len(parts)))
        case "tree.reduce":
            found = trees.reduce(given["f"], given["tree"], given.get("initializer"))
            if found is None:
                raise TypeMismatch("reduce of a tree without leaves needs an initializer", span)
            return found
        case "tree.unflatten":
            return trees.unflatten(given["structure"], given["leaves"])
        case "tree.leaves":
            return trees.leaves(given["tree"])
        case _:
            nodes: list[Node] = []
            leaves = trees.flatten(given["tree"], nodes)
            structure = PythonObject(Structure(tuple(nodes)))
            return structure if name == "tree.structure" else Tuple((_list(leaves), structure))


@attrs.frozen(eq=False)
class _InnerNode:
    """A structure whose parts the checker knows."""

    node: InnerNode
    parts: Sequence[AbstractValue]


@attrs.frozen(eq=False)
class _Trees:
    checker: Checker
    context: Context
    out: TypedBlockBuilder
    span: Span | None
    is_leaf: AbstractValue | None
    name: str

    # ---- one level

    def value(self, entity: AbstractValue) -> AbstractValue:
        """A value, with the components of a tuple. Raises SchemeOnly where its type is not known yet."""
        checker = self.checker
        if not isinstance(entity, DynamicValue):
            return entity
        entity = settle(checker, self.out, entity, self.span)
        if checker.is_open(entity):
            raise SchemeOnly(self.span, f"the argument of {self.name}")
        return entity

    def inner_node(self, entity: AbstractValue) -> _InnerNode | None:
        """The node and the parts of a structure; None for other values."""
        if isinstance(entity, Tuple):
            form = entity.form
            if form is None:
                return _InnerNode(InnerNode(Form(tuple), len(entity.items)), entity.items)
            if form.cls is not dict:
                return _InnerNode(InnerNode(form, len(entity.items)), entity.items)
            return _InnerNode(*tree.dict_node(dict(zip(form.names, entity.items, strict=True))))
        if not isinstance(entity, DynamicValue):
            return None
        type_ = prune(entity.type)
        if isinstance(type_, RefType):
            content = references.read(self.checker, self.out, entity, self.span)
            return _InnerNode(InnerNode(Form(Ref, ("value",)), 1), (content,))
        owner = self.record_class(entity)
        if owner is None:
            return None
        assert isinstance(type_, DataType)
        (constructor,) = complete_definition(type_.definition).constructors
        places = range(len(constructor.names))
        parts = data.read_fields(self.checker, self.out, entity, type_, places, self.span) if places else ()
        return _InnerNode(InnerNode(Form(owner.constructors[constructor.name], constructor.names), len(parts)), parts)

    def record_class(self, entity: AbstractValue) -> DataClass | None:
        """The class of a value of a data type with one constructor."""
        owner = self.data_class(entity)
        return owner if owner is not None and len(owner.constructors) == 1 else None

    def data_class(self, entity: AbstractValue) -> DataClass | None:
        """The class of a value of a data type."""
        type_ = data.data_type(entity)
        return None if type_ is None else data_class(complete_definition(type_.definition))

    def is_open(self, entity: AbstractValue) -> bool:
        """True if the structure of a value is known only at run time."""
        return dynamic_lists.is_growing(entity) or (
            data.data_type(entity) is not None and self.record_class(entity) is None
        )

    def is_static(self, entity: AbstractValue) -> bool:
        """True if a value is part of the structure around it."""
        if isinstance(entity, (PythonObject, *FUNCTIONS)):
            return True
        return isinstance(entity, DynamicValue) and not isinstance(
            prune(entity.type), TensorType | RefType | StackType | DataType
        )

    def stops(self, entity: AbstractValue) -> bool:
        """True if `is_leaf` says that a value is a leaf. Raises TypeCheckError where that is known only at run time."""
        if self.is_leaf is None:
            return False
        known = is_constant_bool(self.apply(self.is_leaf, [entity]))
        if known is None:
            raise TypeCheckError(
                "is_leaf must be decided at compile time", self.span, help="as by isinstance(x, tuple), or x.ndim == 0"
            )
        return known

    def apply(self, function: AbstractValue, arguments: Sequence[AbstractValue]) -> AbstractValue:
        """Call a function that the user gave."""
        return self.checker.engine.call(self.checker, self.context, self.out, function, arguments, (), self.span, [])

    def build(self, node: InnerNode, parts: Sequence[AbstractValue]) -> AbstractValue:
        """The structure of a node with these parts."""
        form = node.form
        if form.cls is tuple:
            return Tuple(tuple(parts))
        if form.cls is Ref:
            return references.make_reference(self.checker, self.out, parts[0], self.span)
        if data.is_data_class(form.cls):
            return construct(self.checker, self.out, form.cls, parts, (), self.span)
        return Tuple(*node.in_own_order(parts))

    def call_library(
        self, name: str, arguments: Sequence[AbstractValue], of: DataClass | None, count: int
    ) -> AbstractValue:
        """Call one of the functions that are written in the language."""
        function = GlobalFunction(_written(name, count, of))
        is_leaf = PythonObject(None) if self.is_leaf is None else self.is_leaf
        return call_function(self.checker, self.out, function, [is_leaf, *arguments], (), self.span)

    # ---- the functions

    def map(self, f: AbstractValue, given: Sequence[AbstractValue], paths: Sequence[str]) -> AbstractValue:
        """`f` of the leaves of the first tree, and of the values at the same places of the others."""
        first = self.value(given[0])
        if self.stops(first):
            return self.apply(f, [first, *given[1:]])
        others = [self.value(other) for other in given[1:]]
        inner = None if self.is_open(first) or self.is_static(first) else self.inner_node(first)
        is_list = inner is not None and inner.node.form.cls is list
        if self.is_open(first) or (is_list and any(map(dynamic_lists.is_growing, others))):
            return self.map_open(f, first, others, paths)
        if self.is_static(first):
            for other, path in zip(others, paths[1:], strict=True):
                self.require_static(first, other, path)
            return first
        if inner is None:
            self.require_leaf(first)
            return self.apply(f, [first, *given[1:]])
        beside = [self.matching(inner.node, other, path) for other, path in zip(others, paths[1:], strict=True)]
        steps = tree.steps(inner.node.form, inner.node.count)
        parts = []
        for place, step in enumerate(steps):
            row = [inner.parts[place], *(other[place] for other in beside)]
            parts.append(self.map(f, row, [path + step for path in paths]))
        return self.build(inner.node, parts)

    def map_open(
        self, f: AbstractValue, first: AbstractValue, others: Sequence[AbstractValue], paths: Sequence[str]
    ) -> AbstractValue:
        """The same of lists of any length, and of values of data types with several constructors."""
        rows = [first, *others]
        owner = self.data_class(first)
        for other, path in zip(others, paths[1:], strict=True):
            same = dynamic_lists.is_list(other) if owner is None else self.data_class(other) is owner
            if not same:
                wanted = "a list" if owner is None else f"a {owner.definition.name}"
                raise self.mismatch(path, self.describe(other), wanted)
        if owner is None:
            rows = [dynamic_lists.given_as_list(self.checker, self.out, xs, self.span) for xs in rows]
        name = "map_list" if owner is None else "map_data"
        return self.call_library(name, [f, *rows], owner, len(rows))

    def reduce(self, f: AbstractValue, entity: AbstractValue, so_far: AbstractValue | None) -> AbstractValue | None:
        """`f(so_far, leaf)` for one leaf after the other; None if there is neither a first value nor a leaf."""
        entity = self.value(entity)
        is_leaf = self.stops(entity)
        if not is_leaf:
            if self.is_open(entity):
                if so_far is None:
                    help = "relay.tree.reduce(f, tree, 0.0)"
                    message = "reduce of a tree that may have no leaves at run time needs an initializer"
                    raise TypeMismatch(message, self.span, help=help)
                owner = self.data_class(entity)
                name = "reduce_list" if owner is None else "reduce_data"
                return self.call_library(name, [f, so_far, entity], owner, 1)
            if self.is_static(entity):
                return so_far
            inner = self.inner_node(entity)
            if inner is not None:
                for part in inner.parts:
                    so_far = self.reduce(f, part, so_far)
                return so_far
            self.require_leaf(entity)
        return entity if so_far is None else self.apply(f, [so_far, entity])

    def flatten(self, entity: AbstractValue, nodes: list[Node]) -> list[AbstractValue]:
        """The leaves, whose number is known. Appends the nodes of the structure."""
        entity = self.value(entity)
        if not self.stops(entity):
            if self.is_open(entity):
                what = "the length of this list" if dynamic_lists.is_growing(entity) else "its constructor"
                raise TypeCheckError(
                    f"{self.name} needs a static structure; {what} is known only at run time",
                    self.span,
                    help="relay.tree.map and relay.tree.reduce take it",
                )
            if self.is_static(entity):
                held = entity.value if isinstance(entity, PythonObject) else entity
                nodes.append(StaticNode(held, type(held)))
                return []
            inner = self.inner_node(entity)
            if inner is not None:
                nodes.append(inner.node)
                return [leaf for part in inner.parts for leaf in self.flatten(part, nodes)]
            self.require_leaf(entity)
        nodes.append(LEAF)
        return [entity]

    def leaves(self, entity: AbstractValue) -> AbstractValue:
        """The leaves as a list, of any length where the tree is such a list."""
        entity = self.value(entity)
        if dynamic_lists.is_growing(entity) and not self.stops(entity):
            return self.call_library("leaves_list", [entity], None, 1)
        return _list(self.flatten(entity, []))

    def unflatten(self, structure: AbstractValue, leaves: AbstractValue) -> AbstractValue:
        """The tree of a structure with these leaves."""
        if not isinstance(structure, PythonObject) or not isinstance(structure.value, Structure):
            raise TypeMismatch(
                "unflatten needs a static structure",
                self.span,
                help="relay.tree.unflatten(structure, leaves), with relay.tree.structure(tree)",
            )
        given = self.value(leaves)
        if not isinstance(given, Tuple):
            raise TypeMismatch("unflatten needs as many leaves as the structure has, one by one", self.span)
        try:
            found: AbstractValue = tree.unflatten(
                structure.value,
                given.items,
                self.build,
                lambda held: held if isinstance(held, FUNCTIONS) else object_entity(held, self.span),
            )
            return found
        except TypeMismatch as error:
            raise error.with_span(self.span) from None

    # ---- what is refused

    def require_leaf(self, entity: AbstractValue) -> None:
        """Raise TypeMismatch for an object that is not a value, such as a range."""
        if not isinstance(entity, DynamicValue | Number):
            what = type(entity).__name__.lower()
            raise TypeMismatch(f"a {what} is not part of a tree", self.span, help="make it a list or a tuple")

    def matching(self, node: InnerNode, other: AbstractValue, path: str) -> Sequence[AbstractValue]:
        """The parts of another structure with the node of the first one."""
        inner = None if self.is_open(other) or self.is_static(other) else self.inner_node(other)
        if inner is None or inner.node != node:
            found = None if inner is None else inner.node
            raise tree.structure_mismatch(path, node, self.describe(other), found).with_span(self.span)
        return inner.parts

    def require_static(self, first: AbstractValue, other: AbstractValue, path: str) -> None:
        """Raise TypeMismatch unless another part of a structure is the same, or None, as in gradients."""
        if _is_none(other):
            return
        if isinstance(first, PythonObject):
            same = isinstance(other, PythonObject) and type(other.value) is type(first.value)
            if not same or not isinstance(other, PythonObject) or other.value != first.value:
                raise self.mismatch(path, self.describe(other), tree.show_static(first.value))
        elif not self.is_static(other):
            raise self.mismatch(path, self.describe(other), "a function")

    def mismatch(self, path: str, found: str, expected: str) -> TypeMismatch:
        message = f"{path} is {found}, expected {expected}; the trees must have the same structure"
        return TypeMismatch(message, self.span)

    def describe(self, entity: AbstractValue) -> str:
        """A part of a tree, for messages."""
        match entity:
            case Tuple():
                inner = self.inner_node(entity)
                assert inner is not None
                return tree.show(inner.node)
            case Number():
                return f"the number {entity.specialize()!r}"
            case PythonObject(value):
                return tree.show_static(value)
            case DynamicValue(type=type_) if dynamic_lists.is_growing(entity):
                return "a list of any length"
            case DynamicValue(type=type_):
                shown = display_type(type_)
                return shown if shown.startswith("a") else f"a {shown}"
            case _:
                return "a function"


def _is_none(entity: AbstractValue) -> bool:
    return isinstance(entity, PythonObject) and entity.value is None


def _list(items: Sequence[AbstractValue]) -> Tuple:
    return Tuple(tuple(items), Form(list))


def _written_names(span: Span | None, count: int) -> list[str]:
    """The trees of `map`, as they are written in its call."""
    names = ["tree", *(f"rest[{index}]" for index in range(count - 1))]
    if span is None:
        return names
    lines = span.source.text.splitlines()[span.line - 1 : span.end_line]
    if lines:
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
    text = "\n".join(lines)
    try:
        node = ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError:
        return names
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
        return names
    found = [ast.unparse(a) for a in node.args[1:]]
    return found if len(found) == count and all(len(text) <= 40 for text in found) else names
