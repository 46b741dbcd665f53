"""The errors: `RelayError` and its subclasses are the user's mistakes, `InternalError` is ours.

A program may have several mistakes that do not follow from each other. They are raised together, in the order in which
they were found, as one error: it is the first one, and `error.diagnostics` has all.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from relay.errors.diagnostic import Diagnostic, Label, Source, Span

__all__ = [
    "CompileError",
    "Diagnostic",
    "DifferentiationError",
    "ExecutionError",
    "FrontendError",
    "InternalError",
    "Label",
    "MachineCodeError",
    "RegistrationError",
    "RelayError",
    "RelayWarning",
    "ShapeError",
    "Source",
    "Span",
    "TypeCheckError",
    "TypeMismatch",
    "together",
]


class RelayError(Exception):
    """A mistake in the user's program or call. `str()` is the whole diagnostic, and those of the `further` errors.

    Args:
        message: what was found and what was expected, in the user's vocabulary.
        span: the place, where there is one.
        labels: further places that explain it.
        notes: facts, one a line.
        help: the fix, where one is known.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        labels: tuple[Label, ...] = (),
        notes: tuple[str, ...] = (),
        help: str | None = None,
    ) -> None:
        Exception.__init__(self, message)  # that of a class which a program raises is not asked
        self.message = message
        self.span = span
        self.labels = labels
        self.notes = notes
        self.help = help
        self.further: tuple[RelayError, ...] = ()
        self.at_run_time: str | None = None  # see `wherever_it_runs`
        self.in_color = False  # set while the traceback is printed to a terminal

    def __str__(self) -> str:
        return "\n\n".join(diagnostic.render(color=self.in_color) for diagnostic in self.diagnostics)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """This error and the others of the same check."""
        own = Diagnostic("error", self.message, self.span, self.labels, self.notes, self.help, type(self).__name__)
        return (own, *(diagnostic for error in self.further for diagnostic in error.diagnostics))

    def wherever_it_runs(self, message: str | None = None) -> Self:
        """The same error, of an operation that fails wherever it runs: an index that a tuple does not have. In a
        program that catches errors it is one of them, with this message."""
        self.at_run_time = message or self.message
        return self

    def with_span(self, span: Span | None) -> RelayError:
        """The same error placed at `span`, unless it has a place already."""
        if self.span is None:
            self.span = span
        return self


def combine_errors(errors: Iterable[RelayError]) -> RelayError:
    """One error for several: the first one, which carries the others. Each place is reported once.

    Raises ValueError if there is none.
    """
    found: list[RelayError] = []
    for error in errors:
        found += (error, *error.further)
        error.further = ()
    places: set[object] = set()
    kept = []
    for error in found:
        span = error.span
        place = (error.message, None) if span is None else (span.source.filename, span.line, span.column)
        if place not in places:
            places.add(place)
            kept.append(error)
    if not kept:
        raise ValueError("no errors")
    first, *others = kept
    first.further = tuple(others)
    return first


class FrontendError(RelayError):
    """A Python construct that Relay does not have, or a name that means nothing."""


class TypeCheckError(RelayError):
    """The program has no type. `needs_value`: it would have one if a number were static."""

    needs_value = False
    needed: tuple[object, ...] = ()
    """The atoms and sizes whose values are needed, where the error tells."""

    def needing_value(self, *needed: object) -> TypeCheckError:
        """This error, as one that a known number would avoid: the value of these atoms."""
        self.needs_value, self.needed = True, needed
        return self


class TypeMismatch(TypeCheckError):
    """Two types, or a type and what an operator accepts, differ. Type relations raise it."""


class ShapeError(TypeMismatch):
    """Two shapes differ, or a shape is not one that an operator accepts. Shape rules raise it."""


class DifferentiationError(RelayError):
    """A derivative was asked for that does not exist."""


class CompileError(RelayError):
    """A valid program that the chosen target cannot run."""


class ExecutionError(RelayError):
    """The program failed while it ran: a division by zero, an index out of range, an assertion.

    `backtrace`: of a program that was interpreted the calls that led there, the innermost last, each with `function`,
    `span` and `variables`; these have `name`, `type` and `value`, all as text. `failed_operator`: the operator whose
    reference on NumPy arrays raised something, or returned another shape than its type says. `raised`: the class for
    which `except` in a program asks; None for errors that a program cannot catch, such as too little memory.
    """

    raised: type[Exception] | None = None
    backtrace: tuple[Any, ...] = ()
    failed_operator: str | None = None


class RegistrationError(RelayError):
    """An operator's definition is incomplete or contradicts itself; nothing was registered."""


class InternalError(Exception):
    """A bug of Relay's own, not the user's mistake; the message says so. It is not the user's mistake, and says so;
    `span` is the source that was being compiled."""

    def __init__(self, message: str, span: Span | None = None, *, labels: tuple[Label, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.labels = labels
        self.help = REPORT

    def __str__(self) -> str:
        message = f"this is a bug in Relay, not in your program: {self.message}"
        return Diagnostic("error", message, self.span, self.labels, help=self.help).render()

    def with_span(self, span: Span | None) -> InternalError:
        """The same error placed at `span`, unless it has a place already."""
        if self.span is None:
            self.span = span
        return self


class RelayWarning(UserWarning):
    """A program runs in another way than it was asked to."""


REPORT = "please report it, with the program and the whole traceback"
"""The advice for users about a bug."""


class Signal(Exception):
    """Messages between parts of Relay that are raised: neither a mistake nor a bug."""


_BUGS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, NameError, NotImplementedError, RecursionError),
    *(StopIteration, TypeError, ValueError),
)
"""The exceptions that Python raises where a program does not do what its author meant. Interrupts, exhausted memory,
failing files and warnings are not bugs."""


@contextlib.contextmanager
def bugs_of(phase: str, place: Callable[[], Span | None]) -> Iterator[None]:
    """While a phase works on a user's program: what it was not meant to raise is an InternalError at that place."""
    try:
        yield
    except InternalError as error:
        error.with_span(place())
        raise
    except (RelayError, Signal):
        raise
    except _BUGS as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise InternalError(f"{what}, in {phase}", place()) from error


class MachineCodeError(InternalError):
    """Compiled code gives other numbers than the operators' references on this processor: Relay, TVM or LLVM is at
    fault. Only `RELAY_VERIFY=1` looks for it."""

    def __str__(self) -> str:
        processor = platform.processor() or platform.machine()
        help = f"please report it, with the program, this message and the processor ({processor}); `interpret` is right"
        return Diagnostic("error", f"wrong machine code: {self.message}", self.span, help=help).render()


@contextlib.contextmanager
def refusals_of(what: str, span: Span | None, labels: tuple[Label, ...] = ()) -> Iterator[None]:
    """While code is generated: whatever else the compiler raises is an InternalError that names the lines. Interrupts
    and exhausted memory are not bugs."""
    try:
        yield
    except (RelayError, Signal, MemoryError):
        raise
    except InternalError as error:
        if error.span is None:
            error.span, error.labels = span, labels
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        message = f"{what} cannot be compiled: {type(error).__name__}: {reason}"
        raise InternalError(message, span, labels=labels) from error
