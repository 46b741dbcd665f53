"""The command line: `relay check FILE.py ..`, `relay show FILE.py:function`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from relay.cli import check, show


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 1 for errors in the user's program, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="relay", description="Check and look into Relay programs.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (check, show):
        sub = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code


if __name__ == "__main__":
    sys.exit(main())
