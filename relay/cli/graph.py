"""A program as a graph: a node for each binding, an edge from each binding to those that read it.

Blocks inside of an If, Match or Loop are boxes (clusters in Graphviz's notation). What leaves them, by `yield`, `next`
or `exit`, goes back to the construct along a dashed edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import attrs

from relay.ir.expr import Block, Constant, Dead, Exit, Function, Loop, LoopLabel, Module, Next, OpCall, Var, Yield
from relay.ir.traverse import blocks, bound_variables, operands, terminator_operands
from relay.ir.types import show

_WIDTH, _HEIGHT, _ROW, _GAP = 190, 40, 70, 14


@attrs.frozen(eq=False)
class Node:
    """A box of the graph: its number, its two lines, the nodes whose values it reads, and the construct that it stands
    in."""

    number: int
    label: str
    type: str
    reads: tuple[int, ...]
    owner: int | None = None


@attrs.frozen(eq=False)
class Graph:
    """The nodes of one function, in the order of its text, and from which of them values go back to constructs."""

    name: str
    nodes: tuple[Node, ...]
    back: tuple[tuple[int, int], ...]


def graphs(module: Module) -> list[Graph]:
    """The graph of each function. Linear in the size."""
    count = 0
    found: list[Graph] = []
    for name, function in module.functions.items():
        if isinstance(function, Function):
            found.append(_graph(name, function, count))
            count += len(found[-1].nodes)
    return found


def _graph(name: str, function: Function, first: int) -> Graph:
    places: dict[Var, int] = {}
    nodes: list[Node] = []
    for parameter in function.parameters:
        places[parameter] = first + len(nodes)
        type_ = "" if parameter.type is None else show(parameter.type)
        nodes.append(Node(first + len(nodes), f"%{parameter.name}", type_, ()))
    loops: dict[LoopLabel, int] = {}
    back: dict[tuple[int, int], None] = {}
    returned: dict[int, None] = {}
    pending: list[tuple[Block, int | None]] = [(function.body, None)]
    while pending:
        block, owner = pending.pop()
        inner: list[tuple[Block, int | None]] = []
        for binding in block.bindings:
            number = first + len(nodes)
            reads = [places[a] for a in operands(binding.value) if isinstance(a, Var) and a in places]
            if owner is not None and not reads:
                reads = [owner]
            constants = [a for a in operands(binding.value) if isinstance(a, Constant)]
            targets = ", ".join(f"%{t.name}" for t in binding.targets)
            types = ", ".join("?" if t.type is None else show(t.type) for t in binding.targets)
            word = binding.value.operator if isinstance(binding.value, OpCall) else type(binding.value).__name__
            scalars = "".join(f" {c.value}" for c in constants if c.value.ndim == 0)
            label = f"{targets} = {word}{scalars}" if targets else word
            nodes.append(Node(number, label, types, tuple(dict.fromkeys(reads)), owner))
            places.update(dict.fromkeys((*binding.targets, *bound_variables(binding.value)), number))
            if isinstance(binding.value, Loop):
                loops[binding.value.label] = number
            inner += [(b, number) for b in blocks(binding.value)]
        ends = [places[a] for a in terminator_operands(block.terminator) if isinstance(a, Var) and a in places]
        match block.terminator:
            case Exit(left) if left not in loops:
                returned.update(dict.fromkeys(ends))
            case Exit(left) | Next(left):
                back.update(dict.fromkeys((end, loops[left]) for end in ends if end != loops[left]))
            case Yield() if owner is not None:
                back.update(dict.fromkeys((end, owner) for end in ends if end != owner))
            case Yield() | Dead():
                pass
        pending += reversed(inner)
    nodes.append(Node(first + len(nodes), "return", "", tuple(returned)))
    return Graph(name, tuple(nodes), tuple(back))


def to_dot(module: Module) -> str:
    """The graph in Graphviz's notation."""
    lines = ["digraph program {", "  node [shape=box, fontname=monospace];"]
    for index, graph in enumerate(graphs(module)):
        inside: dict[int | None, list[Node]] = {}
        for node in graph.nodes:
            inside.setdefault(node.owner, []).append(node)
        lines += [f"  subgraph cluster_{index} {{", f"    label={_dot_string(graph.name)};"]
        lines += _clusters(None, inside, "    ")
        lines.append("  }")
        lines += (f"  n{read} -> n{n.number};" for n in graph.nodes for read in n.reads)
        lines += (f"  n{value} -> n{owner} [style=dashed, constraint=false];" for value, owner in graph.back)
    return "\n".join([*lines, "}"])


def _clusters(owner: int | None, inside: dict[int | None, list[Node]], indent: str) -> Iterator[str]:
    """The nodes in a construct, and a cluster for each construct among them."""
    for node in inside[owner]:
        yield f"{indent}n{node.number} [label={_dot_string(_label(node))}];"
        if node.number in inside:
            yield f"{indent}subgraph cluster_n{node.number} {{"
            yield f'{indent}  label="";'
            yield from _clusters(node.number, inside, indent + "  ")
            yield f"{indent}}}"


def _label(node: Node) -> str:
    return f"{node.label}\n{node.type}" if node.type else node.label


def _dot_string(text: str) -> str:
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
        for value, owner in graph.back:
            (x, y), (a, b) = place[value], place[owner]
            points = f"M {x + _WIDTH} {y + _HEIGHT // 2} L {a + _WIDTH} {b + _HEIGHT // 2}"
            parts.append(f'<path d="{points}" fill="none" stroke="#888" stroke-dasharray="4 3"/>')
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
