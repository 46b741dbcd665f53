"""`relay vta`: programs of the accelerator VTA: their text, their files, and what they do."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import numpy as np

from relay.cli.inputs import read_arrays
from relay.cli.refusal import Refusal
from relay.codegen.vta.assembler import listing, parse_program
from relay.codegen.vta.program import Program, Role
from relay.codegen.vta.program_files import read_program, write_program
from relay.codegen.vta.simulator.cycles import CHISEL, HLS, CycleModel, estimate, section_timings
from relay.codegen.vta.simulator.findings import NONE, Checks
from relay.codegen.vta.simulator.run import simulate
from relay.codegen.vta.simulator.timeline import to_perfetto, to_svg

NAME = "vta"
HELP = "assemble, disassemble or simulate a program of the accelerator VTA"

_MODELS = {"chisel": CHISEL, "hls": HLS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    assemble = actions.add_parser("assemble", help="make a program's files from its text")
    assemble.add_argument("file", metavar="PROGRAM.vta")
    assemble.add_argument("-o", "--output", metavar="FOLDER", required=True)
    disassemble = actions.add_parser("disassemble", help="print the text of a program's files")
    disassemble.add_argument("file", metavar="FOLDER")
    disassemble.add_argument("--data", action="store_true", help="with the contents of all buffers, to be read back")
    disassemble.add_argument("-o", "--output", metavar="PROGRAM.vta", help="write to a file")
    run_ = actions.add_parser("simulate", help="run a program, check it, and estimate its cycles")
    run_.add_argument("file", metavar="FOLDER or PROGRAM.vta")
    run_.add_argument("--args", metavar="ARGS.npz", help="arrays by the names of the buffers that the host fills")
    run_.add_argument("--output", metavar="OUT.npz", help="write the output buffers here")
    run_.add_argument("--allow", metavar="RULES", default="", help='rules that may be broken: "multiply, acc8-load"')
    run_.add_argument("--no-checks", action="store_true", help="check bounds, tokens and the end only")
    run_.add_argument(
        "--cycles",
        metavar="MODEL",
        default="chisel",
        help='the cycle model: chisel, hls, or "hls, bus=16, latency=100"',
    )
    run_.add_argument(
        "--timeline", metavar="FILE", help="write the timeline of instructions: .json for Perfetto, or .svg"
    )


def run(options: argparse.Namespace) -> int:
    """Do what was asked for."""
    actions: Mapping[str, Callable[[argparse.Namespace], None]] = {
        "assemble": _assemble,
        "disassemble": _disassemble,
        "simulate": _simulate,
    }
    actions[options.action](options)
    return 0


def _assemble(options: argparse.Namespace) -> None:
    program = _read_text(options.file)
    try:
        write_program(program, options.output)
    except OSError as error:
        raise Refusal(f"cannot write {error.filename}: {error.strerror}") from None
    print(f"{len(program.instructions)} instructions and {len(program.buffers)} buffers in {options.output}")


def _disassemble(options: argparse.Namespace) -> None:
    text = listing(_read(options.file), data=options.data)
    if options.output is None:
        print(text, end="")
    else:
        _write(options.output, text)


def _simulate(options: argparse.Namespace) -> None:
    program = _read(options.file)
    model = _model(options.cycles)
    suffix = Path(options.timeline).suffix if options.timeline is not None else None
    if suffix not in (None, ".json", ".svg"):
        raise Refusal(f"--timeline writes .json or .svg, found {options.timeline}")
    result = simulate(program, _arrays(options, program), checks=_checks(options))
    timing = estimate(program.instructions, program.config, model)
    outputs = {buffer.name: result[buffer.name] for buffer in program.buffers if buffer.role is Role.OUTPUT}
    if options.output is None:
        for name, array in outputs.items():
            print(f"{name}: {array.dtype} {array.shape}\n{array}")
    else:
        try:
            with Path(options.output).open("wb") as file:
                np.savez(file, **outputs)  # type: ignore[arg-type]
        except OSError as error:
            raise Refusal(f"cannot write {options.output}: {error.strerror}") from None
    print(timing.report())
    if len(program.sections) > 1:
        for name, part in section_timings(program, model).items():
            print(f"  {name}: {part.cycles} cycles, utilization {part.utilization:.3f}, {part.bound} bounds it")
    if suffix is not None:
        picture = to_svg(timing) if suffix == ".svg" else to_perfetto(timing, program.instructions)
        _write(options.timeline, picture)


def _checks(options: argparse.Namespace) -> Checks:
    allowed = [rule.strip() for rule in options.allow.split(",") if rule.strip()]
    try:
        return attrs.evolve(NONE if options.no_checks else Checks(), allow=allowed)
    except ValueError as error:
        raise Refusal(f"--allow: {error}") from None


def _arrays(options: argparse.Namespace, program: Program) -> Mapping[str, np.ndarray]:
    arrays = {} if options.args is None else read_arrays(options.args)
    buffers = {buffer.name: buffer for buffer in program.buffers}
    for name, array in arrays.items():
        if name not in buffers:
            raise Refusal(f"{options.args}: the program has no buffer {name!r}; it has {', '.join(buffers)}")
        buffer = buffers[name]
        if (array.shape, array.dtype) != (buffer.shape, buffer.dtype):
            found, expected = f"{array.dtype} {array.shape}", f"{buffer.dtype} {buffer.shape}"
            raise Refusal(f"{options.args}: {name} is {expected}, found {found}")
    return arrays


def _model(text: str) -> CycleModel:
    model = CHISEL
    changes: dict[str, int] = {}
    fields = {field.name: field for field in attrs.fields(CycleModel)}
    for part in (part.strip() for part in text.split(",")):
        name, equals, value = part.partition("=")
        if part in _MODELS:
            model = _MODELS[part]
        elif equals and name in fields and value.isascii() and value.isdigit() and len(value) < 10:
            changes[name] = bool(int(value)) if isinstance(fields[name].default, bool) else int(value)
        else:
            words = ", ".join((*_MODELS, *(f"{name}=N" for name in fields)))
            raise Refusal(f"--cycles: {part!r} is none of {words}")
    try:
        return attrs.evolve(model, **changes)  # type: ignore[arg-type]
    except ValueError as error:
        raise Refusal(f"--cycles: {error.args[0]}") from None


def _read(name: str) -> Program:
    """The program of a folder or a text."""
    if not Path(name).is_dir():
        return _read_text(name)
    try:
        return read_program(name)
    except OSError as error:
        raise Refusal(f"cannot read {error.filename}: {error.strerror}") from None


def _read_text(name: str) -> Program:
    try:
        return parse_program(Path(name).read_text(encoding="utf-8"), name)
    except OSError as error:
        raise Refusal(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refusal(f"{name} is not a text in UTF-8") from None


def _write(name: str, content: str) -> None:
    try:
        Path(name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise Refusal(f"cannot write {name}: {error.strerror}") from None
