"""Random programs whose functions change what they are given do what Python does, or are refused."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from generators.changing_programs import ChangingProgram, arguments
from matrix import SEED, everything

import relay as rl

COUNT = 400 if everything() else 6
FIRST = SEED * 1000


def _module(path: Path, text: str) -> ModuleType:
    path.write_text("import numpy as np\n" + text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _plain(value: Any) -> Any:
    """A value in which numbers, arrays and objects are Python's floats, lists and dicts."""
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    is_object = hasattr(value, "v") and not isinstance(value, np.ndarray)
    return [_plain(value.a), _plain(value.v)] if is_object else np.asarray(value, float).tolist()


def _outcome(function: Any, given: list[Any]) -> Any:
    """What a function gives; the class of its error."""
    try:
        return _plain(function(*given))
    except (IndexError, ValueError) as error:
        return next(cls for cls in (IndexError, ValueError) if isinstance(error, cls))


@pytest.mark.parametrize("number", range(COUNT))
def test_a_program_gives_what_python_gives_or_is_refused(number: int, tmp_path: Path) -> None:
    text = ChangingProgram(FIRST + number).text
    module = _module(tmp_path / f"changing{number}.py", text)
    function = rl.relay(module.f)
    for size in (2, 3):
        given = [[True, 2, *arguments(module.Box, size)] for _ in range(3)]
        expected = _outcome(module.f, given[0])
        try:
            assert _outcome(function.interpret, given[1]) == expected, text
            if number % 3 == 0:
                assert _outcome(function, given[2]) == expected, text
        except rl.InternalError:
            raise
        except (rl.TypeCheckError, rl.FrontendError):
            return
