"""The command line: `relay check FILE.py ..`, `relay show FILE.py:function`, `relay opt`, `relay transform`,
`relay run`, `relay compile`, `relay repl`, `relay cache`, `relay vta`.

`relay opt PROGRAM.relay --passes "inline, cse"` works on programs as text, `relay run PROGRAM.relay` runs them;
`relay debug FILE.py:function` steps through a function, `relay profile FILE.py:function` tells where its time goes;
`relay lsp` is the language server.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import relay
from relay.cli import cache, check, compile, debug, lsp, opt, profile, repl, run, show, transform, vta
from relay.cli.refusal import Refusal
from relay.errors import RelayError


class _Parser(argparse.ArgumentParser):
    """Tells of a wrong call in one line."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and leave with exit code 2."""
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")

    def refuse(self, argument: str) -> NoReturn:
        """Leave because of an argument that there is not, with the option that comes nearest."""
        known = [option for action in self._actions for option in action.option_strings]
        close = difflib.get_close_matches(argument.partition("=")[0], known, n=1, cutoff=0.75)
        self.error(f"there is no argument {argument!r}" + (f", did you mean {close[0]}?" if close else ""))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 1 for errors in the user's program, 2 for a wrong call."""
    parser = _Parser(prog="relay", description="Check and inspect Relay programs.")
    parser.add_argument("--version", action="version", version=f"relay {relay.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers: dict[str, _Parser] = {}
    for command in (check, show, opt, transform, run, compile, debug, profile, repl, lsp, cache, vta):
        parsers[command.NAME] = sub = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        parsers[options.command].refuse(unknown[0])
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
