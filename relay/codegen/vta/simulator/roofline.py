"""The roofline: operations for each byte from or to DRAM against operations a second, as a picture.

Below the roof, which the bus and the array of multipliers make, there is a point for each layer (Williams, Waterman and
Patterson: Roofline, 2009; Moreau and others, 2019, for the accelerator).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from xml.sax.saxutils import escape

from relay.codegen.vta.simulator.cycles import Timing

_WIDTH, _HEIGHT, _LEFT, _TOP = 560, 320, 60, 30
_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728")


def roofline_svg(series: Mapping[str, Sequence[tuple[str, Timing]]]) -> str:
    """The picture. `series` are points by what they have in common, each with its name; those of one configuration and
    one cycle model. Raises ValueError without points."""
    points = [timing for part in series.values() for _, timing in part]
    if not points:
        raise ValueError("a roofline needs points")
    config, model = points[0].config, points[0].model
    peak = 2 * config.batch * config.block**2 * model.megahertz / 1000
    bandwidth = model.bus * model.megahertz / 1000
    xs = [max(p.intensity, 1e-3) for p in points] + [peak / bandwidth]
    ys = [max(p.gops, 1e-3) for p in points] + [peak]
    left, right = min(xs) / 2, max(xs) * 2
    low, high = min(ys) / 2, peak * 1.5

    def place(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / left) / math.log(right / left)
        up = math.log(max(y, low) / low) / math.log(high / low)
        return _LEFT + across * _WIDTH, _TOP + (1 - up) * _HEIGHT

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 30}" height="{_TOP + _HEIGHT + 60}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#999"/>',
    ]
    roof = [place(x, min(peak, x * bandwidth)) for x in (left, peak / bandwidth, right)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in roof)
    parts.append(f'<polyline points="{line}" fill="none" stroke="black" stroke-width="1.5"/>')
    parts += _ticks(place, left, right, low, high)
    for number, (label, timings) in enumerate(series.items()):
        color = _COLORS[number % len(_COLORS)]
        parts.append(f'<text x="{_LEFT + 10 + 180 * number}" y="{_TOP - 10}" fill="{color}">{escape(label)}</text>')
        for name, timing in timings:
            x, y = place(max(timing.intensity, 1e-3), timing.gops)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>')
            parts.append(f'<text x="{x + 6:.1f}" y="{y - 5:.1f}">{escape(name)}</text>')
    parts.append(f'<text x="{_LEFT + _WIDTH / 2}" y="{_TOP + _HEIGHT + 45}">operations a byte</text>')
    parts.append(f'<text x="6" y="{_TOP + 12}">GOPS</text></svg>')
    return "\n".join(parts)


def _ticks(
    place: Callable[[float, float], tuple[float, float]], left: float, right: float, low: float, high: float
) -> list[str]:
    """Powers of two along the axes."""
    parts = []
    for power in range(math.ceil(math.log2(left)), math.floor(math.log2(right)) + 1):
        x, y = place(2.0**power, low)
        parts.append(f'<text x="{x - 6:.1f}" y="{y + 18:.1f}">{2.0**power:g}</text>')
    for power in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1):
        x, y = place(left, 2.0**power)
        parts.append(f'<text x="{x - 30:.1f}" y="{y + 4:.1f}">{2.0**power:g}</text>')
    return parts
