"""Graphs of programs in Graphviz's notation, and as a plain picture that needs no Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from relay.text.display.graph import Cluster, Edge, Graph, Node

_WIDTH, _HEIGHT, _ROW, _GAP = 190, 40, 70, 14

_NODES = {
    "parameter": 'shape=ellipse, fillcolor="#dbeafe"',
    "operation": 'fillcolor="#f8fafc"',
    "construct": 'fillcolor="#fef3c7"',
    "call": 'fillcolor="#ede9fe"',
    "result": 'shape=ellipse, fillcolor="#dcfce7"',
}
_EDGES = {
    "value": "",
    "condition": 'style=dotted, label="decides"',
    "back": 'style=dashed, color="#b45309", constraint=false',
    "call": 'style=dashed, color="#7c3aed", constraint=false',
}


def to_dot(graphs: Sequence[Graph]) -> str:
    """The graphs side by side, each of several in a box with its title. Linear in the size."""
    lines = [
        "digraph program {",
        '  graph [fontname="monospace", fontsize=11, compound=true, ranksep=0.35, bgcolor="white"];',
        '  node [shape=box, style="filled,rounded", fontname="monospace", fontsize=11, margin="0.1,0.05", height=0.3];',
        '  edge [fontname="monospace", fontsize=9, fontcolor="#57606a", color="#57606a"];',
    ]
    for position, graph in enumerate(graphs):
        indent = "  "
        if len(graphs) > 1:
            lines += [f"  subgraph cluster_program{position} {{", f"    label={_quote(graph.title)}; penwidth=2;"]
            indent = "    "
        for function in graph.functions:
            lines += _cluster(function, indent)
        if len(graphs) > 1:
            lines.append("  }")
        lines += map(_edge, graph.edges)
    return "\n".join([*lines, "}"])


def _cluster(cluster: Cluster, indent: str) -> Iterator[str]:
    yield f"{indent}subgraph cluster_{cluster.number} {{"
    yield f'{indent}  label={_quote(cluster.label)}; labeljust=l; style=rounded; color="#8c959f";'
    for member in cluster.members:
        if isinstance(member, Node):
            yield f"{indent}  {_node(member)}"
        else:
            yield from _cluster(member, indent + "  ")
    yield f"{indent}}}"


def _node(node: Node) -> str:
    return f"n{node.number} [label={_quote(node.label)}, tooltip={_quote(_tooltip(node))}, {_NODES[node.kind]}];"


def _tooltip(node: Node) -> str:
    """The types of a node and the line of the source."""
    lines = [node.type] if node.type else []
    if node.span is not None:
        place = f"{node.span.source.filename}:{node.span.line}"
        lines.append(f"{place}: {node.span.source.line(node.span.line).strip()}")
    return "\n".join(lines) or node.label


def _edge(edge: Edge) -> str:
    attributes = [a for a in (f"label={_quote(edge.type)}" if edge.type else "", _EDGES[edge.kind]) if a]
    return f"  n{edge.source} -> n{edge.target}" + (f" [{', '.join(attributes)}];" if attributes else ";")


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def to_svg(graph: Graph) -> str:
    """The graph as a picture: a node is below all that it reads, in rows by the longest path to it."""
    parts: list[str] = []
    top, width = 10, 0
    place: dict[int, tuple[int, int]] = {}
    for function in graph.functions:
        nodes = function.nodes()
        rows = _rows(nodes, graph.edges)
        parts.append(f'<text x="10" y="{top + 14}" font-weight="bold">{escape(function.label)}</text>')
        top += 24
        for row, members in enumerate(rows):
            for column, node in enumerate(members):
                place[node.number] = (10 + column * (_WIDTH + _GAP), top + row * _ROW)
            width = max(width, 10 + len(members) * (_WIDTH + _GAP))
        top += len(rows) * _ROW + 10
        for node in nodes:
            x, y = place[node.number]
            parts.append(
                f'<g><title>{escape(_tooltip(node))}</title><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}"'
                f' fill="#eef" stroke="#446"/><text x="{x + 6}" y="{y + 16}">{escape(node.label[:28])}</text>'
                f'<text x="{x + 6}" y="{y + 32}" fill="#666">{escape(node.type[:28])}</text></g>'
            )
    for edge in graph.edges:
        (a, b), (x, y) = place[edge.source], place[edge.target]
        if edge.kind in ("value", "condition"):
            ends = f'x1="{a + _WIDTH // 2}" y1="{b + _HEIGHT}" x2="{x + _WIDTH // 2}" y2="{y}"'
            parts.append(f'<line {ends} stroke="#888"/>')
        else:
            way = f"M {a + _WIDTH} {b + _HEIGHT // 2} L {x + _WIDTH} {y + _HEIGHT // 2}"
            parts.append(f'<path d="{way}" fill="none" stroke="#888" stroke-dasharray="4 3"/>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 10}" height="{top}"'
    return "\n".join([f'{head} font-family="monospace" font-size="11">', *parts, "</svg>"])


def _rows(nodes: Sequence[Node], edges: Sequence[Edge]) -> list[list[Node]]:
    """The nodes of a function by the length of the longest way to them."""
    level = dict.fromkeys((node.number for node in nodes), 0)
    for edge in sorted(edges, key=lambda e: e.target):
        if edge.kind in ("value", "condition") and edge.source in level and edge.target in level:
            level[edge.target] = max(level[edge.target], level[edge.source] + 1)
    rows: list[list[Node]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for node in nodes:
        rows[level[node.number]].append(node)
    return rows
