"""`relay show`: a function's program at a stage, as text, as a page, or as a graph."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from relay.api.function import RelayFunction
from relay.cli.inputs import read_arrays, read_function, read_types
from relay.cli.page import Stage, to_html
from relay.cli.refusal import Refusal
from relay.codegen.cuda import target as cuda
from relay.codegen.cuda.host_program import HostProgram
from relay.codegen.cuda.launches import GroupKernels
from relay.codegen.cuda.libraries.products import LibraryProduct
from relay.compilation.stages import CPU, DEFAULT_LEVEL, CompiledSignature, at_stage, check_target, lowering
from relay.compilation.texts import general_text
from relay.errors import Span
from relay.ir.dims import ANY, Dim, evaluate
from relay.ir.expr import Constant, Module
from relay.ir.sizes.extents import Place, places
from relay.ir.types import Kind, QuantifiedType, Type, TypeId, map_dims, show, type_variables
from relay.text.display.dot import to_dot, to_svg
from relay.text.display.graph import graph
from relay.text.printer import to_text
from relay.transform.fusion.outlining import fuse
from relay.transform.loops.vectorization import choices_of
from relay.transform.pipeline import Pipeline
from relay.transform.recursion.level_batching import recursion_choices
from relay.typecheck.elaboration import Argument, elaborate_structured

NAME = "show"
HELP = "print the program of a decorated function; its file is imported"

STAGES = ("surface", "typed", "core", "batched", "optimized", "fused", "kernels", "tir", "streams", "cuda")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("function", metavar="FILE.py:FUNCTION")
    parser.add_argument(
        "--stage",
        choices=STAGES,
        help="surface: untyped; typed (the default); core: first-order, before optimization; "
        "batched: before derivatives, with the loops that became calls on all rounds, and why others stay; optimized; "
        "fused: with its kernels; kernels: the schedule rule of each, and why; tir; streams: those of --target vta; "
        "cuda: the kernels of --target cuda, in CUDA C",
    )
    types = parser.add_mutually_exclusive_group()
    types.add_argument("--types", metavar="TYPES", help='of the arguments: "Tensor[float32, (3, 4)], .."')
    types.add_argument("--args", metavar="ARGS.npz", help="arrays by the names of the parameters")
    parser.add_argument("--level", type=int, default=DEFAULT_LEVEL, choices=range(4), help="the optimization level")
    parser.add_argument(
        "--target",
        default=CPU,
        help='the target: cpu, cuda, vta, or "vta, log_block=5";'
        " for vta, the stage optimized has the calls of streams, and the stage streams their instructions",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", action="store_true", help="a page with the source and all stages, linked")
    form.add_argument("--dot", action="store_true", help="a graph in Graphviz's notation")
    form.add_argument("--svg", action="store_true", help="a graph as a picture")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file")


def run(options: argparse.Namespace) -> int:
    """Print what was asked for."""
    function = read_function(options.function)
    text = _render(options, function)
    if options.output is None:
        print(text)
    else:
        try:
            Path(options.output).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise Refusal(f"cannot write {options.output}: {error.strerror}") from None
    return 0


def _render(options: argparse.Namespace, function: RelayFunction) -> str:
    stage = options.stage or "typed"
    check_target(options.target)
    if stage == "surface":
        if options.html or options.dot or options.svg or options.types or options.args:
            raise Refusal("--stage surface prints text, which depends on no types")
        return to_text(function.surface)
    if stage == "typed" and not (options.types or options.args or options.html or options.dot or options.svg):
        program = general_text(function.__relay__, elide=False)
        note = "# for all types at once: --types gives the program for some, which can be read back\n"
        return note + program if isinstance(function.type, QuantifiedType) else program
    arguments, symbolic = _arguments(options, function)
    typed = elaborate_structured(function.__relay__, arguments, symbolic).module
    if options.html:
        if options.stage is not None:
            raise Refusal("the page shows all stages from typed to fused: leave out --stage")
        return to_html(options.function, stages(typed, options.level))
    if cuda.names_target(options.target) or stage == "cuda":
        return _cuda_text(options, typed, stage)
    if options.target != CPU or stage == "streams":
        return _offloaded_text(options, typed, stage)
    if stage in ("kernels", "tir"):
        if options.dot or options.svg:
            raise Refusal("a graph is drawn of the stages typed to fused")
        from relay.codegen.lowering.module_builder import text
        from relay.codegen.runtime.cpu import default_threads

        core = lowering(options.level)(typed)
        return text(core, default_threads()) if stage == "tir" else _schedules_text(core, default_threads())
    if stage == "batched":
        return _batched_text(options, typed)
    return _program_text(options, at_stage(typed, stage, options.level))


def _batched_text(options: argparse.Namespace, typed: Module) -> str:
    """The program whose loops were vectorized, and why others were not."""
    if options.dot or options.svg:
        raise Refusal("the stage batched is a text; a graph is drawn of the stages typed, core, optimized and fused")
    if options.level < 2:
        raise Refusal("loops become calls on all rounds from --level 2 on")
    pipeline = Pipeline.for_level(options.level, ("lower", "prepare"))
    batched = pipeline(typed)
    given = next(record.given for record in reversed(pipeline.records) if record.name.startswith("vectorize_loops"))
    loops = [c for c in choices_of(given, will_be_differentiated=True) if c.span is not None]  # the user's
    notes = [f"# {_place(choice.span)}{choice.text}" for choice in (*recursion_choices(batched), *loops)]
    return "\n".join([*notes, to_text(batched)])


def _place(span: Span | None) -> str:
    return "" if span is None else f"{Path(span.source.filename).name}:{span.line}: "


def _program_text(options: argparse.Namespace, module: Module) -> str:
    """A program as text, or as a graph."""
    if options.dot or options.svg:
        drawn = graph(module)
        return to_dot([drawn]) if options.dot else to_svg(drawn)
    return to_text(module)


def _offloaded_text(options: argparse.Namespace, typed: Module, stage: str) -> str:
    """The program for the accelerator: with calls of streams, or these in its assembler's notation."""
    if options.target == CPU:
        raise Refusal('the stage streams is for --target vta, found "cpu"')
    signature = CompiledSignature(typed, typed.main.type.result, options.level, target=options.target)
    if stage == "streams":
        from relay.codegen.vta.assembler import listing

        found = signature.offloaded_module.streams.values()
        return "\n".join(f"# {call.name}\n{listing(call.program)}" for call in found)
    if stage not in ("typed", "core", "optimized"):
        raise Refusal(f"--target vta has the stages typed, core, optimized and streams, found {stage}")
    module = signature.offloaded_module.module if stage == "optimized" else at_stage(typed, stage, options.level)
    return _program_text(options, module)


def _cuda_text(options: argparse.Namespace, typed: Module, stage: str) -> str:
    """The program for a GPU: its kernels in CUDA C, or a stage that it has in common with those for the processor."""
    if not cuda.names_target(options.target):
        raise Refusal(f"the stage cuda is for --target cuda, found {options.target!r}")
    if stage in ("tir", "streams"):
        raise Refusal(f"--target cuda has the stages typed, core, optimized, fused, kernels and cuda, found {stage}")
    if stage not in ("kernels", "cuda"):
        return _program_text(options, at_stage(typed, stage, options.level))
    if options.dot or options.svg:
        raise Refusal("a graph is drawn of the stages typed to fused")
    from relay.codegen.cuda.program import kernels_of

    program, source = kernels_of(lowering(options.level)(typed), cuda.parse_target(options.target))
    if stage == "kernels":
        return _gpu_kernels_text(program)
    rules = [f"// {launch.name}: {launch.rule}, {launch.reason}" for launch in program.launches]
    return "\n".join([*rules, source])


def _gpu_kernels_text(program: HostProgram) -> str:
    """The kernels of a program for a GPU, with the rule that makes each and the reason."""
    lines: list[str] = []
    for group in (group for block in program.blocks.values() for group in block.launched):
        lines.append(f"-> {', '.join(map(show, group.results))}")
        for launch in group.launches:
            lines.append(f"  {launch.name}: {launch.blocks} blocks of {launch.threads} threads")
            lines.append(f"  {launch.rule}: {launch.subject}, {launch.reason}")
        lines += _library_text(group)
    return "\n".join(lines) or "# no kernels: the program computes with numbers only"


def _library_text(group: GroupKernels) -> list[str]:
    """The library that may compute a group in place of its kernels, or the reason for which none does."""
    library = group.library
    if library is None:
        return []
    if isinstance(library, str):
        return [f"  not cuDNN: {library}"]
    if isinstance(library, LibraryProduct):
        return ["  or cuBLASLt, where it is installed and the product is large enough"]
    text = f"with channels {'last' if library.channels_last else 'first'}"
    copied = [copy.launches[0].name for copy in group.copies if copy is not None]
    copies = f", with the copies {', '.join(copied)}" if copied else ""
    if group.rest is not None:
        copies += f", and then {', '.join(launch.name for launch in group.rest.kernels.launches)}"
    return [f"  or cuDNN, where it is installed and the convolution is large enough: {text}{copies}"]


def _schedules_text(core: Module, threads: int) -> str:
    """The kernels of a program, with the rule that makes each of its loops and the reason."""
    from relay.codegen.lowering.module_builder import schedules
    from relay.compilation import tuning_records

    lines: list[str] = []
    for schedule in schedules(core, threads, tuning_records.choices(threads)):
        lines.append(f"{schedule.name} -> {', '.join(map(show, schedule.results))}")
        lines.append(f"  computes {' '.join(schedule.operators)}")
        lines += [f"  {decision.rule}: {decision.subject}, {decision.reason}" for decision in schedule.decisions]
    return "\n".join(lines) or "# no kernels: the program computes with numbers only"


def stages(typed: Module, level: int) -> list[Stage]:
    """The program before all passes, and after each one that the compiler runs, and its kernels at the end."""
    pipeline = lowering(level)
    final = pipeline(typed)
    passes = [Stage(record.name, record.module) for record in pipeline.records]
    return [Stage("typed", typed), *passes, Stage("fuse", fuse(final))]


def _arguments(options: argparse.Namespace, function: RelayFunction) -> tuple[Sequence[Argument], Collection[Place]]:
    """The abstract arguments: their types as given, else as annotated, with the axes whose sizes stay open."""
    parameters = function._function.parameters
    if options.types is not None:
        types: list[Type] = read_types(options.types)
        wanted = len(parameters) + function._seeds
        if len(types) != wanted:
            what = f"{wanted} types, one for each argument"
            raise Refusal(f"--types: {function.__name__} needs {what}, found {len(types)}")
        return types, ()
    if options.args is not None:
        arrays = read_arrays(options.args)
        missing = [p.name for p in parameters if p.name not in arrays]
        if missing:
            raise Refusal(f"{options.args} has no array {missing[0]!r}")
        return [Constant(arrays[p.name]).type for p in parameters], ()
    for parameter in parameters:
        if parameter.type is None:
            reason = "has no annotated type"
        elif other := [v for v in type_variables(parameter.type) if v.kind is not Kind.Dim]:
            reason = f"is annotated with {other[0].name}, which stands for any {_KINDS[other[0].kind]}"
        else:
            continue
        name = f"the parameter {parameter.name} of {function.__name__}"
        raise Refusal(f"{name} {reason}: give --types or --args")
    written = [p.type for p in parameters if p.type is not None]
    sizes = dict(zip(dict.fromkeys(v for t in written for v in type_variables(t)), _SIZES, strict=False))
    types = [map_dims(t, lambda d: _size(d, sizes)) for t in written]
    return [*types, *[None] * function._seeds], {place for place, _ in places(written)}


_KINDS = {Kind.BaseType: "element type", Kind.Shape: "shape", Kind.Type: "type", Kind.Effect: "effect"}

_SIZES = range(1009, 1 << 16, 2)
"""Of annotated sizes while the program is made; in it they are variables. Large, so that what holds for large sizes
only, as `x[3:]`, does, and of few divisors."""


def _size(dim: Dim, sizes: Mapping[TypeId, int]) -> Dim:
    """A size for an annotated one, which may be a function of several variables."""
    return dim if dim is ANY else evaluate(dim, sizes)
