"""Attribution of measured time: to kernels, to their operators, and by these to lines.

A kernel computes operators of several lines. Its time is divided among them by their cost (`relay.operator.cost`), so
that lines add up to kernels, and kernels, with what is between them, to the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from relay.codegen.lowering.probes import Site
from relay.codegen.runtime.machine_peak import MachinePeak
from relay.debug.profiling.builds import ProbedBuild, RunRecord
from relay.errors.diagnostic import Span
from relay.ir.dims import DataDependentDim, Dim, TypeId, evaluate, variables
from relay.ir.expr import OpCall
from relay.ir.types import TensorType
from relay.operator.cost import kernel_cost
from relay.typecheck.elaboration.abstract_values import is_of_template


@attrs.frozen(eq=False)
class Share:
    """An operator's share of a kernel, from 0 to 1: its place (None: nowhere in the user's files), and whether it
    belongs to the backward part of a derivative."""

    operator: str
    span: Span | None
    is_backward: bool
    share: float
    flops: int

    @property
    def line(self) -> int | None:
        return None if self.span is None else self.span.line


@attrs.frozen(eq=False)
class Kernel:
    """A place that calls a kernel, in one call of the program: `calls` of it take `seconds` together, the `shortest`
    and the `longest` so much, and do `flops` operations and move `bytes`.

    `is_divided`: it is too short to be measured by itself without slowing the program down; its time is the part of
    what such kernels take together that it had in a run in which each was measured. Then the shortest and longest are
    None.
    `ideal` is the least number of seconds that the machine's peak allows, `bound` what limits it: "compute" or
    "memory". `kind` is "kernel", "Python" for operators with a function of their own, or "device". `compile_seconds`:
    how long its loops took to make.
    """

    name: str
    kind: str
    function: str
    shares: tuple[Share, ...] = attrs.field(repr=False)
    calls: int
    seconds: float
    shortest: float | None
    longest: float | None
    flops: int
    bytes: int
    ideal: float
    bound: str
    is_divided: bool
    compile_seconds: float
    number: int = attrs.field(repr=False)

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(share.operator for share in self.shares)

    @property
    def fraction(self) -> float | None:
        """The fraction of the machine's peak; None for what does not compute on the processor, or took no time."""
        return self.ideal / self.seconds if self.seconds > 0 and self.kind == "kernel" else None

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of its operators, in order."""
        return tuple(sorted({share.line for share in self.shares if share.line is not None}))

    @property
    def is_backward(self) -> bool:
        """True if most of it belongs to the backward part of a derivative."""
        return sum(share.share for share in self.shares if share.is_backward) > 0.5


@attrs.frozen(eq=False)
class Line:
    """A line of the user's files: the seconds of its parts of kernels, `backward` those of derivatives among them, the
    operations, and the kernels. `file` is None for what belongs to no line."""

    file: str | None
    line: int | None
    text: str
    seconds: float
    backward: float
    flops: int
    kernels: tuple[str, ...]

    @property
    def forward(self) -> float:
        """The seconds that are not of the backward part."""
        return self.seconds - self.backward


@attrs.frozen
class Times:
    """Seconds of one call: of each site by number, whether they are a part of what several took together, and of the
    native code between them."""

    sites: Mapping[int, float]
    divided: frozenset[int]
    between: float
    native: float


def times(build: ProbedBuild, record: RunRecord, fine: tuple[ProbedBuild, RunRecord] | None = None) -> Times:
    """The times of a run, less what the probes took. `fine`: the build in which each site has a probe, and its run,
    where this one has not."""
    own = {site.number: _seconds(build, record, site) for site in build.sites if site.is_measured}
    probes = sum(record.calls(site) for site in build.sites if site.is_measured)
    native = max((record.ticks(build.whole_program) - probes * build.probe_ticks) / build.rate, 0.0)
    rest = max(native - sum(own.values()), 0.0)
    if fine is None:
        return Times(own, frozenset(), rest, sum(own.values()) + rest)
    all_ = times(*fine)
    least = {site.number: fine[1].calls(site) / fine[0].rate for site in fine[0].sites}  # a tick for each call
    small = {number: max(seconds, least[number]) for number, seconds in all_.sites.items() if number not in own}
    whole = sum(small.values()) + all_.between
    scale = rest / whole if whole > 0 else 0.0
    divided = {number: seconds * scale for number, seconds in small.items()}
    between = rest - sum(divided.values())
    return Times({**own, **divided}, frozenset(divided), between, sum(own.values()) + rest)


def _seconds(build: ProbedBuild, record: RunRecord, site: Site) -> float:
    return max((record.ticks(site) - record.calls(site) * build.empty_ticks) / build.rate, 0.0)


def kernels(
    build: ProbedBuild,
    record: RunRecord,
    found: Times,
    sizes: Mapping[TypeId, int],
    peak: MachinePeak,
    compiling: Mapping[str, float],
    counted: RunRecord,
) -> list[Kernel]:
    """The kernels of a run, the slowest first. `counted` is a run in which all sites were counted."""
    made = []
    for site in build.sites:
        calls = counted.calls(site)
        if calls == 0:
            continue
        flops, bytes_, shares = _shares(site, {**sizes, **dict(zip(site.dims, counted.sizes(site), strict=True))})
        compute, memory = (calls * s for s in peak.seconds(flops, bytes_, _dtype(site)))
        is_divided = site.number in found.divided
        ticks = None if is_divided else (record.shortest_time(site), record.longest_time(site))
        ends = [None if ticks is None else max(t - build.empty_ticks, 0.0) / build.rate for t in ticks or (0, 0)]
        made.append(
            Kernel(
                name=site.kernel,
                kind=site.kind,
                function=site.function,
                shares=shares,
                calls=calls,
                seconds=found.sites[site.number],
                shortest=ends[0],
                longest=ends[1],
                flops=flops * calls,
                bytes=bytes_ * calls,
                ideal=max(compute, memory),
                bound="compute" if compute > memory else "memory",
                is_divided=is_divided,
                compile_seconds=compiling.get(site.kernel, 0.0),
                number=site.number,
            )
        )
    return sorted(made, key=lambda kernel: -kernel.seconds)


def _shares(site: Site, sizes: Mapping[TypeId, int]) -> tuple[int, int, tuple[Share, ...]]:
    """The floating-point operations and bytes of one call, and the operators' parts."""
    if not site.bindings:
        span = _visible_span(site.span)
        return 0, 0, (Share(site.kernel, span, span is not None and span.in_backward, 1.0, 0),)

    def number(dim: Dim) -> int:
        if isinstance(dim, int):
            return dim
        if isinstance(dim, DataDependentDim):
            return sizes.get(dim, 0)
        known = all(v in sizes for v in variables(dim))
        return max(evaluate(dim, sizes), 0) if known else 0

    parts = kernel_cost(site.bindings, site.outputs, number)
    weights, flops = [number(part.weight) for part in parts], [number(part.flops) for part in parts]
    whole = sum(weights)
    shares = []
    for binding, weight, own in zip(site.bindings, weights, flops, strict=True):
        call = binding.value
        assert isinstance(call, OpCall)
        span = _visible_span(call.span)
        share = weight / whole if whole else 1 / len(parts)
        shares.append(Share(call.operator, span, span is not None and span.in_backward, share, own))
    return sum(flops), sum(number(part.bytes) for part in parts), tuple(shares)


def _visible_span(span: Span | None) -> Span | None:
    return None if is_of_template(span) else span


def _dtype(site: Site) -> str | None:
    """The dtype of floats that most of a kernel is computed in; None where there are none."""
    types = [binding.targets[0].type for binding in site.bindings]
    floats = [str(t.base) for t in types if isinstance(t, TensorType) and t.dtype.kind == "f"]
    return max(floats, key=floats.count, default=None)


def lines(found: Iterable[Kernel]) -> list[Line]:
    """The lines of kernels, the slowest first."""
    shares: dict[tuple[str, int] | None, list[tuple[Kernel, Share]]] = {}
    for kernel in found:
        for share in kernel.shares:
            key = None if share.span is None else (share.span.source.filename, share.span.line)
            shares.setdefault(key, []).append((kernel, share))
    made = [_line(key, parts) for key, parts in shares.items()]
    return sorted(made, key=lambda line: -line.seconds)


def _line(key: tuple[str, int] | None, parts: Sequence[tuple[Kernel, Share]]) -> Line:
    span = parts[0][1].span
    return Line(
        file=None if key is None else key[0],
        line=None if key is None else key[1],
        text="" if span is None else span.source.line(span.line).strip(),
        seconds=sum(kernel.seconds * share.share for kernel, share in parts),
        backward=sum(kernel.seconds * share.share for kernel, share in parts if share.is_backward),
        flops=sum(kernel.calls * share.flops for kernel, share in parts),
        kernels=tuple(dict.fromkeys(kernel.name for kernel, _ in parts)),
    )
