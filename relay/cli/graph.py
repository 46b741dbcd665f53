"""A program as a graph: a node for each binding, an edge from each binding to those that read it.

Blocks inside of an If, Match or Loop are boxes (clusters in Graphviz's notation).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import attrs

from relay.ir.expr import Block, Constant, Exit, Function, Module, OpCall, Var
from relay.ir.traverse import blocks, bound, operands, terminator_operands
from relay.ir.types import show

_WIDTH, _HEIGHT, _ROW, _GAP = 190, 40, 70, 14


@attrs.frozen(eq=False)
class Node:
    """A box of the graph: its number, its two lines, and the nodes whose values it reads."""

    number: int
    label: str
    type: str
    reads: tuple[int, ...]
    depth: int  # how many constructs it stands in


@attrs.frozen(eq=False)
class Graph:
    """The nodes of one function, in the order of its text."""

    name: str
    nodes: tuple[Node, ...]


def graphs(module: Module) -> list[Graph]:
    """The graph of each function. Linear in the size."""
    count = 0
    found: list[Graph] = []
    for name, function in module.functions.items():
        if isinstance(function, Function):
            nodes = list(_nodes(function, count))
            count += len(nodes)
            found.append(Graph(name, tuple(nodes)))
    return found


def _nodes(function: Function, first: int) -> Iterator[Node]:
    number = first
    places: dict[Var, int] = {}
    for parameter in function.parameters:
        places[parameter] = number
        yield Node(number, f"%{parameter.name}", "" if parameter.type is None else show(parameter.type), (), 0)
        number += 1
    pending: list[tuple[Block, int, int | None]] = [(function.body, 0, None)]
    while pending:
        block, depth, owner = pending.pop()
        inner: list[tuple[Block, int, int | None]] = []
        for binding in block.bindings:
            reads = [places[a] for a in operands(binding.value) if isinstance(a, Var) and a in places]
            if owner is not None and not reads:
                reads = [owner]
            constants = [a for a in operands(binding.value) if isinstance(a, Constant)]
            targets = ", ".join(f"%{t.name}" for t in binding.targets)
            types = ", ".join("?" if t.type is None else show(t.type) for t in binding.targets)
            word = binding.value.operator if isinstance(binding.value, OpCall) else type(binding.value).__name__
            scalars = "".join(f" {c.value}" for c in constants if c.value.ndim == 0)
            label = f"{targets} = {word}{scalars}" if targets else word
            yield Node(number, label, types, tuple(dict.fromkeys(reads)), depth)
            places.update(dict.fromkeys((*binding.targets, *bound(binding.value)), number))
            inner += [(b, depth + 1, number) for b in blocks(binding.value)]
            number += 1
        if isinstance(block.terminator, Exit) and owner is None:
            reads = [places[a] for a in terminator_operands(block.terminator) if isinstance(a, Var) and a in places]
            yield Node(number, "return", "", tuple(dict.fromkeys(reads)), 0)
            number += 1
        pending += reversed(inner)


def to_dot(module: Module) -> str:
    """The graph in Graphviz's notation."""
    lines = ["digraph program {", "  node [shape=box, fontname=monospace];"]
    for index, graph in enumerate(graphs(module)):
        lines.append(f"  subgraph cluster_{index} {{")
        lines.append(f"    label={_quoted(graph.name)};")
        lines += (f"    n{n.number} [label={_quoted(_label(n))}];" for n in graph.nodes)
        lines.append("  }")
        lines += (f"  n{read} -> n{n.number};" for n in graph.nodes for read in n.reads)
    return "\n".join([*lines, "}"])


def _label(node: Node) -> str:
    return f"{node.label}\n{node.type}" if node.type else node.label


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def to_svg(module: Module) -> str:
    """The graph as a picture: a node stands below all that it reads, in rows by the longest way to it."""
    parts: list[str] = []
    top, width = 10, 0
    for graph in graphs(module):
        rows = _rows(graph.nodes)
        parts.append(f'<text x="10" y="{top + 14}" font-weight="bold">{escape(graph.name)}</text>')
        top += 24
        place: dict[int, tuple[int, int]] = {}
        for row, members in enumerate(rows):
            for column, node in enumerate(members):
                place[node.number] = (10 + column * (_WIDTH + _GAP), top + row * _ROW)
            width = max(width, 10 + len(members) * (_WIDTH + _GAP))
        for node in graph.nodes:
            x, y = place[node.number]
            for read in node.reads:
                a, b = place[read]
                parts.append(
                    f'<line x1="{a + _WIDTH // 2}" y1="{b + _HEIGHT}" x2="{x + _WIDTH // 2}" y2="{y}" stroke="#888"/>'
                )
        for node in graph.nodes:
            x, y = place[node.number]
            parts.append(
                f'<g><title>{escape(_label(node))}</title><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}"'
                f' fill="#eef" stroke="#446"/><text x="{x + 6}" y="{y + 16}">{escape(node.label[:28])}</text>'
                f'<text x="{x + 6}" y="{y + 32}" fill="#666">{escape(node.type[:28])}</text></g>'
            )
        top += len(rows) * _ROW + 10
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 10}" height="{top}"'
    return "\n".join([f'{head} font-family="monospace" font-size="11">', *parts, "</svg>"])


def _rows(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes by the length of the longest way to them."""
    level: dict[int, int] = {}
    rows: list[list[Node]] = []
    for node in nodes:
        level[node.number] = max((level[r] + 1 for r in node.reads), default=0)
        while len(rows) <= level[node.number]:
            rows.append([])
        rows[level[node.number]].append(node)
    return rows
