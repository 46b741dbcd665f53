"""`relay.tune`: find better loops for a program's kernels by measuring.

Each kernel with sizes that are numbers is compiled by itself with the other schedule rules that apply to it, and if it
is a product with other tiles, with and without packing and threads, one property after the other. What is faster in two
measurements is a candidate; the candidates are kept if the whole program is faster with them, too. They serve every
program with the same kernel.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.api.function import RelayFunction
from relay.codegen.runtime import cpu
from relay.codegen.tiling import DEFAULT, Choices, TilingChoice, TilingOptions
from relay.compilation import tuning_records
from relay.errors import TypeMismatch
from relay.ir.expr import Function, Module, OpCall, Var
from relay.ir.traverse import all_blocks
from relay.ir.types import TensorType
from relay.support import progress
from relay.transform.fusion.fusion_groups import FusionGroup, in_place_operands, plan
from relay.transform.fusion.outlining import function_of

BETTER = 0.97
"""The fraction of the time below which a choice counts as better; smaller differences are noise."""

WORTH = 0.99
"""The fraction of the time below which the kept choices must be for a call of the whole program."""

_SAMPLE = 0.002  # seconds
_SAMPLES = 5


@attrs.frozen
class KernelMeasurement:
    """One kernel: its operators and the type of its result, what was chosen, and seconds for a call of it before and
    after."""

    kernel: str
    choice: TilingChoice
    before: float
    after: float


@attrs.frozen
class TuningResult:
    """The result of `tune`: the kernels, the seconds of a call of the whole program before and after, and whether
    the choices are kept."""

    kernels: tuple[KernelMeasurement, ...]
    before: float
    after: float
    kept: bool

    def __str__(self) -> str:
        lines = [
            f"{m.kernel}: {m.before * 1e6:.1f} -> {m.after * 1e6:.1f} µs"
            + (f", {_choice_text(m.choice)}" if m.choice != DEFAULT else ", as before")
            for m in self.kernels
        ]
        whole = f"a call: {self.before * 1e6:.1f} -> {self.after * 1e6:.1f} µs"
        return "\n".join([*lines, whole if self.kept else "nothing is faster than before"])


def tune(function: RelayFunction, *arguments: Any, seconds: float | None = None, **keywords: Any) -> TuningResult:
    """Measure other loops for the kernels of `function` on arguments like these, and keep what is faster.

    `seconds`: after how long no further choice is tried; by default all are. What is found is used by all programs that
    are compiled later on this processor with as many threads, in this process and others, and by the next call of
    `function`. Kernels with sizes that are not static stay as they are. Raises what a call raises.
    """
    if not isinstance(function, RelayFunction):
        raise TypeMismatch(f"relay.tune takes a function decorated with @relay, found {function!r}")
    end = float("inf") if seconds is None else time.perf_counter() + seconds
    threads = cpu.default_threads()
    known = dict(tuning_records.choices(threads))
    core = function.core(*arguments, **keywords)
    whole = function.tunable(*arguments, **keywords)
    with progress.progress_bar(f"tuning {function.__name__}"):
        found: dict[str, KernelMeasurement] = {}
        alone = list(_kernels(core, threads))
        for number, (name, module, options) in enumerate(alone):
            progress.show_progress(f"kernel {number + 1} of {len(alone)}", number, len(alone))
            if name not in found and time.perf_counter() < end:
                found[name] = _tune(name, module, options, threads, known.get(name, DEFAULT), end)
        better = {name: m.choice for name, m in found.items() if m.choice != known.get(name, DEFAULT)}
        progress.show_progress("the whole program")
        before, after = _time_programs(whole, known, {**known, **better}) if better else (0.0, 0.0)
        if better and after < WORTH * before:
            tuning_records.keep(threads, better)
            function.forget_programs()
            return TuningResult(tuple(found.values()), before, after, True)
        return TuningResult(tuple(found.values()), before, before, False)


def _kernels(core: Module, threads: int) -> Iterator[tuple[str, Module, TilingOptions]]:
    """The products among a program's kernels, each as a program of its own."""
    from relay.codegen.lowering.module_builder import options

    for function in core.functions.values():
        if isinstance(function, Function):
            for block in all_blocks(function.body):
                for group in plan(block).values():
                    module = _kernel_module(group)
                    if module is not None:
                        for name, found in options(module, threads).items():
                            yield name, module, found


def _kernel_module(group: FusionGroup) -> Module | None:
    """A program of a group alone; None where it has none."""
    inside = {binding.targets[0] for binding in group.bindings}
    parameters: dict[Var, None] = {}
    for binding in group.bindings:
        if not isinstance(binding.value, OpCall) or in_place_operands(binding):
            return None
        parameters.update((a, None) for a in binding.value.arguments if isinstance(a, Var) and a not in inside)
    types = [variable.type for variable in (*parameters, *group.outputs)]
    if not all(isinstance(t, TensorType) and all(isinstance(dim, int) for dim in t.shape) for t in types):
        return None
    return Module({"kernel": function_of(group, tuple(parameters))}, "kernel", (), ())


def _tune(
    name: str, module: Module, options: TilingOptions, threads: int, known: TilingChoice, end: float
) -> KernelMeasurement:
    inputs = _inputs(module)

    def run(choice: TilingChoice) -> Callable[[], object]:
        native = cpu.compile_native(module, threads, {name: choice})
        program = cpu.Program(native, cpu.DataResult)
        return lambda: program.run(list(inputs))

    best, reference = known, run(known)
    fastest = before = _seconds(reference)
    for way in _changes(options):
        start = best
        for change in way:
            if time.perf_counter() > end:
                break
            choice = attrs.evolve(start, **change)
            taken = _seconds(run(choice))
            if taken < BETTER * fastest:
                best, fastest = choice, taken
    if best != known:  # once more, in turns, since other programs come and go
        before, fastest = _in_turns(reference, run(best))
        if fastest >= BETTER * before:
            best, fastest = known, before
    binding = module.main.body.bindings
    operators = " ".join(b.value.operator for b in binding if isinstance(b.value, OpCall))
    return KernelMeasurement(f"{operators}, {module.main.result}", best, before, fastest)


def _changes(options: TilingOptions) -> Iterator[list[dict[str, Any]]]:
    """The changes that tuning tries, one list after the other: the rules, and then the properties of tiles."""
    yield [{"rule": rule} for rule in options.rules]
    for rule, tilings in options.tilings.items():
        yield [{"rule": rule, "height": height, "vectors": vectors} for height, vectors in tilings.tiles]
        yield [{"rule": rule, "packed": packed} for packed in tilings.packed if len(tilings.packed) > 1]
        yield [{"rule": rule, "parallel": parallel} for parallel in tilings.parallel if len(tilings.parallel) > 1]


def _inputs(module: Module) -> Sequence[np.ndarray]:
    random = np.random.default_rng(0)
    made = []
    for parameter in module.main.parameters:
        assert isinstance(parameter.type, TensorType)
        dtype, shape = parameter.type.dtype, parameter.type.dims
        # Integers may be indices, which zeros always are.
        real = np.issubdtype(dtype, np.floating) or dtype.kind == "V"
        made.append(random.standard_normal(shape).astype(dtype) if real else np.zeros(shape, dtype))
    return made


def _time_programs(
    whole: Callable[[Choices], Callable[[], object]], before: Choices, after: Choices
) -> tuple[float, float]:
    """Seconds of the whole program with these choices."""
    return _in_turns(whole(before), whole(after))


def _in_turns(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = [], []
    for _ in range(_SAMPLES):
        for call, taken in zip((first, second), times, strict=True):
            taken.append(_seconds(call, 3))
    return statistics.median(times[0]), statistics.median(times[1])


def _seconds(call: Callable[[], object], samples: int = _SAMPLES) -> float:
    """The least time of a call, of several samples of some milliseconds."""

    def sample(number: int) -> float:
        start = time.perf_counter()
        for _ in range(number):
            call()
        return time.perf_counter() - start

    number = 1
    while sample(number) < _SAMPLE:
        number *= 2
    return min(sample(number) for _ in range(samples)) / number


def _choice_text(choice: TilingChoice) -> str:
    values: Mapping[str, object] = attrs.asdict(choice)
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
