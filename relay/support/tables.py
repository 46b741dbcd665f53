"""Tables of text, for terminals."""

from __future__ import annotations

from collections.abc import Sequence


def aligned_rows(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Rows under their heads, in columns: `sides` has `<` or `>` for each, the side at which its cells stand."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(sides))]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in rows
    ]
