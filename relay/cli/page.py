"""A page that shows a program before all passes and after each one, in which every binding can be followed.

Left is the source, then a column for each pass that changed something. A binding links to its line of the source and to
itself in the columns next to it; a line of the source links to the first binding that it became. The page is one file
of HTML and CSS: links and the browser's own search are all that it needs.

A binding is found again in the next column by the identity of its variable; where that was copied (by inlining, say),
by its place in the source and its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import attrs

from relay.errors import Source, Span
from relay.ir.expr import Module, Var
from relay.text.pieces import Line
from relay.text.printer import to_lines


@attrs.frozen(eq=False)
class Stage:
    """A program after a pass, and the pass's name."""

    name: str
    module: Module


@attrs.frozen(eq=False)
class _Column:
    """A stage's lines, and the numbers of those on which variables are bound."""

    stage: Stage
    lines: tuple[Line, ...]
    by_variable: dict[Var, int]
    by_place: dict[tuple[Span | None, str], int]

    def find(self, variable: Var, span: Span | None) -> int | None:
        """The line that binds a variable of another column, or its copy."""
        line = self.by_variable.get(variable)
        if line is None and span is not None:
            line = self.by_place.get((span, variable.name))
        return line


def to_html(title: str, stages: Sequence[Stage]) -> str:
    """The page. Linear in the size of all stages."""
    columns = _columns(stages)
    sources = _sources(columns)
    body = [f'<section class="source"><h2>source</h2>{_source(s, n, columns)}</section>' for n, s in enumerate(sources)]
    for number in range(len(columns)):
        body.append(_section(columns, number, sources))
    return _PAGE.format(title=escape(title), style=_STYLE, navigation=_navigation(columns), body="\n".join(body))


def _columns(stages: Sequence[Stage]) -> list[_Column]:
    """A column for each stage that differs from the one before it."""
    columns: list[_Column] = []
    for stage in stages:
        lines = tuple(to_lines(stage.module))
        if columns and [line.text for line in lines] == [line.text for line in columns[-1].lines]:
            continue
        by_variable: dict[Var, int] = {}
        by_place: dict[tuple[Span | None, str], int] = {}
        for number, line in enumerate(lines):
            for target in line.binding.targets if line.binding is not None else ():
                by_variable[target] = number
                by_place.setdefault((_place(line), target.name), number)
        columns.append(_Column(stage, lines, by_variable, by_place))
    return columns


def _place(line: Line) -> Span | None:
    return None if line.binding is None else line.binding.value.span


def _sources(columns: Sequence[_Column]) -> list[Source]:
    """The sources that the bindings come from, in the order of first use."""
    found: dict[Source, None] = {}
    for column in columns:
        found.update((span.source, None) for line in column.lines if (span := _place(line)) is not None)
    return list(found)


def _source(source: Source, number: int, columns: Sequence[_Column]) -> str:
    """The lines of a source that bindings come from, with some around them, and a link to the first of each line."""
    targets: dict[int, str] = {}
    for position, column in enumerate(columns):
        for index, line in enumerate(column.lines):
            span = _place(line)
            if span is not None and span.source is source:
                targets.setdefault(span.line, f"#s{position}-{index}")
    if not targets:
        return ""
    rows = []
    for line_number in range(min(targets) - 3, max(targets) + 2):
        if line_number < source.first_line:
            continue
        text = escape(source.line(line_number)) or " "
        link = targets.get(line_number)
        shown = f'<a href="{link}">{text}</a>' if link else text
        rows.append(f'<div id="l{number}-{line_number}"><span class="n">{line_number}</span>{shown}</div>')
    return f"<h3>{escape(source.filename)}</h3><pre>{''.join(rows)}</pre>"


def _section(columns: Sequence[_Column], number: int, sources: Sequence[Source]) -> str:
    column = columns[number]
    rows = [_row(columns, number, index, line, sources) for index, line in enumerate(column.lines)]
    gone = _removed_links(columns, number)
    return (
        f'<section id="s{number}"><h2>{escape(column.stage.name)}</h2>'
        f'<p class="gone">{gone}</p><pre>{"".join(rows)}</pre></section>'
    )


def _row(columns: Sequence[_Column], number: int, index: int, line: Line, sources: Sequence[Source]) -> str:
    """A line with links: its source, the same binding in the columns before and after."""
    links = ""
    if line.binding is not None:
        span = _place(line)
        if span is not None:
            place = f"#l{sources.index(span.source)}-{span.line}"
            links += f'<a class="to" href="{place}" title="{escape(str(span))}">src</a>'
        for step, arrow in ((-1, "&larr;"), (1, "&rarr;")):
            target = _neighbor(columns, number + step, line, span)
            if target is not None:
                links += f'<a class="to" href="#s{number + step}-{target}">{arrow}</a>'
    return f'<div id="s{number}-{index}"><span class="links">{links}</span>{escape(line.text) or " "}</div>'


def _neighbor(columns: Sequence[_Column], number: int, line: Line, span: Span | None) -> int | None:
    if not 0 <= number < len(columns) or line.binding is None:
        return None
    found = (columns[number].find(target, span) for target in line.binding.targets)
    return next((f for f in found if f is not None), None)


def _removed_links(columns: Sequence[_Column], number: int) -> str:
    """The bindings that the pass removed, with links back."""
    if number == 0:
        return ""
    before, links = columns[number - 1], []
    for variable, index in before.by_variable.items():
        if columns[number].find(variable, _place(before.lines[index])) is None:
            links.append(f'<a href="#s{number - 1}-{index}">%{escape(variable.name)}</a>')
    return f"removed: {' '.join(links)}" if links else ""


def _navigation(columns: Sequence[_Column]) -> str:
    return " ".join(f'<a href="#s{i}">{escape(c.stage.name)}</a>' for i, c in enumerate(columns))


_STYLE = """
body { font-family: sans-serif; margin: 0 } nav { position: sticky; top: 0; background: #eee; padding: .5em }
main { display: flex; overflow-x: auto } section { flex: none; max-width: 60em; padding: 0 1em; overflow-y: auto;
height: calc(100vh - 3em); border-left: 1px solid #ccc } pre div { white-space: pre; padding-right: 1em }
div:target { background: #fd8 } a { text-decoration: none; color: #05a } pre a { color: inherit }
.n { color: #999; display: inline-block; width: 3em } .links { display: inline-block; width: 5.5em; user-select: none }
.to { color: #05a; margin-right: .3em; font-size: 80% } h3, .gone { font-size: 85%; font-weight: normal }
""".replace("\n", " ")

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{style}</style></head>
<body><nav><b>{title}</b> {navigation}</nav><main>
{body}
</main></body></html>"""
