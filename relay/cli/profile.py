"""`relay profile`: where the time of a decorated function goes."""

from __future__ import annotations

import argparse
from pathlib import Path

from relay.api.differentiation import grad
from relay.cli.debug import arguments_of
from relay.cli.inputs import read_arrays, read_function
from relay.cli.refusal import Refusal
from relay.debug.profiling.gpu import GpuProfile
from relay.debug.profiling.profile import profile

NAME = "profile"
HELP = "show where the time of a decorated function goes, by kernel and by line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("function", metavar="FILE.py:FUNCTION")
    parser.add_argument("--args", metavar="ARGS.npz", help="arrays by the names of the parameters, as in `relay debug`")
    parser.add_argument("--grad", action="store_true", help="profile its gradient, forward and backward part")
    parser.add_argument(
        "--runs", type=int, metavar="N", help="how many calls; by default as many as take half a second"
    )
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        help="write flame.svg, flame.html, trace.json (for ui.perfetto.dev) and memory.svg here",
    )


def run(options: argparse.Namespace) -> int:
    """Print the profile; 0."""
    if options.runs is not None and options.runs < 1:
        raise Refusal(f"--runs is a number from 1 on, found {options.runs}")
    function = read_function(options.function)
    arrays = {} if options.args is None else read_arrays(options.args)
    arguments = arguments_of(function, arrays, options.args or "--args")
    if options.grad:
        function = grad(function)
    folder = None if options.output is None else Path(options.output)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refusal(f"cannot write to {options.output}: {error.strerror}") from None
    found = profile(function, runs=options.runs, **arguments)
    print(found)
    if isinstance(found, GpuProfile):
        if folder is not None:
            raise Refusal("pictures are drawn of programs for the processor; leave --output out")
        return 0
    if folder is not None:
        found.save_flame_graph(folder / "flame.svg")
        found.save_flame_graph(folder / "flame.html")
        found.save_trace(folder / "trace.json")
        found.save_memory_plot(folder / "memory.svg")
    return 0
