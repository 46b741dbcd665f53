"""Compiled against interpreted: where a compiled program goes wrong first, and what made it so.

the call      compiled, and interpreted: if they agree, that is all
the passes    the interpreter runs the program after each of them: the first after which it differs is named
the kernels   if none does, pieces of the last program are compiled by themselves
the line      the first value that differs (`search`), in the smallest program that shows it (`reduction`)
"""

from __future__ import annotations

import contextlib
import copy
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from relay.api.function import RelayFunction
from relay.api.gradient_check import wrong_gradient
from relay.compilation.stages import CompiledSignature
from relay.debug.differences.gradient_rules import wrong_rule
from relay.debug.differences.introduction import Cause, find_cause, kernel_cause, native_runner
from relay.debug.differences.outcomes import (
    FAILURES,
    Deviation,
    Outcome,
    Tolerance,
    check_tolerance,
    compare,
    interpreted_outcome,
)
from relay.debug.differences.reduction import ReducedPiece, Reduction
from relay.debug.differences.reproduction import directory_for, write
from relay.debug.differences.search import Change, Comparison, Search
from relay.debug.programs import program_of
from relay.errors import ExecutionError, FrontendError
from relay.errors.diagnostic import Diagnostic, Span
from relay.eval.sizes import sizes_of
from relay.eval.values import map_leaves
from relay.ir.definition import DerivedDefinition, primal
from relay.ir.expr import Call, Expr, If, Loop, Match, Module, OpCall


@attrs.frozen(eq=False)
class Difference:
    """The result of `relay.debug.diff`. `differs`: True if the compiled call gives another result than the interpreter.

    `differs`: whether the compiled call gives something else than the interpreter. `largest` is the largest difference
    of two numbers in the results, at `index` of the array at `place`, where `found` is compiled and `expected` the
    reference; `what` describes a difference that is not one of numbers. If they differ and the first value that does is
    known, these are about it instead: the variable `binding`, computed by `operator` in `function`, at `span`, reached
    by `way`. `cause` made the difference, and `reproduction` is a Python file that shows it. `gradient` describes the
    error of a gradient on which both agree, if finite differences show one, and `rounding` is the change of the result
    if the arguments change by a rounding.
    """

    differs: bool
    largest: float
    place: str
    index: tuple[int, ...]
    found: Any
    expected: Any
    what: str = ""
    binding: str | None = None
    operator: str | None = None
    function: str = ""
    span: Span | None = None
    way: tuple[str, ...] = ()
    cause: Cause | None = None
    reproduction: Path | None = None
    gradient: str | None = None
    rounding: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> int | None:
        """The line of the user's file."""
        return None if self.span is None else self.span.line

    def diagnostic(self) -> Diagnostic:
        """The finding as a message with the line of the program."""
        name = self.function
        at = f" at {list(self.index)}" if self.index else ""
        if not self.differs:
            said = (
                f"the largest difference is {self.largest:.3g}{at} of {self.place}" if self.largest else "no difference"
            )
            message = f"{name}: compiled as interpreted: {said}"
            notes = [] if self.gradient is None else [f"but the gradient is wrong: {self.gradient}"]
            return Diagnostic("note", message, self.span if self.gradient else None, notes=(*notes, *self.notes))
        if self.binding is None:
            message = f"{name} gives another result when compiled{': ' * bool(self.place)}{self.place}{at}"
        else:
            by = f", by {self.operator}," if self.operator else ""
            message = f"the first value that differs is {self.binding}{by} in {name}{at and ':'}{at}"
        notes = [self.what] if self.what else [f"found {self.found}, expected {self.expected}: {self.largest:.3g} off"]
        notes += [", ".join(self.way)] * bool(self.way)
        if self.cause is not None:
            notes.append(f"introduced by {self.cause}")
        if self.rounding and self.rounding >= self.largest:
            notes.append(f"a rounding of the arguments changes the result by {self.rounding:.3g}: it may be rounding")
        notes += self.notes
        help = None if self.reproduction is None else f"python {self.reproduction}"
        return Diagnostic("note", message, self.span, notes=tuple(notes), help=help)

    def __str__(self) -> str:
        return self.diagnostic().render()


def diff(
    function: RelayFunction,
    *arguments: Any,
    tolerance: Tolerance = None,
    directory: str | Path | None = None,
    **keywords: Any,
) -> Difference:
    """Compare a compiled call with the interpreter, and find the first value that differs, and why.

    Args:
        function: what `@relay` or `relay.grad` returned.
        arguments, keywords: as a call of it gets them. References among them keep their contents.
        tolerance: by how much floats may differ, relative to the largest number of their array, or to 1 if that is
            more; a number, or one for each dtype by its name. Default: float64 1e-10, float32 1e-5, float16 4e-3,
            bfloat16 3e-2. Everything else has to be the same.
        directory: where the reproduction is written; default: a new one for temporary files.

    What the program prints is not shown. Raises what the call would raise before it runs.
    """
    if not isinstance(function, RelayFunction):
        raise FrontendError(
            f"diff takes a decorated function, found {type(function).__name__}", help="debug.diff(f, x)"
        )
    check_tolerance(tolerance)
    signature, values = function.prepare_call(arguments, keywords, as_called=True)
    with contextlib.redirect_stdout(io.StringIO()):
        expected = interpreted_outcome(signature.typed, values)
        found = _compiled_outcome(signature, values)
        deviation = compare(found, expected, tolerance)
        if not deviation.differs:
            gradient, span = _gradient(function, arguments, keywords)
            notes = () if expected.error is None else (f"both end with an error: {expected.error.message}",)
            return _result(signature, deviation, gradient=gradient, span=span, notes=notes)
        if expected.error is not None and isinstance(expected.error, ExecutionError) and expected.error.failed_operator:
            error = expected.error
            blamed = Cause("reference", str(error.failed_operator), level=signature.level)
            return _result(signature, deviation, cause=blamed, operator=blamed.name, span=error.span)
        cause, change = find_cause(signature, values, expected, tolerance)
        rounding = _rounding(signature.typed, values, expected)
        if cause.before is None:
            return _result(signature, deviation, cause=cause, rounding=rounding)
        return _located_difference(signature, values, deviation, cause, change, tolerance, directory, rounding)


def _compiled_outcome(signature: CompiledSignature, values: Sequence[object]) -> Outcome:
    try:
        program = signature.program
    except FAILURES as error:
        return Outcome(error=error)
    if signature.donated:  # what it overwrites is not the caller's
        values = [map_leaves(v, lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf) for v in values]
    return native_runner(program)(values)


def _located_difference(
    signature: CompiledSignature,
    values: Sequence[object],
    deviation: Deviation,
    cause: Cause,
    change: Change,
    tolerance: Tolerance,
    directory: str | Path | None,
    rounding: float,
) -> Difference:
    """The difference with the first value that differs, and its reproduction."""
    module = cause.before
    assert module is not None
    comparison = Comparison(change, tolerance)
    sizes = sizes_of(module, module.main, values)
    search = Search(module, sizes, comparison)
    found = search.run(values)
    reduced = None if found is None else Reduction(module, sizes, comparison).run(search, found)
    whole = search.whole_program(values)
    if reduced is None and comparison.deviation(whole) is not None:
        reduced = ReducedPiece(whole, deviation)
    notes: tuple[str, ...] = ()
    if reduced is None:
        notes = ("no part of it differs by itself",)
    elif cause.kind == "code":
        cause = kernel_cause(cause, reduced.piece.module)
    path = None
    if reduced is not None:
        try:
            path = write(reduced.piece, cause, tolerance, directory_for(directory, module.main.name), module.main.name)
        except FrontendError as error:
            notes = (*notes, error.message)
    if found is None:
        return _result(signature, deviation, cause=cause, reproduction=path, rounding=rounding, notes=notes)
    binding = found.binding
    return _result(
        signature,
        found.deviation,
        binding=binding.targets[0].name,
        operator=_kind(binding.value),
        function=found.way.function,
        span=binding.value.span or module.main.span,
        way=found.way.words,
        cause=cause,
        reproduction=path,
        rounding=rounding,
        notes=notes,
    )


def _result(signature: CompiledSignature, deviation: Deviation, **others: Any) -> Difference:
    main = signature.typed.main
    others = {"function": main.name, "span": main.span, **others}
    return Difference(
        deviation.differs,
        deviation.difference,
        deviation.place,
        deviation.index,
        deviation.found,
        deviation.expected,
        deviation.what,
        **others,
    )


def _kind(value: Expr) -> str:
    match value:
        case OpCall(operator):
            return operator
        case Loop():
            return "a loop"
        case If() | Match():
            return "a branch"
        case Call(function):
            return f"a call of {getattr(function, 'name', 'a function')}"
        case _:
            return type(value).__name__


def _gradient(
    function: RelayFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[str | None, Span | None]:
    """The error of a derivative's gradient by finite differences, None if it is right or they cannot tell, and the
    place of the rule that is wrong, or of the function."""
    definition = function.__relay__
    if not isinstance(definition, DerivedDefinition) or keywords:
        return None, function._function.span
    plain = RelayFunction(primal(definition), attrs.evolve(function._options, check=None))
    given = copy.deepcopy(arguments[: len(plain._function.parameters)])
    try:
        wrong = wrong_gradient(plain, *given)
        if wrong is None:
            return None, None
        rule = wrong_rule(program_of(plain, given, {}, "typed"))
    except FAILURES:
        return None, None
    if rule is not None:
        return f"{wrong.message}; the rule of {rule.operator} is wrong, by {rule.error:.2g}", rule.span
    return wrong.message, plain._function.span


def _rounding(module: Module, values: Sequence[object], expected: Outcome) -> float:
    """By how much the result changes if the floats of the arguments do by a rounding. Whole numbers are taken to be
    exact."""
    rng = np.random.default_rng(0)

    def moved_value(value: object) -> object:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            return value
        step = float(np.finfo(value.dtype).eps)
        changed = value * (1 + step * rng.choice((-1.0, 1.0), value.shape))
        return np.asarray(np.where(value == np.round(value), value, changed)).astype(value.dtype)

    trials = [interpreted_outcome(module, [map_leaves(value, moved_value) for value in values]) for _ in range(2)]
    difference = min(compare(outcome, expected, 0.0).difference for outcome in trials)
    return difference if math.isfinite(difference) else 0.0
