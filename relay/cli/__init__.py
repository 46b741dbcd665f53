"""The command line: `relay check FILE.py ..`, `relay show FILE.py:function`, `relay opt`, `relay run`, `relay repl`,
`relay cache`.

`relay opt PROGRAM.relay --passes "inline, cse"` works on programs as text, `relay run PROGRAM.relay` runs them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from relay.cli import cache, check, opt, repl, run, show
from relay.cli.inputs import Refusal
from relay.errors import RelayError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 1 for errors in the user's program, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="relay", description="Check and look into Relay programs.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (check, show, opt, run, repl, cache):
        sub = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except BrokenPipeError:  # the reader, `head` for example, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(options: argparse.Namespace) -> int:
    try:
        code: int = options.run(options)
    except Refusal as refusal:
        print(f"relay {options.command}: {refusal}", file=sys.stderr)
        return 2
    except RelayError as error:
        print(error, flush=True)
        return 1
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
