"""`relay compile`: a program that is given as text, compiled to a library for other languages."""

from __future__ import annotations

import argparse

from relay.cli.inputs import read_program
from relay.cli.refusal import Refusal
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
    parser.add_argument("--target", metavar="TRIPLE[,CPU][,+FEATURE]..", help="another processor, as LLVM names it")
    parser.add_argument("--level", type=int, default=DEFAULT_LEVEL, choices=range(4), help="the optimization level")


def run(options: argparse.Namespace) -> int:
    """Write the library and its header."""
    entries = [name.strip() for name in options.entry.split(",") if name.strip()]
    try:
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
