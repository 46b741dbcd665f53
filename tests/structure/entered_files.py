"""The files of Relay that a call enters: those that it imports, and those with a function that it runs.

python tests/structure/entered_files.py   how many files and functions the first call of a function of one line enters,
                                          the second one, and one with an array of another size
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import relay

ROOT = str(Path(relay.__file__).parent)


@relay.relay
def line(x):
    return x * 2.0 + 1.0


def entered(action: Callable[[], object]) -> tuple[set[str], int]:
    """The files that are entered while this is done, and how often a function of one is."""
    files: set[str] = set()
    functions = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal functions
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            files.add(frame.f_code.co_filename[len(ROOT) + 1 :])
            functions += 1

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return files, functions


if __name__ == "__main__":
    for name, argument in (("first", np.ones(3)), ("second", np.ones(3)), ("other size", np.ones(4))):
        found, calls = entered(lambda argument=argument: line(argument))  # type: ignore[misc]
        print(f"{name:<12}{len(found):>5} files{calls:>7} functions")
