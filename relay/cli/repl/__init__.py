"""`relay repl`: a Python prompt that knows the language: types, programs at their stages, times, the debugger."""

from __future__ import annotations

import argparse
import importlib
import sys

import numpy as np

import relay
from relay.cli.repl.commands import Commands
from relay.cli.repl.inputs import Inputs, Lines

NAME = "repl"
HELP = "a Python prompt at which decorated functions can be typed in"

EXTRA = (
    "a plain prompt: with prompt_toolkit (pip install 'relay-lang[debug]') inputs of several lines are edited as one,\n"
    "names are completed, operators with their types, and inputs are kept"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no options."""


def run(options: argparse.Namespace) -> int:
    """Read and run inputs until the end; 0, or what an input leaves with."""
    names = {name: getattr(relay, name) for name in ("Tensor", "Float", "Int", "Bool", "Any", "dims", "grad")}
    inputs = Inputs({"__name__": "__console__", "__doc__": None, "relay": relay, "np": np, **names})
    try:
        if not sys.stdin.isatty():
            _run_lines(inputs, Lines(lambda _: sys.stdin.readline()))
            return 0
        version = sys.version.split()[0]
        print(f"Relay {relay.__version__}, Python {version}; `relay` and `np` are imported, and :help lists commands.")
        try:
            terminal = importlib.import_module("relay.cli.repl.terminal")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "prompt_toolkit":
                raise
            print(EXTRA)
            _run_lines(inputs, Lines(_read_line))
            return 0
        terminal.run(inputs)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0


def _read_line(prompt: str) -> str:
    """A line from the terminal; empty at the end."""
    while True:
        try:
            return input(prompt) + "\n"
        except EOFError:
            print()
            return ""
        except KeyboardInterrupt:
            print("\nKeyboardInterrupt")
            raise


def _run_lines(inputs: Inputs, lines: Lines) -> None:
    """Run the inputs that lines make together, to their end."""
    commands = Commands(inputs, lines.read)
    while True:
        try:
            text = lines.next_input()
        except KeyboardInterrupt:
            continue
        if text is None:
            return
        commands.run(text)
