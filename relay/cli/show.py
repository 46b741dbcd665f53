"""`relay show`: a function's program as text."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from relay.compiler import RelayFunction
from relay.errors import RelayError

NAME = "show"
HELP = "print the typed program of a decorated function; its file is imported"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("function", metavar="FILE.py:FUNCTION")


def run(options: argparse.Namespace) -> int:
    """Print the function's text; 1 if it has an error, 2 if there is no such function."""
    file, colon, name = options.function.rpartition(":")
    if not colon or not Path(file).is_file():
        print(f"relay show: {options.function} is not FILE.py:FUNCTION with a file that exists", file=sys.stderr)
        return 2
    try:
        value = runpy.run_path(file, run_name="<relay show>").get(name)
        if not isinstance(value, RelayFunction):
            print(f"relay show: {file} has no decorated function {name!r}", file=sys.stderr)
            return 2
        print(value.text())
    except RelayError as error:
        print(error)
        return 1
    return 0
