"""HTML of what notebooks and pages show: one style for light and dark themes, and texts with terminal colors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

_LIGHT = (
    "--text:#1f2328;--back:#fff;--dim:#6e7781;--line:#d0d7de;--mark:#fff3bf;--k:#8250df;--t:#0550ae;--o:#953800;"
    "--v:#1f2328;--n:#0a7c42;--s:#0a3069;--c:#6e7781;--f:#6639ba;--error:#cf222e;--warning:#9a6700;--note:#0969da;"
    "--help:#1a7f37"
)
_DARK = (
    "--text:#e6edf3;--back:#161b22;--dim:#8b949e;--line:#3d444d;--mark:#4b3d12;--k:#d2a8ff;--t:#79c0ff;--o:#ffa657;"
    "--v:#e6edf3;--n:#7ee787;--s:#a5d6ff;--c:#8b949e;--f:#d2a8ff;--error:#ff7b72;--warning:#d29922;--note:#58a6ff;"
    "--help:#56d364"
)
CLASS = "relay-display"
"""The class of what is shown in the style."""

_LIGHT_THEMES = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]')
_DARK_THEMES = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]', 'html[theme="dark"]')


def _theme_selector(themes: tuple[str, ...]) -> str:
    return ",".join(f"{theme} .{CLASS}" for theme in themes)


STYLE = (
    f".{CLASS}{{{_LIGHT};color:var(--text);background:var(--back);padding:.4em .6em;font-size:13px;overflow-x:auto}}"
    f"@media (prefers-color-scheme:dark){{.{CLASS}{{{_DARK}}}}}"
    f"{_theme_selector(_LIGHT_THEMES)}{{{_LIGHT}}}{_theme_selector(_DARK_THEMES)}{{{_DARK}}}"
    f".{CLASS} pre{{margin:.2em 0;color:inherit;background:none;line-height:1.35;white-space:pre;"
    "font-family:ui-monospace,monospace;font-size:12.5px}"
    f".{CLASS} .head{{color:var(--dim)}}"
    f".{CLASS} .here{{background:var(--mark)}}"
    f".{CLASS} table{{border-collapse:collapse;font-family:ui-monospace,monospace;font-size:12.5px;color:inherit}}"
    f".{CLASS} th,.{CLASS} td{{text-align:left;padding:.1em .8em .1em 0;border-bottom:1px solid var(--line);"
    "background:none;color:inherit;white-space:pre}"
    f".{CLASS} [title]{{cursor:help}}"
    + "".join(f".{CLASS} .{name}{{color:var(--{name})}}" for name in "ktovnscf")
    + "".join(
        f".{CLASS} .{name}{{color:var(--{name});font-weight:600}}" for name in ("error", "warning", "note", "help")
    )
    + f".{CLASS} .label,.{CLASS} .frame{{color:var(--note)}}.{CLASS} .strong{{font-weight:600}}"
)
"""The colors follow the theme of the notebook or, where it has none, of the system."""


def fragment(body: str) -> str:
    """A part of a page with its style, as notebooks show it."""
    return f'<style>{STYLE}</style><div class="{CLASS}">{body}</div>'


def span(kind: str, text: str, title: str = "") -> str:
    """A text of a kind, which has a color, and what is shown while the mouse is over it."""
    hover = f' title="{escape(title)}"' if title else ""
    return f'<span class="{kind}"{hover}>{escape(text)}</span>' if kind or hover else escape(text)


_ESCAPES = re.compile(r"\x1b\[([\d;]*)m")
_KINDS = {"1;31": "error", "1;33": "warning", "1;36": "note", "1;32": "help", "1;34": "label", "34": "frame"}


def from_terminal(text: str) -> str:
    """A text with the terminal colors of diagnostics, as HTML."""
    return "".join(_spans(text))


def _spans(text: str) -> Iterator[str]:
    kind = ""
    for position, part in enumerate(_ESCAPES.split(text)):
        if position % 2:
            kind = {"0": "", "": "", "1": "strong"}.get(part, _KINDS.get(part, ""))
        elif part:
            yield span(kind, part)
