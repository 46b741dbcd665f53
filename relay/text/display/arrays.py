"""Arrays as notebooks show them: dtype and shape, and the values, of large ones the outer ones."""

from __future__ import annotations

from html import escape

import numpy as np

from relay.support.html import fragment

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def array_html(value: np.ndarray) -> str:
    """An array as HTML."""
    axes = " \N{MULTIPLICATION SIGN} ".join(map(str, value.shape)) or "scalar"
    head = f"Array <b>{escape(str(value.dtype))}</b> {axes}, {_size_text(value.nbytes)}"
    values = np.array2string(value, separator=", ", threshold=500, edgeitems=3, max_line_width=110)
    return fragment(f'<div class="head">{head}</div><pre>{escape(values)}</pre>')


def _size_text(count: float) -> str:
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.{0 if unit == 0 else 1}f} {_UNITS[unit]}"
