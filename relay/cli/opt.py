"""`relay opt`: passes over a program that is given as text."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from relay.cli.inputs import enter, read_program
from relay.cli.refusal import Refusal
from relay.ir.analysis.difference import diff
from relay.ir.expr import Module
from relay.text.printer import to_text
from relay.transform.passes import PASSES, ConfiguredPass, options_of, pass_name
from relay.transform.pipeline import PassRecord, Pipeline, count
from relay.transform.properties import properties_of

NAME = "opt"
HELP = "run passes over a program in Relay's notation, and print the result"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("file", nargs="?", metavar="PROGRAM.relay")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--passes", metavar="LIST", help='such as "inline, cse, fold-constants{max_size=1MiB}, fuse"')
    what.add_argument("--level", type=int, help="the passes of an optimization level, 0 to 3")
    parser.add_argument(
        "--entry", metavar="FUNCTION", help="the function that passes keep, with what it needs, if not the entry"
    )
    parser.add_argument("--list", action="store_true", help="print the passes with their options")
    parser.add_argument(
        "--print-after", metavar="PASSES", default="", help="print the program after these passes, or after `all`"
    )
    parser.add_argument("--time", action="store_true", help="print the time and the number of bindings of each pass")
    parser.add_argument("--diff", action="store_true", help="print what changed instead of the program")
    parser.add_argument("--check", action="store_true", help="check the program after each pass")
    parser.add_argument("-o", "--output", metavar="OUT.relay", help="write the result to a file")
    parser.add_argument("--constants", metavar="OUT.npz", help="with -o: write large constants to this file")


def run(options: argparse.Namespace) -> int:
    """Run the passes and print."""
    if options.list:
        for name in PASSES:
            print(name, "".join(f"{{{key}={value}}}" for key, value in options_of(name).items()))
        return 0
    if options.file is None:
        raise Refusal("give a PROGRAM.relay")
    if options.constants is not None and options.output is None:
        raise Refusal("--constants needs -o")
    pipeline, shown = _pipeline(options), _printed_passes(options.print_after)
    module = read_program(options.file)
    if options.entry is not None:
        module = enter(module, options.entry)
    pipeline.known = properties_of(module)
    _check_shown(shown, pipeline.passes)
    try:
        result = pipeline(module)
    except ValueError as error:  # an order of passes that cannot be, or what a pass says of its options
        raise Refusal(str(error)) from None
    for record in pipeline.records:
        if shown is None or record.name.partition("{")[0] in shown:
            print(f"# after {record.name}\n{record.text}\n")
    if options.time:
        _print_times(pipeline.records, count(module))
    if options.diff:
        print(diff(module, result))
    if options.output is not None:
        write_program(result, options.output, options.constants)
    elif not options.diff and shown is not None and not shown:
        print(to_text(result))
    return 0


def _pipeline(options: argparse.Namespace) -> Pipeline:
    try:
        if options.passes is not None:
            return Pipeline(options.passes, checked=options.check)
        level = 2 if options.level is None else options.level
        return Pipeline.for_level(level, ("optimize",), checked=options.check)
    except ValueError as error:
        raise Refusal(str(error)) from None


def _printed_passes(text: str) -> set[str] | None:
    """The passes after which to print; None: after all."""
    if text.strip() == "all":
        return None
    try:
        return {pass_name(name.strip()) for name in text.split(",") if name.strip()}
    except ValueError as error:
        raise Refusal(str(error)) from None


def _check_shown(shown: set[str] | None, passes: tuple[ConfiguredPass, ...]) -> None:
    """Raises Refusal if a pass is to be shown that is not run."""
    run = {step.name.partition("{")[0] for step in passes}
    for name in sorted((shown or set()) - run):
        raise Refusal(f"--print-after: {name} is not among the passes, which are {', '.join(sorted(run)) or 'none'}")


def _print_times(records: tuple[PassRecord, ...], before: int) -> None:
    width = max((len(r.name) for r in records), default=0)
    size = before
    for record in records:
        print(f"{record.name:<{width}}  {record.seconds * 1e3:9.2f} ms  {size:>7} -> {record.bindings_after} bindings")
        size = record.bindings_after
    print(f"{'total':<{width}}  {sum(r.seconds for r in records) * 1e3:9.2f} ms", file=sys.stdout)


def write_program(module: Module, output: str, constants: str | None) -> None:
    """Write a program to a file, and its large constants to another one if that is given. Raises Refusal."""
    aside: dict[str, np.ndarray] | None = None if constants is None else {}
    try:
        Path(output).write_text(to_text(module, constants=aside) + "\n", encoding="utf-8")
        if constants is not None:
            with Path(constants).open("wb") as file:
                np.savez(file, **(aside or {}))  # type: ignore[arg-type]
    except OSError as error:
        raise Refusal(f"cannot write {error.filename}: {error.strerror}") from None
