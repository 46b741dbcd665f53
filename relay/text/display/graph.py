"""A program as a graph: nodes are its bindings and variables, edges the values that go from one to another.

If, Match, Loop and functions inside of functions are clusters. Into the parameters of a loop go the initial values and,
along edges `back`, those of the next round; what leaves a construct goes to the node of its binding, which is the last
one of the cluster. All other edges go from a node to a later one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import attrs

from relay.errors import Span
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Dead,
    Derivative,
    Exit,
    Function,
    Global,
    If,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Module,
    Next,
    OpCall,
    Project,
    Static,
    Var,
    Yield,
)
from relay.ir.traverse import blocks, bound_variables, operands
from relay.ir.types import show, show_attribute, show_shape
from relay.text.constants import array_text, is_inline

_CONDITION = "condition"
"""In place of the type of what arrives at a construct: it only decides what the construct does."""

LONGEST = 60
"""The number of characters of an expression that a node shows."""


@attrs.frozen(eq=False)
class Node:
    """A variable or binding: what is written on it, its types, and the line of the source that it comes from."""

    number: int
    label: str
    type: str
    kind: str  # "parameter", "operation", "construct", "call" or "result"
    span: Span | None = None


@attrs.frozen
class Edge:
    """A value of a type that goes from a node to another. `kind`: "value", "condition", "back" to the next round of a
    loop, or "call" for a function that is referred to."""

    source: int
    target: int
    type: str
    kind: str = "value"


@attrs.define(eq=False)
class Cluster:
    """Nodes and clusters that belong together, in order."""

    number: int
    label: str
    members: list[Member] = attrs.field(factory=list)

    def nodes(self) -> list[Node]:
        """The nodes in it and in the clusters inside."""
        found: list[Node] = []
        for member in self.members:
            if isinstance(member, Node):
                found.append(member)
            else:
                found += member.nodes()
        return found


Member: TypeAlias = Node | Cluster


@attrs.frozen(eq=False)
class Graph:
    """A program: a cluster for each of its functions."""

    title: str
    functions: tuple[Cluster, ...]
    edges: tuple[Edge, ...]


def graph(module: Module, title: str = "", first: int = 0) -> Graph:
    """The graph of a program, its nodes and clusters numbered from `first` on. Linear in the size."""
    return _Maker(module, first).make(title)


class _Maker:
    """Makes the nodes and edges of a module."""

    def __init__(self, module: Module, first: int) -> None:
        self._module = module
        self._count = first
        self._edges: dict[Edge, None] = {}
        self._places: dict[Var, int] = {}
        self._leaving: dict[LoopLabel, list[tuple[int, str]]] = {}  # what exits from loops and functions pass on
        self._rounds: dict[LoopLabel, list[int]] = {}  # the nodes of loops' parameters
        self._references: list[tuple[int, str]] = []  # nodes that mention functions of the module
        self._later: list[tuple[int, Var]] = []  # and functions inside of one that are bound after them

    def make(self, title: str) -> Graph:
        made: dict[str, Cluster] = {}
        for name, function in self._module.functions.items():
            made[name] = self._derivative(function) if isinstance(function, Derivative) else self._function(function)
        begins = {name: cluster.nodes()[0].number for name, cluster in made.items()}  # with "return" none is empty
        for number, name in self._references:
            if name in begins:
                self._edges[Edge(number, begins[name], "", "call")] = None
        for number, variable in self._later:
            if variable in self._places:
                self._edges[Edge(number, self._places[variable], "", "call")] = None
        return Graph(title, tuple(made.values()), tuple(self._edges))

    # ---- functions

    def _function(self, function: Function) -> Cluster:
        cluster = self._cluster(f"fn {function.name}")
        self._parameters(cluster, function.parameters)
        self._leaving[function.label] = []
        self._block(cluster, function.body, [])
        type_ = "" if function.result is None else show(function.result)
        result = self._node(cluster, "return", type_, "result", None)
        self._arrive(self._leaving[function.label], result)
        return cluster

    def _derivative(self, derivative: Derivative) -> Cluster:
        cluster = self._cluster(f"derivative {derivative.name}")
        node = self._node(cluster, f"grad @{derivative.of}", "", "call", None)
        self._references.append((node, derivative.of))
        return cluster

    def _parameters(self, cluster: Cluster, variables: Iterable[Var]) -> list[int]:
        found = []
        for variable in variables:
            number = self._node(cluster, variable.name, _type(variable), "parameter", variable.span)
            self._places[variable] = number
            found.append(number)
        return found

    # ---- blocks

    def _block(self, cluster: Cluster, block: Block, yielded: list[tuple[int, str]]) -> None:
        """The nodes of a block. The values that it yields are appended to `yielded`."""
        for binding in block.bindings:
            self._binding(cluster, binding)
        terminator = block.terminator
        match terminator:
            case Yield(values):
                yielded += self._sources(values)
            case Exit(label, values):
                self._leaving.setdefault(label, []).extend(self._sources(values))
            case Next(label, values):
                for value, target in zip(values, self._rounds.get(label, []), strict=False):
                    for source, type_ in self._sources((value,)):
                        self._edges[Edge(source, target, type_, "back")] = None
            case Dead():
                pass

    def _binding(self, cluster: Cluster, binding: Binding) -> None:
        value = binding.value
        names = ", ".join(target.name for target in binding.targets)
        types = ", ".join(map(_type, binding.targets))
        match value:
            case If():
                inner, arriving, word = *self._if(cluster, value), "if"
            case Match():
                inner, arriving, word = *self._match(cluster, value), "match"
            case Loop():
                inner, arriving, word = *self._loop(cluster, value), "loop"
            case Lambda(function):
                inner, arriving, word = self._function(function), [], "closure"
                cluster.members.append(inner)
            case _ if blocks(value):
                inner, arriving, word = *self._other_construct(cluster, value), type(value).__name__
            case _:
                self._operation(cluster, binding, f"{names} = " if names else "", types)
                return
        number = self._node(inner, f"{names} = {word}" if names else word, types, "construct", value.span)
        self._arrive(arriving, number)
        self._places.update(dict.fromkeys(binding.targets, number))

    def _operation(self, cluster: Cluster, binding: Binding, names: str, types: str) -> None:
        value = binding.value
        span = getattr(value, "span", None)
        is_call = isinstance(value, Call)
        number = self._node(cluster, names + _expression(value), types, "call" if is_call else "operation", span)
        self._arrive(self._sources(operands(value)), number)
        self._references += ((number, a.name) for a in operands(value) if isinstance(a, Global))
        self._later += ((number, a) for a in operands(value) if isinstance(a, Var) and a not in self._places)
        self._places.update(dict.fromkeys(binding.targets, number))

    # ---- constructs: their cluster, and what arrives at the node of their binding

    def _if(self, cluster: Cluster, value: If) -> tuple[Cluster, list[tuple[int, str]]]:
        inner = self._cluster("if", cluster)
        arriving: list[tuple[int, str]] = []
        conditions: list[tuple[int, str]] = []
        for position, arm in enumerate(value.arms):
            self._block(inner, arm.condition, conditions)
            body = self._cluster("then" if position == 0 else "elif", inner)
            self._block(body, arm.body, arriving)
        self._block(self._cluster("else", inner), value.orelse, arriving)
        return inner, arriving + [(n, _CONDITION) for n, _ in conditions]

    def _match(self, cluster: Cluster, value: Match) -> tuple[Cluster, list[tuple[int, str]]]:
        inner = self._cluster("match", cluster)
        arriving: list[tuple[int, str]] = []
        matched = self._sources((value.value,))
        for arm in value.arms:
            body = self._cluster(arm.constructor, inner)
            for field in self._parameters(body, arm.fields):
                self._arrive(matched, field)
            self._block(body, arm.body, arriving)
        return inner, arriving + [(n, _CONDITION) for n, _ in matched]

    def _loop(self, cluster: Cluster, value: Loop) -> tuple[Cluster, list[tuple[int, str]]]:
        inner = self._cluster(f"loop {value.label.name}", cluster)
        arriving: list[tuple[int, str]] = []
        counter = value.counter
        if counter is not None:
            (index,) = self._parameters(inner, (counter.index,))
            self._arrive(self._sources((counter.count,)), index)
        parameters = self._parameters(inner, value.parameters)
        for initial, number in zip(value.initial, parameters, strict=True):
            self._arrive(self._sources((initial,)), number)
        self._rounds[value.label], self._leaving[value.label] = parameters, arriving
        self._block(inner, value.body, arriving)
        if counter is not None:  # after the last round the parameters are the results
            arriving += [(n, _type(p)) for n, p in zip(parameters, value.parameters, strict=True)]
        return inner, arriving

    def _other_construct(self, cluster: Cluster, value: object) -> tuple[Cluster, list[tuple[int, str]]]:
        """A construct of the untyped program."""
        inner = self._cluster(type(value).__name__, cluster)
        arriving: list[tuple[int, str]] = []
        read = self._sources(operands(value))  # type: ignore[arg-type]
        for number in self._parameters(inner, bound_variables(value)):  # type: ignore[arg-type]
            self._arrive(read, number)
        for block in blocks(value):  # type: ignore[arg-type]
            self._block(inner, block, arriving)
        return inner, [*arriving, *read]

    # ---- nodes and edges

    def _cluster(self, label: str, around: Cluster | None = None) -> Cluster:
        made = Cluster(self._count, label)
        self._count += 1
        if around is not None:
            around.members.append(made)
        return made

    def _node(self, cluster: Cluster, label: str, type_: str, kind: str, span: Span | None) -> int:
        node = Node(self._count, label, type_, kind, span)
        self._count += 1
        cluster.members.append(node)
        return node.number

    def _sources(self, atoms: Iterable[Atom]) -> list[tuple[int, str]]:
        """The nodes of the variables among atoms, with their types."""
        return [(self._places[a], _type(a)) for a in atoms if isinstance(a, Var) and a in self._places]

    def _arrive(self, sources: Iterable[tuple[int, str]], target: int) -> None:
        for source, type_ in sources:
            edge = Edge(source, target, "", "condition") if type_ is _CONDITION else Edge(source, target, type_)
            self._edges[edge] = None


def _type(variable: Var) -> str:
    return "" if variable.type is None else show(variable.type)


def _expression(value: object) -> str:
    """An expression in short: its operands by name, large constants by their shapes."""
    match value:
        case OpCall(operator, arguments, attributes):
            given = [f"{name}={show_attribute(v)}" for name, v in attributes.items()]
            text = f"{operator}({', '.join([*map(_atom, arguments), *given])})"
        case Call(function, arguments):
            text = f"{_atom(function)}({', '.join(map(_atom, arguments))})"
        case MakeTuple(items):
            text = f"({', '.join(map(_atom, items))}{',' * (len(items) == 1)})"
        case Project(item, index):
            text = f"{_atom(item)}.{index}"
        case Var() | Constant() | Global() | Static():
            text = _atom(value)
        case _:
            text = f"{type(value).__name__}({', '.join(map(_atom, operands(value)))})"  # type: ignore[arg-type]
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."


def _atom(atom: Atom) -> str:
    match atom:
        case Var(name):
            return name
        case Constant(value):
            return array_text(value) if is_inline(value) else f"{value.dtype}{show_shape(value.shape)}"
        case Global(name):
            return f"@{name}"
        case Static(value):
            return repr(value) if isinstance(value, int | float | str | None) else type(value).__name__


def count_nodes(found: Sequence[Graph]) -> int:
    """The number of nodes of graphs."""
    return sum(len(cluster.nodes()) for part in found for cluster in part.functions)
