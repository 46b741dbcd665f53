"""A drawing of a program: its text in Graphviz's notation, as a picture in notebooks and in files.

Pictures are made by the program `dot` of Graphviz, which every system has a package of. Python packages for it call the
same program, or bring a build of it for some systems only.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Container, Sequence
from os import PathLike
from pathlib import Path

from relay.errors import ExecutionError, FrontendError
from relay.text.display.dot import to_dot, to_svg
from relay.text.display.graph import Graph, count_nodes

MOST_NODES = 300
"""Of larger programs Graphviz takes minutes to lay out a picture; as SVG they are drawn in rows instead."""

FORMATS = ("svg", "pdf", "png", "dot")
INSTALL = "install Graphviz: `apt install graphviz`, `brew install graphviz`, `winget install graphviz`"


class Drawing:
    """A program drawn as a graph. Notebooks show it; `save` writes it to a file; `source` is the graph as text."""

    def __init__(self, name: str, graphs: Sequence[Graph]) -> None:
        self.name = name
        self.source = to_dot(graphs)
        self._graphs = tuple(graphs)
        self._nodes = count_nodes(graphs)

    def __repr__(self) -> str:
        return f"<drawing of {self.name}: {self._nodes} nodes>"

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a file, .svg, .pdf, .png or .dot; its path. Raises FrontendError for another suffix and where the
        file cannot be written, ExecutionError for a picture without Graphviz."""
        file = Path(path)
        form = file.suffix.lower().removeprefix(".")
        if form not in FORMATS:
            found = f"{file.name!r} has {'the suffix ' + file.suffix if file.suffix else 'no suffix'}"
            raise FrontendError(f"a drawing is saved as .svg, .pdf, .png or .dot; {found}")
        if form in ("dot", "svg"):
            content = ((self.source if form == "dot" else self.svg()) + "\n").encode()
        else:
            content = self.render(form)
        try:
            file.write_bytes(content)
        except OSError as error:
            raise FrontendError(f"cannot write {file}: {error.strerror}") from None
        return file

    def render(self, form: str = "svg") -> bytes:
        """The picture in a format that Graphviz knows. Raises ExecutionError where there is no Graphviz."""
        dot = shutil.which("dot")
        if dot is None:
            raise ExecutionError(
                "drawing a picture needs Graphviz's `dot`, which is not installed",
                help=f"{INSTALL};\n`.source` and `.save('{self.name}.dot')` need nothing",
            )
        done = subprocess.run([dot, f"-T{form}"], input=self.source.encode(), capture_output=True, check=False)
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip().split("\n")[-1]
            raise ExecutionError(f"Graphviz could not draw {self.name}: {reason}")
        return done.stdout

    def svg(self) -> str:
        """The picture as SVG; of more than 300 nodes in rows, by the longest way to each, without boxes."""
        if self._nodes > MOST_NODES:
            functions = tuple(f for part in self._graphs for f in part.functions)
            return to_svg(Graph(self.name, functions, tuple(e for part in self._graphs for e in part.edges)))
        text = self.render("svg").decode()
        return text[text.index("<svg") :]

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """The picture for notebooks; without Graphviz a line that says so."""
        try:
            return {"text/plain": repr(self), "image/svg+xml": self.svg()}
        except ExecutionError as error:
            return {"text/plain": f"{self!r}\n{error.message}\nhelp: {error.help}"}
