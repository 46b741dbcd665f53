"""Circles of imports: files that import themselves by way of others. `lint-imports` allows small ones only.

Imports inside of functions count as those at the top do; those for types alone (`if TYPE_CHECKING`) do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

ROOT = Path(__file__).parents[2]


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {_module_name(path): path for path in sorted((ROOT / "relay").rglob("*.py"))}


def imported_modules(node: ast.AST) -> Iterator[str]:
    """The modules of Relay that are imported somewhere in a piece of code."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.orelse:
                yield from imported_modules(ast.Module([statement], []))
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name in FILES)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are written with the whole name"
            names = [f"{child.module}.{alias.name}" for alias in child.names]
            yield from (name if name in FILES else str(child.module) for name in names)
        else:
            yield from imported_modules(child)


def import_graph() -> dict[str, list[str]]:
    """What each module imports."""
    return {
        name: sorted(
            {found for found in imported_modules(ast.parse(path.read_text(encoding="utf-8"))) if found in FILES}
        )
        for name, path in FILES.items()
    }


def circles(graph: dict[str, list[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan), the largest first."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in graph:
        work = [] if root in index else [(root, iter(graph[root]))]
        while work:
            name, rest = work[-1]
            if name not in index:
                index[name] = low[name] = len(index)
                stack.append(name)
            following = next(rest, None)
            if following is None:
                work.pop()
                if low[name] == index[name]:
                    start = stack.index(name)
                    found.append(sorted(stack[start:]))
                    del stack[start:]
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
            elif following not in index:
                work.append((following, iter(graph[following])))
            elif following in stack:
                low[name] = min(low[name], index[following])
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def arrows(graph: dict[str, list[str]]) -> set[tuple[str, str]]:
    """Which folders of the package import which others; a file at the top counts as a folder."""
    places = {name: name.split(".")[1] if "." in name else "" for name in graph}
    pairs = {(places[name], places[found]) for name, imported in graph.items() for found in imported}
    return {(source, target) for source, target in pairs if source != target}


class CircleContract(Contract):
    """The contract that no circle has more files than `largest`, and that the folders of the package import each
    other along at most `most_arrows` arrows, so that a drawing of it stays readable."""

    type_name = "circles"
    largest = fields.IntegerField()
    most_arrows = fields.IntegerField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Look at Relay's files: the graph given has imports for types alone, too."""
        largest: int = self.largest  # type: ignore[assignment]
        most: int = self.most_arrows  # type: ignore[assignment]
        imports = import_graph()
        found = [circle for circle in circles(imports) if len(circle) > largest]
        drawn = sorted(arrows(imports))
        return ContractCheck(kept=not found and len(drawn) <= most, metadata={"circles": found, "arrows": drawn})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the circles that are too large, and how many arrows there are."""
        output.print_error(f"{len(check.metadata['arrows'])} arrows between folders, {self.most_arrows} are allowed")
        for circle in check.metadata["circles"]:
            output.print_error(f"{len(circle)} files import each other in a circle: {', '.join(circle)}")
