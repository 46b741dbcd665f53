"""`relay debug`: the step debugger in the terminal."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from relay.api.differentiation import grad
from relay.api.function import RelayFunction
from relay.cli.inputs import read_arrays, read_function
from relay.cli.refusal import Refusal
from relay.debug.adapter.adapter import serve_port, serve_standard_streams
from relay.debug.commands import Commands
from relay.debug.differences import diff
from relay.debug.non_finite import find_nan
from relay.debug.session import MEMORY, step
from relay.debug.tracing import trace
from relay.errors import FrontendError

NAME = "debug"
HELP = "step through a decorated function, forward and back"

EXTRA = "the debugger's terminal needs prompt_toolkit: pip install 'relay-lang[debug]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("function", metavar="FILE.py:FUNCTION", nargs="?")
    parser.add_argument(
        "--args",
        metavar="ARGS.npz",
        help="arrays by the names of the parameters; p.0, p.1 of a tuple, p[0], p[1] of a list, p.key of a dict",
    )
    parser.add_argument("--nan", action="store_true", help="find the origin of a NaN in the result or gradient")
    parser.add_argument("--diff", action="store_true", help="compare the compiled call with the interpreter's")
    parser.add_argument("--tolerance", type=float, help="with --diff: the tolerance for floats")
    parser.add_argument(
        "--output", metavar="DIRECTORY", help="with --diff: the folder for a program that shows the difference"
    )
    parser.add_argument("--trace", metavar="OUT.npz", help="record the values of all variables")
    parser.add_argument("--grad", action="store_true", help="step through its gradient, forward and backward part")
    parser.add_argument(
        "--stage", choices=("typed", "derived", "optimized"), help="the stage of the program to step through"
    )
    parser.add_argument("--memory", type=int, default=MEMORY >> 20, metavar="MIB", help="of the record, %(default)s")
    parser.add_argument(
        "--dap", action="store_true", help="speak the Debug Adapter Protocol with an editor, over standard streams"
    )
    parser.add_argument("--port", type=int, metavar="N", help="with --dap: at this port of the machine; 0: a free one")


def run(options: argparse.Namespace) -> int:
    """Debug until the user leaves; 0."""
    if options.port is not None and not options.dap:
        raise Refusal("--port is for --dap")
    if options.dap:
        return _serve(options)
    if options.function is None:
        raise Refusal("the function to debug is missing: FILE.py:FUNCTION")
    function = read_function(options.function)
    arrays = {} if options.args is None else read_arrays(options.args)
    arguments = arguments_of(function, arrays, options.args or "--args")
    if options.grad:
        function = grad(function)
    if options.nan:
        found = find_nan(function, **arguments)
        print("there is no NaN and no infinity" if found is None else found)
        return 0 if found is None else 1
    if options.diff:
        difference = diff(function, tolerance=options.tolerance, directory=options.output, **arguments)
        print(difference)
        return int(difference.differs)
    if options.trace is not None:
        recorded = trace(function, stage=options.stage, memory=options.memory << 20, **arguments)
        recorded.save(options.trace)
        print(recorded)
        return 0 if recorded.error is None else 1
    commands = Commands(step(function, stage=options.stage, memory=options.memory << 20, **arguments))
    print(commands.greeting())
    if sys.stdin.isatty():
        try:
            terminal = importlib.import_module("relay.debug.terminal")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "prompt_toolkit":
                raise
            raise Refusal(EXTRA) from None
        terminal.run(commands)
        return 0
    for line in sys.stdin:
        said = commands.run(line)
        if said:
            print(said)
        if commands.left:
            break
    return 0


def _serve(options: argparse.Namespace) -> int:
    """Serve editors. Options on the command line are defaults for `launch`. What the command line says is what
    `launch` need not say."""
    program, _, function = (options.function or "").rpartition(":")
    given = {"program": program, "function": function, "args": options.args, "stage": options.stage}
    defaults = {name: value for name, value in given.items() if value}
    defaults.update(grad=options.grad, memory=options.memory)
    if options.port is None:
        serve_standard_streams(defaults, read_call)
        return 0
    try:
        serve_port(options.port, defaults, read_call)
    except (OSError, OverflowError) as error:
        raise Refusal(f"cannot listen at port {options.port}: {error}") from None
    return 0


def read_call(program: str, name: str, given: Any) -> tuple[RelayFunction, dict[str, Any]]:
    """The function and the arguments of a launch: an .npz file, or numbers and lists by name. Raises FrontendError."""
    try:
        function = read_function(f"{program}:{name}")
        if isinstance(given, Mapping):
            arrays = {key: np.asarray(value) for key, value in given.items()}
            return function, arguments_of(function, arrays, '"args"')
        if given is not None and not isinstance(given, str):
            raise Refusal('"args" is the path of an .npz file, or an object')
        arrays = dict(read_arrays(given)) if given else {}
        return function, arguments_of(function, arrays, given or '"args"')
    except Refusal as refusal:
        raise FrontendError(str(refusal)) from None


def arguments_of(function: RelayFunction, arrays: Mapping[str, np.ndarray], file: str) -> dict[str, Any]:
    """The arguments of a function by name. Raises Refusal for a name that is not a parameter's, and for parts that
    do not fit together."""
    names = [parameter.name for parameter in function.surface.main.parameters]
    found: dict[str, Any] = {}
    for key, array in arrays.items():
        head, *path = key.replace("[", ".[").split(".")
        if head not in names:
            raise Refusal(f"{file}: the function has no parameter {head!r}; it has {', '.join(names) or 'none'}")
        place: dict[str, Any] = found
        for step_, following in zip([head, *path], path, strict=False):
            place = place.setdefault(step_, {})
            if not isinstance(place, dict):
                raise Refusal(f"{file}: {key!r} is part of an array, before {following!r}")
        place[[head, *path][-1]] = array
    return {name: _structure(value, f"{file}: {name}") for name, value in found.items()}


def _structure(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        return value
    parts = {key: _structure(part, f"{name}.{key}") for key, part in value.items()}
    if all(key.isdigit() for key in parts):
        return tuple(_in_order({int(key): part for key, part in parts.items()}, name))
    if all(key.startswith("[") and key.endswith("]") and key[1:-1].isdigit() for key in parts):
        return _in_order({int(key[1:-1]): part for key, part in parts.items()}, name)
    return parts


def _in_order(parts: Mapping[int, Any], name: str) -> list[Any]:
    if sorted(parts) != list(range(len(parts))):
        raise Refusal(f"{name} has no part {next(i for i in range(len(parts)) if i not in parts)}")
    return [parts[index] for index in range(len(parts))]
