"""The roofline: operations for each byte from or to DRAM against operations a second, as a picture.

Below the roof, which the bus and the array of multipliers make, there is a point for each layer (Williams, Waterman and
Patterson: Roofline, 2009; Moreau and others, 2019, for the accelerator).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from relay.codegen.vta.simulator.cycles import Timing
from relay.support.svg import Picture

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 340, 70, 40, 30, 60
_COLORS = ("#4c78a8", "#f58518", "#54a24b", "#e45756")
_LINE, _CHARACTER = 13, 6.6  # the pixels of a line of text, and of a letter

_Place = Callable[[float, float], tuple[float, float]]
_Box = tuple[float, float, float, float]  # left, top, right, bottom


def roofline_svg(series: Mapping[str, Sequence[tuple[str, Timing]]]) -> str:
    """The picture. `series` are points by what they have in common, each with its name; those of one configuration and
    one cycle model. Points of the same name are connected, and the last series has the names. Raises ValueError without
    points."""
    points = [timing for part in series.values() for _, timing in part]
    if not points:
        raise ValueError("a roofline needs points")
    config, model = points[0].config, points[0].model
    peak = 2 * config.batch * config.block**2 * model.megahertz / 1000
    bandwidth = model.bus * model.megahertz / 1000
    xs = [_positive(p.intensity) for p in points] + [peak / bandwidth]
    left, right = min(xs) / 2, max(xs) * 2
    low, high = min([_positive(p.gops) for p in points] + [peak]) / 1.5, peak * 1.4

    def place(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / left) / math.log(right / left)
        up = math.log(max(y, low) / low) / math.log(high / low)
        return _LEFT + across * _WIDTH, _TOP + (1 - up) * _HEIGHT

    picture = Picture(_LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM)
    _draw_axes(picture, place, (left, right), (low, high))
    start = max(left, low / bandwidth)
    picture.line([place(x, min(peak, x * bandwidth)) for x in (start, peak / bandwidth, right)], "black")
    picture.text(_LEFT + _WIDTH - 6, place(right, peak)[1] - 6, f"{peak:.4g} GOPS", "end")
    picture.text(place(start, start * bandwidth)[0] + 8, place(start, start * bandwidth)[1], f"{bandwidth:.4g} GB/s")
    _draw_points(picture, place, series)
    picture.legend(list(zip(series, _COLORS, strict=False)), _LEFT, _TOP - 16)
    return picture.source()


def _positive(number: float) -> float:
    return max(number, 1e-3)


def _draw_axes(picture: Picture, place: _Place, xs: tuple[float, float], ys: tuple[float, float]) -> None:
    """The frame, and powers of two along it."""
    (left, right), (low, high) = xs, ys
    bottom, top = _TOP + _HEIGHT, _TOP
    for power in range(math.ceil(math.log2(left)), math.floor(math.log2(right)) + 1):
        x, _ = place(2.0**power, low)
        picture.line([(x, top), (x, bottom)], "#ddd")
        picture.text(x, bottom + 18, f"{2.0**power:g}", "middle")
    for power in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1):
        _, y = place(left, 2.0**power)
        picture.line([(_LEFT, y), (_LEFT + _WIDTH, y)], "#ddd")
        picture.text(_LEFT - 8, y + 4, f"{2.0**power:g}", "end")
    corners = (_LEFT, top), (_LEFT + _WIDTH, top), (_LEFT + _WIDTH, bottom), (_LEFT, bottom), (_LEFT, top)
    picture.line(corners, "#999")
    picture.text(_LEFT + _WIDTH / 2, bottom + 42, "operations of GEMM for each byte of DRAM", "middle")
    picture.text(_LEFT - 8, _TOP - 12, "GOPS", "end")


def _draw_points(picture: Picture, place: _Place, series: Mapping[str, Sequence[tuple[str, Timing]]]) -> None:
    """Squares for the points, lines between those of a name, and the names, where nothing else is."""
    spots: dict[str, list[tuple[float, float]]] = {}
    for part in series.values():
        for name, timing in part:
            spots.setdefault(name, []).append(place(_positive(timing.intensity), timing.gops))
    for line in spots.values():
        picture.line(line, "#bbb")
    for color, part in zip(_COLORS, series.values(), strict=False):
        for name, timing in part:
            x, y = place(_positive(timing.intensity), timing.gops)
            picture.rectangle(x - 4, y - 4, 8, 8, color, f"{name}: {timing.intensity:.1f} operations a byte, "
                              f"{timing.gops:.1f} GOPS, {timing.bound} bounds it")  # fmt: skip
    taken = [(x - 4, y - 4, x + 4, y + 4) for line in spots.values() for x, y in line]
    for name, (*_, (x, y)) in sorted(spots.items(), key=lambda item: item[1][-1]):
        box = _free_box(x, y, len(name) * _CHARACTER, taken)
        taken.append(box)
        picture.text(box[0], box[3] - 2, name)


def _free_box(x: float, y: float, width: float, taken: Sequence[_Box]) -> _Box:
    """The place of a name of that width near a point: the first one within the frame that is free."""
    nearby = [(x + 7, 0.0), (x - 7 - width, 0.0), (x - width / 2, 14.0), (x - width / 2, -14.0)]
    nearby += [(x + 7, line * _LINE) for line in range(1, 30)]
    boxes = [(left, y + down - 6, left + width, y + down + 6) for left, down in nearby]
    inside = [box for box in boxes if box[0] > _LEFT and box[2] < _LEFT + _WIDTH]
    free = (box for box in inside if not any(_overlap(box, other) for other in taken))
    return next(free, boxes[0])


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
