"""Pictures of a profile: the flame graph, memory over time, and the timeline for Perfetto.

In the flame graph each box is on top of the one that it is a part of: the call, the function, the forward or backward
part of a derivative, the line, the kernel. Its width is its time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from relay.debug.profiling.units import count, duration
from relay.support.svg import Picture
from relay.support.trace_events import TraceEvents

if TYPE_CHECKING:
    from relay.debug.profiling.report import Profile

_WIDTH, _HEIGHT = 1200.0, 20.0


@attrs.define(eq=False)
class Box:
    """A box of the flame graph: seconds, and the boxes on it."""

    name: str
    seconds: float = 0.0
    color: str = "#d6d6d6"
    parts: dict[str, Box] = attrs.field(factory=dict)

    def add(self, path: Sequence[tuple[str, str]], seconds: float) -> None:
        """Add time along a way of names and colors."""
        self.seconds += seconds
        if path:
            (name, color), *rest = path
            self.parts.setdefault(name, Box(name, color=color)).add(rest, seconds)

    def depth(self) -> int:
        """The number of boxes on top of each other."""
        return 1 + max((part.depth() for part in self.parts.values()), default=0)

    def placed_boxes(self, x: float = 0.0, level: int = 0) -> Iterator[tuple[Box, float, int]]:
        """All boxes, with the seconds on their left and their level."""
        yield self, x, level
        for part in sorted(self.parts.values(), key=lambda part: -part.seconds):
            yield from part.placed_boxes(x, level + 1)
            x += part.seconds


def flame_boxes(profile: Profile) -> Box:
    """The call as a box."""
    root = Box(profile.name)
    has_functions = len({kernel.function for kernel in profile.kernels}) > 1
    has_backward = any(share.is_backward for kernel in profile.kernels for share in kernel.shares)
    for kernel in profile.kernels:
        for share in kernel.shares:
            path = [(kernel.function, "#c9c2e0")] * has_functions
            if has_backward:
                path.append(("backward", "#a8c5e8") if share.is_backward else ("forward", "#a5d6a7"))
            if share.span is None:
                path.append(("no line", "#e0e0e0"))
            else:
                text = share.span.source.line(share.span.line).strip()
                path.append((f"{Path(share.span.source.filename).name}:{share.span.line}  {text}", "#ffcc80"))
            path.append((kernel.name, _color(kernel.name)))
            root.add(path, kernel.seconds * share.share)
    root.add([("between kernels", "#bdbdbd")], profile.between)
    root.add([("arguments and results", "#bdbdbd")], profile.calling)
    return root


def _color(name: str) -> str:
    """A warm color that is the same for a name each time."""
    number = zlib.crc32(name.encode())
    return f"#{205 + number % 50:02x}{90 + number // 50 % 110:02x}{60 + number // 5500 % 50:02x}"


def flame_svg(profile: Profile) -> str:
    """The flame graph as a picture."""
    root = flame_boxes(profile)
    depth = root.depth()
    picture = Picture(_WIDTH, depth * _HEIGHT + 30)
    picture.text(4, 18, f"{profile.name}: {duration(profile.seconds)} a call", size=14)
    for box, x, level in root.placed_boxes():
        left, width = (_WIDTH * part / root.seconds if root.seconds else 0.0 for part in (x, box.seconds))
        if width >= 0.1:
            y = 30 + (depth - 1 - level) * _HEIGHT
            picture.rectangle(left, y, max(width - 0.5, 0.1), _HEIGHT - 1, box.color, _title(root, box), box.name)
    return picture.source()


def _title(root: Box, box: Box) -> str:
    share = 100 * box.seconds / root.seconds if root.seconds else 0.0
    return f"{box.name}: {duration(box.seconds)}, {share:.1f} %"


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
.relay-flame {{ position: relative; font: 12px sans-serif; height: {height}px; overflow: hidden; }}
.relay-flame div {{ position: absolute; height: 19px; line-height: 19px; overflow: hidden; white-space: nowrap;
  box-sizing: border-box; border-right: 1px solid white; padding-left: 3px; cursor: pointer; }}
</style></head><body>
<div class="relay-flame">
{boxes}
</div>
<pre>{text}</pre>
<script>
for (const flame of document.querySelectorAll(".relay-flame")) {{
  const boxes = [...flame.children];
  const place = (first, share) => boxes.forEach(box => {{
    const left = (box.dataset.left - first) / share, width = box.dataset.width / share;
    const start = Math.max(left, 0), end = Math.min(left + width, 1);
    box.hidden = end <= start;
    box.style.left = 100 * start + "%";
    box.style.width = 100 * (end - start) + "%";
  }});
  boxes.forEach(box => box.onclick = () => place(+box.dataset.left, +box.dataset.width));
  place(0, 1);
}}
</script>
</body></html>
"""


def flame_html(profile: Profile) -> str:
    """The flame graph as a page, in which a click enlarges a box, with the tables below. The page needs nothing
    else."""
    root = flame_boxes(profile)
    depth, boxes = root.depth(), []
    for box, x, level in root.placed_boxes():
        left, width = (part / root.seconds if root.seconds else 0.0 for part in (x, box.seconds))
        top = (depth - 1 - level) * _HEIGHT
        style = f"left:{100 * left:.4f}%;width:{100 * width:.4f}%;top:{top:g}px;background:{box.color}"
        boxes.append(
            f'<div style="{style}" data-left="{left:.8f}" data-width="{width:.8f}" '
            f'title="{escape(_title(root, box))}">{escape(box.name)}</div>'
        )
    return _PAGE.format(
        title=escape(profile.name), height=depth * _HEIGHT, boxes="\n".join(boxes), text=escape(str(profile))
    )


# ---- memory


def memory_svg(profile: Profile) -> str:
    """Memory over time: what is in use when each kernel runs; arguments, results and constants are the grey part."""
    memory = profile.memory
    picture = Picture(900, 340)
    left, top, width, height = 80.0, 40.0, 800.0, 240.0
    most, last = max(memory.peak, 1), max(memory.times[-1:] or [0.0]) or 1.0
    picture.text(left, 22, f"{profile.name}: at most {count(memory.peak)}B in use", size=14)

    def at(time: float, size: float) -> tuple[float, float]:
        return left + width * time / last, top + height * (1 - size / most)

    for tick in range(5):
        y = top + height * tick / 4
        picture.line([(left, y), (left + width, y)], "#ddd")
        picture.text(left - 6, y + 4, f"{count(most * (4 - tick) / 4)}B", "end")
        picture.text(left + width * tick / 4, top + height + 18, duration(last * tick / 4), "middle")
    points, before = [at(0.0, memory.fixed)], float(memory.fixed)
    for time, size in zip(memory.times, memory.bytes, strict=True):
        points += [at(time, before), at(time, size)]
        before = float(size)
    points += [at(last, before), at(last, memory.fixed)]
    picture.line(points, "#4c78a8", "#9ecae9")
    _, y = at(0.0, memory.fixed)
    picture.rectangle(left, y, width, top + height - y, "#d6d6d6", f"{count(memory.fixed)}B all the time")
    entries = [("intermediate values", "#9ecae9"), ("arguments, results and constants", "#d6d6d6")]
    picture.legend(entries, left, top + height + 44)
    return picture.source()


# ---- the timeline

_CALL, _COMPILATION = 1, 2


def trace(profile: Profile) -> str:
    """The runs of kernels, memory, and the phases of the compilation one after another, as JSON trace events."""
    events, kernels = TraceEvents(), {kernel.number: kernel for kernel in profile.kernels}
    events.process(_CALL, profile.name)
    events.row(_CALL, 0, "kernels")
    for event in profile.events:
        kernel = kernels[event.number]
        given: dict[str, object] = {
            "lines": ", ".join(map(str, kernel.lines)),
            "operators": ", ".join(kernel.operators),
            "FLOP": kernel.flops // kernel.calls,
            "bytes": kernel.bytes // kernel.calls,
        }
        events.stretch(_CALL, 0, event.name, event.begin * 1e6, event.seconds * 1e6, given)
    for time, size in zip(profile.memory.times, profile.memory.bytes, strict=True):
        events.counter(_CALL, "memory in use", time * 1e6, {"bytes": size})
    events.process(_COMPILATION, f"compilation of {profile.name}")
    events.row(_COMPILATION, 0, "phases")
    begin = 0.0
    for phase in profile.phases:
        for part, seconds in phase.parts.items():
            name = part or phase.name
            events.stretch(_COMPILATION, 0, name, begin * 1e6, seconds * 1e6, {"phase": phase.name})
            begin += seconds
    return events.text()
