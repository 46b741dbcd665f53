"""The timeline's pictures: what stands in them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

from accelerator.streams import Stream

from relay.codegen.vta.assembler import text
from relay.codegen.vta.isa import Gemm
from relay.codegen.vta.simulator.cycles import CycleModel, estimate
from relay.codegen.vta.simulator.roofline import roofline_svg
from relay.codegen.vta.simulator.timeline import to_perfetto, to_svg

STREAM = Stream()
PROGRAM = STREAM.program(
    [STREAM.load("uop"), STREAM.load("acc"), STREAM.load("inp"), STREAM.load("wgt"), Gemm(iter_in=50, dst_in=1)]
)
TIMING = estimate(PROGRAM.instructions, PROGRAM.config, CycleModel(megahertz=100))


def test_perfetto_has_an_event_for_each_stretch() -> None:
    trace = json.loads(to_perfetto(TIMING, PROGRAM.instructions))
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert list(names.values()) == ["load", "compute", "store", "dram"]
    (gemm,) = [event for event in events if event["name"] == "gemm"]
    found = next(event for event in TIMING.events if event.kind == "gemm")
    assert names[gemm["tid"]] == "compute"
    assert (gemm["ts"], gemm["dur"]) == (found.start / 100, (3 + 50 + 6) / 100)
    assert gemm["args"]["instruction"] == text(PROGRAM.instructions[found.position])
    port = [event for event in events if names[event["tid"]] == "dram"]
    assert sum(event["dur"] for event in port) * 100 == TIMING.busy_cycles["dram"]


def bars(picture: str) -> list[str]:
    """The titles of the bars."""
    return [title.text or "" for title in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}title")]


def test_svg_has_a_bar_for_each_stretch() -> None:
    found = next(event for event in TIMING.events if event.kind == "gemm")
    titles = bars(to_svg(TIMING))
    assert f"gemm: {found.start} to {found.end}" in titles
    assert sum(title.startswith("load wgt") for title in titles) == 2  # the unit, and the port


def test_svg_shows_a_part() -> None:
    found = next(event for event in TIMING.events if event.kind == "gemm")
    titles = bars(to_svg(TIMING, first=found.start + 10, last=found.end - 10))
    assert titles == [f"gemm: {found.start + 10} to {found.end - 10}"]


def test_long_streams_make_small_pictures() -> None:
    """Neighbours that are narrower than a pixel are one bar."""
    timing = estimate([Gemm(iter_in=8)] * 5_000, PROGRAM.config)
    assert len(bars(to_svg(timing))) == 1


def test_the_roofline_has_a_point_for_each_timing() -> None:
    picture = roofline_svg({"slow": [("one", TIMING), ("two", TIMING)], "fast": [("one", TIMING)]})
    points = [title for title in bars(picture) if "operations a byte" in title]
    assert points == [f"{name}: 2.4 operations a byte, 1.6 GOPS, DMA bounds it" for name in ("one", "two", "one")]
    texts = [text.text for text in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert [texts.count(name) for name in ("one", "two", "slow", "fast", "51.2 GOPS", "0.8 GB/s")] == [1] * 6
