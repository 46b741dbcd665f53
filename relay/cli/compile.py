"""`relay compile`: a program that is given as text, compiled to a library for other languages."""

from __future__ import annotations

import argparse

import relay
from relay.cli.inputs import read_program
from relay.cli.refusal import Refusal
from relay.codegen.cuda import target as cuda
from relay.compilation.ahead_of_time import compile_library
from relay.compilation.stages import DEFAULT_LEVEL

NAME = "compile"
HELP = "compile a program in Relay's notation to a library for C and other languages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("file", metavar="PROGRAM.relay")
    parser.add_argument("-o", "--output", metavar="LIB.so", required=True, help="the library; an object file if *.o")
    parser.add_argument("--header", metavar="OUT.h", help="write the C header with which others call the functions")
    parser.add_argument(
        "--entry",
        metavar="FUNCTIONS",
        default="",
        help="the functions, with commas between them; by default the entry, derivatives, and what nothing else calls",
    )
    text = (
        'another processor, as LLVM names it; or "cuda", for a file that relay.load reads, and a header with all of it'
    )
    parser.add_argument("--target", metavar="TRIPLE[,CPU][,+FEATURE]..", help=text)
    parser.add_argument("--level", type=int, default=DEFAULT_LEVEL, choices=range(4), help="the optimization level")


def run(options: argparse.Namespace) -> int:
    """Write the library and its header."""
    entries = [name.strip() for name in options.entry.split(",") if name.strip()]
    try:
        if options.target is not None and cuda.names_target(options.target):
            _compile_for_gpu(options, entries)
            return 0
        compile_library(
            read_program(options.file),
            options.output,
            entries=entries,
            header=options.header,
            target=options.target,
            opt_level=options.level,
        )
    except OSError as error:
        raise Refusal(f"cannot write {error.filename}: {error.strerror}") from None
    return 0


def _compile_for_gpu(options: argparse.Namespace, entries: list[str]) -> None:
    if len(entries) > 1:
        raise Refusal(f"--entry: a file for a GPU has one function, found {', '.join(entries)}")
    cuda.parse_target(options.target)
    entry = entries[0] if entries else None
    made = relay.compile(read_program(options.file), entry, opt_level=options.level, target=options.target)
    made.export(options.output, options.header)
