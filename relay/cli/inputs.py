"""Inputs of the commands: programs as text, arrays by name, and functions of files."""

from __future__ import annotations

import difflib
import re
import runpy
import traceback
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from relay.api.function import RelayFunction
from relay.cli.arrays import Arrays
from relay.cli.refusal import Refusal
from relay.compilation.entries import EntryError, with_entry
from relay.errors import FrontendError, RelayError
from relay.frontend.static.text_files import read_bytes
from relay.ir.expr import Module, Var
from relay.ir.types import Type, show
from relay.ir.validation.check_surface import is_untyped
from relay.text.parser import parse
from relay.text.type_parser import parse_types


def read_program(name: str) -> Module:
    """The program in a file of Relay's notation; large constants may be in the .npz file of the same name.

    Raises Refusal if it cannot be read or is untyped, FrontendError or TypeCheckError for a mistake in it.
    """
    module = check_program(name)
    if is_untyped(module):
        raise Refusal(f"{name} is untyped: `relay show FILE.py:FUNCTION --stage typed` prints a typed program")
    return module


def enter(module: Module, name: str) -> Module:
    """The module with another entry. Raises Refusal for a function that cannot be one."""
    try:
        return with_entry(module, name)
    except EntryError as reason:
        raise Refusal(str(reason)) from None


def check_program(name: str) -> Module:
    """As `read_program`, also of an untyped program."""
    path = Path(name)
    try:
        text = read_bytes(path).decode("utf-8-sig")  # some editors mark UTF-8
    except OSError as error:
        raise Refusal(f"cannot read {name}: {_reason(error)}") from None
    except UnicodeDecodeError as error:
        raise Refusal(f"cannot read {name}: it is not text in UTF-8, from byte {error.start} on") from None
    beside = path.with_suffix(".npz")
    return parse(text, name, constants=read_arrays(str(beside)) if beside.is_file() else None)


def read_arrays(name: str) -> Mapping[str, np.ndarray]:
    """The arrays of an .npz file. Raises Refusal if it is none."""
    try:
        with Path(name).open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                raise Refusal(f"{name} holds one array without a name, and is not an .npz file")
            return {key: found[key] for key in found.files}
    except OSError as error:
        raise Refusal(f"cannot read {name}: {_reason(error)}") from None
    except (ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        raise Refusal(f"{name} is not an .npz file, or is incomplete, or holds Python objects") from None


def read_function(where: str) -> RelayFunction:
    """The decorated function at FILE.py:FUNCTION, whose file is imported. Raises Refusal if there is none."""
    file, colon, name = where.rpartition(":")
    if not colon or not Path(file).is_file():
        raise Refusal(f"{where} is not FILE.py:FUNCTION with a file that exists")
    try:
        names = runpy.run_path(file, run_name="<relay show>")
    except RelayError:
        raise
    except (Exception, SystemExit) as error:
        last = (traceback.extract_tb(error.__traceback__) or [None])[-1]
        place = f"{file}:{last.lineno}" if last is not None and last.filename == file else file
        said = " ".join(traceback.format_exception_only(error)[-1].split())
        raise Refusal(f"{place} cannot be imported: {said}") from None
    value = names.get(name)
    if not isinstance(value, RelayFunction):
        known = [n for n, v in names.items() if isinstance(v, RelayFunction)]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(known)}" if known else ""
        raise Refusal(f"{file} has no decorated function {name!r}{hint}")
    return value


def read_types(text: str) -> list[Type]:
    """Types with commas between them. Raises Refusal for what is none."""
    try:
        return list(parse_types(text, "--types"))
    except FrontendError as error:
        raise Refusal(f"--types: {error.message}") from None


def arguments_for(parameters: Sequence[Var], arrays: Mapping[str, np.ndarray], file: str) -> list[object]:
    """The parameters' values from arrays by name, by the rules of `relay.eval.named_arrays`. Raises Refusal."""
    reading = Arrays(arrays, file)
    try:
        found = [reading.value(p.name, p.type) for p in parameters]
    except RecursionError:
        raise Refusal(f"the data in {file} is nested too deeply") from None
    for name in sorted(set(arrays) - reading.used):
        types = {p.name: p.type for p in parameters if p.type is not None}
        type_ = types.get(re.split(r"[.\[]", name)[0])
        if type_ is not None:
            raise Refusal(f"{file}: {name!r} is the name of no part of a parameter of type {show(type_)}")
        raise Refusal(f"{file}: the program has no parameter {name!r}; {_list(parameters)}")
    return found


def _list(parameters: Sequence[Var]) -> str:
    return f"it has {', '.join(p.name for p in parameters)}" if parameters else "it has none"


def _reason(error: OSError) -> str:
    """The reason of an error on one line."""
    return " ".join((error.strerror or str(error)).split())
