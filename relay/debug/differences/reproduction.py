"""The reproduction of a difference: a standalone Python file with the program, and a file of arrays with its
arguments."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np

from relay.debug.differences.definitions import definitions_of
from relay.debug.differences.introduction import Cause
from relay.debug.differences.outcomes import TOLERANCES, Tolerance, allowed_error
from relay.debug.differences.pieces import Piece
from relay.errors import FrontendError
from relay.eval.named_arrays import arrays_of
from relay.ir.expr import Module
from relay.ir.rebuild import copy_function
from relay.text.printer import to_text
from relay.transform.core.rebuilding import with_functions

_SCRIPT = '''\
"""{title}

The program stands below, its arguments in {arrays}. This prints by how much its result differs from that of the
reference interpreter, and exits with 1 if that is too much.
"""

import copy
import sys
from pathlib import Path

import numpy as np

from relay.cli.inputs import arguments_for, read_arrays
from relay.debug.differences.outcomes import Outcome, compare
from relay.eval import interpreter
from relay.text.parser import parse
{imports}{definitions}
PROGRAM = r"""
{program}
"""

module = parse(PROGRAM)
file = str(Path(__file__).with_suffix(".npz"))
arguments = arguments_for(module.main.parameters, read_arrays(file), file)

expected = interpreter.run(module, copy.deepcopy(arguments))
{run}
print("expected:", expected)
print("found:   ", found)
difference = compare(Outcome(found), Outcome(expected), {tolerance})
print("difference:", difference.what or difference.difference, "at", list(difference.index), "of", difference.place)
sys.exit(int(difference.differs))
'''

_COMPILED = ("from relay.codegen.runtime.cpu import compile_module\n", "found = compile_module(module)(arguments)")
_PASSED = (
    "from relay.transform.pipeline import Pipeline\n",
    "for step in Pipeline.for_level({level}).passes[{position}:{end}]:  # {name}\n"
    "    module = step(module)\n"
    "found = interpreter.run(module, arguments)",
)


def directory_for(given: str | Path | None, name: str) -> Path:
    """The directory for reproductions, which is created. Raises FrontendError if it cannot be."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix=f"relay-diff-{name}-"))
    path = Path(given)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FrontendError(f"the directory {given} cannot be made: {error.strerror}") from None
    return path


def write(piece: Piece, cause: Cause, tolerance: Tolerance, directory: Path, name: str) -> Path:
    """Write the files; the path of the one that is run. Raises FrontendError if that is not possible."""
    module = _name_parameters(piece.module)
    path = directory / f"{re.sub('[^A-Za-z0-9_]', '_', name)}.py"
    found: dict[str, np.ndarray] = {}
    for parameter, value in zip(module.main.parameters, piece.arguments, strict=True):
        found.update(arrays_of(parameter.name, value))
    imports, run = _COMPILED if cause.kind != "pass" else _PASSED
    run = run.format(level=cause.level, position=cause.position - 1, end=cause.position, name=cause.name)
    definitions = definitions_of(module)
    script = _SCRIPT.format(
        title=_title(cause),
        arrays=path.with_suffix(".npz").name,
        imports=imports,
        definitions=f"\n{definitions}\n" if definitions else "",
        program=to_text(module, sources=True).replace('"""', "'''"),
        run=run,
        tolerance=repr({dtype: allowed_error(tolerance, dtype) for dtype in TOLERANCES}),
    )
    try:
        path.write_text(script, encoding="utf-8")
        with path.with_suffix(".npz").open("wb") as file:
            np.savez(file, **found)  # type: ignore[arg-type]
    except (OSError, RecursionError) as error:
        raise FrontendError(f"the reproduction cannot be written to {directory}: {error}") from None
    return path


def _title(cause: Cause) -> str:
    if cause.kind == "pass":
        return f"A program that gives another answer after the pass {cause.name}."
    return "A program whose compiled code gives another answer than the reference interpreter."


def _name_parameters(module: Module) -> Module:
    """The module with parameters of different names, by which the arrays are found."""
    main = module.main
    copy = copy_function(main)
    taken: set[str] = set()
    for parameter in copy.parameters:
        base = parameter.name = re.sub("[^A-Za-z0-9_]", "_", parameter.name) or "x"
        count = 1
        while parameter.name in taken:
            count += 1
            parameter.name = f"{base}_{count}"
        taken.add(parameter.name)
    return with_functions(module, {**module.functions, main.name: copy})
