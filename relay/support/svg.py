"""SVG pictures: rectangles, lines and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr


class Picture:
    """A picture of this many pixels that is being drawn on white."""

    def __init__(self, width: float, height: float) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" font-size="12">',
            f'<rect width="{width:g}" height="{height:g}" fill="white"/>',
        ]

    def rectangle(
        self, x: float, y: float, width: float, height: float, color: str, title: str = "", label: str = ""
    ) -> None:
        """A filled rectangle; `title` is shown where the pointer is, `label` in it, as far as it fits."""
        inner = f"<title>{escape(title)}</title>" if title else ""
        shape = f'<rect x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{height:g}" fill={quoteattr(color)}'
        fitting = label if len(label) * _CHARACTER < width else label[: max(int(width / _CHARACTER) - 2, 0)] + ".."
        if not label or len(fitting) < _SHORTEST:
            self._parts.append(f"{shape}>{inner}</rect>" if inner else f"{shape}/>")
            return
        text = f'<text x="{x + 3:.2f}" y="{y + height / 2 + 4:g}" pointer-events="none">{escape(fitting)}</text>'
        self._parts.append(f"<g>{shape}>{inner}</rect>{text}</g>")

    def text(self, x: float, y: float, content: str, anchor: str = "start", size: int = 12) -> None:
        """A text; `anchor` says what is at x: its start, middle or end."""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}">{escape(content)}</text>'
        )

    def line(self, points: Iterable[tuple[float, float]], color: str, fill: str = "none") -> None:
        """A line through points, and what it encloses."""
        places = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        self._parts.append(f'<polyline points="{places}" stroke={quoteattr(color)} fill={quoteattr(fill)}/>')

    def legend(self, entries: Sequence[tuple[str, str]], x: float, y: float) -> None:
        """Names with their colors, side by side."""
        for name, color in entries:
            self.rectangle(x, y - 10, 12, 12, color)
            self.text(x + 16, y, name)
            x += 30 + 7 * len(name)

    def source(self) -> str:
        """The file."""
        return "\n".join([*self._parts, "</svg>"]) + "\n"


_CHARACTER, _SHORTEST = 6.6, 5
"""The pixels of a character, and the fewest that are worth showing."""
