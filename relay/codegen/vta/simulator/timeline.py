"""Timelines of instructions as pictures: for Perfetto (ui.perfetto.dev) and Chrome, and as SVG.

There is a row for each unit and one for the port to DRAM. Waiting is left white.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relay.codegen.vta.assembler import text
from relay.codegen.vta.isa import AnyInstruction, Queue
from relay.codegen.vta.simulator.cycles import Event, Timing
from relay.support.svg import Picture
from relay.support.trace_events import TraceEvents

_COLORS = {
    "gemm": "#4c78a8",
    "reset": "#9ecae9",
    "alu": "#f58518",
    "load inp": "#54a24b",
    "load wgt": "#88d27a",
    "load uop": "#b279a2",
    "load acc": "#d6a5c9",
    "store": "#e45756",
    "no-op": "#bab0ac",
    "finish": "#000000",
}
_PORT = "dram"
_LANES = (*(queue.name.lower() for queue in Queue), _PORT)


def _spans(event: Event) -> Iterator[tuple[str, int, int]]:
    """The stretches of an event: the row, from when, to when."""
    if event.service == event.issue:
        yield event.queue.name.lower(), event.start, event.end
        return
    yield event.queue.name.lower(), event.start, event.issue
    yield event.queue.name.lower(), event.service, event.end


def _uses_port(event: Event) -> bool:
    return event.kind.startswith(("load", "store"))


# ---- Perfetto


def to_perfetto(timing: Timing, instructions: Sequence[AnyInstruction]) -> str:
    """The timeline as JSON trace events, in microseconds; each event has its instruction and its cycles."""
    scale = 1 / timing.model.megahertz
    trace = TraceEvents()
    trace.process(1, "VTA")
    for lane, name in enumerate(_LANES):
        trace.row(1, lane, name)
    for event in timing.events:
        arguments: dict[str, object] = {
            "instruction": text(instructions[event.position]),
            "position": event.position,
            "cycles": event.end - event.start,
        }
        if event.waited_for is not None:
            arguments["waited for"] = f"tokens {event.waited_for.words}, {event.start - event.free} cycles"
        if event.service > event.issue:
            arguments["waited for the port"] = f"{event.service - event.issue} cycles"
        for name, begin, end in _lane_spans(event):
            trace.stretch(1, _LANES.index(name), event.kind, begin * scale, (end - begin) * scale, arguments)
    return trace.text()


# ---- SVG

_LEFT, _WIDTH, _ROW, _BAR = 70, 1100, 34, 24


def to_svg(timing: Timing, *, first: int = 0, last: int | None = None) -> str:
    """The timeline from one cycle to another as a picture. Neighbours of one kind are one bar where they are narrower
    than a pixel."""
    end = timing.cycles if last is None else last
    span = max(1, end - first)
    height = _ROW * len(_LANES) + 70
    picture = Picture(_LEFT + _WIDTH + 40, height)
    for row, lane in enumerate(_LANES):
        picture.text(_LEFT - 8, row * _ROW + _BAR, lane, "end")
        spans = [
            (max(begin, first), min(stop, end), event.kind)
            for event in timing.events
            for name, begin, stop in _lane_spans(event)
            if name == lane and begin < end and stop > first
        ]
        for begin, stop, kind in _merge_spans(spans, span / _WIDTH):
            x, width = _LEFT + (begin - first) / span * _WIDTH, (stop - begin) / span * _WIDTH
            title = f"{kind}: {begin} to {stop}"
            picture.rectangle(x, row * _ROW + 8, max(width, 0.3), _BAR, _COLORS[kind], title)
    _draw_axis(picture, first, span)
    kinds = {event.kind for event in timing.events}
    picture.legend([(kind, color) for kind, color in _COLORS.items() if kind in kinds], _LEFT, height - 12)
    return picture.source()


def _lane_spans(event: Event) -> Iterator[tuple[str, int, int]]:
    yield from _spans(event)
    if _uses_port(event):
        yield _PORT, event.service, event.end


def _merge_spans(spans: Sequence[tuple[int, int, str]], pixel: float) -> Iterator[tuple[int, int, str]]:
    """Stretches of one kind with less than a pixel between them as one."""
    current: tuple[int, int, str] | None = None
    for begin, stop, kind in sorted(spans):
        if current is not None and kind == current[2] and begin - current[1] < pixel / 4:
            current = (current[0], stop, kind)
            continue
        if current is not None:
            yield current
        current = (begin, stop, kind)
    if current is not None:
        yield current


def _draw_axis(picture: Picture, first: int, span: int) -> None:
    y = _ROW * len(_LANES) + 12
    for tick in range(11):
        x = _LEFT + _WIDTH * tick / 10
        picture.line([(x, 4), (x, y)], "#ddd")
        picture.text(x, y + 14, str(first + span * tick // 10), "middle")
