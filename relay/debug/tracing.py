"""Traces: what every variable of a program was bound to during a call, in the order in which it happened."""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.api.function import RelayFunction
from relay.calling.checks import arrays_in
from relay.debug.expressions import OpaqueValue, python_value
from relay.debug.places import functions, operators
from relay.debug.programs import Program, program_of
from relay.debug.statistics import Statistics, statistics_of
from relay.errors import ExecutionError, FrontendError
from relay.errors.diagnostic import Span
from relay.eval.interpreter import Machine
from relay.eval.tape import unbox
from relay.eval.values import Closure
from relay.eval.variables import short_text, type_text
from relay.ir.debugging.source_names import function_name
from relay.ir.expr import OpCall, Var
from relay.ir.traverse import all_blocks, bound_variables
from relay.typecheck.elaboration.abstract_values import is_of_template

MEMORY = 256 << 20
"""The bytes that a trace takes by default."""

ROW_BYTES = 700
"""About what a row takes beside its value."""

SHOWN_ROWS = 40
"""The number of rows that a table shows."""


@attrs.frozen(eq=False)
class Row:
    """A variable that was bound: the `number`-th binding of the run, from 0 on. `operator` computed it, "" if none did;
    `function` is where, `depth` calls deep, and `round` tells which value of the variable it is in that call, from 1.
    `value` is what it was bound to; in a trace of statistics there are only these."""

    number: int
    function: str
    name: str
    operator: str
    span: Span | None
    depth: int
    round: int
    type: str
    text: str  # the value in short
    value: Any = None
    statistics: Statistics | None = None

    @property
    def line(self) -> int | None:
        """The line of the user's file."""
        return None if self.span is None else self.span.line

    @property
    def file(self) -> str | None:
        """The user's file."""
        return None if self.span is None else self.span.source.filename

    def record(self) -> dict[str, Any]:
        """The row as a dict: with the numbers of its statistics, or its value."""
        names = ("number", "function", "line", "name", "operator", "depth", "round", "type")
        found = {name: getattr(self, name) for name in names}
        if self.statistics is None:
            return {**found, "value": self.value}
        return {**found, **attrs.asdict(self.statistics)}


Selection: TypeAlias = "str | int | Callable[[Row], Any]"
"""The selection of rows: those of a variable, function or operator of this name, those of a line, or a predicate."""


@attrs.frozen(eq=False)
class TraceDifference:
    """The first rows in which two traces differ, and in what."""

    row: Row | None
    other: Row | None
    what: str

    def __str__(self) -> str:
        row = self.row if self.row is not None else self.other
        assert row is not None
        return f"{row.name} in {row.function}, line {row.line}: {self.what}"


class Trace(Sequence[Row]):
    """The rows of a run. `result` is what the call returned, `error` what stopped it; `dropped` counts the oldest rows
    that the memory had no room for."""

    def __init__(
        self, rows: Sequence[Row], dropped: int = 0, result: Any = None, error: ExecutionError | None = None
    ) -> None:
        self.rows = tuple(rows)
        self.dropped = dropped
        self.result = result
        self.error = error

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        """A row, or for a slice a trace of several."""
        return self._part_of_rows(self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def filter(self, *selections: Selection) -> Trace:
        """The rows that match one of these."""
        _check(selections)
        return self._part_of_rows([row for row in self.rows if _is_wanted(row, selections)])

    def records(self) -> list[dict[str, Any]]:
        """The rows as dicts, for `pandas.DataFrame(trace.records())`."""
        return [row.record() for row in self.rows]

    def save(self, path: str | Path) -> None:
        """Write an .npz file with an array for each of `number`, `function`, `line`, `name`, `operator`, `depth`,
        `round`, `type`; and the statistics likewise, NaN where there is none, or the values as `value_0`, `value_1`, ..
        by the position of the row; a value with several arrays has `value_0.0`, `value_0.1`, .."""
        if not isinstance(path, str | Path):
            raise FrontendError(f"a trace is saved to a path, found {path!r}")
        columns: dict[str, np.ndarray] = {}
        for name in ("number", "function", "name", "operator", "depth", "round", "type"):
            columns[name] = np.array([getattr(row, name) for row in self.rows])
        columns["line"] = np.array([-1 if row.line is None else row.line for row in self.rows])
        if any(row.statistics is not None for row in self.rows):
            for field in ("count", "nan", "infinite", "zero", "smallest", "largest", "mean", "deviation"):
                found = [getattr(row.statistics, field, None) for row in self.rows]
                columns[field] = np.array([np.nan if v is None else v for v in found], np.float64)
        for position, row in enumerate(self.rows):
            arrays = [] if row.value is None else list(arrays_in(row.value))
            for n, array in enumerate(arrays):
                columns[f"value_{position}" + (f".{n}" if len(arrays) > 1 else "")] = array
        try:
            with Path(path).open("wb") as file:
                np.savez(file, **columns)  # type: ignore[arg-type]
        except OSError as error:
            raise FrontendError(f"the trace cannot be written to {path}: {error.strerror}") from None

    def compare(self, other: Trace, tolerance: float = 1e-6) -> TraceDifference | None:
        """The first rows that differ: in the variable, or in a number by more than the tolerance, relative to the
        largest of the value, or to 1. None: they are the same."""
        for row, second in zip(self.rows, other.rows, strict=False):
            if (row.function, row.name, row.operator) != (second.function, second.name, second.operator):
                return TraceDifference(row, second, f"the other one has {second.name} in {second.function} here")
            if row.type != second.type:
                return TraceDifference(row, second, f"{row.type}, and {second.type} in the other one")
            gap = _gap(row, second)
            if gap > tolerance:
                return TraceDifference(row, second, f"{row.text}, and {second.text} in the other one")
        if len(self) != len(other):
            longer = self if len(self) > len(other) else other
            row = longer.rows[min(len(self), len(other))]
            mine, others = (row, None) if longer is self else (None, row)
            return TraceDifference(mine, others, "only one of them has it")
        return None

    def table(self, rows: int = SHOWN_ROWS) -> str:
        """The rows as text; the middle of many is left out."""
        shown = list(self.rows)
        left = len(shown) - rows
        if left > 0:
            shown = [*shown[: rows - rows // 2], *shown[len(shown) - rows // 2 :]]
        head = ["line", "function", "depth", "round", "name", "operator", "type", "value"]
        lines = [head]
        for row in shown:
            value = row.text if row.statistics is None else str(row.statistics).partition(": ")[2]
            place = "" if row.line is None else str(row.line)
            lines.append([place, row.function, str(row.depth), str(row.round), row.name, row.operator, row.type, value])
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        made = [
            "  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        if left > 0:
            made.insert(1 + rows - rows // 2, f".. {left} more ..")
        if self.dropped:
            made.insert(1, f".. {self.dropped} older ones are not kept ..")
        if self.error is not None:
            made.append(f"then: {self.error.message}")
        return "\n".join(made)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<a trace of {len(self)} rows>"

    def _part_of_rows(self, rows: Sequence[Row]) -> Trace:
        return Trace(rows, self.dropped, self.result, self.error)


def trace(
    function: RelayFunction,
    *arguments: Any,
    values: bool | str = True,
    of: Selection | Sequence[Selection] | None = None,
    stage: str | None = None,
    memory: int = MEMORY,
    **keywords: Any,
) -> Trace:
    """Run a call on the interpreter, and record the value of every variable.

    Args:
        function: what `@relay` or `relay.grad` returned.
        arguments, keywords: as a call of it gets them. References among them keep their contents.
        values: True for the values; "statistics" for statistics of their numbers, which take less memory.
        of: what is recorded: a name, of variables, functions or operators; the number of a line; a function that is
            given a row and says whether it is kept; or several of these, of which one has to hold. Default: everything.
        stage: which program is run, as for `relay.debug.step`.
        memory: the bytes that the trace may take; the oldest rows are dropped.

    An error of the program ends the trace, whose `error` it is. Raises whatever the call would raise before it runs.
    """
    if values is not True and values != "statistics":
        raise FrontendError(f'values is True or "statistics", found {values!r}')
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 0:
        raise FrontendError(f"the memory of a trace is a number of bytes, found {memory!r}")
    selections: Sequence[Any] = () if of is None else of if isinstance(of, list | tuple) else (of,)
    _check(selections)
    program = program_of(function, arguments, keywords, stage)
    _check_names([name for name in selections if isinstance(name, str)], program)
    recorder = _Recorder(program, values == "statistics", selections, memory)
    return recorder.run()


def _check(selections: Sequence[Any]) -> None:
    for one in selections:
        if isinstance(one, bool) or not (isinstance(one, str | int) or callable(one)):
            raise FrontendError(f"a name, the number of a line, or a function of a row is selected, found {one!r}")


def _check_names(names: Sequence[str], program: Program) -> None:
    """Raises FrontendError for a name that nothing in a program has."""
    if not names:
        return
    known = set(operators(program.module))
    for variable, origin in _origins(program).items():
        known.update((variable.name, origin.function))
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "trace without `of` to see what there is"
            raise FrontendError(f"the program has no variable, function or operator {name!r}", help=hint)


def _is_wanted(row: Row, selections: Sequence[Any]) -> bool:
    for one in selections:
        if callable(one):
            try:
                if one(row):
                    return True
            except Exception as error:
                what = f"a function that chooses rows raised {type(error).__name__} for {row.name}"
                raise FrontendError(f"{what}: {error}", row.span) from error
        elif one in (row.function, row.name, row.operator) if isinstance(one, str) else one == row.line:
            return True
    return False


def _gap(row: Row, other: Row) -> float:
    """By how much two values, or their statistics, differ, as a part of the largest number; of other things 0 or 1."""
    if row.statistics is not None or other.statistics is not None:
        if row.statistics is None or other.statistics is None:
            return 1.0
        ones, others = (
            [np.array([np.nan if v is None else v for v in attrs.astuple(r.statistics)[:8]])]
            for r in (row, other)
            if r.statistics
        )
    else:
        ones, others = list(arrays_in(row.value)), list(arrays_in(other.value))
    if len(ones) != len(others):
        return 1.0
    largest = 0.0
    for one, second in zip(ones, others, strict=True):
        if one.shape != second.shape:
            return 1.0
        if one.size:
            a, b = one.astype(np.float64), second.astype(np.float64)
            with np.errstate(all="ignore"):
                gaps = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
                scale = max(1.0, float(np.abs(a[np.isfinite(a)]).max(initial=0.0)))
            largest = max(largest, float(np.where(np.isnan(gaps), np.inf, gaps).max()) / scale)
    return largest


@attrs.frozen
class _Origin:
    """The place where a variable is bound."""

    function: str
    operator: str
    span: Span | None


def _origins(program: Program) -> Mapping[Var, _Origin]:
    """The places where the variables of a program are bound."""

    def users(span: Span | None) -> Span | None:
        return None if is_of_template(span) else span

    found: dict[Var, _Origin] = {}
    for function in functions(program.module):
        name = function_name(function)
        for parameter in function.parameters:
            found[parameter] = _Origin(name, "", users(parameter.span or function.span))
        for block in all_blocks(function.body):
            for binding in block.bindings:
                value = binding.value
                span = users(value.span)
                operator = value.operator if isinstance(value, OpCall) else ""
                for target in binding.targets:
                    found[target] = _Origin(name, operator, span)
                for inner in bound_variables(value):
                    found[inner] = _Origin(name, "", users(inner.span or span))
    return found


class _Recorder:
    def __init__(self, program: Program, only_statistics: bool, selections: Sequence[Any], memory: int) -> None:
        self._program = program
        self._only_statistics = only_statistics
        self._selections = selections
        self._memory = memory
        self._origins = _origins(program)
        self._rows: deque[tuple[Row, int]] = deque()
        self._used = self._number = self._dropped = 0
        self._machine = Machine(sizes=program.sizes, names=program.names)

    def run(self) -> Trace:
        """Run the program."""
        recorder = self

        class Environment(dict[Var, object]):
            """The variables of a frame, and how often each was bound."""

            def __init__(self, variables: Mapping[Var, object]) -> None:
                super().__init__(variables)
                self.rounds: dict[Var, int] = {}

            def __setitem__(self, key: Var, value: object) -> None:
                super().__setitem__(key, value)
                round_ = self.rounds[key] = self.rounds.get(key, 0) + 1
                recorder.note(key, value, round_)

            def update(self, changes: Any = (), /, **_: object) -> None:
                for key, value in changes.items() if isinstance(changes, Mapping) else changes:
                    self[key] = value

        program = self._program
        self._machine.environment = Environment
        error = result = None
        try:
            value = self._machine.run(Closure(program.module.main, {}, program.module), program.arguments)
            result = program.result(value)
        except ExecutionError as raised:
            error = raised
        return Trace([row for row, _ in self._rows], self._dropped, result, error)

    def note(self, variable: Var, value: object, round_: int) -> None:
        """A variable gets a value."""
        origin = self._origins.get(variable)
        if origin is None:
            return
        value = unbox(value)
        depth = len(self._machine.frames)
        row = Row(
            self._number,
            origin.function,
            variable.name,
            origin.operator,
            origin.span,
            depth,
            round_,
            type_text(value),
            "",
        )
        self._number += 1
        kept = python_value(value)
        statistics = None if isinstance(kept, OpaqueValue) or not self._only_statistics else statistics_of(kept)
        row = attrs.evolve(
            row, text=short_text(value), value=None if self._only_statistics else kept, statistics=statistics
        )
        if self._selections and not _is_wanted(row, self._selections):
            return
        cost = ROW_BYTES
        if not self._only_statistics and not isinstance(kept, OpaqueValue):
            cost += sum(array.nbytes + 100 for array in arrays_in(kept))
        self._rows.append((row, cost))
        self._used += cost
        while self._used > self._memory and len(self._rows) > 1:
            self._used -= self._rows.popleft()[1]
            self._dropped += 1
