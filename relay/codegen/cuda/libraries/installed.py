"""Libraries of NVIDIA's packages, or of the system."""

from __future__ import annotations

import ctypes
import importlib
from pathlib import Path
from typing import Any


def open_library(folder: str, name: str) -> Any:
    """The library of this name in a folder of NVIDIA's packages, or of the system; None if there is none."""
    for file in (*_packaged_files(f"{folder}/lib/{name}"), name):
        try:
            return ctypes.CDLL(file)
        except OSError:
            continue
    return None


def _packaged_files(file: str) -> list[str]:
    try:
        nvidia = importlib.import_module("nvidia")
    except ImportError:
        return []
    return [str(found) for place in nvidia.__path__ for found in Path(place).glob(file)]
