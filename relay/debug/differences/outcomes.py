"""Outcomes of runs: what a program returns, or the error that stops it, and by how much two of them differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.errors import ExecutionError, FrontendError, InternalError, RelayError
from relay.eval.interpreter import Machine, accept
from relay.eval.sizes import sizes_of
from relay.eval.tape import unbox
from relay.eval.values import Closure, Data, Reference, Stack, map_leaves
from relay.ir.expr import Module

TOLERANCES: Mapping[str, float] = {"float64": 1e-10, "float32": 1e-5, "float16": 4e-3, "bfloat16": 2.0**-5}
"""By how much floats may differ, by their dtype, relative to the largest number of the array, or to 1 if that is more:
what rounding in another order does to sums of some thousand terms."""

FAILURES = (RelayError, InternalError)
"""The exceptions of a run, a pass or code generation."""

Tolerance: TypeAlias = "float | Mapping[str, float] | None"
"""One for all dtypes, or by dtype; None: `TOLERANCES`."""

Leaf: TypeAlias = "np.ndarray | str"
"""An array, or the name of a constructor."""

Path: TypeAlias = "tuple[Path, str] | None"
"""The place of a leaf in a value, from the end on."""

ENDLESS = 20
"""The multiple of the reference's steps after which a run counts as endless."""


@attrs.frozen(eq=False)
class Outcome:
    """The outcome of a run: its result and the contents of its arguments afterwards, or the error that stopped it.
    `steps` are those of the interpreter."""

    value: object = None
    held: tuple[object, ...] = ()
    error: RelayError | InternalError | None = None
    steps: int = 0

    def leaves(self) -> Iterator[tuple[Path, Leaf]]:
        """The arrays and constructors, in order, with where they are."""
        yield from leaves_of("result", self.value)
        for position, value in enumerate(self.held):
            if holds_cells(value):
                yield from leaves_of(f"argument {position}", value)


@attrs.frozen(eq=False)
class Deviation:
    """The largest difference of two outcomes: at `index` of the array at `path`. `excess` is that as a multiple of
    what is allowed, so they differ if it is more than 1. `what` describes a difference that is not one of numbers."""

    difference: float = 0.0
    excess: float = 0.0
    path: Path = None
    index: tuple[int, ...] = ()
    found: Any = None
    expected: Any = None
    what: str = ""

    @property
    def differs(self) -> bool:
        """True if it is more than allowed."""
        return self.excess > 1

    @property
    def place(self) -> str:
        """The place: `result.0`."""
        return path_text(self.path)


def path_text(path: Path) -> str:
    """A path as text; the middle of a long one is left out."""
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(part)
    parts.reverse()
    return "".join([*parts[:6], "..", *parts[-3:]] if len(parts) > 10 else parts)


def leaves_of(name: str, value: object) -> Iterator[tuple[Path, Leaf]]:
    """The arrays and constructors of a run-time value, in order. It may be of any depth; the content of a reference
    is visited once."""
    pending: list[tuple[Path, object]] = [((None, name), value)]
    seen: set[int] = set()
    while pending:
        path, current = pending.pop()
        parts: Sequence[tuple[str, object]] = ()
        match current:
            case tuple():
                parts = [(f".{i}", part) for i, part in enumerate(current)]
            case Stack() | list():
                items = current.buffer[: current.length] if isinstance(current, Stack) else current
                yield (path, ".length"), np.array(len(items))
                parts = [(f"[{i}]", part) for i, part in enumerate(items)]
            case Reference(content):
                if id(current) not in seen:
                    seen.add(id(current))
                    parts = [("", content)]
            case Data(definition, constructor, fields):
                yield path, constructor
                names = next(c.names for c in definition.constructors if c.name == constructor)
                parts = [(f".{names[i] if names else i}", part) for i, part in enumerate(fields)]
            case None:
                pass
            case _:
                yield path, np.asarray(current)
        pending += [((path, part), item) for part, item in reversed(parts)]


def holds_cells(value: object) -> bool:
    """True if a value contains references, or lists: objects that a run may change."""
    pending = [value]
    while pending:
        match pending.pop():
            case Reference() | Stack():
                return True
            case tuple() as parts:
                pending += parts
            case Data(fields=parts):
                pending += parts
            case _:
                pass
    return False


def copy_values(values: Sequence[object]) -> list[object]:
    """The values with references and lists of their own. What the values share, the copies share."""
    made: dict[int, Reference] = {}
    kept: list[object] = []

    def leaf(value: object) -> object:
        match value:
            case Stack(buffer, length):
                return Stack([copy_value(item) for item in buffer[:length]], length)
            case Reference(content, outside) if id(value) not in made:
                kept.append(value)
                made[id(value)] = cell = Reference(None, outside)
                cell.content = copy_value(content)
                return cell
            case Reference():
                return made[id(value)]
            case _:
                return value

    def copy_value(value: object) -> object:
        return map_leaves(value, leaf) if isinstance(value, tuple | Data) else leaf(value)

    return [copy_value(value) if holds_cells(value) else value for value in values]


def interpreted_outcome(module: Module, arguments: Sequence[object], limit: float = math.inf) -> Outcome:
    """The outcome of a program on the interpreter, in at most `limit` steps. It takes at most `limit` steps."""
    given = copy_values(arguments)
    steps = 0
    try:
        values = accept(module.main, given)
        machine = Machine(sizes=sizes_of(module, module.main, values))
        with np.errstate(all="ignore"):
            machine.enter(Closure(module.main, {}, module), values)
            while machine.frames:
                machine.step()
                steps += 1
                if steps > limit:
                    raise ExecutionError(f"it does not end: {steps} steps and more", module.main.span)
        return Outcome(unbox(machine.result), tuple(given), steps=steps)
    except FAILURES as error:
        return Outcome(error=error, steps=steps)
    except Exception as error:  # of NumPy's, where a program is not well formed
        return Outcome(error=InternalError(f"{type(error).__name__}: {error}", module.main.span), steps=steps)


def allowed_error(tolerance: Tolerance, dtype: str) -> float | None:
    """The tolerance for a dtype; None for dtypes that must be equal."""
    if dtype not in TOLERANCES:
        return None
    if tolerance is None:
        return TOLERANCES[dtype]
    return tolerance.get(dtype, TOLERANCES[dtype]) if isinstance(tolerance, Mapping) else tolerance


def check_tolerance(tolerance: object) -> None:
    """Raises FrontendError for an invalid tolerance."""
    given = tolerance if isinstance(tolerance, Mapping) else {} if tolerance is None else {"float64": tolerance}
    for dtype, number in given.items():
        if dtype not in TOLERANCES:
            raise FrontendError(f"there is no tolerance for {dtype!r}", help=f"dtypes are {', '.join(TOLERANCES)}")
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise FrontendError(f"a tolerance is a number that is not negative, found {number!r}")


def compare(found: Outcome, expected: Outcome, tolerance: Tolerance) -> Deviation:
    """The largest difference of two outcomes. Errors of the same class are the same."""
    if found.error is not None or expected.error is not None:
        if type(found.error) is type(expected.error):
            return Deviation()
        return Deviation(math.inf, math.inf, what=f"{_outcome_text(found)} instead of {_outcome_text(expected)}")
    largest = Deviation()
    pairs = zip(_with_end(found.leaves()), _with_end(expected.leaves()), strict=False)
    for (path, one), (other_path, other) in pairs:
        if one is None or other is None:
            if one is not other:
                there = path if other is None else other_path
                what = "more parts" if other is None else "fewer parts"
                return Deviation(math.inf, math.inf, there, what=what)
            break
        deviation = _of_leaves(one, other, other_path, tolerance)
        if deviation.excess == math.inf and deviation.what:
            return deviation
        if (deviation.excess, deviation.difference) > (largest.excess, largest.difference):
            largest = deviation
    return largest


def _outcome_text(outcome: Outcome) -> str:
    return "a result" if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error.message}"


def _with_end(leaves: Iterator[tuple[Path, Leaf]]) -> Iterator[tuple[Path, Leaf | None]]:
    yield from leaves
    yield None, None


def _of_leaves(found: Leaf, expected: Leaf, path: Path, tolerance: Tolerance) -> Deviation:
    if isinstance(found, str) or isinstance(expected, str):
        if isinstance(found, str) and found == expected:
            return Deviation()
        return Deviation(math.inf, math.inf, path, (), found, expected, f"{found} instead of {expected}")
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        types = [f"{a.dtype} {a.shape}" for a in (found, expected)]
        return Deviation(math.inf, math.inf, path, (), found, expected, f"{types[0]} instead of {types[1]}")
    if not found.size:
        return Deviation()
    relative = allowed_error(tolerance, found.dtype.name)
    with np.errstate(all="ignore"):
        if found.dtype.kind in "iu":  # exactly: int64 has more digits than float64
            gap = np.maximum(found, expected) - np.minimum(found, expected)
            differences = gap.view(gap.dtype.str.replace("i", "u")).astype(np.float64)
            scale = 1.0
        else:
            one, other = found.astype(np.float64), expected.astype(np.float64)
            same = (one == other) | (np.isnan(one) & np.isnan(other))
            differences = np.where(same, 0.0, np.abs(one - other))
            differences = np.where(np.isnan(differences), math.inf, differences)
            finite = np.abs(other[np.isfinite(other)])
            scale = max(1.0, float(finite.max(initial=0.0)))
    flat = int(np.argmax(differences))
    largest = float(differences.reshape(-1)[flat])
    if largest == 0.0:
        return Deviation()
    limit = 0.0 if relative is None else relative * scale
    excess = largest / limit if limit else math.inf
    index = tuple(int(i) for i in np.unravel_index(flat, found.shape))
    return Deviation(largest, excess, path, index, found[index], expected[index])
